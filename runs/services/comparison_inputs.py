"""What a comparison is computed from: two runs' packed columns on one row of cases, and what asked and served them.

Nothing here reads a response or a trace. `find` costs a few small queries, so that a stored comparison is found in
milliseconds; `load` reads the columns, some megabytes for 100,000 cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from evalboard.core import columns, digest, draws, fingerprint, pairing, profile
from evalboard.core.comparability import Asked, Served
from evalboard.core.comparison import VERSION, Matched
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.live_answers import Marks
from runs import bulk, pair_facts, stored_columns
from runs.model_names import OneNames
from runs.models import Bucket, CaseColumns, Model, RepeatScore, Run
from runs.services.packed_digests import columns_digest, score_digest
from runs.stored_columns import NO_BUCKET, Digests, Indexes

# Changed whenever the same inputs would give another answer: a stored comparison is then not found again.
METHOD = f"comparison {VERSION}.5"

# By what is asked and what is right: a case whose tags or scorer changed is still the same case.
SAME_CASES = """
SELECT ours.index, theirs.index
  FROM runs_case AS ours
  JOIN runs_case AS theirs ON theirs.case_id = ours.case_id AND theirs.content = ours.content
 WHERE ours.suite_version_id = %s AND theirs.suite_version_id = %s
 ORDER BY ours.index
