"""The texts of the trace diff page."""

from evalboard.contract.pair import MarginPoint, TracePair
from evalboard.core.compare import CauseFacts
from evalboard.wording import numbers
from evalboard.wording.cause import NO_NOISE
from frontend.compare.pair_chart import near_of
from frontend.shell.findings import Headline
from frontend.templatetags.numbers import nats

DIGEST_LENGTHS = (32, 64)


def describe_chart(pair: TracePair) -> Headline:
    """Return the caption of margins and gaps: where the margin was as small as what moves it."""
    thinned = ""
    if len(pair.points) < pair.n_points:
        thinned = " The chart shows the narrowest margin and the widest gap of every stretch."
    return Headline(_margin_claim(pair), _gap_words(pair) + thinned)


def _margin_claim(pair: TracePair) -> str:
    near, narrowest = near_of(pair), _narrowest(pair.points)
    if not pair.has_flip:
        if narrowest is None:
            return "No margin is known."
        return f"The closest choice was at {narrowest.at}, by {nats(narrowest.margin)} nats."
    at = pair.parts_at
    flip = next((point for point in pair.points if point.at == at), None)
    margin = None if flip is None else flip.margin
    if margin is None:
        return f"At the flip, {at}, no margin is known."
    if near is None:
        return f"At the flip, {at}, the margin was {nats(margin)} nats."
    if margin > near:
        return f"At the flip, {at}, the margin was {nats(margin)} nats, more than noise explains ({nats(near)})."
    n_before = pair.n_within_noise
    if not n_before:
        return f"The margin met the noise at {at} and nowhere before."
    return f"The margin met the noise at {at}, and at {n_before:,} position{'s' if n_before > 1 else ''} before."


def _gap_words(pair: TracePair) -> str:
    onset = pair.drift_onset
    if onset is None:
        return "Up to there no logprob differs."
    if pair.gap_range is None:
        return f"From {onset} on the logprobs differ."
    low, high = (f"{gap:.2g}" for gap in pair.gap_range)
    size = f"by {low} nats" if low == high else f"by {low} to {high} nats"
    return f"From {onset} on the logprobs of the two traces differ {size}."


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
