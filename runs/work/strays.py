"""Looks through the repeats of a run that has ended: for responses that another computation gave than the one that
served the others of their case, and for repeats that should be the same to the bit and are not.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare import is_steady_batch
from evalboard.core.errors import TraceDamaged
from evalboard.core.profile import is_sampled
from evalboard.core.stats import FAR_FLOORS, assume_logit_sd, find_strays, is_left_out
from runs.models import Bucket, Case, Repeat, Response, Run
from runs.pairs import TracedText, distance_tables, pair_facts
from runs.store import NO_BUCKET, stored_columns, stored_traces

MIN_REPEATS = 3  # of two that differ nobody knows which one is off
MAX_CASES = 200  # in which repeats differ, that are read of a bucket
CASES_NAMED = 3  # in which steady repeats differ

Bools = NDArray[np.bool_]
ByCase = list[list[tuple[int, TracedText]]]  # repeat id and response with its trace, in the order of the repeats


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
    def differs(self) -> Bools:
        """bool[n]: cases whose draws are not the same to the bit."""
        first = np.take_along_axis(self.traces, self.is_ours.argmax(axis=1)[:, None, None], axis=1)
        has_other: Bools = ((self.traces != first).any(axis=2) & self.is_ours).any(axis=1)
        return has_other

    def name_cases(self, indexes: NDArray[np.intp]) -> dict[int, str]:
        """Return index → case id."""
        rows = Case.objects.filter(suite_version=self.run.suite_version_id, index__in=indexes.tolist())
        return dict(rows.values_list("index", "case_id"))


def look_through(run: Run) -> None:
    """Set `strays` and `unsteady` of a run that has ended; it is not saved."""
    by_bucket = list(_served_repeats(run))
    run.strays = find_run_strays(by_bucket)
    with_strays = {strays["bucket"] for strays in run.strays}
    entries = (find_unsteady(served) for served in by_bucket if served.bucket.pk not in with_strays)
    run.unsteady = [entry for entry in entries if entry is not None]


def find_run_strays(by_bucket: Sequence[ServedRepeats]) -> list[dict[str, Any]]:
    """Return what `Run.strays` keeps: one entry for each bucket that has strays.

    Each is {"bucket", "is_steady", "n_cases", "distance", "noise", "responses": [[case id, repeat], …], "n_responses",
    "n_agreeing", "n_identical"}; distance and noise in nats, as `core.stats.Strays` has them. n_responses: of the cases
    that were read, and of as large a part of those in which nothing differs; n_agreeing: of them those that agree with
    most of their case; n_identical: those that are no stray and the same to the bit as another of their case.
    """
    try:
        entries = [_find_in_bucket(served) for served in by_bucket]
    except TraceDamaged:  # the run ends all the same
        return []
    return [entry for entry in entries if entry is not None]


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
    has_enough, differs = served.n_repeats >= MIN_REPEATS, served.differs
    differing = np.flatnonzero(differs & has_enough)
    cases = differing[:: max(len(differing) // MAX_CASES, 1)][:MAX_CASES]
    far = 0.0 if served.is_steady else FAR_FLOORS * assume_logit_sd(pair_facts.logits_of(served.bucket))
    by_case = _read(list(served.repeats), cases, served.is_ours)
    strays = find_strays(distance_tables([[answer for _, answer in answers] for answers in by_case]), far=far)
    if strays is None:
        return None
    n_same = round(int(served.n_repeats[has_enough & ~differs].sum()) * len(cases) / len(differing))
    names = served.name_cases(cases)
    return {
        "bucket": served.bucket.pk,
        "is_steady": served.is_steady,
        "n_cases": strays.n_cases,
        "distance": strays.distance,
        "noise": strays.noise,
        "responses": [
            [names[int(cases[case])], served.repeats[by_case[case][place][0]]] for case, place in strays.places
        ],
        "n_responses": n_same + sum(map(len, by_case)),
        "n_agreeing": n_same + strays.n_agreeing,
        "n_identical": n_same + _count_identical(by_case, strays.places),
    }


def _count_identical(by_case: ByCase, strays: Collection[tuple[int, int]]) -> int:
    """Count the answers, strays aside, that are the same to the bit as another of their case."""
    n_identical = 0
    for case, answers in enumerate(by_case):
        others = [each.trace for place, (_, each) in enumerate(answers) if (case, place) not in strays]
        alike = Counter(trace.digest for trace in others if trace is not None)
        n_identical += sum(n for n in alike.values() if n > 1)
    return n_identical


def _read(repeat_ids: Sequence[int], cases: NDArray[np.intp], is_ours: Bools) -> ByCase:
    """The bucket's draws of each case: (repeat id, response with its trace), by repeat."""
    rows = Response.objects.filter(repeat__in=repeat_ids, case_index__in=cases.tolist())
    places = {
        (case, repeat): (block, slot)
        for case, repeat, block, slot in rows.values_list("case_index", "repeat", "trace_block", "trace_slot")
        if block is not None and slot is not None
    }
    wanted = [
        [
            (repeat, places[case, repeat])
            for at, repeat in enumerate(repeat_ids)
            if is_ours[case, at] and (case, repeat) in places
        ]
        for case in cases.tolist()
    ]
    traces = iter(stored_traces.read(place for repeats in wanted for _, place in repeats))
    return [
        # The tokens of one run have one vocabulary.
        [(repeat, TracedText("", next(traces), None, is_logged=False)) for repeat, _ in repeats]
        for repeats in wanted
    ]
