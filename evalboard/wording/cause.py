"""Sentences for why two answers diverged, one for each cause, and for the noise that applies."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalboard.core.compare import CHOOSING, ENDED, Cause
from evalboard.wording.numbers import counted, fixed, listed, nats

if TYPE_CHECKING:
    from evalboard.contract.pair import ForcedFlip

Facts = Mapping[str, Any]

REASONS = {
    "same_prompt": "The prompt of this case did not change, and texts alone are compared where the prompt is judged.",
    "no_logprobs": "There are no logprobs to judge by: compare the fingerprints.",
    "text": "The texts differ though every token is the same.",
    "prompts": (
        "The answers part within their first tokens by more than noise, and nothing is known of the prompts: other "
        "prompts or another computation may have done it."
    ),
    "ended": "One answer ends where the other goes on, and no limit that is known explains it.",
    "one_seed": (
        "Both sides were sent one seed, and the logits moved on the way: whether the seed was ignored or noise changed "
        "the draw cannot be told from one pair. The seed probe tells."
    ),
    "sampled": "Two tokens were almost equally likely, and tokens are drawn here: the draw explains the flip.",
    "drawn": "A token was chosen that was not the most likely: it was drawn, so its logprob explains nothing.",
    "unknown_temperature": (
        "A token was chosen that was not the most likely, and the temperature is not known: whether it was drawn "
        "cannot be told."
    ),
    "no_alternatives": (
        "A side lists no alternatives where the answers part, so whether it chose the most likely token is not known."
    ),
    "not_listed": "The token that one side chose is not among the other's alternatives, so its movement is not known.",
}
CHANGES = {
    "model_changed": "models",
    "prompt_mismatch": "prompts",
    "sampling_changed": "sampling settings",
    "backend_changed": "backends",
    "model_name_changed": "model names",
}
NO_NOISE = "none, for this bucket gives the same bits each time"
SPIKE_OVER_MEAN = 4  # the largest of 120 positions of even noise is below, 99 times in 100
LIMITS = {"max_tokens": "token limits", "stop": "stop texts", "finish_reason": "finish reasons"}


def explain_cause(cause: Cause, *, replay: str = "") -> str:
    """Explain a cause in a sentence or two, with other differences and whether it is inside the thinking.

    replay: the command that decodes the case again, "" if there is none.
    """
    advice = f" To see whether it happens again: {replay}" if replay and cause.code == "leak" else ""
    return f"{_WORDS[cause.code](cause)}{_confounded(cause.evidence)}{_in_reasoning(cause.evidence)}{advice}"


def explain_leak(source: Facts | None, n_beside: Mapping[str, int | None]) -> str:
    """Say whose text an answer goes on with, or where it was sought.

    source: as contract.pair.LeakSource, None where nothing was found. n_beside: by side, how many responses were
    decoded beside its own; None where that is not known.
    """
    if source is not None:
        whose = f"the {'answer to' if source['stands_in'] == 'answer' else 'prompt of'} {source['case']}"
        tokens = counted(source["n_tokens"], "token")
        return f"The {source['side']}'s answer goes on with {tokens} of {whose}, which was decoded beside it."
    sought = "; ".join(_sought(side, n) for side, n in n_beside.items())
    return f"Whose it is was not found: {sought}."


def explain_at_flip(choices: Sequence["ForcedFlip"], *, near: float | None) -> str:
    """Say what each stack gives at the flip for the same prefix, by forced scoring; "" without scores.

    near: the most that noise explains there, in nats; None where the noise is not known.
    """
    if not choices:
        return ""
    first, *others = choices
    apart = [f"the {first.stack}’s stack holds its two likeliest tokens {nats(first.margin)} apart"]
    apart += [f"the {other.stack}’s {nats(other.margin)} apart" for other in others]
    sentence = f"Scored under the very same prefix, {listed(apart)}"
    if near is None:
        return f"{sentence}."
    ties = [each.stack for each in choices if each.margin <= near]
    if len(ties) == len(choices):
        return f"{sentence}: a near tie {'on both' if others else 'there'}."
    where = f"a near tie on the {ties[0]}’s alone" if ties else f"no near tie {'on either' if others else 'there'}"
    return f"{sentence}: {where}, as noise explains no more than {nats(near)}."


def _sought(side: str, n_beside: int | None) -> str:
    if n_beside is None:
        return f"what was decoded beside the {side}'s is not known"
    if not n_beside:
        return f"nothing was decoded beside the {side}'s"
    have = "has" if n_beside == 1 else "have"
    return f"{counted(n_beside, 'response')} decoded beside the {side}'s {have} no such text"


def name_changes(facts: Facts) -> str:
    """List what else differs between a confounded pair's sides, "prompt and token limits"; "" if nothing."""
    names = [name for code in facts.get("also_moved", ()) for name in _names(code, facts)]
    return listed(names) if names else ""


