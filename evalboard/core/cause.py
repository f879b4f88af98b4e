"""Why the responses or scores of one pair differ: one cause from a closed list, with the numbers behind it.

The list is gone through in order and the first test that holds decides; docs/divergence.md gives each. What is not
known is never taken to differ: a test that needs it does not hold.
"""

import unicodedata
from dataclasses import dataclass, field
from typing import Any

from evalboard.core import digest
from evalboard.core.divergence import Divergence
from evalboard.core.numeric_noise import MIN_POSITIONS, NumericNoise, threshold
from evalboard.core.scoring import response_json

# In the order of the tests. A cause's place here is its code in arrays; what is stored is its name.
CAUSES = (
    "error",
    "identical",
    "scorer",
    "model_changed",
    "prompt_mismatch",
    "backend_changed",
    "model_name_changed",
    "whitespace",
    "length",
    "sampler_fault",
    "drift_only",
    "near_tie",
    "larger_shift",
    "unknown",
)
CODES = {cause: code for code, cause in enumerate(CAUSES)}

EARLY = 6  # positions within which another prompt shows, where prompts cannot be compared themselves
START_GAP = 1.0  # nats between the two top-1 logprobs at position 0

Evidence = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What is known of one side's response; None is "not known". Digests are hexadecimal.

    weights_digest covers what the model computes with, but not its chat template, which has its own. Where nobody knows
    it, model_revision is the revision that was declared, and model_name what the model goes by; else both are None.
    temperature 0 says that top-1 must be chosen, unless is_adjusted: penalties, a bias or a constraint took part.
    """

    has_response: bool = True
    error_code: str = ""
    text: str = ""
    score: float | None = None
    scorer_digest: str | None = None
    weights_digest: str | None = None
    model_revision: str | None = None
    model_name: str | None = None
    template_digest: str | None = None
    prompt_digest: str | None = None
    n_prompt_tokens: int | None = None
    fingerprint: str | None = None
    backend: str | None = None
    finish_reason: str | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    temperature: float | None = None
    is_adjusted: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    baseline: Side
    candidate: Side


@dataclass(frozen=True, slots=True)
class Cause:
    """code: one of CAUSES. numeric: "near_tie" or "larger_shift", how it looks beside a changed model or backend.

    evidence holds strings, booleans and finite numbers by name, ready for JSON; None is "not known".
    """

    code: str
    numeric: str | None = None
    evidence: Evidence = field(default_factory=dict)


def decide(pair: Pair, divergence: Divergence | None, noise: NumericNoise) -> Cause:
    """Say why a pair differs. divergence is None where the traces are equal to the bit."""
    baseline, candidate = pair.baseline, pair.candidate
    if not (baseline.has_response and candidate.has_response):
        return Cause("error", None, _both(pair, "error_code"))
    parting = divergence or Divergence(has_logprobs=True)
    is_same_text = baseline.text == candidate.text
    is_score_moved = None not in (baseline.score, candidate.score) and baseline.score != candidate.score
    if is_same_text and is_score_moved:
        return Cause("scorer", None, _both(pair, "scorer_digest") | _both(pair, "score"))
    if is_same_text and parting.kind == "identical":
        return Cause("identical", None, {"compared": "trace" if parting.has_logprobs else "text"})
    code, numbers = _read_numbers(parting, noise)
    numeric = _numeric(code, numbers)
    if moved := _moved(pair, "weights_digest", "model_revision"):
        return Cause("model_changed", numeric, moved | numbers)
    if prompts := _prompts(pair, parting, noise):
        return Cause("prompt_mismatch", None, prompts)
    if moved := _moved(pair, "fingerprint", "backend"):
        return Cause("backend_changed", numeric, moved | numbers)
    if moved := _moved(pair, "model_name"):
        return Cause("model_name_changed", numeric, moved | numbers)
    if not is_same_text and (written := same_but_for(baseline.text, candidate.text)):
        return Cause("whitespace", None, {"same_but_for": written, "flip": parting.flip} | _both(pair, "score"))
    if code != "near_tie" and (lengths := _lengths(pair, parting)):
        return Cause("length", None, lengths)
    if fault := _sampler_fault(pair, parting):
        return Cause("sampler_fault", None, fault)
    return Cause(code, None, numbers)


def same_but_for(one: str, other: str) -> str | None:
    """What two texts differ in if it is only how they are written: "spacing" (with Unicode's forms) or "json"."""
    if _spaced(one) == _spaced(other):
        return "spacing"
    try:
        values = [digest.canonical_json(response_json.parse(text)) for text in (one, other)]
    except response_json.Unreadable:
        return None
    return "json" if values[0] == values[1] else None


def _spaced(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _both(pair: Pair, name: str) -> Evidence:
    return {f"{name}_baseline": getattr(pair.baseline, name), f"{name}_candidate": getattr(pair.candidate, name)}


def _moved(pair: Pair, *names: str) -> Evidence:
    """Those of the named facts that are known on both sides and differ."""
    evidence: Evidence = {}
    for name in names:
        found = _both(pair, name)
        if None not in found.values() and len(set(found.values())) == 2:
            evidence |= found
    return evidence


def _prompts(pair: Pair, parting: Divergence, noise: NumericNoise) -> Evidence:
    """What shows that the two sides were asked different things, or nothing.

    Where both prompts' token ids are known they decide, whatever template made them. Where not even their numbers
    are, answers that part early and start apart by more than noise come from other prompts, probably.
    """
    if None not in (pair.baseline.prompt_digest, pair.candidate.prompt_digest):
        moved = _moved(pair, "prompt_digest")
        return moved and moved | _moved(pair, "template_digest", "n_prompt_tokens")
    if moved := _moved(pair, "template_digest", "n_prompt_tokens"):
        return moved
    if None not in (pair.baseline.n_prompt_tokens, pair.candidate.n_prompt_tokens):
        return {}
    is_early = parting.parts_at is not None and parting.parts_at < EARLY
    # Second and third place change for nothing where they are nearly equal, so other top twos are not enough.
    least = noise.near if parting.are_start_top_two_equal is False else START_GAP
    if not is_early or parting.start_gap is None or parting.start_gap <= min(least, START_GAP):
        return {}
    return {
        "is_estimated": True,
        "flip": parting.flip,
        "start_gap": parting.start_gap,
        "are_start_top_two_equal": parting.are_start_top_two_equal,
    }


def _lengths(pair: Pair, parting: Divergence) -> Evidence:
    """What shows that one answer is the other's beginning because of a limit, or nothing."""
    shorter = parting.shorter or _beginning(pair, parting)
    limits = _moved(pair, "max_tokens", "stop")
    is_cut = {pair.baseline.finish_reason, pair.candidate.finish_reason} == {"length", "stop"}
    if shorter is None or not (limits or is_cut):
        return {}
    counts = {"n_tokens_baseline": parting.n_baseline, "n_tokens_candidate": parting.n_candidate}
    return {"shorter": shorter, **_both(pair, "finish_reason"), **counts, **limits}


def _beginning(pair: Pair, parting: Divergence) -> str | None:
    """The side whose text begins the other's, with no token but its end token beyond where they part."""
    if len(pair.baseline.text) < len(pair.candidate.text):
        shorter, short, long = "baseline", pair.baseline.text, pair.candidate.text
        n_left = parting.n_baseline - (parting.parts_at or 0)
    else:
        shorter, short, long = "candidate", pair.candidate.text, pair.baseline.text
        n_left = parting.n_candidate - (parting.parts_at_candidate or 0)
    is_beginning = short != long and long.startswith(short)
    return shorter if is_beginning and (parting.parts_at is None or n_left == 1) else None


def _sampler_fault(pair: Pair, parting: Divergence) -> Evidence:
    """Where a side that must choose the top-1 did not, up to the parting, or nothing."""
    evidence: Evidence = {}
    for name, side in (("baseline", pair.baseline), ("candidate", pair.candidate)):
        position = getattr(parting, f"not_greedy_{name}")
        if position is not None and side.temperature == 0 and not side.is_adjusted:
            evidence[f"not_greedy_{name}"] = position
    return evidence and evidence | {"flip": parting.flip}


def _read_numbers(parting: Divergence, noise: NumericNoise) -> tuple[str, Evidence]:
    """Tests 9 to 11: what the logprobs alone say, and every number that it rests on."""
    ratio = noise.ratio(parting.shift_rms, parting.n_usable)
    numbers: Evidence = {
        "drift_onset": parting.drift_onset,
        "flip": parting.flip,
        "margin_baseline": parting.margin_baseline,
        "margin_candidate": parting.margin_candidate,
        "gap_at_onset": parting.gap_at_onset,
        "movement": parting.movement,
        "near": noise.near,
        "sd": noise.sd,
        "is_assumed": noise.is_assumed,
        "assumed_dtype": noise.dtype or None,
        "ulp": noise.ulp or None,
        "ulps": parting.movement / noise.ulp if noise.ulp and parting.movement is not None else None,
        "shift_rms": parting.shift_rms,
        "ratio": ratio,
        "threshold": threshold(parting.n_usable) if ratio is not None else None,
        "n_usable": parting.n_usable,
        "is_low_confidence": parting.n_usable < MIN_POSITIONS,
        "is_approximate": parting.is_approximate,
    }
    code, reason = _judge(parting, noise)
    return code, numbers | ({"reason": reason, "text_position": parting.text_position} if reason else {})


def _judge(parting: Divergence, noise: NumericNoise) -> tuple[str, str | None]:
    """The cause that the numbers give, and for `unknown` why they give none: a key of cause_words.REASONS."""
    if not parting.has_logprobs:
        return "unknown", "no_logprobs"
    if parting.parts_at is None:
        return ("unknown", "text") if parting.drift_onset is None else ("drift_only", None)
    if noise.is_larger(parting.shift_rms, parting.n_usable):
        return "larger_shift", None
    if parting.shorter is not None:
        return "unknown", "ended"
    if not parting.are_both_top or parting.movement is None:
        return "unknown", "drawn"
    if parting.movement > noise.near:
        return "larger_shift", None
    return ("near_tie", None) if parting.are_top_two_equal or parting.are_both_listed else ("unknown", "not_listed")


def _numeric(code: str, numbers: Evidence) -> str | None:
    if code in ("near_tie", "larger_shift"):
        return code
    is_larger = numbers["ratio"] is not None and numbers["ratio"] > numbers["threshold"]
    return "larger_shift" if code == "drift_only" and is_larger else None
