"""Sentences for why two answers diverged, one for each cause, and for the noise that applies."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalboard.core.compare import CHOOSING, ENDED, Cause
from evalboard.wording.messages import Messages, speak, write
from evalboard.wording.numbers import fixed, listed, nats

if TYPE_CHECKING:
    from evalboard.contract.pair import ForcedFlip

Facts = Mapping[str, Any]

REASONS = Messages(
    "cause.unknown",
    {
        ("cause", "unknown"): {
            "same_prompt": "Unknown: the prompt of this case is the same. Where prompts are judged, only "
            "texts are compared.",
            "no_logprobs": "Unknown: there are no logprobs. Compare the fingerprints.",
            "text": "The texts differ though every token is the same.",
            "prompts": "The answers differ early, by more than noise. The prompts are unknown: they may differ, or the "
            "weights.",
            "ended": "One answer ends where the other continues. No known limit explains it.",
            "one_seed": "Both sides had the same seed, but the logits moved. An ignored seed or noise may be the "
            "cause. Run the seed probe.",
            "sampled": "Two tokens were almost equally likely, and sampling chose differently.",
            "drawn": "A less likely token was sampled. Its logprob cannot tell why the answers parted.",
            "unknown_temperature": "A less likely token was chosen. The temperature is unknown, so it may have been "
            "sampled.",
            "no_alternatives": "One side lists no alternatives at the flip. Its choice may not have been the most "
            "likely.",
            "not_listed": "One side's token is not among the other's alternatives, so the change is unknown.",
        },
    },
)
CHANGES = {
    "model_changed": "models",
    "prompt_mismatch": "prompts",
    "sampling_changed": "sampling settings",
    "backend_changed": "backends",
    "model_name_changed": "model names",
}
NO_NOISE = "none, because this bucket gives the same bits each time"
SPIKE_OVER_MEAN = 4  # the largest of 120 positions of even noise is below, 99 times in 100
LIMITS = {"max_tokens": "token limits", "stop": "stop texts", "finish_reason": "finish reasons"}


def explain_cause(cause: Cause, *, replay: str = "", backends: Sequence[str] = ("", "")) -> str:
    """Explain a cause in a sentence or two, with other differences and whether it is inside the thinking.

    replay: the command that decodes the case again, "" if there is none. backends: what pages call those of both sides.
    """
    facts = cause.evidence
    claims = [CAUSES.claim(cause.code, cause=cause, backends=backends)]
    if names := name_changes(facts):
        claims.append(NOTES.claim("confounded", names=names))
    if "in_reasoning_at" in facts:
        ours, theirs = (facts[f"n_reasoning_tokens_{side}"] for side in ("baseline", "candidate"))
        n_tokens = f"{ours:,}" if ours == theirs else f"{ours:,} (baseline) and {theirs:,} (candidate)"
        claims.append(NOTES.claim("in_reasoning", at=facts["in_reasoning_at"], n_tokens=n_tokens))
    if replay and cause.code == "leak":
        claims.append(NOTES.claim("replay", command=replay))
    return speak(claims)


NOTES = Messages(
    "cause_note",
    {
        ("cause", "allows"): {"confounded": "Confounded: {names} differ too, so each of them may be the cause."},
        ("cause", "asserts"): {
            "in_reasoning": "They differ inside the thinking, from token {at:,} of {n_tokens}.",
            "larger_shifts": "The logits moved more than noise explains in {n_cases:,} of {n_read:case}.",
            "established": "{n:other case} {n:differs|differ} for a known cause.",
        },
        ("next", "advises"): {"replay": "To see whether it happens again: {command}"},
        ("leak", "asserts"): {
            "leak": "The {side}'s answer continues with {n_tokens:token} of the {where} {case}, decoded in the "
            "same batch."
        },
        ("leak", "unknown"): {"no_leak": "The source was not identified. {searched}."},
        ("near_tie", "asserts"): {"at_flip": "After the same prefix, {leads}.", "ties": "{judged}."},
        ("near_tie", "unknown"): {"no_noise": "How much noise explains there was not measured."},
    },
)


def explain_leak(source: Facts | None, n_beside: Mapping[str, int | None]) -> str:
    """Say whose text an answer goes on with, or where it was sought.

    source: as contract.pair.LeakSource, None where nothing was found. n_beside: by side, how many responses were
    decoded beside its own; None where that is not known.
    """
    if source is not None:
        where = "answer to" if source["stands_in"] == "answer" else "prompt of"
        return NOTES.write("leak", source, where=where)
    searched = ". ".join(_searched(side, n) for side, n in n_beside.items())
    return NOTES.write("no_leak", searched=searched)


def explain_at_flip(choices: Sequence["ForcedFlip"], *, near: float | None) -> str:
    """Say what each stack gives at the flip for the same prefix, by forced scoring; "" without scores.

    near: the most that noise explains there, in nats; None where the noise is not known.
    """
    if not choices:
        return ""
    first, *others = choices
    leads = [f"the {first.stack}’s top two tokens are {nats(first.margin)} apart"]
    leads += [f"the {other.stack}’s {nats(other.margin)}" for other in others]
    claims = [NOTES.claim("at_flip", leads=listed(leads))]
    if near is None:
        return speak([*claims, NOTES.claim("no_noise")])
    ties = [each.stack for each in choices if each.margin <= near]
    if len(ties) == len(choices):
        judged = "Both are near ties" if others else "That is a near tie"
    else:
        which = f"Only the {ties[0]}’s is" if ties else "Neither is" if others else "That is not"
        judged = f"{which} a near tie (noise explains {nats(near)})"
    return speak([*claims, NOTES.claim("ties", judged=judged)])


def _searched(side: str, n_beside: int | None) -> str:
    if n_beside is None:
        return f"The batch of the {side} is unknown"
    if not n_beside:
        return f"The answer of the {side} was decoded at batch size 1"
    return write("{n:other response} in the batch of the {side} {n:does|do} not have this text", n=n_beside, side=side)


def name_changes(facts: Facts) -> str:
    """List what else differs between a confounded pair's sides, "prompt and token limits"; "" if nothing."""
    names = [name for code in facts.get("also_moved", ()) for name in _names(code, facts)]
    return listed(names) if names else ""


