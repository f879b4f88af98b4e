"""A comparison with a side of several buckets: each bucket's score in a line, without an equation."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalboard.contract.bucket import Bucket
from evalboard.contract.compare import SIDES, Comparison
from evalboard.wording.run import without_odd_ones
from frontend.templatetags.numbers import share
from runs.run import bucket_reports


@dataclass(frozen=True, slots=True)
class MixedLine:
    """One bucket of one side. score: its own in points, None where none is scored."""

    side: str
    run: str
    letter: str
    bucket: Bucket
    score: float | None
    reach: tuple[float, float] | None


def mixed_lines(report: Comparison) -> tuple[MixedLine, ...]:
    """Return a line for each bucket of either side; nothing where one bucket served each."""
    if not report.mixed_sides:
        return ()
    reports = bucket_reports(set(report.run_ids))
    lines = []
    for side in SIDES:
        compared = getattr(report.sides, side)
        known = {bucket.id: bucket for bucket in reports[int(compared.run)]}
        for named in compared.buckets:
            bucket = known[named.id]
            scores = [line.score for line in bucket.repeats if line.score is not None]
            reach = (min(scores), max(scores)) if scores else None
            lines.append(MixedLine(side, compared.run, named.backend, bucket, bucket.score, reach))
    return tuple(lines)


def describe_odd_ones(lines: Sequence[MixedLine]) -> tuple[str, ...]:
    """Say for each side of several buckets what it scores without the smaller ones."""
    sides = {side: [line for line in lines if line.side == side] for side in SIDES}
    return tuple(f"The {side} scored {words}" for side, theirs in sides.items() if (words := _without_odd_ones(theirs)))


def _without_odd_ones(lines: Sequence[MixedLine]) -> str:
    if not lines:
        return ""
    first, *others = sorted(lines, key=lambda line: -line.bucket.share)
    odd = [(share(line.bucket.share), f"backend {line.letter}") for line in others]
    return without_odd_ones(first.score, odd)
