"""Read a page of a comparison's cases by outcome, with excerpts; clusters; and the worst cases."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models.fields.json import KeyTransform
from numpy.typing import NDArray

from evalboard.contract.compare import CaseOutcome
from evalboard.contract.excerpt import ShownCase
from evalboard.contract.treatments import Terms
from evalboard.core.compare import ChosenPair, count_looks
from evalboard.core.stats import CASE_OUTCOMES
from evalboard.core.trace import unpack_scores
from runs.compare.case_lists import CaseList, read_list
from runs.compare.inputs import MODEL_TERMS, find_others
from runs.compare.outcomes import CaseOutcomes, CaseScores, JudgedCase, case_outcomes
from runs.compare.read import drawn
from runs.compare.read_divergences import CaseLink, Neighbours, outcome_rows
from runs.compare.read_excerpts import equal_excerpts, pair_excerpts
from runs.compare.representatives import MAX_STORED, Representatives, choose_pairs, list_cases
from runs.models import Case, ComparisonRecord, DivergenceRecord, RepeatScore, RunRecord
from runs.run import search_case_indexes

MAX_PAGE = 10**6  # PostgreSQL counts the places of a list in 32 bits
N_WORST = 5
BY_CASE, BY_FLIP = "case", "flip"
SORTS = (BY_CASE, BY_FLIP)
LEADING = 200  # cases, the furthest moved first
MAX_ALIKE = 2  # of one cluster, so that five cases tell different stories

Scores = list[NDArray[np.float64]]  # by repeat, each of all cases
_Listed = tuple[JudgedCase, ChosenPair | None]
Chosen = Mapping[int, ChosenPair]  # by case index; a case whose pairs are all the same is not there


@dataclass(frozen=True, slots=True)
class OutcomeList:
    """Which cases to list: of an outcome, as in `case_outcomes`, or one of CASE_LISTS, filtered.

    at_look: by the first so many repeats of each side, of an outcome alone. look: what the numbers of the pair that
    stands for a case look like, or its cause where they say nothing. query: part of a case's id, prompt or tags, or of
    an answer of either run. "" is any. terms: of the comparison. buckets: only cases that differ between answers of
    these two. sort: one of SORTS; "": the furthest moved first.
    """

    comparison_id: int
    runs: tuple[int, int]
    outcome: str
    at_look: int | None = None
    look: str = ""
    query: str = ""
    terms: Terms = MODEL_TERMS
    buckets: tuple[int, int] | None = None
    sort: str = ""

    @property
    def is_whole(self) -> bool:
        """Return whether it lists every case of its outcome in the usual order."""
        return not (self.look or self.query or self.buckets or self.sort)


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One case. targeted: points of either side's repeats of chosen cases, which enter no score."""

    shown: ShownCase
    targeted: tuple[CaseScores, CaseScores]


@dataclass(frozen=True, slots=True)
class OutcomeCluster:
    """Cases whose pairs look alike and diverge at the same two tokens. reason: if common, else "".

    tag: the one that most of them have, which n_tagged have; "" if less than half have one.
    """

    token_baseline: str
    token_candidate: str
    look: str
    n_cases: int
    reason: str
    tag: str
    n_tagged: int


@dataclass(frozen=True, slots=True)
class OutcomeClusters:
    """The largest of n groups. tags: how many cases of the outcome have each, most frequent first."""

    clusters: tuple[OutcomeCluster, ...]
    n: int
    tags: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class OutcomePage:
    """One page of `n` cases.

    looks: how many of the cases under the search have each, most frequent first. counts: of each outcome, as in
    `CaseOutcomes`.
    """

    rows: tuple[OutcomeRow, ...]
    n: int
    page: int
    n_pages: int
    looks: dict[str, int]
    counts: dict[str, Any]


