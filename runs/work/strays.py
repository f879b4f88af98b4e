"""Search ended runs for responses from other builds, and for repeats that should be equal but differ.

If the cases that are read at the end show any, workers read the others, a chunk at a time.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Count
from numpy.typing import NDArray

from evalboard.core.compare import MIN_REPEATS, ReadRepeats, ServedRepeats, split_by_bucket
from evalboard.core.errors import TraceDamaged
from evalboard.core.stats import BucketStrays, list_strays
from evalboard.core.trace import differ
from runs.models import BucketRecord, Case, RepeatRecord, ResponseRecord, RunRecord, Stray
from runs.pairs import pair_facts
from runs.store import TracePlace, changes, stored_columns, stored_traces

logger = logging.getLogger(__name__)

CASES_NAMED = 3  # in which steady repeats differ
NO_SEED = -1  # none was sent, or unknown
AWAY = (OperationalError, InterfaceError)
TURN = 0x57A7  # the first half of the lock of a run whose strays are read

Bools = NDArray[np.bool_]
Indexes = NDArray[np.intp]


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredRepeats(ServedRepeats):
    """One bucket's part of a run's stored repeats. index_of: repeat id → index, in order."""

    bucket: BucketRecord
    run: RunRecord
    index_of: dict[int, int]

    def name_cases(self, indexes: Indexes) -> dict[int, str]:
        """Return index → case id."""
        rows = Case.objects.filter(suite_version=self.run.suite_version_id, index__in=indexes.tolist())
        return dict(rows.values_list("index", "case_id"))


def look_through(run: RunRecord) -> None:
    """Search an ended run for outliers, set its columns (unsaved), and store its outliers' rows.

    The columns are `strays`, `strays_so_far` and `unsteady`. `RunRecord.strays` has one entry for each bucket that has
    strays: {"bucket", "is_steady", "n_cases", "n_unread", "distance", "noise", "far", "n_strays", "n_stray_cases",
    "n_responses", "n_agreeing", "n_identical"}; the nats as in `core.stats.BucketStrays`. n_cases: that were read;
    n_unread: that differ and were not. n_stray_cases: that have a stray. n_responses: of the cases that were read, and
    of as large a part of those in which nothing differs; n_agreeing: of them those that agree with most of their case;
    n_identical: those that are no stray and the same to the bit as another of their case.
    """
    by_bucket = list(_served_repeats(run))
    parts = _find_parts(by_bucket)
    run.strays = [part.entry for part in parts]
    run.strays_so_far = [] if any(strays["n_unread"] for strays in run.strays) else None
    Stray.objects.filter(run=run).delete()
    _store(run, parts, is_listed=True)
    with_strays = {strays["bucket"] for strays in run.strays}
    entries = (find_unsteady(served) for served in by_bucket if served.bucket.pk not in with_strays)
    run.unsteady = [entry for entry in entries if entry is not None]


def work_on_strays() -> bool:
    """Read a chunk of the oldest run with outliers and unread cases. Return False if there is none.

    Any worker may call it. `RunRecord.strays` and the listed strays are those of the run's end until all cases are
    read: what depends on them is computed again once. If they cannot be read they stay so. The run's row is locked only
    to store what was read: deleting the run or adding repeats does not wait for the reading, and what was read
    meanwhile is then left out.
    """
    with transaction.atomic():
        run = _take_waiting()
        if run is None:
            return False
        chunk = None
        try:
            with transaction.atomic():
                chunk = _read_chunk(run)
        except AWAY:
            raise
        except Exception:  # whatever it is, the worker goes on
            logger.exception("The strays of run %s cannot be read", run.pk)
        _store_chunk(run, chunk)
    return True


def _take_waiting() -> RunRecord | None:
    """Lock and return the oldest run with unread cases that no other worker reads.

    It is an advisory lock until the transaction's end, so that other writers do not wait for it.
    """
    waiting = RunRecord.objects.filter(strays_so_far__isnull=False, status__in=RunRecord.TERMINAL).order_by("id")
    with connection.cursor() as cursor:
        for run_id in waiting.values_list("pk", flat=True):
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [TURN, run_id % 2**31])
            if cursor.fetchone()[0]:
                # Read again: the previous worker may have finished it.
                run = waiting.select_related("profile").filter(pk=run_id).first()
                if run is not None:
                    return run
    return None


def find_unsteady(served: StoredRepeats) -> dict[str, Any] | None:
    """Return `RunRecord.unsteady` for a bucket whose repeats should be equal but differ; else None.

    Only repeats that were sent the same seed are compared. {"bucket", "batch_class", "n_cases": with two such repeats,
    "n_apart": that differ, "cases": the first of these}.
    """
    if not served.is_steady or not served.differs.any():
        return None
    is_compared, is_apart = _compare_same_seeds(served)
    apart = np.flatnonzero(is_apart)
    if not len(apart):
        return None
    names = served.name_cases(apart[:CASES_NAMED])
    return {
        "bucket": served.bucket.pk,
        "batch_class": served.bucket.batch_class,
        "n_cases": int(is_compared.sum()),
        "n_apart": len(apart),
        "cases": [names[index] for index in sorted(names)],
    }


def _compare_same_seeds(served: StoredRepeats) -> tuple[Bools, Bools]:
    """Return two bool[n]: cases with repeats of one seed, and those where such repeats differ."""
    seeds = _read_shared_seeds(served)
    is_compared, is_apart = np.zeros((2, len(seeds)), np.bool_)
    for one, other in combinations(range(seeds.shape[1]), 2):
        has_both = served.is_ours[:, one] & served.is_ours[:, other]
        is_same_seed = has_both & (seeds[:, one] != NO_SEED) & (seeds[:, one] == seeds[:, other])
        is_compared |= is_same_seed
        is_apart |= is_same_seed & differ(served.traces[:, one], served.traces[:, other])
    return is_compared, is_apart


def _read_shared_seeds(served: StoredRepeats) -> NDArray[np.int64]:
    """Return sent seeds, int64[n, k]; NO_SEED also for cases without any two equal seeds."""
    columns = {repeat_id: at for at, repeat_id in enumerate(served.index_of)}
    sent = ResponseRecord.objects.filter(repeat__in=columns).exclude(seed_sent=None)
    shared = sent.order_by().values("case_index", "seed_sent").annotate(n=Count("pk")).filter(n__gt=1)
    cases = set(shared.values_list("case_index", flat=True))
    seeds = np.full(served.is_ours.shape, NO_SEED, np.int64)
    if cases:
        for case, repeat, seed in sent.values_list("case_index", "repeat", "seed_sent"):
            if case in cases and seed is not None:
                seeds[case, columns[repeat]] = seed
    return seeds


def _served_repeats(run: RunRecord) -> Iterator[StoredRepeats]:
    """Read the columns of a run's repeats, bucket by bucket."""
    indexes = dict(RepeatRecord.objects.filter(run=run, cases=None).values_list("pk", "index"))
    columns = sorted(stored_columns.stream(list(indexes)), key=lambda each: indexes[each.repeat_id])
    if len(columns) < 2:
        return
    indexes_of = {each.repeat_id: indexes[each.repeat_id] for each in columns}
    are_greedy = not pair_facts.draws_of(run).may_sample
    parts = split_by_bucket(columns, are_greedy=are_greedy)
    for bucket in BucketRecord.objects.filter(pk__in=parts.ids).select_related("fingerprint").order_by("pk"):
        yield StoredRepeats(
            bucket=bucket,
            run=run,
            index_of=indexes_of,
            **parts.of(bucket),
            is_decimal=run.is_reported,
            find_places=partial(_find_places, list(indexes_of)),
            reader=stored_traces,
        )


