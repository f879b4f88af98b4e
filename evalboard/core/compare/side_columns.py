"""Build one side of a comparison from the columns of its repeats, with its stacks."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare.comparability import ScorerShift, ServedShare, SideSetup
from evalboard.core.compare.known_pair import ServingFacts
from evalboard.core.compare.pair_noise import EndedRepeats, FindPlaces, Measured
from evalboard.core.compare.run_facts import (
    AnyBucket,
    AnyRun,
    Names,
    compared_settings,
    draws_of,
    find_other_model,
    limits_of,
    logits_of,
    request_settings,
)
from evalboard.core.compare.sides import BucketFacts, Digests, Indexes, Scores, Traces
from evalboard.core.profile import select_stack
from evalboard.core.scoring import name_code, reads_thinking
from evalboard.core.stats import Marks, difference_points, is_left_out

NO_BUCKET = -1

Shares = Sequence[tuple[int, int, float]]


class Columns(NamedTuple):
    """One repeat's columns by case index.

    texts, traces: uint64[n, 2], digests, zeros where missing. buckets: int64[n] of bucket ids, NO_BUCKET where missing.
    marks: uint8[n], as core.stats.live_answers has them.
    """

    repeat_id: int
    texts: Digests
    traces: Digests
    buckets: Indexes
    marks: Marks

    def take(self, cases: Indexes | slice) -> "Columns":
        """Return the columns of only these cases, in this order."""
        return Columns(self.repeat_id, self.texts[cases], self.traces[cases], self.buckets[cases], self.marks[cases])

    @property
    def draws_by(self) -> Indexes:
        """int64[n]: the bucket that gave each draw, NO_BUCKET where the response is missing or is no draw."""
        return np.where(is_left_out(self.marks), NO_BUCKET, self.buckets)

    @property
    def n_left_out(self) -> int:
        """Return the number of responses that are no samples."""
        return int(np.count_nonzero(is_left_out(self.marks)))


def missing(n: int) -> Columns:
    """Return the columns of a repeat without any response to n cases."""
    nothing = np.zeros((n, 2), np.uint64)
    return Columns(0, nothing, nothing, np.full(n, NO_BUCKET, np.int64), np.zeros(n, np.uint8))


def lay_columns(
    by_repeat: Sequence[Columns],
    run: AnyRun,
    *,
    repeats: Sequence[int],
    ended: Sequence[int],
    suite_version: str,
    suite_digest: str,
    buckets: Mapping[int, AnyBucket],
    served: Mapping[int, ServingFacts],
    names: Names,
    backends: Mapping[int, str],
    unknown_prompts: str,
    is_logged: bool,
) -> dict[str, Any]:
    """Return the fields of `Side` that come from columns, run and buckets.

    repeats, ended: as `Side` has them. suite_version: with its suite, for people. buckets, served: by their ids.
    backends: what pages call each bucket, if there are several. unknown_prompts, is_logged: as `SideSetup` has them.
    """
    by_bucket = lay([columns.buckets for columns in by_repeat])
    shares = count_shares(by_bucket)
    limits, sampling = limits_of(run), compared_settings(run)
    setup = SideSetup(
        suite_version=suite_version,
        suite_digest=suite_digest,
        scorer_digest=run.suite_version.scorer.digest,
        scorer_code=name_code(run.suite_version.scorer.spec),
        max_tokens=limits["max_tokens"],
        stop=tuple(limits["stop"]),
        sampling={name: value for name, value in sampling.items() if name not in limits},
        served=[
            _share(buckets[bucket], served[bucket], n, share, names, backends.get(bucket, ""))
            for bucket, n, share in shares
        ],
        unknown_prompts=unknown_prompts,
        is_logged=is_logged,
        n_cases=run.suite_version.n_cases,
    )
    return {
        "repeats": tuple(repeats),
        "ended": tuple(ended),
        "draws": draws_of(run, (repeats[at] for at in ended)),
        "texts": lay([columns.texts for columns in by_repeat]),
        "traces": lay([columns.traces for columns in by_repeat]),
        "buckets": by_bucket,
        "marks": lay([columns.marks for columns in by_repeat]),
        "setup": setup,
        "shares": shares,
        "settings": request_settings(run),
        "is_reported": run.is_reported,
        "known": {pk: BucketFacts(buckets[pk].batch_class, logits_of(buckets[pk]), served[pk]) for pk, _, _ in shares},
    }


def judge_by_other(fields: Mapping[str, Any], scorer: Any, own: Scores, scores: Scores) -> dict[str, Any]:
    """Return fields of `lay_columns` for a side that another scorer than its suite's judges.

    own, scores: float64[n, a] by its suite's scorer and by the other, NaN where missing.
    """
    setup = fields["setup"]
    shift = ScorerShift(setup.scorer_digest, *measure_shift(setup, own, scores), own_code=setup.scorer_code)
    return {
        **fields,
        "setup": replace(setup, scorer_digest=scorer.digest, scorer_code=name_code(scorer.spec), scorer_shift=shift),
        "settings": replace(fields["settings"], is_thinking_scored=reads_thinking(scorer.spec)),
    }


def measure_shift(setup: SideSetup, before: Scores, after: Scores) -> tuple[float | None, int]:
    """Return the points and the number of cases by which other scores of the same answers move a side.

    before, after: float64[n, a], NaN where missing. The points are None where several buckets served the side.
    """
    moves = after - before
    is_both = ~np.isnan(moves)
    rows = is_both.any(axis=1)
    points = None
    if rows.any() and len(setup.served) == 1:
        points = difference_points(*(np.where(is_both, by, np.nan)[rows] for by in (before, after)))
    return points, int(np.count_nonzero((is_both & (moves != 0)).any(axis=1)))


def lay(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return [n, a, …], the columns of a repeats side by side.

    Of repeats that are the same to the bit, as pinned ones are, it is a view of the one column that was read.
    """
    first = columns[0]
    if all(column is first for column in columns):
        return np.broadcast_to(first[:, None], (len(first), len(columns), *first.shape[1:]))
    return np.stack(columns, axis=1)


