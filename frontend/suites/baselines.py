"""A suite's baselines: their periods in the history, the runs they judge, and replacements."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalboard.contract.baseline import Baseline, RotationSeen
from evalboard.contract.suite import BucketHistory, HistoryRow
from evalboard.core.profile import UNKNOWN_STACK
from runs.suites import SuiteReport, SuiteStanding

ELIGIBLE_SHOWN = 50
# Places in the sprite: open is a baseline, a cross what expired, the others are judged.
OPEN_SHAPES, EXPIRED_SHAPES, JUDGED_SHAPES = (1, 4), (2,), (0, 3, 5)


@dataclass(frozen=True, slots=True)
class BaselinePeriod:
    """A baseline while it counts: `mean` ± `noise` points, noise None where it is unmeasured.

    From the rotation `begin` (None: from the first run on) to the rotation `end` that made it expire.
    """

    baseline: Baseline
    bucket: BucketHistory
    mean: float
    noise: float | None
    begin: RotationSeen | None
    end: RotationSeen | None

    @property
    def is_expired(self) -> bool:
        return self.baseline.is_expired

    @property
    def low(self) -> float:
        return self.mean - (self.noise or 0.0)

    @property
    def high(self) -> float:
        return self.mean + (self.noise or 0.0)


@dataclass(frozen=True, slots=True)
class BaselineLine:
    """A model line's current baseline under a profile, earlier ones, newest first, and newer runs.

    `fresh`: the newest run of the same line and profile on the present stack, if the current one has expired.
    """

    current: Baseline
    earlier: tuple[Baseline, ...]
    fresh: HistoryRow | None


def rotations(buckets: Sequence[BucketHistory], standing: SuiteStanding | None = None) -> tuple[RotationSeen, ...]:
    """List rotations by date: recorded ones, and older ones that only this suite's runs show."""
    noted = standing.rotations if standing else ()
    turns = list(noted)
    for turn, previous, point in _seen(buckets):
        if not any(
            row.is_of(endpoint=point.endpoint, profile=point.profile)
            and has_come(row, by=point)
            and not has_come(row, by=previous)
            for row in noted
        ):
            turns.append(turn)
    return tuple(sorted(turns, key=lambda turn: (turn.at, turn.run_id or 0)))


def has_come(turn: RotationSeen, *, by: HistoryRow) -> bool:
    """Tell whether a rotation had happened by a run, or is shown by it."""
    return turn.at <= by.date if turn.run_id is None else turn.run_id <= by.run_id


def _seen(buckets: Sequence[BucketHistory]) -> list[tuple[RotationSeen, HistoryRow, HistoryRow]]:
    """Return changes of fingerprint between charted runs of one place, with both runs. Logs have none.

    A server that names nothing has a stack for each run, and whether it changed is unknown.
    """
    by_place: dict[tuple[str, str], list[HistoryRow]] = {}
    for bucket in buckets:
        for point in bucket.runs:
            if point.n_buckets == 1 and not point.is_imported:
                place = (point.endpoint, point.profile)
                by_place.setdefault(place, []).append(point)
    served = []
    for (endpoint, profile), rows in by_place.items():
        rows.sort(key=lambda row: (row.date, row.run_id))
        for earlier, row in itertools.pairwise(rows):
            before, after = earlier.bucket.stack, row.bucket.stack
            if before != after and UNKNOWN_STACK not in (before.label, after.label):
                turn = RotationSeen(
                    at=row.date, endpoint=endpoint, profile=profile, run=row.run, before=before, after=after
                )
                served.append((turn, earlier, row))
    return served


def bands(buckets: Sequence[BucketHistory], standing: SuiteStanding) -> tuple[BaselinePeriod, ...]:
    """Return the current baselines, and the last expired one before each rotation; oldest first.

    One whose run is not charted, being of another suite version or without a score, has no band.
    """
    turns = rotations(buckets, standing)
    where = {point.run_id: (bucket, point) for bucket in buckets for point in bucket.runs}
    zones, drawn = [], set()
    for row in standing.baselines:
        key = (row.line, row.profile, row.expired.id if row.expired else None)
        bucket, point = where.get(row.run_id, (None, None))
        if key in drawn or not (row.is_current or row.is_expired) or bucket is None or point is None:
            continue
        drawn.add(key)
        if point.mean is not None:
            zones.append(_band(row, bucket, point, turns, standing))
    return tuple(sorted(zones, key=lambda band: band.baseline.run_id))


