"""Find why the responses or scores of a pair differ: one cause from a closed list, with its numbers.

The tests run in order and the first that holds decides; docs/divergence.md gives each. What is not known never counts
as different: a test that needs it does not hold.
"""

import unicodedata
from dataclasses import dataclass, field, replace

from evalboard.core import digest
from evalboard.core.compare.divergence import EVIDENCE, Divergence
from evalboard.core.compare.known_pair import CauseFacts, Pair, both_sides, differing_facts
from evalboard.core.scoring import UnreadableJson, parse_response_json
from evalboard.core.stats import MIN_POSITIONS, LogitNoise
from evalboard.core.trace import Ending, read_ending

# In the order of the tests. A cause's place here is its code in arrays; what is stored is its name.
CAUSES = (
    "error",
    "identical",
    "scorer",
    "prompt_changed",
    "model_changed",
    "prompt_mismatch",
    "sampling_changed",
    "backend_changed",
    "model_name_changed",
    "leak",
    "silent_change",
    "seed_ignored",
    "whitespace",
    "length",
    "filtered",
    "refused",
    "empty",
    "cut",
    "constrained",
    "sampler_fault",
    "drift_only",
    "near_tie",
    "larger_shift",
    "unknown",
)
CAUSE_CODES = {cause: code for code, cause in enumerate(CAUSES)}
OF_PROMPTS = ("prompt_changed", "prompt_mismatch")  # beside which logprobs say nothing
ENDED = ("filtered", "refused", "empty", "cut")  # one side alone ended so; the first that holds
# What a pair may look like where another model or backend is known to have answered.
LOOKS = ("whitespace", "length", *ENDED, "constrained", "sampler_fault", "near_tie", "larger_shift")