def count_shares(served: Indexes) -> Shares:
    """Return `Side.shares`. served: int64[n, a], NO_BUCKET where there is no response."""
    counts: Counter[int] = Counter()
    for column in served.T:  # one after the other, so that little memory is taken
        ids, n = np.unique(column, return_counts=True)
        counts.update(dict(zip(ids.tolist(), n.tolist(), strict=True)))
    counts.pop(NO_BUCKET, None)
    largest_first = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [(bucket, n, n / counts.total()) for bucket, n in largest_first]


def measure_buckets(
    by_repeat: Sequence[Columns],
    strays: Iterable[tuple[int, int]],
    buckets: Iterable[AnyBucket],
    *,
    find_places: FindPlaces,
    reader: Traces,
    is_reported: bool,
) -> dict[int | None, Measured]:
    """Return bucket id → what the repeats of one run show of its noise.

    strays: (case, place of the repeat); they are another computation, and what is no draw says nothing of noise.
    buckets: all that served the run. find_places, reader: as `EndedRepeats` has them.
    """
    served = [columns.draws_by.copy() for columns in by_repeat]
    for case, at in strays:
        served[at][case] = NO_BUCKET
    traces = [columns.traces for columns in by_repeat]
    ended = EndedRepeats(traces, served, find_places, reader, is_reported)
    present = {int(bucket) for column in served for bucket in np.unique(column)}
    return {
        bucket.pk: ended.measure(bucket.pk, logits=logits_of(bucket), batch_class=bucket.batch_class)
        for bucket in buckets
        if bucket.pk in present
    }


def _share(bucket: AnyBucket, known: ServingFacts, n: int, share: float, names: Names, backend: str) -> ServedShare:
    other = find_other_model(bucket, names)
    return ServedShare(
        model_name=other or bucket.model.name,
        asked_name=bucket.model.name if other else "",
        backend=backend,
        n_answers=n,
        weights_digest=known.weights_digest or "",
        template_digest=known.template_digest or "",
        fingerprint=known.fingerprint or "",
        shown=bucket.fingerprint.digest if known.fingerprint else "",
        manifest=select_stack(bucket.fingerprint.manifest) if known.fingerprint else {},
        named=" ".join(filter(None, (known.model_name, known.model_revision))),
        batch_class=bucket.batch_class,
        share=share,
    )