def outcome_page(wanted: OutcomeList, *, page: int = 1, limit: int) -> OutcomePage:
    """Read a page of cases in their order. Raises NotFound."""
    page = min(max(page, 1), MAX_PAGE)
    first = (page - 1) * limit
    judged, representatives = _read(wanted, first, first + limit) if wanted.is_whole else _read(wanted)
    indexes, n, looks = _indexes(judged.cases), judged.n, representatives.looks
    chosen = _by_case(indexes, representatives.pairs)
    if wanted.is_whole:
        cases = judged.cases[:]
    else:
        places, chosen, looks = _narrow(wanted, indexes, chosen, looks)
        cases, n = [judged.cases[place] for place in places[first : first + limit]], len(places)
    n_pages = max(-(-n // limit), 1)
    if page > n_pages:
        return outcome_page(wanted, page=n_pages, limit=limit)
    if judged.n > MAX_STORED:
        chosen = choose_pairs(wanted.comparison_id, [each.case_index for each in cases], buckets=wanted.buckets)
    targeted = _read_targeted(wanted)
    others = find_others(wanted.runs, [each.case_index for each in cases], wanted.terms) if targeted[1] else {}
    shown = shown_cases(wanted.comparison_id, wanted.runs, cases, chosen, query=wanted.query, terms=wanted.terms)
    rows = tuple(
        OutcomeRow(
            row, (_pick_case(targeted[0], each.case_index), _pick_case(targeted[1], others.get(each.case_index)))
        )
        for each, row in zip(cases, shown, strict=True)
    )
    return OutcomePage(rows, n, page, n_pages, looks, judged.counts)


def shown_cases(
    comparison_id: int,
    runs: tuple[int, int],
    cases: Sequence[JudgedCase],
    chosen: Chosen,
    *,
    query: str = "",
    terms: Terms = MODEL_TERMS,
) -> tuple[ShownCase, ...]:
    """Read cases with both answers around their divergence or the search's match. Raises NotFound."""
    pairs = {each.case_index: pair for each in cases if (pair := chosen.get(each.case_index))}
    rows = outcome_rows(comparison_id, cases, chosen={case: pair.row for case, pair in pairs.items()})
    parted = [row.pair for row in rows if row.pair]
    reasons = [pairs[pair.case_index].reason for pair in parted]
    excerpts = iter(pair_excerpts(runs, parted, reasons, query=query, terms=terms))
    alike = [each.case_index for each, row in zip(cases, rows, strict=True) if row.pair is None and _is_scored(row)]
    same = equal_excerpts(comparison_id, runs[0], alike)
    return tuple(
        ShownCase(
            outcome=row,
            n_alike=pairs[each.case_index].n_alike if row.pair else 0,
            n_pairs=pairs[each.case_index].n_pairs if row.pair else 0,
            excerpt=next(excerpts) if row.pair else same.get(each.case_index),
        )
        for each, row in zip(cases, rows, strict=True)
    )


def _is_scored(row: CaseOutcome) -> bool:
    return None not in (*row.scores_baseline, *row.scores_candidate)


def outcome_neighbours(wanted: OutcomeList, *, case_id: str) -> Neighbours:
    """Find the cases before and after one in the order of `outcome_page`; else the first.

    Raises NotFound.
    """
    judged, representatives = _read(wanted)
    every = _indexes(judged.cases)
    places, _, _ = _narrow(wanted, every, _by_case(every, representatives.pairs), representatives.looks)
    own = Case.objects.filter(suite_version__runs=wanted.runs[0], case_id=case_id).values_list("index", flat=True)
    indexes = [every[place] for place in places]
    at_own = next((indexes.index(index) for index in own if index in indexes), -1)
    beside = (
        judged.cases[places[at_own - 1]] if at_own > 0 else None,
        judged.cases[places[at_own + 1]] if at_own + 1 < len(places) else None,
    )
    links = _links(wanted.comparison_id, [each for each in beside if each is not None])
    return Neighbours(*(links.get(each.case_index) if each else None for each in beside))


def _links(comparison_id: int, cases: Sequence[JudgedCase]) -> dict[int, CaseLink]:
    chosen = {case: pair.row for case, pair in choose_pairs(comparison_id, [each.case_index for each in cases]).items()}
    pairs = [row.pair for row in outcome_rows(comparison_id, cases, chosen=chosen) if row.pair]
    return {pair.case_index: CaseLink(pair.case, *pair.repeats, pair.at) for pair in pairs}


def outcome_clusters(comparison_id: int, *, outcome: str) -> OutcomeClusters:
    """Return the largest groups of cases that part at the same two tokens, and the tags of all cases.

    Raises NotFound.
    """
    listed, representatives = list_cases(comparison_id, outcome, up_to=MAX_STORED)
    sides = KeyTransform("sides", "summary")
    vocabularies = (KeyTransform("vocabulary", KeyTransform(side, sides)) for side in ("baseline", "candidate"))
    run, ours, theirs = ComparisonRecord.objects.values_list("baseline", *vocabularies).get(pk=comparison_id)
    indexes = [each.case_index for each in listed.cases]
    tagged = Case.objects.filter(suite_version__runs=run, index__in=indexes).exclude(tags=[])
    tags: dict[int, list[str]] = dict(tagged.values_list("index", "tags"))
    members: dict[tuple[int | None, int | None, str], list[int]] = defaultdict(list)
    for index, pair in zip(indexes, representatives.pairs, strict=False):
        if pair is not None:
            members[pair.token_baseline, pair.token_candidate, pair.look].append(index)
    clusters = []
    for token, token_too, look, n_cases, reason in representatives.clusters:
        counts = _count_tags(tags, members[token, token_too, look])
        tag, n = next(iter(counts), ("", 0))
        tag, n = (tag, n) if 2 * n >= n_cases else ("", 0)
        clusters.append(OutcomeCluster(drawn(token, ours), drawn(token_too, theirs), look, n_cases, reason, tag, n))
    return OutcomeClusters(tuple(clusters), representatives.n_clusters, tuple(_count_tags(tags, indexes)))


def _count_tags(tags: Mapping[int, list[str]], indexes: Sequence[int]) -> list[tuple[str, int]]:
    return Counter(tag for index in indexes for tag in tags.get(index, ())).most_common()


def _read(wanted: OutcomeList, first: int = 0, up_to: int | None = None) -> tuple[CaseOutcomes, Representatives]:
    """Return these places of the list as it is before it is narrowed."""
    if wanted.outcome not in CASE_OUTCOMES:
        return _read_list(wanted, first, up_to)
    return list_cases(wanted.comparison_id, wanted.outcome, wanted.at_look, first, up_to)


def _read_list(wanted: OutcomeList, first: int, up_to: int | None) -> tuple[CaseOutcomes, Representatives]:
    """Return these places of a list of CASE_LISTS, with numeric causes up to MAX_STORED cases."""
    part, n = read_list(wanted.comparison_id, wanted.outcome, first, up_to)
    judged = CaseOutcomes(part, n, case_outcomes(wanted.comparison_id, "broken", up_to=1).counts)
    if n > MAX_STORED:
        return judged, Representatives([], {}, [], 0)
    every, _ = read_list(wanted.comparison_id, wanted.outcome)
    chosen = choose_pairs(wanted.comparison_id, _indexes(every))
    return judged, Representatives(
        [chosen.get(index) for index in _indexes(part)], dict(count_looks(chosen.values())), [], 0
    )


def _indexes(cases: Sequence[JudgedCase]) -> list[int]:
    return cases.indexes.tolist() if isinstance(cases, CaseList) else [each.case_index for each in cases]


def _by_case(indexes: Sequence[int], pairs: Sequence[ChosenPair | None]) -> Chosen:
    """Return the pairs by case; there are fewer of a long list."""
    return {index: pair for index, pair in zip(indexes, pairs, strict=False) if pair is not None}


def _narrow(
    wanted: OutcomeList, indexes: Sequence[int], chosen: Chosen, looks: dict[str, int]
) -> tuple[Sequence[int], Chosen, dict[str, int]]:
    """Return the places and pairs of cases that match search and look, and the looks under the search."""
    places: Sequence[int] = range(len(indexes))
    if wanted.query:
        matches = _search(wanted)
        places = [place for place, index in enumerate(indexes) if index in matches]
        is_short = len(places) <= MAX_STORED
        if is_short and len(indexes) > MAX_STORED:
            chosen = choose_pairs(wanted.comparison_id, [indexes[place] for place in places])
        pairs = (chosen[index] for place in places if (index := indexes[place]) in chosen)
        looks = dict(count_looks(pairs)) if is_short else {}
    if wanted.buckets:
        chosen = choose_pairs(wanted.comparison_id, [indexes[place] for place in places], buckets=wanted.buckets)
        places = [place for place in places if indexes[place] in chosen]
        looks = dict(count_looks(chosen.values()))
    if wanted.look:
        places = [place for place in places if (pair := chosen.get(indexes[place])) and pair.look == wanted.look]
    return _sort(wanted.sort, indexes, places, chosen), chosen, looks


def _sort(sort: str, indexes: Sequence[int], places: Sequence[int], chosen: Chosen) -> Sequence[int]:
    """Return the places in another order: of the suite, or of the positions at which the pairs flip."""
    if sort == BY_CASE:
        return sorted(places, key=indexes.__getitem__)
    if sort == BY_FLIP:
        rows = {pair.row: case for case, pair in chosen.items()}
        flips = DivergenceRecord.objects.filter(pk__in=rows).exclude(flip_position=None)
        positions: dict[int, float] = {rows[row]: at or 0 for row, at in flips.values_list("pk", "flip_position")}
        return sorted(places, key=lambda place: positions.get(indexes[place], math.inf))
    return places


def _search(wanted: OutcomeList) -> frozenset[int]:
    """Return the indexes of cases that match the search."""
    runs = RunRecord.objects.select_related("suite_version").in_bulk(wanted.runs)
    baseline, candidate = (runs[run] for run in wanted.runs)
    matches = search_case_indexes(baseline, wanted.query)
    if candidate.suite_version_id == baseline.suite_version_id:
        matches |= search_case_indexes(candidate, wanted.query)
    return matches


def _read_targeted(wanted: OutcomeList) -> tuple[Scores, Scores]:
    """Return each side's float64[k, n_cases] of repeats of chosen cases, NaN if not decoded."""
    scored = RepeatScore.objects.filter(repeat__run__in=wanted.runs, repeat__cases__isnull=False)
    rows = list(scored.values_list("repeat__run", "scorer__digest", "scores"))
    if not rows:
        return [], []
    judged_by = (f"summary__sides__{side}__scorer" for side in ("baseline", "candidate"))
    digests = ComparisonRecord.objects.values_list(*judged_by).get(pk=wanted.comparison_id)
    keys = [*zip(wanted.runs, digests, strict=True)]
    ours, theirs = ([unpack_scores(bytes(packed)) for *of, packed in rows if tuple(of) == key] for key in keys)
    return ours, theirs


def _pick_case(scores: Scores, case_index: int | None) -> CaseScores:
    values = [] if case_index is None else [float(each[case_index]) for each in scores]
    return tuple(100 * value for value in values if not math.isnan(value))


def worst_cases(
    comparison_id: int,
    runs: tuple[int, int],
    *,
    outcome: str,
    look: int | None = None,
    n: int = N_WORST,
    terms: Terms = MODEL_TERMS,
) -> tuple[ShownCase, ...]:
    """Return the first cases of a list, in its order.

    At most MAX_ALIKE part at the same two tokens for the same cause, as long as there are others; the first LEADING
    cases are weighed. runs, terms: those of the comparison. outcome, look: as `case_outcomes` has them. Raises
    NotFound.
    """
    leading, representatives = list_cases(comparison_id, outcome, look, up_to=LEADING)
    shown = _differing([*zip(leading.cases, representatives.pairs, strict=True)], n)
    chosen = {case.case_index: pair for case, pair in shown if pair}
    return shown_cases(comparison_id, runs, [case for case, _ in shown], chosen, terms=terms)


def _differing(listed: Sequence[_Listed], n: int) -> list[_Listed]:
    """Return the first n cases in order, at most MAX_ALIKE per cluster unless too few are left."""
    n_alike: Counter[object] = Counter()
    first: list[int] = []
    rest: list[int] = []
    for place, (_, pair) in enumerate(listed):
        story = pair and (pair.cause, pair.token_baseline, pair.token_candidate)
        n_alike[story] += 1
        (rest if story is not None and n_alike[story] > MAX_ALIKE else first).append(place)
    return [listed[place] for place in sorted([*first, *rest][:n])]