def explain_noise(noise: Facts) -> str:
    """Say how far logits move if nothing changes.

    noise: `sd`, `near` and `capped_from` in nats, `is_assumed`, `dtype`.
    """
    if noise["sd"] == 0:
        return f"Noise of the logits: {NO_NOISE}, so that any bit that differs is a finding."
    how = "measured from repeats that differ"
    if noise["is_assumed"]:
        how = f"assumed for {noise['dtype']} logits, because no repeats of these runs differ that could measure it"
    elif noise.get("capped_from") is not None:
        how = f"the most that counts as noise, as repeats that differ measure {nats(noise['capped_from'])}"
    limit = f"a near tie moves by at most {nats(noise['near'])}"
    return f"Noise of the logits: {nats(noise['sd'])}, {how}; {limit}."


def count_larger_shifts(n_cases: int, n_read: int, n_established: int) -> str:
    """Say in how many cases logits moved more than noise; "" if none could be compared."""
    if not n_read:
        return ""
    counts = f"Of {counted(n_read, 'case')} that can be held against noise, {n_cases:,} moved further than it explains."
    others = "1 other case differs" if n_established == 1 else f"{n_established:,} other cases differ"
    return f"{counts} {others} for an established cause." if n_established else counts


def _error(cause: Cause) -> str:
    codes = {side: cause.evidence[f"error_code_{side}"] for side in ("baseline", "candidate")}
    named = [f"the {side} has none ({code})" for side, code in codes.items() if code]
    return f"There is no pair of responses: {' and '.join(named) or 'one side has none'}. It counts as missing."


def _identical(cause: Cause) -> str:
    if cause.evidence["compared"] == "text":
        return "Same text, same score; there are no logprobs to compare."
    if cause.evidence["compared"] == "retokenised":
        return "Same text, tokenized differently: the logprobs of other tokens cannot be compared."
    return "Same tokens, same logprobs to the bit, same score."


def _scorer(cause: Cause) -> str:
    scores = _sides(cause.evidence, "score", "from {} to {}")
    ours, theirs = (cause.evidence.get(f"scorer_digest_{side}") for side in ("baseline", "candidate"))
    which = "by one scorer, {0}" if ours and ours == theirs else "scorer {} against {}"
    digests = _sides(cause.evidence, "scorer_digest", which, shorten=True)
    return f"Same answer, different grade: the score went {scores} ({digests})."


def _model_changed(cause: Cause) -> str:
    if "weights_digest_baseline" not in cause.evidence:
        revisions = _sides(cause.evidence, "model_revision", "{} against {}")
        return f"The model's declared revisions differ: {revisions}.{_beside(cause)}"
    weights = _sides(cause.evidence, "weights_digest", "{} against {}", shorten=True)
    return f"The weights differ: {weights}.{_beside(cause)}"


def _model_name_changed(cause: Cause) -> str:
    names = _sides(cause.evidence, "model_name", "{} against {}")
    return f"The model goes by another name: {names}. Whether its weights differ is not known.{_beside(cause)}"


def _prompt_changed(cause: Cause) -> str:
    if "n_prompt_tokens_baseline" not in cause.evidence:
        return "The prompt changed."
    return f"The prompt changed: {_sides(cause.evidence, 'n_prompt_tokens', '{} tokens against {}')}."


def _prompt_mismatch(cause: Cause) -> str:
    facts = cause.evidence
    if facts.get("is_estimated"):
        start = facts["start_gap"]
        gap = "" if start is None else f", {fixed(start, 3)} nats apart in the most likely token"
        return f"The prompts probably differ: the answers part early and already start apart{gap}."
    what = "The prompts' token ids differ" if "prompt_digest_baseline" in facts else "The prompts differ"
    parts = []
    if "n_prompt_tokens_baseline" in facts:
        parts.append(_sides(facts, "n_prompt_tokens", "{} tokens against {}"))
    if "template_digest_baseline" in facts:
        parts.append(_sides(facts, "template_digest", "chat template {} against {}", shorten=True))
    return f"{what}: {', '.join(parts)}." if parts else f"{what}."


