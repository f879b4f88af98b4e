"""Looks through the repeats of a run that has ended: for responses that another computation gave than the one that
served the others of their case, and for repeats that should be the same to the bit and are not.

Where the cases that are read when it ends show strays, workers read the others, a chunk at a time.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import InterfaceError, OperationalError, transaction
from numpy.typing import NDArray

from evalboard.core.compare import is_steady_batch, measure_distances
from evalboard.core.errors import TraceDamaged
from evalboard.core.profile import is_sampled
from evalboard.core.stats import FAR_FLOORS, Strays, assume_logit_sd, find_strays, is_left_out, list_strays
from runs.models import Bucket, Case, Repeat, Response, Run
from runs.pairs import pair_facts
from runs.store import NO_BUCKET, changes, stored_columns, stored_traces

logger = logging.getLogger(__name__)

MIN_REPEATS = 3  # of two that differ nobody knows which one is off
PAIRS = 10_000  # of repeats of a bucket, that are read when a run ends, and by one call of `work_on_strays`
MIN_CASES = 200  # that are read then however many repeats they have
CASES_NAMED = 3  # in which steady repeats differ
AWAY = (OperationalError, InterfaceError)

Bools = NDArray[np.bool_]
Indexes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class ServedRepeats:
    """What one bucket served of a run's repeats: repeats, id → index, in their order; traces, uint64[n, k, 2], digests;
    is_ours, bool[n, k], its draws that have a trace. is_steady: they should be the same to the bit.
    """

    bucket: Bucket
    run: Run
    repeats: dict[int, int]
    traces: NDArray[np.uint64]
    is_ours: Bools
    is_steady: bool

    @property
    def n_repeats(self) -> NDArray[np.int64]:
        """int64[n]: draws of each case."""
        return np.asarray(self.is_ours.sum(axis=1), np.int64)

    @property
    def telling(self) -> Indexes:
        """Cases that have enough draws and in which they differ."""
        return np.flatnonzero(self.differs & (self.n_repeats >= MIN_REPEATS))

    @property
    def n_at_once(self) -> int:
        """How many cases are read at once."""
        k = len(self.repeats)
        return max(2 * PAIRS // (k * (k - 1)), MIN_CASES)

    @property
    def far(self) -> float:
        """In nats, what noise does not do where the repeats measure none."""
        return 0.0 if self.is_steady else FAR_FLOORS * assume_logit_sd(pair_facts.logits_of(self.bucket))

    @property
    def differs(self) -> Bools:
        """bool[n]: cases whose draws are not the same to the bit."""
        first = np.take_along_axis(self.traces, self.is_ours.argmax(axis=1)[:, None, None], axis=1)
        has_other: Bools = ((self.traces != first).any(axis=2) & self.is_ours).any(axis=1)
        return has_other

    def name_cases(self, indexes: Indexes) -> dict[int, str]:
        """Return index → case id."""
        rows = Case.objects.filter(suite_version=self.run.suite_version_id, index__in=indexes.tolist())
        return dict(rows.values_list("index", "case_id"))


def look_through(run: Run) -> None:
    """Set `strays`, `strays_so_far` and `unsteady` of a run that has ended; it is not saved."""
    by_bucket = list(_served_repeats(run))
    run.strays = find_run_strays(by_bucket)
    run.strays_so_far = [] if any(strays["n_unread"] for strays in run.strays) else None
    with_strays = {strays["bucket"] for strays in run.strays}
    entries = (find_unsteady(served) for served in by_bucket if served.bucket.pk not in with_strays)
    run.unsteady = [entry for entry in entries if entry is not None]


def find_run_strays(by_bucket: Sequence[ServedRepeats]) -> list[dict[str, Any]]:
    """Return what `Run.strays` keeps when a run ends: one entry for each bucket that has strays.

    Each is {"bucket", "is_steady", "n_cases", "n_unread", "distance", "noise", "far", "responses": [[case id, repeat],
    …], "n_responses", "n_agreeing", "n_identical"}; the nats as `core.stats.Strays` has them. n_cases:
    that were read; n_unread: that differ and were not. n_responses: of the cases that were read, and of as large a part
    of those in which nothing differs; n_agreeing: of them those that agree with most of their case; n_identical: those
    that are no stray and the same to the bit as another of their case.
    """
    try:
        entries = [_find_in_bucket(served) for served in by_bucket]
    except TraceDamaged:  # the run ends all the same
        return []
    return [entry for entry in entries if entry is not None]


def work_on_strays() -> bool:
    """Read a chunk of the oldest run that has strays and cases unread; False if none has. Any worker may call it.

    `Run.strays` is that of the run's end until all cases are read: what rests on it is made anew once. Where they
    cannot be read it stays so.
    """
    with transaction.atomic():
        waiting = Run.objects.filter(strays_so_far__isnull=False).select_related("profile").order_by("id")
        run = waiting.select_for_update(skip_locked=True, no_key=True, of=("self",)).first()
        if run is None:
            return False
        try:
            with transaction.atomic():
                _read_on(run)
        except AWAY:
            raise
        except Exception:  # whatever it is, the worker goes on
            logger.exception("The strays of run %s cannot be read", run.pk)
            run.strays_so_far = None
        run.save(update_fields=["strays", "strays_so_far"])
        if run.strays_so_far is None:
            changes.run_changed(run_id=run.pk)
    return True


def find_unsteady(served: ServedRepeats) -> dict[str, Any] | None:
    """Return what `Run.unsteady` keeps of a bucket whose repeats should be the same to the bit and differ; else None.

    {"bucket", "batch_class", "n_cases": with two repeats or more, "n_apart": that differ, "cases": the first of these}.
    """
    apart = np.flatnonzero(served.differs)
    if not served.is_steady or not len(apart):
        return None
    names = served.name_cases(apart[:CASES_NAMED])
    return {
        "bucket": served.bucket.pk,
        "batch_class": served.bucket.batch_class,
        "n_cases": int((served.n_repeats > 1).sum()),
        "n_apart": len(apart),
        "cases": [names[index] for index in sorted(names)],
    }


def _served_repeats(run: Run) -> Iterator[ServedRepeats]:
    """Read the columns of a run's repeats, bucket by bucket."""
    indexes = dict(Repeat.objects.filter(run=run, cases=None).values_list("pk", "index"))
    columns = sorted(stored_columns.stream(list(indexes)), key=lambda each: indexes[each.repeat_id])
    if len(columns) < 2:
        return
    draws = [np.where(is_left_out(each.marks), NO_BUCKET, each.buckets) for each in columns]
    served, traces = np.column_stack(draws), np.stack([each.traces for each in columns], axis=1)
    repeats = {each.repeat_id: indexes[each.repeat_id] for each in columns}
    ids = np.unique(served[served != NO_BUCKET]).tolist()
    are_greedy = not is_sampled(run.profile.settings["sampling"])
    for bucket in Bucket.objects.filter(pk__in=ids).select_related("fingerprint").order_by("pk"):
        is_ours = (served == bucket.pk) & traces.any(axis=2)
        is_steady = is_steady_batch(bucket.batch_class, are_batches_equal=are_greedy)
        yield ServedRepeats(bucket, run, repeats, traces, is_ours, is_steady)


