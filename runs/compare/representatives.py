"""Choose each case's representative pair, and summarise an outcome's cases with their reasons.

Done once, when a comparison is made or a list by fewer repeats is first read, and stored with the comparison: pages
then read only the pairs that they show.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Expression, FloatField, Max, Min
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast

from evalboard.contract.treatments import Terms
from evalboard.core.compare import (
    PARTED_ALIKE,
    AlikeRows,
    ChosenPair,
    ToldCluster,
    choose_gravest,
    cluster_pairs,
    count_looks,
)
from evalboard.core.stats import CASE_OUTCOMES
from evalboard.core.trace import unpack_reasons
from runs.compare.inputs import find_others
from runs.compare.outcomes import CaseOutcomes, JsonPart, case_outcomes, keep, kept_at, kept_cases, unpack_cases
from runs.models import ComparisonRecord, DivergenceRecord
from runs.store import bulk

MAX_STORED = 2_000  # cases; of longer lists no look or cluster is counted, and the pairs of later cases are not kept
CLUSTERS_SHOWN = 5
MIN_CLUSTER = 2  # cases

REASONS = """
SELECT repeat.index, score.reasons
  FROM runs_repeat AS repeat
  JOIN runs_run AS run ON run.id = repeat.run_id
  JOIN runs_suiteversion AS version ON version.id = run.suite_version_id
  JOIN runs_scorer AS own ON own.id = version.scorer_id
  JOIN runs_scorer AS scorer ON scorer.digest = COALESCE(%s, own.digest)
  JOIN runs_repeatscore AS score ON score.repeat_id = repeat.id AND score.scorer_id = scorer.id
 WHERE repeat.run_id = %s AND repeat.index = ANY(%s::bigint[])
