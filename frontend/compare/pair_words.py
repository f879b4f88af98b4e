"""The texts of the trace diff page."""

from evalboard.contract.pair import MarginPoint, TracePair
from evalboard.core.compare import CauseFacts
from evalboard.wording import numbers
from evalboard.wording.cause import NO_NOISE
from evalboard.wording.messages import Claim, Messages, speak
from frontend.compare.pair_chart import near_of
from frontend.shell.findings import Headline
from frontend.templatetags.numbers import nats

DIGEST_LENGTHS = (32, 64)
SAID = Messages(
    "pair_chart",
    {
        ("margin", "unknown"): {
            "no_margin": "No margin is known.",
            "no_flip_margin": "At the flip, {at}, no margin is known.",
        },
        ("margin", "asserts"): {
            "closest": "The closest choice was at {at}, by {margin} nats.",
            "flip_margin": "At the flip, {at}, the margin was {margin} nats.",
            "beyond_noise": "At the flip, {at}, the margin was {margin} nats, more than noise explains ({near}).",
            "met_noise": "The margin met the noise at {at} and nowhere before.",
            "met_noise_before": "The margin met the noise at {at}, and at {n:position} before.",
        },
        ("gap", "denies"): {"no_gap": "Up to there no logprob differs."},
        ("gap", "asserts"): {
            "gap_unmeasured": "From {onset} on, the logprobs differ.",
            "gap": "From {onset} on, the logprobs of the two traces differ by {low} nats.",
            "gaps": "From {onset} on, the logprobs of the two traces differ by {low} to {high} nats.",
        },
        ("chart", "asserts"): {
            "thinned": "The chart shows the narrowest margin and the widest gap of every stretch.",
        },
    },
)


def describe_chart(pair: TracePair) -> Headline:
    """Return the caption of margins and gaps: where the margin was as small as what moves it."""
    margin, gap = _claim_margin(pair), _claim_gap(pair)
    is_thinned = len(pair.points) < pair.n_points
    return Headline(speak([margin]), speak([gap, SAID.claim("thinned")] if is_thinned else [gap]))


def _claim_margin(pair: TracePair) -> Claim:
    near, narrowest, at = near_of(pair), _narrowest(pair.points), pair.parts_at
    if not pair.has_flip:
        if narrowest is None:
            return SAID.claim("no_margin")
        return SAID.claim("closest", at=narrowest.at, margin=nats(narrowest.margin))
    margin = next((point.margin for point in pair.points if point.at == at), None)
    facts = {"at": at, "margin": nats(margin), "near": nats(near), "n": pair.n_within_noise}
    if margin is None:
        return SAID.claim("no_flip_margin", facts)
    if near is None:
        return SAID.claim("flip_margin", facts)
    if margin > near:
        return SAID.claim("beyond_noise", facts)
    return SAID.claim("met_noise_before" if pair.n_within_noise else "met_noise", facts)


def _claim_gap(pair: TracePair) -> Claim:
    onset = pair.drift_onset
    if onset is None:
        return SAID.claim("no_gap")
    if pair.gap_range is None:
        return SAID.claim("gap_unmeasured", onset=onset)
    low, high = (f"{gap:.2g}" for gap in pair.gap_range)
    return SAID.claim("gap" if low == high else "gaps", onset=onset, low=low, high=high)


def _narrowest(points: tuple[MarginPoint, ...]) -> MarginPoint | None:
    known = [(point.margin, point.at, point) for point in points if point.margin is not None]
    return min(known, default=(0.0, 0, None), key=lambda each: each[:2])[2]


def list_evidence(facts: CauseFacts) -> tuple[tuple[str, str], ...]:
    """Return a cause's evidence as (name, text), the deciding numbers first."""
    lines = [(name, say(facts)) for name, say in NUMBERS.items()]
    lines += [
        (name.removeprefix("n_").replace("_", " "), _value(facts[name])) for name in facts if name not in SAID_ABOVE
    ]
    return tuple((name, words) for name, words in lines if words)


def _movement(facts: CauseFacts) -> str:
    if facts.get("movement") is None or facts.get("near") is None:
        return ""
    sign = "≤" if facts["movement"] <= facts["near"] else ">"
    ulps = f", {facts['ulps']:.3g} steps of the logits" if facts.get("ulps") is not None else ""
    moved, near = numbers.nats(facts["movement"]), numbers.nats(facts["near"])
    return f"{moved} {sign} {near}, the most that noise explains at a flip{ulps}"


def _shift(facts: CauseFacts) -> str:
    if facts.get("ratio") is None:
        return "too few positions to say" if facts.get("is_low_confidence") else ""
    sign = "≤" if facts["ratio"] <= facts["threshold"] else ">"
    ratio, threshold = (numbers.fixed(facts[name], 2) for name in ("ratio", "threshold"))
    return f"{ratio} {sign} {threshold} times the noise, over {facts['n_usable']} positions"


def _largest(facts: CauseFacts) -> str:
    if facts.get("shift_max") is None:
        return ""
    return f"{numbers.nats(facts['shift_max'])}, at position {facts['shift_max_at']}"


def _margins(facts: CauseFacts) -> str:
    one, other = facts.get("margin_baseline"), facts.get("margin_candidate")
    return (
        ""
        if one is None or other is None
        else f"{numbers.nats(one)} on the baseline, {numbers.nats(other)} on the candidate"
    )


def _noise(facts: CauseFacts) -> str:
    if facts.get("sd") is None:
        return ""
    if facts["sd"] == 0:
        return NO_NOISE
    how = f"assumed for {facts['assumed_dtype']}: no repeat has measured it" if facts["is_assumed"] else "measured"
    if facts.get("capped_from") is not None:
        how = f"the most that counts of a measured {numbers.nats(facts['capped_from'])}"
    return f"{numbers.nats(facts['sd'])}, {how}"


def _value(value: object) -> str:
    """Return a fact as text, "" if it is unknown or means nothing."""
    if value is None or value is False:
        return ""
    if value is True:
        return "yes"
    if isinstance(value, float):
        return f"{value:.3g}"
    text = str(value)
    return text[:8] if len(text) in DIGEST_LENGTHS else text


NUMBERS = {
    "movement": _movement,
    "shift": _shift,
    "largest shift": _largest,
    "margins at the flip": _margins,
    "noise": _noise,
}
SAID_ABOVE = {
    "movement",
    "near",
    "ulp",
    "ulps",
    "sd",
    "is_assumed",
    "assumed_dtype",
    "capped_from",
    "shift_rms",
    "ratio",
    "threshold",
}
SAID_ABOVE |= {"shift_max", "shift_max_at"}
SAID_ABOVE |= {
    "n_usable",
    "margin_baseline",
    "margin_candidate",
    "is_low_confidence",
    "flip",
    "drift_onset",
    "reason",
    "also_moved",
    "in_reasoning_at",
    "n_reasoning_tokens_baseline",
    "n_reasoning_tokens_candidate",
}