"""
SCORES = "SELECT repeat_id, scores FROM runs_repeatscore WHERE repeat_id = ANY(%s::bigint[]) AND scorer_id = %s"


@dataclass(frozen=True, slots=True)
class SideKey:
    """One side as found: its run, the repeats that are compared, and the digests of their columns and scores.

    measured: the digests of the columns of all repeats that have ended, whose noise every pair of the run is judged by.
    """

    run: Run
    repeat_ids: tuple[int, ...]
    repeats: tuple[int, ...]
    digests: dict[str, Any]
    bucket_ids: tuple[int, ...]
    measured: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Side:
    """One side's columns, in the order of the comparison's cases; a is the number of repeats.

    case_indexes: int64[n], the suite's index of each case. texts, traces: uint64[n, a, 2], digests, zeros where
    missing. buckets: int64[n, a] of bucket ids, NO_BUCKET where missing. scores: float64[n, a]. marks: uint8[n, a], as
    core.live_answers has them. bucket_ids: those of asked.served, in that order.
    """

    key: SideKey
    case_indexes: Indexes
    texts: Digests
    traces: Digests
    buckets: Indexes
    scores: NDArray[np.float64]
    marks: Marks
    asked: Asked
    bucket_ids: tuple[int, ...]

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """bool[n, a]: whether there is a response."""
        found: NDArray[np.bool_] = self.buckets != NO_BUCKET
        return found


@dataclass(frozen=True, eq=False)
class Inputs:
    """Both sides on one row of cases, and what is known of the buckets that served them."""

    baseline: Side
    candidate: Side
    matched: Matched
    buckets: dict[int, Bucket]
    served: dict[int, pair_facts.Served]


def find(*, baseline: int, candidate: int, repeats: tuple[int, int] | None) -> tuple[SideKey, SideKey, str]:
    """Both sides and the digest of everything that the comparison rests on.

    Raises NotFound for a run or repeat that is not there, InvalidInput for runs of two suites or a run against itself,
    Conflict where a side has no repeat that has ended.
    """
    if baseline == candidate and repeats is None:
        text = "A run is compared with another run, or one of its repeats with another one."
        raise InvalidInput(text, fields={"repeat": "Name two repeats of the run, as in 1,2."})
    ours, theirs = _run(baseline), _run(candidate)
    if ours.suite_version.suite_id != theirs.suite_version.suite_id:
        suites = f"{ours.suite_version.suite.slug} and {theirs.suite_version.suite.slug}"
        text = f"Runs of one suite can be compared, and these are of {suites}."
        raise InvalidInput(text, fields={"candidate": "Must be a run of the baseline's suite."})
    scorers = {run.suite_version.scorer_id for run in (ours, theirs)}
    sides = [
        _side_key(run, None if repeats is None else repeats[place], scorers) for place, run in enumerate((ours, theirs))
    ]
    inputs = {
        "method": METHOD,
        "baseline": sides[0].digests,
        "candidate": sides[1].digests,
        "measured": [side.measured for side in sides],
    }
    return sides[0], sides[1], digest.digest_json(inputs)


def load(ours: SideKey, theirs: SideKey) -> Inputs:
    """Read the columns of both sides and lay them on the cases that both have."""
    case_indexes = _shared_cases(ours.run, theirs.run)
    found = Bucket.objects.filter(pk__in={*ours.bucket_ids, *theirs.bucket_ids})
    buckets = {bucket.pk: bucket for bucket in found.select_related("model", "fingerprint")}
    served = pair_facts.served_beside(ours.run, theirs.run, buckets.values())
    baseline = _load_side(ours, case_indexes[0], buckets, served)
    candidate = _load_side(theirs, case_indexes[1], buckets, served)
    alike = None
    if ours.run.suite_version.scorer_id != theirs.run.suite_version.scorer_id:
        alike = _scores(theirs, ours.run.suite_version.scorer_id, candidate.case_indexes)
    pairs = pairing.pair_runs(*_held(baseline, candidate))
    is_mixed = any(len(side.bucket_ids) > 1 for side in (baseline, candidate))
    matched = Matched(pairs, baseline.scores, candidate.scores, alike, is_mixed)
    return Inputs(baseline, candidate, matched, buckets, served)


def _held(baseline: Side, candidate: Side) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """bool[n, a] and bool[n, b], what can be paired: scores, or responses where a side has no score at all."""
    has_scores = [~np.isnan(side.scores) for side in (baseline, candidate)]
    if all(held.any() for held in has_scores):
        return has_scores[0], has_scores[1]
    return baseline.is_there, candidate.is_there


def _run(run_id: int) -> Run:
    related = ("suite_version__suite", "suite_version__scorer", "profile", "endpoint")
    run = Run.objects.select_related(*related).filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    return run


def _side_key(run: Run, only: int | None, scorers: set[int]) -> SideKey:
    rows = list(run.repeats.order_by("index"))
    packed = dict(CaseColumns.objects.filter(repeat__in=rows).values_list("repeat_id", "digest"))
    measured = [row for row in rows if row.finished_at is not None and row.pk in packed]
    packed_as = {row.index: packed[row.pk] or columns_digest(row.pk) for row in measured}
    if only is not None and only not in {row.index for row in rows}:
        raise NotFound(f"Run {run.pk} has no repeat {only}.")
    ended = [row for row in measured if only in (None, row.index)]
    if not ended:
        raise Conflict(f"Run {run.pk} has no repeat that has ended yet; compare it when one has.")
    scored = RepeatScore.objects.filter(repeat__in=ended, scorer__in=scorers)
    scores = {(row.repeat_id, row.scorer_id): row.digest or score_digest(row) for row in _light(scored)}
    ids = tuple(row.pk for row in ended)
    bucket_ids = CaseColumns.objects.filter(repeat__in=ids).values_list("bucket_ids", flat=True)
    version = run.suite_version
    digests = {
        "run": run.pk,
        "suite": version.digest,
        "scorer": version.scorer.digest,
        "profile": run.profile.digest,
        "columns": {str(row.index): packed_as[row.index] for row in ended},
        "scores": {f"{row.index} {scorer}": scores.get((row.pk, scorer)) for row in ended for scorer in scorers},
    }
    known = sorted({bucket for found in bucket_ids for bucket in found})
    if run.source_id is not None:  # what counts as one model there is a person's word, which may change
        digests["models"] = _models(known)
    return SideKey(run, ids, tuple(row.index for row in ended), digests, tuple(known), tuple(packed_as.values()))


def _models(bucket_ids: list[int]) -> list[list[str]]:
    names, found = OneNames(), Model.objects.filter(buckets__in=bucket_ids).values_list("name", "revision")
    return sorted([names.of(name), revision] for name, revision in found.distinct())


def _light(scored: Any) -> Any:
    """Without what is packed, unless it must be read for its digest."""
    return scored.defer("scores", "reasons").order_by("pk")


def _shared_cases(ours: Run, theirs: Run) -> tuple[Indexes, Indexes]:
    """The suite's indexes of the cases that both runs have, in the baseline's order."""
    if ours.suite_version_id == theirs.suite_version_id:
        every = np.arange(ours.suite_version.n_cases)
        return every, every
    with connection.cursor() as cursor:
        cursor.execute(SAME_CASES, [ours.suite_version_id, theirs.suite_version_id])
        rows = np.array(cursor.fetchall(), dtype=np.int64).reshape(-1, 2)
    if not len(rows):
        versions = f"versions {ours.suite_version.number} and {theirs.suite_version.number}"
        raise InvalidInput(
            f"No case of {versions} of suite {ours.suite_version.suite.slug} is the same.",
            fields={"candidate": "Must be a run of a suite version that shares cases with the baseline's."},
        )
    return rows[:, 0], rows[:, 1]


def _load_side(
    key: SideKey, case_indexes: Indexes, buckets: dict[int, Bucket], known: dict[int, pair_facts.Served]
) -> Side:
    n_cases = key.run.suite_version.n_cases
    place = {repeat_id: at for at, repeat_id in enumerate(key.repeat_ids)}
    shape = (len(case_indexes), len(place))
    texts, traces = np.zeros((*shape, 2), np.uint64), np.zeros((*shape, 2), np.uint64)
    served, marks = np.full(shape, NO_BUCKET, np.int64), np.zeros(shape, np.uint8)
    is_whole = len(case_indexes) == n_cases and bool((case_indexes == np.arange(n_cases)).all())
    wanted = slice(None) if is_whole else case_indexes
    for found in stored_columns.stream(key.repeat_ids):
        at = place[found.repeat_id]
        texts[:, at], traces[:, at] = found.texts[wanted], found.traces[wanted]
        served[:, at], marks[:, at] = found.buckets[wanted], found.marks[wanted]
    own = key.run.suite_version.scorer_id
    return Side(
        key=key,
        case_indexes=case_indexes,
        texts=texts,
        traces=traces,
        buckets=served,
        scores=_scores(key, own, wanted, len(case_indexes)),
        marks=marks,
        asked=_asked(key, served, buckets, known),
        bucket_ids=tuple(bucket for bucket, _, _ in shares(served)),
    )


def _scores(key: SideKey, scorer_id: int, wanted: Any, n: int | None = None) -> NDArray[np.float64]:
    """float64[n, a] under one scorer, NaN where that has not scored."""
    place = {repeat_id: at for at, repeat_id in enumerate(key.repeat_ids)}
    found = np.full((len(wanted) if n is None else n, len(place)), np.nan)
    for repeat_id, packed in bulk.stream_binary(SCORES, [list(key.repeat_ids), scorer_id]):
        found[:, place[repeat_id]] = columns.unpack_scores(packed, key.run.suite_version.n_cases)[wanted]
    return found


def _asked(key: SideKey, served: Indexes, buckets: dict[int, Bucket], known: dict[int, pair_facts.Served]) -> Asked:
    version = key.run.suite_version
    limits = pair_facts.limits_of(key.run)
    sampling = draws.parameters(profile.sampling_of(key.run.profile.settings))
    return Asked(
        suite_version=f"{version.suite.slug} v{version.number}",
        suite_digest=version.digest,
        scorer_digest=version.scorer.digest,
        max_tokens=limits["max_tokens"],
        stop=tuple(limits["stop"]),
        sampling={name: value for name, value in sampling.items() if name not in limits},
        served=[_served(buckets[bucket], known[bucket], share) for bucket, _, share in shares(served)],
        is_logged=key.run.source_id is not None,
    )


def shares(served: Indexes) -> Sequence[tuple[int, int, float]]:
    """(bucket id, number of responses, share of all), the largest first."""
    ids, n = np.unique(served[served != NO_BUCKET], return_counts=True)
    order = np.lexsort((ids, -n))
    return [(int(ids[at]), int(n[at]), float(n[at] / n.sum())) for at in order]


def _served(bucket: Bucket, known: pair_facts.Served, share: float) -> Served:
    return Served(
        model_name=bucket.model.name,
        weights_digest=known.weights_digest or "",
        template_digest=known.template_digest or "",
        fingerprint=known.fingerprint or "",
        manifest=fingerprint.stack(bucket.fingerprint.manifest) if known.fingerprint else {},
        named=" ".join(filter(None, (known.model_name, known.model_revision))),
        batch_class=bucket.batch_class,
        share=share,
    )