def _find_places(repeat_ids: Sequence[int], cases: Indexes) -> dict[tuple[int, int], TracePlace]:
    """Return (case index, index of the repeat) → place of the trace."""
    columns = {repeat_id: at for at, repeat_id in enumerate(repeat_ids)}
    stored = ResponseRecord.objects.filter(repeat__in=repeat_ids, case_index__in=cases.tolist())
    rows = stored.exclude(trace_block=None).values_list("case_index", "repeat", "trace_block", "trace_slot")
    return {
        (case, columns[repeat]): (block, slot)
        for case, repeat, block, slot in rows
        if block is not None and slot is not None
    }


@dataclass(frozen=True, slots=True)
class _Part:
    """The result for some cases of a bucket. entry: for `RunRecord.strays`. places: (case index, repeat)."""

    entry: dict[str, Any]
    places: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The cases that one call has read. so_far: entries by bucket of all read since the run's end.

    whole: buckets of which all cases are read, once that is so for every bucket; None before.
    """

    parts: Sequence[_Part]
    so_far: Sequence[dict[str, Any]]
    whole: Sequence[dict[str, Any]] | None


def _find_parts(by_bucket: Sequence[StoredRepeats]) -> list[_Part]:
    try:
        parts = [_find_in_bucket(served) for served in by_bucket]
    except TraceDamaged:  # the run ends all the same
        return []
    return [part for part in parts if part is not None]


def _find_in_bucket(served: StoredRepeats) -> _Part | None:
    read, strays = served.search()
    if strays is None:
        return None
    part = _part(served, read, strays)
    return _Part(_with_alike(served, part.entry, n_telling=len(served.telling)), part.places)


def _read_chunk(run: RunRecord) -> _Chunk:
    """Read the next cases of the run, without changing it."""
    so_far = {entry["bucket"]: entry for entry in run.strays_so_far or ()}
    known = {entry["bucket"]: entry for entry in run.strays or ()}
    parts, whole = [], []
    for served in _served_repeats(run):
        at_end = known.get(served.bucket.pk)
        if at_end is None or not at_end["n_unread"]:
            continue
        before, telling = so_far.get(served.bucket.pk), served.telling
        n_read = before["n_cases"] if before else 0
        read = served.read(telling[n_read : n_read + served.n_at_once])
        parts.append(part := _part(served, read, list_strays(read.tables, far=at_end["far"])))
        entry = so_far[served.bucket.pk] = part.entry if before is None else _join(before, part.entry)
        if entry["n_cases"] < len(telling):
            return _Chunk(parts, list(so_far.values()), None)
        whole.append(_with_alike(served, entry, n_telling=len(telling)))
    return _Chunk(parts, list(so_far.values()), whole)


def _store_chunk(run: RunRecord, chunk: _Chunk | None) -> None:
    """Store a chunk unless the run has changed meanwhile. None: it cannot be read; stop trying."""
    unchanged = RunRecord.objects.filter(pk=run.pk, finished_at=run.finished_at, status__in=RunRecord.TERMINAL)
    if not unchanged.select_for_update(no_key=True).exists():
        return
    own = Stray.objects.filter(run=run)
    if chunk is None:
        own.filter(is_listed=False).delete()
        run.strays_so_far = None
    else:
        _store(run, chunk.parts, is_listed=False)
        run.strays_so_far = list(chunk.so_far) if chunk.whole is None else None
    if chunk is not None and chunk.whole is not None:
        whole = {entry["bucket"]: entry for entry in chunk.whole}
        run.strays = [whole.get(entry["bucket"], entry) for entry in run.strays or ()]
        own.filter(is_listed=True, bucket__in=whole).delete()
        own.filter(is_listed=False).update(is_listed=True)
    run.save(update_fields=["strays", "strays_so_far"])
    if run.strays_so_far is None:
        changes.run_changed(run_id=run.pk)


def _store(run: RunRecord, parts: Sequence[_Part], *, is_listed: bool) -> None:
    rows = ((part.entry["bucket"], case, repeat) for part in parts for case, repeat in part.places)
    Stray.objects.bulk_create(
        Stray(run=run, bucket_id=bucket, case_index=case, repeat=repeat, is_listed=is_listed)
        for bucket, case, repeat in rows
    )


def _part(served: StoredRepeats, read: ReadRepeats, strays: BucketStrays) -> _Part:
    """Return what these cases show, and no others."""
    repeats = list(served.index_of.values())
    entry = {
        "bucket": served.bucket.pk,
        "is_steady": served.is_steady,
        "n_cases": strays.n_cases,
        "distance": strays.distance,
        "noise": strays.noise,
        "far": strays.far,
        "n_strays": len(strays.places),
        "n_stray_cases": len({case for case, _ in strays.places}),
        "n_responses": int(read.is_there.sum()),
        "n_agreeing": strays.n_agreeing,
        "n_identical": read.count_identical(strays),
    }
    return _Part(entry, [(int(read.cases[case]), repeats[place]) for case, place in strays.places])


def _join(before: dict[str, Any], further: dict[str, Any]) -> dict[str, Any]:
    """Return one entry of two that have no case in common."""
    n, m = before["n_strays"], further["n_strays"]
    sums = ("n_cases", "n_strays", "n_stray_cases", "n_responses", "n_agreeing", "n_identical")
    means = {
        name: math.sqrt((n * before[name] ** 2 + m * further[name] ** 2) / max(n + m, 1))
        for name in ("distance", "noise")
    }
    return before | {name: before[name] + further[name] for name in sums} | means


def _with_alike(served: StoredRepeats, entry: dict[str, Any], *, n_telling: int) -> dict[str, Any]:
    """Add to an entry as large a part of the cases in which nothing differs as was read of the others."""
    is_alike = ~served.differs & (served.n_repeats >= MIN_REPEATS)
    n_alike = round(int(served.n_repeats[is_alike].sum()) * entry["n_cases"] / n_telling)
    counts = {name: entry[name] + n_alike for name in ("n_responses", "n_agreeing", "n_identical")}
    return entry | counts | {"n_unread": n_telling - entry["n_cases"]}
