"""A comparison of which several buckets served a side: each bucket's score in a line, and no equation."""

from dataclasses import dataclass

from evalboard.contract.bucket import Bucket
from evalboard.contract.comparison import SIDES, Comparison
from runs.run import bucket_reports


@dataclass(frozen=True, slots=True)
class MixedLine:
    """One bucket of one side. score: the mean of its repeats in points, None where none is scored."""

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
            mean = sum(scores) / len(scores) if scores else None
            reach = (min(scores), max(scores)) if scores else None
            lines.append(MixedLine(side, compared.run, named.backend, bucket, mean, reach))
    return tuple(lines)
