"""Which pair stands for each case of an outcome, what these look like together, and what their scorer said.

Found once, when a comparison is made or a list by fewer repeats is first read, and kept with the comparison: pages then
read the pairs alone that they show.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import Count, Expression, FloatField, Max, Min
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast

from evalboard.core.stats import CASE_OUTCOMES
from evalboard.core.trace import unpack_reasons
from runs.compare.outcomes import CaseOutcomes, JsonPart, case_outcomes, keep, kept_at, kept_cases, unpack_cases
from runs.models import Comparison, Divergence
from runs.store import bulk

MAX_TOLD = 2_000  # cases; of longer lists no look or cluster is counted, and the pairs of later cases are not kept
CLUSTERS_SHOWN = 5
MIN_CLUSTER = 2  # cases
SAMPLED = 4  # cases of a cluster whose reasons are held against each other

PARTED_ALIKE = ("case_index", "consequence", "cause", "numeric", "flip_position", "token_baseline", "token_candidate")
REASONS = """
SELECT repeat.index, score.reasons
  FROM runs_repeat AS repeat
  JOIN runs_run AS run ON run.id = repeat.run_id
  JOIN runs_suiteversion AS version ON version.id = run.suite_version_id
  JOIN runs_repeatscore AS score ON score.repeat_id = repeat.id AND score.scorer_id = version.scorer_id
 WHERE repeat.run_id = %s AND repeat.index = ANY(%s::bigint[])