def _sampling_changed(cause: Cause) -> str:
    values = {name: (f"{name}_baseline", f"{name}_candidate") for name in ("temperature", *CHOOSING)}
    parts = [
        f"{name} {' against '.join(_setting(cause.evidence[side]) for side in sides)}"
        for name, sides in values.items()
        if sides[0] in cause.evidence
    ]
    return f"Tokens were chosen under other settings: {listed(parts)}.{_beside(cause)}"


def _backend_changed(cause: Cause) -> str:
    parts = [
        _sides(cause.evidence, name, f"{name} {{}} against {{}}", shorten=name == "fingerprint")
        for name in ("fingerprint", "backend")
        if f"{name}_baseline" in cause.evidence
    ]
    return f"Another backend answered: {', '.join(parts)}.{_beside(cause)}"


def _leak(cause: Cause) -> str:
    before = counted(cause.evidence["flip"], "position")
    return (
        f"After {before} alike, the two sides list no token in common for the next one: one of the answers looks like "
        "another request's continuation."
    )


def _silent_change(cause: Cause) -> str:
    facts = cause.evidence
    at = facts["flip"] if facts["drift_onset"] is None else facts["drift_onset"]
    moved = f", there by {nats(facts['gap_at_onset'])}" if facts["gap_at_onset"] else ""
    return (
        "Something that no fingerprint shows has changed: both sides are one bucket, which gives the same bits each "
        f"time, and from position {at} on the logprobs differ{moved}."
    )


def _seed_ignored(cause: Cause) -> str:
    facts = cause.evidence
    moved = "the same probabilities"
    if facts["moved_by"]:
        moved = "probabilities so nearly alike that one draw falls on two tokens less than once in 1,000 pairs"
    return (
        f"The seed was not honoured: both sides were sent seed {facts['seed']}, and at position {facts['flip']} other "
        f"tokens were drawn from {moved}."
    )


def _whitespace(cause: Cause) -> str:
    facts = cause.evidence
    what = "how the JSON is written" if facts["same_but_for"] == "json" else "white space or Unicode form"
    if facts["score_baseline"] == facts["score_candidate"]:
        return f"The answers differ in nothing but {what}."
    return (
        f"The answers differ in nothing but {what}, yet the scores differ: look whether the scorer should count that."
    )


def _length(cause: Cause) -> str:
    facts = cause.evidence
    longer = "candidate" if facts["shorter"] == "baseline" else "baseline"
    moved = [text for name, text in LIMITS.items() if facts.get(f"{name}_baseline") != facts.get(f"{name}_candidate")]
    why = f"; the {' and '.join(moved)} differ" if moved else ""
    counts = _sides(facts, "n_tokens", "{} tokens against {}")
    return f"The {facts['shorter']}'s answer is the beginning of the {longer}'s: {counts}{why}."


def _ended(cause: Cause) -> str:
    sides = _sides(cause.evidence, "ending", "{} on the baseline's side, {} on the candidate's")
    return f"The answers ended differently: {sides}."


def _constrained(cause: Cause) -> str:
    known = {side: cause.evidence[f"constraint_{side}"] for side in ("baseline", "candidate")}
    sides = [f"on the {side}'s side by {constraint}" for side, constraint in known.items() if constraint]
    if not sides:
        return (
            "A token was chosen far below others, or where the other side's was forbidden: a grammar, a schema or a "
            "forced tool call does that, so the logprobs do not explain the choice."
        )
    return f"Decoding was constrained {listed(sides)}, so the logprobs do not explain where the answers part."


def _sampler_fault(cause: Cause) -> str:
    at = [
        f"the {side} did not take the most likely token at position {cause.evidence[f'not_greedy_{side}']}"
        for side in ("baseline", "candidate")
        if f"not_greedy_{side}" in cause.evidence
    ]
    return f"At temperature 0 {' and '.join(at)}."


def _drift_only(cause: Cause) -> str:
    facts = cause.evidence
    gap = "" if facts["gap_at_onset"] is None else f" by {nats(facts['gap_at_onset'])}"
    judged = ""
    if facts["ratio"] is not None:
        judged = (
            " Noise explains that." if facts["ratio"] <= facts["threshold"] else " That is more than noise explains."
        )
    return f"Same tokens; the logprobs first differ at position {facts['drift_onset']}{gap}.{_shift(facts)}{judged}"


def _unknown(cause: Cause) -> str:
    return REASONS[cause.evidence["reason"]]


def _confounded(facts: Facts) -> str:
    names = name_changes(facts)
    return f" Confounded: {names} differ as well, so which of these parted the answers is not known." if names else ""