def _find_in_bucket(served: ServedRepeats) -> dict[str, Any] | None:
    telling = served.telling
    cases = telling[:: max(len(telling) // served.n_at_once, 1)][: served.n_at_once]
    read = _read(served, cases)
    strays = find_strays(read.tables, far=served.far)
    return None if strays is None else _with_alike(served, _entry(served, read, strays), n_telling=len(telling))


def _read_on(run: Run) -> None:
    """Read the next chunk; after the last one `Run.strays` is that of all cases."""
    parts = {part["bucket"]: part for part in run.strays_so_far or ()}
    entries = {entry["bucket"]: entry for entry in run.strays or ()}
    for served in _served_repeats(run):
        known = entries.get(served.bucket.pk)
        if known is None or not known["n_unread"]:
            continue
        part, telling = parts.get(served.bucket.pk), served.telling
        n_read = part["n_cases"] if part else 0
        read = _read(served, telling[n_read : n_read + served.n_at_once])
        chunk = _entry(served, read, list_strays(read.tables, far=known["far"]))
        part = parts[served.bucket.pk] = chunk if part is None else _join(part, chunk)
        if part["n_cases"] < len(telling):
            run.strays_so_far = list(parts.values())
            return
        entries[served.bucket.pk] = _with_alike(served, part, n_telling=len(telling))
    run.strays, run.strays_so_far = list(entries.values()), None


def _entry(served: ServedRepeats, read: "_Read", strays: Strays) -> dict[str, Any]:
    """Return an entry of the cases that were read, and of no others."""
    names, repeats = served.name_cases(read.cases), list(served.repeats.values())
    return {
        "bucket": served.bucket.pk,
        "is_steady": served.is_steady,
        "n_cases": strays.n_cases,
        "distance": strays.distance,
        "noise": strays.noise,
        "far": strays.far,
        "responses": [[names[int(read.cases[case])], repeats[place]] for case, place in strays.places],
        "n_responses": int(read.is_there.sum()),
        "n_agreeing": strays.n_agreeing,
        "n_identical": read.count_identical(strays),
    }


def _join(part: dict[str, Any], further: dict[str, Any]) -> dict[str, Any]:
    """Return one entry of two that have no case in common."""
    n, m = len(part["responses"]), len(further["responses"])
    sums = ("n_cases", "responses", "n_responses", "n_agreeing", "n_identical")
    means = {
        name: math.sqrt((n * part[name] ** 2 + m * further[name] ** 2) / max(n + m, 1))
        for name in ("distance", "noise")
    }
    return part | {name: part[name] + further[name] for name in sums} | means


def _with_alike(served: ServedRepeats, entry: dict[str, Any], *, n_telling: int) -> dict[str, Any]:
    """Add to an entry as large a part of the cases in which nothing differs as was read of the others."""
    is_alike = ~served.differs & (served.n_repeats >= MIN_REPEATS)
    n_alike = round(int(served.n_repeats[is_alike].sum()) * entry["n_cases"] / n_telling)
    counts = {name: entry[name] + n_alike for name in ("n_responses", "n_agreeing", "n_identical")}
    return entry | counts | {"n_unread": n_telling - entry["n_cases"]}


@dataclass(frozen=True, eq=False)
class _Read:
    """Some cases of a bucket, read: cases, intp[n]; is_there, bool[n, k], its draws; are_alike, bool[n, k, k], pairs
    of them that are the same to the bit; tables, float64[n, k, k] in nats², as `find_strays` takes them.
    """

    cases: Indexes
    is_there: Bools
    are_alike: Bools
    tables: NDArray[np.float64]

    def count_identical(self, strays: Strays) -> int:
        """Count the draws, strays aside, that are the same to the bit as another of their case."""
        agrees = self.is_there.copy()
        agrees[tuple(np.array(strays.places, np.intp).reshape(-1, 2).T)] = False
        n_alike = (self.are_alike & agrees[:, None, :]).sum(axis=2)
        return int((agrees & (n_alike > 1)).sum())


def _read(served: ServedRepeats, cases: Indexes) -> _Read:
    """Read how far the bucket's draws of these cases lie apart; traces that are equal are read once."""
    ids = list(served.repeats)
    columns = {repeat_id: at for at, repeat_id in enumerate(ids)}
    rows = {case: at for at, case in enumerate(cases.tolist())}
    stored = Response.objects.filter(repeat__in=ids, case_index__in=list(rows)).exclude(trace_block=None)
    places = {
        (rows[case], columns[repeat]): (block, slot)
        for case, repeat, block, slot in stored.values_list("case_index", "repeat", "trace_block", "trace_slot")
        if block is not None and slot is not None
    }
    is_there = np.zeros((len(cases), len(ids)), np.bool_)
    is_there[tuple(np.array(list(places), np.intp).reshape(-1, 2).T)] = True
    is_there &= served.is_ours[cases]
    digests = served.traces[cases]
    are_alike = ~stored_columns.differ(digests[:, :, None], digests[:, None]) & is_there[:, :, None] & is_there[:, None]
    firsts = are_alike.argmax(axis=2)  # stands for all that are the same
    is_first = is_there & (firsts == np.arange(len(ids)))
    at = np.nonzero(np.triu(is_first[:, :, None] & is_first[:, None], 1))
    pairs = [(places[case, one], places[case, other]) for case, one, other in np.transpose(at).tolist()]
    measured = [measure_distances(*sides) for sides in stored_traces.read_pair_columns(pairs)]
    apart = np.zeros(are_alike.shape)
    apart[at] = np.concatenate([np.zeros(0), *measured])
    apart += apart.transpose(0, 2, 1)
    case_at = np.arange(len(cases))[:, None, None]
    tables = apart[case_at, firsts[:, :, None], firsts[:, None]]
    tables[~(is_there[:, :, None] & is_there[:, None])] = np.nan
    return _Read(cases, is_there, are_alike, tables)
