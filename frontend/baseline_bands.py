"""Rotations and baselines of a suite's history: where each begins and ends, and which runs are held against which."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from runs.selectors.baseline import BaselineRow
from runs.selectors.suite_history import BucketHistory, HistoryPoint
from runs.selectors.suite_standing import SuiteStanding

# Places in the sprite: open is a baseline, a cross what expired, the others are judged.
OPEN_SHAPES, EXPIRED_SHAPES, JUDGED_SHAPES = (1, 4), (2,), (0, 3, 5)


@dataclass(frozen=True, slots=True)
class Rotation:
    """On one (endpoint, profile), a fingerprint other than the previous run's."""

    at: datetime
    endpoint: str
    profile: str
    before: str
    after: str
    run_id: int


@dataclass(frozen=True, slots=True)
class Band:
    """A baseline while it counts: `mean` ± `noise` points, noise None where it is unmeasured.

    From the rotation `begin` (None: from the first run on) to the rotation `end` that made it expire.
    """

    baseline: BaselineRow
    bucket: BucketHistory
    mean: float
    noise: float | None
    begin: Rotation | None
    end: Rotation | None

    @property
    def is_expired(self) -> bool:
        return self.baseline.is_expired

    @property
    def low(self) -> float:
        return self.mean - (self.noise or 0.0)

    @property
    def high(self) -> float:
        return self.mean + (self.noise or 0.0)


def rotations(buckets: Sequence[BucketHistory], standing: SuiteStanding | None = None) -> tuple[Rotation, ...]:
    """By date: those that were noticed, and those that only the runs of this suite show, from before any was noted."""
    noted = standing.rotations if standing else ()
    found = [
        Rotation(row.at, row.endpoint, row.profile, row.before_digest, row.after_digest, row.run_id) for row in noted
    ]
    for turn, previous in _seen(buckets):
        is_noted = any(
            (row.endpoint, row.profile) == (turn.endpoint, turn.profile) and previous < row.run_id <= turn.run_id
            for row in noted
        )
        if not is_noted:
            found.append(turn)
    return tuple(sorted(found, key=lambda turn: (turn.at, turn.run_id)))


def _seen(buckets: Sequence[BucketHistory]) -> list[tuple[Rotation, int]]:
    """Where the charted runs of one place change their fingerprint, with the run before. Logs note no rotations."""
    by_place: dict[tuple[str, str], list[tuple[HistoryPoint, str]]] = {}
    for bucket in buckets:
        for point in bucket.points:
            if point.n_buckets == 1 and not point.is_imported:
                place = (point.endpoint, point.profile_slug or point.profile)
                by_place.setdefault(place, []).append((point, bucket.fingerprint_digest))
    found = []
    for (endpoint, profile), rows in by_place.items():
        rows.sort(key=lambda row: (row[0].at, row[0].run_id))
        for (earlier, before), (point, after) in itertools.pairwise(rows):
            if before != after:
                turn = Rotation(point.at, endpoint, profile, before, after, point.run_id)
                found.append((turn, earlier.run_id))
    return found


def bands(buckets: Sequence[BucketHistory], standing: SuiteStanding) -> tuple[Band, ...]:
    """The current baselines and, of those that expired, the last before each rotation; oldest first.

    One whose run is not charted, being of another suite version or without a score, has no band.
    """
    turns = rotations(buckets, standing)
    where = {point.run_id: (bucket, point) for bucket in buckets for point in bucket.points}
    found, drawn = [], set()
    for row in standing.baselines:
        key = (row.line, row.profile, row.rotation.id if row.rotation else None)
        bucket, point = where.get(row.run.id, (None, None))
        if key in drawn or not (row.is_current or row.is_expired) or bucket is None or point is None:
            continue
        drawn.add(key)
        if point.mean is not None:
            found.append(_band(row, bucket, point, turns, standing))
    return tuple(sorted(found, key=lambda band: band.baseline.run.id))


def _band(
    row: BaselineRow, bucket: BucketHistory, point: HistoryPoint, turns: Sequence[Rotation], standing: SuiteStanding
) -> Band:
    place = (point.endpoint, row.profile)
    here = [turn for turn in turns if (turn.endpoint, turn.profile) == place]
    before = [turn for turn in here if turn.run_id <= point.run_id]
    end = next((turn for turn in here if row.rotation is not None and turn.run_id == row.rotation.run_id), None)
    measured = standing.noise.get(bucket.bucket_id)
    return Band(
        baseline=row,
        bucket=bucket,
        mean=math.fsum(point.points) / len(point.points),
        noise=measured.noise_points if measured else None,
        begin=before[-1] if before else None,
        end=end,
    )


def band_of(found: Sequence[Band], point: HistoryPoint, bucket: BucketHistory) -> Band | None:
    """The baseline that a run may be held against: of its line and profile, and served alike."""
    alike = [
        band
        for band in found
        if (band.baseline.line, band.baseline.profile) == (point.line, point.profile_slug)
        and is_served_alike(band.bucket, bucket)
    ]
    return next((band for band in alike if not band.is_expired), alike[-1] if alike else None)


def is_served_alike(one: BucketHistory, other: BucketHistory) -> bool:
    """Whether two buckets differ in nothing but the model; an unknown fingerprint is like no other."""
    if one.bucket_id == other.bucket_id:
        return True
    served = (one.fingerprint_digest, one.batch_class)
    return bool(one.fingerprint_digest) and served == (other.fingerprint_digest, other.batch_class)


def shapes_of(buckets: Sequence[BucketHistory], standing: SuiteStanding) -> dict[int, int]:
    """bucket id → its mark: a ring for a current baseline, a cross for what expired, dot and square for the others."""
    current = {row.run.bucket_id for row in standing.baselines if row.is_current and not row.is_expired}
    expired = {row.run.bucket_id for row in standing.baselines if row.is_expired} - current
    newest_first = sorted(buckets, key=lambda bucket: bucket.points[-1].run_id, reverse=True)
    found: dict[int, int] = {}
    for bucket in newest_first:
        own = _kin(bucket.bucket_id, current, expired)
        free = [shape for shape in (*own, *JUDGED_SHAPES, *OPEN_SHAPES, *EXPIRED_SHAPES) if shape not in found.values()]
        found[bucket.bucket_id] = free[0] if free else own[len(found) % len(own)]
    return found


def _kin(bucket_id: int, current: set[int | None], expired: set[int | None]) -> tuple[int, ...]:
    if bucket_id in current:
        return OPEN_SHAPES
    return EXPIRED_SHAPES if bucket_id in expired else JUDGED_SHAPES