def explain_noise(noise: Facts) -> str:
    """Say how far logits move if nothing changes.

    noise: `sd`, `near` and `capped_from` in nats, `is_assumed`, `dtype`.
    """
    if noise["sd"] == 0:
        return NOISE.write("zero")
    if noise["is_assumed"]:
        return NOISE.write("assumed", noise)
    return NOISE.write("measured" if noise.get("capped_from") is None else "capped", noise)


NOISE = Messages(
    "logit_noise",
    {
        ("noise", "denies"): {"zero": "This backend gives the same bits each time, so any difference is real."},
        ("noise", "asserts"): {
            "measured": "Noise of the logits: {sd:nats}, measured from repeats. A near tie moves {near:nats} at most.",
            "capped": "Noise of the logits: repeats measure {capped_from:nats}, more than is plausible, so {sd:nats} "
            "is used. The top two tokens move apart by {near:nats} at most.",
        },
        ("noise", "allows"): {
            "assumed": "Noise of the logits: {sd:nats}, usual for {dtype}; repeats show none. The top two "
            "tokens move apart by {near:nats} at most."
        },
    },
)


def count_larger_shifts(n_cases: int, n_read: int, n_established: int) -> str:
    """Say in how many cases logits moved more than noise; "" if none could be compared."""
    if not n_read:
        return ""
    claims = [NOTES.claim("larger_shifts", n_cases=n_cases, n_read=n_read)]
    return speak([*claims, NOTES.claim("established", n=n_established)] if n_established else claims)


