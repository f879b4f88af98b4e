"""What the trace diff page found, in words."""

from evalboard.core import fingerprint_words
from evalboard.core.cause import Cause, Evidence
from frontend.findings import Finding
from frontend.pair_chart import near_of
from frontend.templatetags.numbers import nats
from runs.selectors.trace_pair import PairReport, Point

DIGEST_LENGTHS = (32, 64)


def of_chart(report: PairReport) -> Finding:
    """The caption of margins and gaps: where the margin was as small as what moves it."""
    return Finding(_margin_claim(report), _gap_words(report.points, report.onset))


def _margin_claim(report: PairReport) -> str:
    near, narrowest = near_of(report), _narrowest(report.points)
    if not report.has_flip:
        if narrowest is None:
            return "No margin is known."
        return f"The closest choice was at {narrowest.key}, by {nats(_margin(narrowest))} nats."
    at = report.parts_at
    flip = next((point for point in report.points if point.key == at), None)
    margin = None if flip is None else _margin(flip)
    if margin is None:
        return f"At the flip, {at}, no margin is known."
    if near is None:
        return f"At the flip, {at}, the margin was {nats(margin)} nats."
    if margin > near:
        return f"At the flip, {at}, the margin was {nats(margin)} nats, more than noise explains ({nats(near)})."
    n_before = sum(_is_within(point, near) for point in report.points if point.key != at)
    if not n_before:
        return f"The margin met the noise at {at} and nowhere before."
    return f"The margin met the noise at {at}, and at {n_before} position{'s' if n_before > 1 else ''} before."


def _gap_words(points: tuple[Point, ...], onset: int | None) -> str:
    if onset is None:
        return "Up to there no logprob differs."
    gaps = [point.gap for point in points if point.gap and point.key >= onset]
    if not gaps:
        return f"From {onset} on the logprobs differ."
    low, high = f"{min(gaps):.2g}", f"{max(gaps):.2g}"
    size = f"by {low} nats" if low == high else f"by {low} to {high} nats"
    return f"From {onset} on the logprobs of the two traces differ {size}."


def _margin(point: Point) -> float | None:
    known = [margin for margin in (point.margin_baseline, point.margin_candidate) if margin is not None]
    return min(known, default=None)


def _narrowest(points: tuple[Point, ...]) -> Point | None:
    known = [(margin, point.key, point) for point in points if (margin := _margin(point)) is not None]
    return min(known, default=(0.0, 0, None), key=lambda found: found[:2])[2]


def _is_within(point: Point, near: float) -> bool:
    margin = _margin(point)
    return margin is not None and margin <= near


def settings_moved(report: PairReport) -> tuple[tuple[str, str, str], ...]:
    """Name and both values of each field of the fingerprint that differs."""
    return tuple((fingerprint_words.name(each.field), *fingerprint_words.sides(each)) for each in report.moved)


def evidence(cause: Cause) -> tuple[tuple[str, str], ...]:
    """What a cause rests on, name and words, those numbers first that decided it."""
    found = cause.evidence
    lines = [(name, say(found)) for name, say in NUMBERS.items()]
    lines += [(_plain(name), _value(found[name])) for name in found if name not in SAID_ABOVE]
    return tuple((name, words) for name, words in lines if words)


def _movement(found: Evidence) -> str:
    if found.get("movement") is None or found.get("near") is None:
        return ""
    sign = "≤" if found["movement"] <= found["near"] else ">"
    ulps = f", {found['ulps']:.3g} steps of the logits" if found.get("ulps") is not None else ""
    return f"{_nats(found['movement'])} {sign} {_nats(found['near'])}, the most that noise explains at a flip{ulps}"


def _shift(found: Evidence) -> str:
    if found.get("ratio") is None:
        return "too few positions to say" if found.get("is_low_confidence") else ""
    sign = "≤" if found["ratio"] <= found["threshold"] else ">"
    return f"{found['ratio']:.2f} {sign} {found['threshold']:.2f} times the noise, over {found['n_usable']} positions"


def _margins(found: Evidence) -> str:
    one, other = found.get("margin_baseline"), found.get("margin_candidate")
    return "" if one is None or other is None else f"{_nats(one)} on the baseline, {_nats(other)} on the candidate"


def _noise(found: Evidence) -> str:
    if found.get("sd") is None:
        return ""
    how = f"assumed for {found['assumed_dtype']}: no repeat has measured it" if found["is_assumed"] else "measured"
    return f"{_nats(found['sd'])}, {how}"


def _nats(value: float) -> str:
    return f"{value:.3g} nats" if 0 < abs(value) < 0.01 else f"{nats(value)} nats"


def _plain(name: str) -> str:
    return name.removeprefix("n_").replace("_", " ")


def _value(value: object) -> str:
    """A fact in words, "" for what is not known or says nothing."""
    if value is None or value is False:
        return ""
    if value is True:
        return "yes"
    if isinstance(value, float):
        return f"{value:.3g}"
    text = str(value)
    return text[:8] if len(text) in DIGEST_LENGTHS else text


NUMBERS = {"movement": _movement, "shift": _shift, "margins at the flip": _margins, "noise": _noise}
SAID_ABOVE = {"movement", "near", "ulp", "ulps", "sd", "is_assumed", "assumed_dtype", "shift_rms", "ratio", "threshold"}
SAID_ABOVE |= {
    "n_usable",
    "buckets",
    "margin_baseline",
    "margin_candidate",
    "is_low_confidence",
    "flip",
    "drift_onset",
    "reason",
}