"""


@dataclass(frozen=True, slots=True)
class Representatives:
    """The representative pairs of a list, in order, None for a case without differences.

    looks: how many cases of the whole list have each, most frequent first. clusters: the largest of n_clusters. A list
    of more than MAX_STORED cases has only so many pairs, no looks and no clusters.
    """

    pairs: list[ChosenPair | None]
    looks: dict[str, int]
    clusters: list[ToldCluster]
    n_clusters: int


def read_representatives(
    comparison_id: int, outcome: str, look: int | None = None, first: int = 0, up_to: int | None = None
) -> Representatives:
    """Return what is told of the cases that `case_outcomes` returns for the same. Raises NotFound.

    What is not kept yet is found now, and kept if the comparison has finished.
    """
    parts = _stored_part(outcome, look, first, up_to)
    stored = ComparisonRecord.objects.filter(pk=comparison_id).values_list(*parts).first()
    if stored is None or stored[0] is None:
        lists = _tell(comparison_id, look)
        if ComparisonRecord.objects.filter(pk=comparison_id, status=ComparisonRecord.Status.FINISHED).exists():
            keep(comparison_id, look, {"told": lists})
        known = lists[outcome]
        stored = known["pairs"][first:up_to], known["looks"], known["clusters"], known["n_clusters"]
    return _unpack(*stored)


def list_cases(
    comparison_id: int, outcome: str, look: int | None = None, first: int = 0, up_to: int | None = None
) -> tuple[CaseOutcomes, Representatives]:
    """Return `case_outcomes` and `read_representatives`, in one statement if both are stored."""
    what = outcome, look, first, up_to
    row = (
        ComparisonRecord.objects.filter(pk=comparison_id).values_list(*kept_cases(*what), *_stored_part(*what)).first()
    )
    if row is None or row[1] is None or row[2] is None:
        return case_outcomes(comparison_id, *what), read_representatives(comparison_id, *what)
    return unpack_cases(outcome, *row[:2]), _unpack(*row[2:])


def _stored_part(outcome: str, look: int | None, first: int, up_to: int | None) -> list[Expression]:
    """Return where `ComparisonRecord.outcomes` has the fields of Representatives, NULL if not stored."""
    part = KeyTransform(outcome, KeyTransform("told", kept_at(look)))
    others = (KeyTransform(name, part) for name in ("looks", "clusters", "n_clusters"))
    return [JsonPart(KeyTransform("pairs", part), first, up_to), *others]


def _unpack(
    pairs: Iterable[Sequence[Any] | None],
    looks: Iterable[tuple[str, int]],
    clusters: Iterable[Sequence[Any]],
    n_clusters: int,
) -> Representatives:
    chosen = [None if pair is None else ChosenPair(*pair) for pair in pairs]
    return Representatives(chosen, dict(looks), [ToldCluster(*cluster) for cluster in clusters], n_clusters)


def store_representatives(comparison_id: int) -> None:
    """Summarise the cases over all repeats, and store it, for a comparison with all pairs stored."""
    keep(comparison_id, None, {"told": _tell(comparison_id, None)})


def choose_pairs(
    comparison_id: int, case_indexes: Sequence[int], *, buckets: tuple[int, int] | None = None
) -> dict[int, ChosenPair]:
    """Return by case index the pair of its gravest ones that parts as most of them do.

    A case whose pairs are all the same is not there. buckets: only pairs that these two answered. As many statements
    for one case as for all.
    """
    rows = DivergenceRecord.objects.filter(comparison=comparison_id, case_index__in=list(case_indexes)).order_by()
    if buckets is not None:
        rows = rows.filter(evidence__buckets=list(buckets))
    moved = Max(Cast(KeyTextTransform("movement", "evidence"), FloatField()))
    alike = rows.values(*PARTED_ALIKE).annotate(n=Count("pk"), first=Min("pk"), movement=moved)
    chosen = choose_gravest(AlikeRows(**each) for each in alike)
    reasons = _read_reasons([pair.row for pair in chosen.values()])
    return {case: pair._replace(reason=reasons.get(pair.row, "")) for case, pair in chosen.items()}


def _tell(comparison_id: int, look: int | None) -> dict[str, dict[str, Any]]:
    """Return by outcome the fields of Representatives as `ComparisonRecord.outcomes` stores them.

    Looks are pairs, because JSON has no order.
    """
    lists = {each: case_outcomes(comparison_id, outcome=each, look=look, up_to=MAX_STORED) for each in CASE_OUTCOMES}
    chosen = choose_pairs(comparison_id, [case.case_index for listed in lists.values() for case in listed.cases])
    return {outcome: _tell_list(listed, chosen) for outcome, listed in lists.items()}


def _tell_list(listed: CaseOutcomes, chosen: dict[int, ChosenPair]) -> dict[str, Any]:
    pairs = [chosen.get(case.case_index) for case in listed.cases]
    is_whole = listed.n <= MAX_STORED
    clusters = cluster_pairs(pairs) if is_whole else []
    return {
        "pairs": pairs,
        "looks": count_looks(pair for pair in pairs if pair is not None) if is_whole else [],
        "clusters": [each for each in clusters if each.n_cases >= MIN_CLUSTER][:CLUSTERS_SHOWN],
        "n_clusters": len(clusters),
    }


def _read_reasons(rows: Sequence[int]) -> dict[int, str]:
    """Return the reasons of the candidate's newest scores, by the keys of the pairs' rows."""
    names = (
        *("pk", "comparison__baseline", "comparison__candidate", "comparison__treatment", "comparison__pair_by"),
        *("comparison__summary__sides__candidate__judged_again", "repeat_candidate", "case_index"),
    )
    places = {key: part for key, *part in DivergenceRecord.objects.filter(pk__in=rows).values_list(*names)}
    if not places:
        return {}
    [(*runs, treatment, pair_by, scored_by)] = {tuple(part[:5]) for part in places.values()}
    others = find_others((runs[0], runs[1]), {case for *_, case in places.values()}, Terms(treatment, pair_by))
    repeats = sorted({repeat for *_, repeat, _ in places.values()})
    packed = bulk.stream_binary(REASONS, [scored_by, runs[1], repeats])
    known = {repeat: unpack_reasons(each) for repeat, each in packed}
    return {key: known[repeat][others[case]] or "" for key, (*_, repeat, case) in places.items() if repeat in known}