"""


class ChosenPair(NamedTuple):
    """The pair that stands for a case, by the key of its row, and how many of the case's pairs part alike, of how many
    that differ.

    look: what its numbers look like, or its cause where they say nothing. tokens: those chosen at the flip, None where
    there is none. movement: how far the logits moved there, in nats; 0 where that is not known. reason: the
    candidate's scorer's, "" where it said nothing.
    """

    row: int
    n_alike: int
    n_pairs: int
    cause: str
    look: str
    token_baseline: int | None
    token_candidate: int | None
    movement: float
    reason: str


class ToldCluster(NamedTuple):
    """Cases whose pairs look alike and part at the same two tokens. reason: what the first SAMPLED have, else ""."""

    token_baseline: int
    token_candidate: int
    look: str
    n_cases: int
    reason: str


@dataclass(frozen=True, slots=True)
class Told:
    """Pairs in the order of the cases, None where those of a case are all the same; of the whole list how many cases
    have each look, the most first, and the largest clusters, of n_clusters. A list of more than MAX_TOLD cases has no
    more than as many pairs, no looks and no clusters.
    """

    pairs: list[ChosenPair | None]
    looks: dict[str, int]
    clusters: list[ToldCluster]
    n_clusters: int


def tell_cases(
    comparison_id: int, outcome: str, look: int | None = None, first: int = 0, up_to: int | None = None
) -> Told:
    """Return what is told of the cases that `case_outcomes` returns for the same. Raises NotFound.

    What is not kept yet is found now, and kept if the comparison has finished.
    """
    parts = _kept_told(outcome, look, first, up_to)
    stored = Comparison.objects.filter(pk=comparison_id).values_list(*parts).first()
    if stored is None or stored[0] is None:
        lists = _tell(comparison_id, look)
        if Comparison.objects.filter(pk=comparison_id, status=Comparison.Status.FINISHED).exists():
            keep(comparison_id, look, {"told": lists})
        known = lists[outcome]
        stored = known["pairs"][first:up_to], known["looks"], known["clusters"], known["n_clusters"]
    return _unpack_told(*stored)


def list_cases(
    comparison_id: int, outcome: str, look: int | None = None, first: int = 0, up_to: int | None = None
) -> tuple[CaseOutcomes, Told]:
    """Return what `case_outcomes` and `tell_cases` do for the same, in one statement where both are kept."""
    what = outcome, look, first, up_to
    row = Comparison.objects.filter(pk=comparison_id).values_list(*kept_cases(*what), *_kept_told(*what)).first()
    if row is None or row[1] is None or row[2] is None:
        return case_outcomes(comparison_id, *what), tell_cases(comparison_id, *what)
    return unpack_cases(outcome, *row[:2]), _unpack_told(*row[2:])


def _kept_told(outcome: str, look: int | None, first: int, up_to: int | None) -> list[Expression]:
    """Return where `Comparison.outcomes` keeps the fields of Told, NULL where it does not."""
    part = KeyTransform(outcome, KeyTransform("told", kept_at(look)))
    others = (KeyTransform(name, part) for name in ("looks", "clusters", "n_clusters"))
    return [JsonPart(KeyTransform("pairs", part), first, up_to), *others]


def _unpack_told(
    pairs: Iterable[Sequence[Any] | None],
    looks: Iterable[tuple[str, int]],
    clusters: Iterable[Sequence[Any]],
    n_clusters: int,
) -> Told:
    chosen = [None if pair is None else ChosenPair(*pair) for pair in pairs]
    return Told(chosen, dict(looks), [ToldCluster(*cluster) for cluster in clusters], n_clusters)


def keep_told(comparison_id: int) -> None:
    """Find what is told of the cases over all repeats, and keep it: of a comparison whose pairs are all stored."""
    keep(comparison_id, None, {"told": _tell(comparison_id, None)})


def choose_pairs(comparison_id: int, case_indexes: Sequence[int]) -> dict[int, ChosenPair]:
    """Return by case index the pair of its gravest ones that parts as most of them do.

    A case whose pairs are all the same is not there. As many statements for one case as for all.
    """
    rows = Divergence.objects.filter(comparison=comparison_id, case_index__in=list(case_indexes)).order_by()
    groups: dict[int, list[dict[str, Any]]] = {}
    moved = Max(Cast(KeyTextTransform("movement", "evidence"), FloatField()))
    for group in rows.values(*PARTED_ALIKE).annotate(n=Count("pk"), first=Min("pk"), moved=moved):
        groups.setdefault(group["case_index"], []).append(group)
    gravest = {
        case: min(alike, key=lambda group: (group["consequence"], -group["n"], group["first"]))
        for case, alike in groups.items()
    }
    reasons = _read_reasons([one["first"] for one in gravest.values()])
    return {
        case: ChosenPair(
            row=one["first"],
            n_alike=one["n"],
            n_pairs=sum(group["n"] for group in groups[case]),
            cause=one["cause"],
            look=one["numeric"] or one["cause"],
            token_baseline=one["token_baseline"],
            token_candidate=one["token_candidate"],
            movement=one["moved"] or 0.0,
            reason=reasons.get(one["first"], ""),
        )
        for case, one in gravest.items()
    }


def count_looks(pairs: Iterable[ChosenPair]) -> list[tuple[str, int]]:
    """Return how many pairs have each look, the most first; equal counts in the order of their names."""
    return sorted(Counter(pair.look for pair in pairs).items(), key=lambda each: (-each[1], each[0]))


def _tell(comparison_id: int, look: int | None) -> dict[str, dict[str, Any]]:
    """Return by outcome the fields of Told, as `Comparison.outcomes` keeps them; looks as pairs, for JSON keeps no
    order.
    """
    lists = {each: case_outcomes(comparison_id, outcome=each, look=look, up_to=MAX_TOLD) for each in CASE_OUTCOMES}
    chosen = choose_pairs(comparison_id, [case.case_index for listed in lists.values() for case in listed.cases])
    return {outcome: _tell_list(listed, chosen) for outcome, listed in lists.items()}


def _tell_list(listed: CaseOutcomes, chosen: dict[int, ChosenPair]) -> dict[str, Any]:
    pairs = [chosen.get(case.case_index) for case in listed.cases]
    is_whole = listed.n <= MAX_TOLD
    clusters = _find_clusters(pairs) if is_whole else []
    return {
        "pairs": pairs,
        "looks": count_looks(pair for pair in pairs if pair is not None) if is_whole else [],
        "clusters": [each for each in clusters if each.n_cases >= MIN_CLUSTER][:CLUSTERS_SHOWN],
        "n_clusters": len(clusters),
    }


def _find_clusters(pairs: Iterable[ChosenPair | None]) -> list[ToldCluster]:
    """Group cases by the two tokens at which their pairs part; the largest first."""
    groups: dict[tuple[int, int, str], list[ChosenPair]] = {}
    for pair in pairs:
        if pair is not None and pair.token_baseline is not None and pair.token_candidate is not None:
            groups.setdefault((pair.token_baseline, pair.token_candidate, pair.look), []).append(pair)
    clusters = []
    for key, alike in sorted(groups.items(), key=lambda group: -len(group[1])):
        reasons = {pair.reason for pair in islice(alike, SAMPLED)}
        clusters.append(ToldCluster(*key, len(alike), reasons.pop() if len(reasons) == 1 else ""))
    return clusters


def _read_reasons(rows: Sequence[int]) -> dict[int, str]:
    """Return what the candidate's own scorer said of pairs, by the keys of their rows."""
    places = {
        key: (run, repeat, case)
        for key, run, repeat, case in Divergence.objects.filter(pk__in=rows).values_list(
            "pk", "comparison__candidate", "repeat_candidate", "case_index"
        )
    }
    runs = {run for run, _, _ in places.values()}
    repeats = sorted({repeat for _, repeat, _ in places.values()})
    packed = bulk.stream_binary(REASONS, [runs.pop(), repeats]) if runs else ()
    known = {repeat: unpack_reasons(reasons) for repeat, reasons in packed}
    return {key: known[repeat][case] or "" for key, (_, repeat, case) in places.items() if repeat in known}