EARLY = 6  # positions within which another prompt shows, where prompts cannot be compared themselves
START_GAP = 1.0  # nats between the two top-1 logprobs at position 0
SEED_CHANCE = 0.001  # that noise alone parts two draws of one seed, below which the seed was not honoured
JSON_STARTS = ("{", "[", '"', "-", *"0123456789tfn")  # of no other text a reader needs to say why it is not JSON
ONLY_DRAWN = {"top_p", "top_k", "min_p"}  # settings that choose nothing at temperature 0


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause. code: one of CAUSES. numeric: one of LOOKS, for another model or backend; None: unknown.

    evidence has strings, booleans and finite numbers by name, ready for JSON; None is "not known". For a confounded
    pair, one whose sides are known to differ in more than the cause, `also_moved` lists what else: codes of CAUSES,
    "length" for the limits. Other pairs have no `also_moved`.
    """

    code: str
    numeric: str | None = None
    evidence: CauseFacts = field(default_factory=dict)


def find_cause(pair: Pair, divergence: Divergence | None, noise: LogitNoise) -> Cause:
    """Say why a pair differs. divergence is None where the traces are equal to the bit."""
    cause = _find_cause(pair, divergence, noise)
    return replace(cause, evidence=cause.evidence | _place_in_reasoning(pair, divergence))


def _find_cause(pair: Pair, divergence: Divergence | None, noise: LogitNoise) -> Cause:
    baseline, candidate = pair.baseline, pair.candidate
    if not (baseline.has_response and candidate.has_response):
        return Cause("error", None, both_sides(pair, "error_code"))
    parting = divergence or Divergence(has_logprobs=True)
    is_same_text = baseline.text == candidate.text
    is_score_moved = None not in (baseline.score, candidate.score) and baseline.score != candidate.score
    # Where the thinking is scored too, the same answer after other tokens is not the same to the scorer.
    is_thinking_scored = baseline.is_thinking_scored or candidate.is_thinking_scored
    if is_same_text and is_score_moved and not (is_thinking_scored and parting.kind != "identical"):
        return Cause("scorer", None, both_sides(pair, "scorer_digest") | both_sides(pair, "score"))
    if is_same_text and parting.kind == "identical":
        compared = "retokenised" if parting.is_retokenised else "trace" if parting.has_logprobs else "text"
        return Cause("identical", None, {"compared": compared})
    code, numbers = _read_numbers(pair, parting, noise)
    alike = _find_alike(pair, parting, code) or Cause(code, None, numbers)
    if changes := _changes(pair, parting, noise):
        first, *others = changes
        beside = numbers | alike.evidence if first not in OF_PROMPTS else {}
        also_moved = {"also_moved": others} if others else {}
        facts = {name: value for each in (*others, first) for name, value in changes[each].items()}
        return Cause(first, _look(alike.code, numbers) if beside else None, facts | beside | also_moved)
    if alike.code == "constrained":
        return alike
    if _is_leak(parting, noise):
        return Cause("leak", None, numbers)
    if noise.is_zero and (parting.drift_onset is not None or bool(parting.moved_by) or parting.are_disjoint):
        return Cause("silent_change", None, numbers)
    if drawn := _other_draw(pair, parting):
        return Cause("seed_ignored", None, drawn)
    return alike


def _find_alike(pair: Pair, parting: Divergence, code: str) -> Cause | None:
    """Find the cause by texts and limits, as if both sides had one stack. code: by the numbers."""
    is_same_text = pair.baseline.text == pair.candidate.text
    if not is_same_text and (written := find_same_but_for(pair.baseline.text, pair.candidate.text)):
        return Cause(
            "whitespace", None, {"same_but_for": written, "flip": parting.flip_position} | both_sides(pair, "score")
        )
    if code != "near_tie" and (lengths := _lengths(pair, parting)):
        return Cause("length", None, lengths)
    if code != "near_tie" and (ended := _ended_otherwise(pair)):
        return Cause(ended, None, both_sides(pair, "ending") | both_sides(pair, "finish_reason"))
    if code not in ("near_tie", "drift_only") and (constraint := _constraint(pair, parting)):
        return Cause("constrained", None, constraint)
    if fault := _sampler_fault(pair, parting):
        return Cause("sampler_fault", None, fault)
    return None


def _place_in_reasoning(pair: Pair, divergence: Divergence | None) -> CauseFacts:
    """Return where the sides part while both still think, and for how long each does; nothing elsewhere."""
    facts = both_sides(pair, "n_reasoning_tokens")
    if divergence is None or divergence.parts_at is None or None in facts.values():
        return {}
    at, at_candidate = divergence.parts_at, divergence.parts_at_candidate or 0
    is_inside = at < facts["n_reasoning_tokens_baseline"] and at_candidate < facts["n_reasoning_tokens_candidate"]
    return {"in_reasoning_at": at, **facts} if is_inside else {}


def find_same_but_for(one: str, other: str) -> str | None:
    """Name the only difference of two texts: "spacing" (with Unicode's forms) or "json"; else None."""
    if _spaced(one) == _spaced(other):
        return "spacing"
    if not all(text.lstrip().startswith(JSON_STARTS) for text in (one, other)):
        return None
    try:
        values = [digest.canonical_json(parse_response_json(text)) for text in (one, other)]
    except UnreadableJson:
        return None
    return "json" if values[0] == values[1] else None


def _spaced(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _changes(pair: Pair, parting: Divergence, noise: LogitNoise) -> dict[str, CauseFacts]:
    """Return the differences in request and stack by cause, in the order of the tests.

    Limits are no first cause here: they are one only if they made one answer the other's beginning.
    """
    model = differing_facts(pair, "weights_digest", "model_revision")
    is_other_prompt = pair.has_other_prompt is True
    changes = {
        "prompt_changed": {"is_prompt_judged": True, **differing_facts(pair, "n_prompt_tokens")}
        if is_other_prompt
        else {},
        "model_changed": model,
        "prompt_mismatch": {}
        if is_other_prompt
        else _prompts(pair) or ({} if model or _constraint(pair, parting) else _estimate_prompts(pair, parting, noise)),
        "sampling_changed": _moved_sampling(pair),
        "backend_changed": differing_facts(pair, "fingerprint", "backend"),
        "model_name_changed": {} if model else differing_facts(pair, "model_name"),
    }
    moved = {code: facts for code, facts in changes.items() if facts}
    limits = _limits(pair) if moved else {}
    return moved | ({"length": limits} if limits else {})


def _moved_sampling(pair: Pair) -> CauseFacts:
    """Return the settings by which tokens are chosen that are known on both sides and differ."""
    ours, theirs = pair.baseline, pair.candidate
    settings = ours.sampling.keys() & theirs.sampling.keys()
    if ours.temperature == theirs.temperature == 0:
        settings -= ONLY_DRAWN
    moved = differing_facts(pair, "temperature")
    for name in sorted(settings):
        if ours.sampling[name] != theirs.sampling[name]:
            moved |= {f"{name}_baseline": ours.sampling[name], f"{name}_candidate": theirs.sampling[name]}
    return moved


def _limits(pair: Pair) -> CauseFacts:
    """Return differing limits that may have ended an answer; not a token limit that neither reached."""
    is_unreached = {pair.baseline.finish_reason, pair.candidate.finish_reason}.isdisjoint({"length", None})
    return differing_facts(pair, "stop") if is_unreached else differing_facts(pair, "max_tokens", "stop")


def _prompts(pair: Pair) -> CauseFacts:
    """Return what is known of two differing prompts, or {}.

    Where both prompts' token ids are known they decide, whatever template made them.
    """
    if None not in (pair.baseline.prompt_digest, pair.candidate.prompt_digest):
        moved = differing_facts(pair, "prompt_digest")
        return moved and moved | differing_facts(pair, "template_digest", "n_prompt_tokens")
    return differing_facts(pair, "template_digest", "n_prompt_tokens")


def _estimate_prompts(pair: Pair, parting: Divergence, noise: LogitNoise) -> CauseFacts:
    """Recognise answers that probably come from other prompts: they diverge early, beyond noise.

    Empty if the prompts' ids or their numbers are known.
    """
    if not _may_be_prompts(pair, parting):
        return {}
    # Second and third place change for nothing where they are nearly equal, so other top twos are not enough.
    least = noise.near if parting.are_start_top_two_equal is False else START_GAP
    if parting.start_gap is None or parting.start_gap <= min(least, START_GAP):
        return {}
    return {
        "is_estimated": True,
        "flip": parting.flip_position,
        "start_gap": parting.start_gap,
        "are_start_top_two_equal": parting.are_start_top_two_equal,
    }


def _may_be_prompts(pair: Pair, parting: Divergence) -> bool:
    """Tell whether answers diverge so early that unknown prompts may differ."""
    if parting.parts_at is None or parting.parts_at >= EARLY:
        return False
    both = ((side.prompt_digest, side.n_prompt_tokens) for side in (pair.baseline, pair.candidate))
    return all(None in known for known in zip(*both, strict=True))


def _is_leak(parting: Divergence, noise: LogitNoise) -> bool:
    """Tell whether the sides agree up to one step, and share nothing from there; logits cannot cause that."""
    if not parting.are_disjoint or parting.movement is None or parting.movement <= noise.near:
        return False
    if parting.drift_onset is None:
        return parting.n_shared > 0
    return parting.n_usable >= MIN_POSITIONS and not noise.is_larger(parting.shift_rms, parting.n_usable)


def _other_draw(pair: Pair, parting: Divergence) -> CauseFacts:
    """Return evidence of another sample despite one bucket and seed, beyond what noise explains; or {}.

    If no logit over its temperature differs by more than x, two samples choose different tokens with a probability of
    at most 2x; `moved_by` adds up x over all positions.
    """
    temperature = pair.baseline.temperature
    if not pair.is_one_draw or not temperature or parting.moved_by is None:
        return {}
    chance = 2 * parting.moved_by / temperature
    if chance >= SEED_CHANCE:
        return {}
    facts = {"seed": pair.baseline.seed, "temperature": temperature, "flip": parting.flip_position, "chance": chance}
    return facts | {"moved_by": parting.moved_by}


def _lengths(pair: Pair, parting: Divergence) -> CauseFacts:
    """Find evidence that a limit made one answer the other's beginning, or nothing."""
    shorter = parting.shorter or _beginning(pair, parting)
    limits = differing_facts(pair, "max_tokens", "stop")
    reasons = (pair.baseline.finish_reason, pair.candidate.finish_reason)
    is_cut = {read_ending(reason or "") for reason in reasons} == {Ending.CUT, Ending.COMPLETE}
    if shorter is None or not (limits or is_cut):
        return {}
    counts = {"n_tokens_baseline": parting.n_baseline, "n_tokens_candidate": parting.n_candidate}
    return {"shorter": shorter, **both_sides(pair, "finish_reason"), **counts, **limits}


def _ended_otherwise(pair: Pair) -> str | None:
    """Return how only one side ended, one of ENDED; None if an ending is unknown."""
    endings = {pair.baseline.ending, pair.candidate.ending}
    return None if len(endings) < 2 or None in endings else next((each for each in ENDED if each in endings), None)


def _beginning(pair: Pair, parting: Divergence) -> str | None:
    """Return the side whose text begins the other's, with only its end token beyond that point."""
    if len(pair.baseline.text) < len(pair.candidate.text):
        shorter, short, long = "baseline", pair.baseline.text, pair.candidate.text
        n_left = parting.n_baseline - (parting.parts_at or 0)
    else:
        shorter, short, long = "candidate", pair.candidate.text, pair.baseline.text
        n_left = parting.n_candidate - (parting.parts_at_candidate or 0)
    is_beginning = short != long and long.startswith(short)
    return shorter if is_beginning and (parting.parts_at is None or n_left == 1) else None


def _constraint(pair: Pair, parting: Divergence) -> CauseFacts:
    """Return evidence that a grammar, schema or forced call forbade tokens at the divergence; or {}."""
    ours, theirs = pair.baseline.constraint, pair.candidate.constraint
    is_below_top = parting.flip_position is not None and not parting.are_both_top
    is_seen = parting.is_constrained or parting.is_masked or (bool(ours) and is_below_top and not pair.is_sampled)
    has_parted = parting.parts_at is not None or parting.text_position is not None
    if not has_parted or (ours == theirs and not is_seen):
        return {}
    return {"flip": parting.flip_position, **both_sides(pair, "constraint")}


def _sampler_fault(pair: Pair, parting: Divergence) -> CauseFacts:
    """Find where a side that must choose the top-1 did not, up to the parting, or nothing."""
    evidence: CauseFacts = {}
    for name, side in (("baseline", pair.baseline), ("candidate", pair.candidate)):
        position = getattr(parting, f"not_greedy_{name}")
        if position is not None and side.temperature == 0 and not side.is_adjusted:
            evidence[f"not_greedy_{name}"] = position
    return evidence and evidence | {"flip": parting.flip_position}


def _read_numbers(pair: Pair, parting: Divergence, noise: LogitNoise) -> tuple[str, CauseFacts]:
    """Apply tests 9 to 11: the cause by logprobs, and every number behind it."""
    ratio = noise.ratio(parting.shift_rms, parting.n_usable)
    numbers: CauseFacts = {
        **{name: getattr(parting, name) for name in EVIDENCE},
        "flip": parting.flip_position,
        "near": noise.near,
        "sd": noise.sd,
        "is_assumed": noise.is_assumed,
        "assumed_dtype": noise.dtype or None,
        "capped_from": noise.capped_from,
        "ulp": noise.ulp or None,
        "ulps": parting.movement / noise.ulp if noise.ulp and parting.movement is not None else None,
        "ratio": ratio,
        "threshold": noise.threshold(parting.n_usable) if ratio is not None else None,
        "is_low_confidence": parting.n_usable < MIN_POSITIONS,
    }
    code, reason = _judge(pair, parting, noise)
    return code, numbers | ({"reason": reason, "text_position": parting.text_position} if reason else {})


def _judge(pair: Pair, parting: Divergence, noise: LogitNoise) -> tuple[str, str | None]:
    """Return the cause by the numbers, and for `unknown` the reason, a key of wording.cause.REASONS."""
    if not parting.has_logprobs:
        return "unknown", "no_logprobs" if pair.has_other_prompt is None else "same_prompt"
    if parting.parts_at is None:
        return ("unknown", "text") if parting.drift_onset is None else ("drift_only", None)
    larger = ("unknown", "prompts") if _may_be_prompts(pair, parting) else ("larger_shift", None)
    if noise.is_larger(parting.shift_rms, parting.n_usable):
        return larger
    if parting.shorter is not None:
        return "unknown", "ended"
    if parting.lacks_alternatives:
        return "unknown", "no_alternatives"
    if not parting.are_both_top or parting.movement is None:
        return "unknown", _explain_lower_choice(pair)
    if parting.movement > noise.near:
        return larger
    if pair.is_sampled:
        return "unknown", "one_seed" if pair.is_one_draw else "sampled"
    return ("near_tie", None) if parting.are_top_two_equal or parting.are_both_listed else ("unknown", "not_listed")


def _explain_lower_choice(pair: Pair) -> str:
    """Return why a token was chosen that was not the most likely one.

    An unknown temperature does not prove sampling.
    """
    if pair.is_one_draw:
        return "one_seed"
    is_unknown = not pair.is_sampled and None in (pair.baseline.temperature, pair.candidate.temperature)
    return "unknown_temperature" if is_unknown else "drawn"


def _look(code: str, numbers: CauseFacts) -> str | None:
    if code in LOOKS:
        return code
    is_larger = numbers["ratio"] is not None and numbers["ratio"] > numbers["threshold"]
    return "larger_shift" if code == "drift_only" and is_larger else None