def _error(cause: Cause) -> str:
    codes = {side: cause.evidence[f"error_code_{side}"] for side in ("baseline", "candidate")}
    named = [f"the {side}'s ({code})" for side, code in codes.items() if code]
    where = f": {' and '.join(named)}" if named else " on one side"
    return f"A response is missing{where}. The case counts as missing."


def _identical(cause: Cause) -> str:
    if cause.evidence["compared"] == "text":
        return "Same text, same score. There are no logprobs to compare."
    if cause.evidence["compared"] == "retokenised":
        return "Same text, tokenized differently, so logprobs are not comparable."
    return "Same tokens, same logprobs to the bit, same score."


def _scorer(cause: Cause) -> str:
    scores = _sides(cause.evidence, "score", "from {} to {}")
    ours, theirs = (cause.evidence.get(f"scorer_digest_{side}") for side in ("baseline", "candidate"))
    which = "one scorer, {0}" if ours and ours == theirs else "scorer {} → {}"
    digests = _sides(cause.evidence, "scorer_digest", which, shorten=True)
    return f"Same answer, different grade: the score went {scores} ({digests})."


def _model_changed(cause: Cause) -> str:
    if "weights_digest_baseline" not in cause.evidence:
        revisions = _sides(cause.evidence, "model_revision", "{} → {}")
        return f"The model's declared revisions differ: {revisions}.{_beside(cause)}"
    weights = _sides(cause.evidence, "weights_digest", "{} → {}", shorten=True)
    return f"The weights differ: {weights}.{_beside(cause)}"


def _model_name_changed(cause: Cause) -> str:
    names = _sides(cause.evidence, "model_name", "{} → {}")
    return f"The model has another name: {names}. Its weights may be the same.{_beside(cause)}"


def _prompt_changed(cause: Cause) -> str:
    if "n_prompt_tokens_baseline" not in cause.evidence:
        return "The prompt changed."
    return f"The prompt changed: {_sides(cause.evidence, 'n_prompt_tokens', '{} → {} tokens')}."


def _prompt_mismatch(cause: Cause) -> str:
    facts = cause.evidence
    if facts.get("is_estimated"):
        start = facts["start_gap"]
        gap = "" if start is None else f", by {fixed(start, 3)} nats in the most likely token"
        return f"The prompts probably differ: the answers differ early and already start differently{gap}."
    what = "The prompts' token ids differ" if "prompt_digest_baseline" in facts else "The prompts differ"
    parts = []
    if "n_prompt_tokens_baseline" in facts:
        parts.append(_sides(facts, "n_prompt_tokens", "{} → {} tokens"))
    if "template_digest_baseline" in facts:
        parts.append(_sides(facts, "template_digest", "chat template {} → {}", shorten=True))
    return f"{what}: {', '.join(parts)}." if parts else f"{what}."


def _sampling_changed(cause: Cause) -> str:
    values = {name: (f"{name}_baseline", f"{name}_candidate") for name in ("temperature", *CHOOSING)}
    parts = [
        f"{name} {' → '.join(_setting(cause.evidence[side]) for side in sides)}"
        for name, sides in values.items()
        if sides[0] in cause.evidence
    ]
    return f"The sampling settings differ: {listed(parts)}.{_beside(cause)}"


def _backend_changed(facts: Facts) -> str:
    named = f": {' → '.join(facts['backends'])}" if all(facts["backends"]) else ""
    return f"Another backend answered{named}.{_beside(facts['cause'])}"


def _leak(cause: Cause) -> str:
    return write(
        "After {flip:equal position} the sides have no token in common. One answer looks like the continuation of "
        "another request.",
        **cause.evidence,
    )


def _silent_change(cause: Cause) -> str:
    facts = cause.evidence
    at = facts["flip"] if facts["drift_onset"] is None else facts["drift_onset"]
    moved = f", there by {nats(facts['gap_at_onset'])}" if facts["gap_at_onset"] else ""
    return (
        f"Logprobs differ from position {at} on{moved}, though this bucket gives the same bits each time. Something "
        "changed that no fingerprint shows."
    )


