"""A page of the cases that broke, were fixed or are unstable, with both answers where they part, and its clusters."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import F
from numpy.typing import NDArray

from evalboard.contract.comparison import CaseOutcome
from evalboard.contract.excerpt import PairExcerpt, TellingPair
from evalboard.core.trace import unpack_scores
from runs.compare.outcomes import CaseScores, JudgedCase
from runs.compare.read_divergences import CaseLink, Neighbours, outcome_rows
from runs.compare.read_excerpts import pair_excerpts, telling_pairs
from runs.models import Case, Comparison, RepeatScore
from runs.run import search_case_indexes

MAX_READ = 2_000  # cases; of longer lists only a page is read, so that no cause or cluster is counted
CLUSTERS_SHOWN = 5
MIN_CLUSTER = 2  # cases

Scores = list[NDArray[np.float64]]  # by repeat, each of all cases


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One case. telling: the pair that stands for it, None where all its pairs are the same. excerpt: of that pair.

    targeted: in points, of either side's repeats of chosen cases alone, of which no score is made; empty without any.
    """

    case: CaseOutcome
    telling: TellingPair | None
    excerpt: PairExcerpt | None
    targeted: tuple[CaseScores, CaseScores]


@dataclass(frozen=True, slots=True)
class OutcomeCluster:
    """Cases whose telling pairs part at the same two tokens. reason: the scorer's where it says one thing of all that
    were read, else "".
    """

    token_baseline: str
    token_candidate: str
    look: str
    n_cases: int
    reason: str


@dataclass(frozen=True, slots=True)
class OutcomePage:
    """rows: one page of `n` cases. causes: how many of the cases under the search each look has, the most first."""

    rows: tuple[OutcomeRow, ...]
    n: int
    page: int
    n_pages: int
    causes: dict[str, int]


