"""One sentence for each cause, with its numbers, for people."""

from evalboard.core.cause import Cause, Evidence

REASONS = {
    "no_logprobs": "There are no logprobs to judge by: compare the fingerprints.",
    "text": "The texts differ though every token is the same.",
    "ended": "One answer ends where the other goes on, and no limit that is known explains it.",
    "drawn": "A token was chosen that was not the most likely: it was drawn, so its logprob explains nothing.",
    "not_listed": "The token that one side chose is not among the other side's alternatives, so no movement is known.",
}
LIMITS = {"max_tokens": "token limits", "stop": "stop texts", "finish_reason": "finish reasons"}


def words(cause: Cause) -> str:
    """Say a cause in one sentence or two."""
    return _WORDS[cause.code](cause)


def _error(cause: Cause) -> str:
    codes = {side: cause.evidence[f"error_code_{side}"] for side in ("baseline", "candidate")}
    named = [f"the {side} has none ({code})" for side, code in codes.items() if code]
    return f"There is no pair of responses: {' and '.join(named) or 'one side has none'}. It counts as missing."


def _identical(cause: Cause) -> str:
    if cause.evidence["compared"] == "text":
        return "Same text, same score; there are no logprobs to compare."
    return "Same tokens, same logprobs to the bit, same score."


def _scorer(cause: Cause) -> str:
    scores = _sides(cause.evidence, "score", "from {} to {}")
    digests = _sides(cause.evidence, "scorer_digest", "scorer {} against {}", shorten=True)
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


def _prompt_mismatch(cause: Cause) -> str:
    found = cause.evidence
    if found.get("is_estimated"):
        gap = "" if found["start_gap"] is None else f", {found['start_gap']:.3f} nats apart in the most likely token"
        return f"The prompts probably differ: the answers part early and already start apart{gap}."
    what = "The prompts' token ids differ" if "prompt_digest_baseline" in found else "The prompts differ"
    parts = []
    if "n_prompt_tokens_baseline" in found:
        parts.append(_sides(found, "n_prompt_tokens", "{} tokens against {}"))
    if "template_digest_baseline" in found:
        parts.append(_sides(found, "template_digest", "chat template {} against {}", shorten=True))
    return f"{what}: {', '.join(parts)}." if parts else f"{what}."


def _backend_changed(cause: Cause) -> str:
    parts = [
        _sides(cause.evidence, name, f"{name} {{}} against {{}}", shorten=name == "fingerprint")
        for name in ("fingerprint", "backend")
        if f"{name}_baseline" in cause.evidence
    ]
    return f"Another backend answered: {', '.join(parts)}.{_beside(cause)}"


def _whitespace(cause: Cause) -> str:
    found = cause.evidence
    what = "how the JSON is written" if found["same_but_for"] == "json" else "white space or Unicode form"
    if found["score_baseline"] == found["score_candidate"]:
        return f"The answers differ in nothing but {what}."
    return f"The answers differ in nothing but {what}, yet the scores differ: the scorer is too strict."


def _length(cause: Cause) -> str:
    found = cause.evidence
    longer = "candidate" if found["shorter"] == "baseline" else "baseline"
    moved = [text for name, text in LIMITS.items() if found.get(f"{name}_baseline") != found.get(f"{name}_candidate")]
    why = f"; the {' and '.join(moved)} differ" if moved else ""
    counts = _sides(found, "n_tokens", "{} tokens against {}")
    return f"The {found['shorter']}'s answer is the beginning of the {longer}'s: {counts}{why}."


def _sampler_fault(cause: Cause) -> str:
    at = [
        f"the {side} did not take the most likely token at position {cause.evidence[f'not_greedy_{side}']}"
        for side in ("baseline", "candidate")
        if f"not_greedy_{side}" in cause.evidence
    ]
    return f"At temperature 0 {' and '.join(at)}."


def _drift_only(cause: Cause) -> str:
    found = cause.evidence
    gap = "" if found["gap_at_onset"] is None else f" by {_nats(found['gap_at_onset'])}"
    return f"Same tokens; the logprobs first differ at position {found['drift_onset']}{gap}.{_shift(found)}"


def _near_tie(cause: Cause) -> str:
    return _tie(cause.evidence)


def _larger_shift(cause: Cause) -> str:
    return _larger(cause.evidence)


def _unknown(cause: Cause) -> str:
    return REASONS[cause.evidence["reason"]]


def _beside(cause: Cause) -> str:
    if cause.numeric == "near_tie":
        return f" {_tie(cause.evidence)}"
    if cause.numeric == "larger_shift":
        return f" {_larger(cause.evidence)}"
    return ""


def _tie(found: Evidence) -> str:
    """A near tie: how close the two tokens were, against the noise."""
    ulps = "" if found["ulps"] is None else f", {found['ulps']:.3g} steps of the logits"
    margins = ", ".join(
        f"by {_nats(found[f'margin_{side}'])} on the {side}"
        for side in ("baseline", "candidate")
        if found[f"margin_{side}"] is not None
    )
    doubt = " The prefix is too short to say more: low confidence." if found["is_low_confidence"] else ""
    return (
        f"A near tie at position {found['flip']}: the two tokens were apart {margins}; "
        f"they moved by {_nats(found['movement'])}{ulps}, and noise moves them by up to {_nats(found['near'])} "
        f"({_noise(found)}).{doubt}"
    )


def _larger(found: Evidence) -> str:
    is_ratio = found["ratio"] is not None and found["ratio"] > found["threshold"]
    if is_ratio or found["movement"] is None:
        return f"The logits moved further than noise explains.{_shift(found)}"
    return (
        f"The logits moved further than noise explains: {_nats(found['movement'])} at the flip, "
        f"and noise moves them by up to {_nats(found['near'])} ({_noise(found)})."
    )


def _shift(found: Evidence) -> str:
    if found["ratio"] is None:
        return ""
    return (
        f" Over {found['n_usable']} positions they moved by {_nats(found['shift_rms'])}, "
        f"{found['ratio']:.2f} times the noise ({_noise(found)}; {found['threshold']:.2f} times is the limit)."
    )


def _noise(found: Evidence) -> str:
    how = f"assumed for {found['assumed_dtype']}" if found["is_assumed"] else "measured"
    return f"noise {_nats(found['sd'])}, {how}"


def _nats(value: float) -> str:
    return f"{value:.3g} nats" if abs(value) < 0.01 and value else f"{value:.3f} nats"


def _sides(found: Evidence, name: str, text: str, *, shorten: bool = False) -> str:
    values = [found[f"{name}_{side}"] for side in ("baseline", "candidate")]
    return text.format(*("unknown" if value is None else _shown(value, shorten) for value in values))


def _shown(value: object, shorten: bool) -> str:
    return str(value)[:8] if shorten else str(value)


_WORDS = {
    "error": _error,
    "identical": _identical,
    "scorer": _scorer,
    "model_changed": _model_changed,
    "prompt_mismatch": _prompt_mismatch,
    "backend_changed": _backend_changed,
    "model_name_changed": _model_name_changed,
    "whitespace": _whitespace,
    "length": _length,
    "sampler_fault": _sampler_fault,
    "drift_only": _drift_only,
    "near_tie": _near_tie,
    "larger_shift": _larger_shift,
    "unknown": _unknown,
}