def _seed_ignored(cause: Cause) -> str:
    facts = cause.evidence
    same, rare = "the same probabilities", ""
    if facts["moved_by"]:
        same = "almost the same probabilities"
        rare = " If the server used the seed, fewer than 1 of 1,000 pairs would do that."
    at = f"Both sides had seed {facts['seed']} and {same} at position {facts['flip']}"
    return f"The seed was ignored. {at}, but drew different tokens.{rare}"


def _whitespace(cause: Cause) -> str:
    facts = cause.evidence
    what = "JSON formatting" if facts["same_but_for"] == "json" else "white space or Unicode form"
    if facts["score_baseline"] == facts["score_candidate"]:
        return f"The answers differ only in {what}."
    return f"The answers differ only in {what}, but the scores differ. Check the scorer."


def _length(cause: Cause) -> str:
    facts = cause.evidence
    longer = "candidate" if facts["shorter"] == "baseline" else "baseline"
    moved = [text for name, text in LIMITS.items() if facts.get(f"{name}_baseline") != facts.get(f"{name}_candidate")]
    why = f"; the {' and '.join(moved)} differ" if moved else ""
    counts = _sides(facts, "n_tokens", "{} tokens (baseline), {} (candidate)")
    return f"The {facts['shorter']}'s answer is a prefix of the {longer}'s: {counts}{why}."


def _ended(cause: Cause) -> str:
    sides = _sides(cause.evidence, "ending", "baseline {}, candidate {}")
    return f"The answers ended differently: {sides}."


def _constrained(cause: Cause) -> str:
    known = {side: cause.evidence[f"constraint_{side}"] for side in ("baseline", "candidate")}
    sides = [f"on the {side}'s side by {constraint}" for side, constraint in known.items() if constraint]
    if not sides:
        return (
            "A token was probably forbidden. A grammar, a schema or a forced tool call can do that. Logprobs cannot "
            "explain the choice."
        )
    return f"Decoding was constrained {listed(sides)}, so logprobs do not explain the flip."


def _sampler_fault(cause: Cause) -> str:
    at = [
        f"the {side} did not choose its most likely token at position {cause.evidence[f'not_greedy_{side}']}"
        for side in ("baseline", "candidate")
        if f"not_greedy_{side}" in cause.evidence
    ]
    return f"At temperature 0 {' and '.join(at)}."


def _drift_only(cause: Cause) -> str:
    facts = cause.evidence
    gap = "" if facts["gap_at_onset"] is None else f" by {nats(facts['gap_at_onset'])}"
    is_noise = facts["ratio"] is None or facts["ratio"] <= facts["threshold"]
    judged = " Noise explains the average movement." if is_noise else " That is more than noise explains."
    return f"Same tokens. Logprobs first differ at position {facts['drift_onset']}{gap}.{_shift(facts, judged)}"


def _unknown(cause: Cause) -> str:
    return REASONS.write(cause.evidence["reason"])


def _names(code: str, facts: Facts) -> list[str]:
    """Name what differs for a cause that is listed next to another: limits by their own names."""
    if code == "length":
        return [text for name, text in LIMITS.items() if f"{name}_baseline" in facts]
    return [CHANGES[code]]


def _beside(cause: Cause) -> str:
    return f" {CAUSES.write(cause.numeric, cause=cause)}" if cause.numeric else ""


def _tie(facts: Facts) -> str:
    """Return a near tie: how close the two tokens were, against the noise."""
    margins = {side: facts[f"margin_{side}"] for side in ("baseline", "candidate")}
    leads = {side: nats(margin) for side, margin in margins.items() if margin is not None}
    lead = f"the chosen token led by {' and '.join(f'{margin} ({side})' for side, margin in leads.items())}"
    if len(leads) == 2 and leads["baseline"] == leads["candidate"]:
        lead = f"each side's token led by {leads['baseline']}"
    doubt = " Low confidence: the prefix is short." if facts["is_low_confidence"] else ""
    return (
        f"A near tie at position {facts['flip']}: {lead}. The difference of the two tokens "
        f"moved by {nats(facts['movement'])}; noise can move it by up to {nats(facts['near'])} ({_noise(facts)})."
        f"{_spike(facts)}{doubt}"
    )


