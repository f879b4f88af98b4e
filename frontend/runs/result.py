"""Charts of a run's result: its repeats on the suite's scale, per bucket if there are several."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalboard.contract.baseline import Baseline
from evalboard.contract.bucket import Bucket
from evalboard.contract.run import Run
from evalboard.wording.numbers import counted
from frontend.shell import charts
from frontend.templatetags.numbers import mean, points, share, span

MIN_CASES_WIDE = 4  # cases' worth of points that a scale shows at least
MIN_SHARE = 4.0  # percent; a backend that answered anything can be seen


@dataclass(frozen=True, slots=True)
class BaselineBand:
    """The current baseline's range behind a run's repeats. label_x: percent, in the middle of it."""

    run: str
    x: float
    width: float
    label: str
    label_x: float
    anchor: str
    is_expired: bool


@dataclass(frozen=True, slots=True)
class Result:
    """One bucket's repeats. score: their mean, "" if one is missing. sentence: what they show."""

    score: str
    ruler: charts.Ruler
    band: BaselineBand | None
    sentence: str


@dataclass(frozen=True, slots=True)
class BackendPart:
    """One bucket of several in a run. x, width: percent of all responses; tone: its ink."""

    letter: str
    bucket: Bucket
    x: float
    width: float
    tone: int
    scored: str
    reach: str
    ruler: charts.Ruler | None


def draw_result(run: Run, baseline: Baseline | None) -> Result | None:
    """Draw a run of one bucket; None if no repeat is scored, or for several buckets."""
    scored = [value for value in run.drawn_points if value is not None]
    if not scored or run.n_buckets > 1:
        return None
    against = None if baseline is None else baseline.run.range
    ends = [*scored, *(against or ())]
    scale = charts.scale_for(ends, least=MIN_CASES_WIDE * run.points_per_case)
    average = mean(run.drawn_points) if run.status == "finished" else None
    return Result(
        score="" if average is None else points(average),
        ruler=charts.ruler(run.drawn_points, scale),
        band=None if baseline is None or against is None else _band(baseline, against, scale),
        sentence=describe_repeats(run),
    )


def _band(baseline: Baseline, against: tuple[float, float], scale: charts.Scale) -> BaselineBand:
    drawn = charts.ruler_band(*against, scale, is_expired=baseline.is_expired)
    middle = drawn.x + drawn.width / 2
    anchor = "start" if middle < 25 else "end" if middle > 75 else "middle"
    x = {"start": drawn.x, "middle": middle, "end": drawn.x + drawn.width}[anchor]
    label = f"baseline, run {baseline.run.id}: {span(against)}"
    return BaselineBand(baseline.run.id, drawn.x, drawn.width, label, round(x, 3), anchor, drawn.is_expired)


def describe_repeats(run: Run) -> str:
    """Give the score's interval and what the repeats can detect."""
    noise = run.noise
    parts = ["Each dot is a repeat."]
    if noise.interval is not None and noise.level is not None:
        low, high = (points(end) for end in noise.interval)
        parts.append(f"On these cases [{low}, {high}] at {share(noise.level)}.")
    if noise.resolution is not None:
        repeats = counted(noise.resolution.repeats, "repeat")
        parts.append(f"{repeats} detect changes of {points(noise.resolution.points)} points or more.")
    return " ".join(parts)


def draw_backends(run: Run) -> tuple[BackendPart, ...]:
    """Draw each bucket of a run of several, largest first; all rulers share a scale."""
    if run.n_buckets < 2:
        return ()
    ordered = sorted(run.buckets, key=lambda bucket: (-bucket.share, int(bucket.id)))
    known = [value for bucket in ordered for value in _scores(bucket)]
    scale = charts.scale_for(known, least=MIN_CASES_WIDE * run.points_per_case)
    widths = _widths([bucket.share for bucket in ordered])
    parts, x = [], 0.0
    for place, (bucket, width) in enumerate(zip(ordered, widths, strict=True)):
        scores = _scores(bucket)
        parts.append(
            BackendPart(
                letter=bucket.backend,
                bucket=bucket,
                x=round(x, 3),
                width=round(width - (0.4 if place < len(ordered) - 1 else 0), 3),
                tone=place % charts.N_SHAPES,
                scored="" if bucket.score is None else points(bucket.score),
                reach=span((min(scores), max(scores))) if scores else "",
                ruler=charts.ruler([line.score for line in bucket.repeats], scale, is_small=True) if scores else None,
            )
        )
        x += width
    return tuple(parts)


def draw_axis(backends: tuple[BackendPart, ...], run: Run) -> tuple[charts.Tick, ...]:
    """Return the ticks of the scale that the rulers of a run's backends share."""
    known = [value for part in backends for value in _scores(part.bucket)]
    return charts.scale_for(known, least=MIN_CASES_WIDE * run.points_per_case).ticks() if known else ()


def _scores(bucket: Bucket) -> list[float]:
    return [line.score for line in bucket.repeats if line.score is not None]


def _widths(shares: Sequence[float]) -> list[float]:
    """Return widths in percent that add up to 100; none is too narrow to be seen."""
    wanted = [max(100 * part, MIN_SHARE) for part in shares]
    return [100 * width / sum(wanted) for width in wanted]
