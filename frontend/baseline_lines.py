"""Baselines as the suite's page lists them: one block for each model line and profile, and what may replace them."""

from dataclasses import dataclass
from itertools import groupby

from frontend.baseline_bands import rotations
from runs.selectors.baseline import BaselineRow
from runs.selectors.suite import HistoryPoint, SuiteReport
from runs.selectors.suite_standing import SuiteStanding

ELIGIBLE_SHOWN = 50


@dataclass(frozen=True, slots=True)
class BaselineLine:
    """The current baseline of a model line under a profile, those before it, newest first, and what ran since.

    `fresh`: the newest run of the same line and profile that today's stack served, where the current one has expired.
    """

    current: BaselineRow
    earlier: tuple[BaselineRow, ...]
    fresh: HistoryPoint | None


def eligible(report: SuiteReport, standing: SuiteStanding) -> tuple[HistoryPoint, ...]:
    """Runs of this version that may become a baseline, newest first: whole, of one bucket, served as today."""
    newest = {(turn.endpoint, turn.profile): turn for turn in rotations(report.buckets, standing)}
    found = []
    for bucket in report.buckets:
        for point in bucket.points:
            turn = newest.get((point.endpoint, point.profile_slug))
            is_served_as_today = turn is None or turn.after == bucket.fingerprint_digest
            if point.mean is not None and is_served_as_today:
                found.append(point)
    return tuple(sorted(found, key=lambda point: point.run_id, reverse=True)[:ELIGIBLE_SHOWN])


def lines(standing: SuiteStanding, may_be_set: tuple[HistoryPoint, ...]) -> tuple[BaselineLine, ...]:
    """By model line and profile; those that expired first, since somebody has to act on them."""
    rows = sorted(standing.baselines, key=lambda row: (row.line, row.profile, -row.id))
    found = []
    for _, group in groupby(rows, key=lambda row: (row.line, row.profile)):
        current, *earlier = group
        found.append(BaselineLine(current, tuple(earlier), _fresh(current, may_be_set)))
    return tuple(sorted(found, key=lambda line: not line.current.is_expired))


def _fresh(current: BaselineRow, may_be_set: tuple[HistoryPoint, ...]) -> HistoryPoint | None:
    if not current.is_expired:
        return None
    alike = (point for point in may_be_set if (point.line, point.profile_slug) == (current.line, current.profile))
    return next((point for point in alike if point.endpoint == current.run.endpoint), None)