def _larger(facts: Facts) -> str:
    is_ratio = facts["ratio"] is not None and facts["ratio"] > facts["threshold"]
    if is_ratio or facts["movement"] is None:
        return f"The logits moved more than noise explains.{_shift(facts)}"
    return (
        f"The logits moved more than noise explains: {nats(facts['movement'])} at the flip, where noise moves them by "
        f"up to {nats(facts['near'])} ({_noise(facts)}).{_spike(facts)}"
    )


def _shift(facts: Facts, judged: str = "") -> str:
    """Say how far the logits moved on average, and what that means; "" if unknown."""
    if facts["ratio"] is None:
        return ""
    return (
        f" Over {facts['n_usable']} positions they moved by {nats(facts['shift_rms'])}, {facts['ratio']:.3g} times the "
        f"noise (limit {facts['threshold']:.3g} times; {_noise(facts)}).{judged}{_spike(facts)}"
    )


def _spike(facts: Facts) -> str:
    """Say where one position moved far more than the mean shows; "" if none did."""
    largest = facts.get("shift_max")  # None in what an earlier Evalboard stored
    if largest is None or largest <= max(facts["near"], SPIKE_OVER_MEAN * facts["shift_rms"]):
        return ""
    return f" At position {facts['shift_max_at']} they moved by {nats(largest)}; the average does not show that."


def _noise(facts: Facts) -> str:
    if facts["sd"] == 0:
        return NO_NOISE
    how = f"assumed for {facts['assumed_dtype']}" if facts["is_assumed"] else "measured"
    if facts.get("capped_from") is not None:
        how = f"used in place of the {nats(facts['capped_from'])} that repeats measure"
    return f"standard deviation {nats(facts['sd'])}, {how}"


def _setting(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sides(facts: Facts, name: str, text: str, *, shorten: bool = False) -> str:
    values = [facts[f"{name}_{side}"] for side in ("baseline", "candidate")]
    return text.format(*("unknown" if value is None else _shown(value, shorten) for value in values))


def _shown(value: object, shorten: bool) -> str:
    return str(value)[:8] if shorten else str(value)


def _by_cause(sentence: Callable[[Cause], str]) -> Callable[[Facts], str]:
    return lambda facts: sentence(facts["cause"])


CAUSES = Messages(
    "cause",
    {
        ("cause", "asserts"): {
            "error": _by_cause(_error),
            "identical": _by_cause(_identical),
            "scorer": _by_cause(_scorer),
            "prompt_changed": _by_cause(_prompt_changed),
            "model_changed": _by_cause(_model_changed),
            "prompt_mismatch": _by_cause(_prompt_mismatch),
            "sampling_changed": _by_cause(_sampling_changed),
            "backend_changed": _backend_changed,
            "model_name_changed": _by_cause(_model_name_changed),
            "silent_change": _by_cause(_silent_change),
            "seed_ignored": _by_cause(_seed_ignored),
            "whitespace": _by_cause(_whitespace),
            "length": _by_cause(_length),
            **dict.fromkeys(ENDED, _by_cause(_ended)),
            "constrained": _by_cause(_constrained),
            "sampler_fault": _by_cause(_sampler_fault),
            "drift_only": _by_cause(_drift_only),
            "larger_shift": lambda facts: _larger(facts["cause"].evidence),
        },
        ("cause", "allows"): {"leak": _by_cause(_leak), "near_tie": lambda facts: _tie(facts["cause"].evidence)},
        ("cause", "unknown"): {"unknown": _by_cause(_unknown)},
    },
)