def _band(
    row: Baseline, bucket: BucketHistory, point: HistoryRow, turns: Sequence[RotationSeen], standing: SuiteStanding
) -> BaselinePeriod:
    here = [turn for turn in turns if turn.is_of(endpoint=point.endpoint, profile=row.profile)]
    before = [turn for turn in here if has_come(turn, by=point)]
    shown_by = (row.expired.run, row.expired.probe) if row.expired else None
    end = next((turn for turn in here if (turn.run, turn.probe) == shown_by), None)
    measured = standing.noise.get(bucket.bucket_id)
    return BaselinePeriod(
        baseline=row,
        bucket=bucket,
        mean=math.fsum(point.points) / len(point.points),
        noise=measured.noise_points if measured else None,
        begin=before[-1] if before else None,
        end=end,
    )


def find_band(zones: Sequence[BaselinePeriod], point: HistoryRow, bucket: BucketHistory) -> BaselinePeriod | None:
    """Return the baseline that a run may be compared with: equal line, profile and stack."""
    alike = [
        band
        for band in zones
        if (band.baseline.line, band.baseline.profile) == (point.line, point.profile)
        and is_served_alike(band.bucket, bucket)
    ]
    return next((band for band in alike if not band.is_expired), alike[-1] if alike else None)


def is_served_alike(one: BucketHistory, other: BucketHistory) -> bool:
    """Return whether two buckets differ in nothing but the model; an unknown fingerprint is like no other."""
    if one.bucket_id == other.bucket_id:
        return True
    served = (one.fingerprint, one.batch_class)
    return bool(one.fingerprint) and served == (other.fingerprint, other.batch_class)


def choose_shapes(buckets: Sequence[BucketHistory], standing: SuiteStanding) -> dict[int, int]:
    """Return bucket id → mark: ring for a current baseline, cross for expired, dot or square else."""
    current = {row.bucket_id for row in standing.baselines if row.is_current and not row.is_expired}
    expired = {row.bucket_id for row in standing.baselines if row.is_expired} - current
    newest_first = sorted(buckets, key=lambda bucket: bucket.runs[-1].run_id, reverse=True)
    shapes: dict[int, int] = {}
    for bucket in newest_first:
        own = _kin(bucket.bucket_id, current, expired)
        free = [
            shape for shape in (*own, *JUDGED_SHAPES, *OPEN_SHAPES, *EXPIRED_SHAPES) if shape not in shapes.values()
        ]
        shapes[bucket.bucket_id] = free[0] if free else own[len(shapes) % len(own)]
    return shapes


def _kin(bucket_id: int, current: set[int | None], expired: set[int | None]) -> tuple[int, ...]:
    if bucket_id in current:
        return OPEN_SHAPES
    return EXPIRED_SHAPES if bucket_id in expired else JUDGED_SHAPES


def list_eligible(report: SuiteReport, standing: SuiteStanding) -> tuple[HistoryRow, ...]:
    """Return runs that may become a baseline, newest first: whole, one bucket, present stack."""
    newest_first = rotations(report.buckets, standing)[::-1]
    points = []
    for bucket in report.buckets:
        for point in bucket.runs:
            turn = next(
                (each for each in newest_first if each.is_of(endpoint=point.endpoint, profile=point.profile)), None
            )
            is_served_as_today = turn is None or turn.after.digest == bucket.fingerprint
            if point.mean is not None and is_served_as_today:
                points.append(point)
    return tuple(sorted(points, key=lambda point: point.run_id, reverse=True)[:ELIGIBLE_SHOWN])


def group_baselines(standing: SuiteStanding, may_be_set: tuple[HistoryRow, ...]) -> tuple[BaselineLine, ...]:
    """Group baselines by model line and profile, expired ones first, since they need action."""
    rows = sorted(standing.baselines, key=lambda row: (row.line, row.profile, -int(row.id)))
    blocks = []
    for _, group in itertools.groupby(rows, key=lambda row: (row.line, row.profile)):
        current, *earlier = group
        blocks.append(BaselineLine(current, tuple(earlier), _fresh(current, may_be_set)))
    return tuple(sorted(blocks, key=lambda line: not line.current.is_expired))


def _fresh(current: Baseline, may_be_set: tuple[HistoryRow, ...]) -> HistoryRow | None:
    if not current.is_expired:
        return None
    alike = (point for point in may_be_set if (point.line, point.profile) == (current.line, current.profile))
    return next((point for point in alike if point.endpoint == current.run.endpoint), None)