def _names(code: str, facts: Facts) -> list[str]:
    """Name what differs for a cause that is listed next to another: limits by their own names."""
    if code == "length":
        return [text for name, text in LIMITS.items() if f"{name}_baseline" in facts]
    return [CHANGES[code]]


def _in_reasoning(facts: Facts) -> str:
    if "in_reasoning_at" not in facts:
        return ""
    ours, theirs = (facts[f"n_reasoning_tokens_{side}"] for side in ("baseline", "candidate"))
    n_tokens = f"{ours:,}" if ours == theirs else f"{ours:,} (baseline) and {theirs:,} (candidate)"
    return f" They parted inside the thinking, at token {facts['in_reasoning_at']:,} of {n_tokens}."


def _beside(cause: Cause) -> str:
    return f" {_WORDS[cause.numeric](cause)}" if cause.numeric else ""


def _tie(facts: Facts) -> str:
    """Return a near tie: how close the two tokens were, against the noise."""
    ulps = "" if facts["ulps"] is None else f" ({facts['ulps']:.3g} steps of the logits)"
    leads = " and ".join(
        f"the {side}'s choice led by {nats(facts[f'margin_{side}'])}"
        for side in ("baseline", "candidate")
        if facts[f"margin_{side}"] is not None
    )
    doubt = " The prefix is too short to say more: low confidence." if facts["is_low_confidence"] else ""
    return (
        f"A near tie at position {facts['flip']}: {leads}. Between the two sides their difference moved by "
        f"{nats(facts['movement'])}{ulps}, and noise moves it by up to {nats(facts['near'])} ({_noise(facts)})."
        f"{_spike(facts)}{doubt}"
    )


def _larger(facts: Facts) -> str:
    is_ratio = facts["ratio"] is not None and facts["ratio"] > facts["threshold"]
    if is_ratio or facts["movement"] is None:
        return f"The logits moved further than noise explains.{_shift(facts)}"
    return (
        f"The logits moved further than noise explains: {nats(facts['movement'])} at the flip, "
        f"and noise moves them by up to {nats(facts['near'])} ({_noise(facts)}).{_spike(facts)}"
    )


def _shift(facts: Facts) -> str:
    if facts["ratio"] is None:
        return ""
    return (
        f" Over {facts['n_usable']} positions they moved by {nats(facts['shift_rms'])}, "
        f"{facts['ratio']:.3g} times the noise ({_noise(facts)}; {facts['threshold']:.3g} times is the limit)."
        f"{_spike(facts)}"
    )


def _spike(facts: Facts) -> str:
    """Say where one position moved far more than the mean shows; "" if none did."""
    largest = facts.get("shift_max")  # None in what an earlier Evalboard stored
    if largest is None or largest <= max(facts["near"], SPIKE_OVER_MEAN * facts["shift_rms"]):
        return ""
    return f" At position {facts['shift_max_at']} alone they moved by {nats(largest)}, which the mean hides."


def _noise(facts: Facts) -> str:
    if facts["sd"] == 0:
        return NO_NOISE
    how = f"assumed for {facts['assumed_dtype']}" if facts["is_assumed"] else "measured"
    if facts.get("capped_from") is not None:
        how = f"the most that counts of a measured {nats(facts['capped_from'])}"
    return f"noise {nats(facts['sd'])}, {how}"


def _setting(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sides(facts: Facts, name: str, text: str, *, shorten: bool = False) -> str:
    values = [facts[f"{name}_{side}"] for side in ("baseline", "candidate")]
    return text.format(*("unknown" if value is None else _shown(value, shorten) for value in values))


def _shown(value: object, shorten: bool) -> str:
    return str(value)[:8] if shorten else str(value)


_WORDS = {
    "error": _error,
    "identical": _identical,
    "scorer": _scorer,
    "prompt_changed": _prompt_changed,
    "model_changed": _model_changed,
    "prompt_mismatch": _prompt_mismatch,
    "sampling_changed": _sampling_changed,
    "backend_changed": _backend_changed,
    "model_name_changed": _model_name_changed,
    "leak": _leak,
    "silent_change": _silent_change,
    "seed_ignored": _seed_ignored,
    "whitespace": _whitespace,
    "length": _length,
    **dict.fromkeys(ENDED, _ended),
    "constrained": _constrained,
    "sampler_fault": _sampler_fault,
    "drift_only": _drift_only,
    "near_tie": lambda cause: _tie(cause.evidence),
    "larger_shift": lambda cause: _larger(cause.evidence),
    "unknown": _unknown,
}