def outcome_page(
    comparison_id: int, judged: Sequence[JudgedCase], *, look: str = "", query: str = "", page: int = 1, limit: int
) -> OutcomePage:
    """Read a page of cases in their order. Raises NotFound.

    look: what the numbers of the telling pair look like, or its cause where they say nothing. query: part of a case's
    id, prompt or tags, or of an answer of either run.
    """
    searched = _search(comparison_id, judged, query) if query else list(judged)
    telling = telling_pairs(comparison_id, [each.case_index for each in searched]) if len(searched) <= MAX_READ else {}
    looks = Counter(look_of(pair) for pair in telling.values())
    wanted = _choose(searched, telling, look)
    n_pages = max(-(-len(wanted) // limit), 1)
    page = min(max(page, 1), n_pages)
    shown = wanted[(page - 1) * limit : page * limit]
    if len(searched) > MAX_READ:
        telling = telling_pairs(comparison_id, [each.case_index for each in shown])
    pairs = [telling[each.case_index].pair for each in shown if each.case_index in telling]
    cut = dict(zip((pair.case_index for pair in pairs), pair_excerpts(comparison_id, pairs), strict=True))
    cases = outcome_rows(comparison_id, shown)
    targeted = _read_targeted(comparison_id)
    rows = tuple(
        OutcomeRow(
            case,
            telling.get(each.case_index),
            cut.get(each.case_index),
            (_pick_case(targeted[0], each.case_index), _pick_case(targeted[1], each.case_index)),
        )
        for each, case in zip(shown, cases, strict=True)
    )
    return OutcomePage(rows, len(wanted), page, n_pages, dict(looks.most_common()))


def outcome_neighbours(
    comparison_id: int, judged: Sequence[JudgedCase], *, case_id: str, look: str = "", query: str = ""
) -> Neighbours:
    """Find the cases before and after one in the order of `outcome_page`; of one that is not there, the first is next.

    Raises NotFound.
    """
    searched = _search(comparison_id, judged, query) if query else list(judged)
    telling = telling_pairs(comparison_id, [each.case_index for each in searched]) if look else {}
    indexes = [each.case_index for each in _choose(searched, telling, look)]
    row = Comparison.objects.select_related("baseline").get(pk=comparison_id)
    cases = Case.objects.filter(suite_version=row.baseline.suite_version_id)
    own = cases.filter(case_id=case_id).values_list("index", flat=True).first()
    at = indexes.index(own) if own in indexes else -1
    before, after = (indexes[at - 1] if at > 0 else None), (indexes[at + 1] if at + 1 < len(indexes) else None)
    beside = telling_pairs(comparison_id, [index for index in (before, after) if index is not None])
    return Neighbours(*(_link(beside.get(-1 if index is None else index)) for index in (before, after)))


def _link(telling: TellingPair | None) -> CaseLink | None:
    return None if telling is None else CaseLink(telling.pair.case, *telling.pair.repeats, telling.pair.at)


def outcome_clusters(comparison_id: int, judged: Sequence[JudgedCase]) -> tuple[tuple[OutcomeCluster, ...], int]:
    """Group cases by the two tokens at which their telling pairs part: the largest groups, and how many there are."""
    if len(judged) > MAX_READ:
        return (), 0
    telling = telling_pairs(comparison_id, [each.case_index for each in judged])
    groups: dict[tuple[str, str, str], list[TellingPair]] = {}
    for pair in telling.values():
        if pair.pair.flip_position is not None:
            tokens = pair.pair.token_baseline, pair.pair.token_candidate
            groups.setdefault((*tokens, look_of(pair)), []).append(pair)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    largest = [(key, pairs) for key, pairs in ordered if len(pairs) >= MIN_CLUSTER][:CLUSTERS_SHOWN]
    samples = [pairs[: 2 * MIN_CLUSTER] for _, pairs in largest]
    cut = iter(pair_excerpts(comparison_id, [pair.pair for pairs in samples for pair in pairs]))
    clusters = []
    for ((ours, theirs, look), pairs), sample in zip(largest, samples, strict=True):
        reasons = {excerpt.reason for excerpt in (next(cut) for _ in sample) if excerpt is not None}
        reason = reasons.pop() if len(reasons) == 1 else ""
        clusters.append(OutcomeCluster(ours, theirs, look, len(pairs), reason))
    return tuple(clusters), len(groups)


def look_of(telling: TellingPair) -> str:
    """Return what the numbers of a pair look like, its cause where another stack or model hides it not."""
    return telling.pair.numeric or telling.pair.cause


def _choose(judged: Sequence[JudgedCase], telling: Mapping[int, TellingPair], look: str) -> Sequence[JudgedCase]:
    if not look:
        return judged
    return [each for each in judged if each.case_index in telling and look_of(telling[each.case_index]) == look]


def _read_targeted(comparison_id: int) -> tuple[Scores, Scores]:
    """Return either side's float64[k, n_cases] of repeats of chosen cases alone, NaN where not decoded."""
    sides = Comparison.objects.values_list("baseline_id", "candidate_id").get(pk=comparison_id)
    rows = RepeatScore.objects.filter(
        repeat__run__in=sides, repeat__cases__isnull=False, scorer=F("repeat__run__suite_version__scorer")
    )
    known = [(run, unpack_scores(bytes(packed))) for run, packed in rows.values_list("repeat__run", "scores")]
    ours, theirs = ([scores for run, scores in known if run == side] for side in sides)
    return ours, theirs


def _pick_case(scores: Scores, case_index: int) -> CaseScores:
    values = [float(each[case_index]) for each in scores]
    return tuple(100 * value for value in values if not math.isnan(value))


def _search(comparison_id: int, judged: Sequence[JudgedCase], query: str) -> list[JudgedCase]:
    row = Comparison.objects.select_related("baseline__suite_version", "candidate").get(pk=comparison_id)
    matches = search_case_indexes(row.baseline, query)
    if row.candidate.suite_version_id == row.baseline.suite_version_id:
        matches |= search_case_indexes(row.candidate, query)
    return [each for each in judged if each.case_index in matches]
