"""Read the differing pairs of a comparison, worst first; a pair's neighbours; cases by outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import or_
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BooleanField, Count, Func, Q, QuerySet, Subquery
from django.db.models.fields.json import KeyTransform

from evalboard.compared.pairs import ORDER, WIDTHS, ListedCase, write_pair
from evalboard.compared.report import NO_SIDES, to_points
from evalboard.contract.compare import SIDES, CaseOutcome, ComparedCase
from evalboard.contract.treatments import Terms
from evalboard.core.compare import SCORE_MISSING
from evalboard.core.errors import NotFound
from evalboard.core.trace import Vocabulary
from evalboard.wording.replay import replay_command
from runs.compare.outcomes import CaseScores, JudgedCase
from runs.compare.read import name_backends, pair_path
from runs.models import Case, ComparisonRecord, DivergenceRecord
from runs.pairs import stored_words
from runs.run import prompt_of

PAGE_ROWS = 150  # pairs; where five repeats are alike, 30 lines
COUNTED = 10_000  # rows; beyond, "more than 10,000" is all that is said of how many match

LOADED = (
    *("baseline_repeat", "candidate_repeat", "status", "treatment", "pair_by"),
    *(f"{side}__{name}" for side in SIDES for name in ("suite_version", "source", "is_reported", "endpoint__slug")),
)


class _IsAnyOf(Func):
    """A test for a value in an array, which uses the index, unlike IN (SELECT …)."""

    template, arg_joiner, output_field = "%(expressions)s)", " = ANY(", BooleanField()


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceFilter:
    """Which pairs are wanted; "" and None are "any".

    is_changed: whether the score changed. backend: what those of both sides are called, "A-B". cluster: a
    cluster's key. query: part of a case id.
    """

    cause: str = ""
    is_changed: bool | None = None
    tag: str = ""
    backend: str = ""
    cluster: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class DivergencePage:
    """One page; numbers count from 1.

    n_found, of pairs, is exact up to COUNTED, beyond which has_more_than_counted is set and n_cases is None.
    """

    rows: tuple[ComparedCase, ...]
    page: int
    n_pages: int
    n_found: int
    n_cases: int | None
    has_more_than_counted: bool


@dataclass(frozen=True, slots=True)
class CaseLink:
    """Where `n` and `p` lead: a pair's address pieces."""

    case_id: str
    repeat_baseline: int
    repeat_candidate: int
    at: int | None


@dataclass(frozen=True, slots=True)
class Neighbours:
    previous: CaseLink | None
    next: CaseLink | None


def divergence_page(comparison_id: int, wanted: DivergenceFilter, *, page: int = 1) -> DivergencePage:
    """Read one page of the case list. `comparison_id` is the record's id. Raises NotFound."""
    stored = _load(comparison_id)
    matches = _matching(stored, wanted)
    n_found, n_cases = _count(stored, wanted, matches)
    n_pages = max(-(-min(n_found, COUNTED) // PAGE_ROWS), 1)
    page = min(max(page, 1), n_pages)
    rows = matches.order_by(*ORDER)[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    return DivergencePage(
        rows=_rows(stored, list(rows)),
        page=page,
        n_pages=n_pages,
        n_found=min(n_found, COUNTED),
        n_cases=n_cases,
        has_more_than_counted=n_found > COUNTED,
    )


def divergence_rows(
    comparison_id: int, wanted: DivergenceFilter, *, after: int | None = None, before: int | None = None, limit: int
) -> tuple[ComparedCase, ...]:
    """Read rows in list order after a place, or just before one. Raises NotFound."""
    stored = _load(comparison_id)
    matches = _matching(stored, wanted)
    if before is not None:
        rows = list(matches.filter(_beside(_unplaced(before), "lt")).order_by(*(f"-{name}" for name in ORDER))[:limit])
        return _rows(stored, rows[::-1])
    if after is not None:
        matches = matches.filter(_beside(_unplaced(after), "gt"))
    return _rows(stored, list(matches.order_by(*ORDER)[:limit]))


def n_divergences(comparison_id: int, wanted: DivergenceFilter) -> int:
    """Count the pairs that match, however many there are. Raises NotFound."""
    return _matching(_load(comparison_id), wanted).count()


def neighbours(
    comparison_id: int, *, case_id: str, repeats: tuple[int, int], wanted: DivergenceFilter | None = None
) -> Neighbours:
    """Find the differing cases before and after one in list order, each by its first pair.

    Cases stand by their first pairs, so that the next one's previous one is this case again; in a list of more than
    COUNTED pairs, by the nearest pairs. Where the pair itself does not differ, the list's first case is the next one.
    Raises NotFound.
    """
    stored = _load(comparison_id)
    matches = _matching(stored, wanted or DivergenceFilter())
    own = _rows_of_pair(stored, case_id, repeats).values_list(*ORDER).first()
    if own is None:
        return Neighbours(None, _link(stored, matches.order_by(*ORDER)))
    if matches.order_by()[: COUNTED + 1].count() <= COUNTED:
        firsts = matches.order_by("case_index", *ORDER).distinct("case_index")
        matches = DivergenceRecord.objects.filter(pk__in=firsts.values("pk"))
        own = matches.filter(case_index=own[1]).values_list(*ORDER).first() or own
    others = matches.exclude(case_index=own[1])
    backwards = [f"-{name}" for name in ORDER]
    return Neighbours(
        previous=_link(stored, others.filter(_beside(own, "lt")).order_by(*backwards)),
        next=_link(stored, others.filter(_beside(own, "gt")).order_by(*ORDER)),
    )


def outcome_rows(
    comparison_id: int, judged: Sequence[JudgedCase], *, chosen: Mapping[int, int] | None = None
) -> tuple[CaseOutcome, ...]:
    """Read cases of the baseline's suite version, each with the gravest of its pairs. Raises NotFound.

    chosen: by case index the key of the pair's row to show in its place; a case without one has no pair then.
    """
    stored = _load(comparison_id)
    indexes = [case.case_index for case in judged]
    cases = {case.index: case for case in stored.cases.filter(index__in=indexes)}
    if chosen is None:
        shown = _gravest_pairs(stored, indexes)
    else:
        shown = DivergenceRecord.objects.filter(pk__in=chosen.values()).order_by()
    pairs = {row.case_index: _row(stored, row, cases[row.case_index]) for row in shown}
    rows = []
    for each in judged:
        case, pair = cases[each.case_index], pairs.get(each.case_index)
        repeats = pair.repeats if pair else stored.repeats
        rows.append(
            CaseOutcome(
                case=case.case_id,
                scores_baseline=_points(each.baseline),
                scores_candidate=_points(each.candidate),
                chance=each.chance,
                is_beyond_chance=each.is_beyond_chance,
                cause=pair.cause if pair else None,
                url=pair_path(stored.runs, case.case_id, repeats, pair.at if pair else None, stored.terms),
                pair=pair,
                prompt=prompt_of(case),
                tags=tuple(case.tags),
            )
        )
    return tuple(rows)


def _points(scores: CaseScores) -> CaseScores:
    return tuple(map(to_points, scores))


def _gravest_pairs(stored: "_ListedPairs", case_indexes: Sequence[int]) -> QuerySet[DivergenceRecord]:
    """Return the gravest of each case's pairs; a case whose pairs are all the same has none."""
    rows = DivergenceRecord.objects.filter(comparison=stored.id, case_index__in=case_indexes)
    return rows.order_by("case_index", *ORDER).distinct("case_index")


@dataclass(frozen=True, eq=False)
class _ListedPairs:
    """A comparison with the context of its rows. repeats: of its pairs, 1 and 1 if it covers all.

    sides, causes: of its summary, of which a list needs no more.
    """

    id: int
    runs: tuple[int, int]
    repeats: tuple[int, int]
    terms: Terms
    suite_version_id: int
    sides: dict[str, Any]
    causes: list[dict[str, Any]]
    letters: dict[int, str]
    is_finished: bool
    are_logged: tuple[bool, bool]

    @property
    def cases(self) -> QuerySet[Case]:
        return Case.objects.filter(suite_version=self.suite_version_id).order_by()

    @property
    def words(self) -> list[Vocabulary | None]:
        ids = (self.sides[name]["vocabulary"] for name in SIDES)
        return [None if pk is None else stored_words(pk) for pk in ids]


def _load(comparison_id: int) -> _ListedPairs:
    related = ComparisonRecord.objects.select_related("baseline__endpoint", "candidate__endpoint").only(*LOADED)
    with_parts = related.annotate(
        own_sides=KeyTransform("sides", "summary"), own_causes=KeyTransform("causes", "summary")
    )
    row = with_parts.filter(pk=comparison_id).order_by().first()
    if row is None:
        raise NotFound(f"There is no comparison {comparison_id} any more; compare the two runs again.")
    sides = row.own_sides or NO_SIDES
    return _ListedPairs(
        id=row.pk,
        runs=(row.baseline_id, row.candidate_id),
        repeats=(row.baseline_repeat or 1, row.candidate_repeat or 1),
        terms=row.terms,
        suite_version_id=row.baseline.suite_version_id,
        sides=sides,
        causes=row.own_causes or [],
        letters=name_backends(sides, row.baseline, row.candidate),
        is_finished=row.status == ComparisonRecord.Status.FINISHED,
        are_logged=(row.baseline.is_of_elsewhere, row.candidate.is_of_elsewhere),
    )


def _matching(stored: _ListedPairs, wanted: DivergenceFilter) -> QuerySet[DivergenceRecord]:
    matches = DivergenceRecord.objects.filter(comparison=stored.id)
    if wanted.cause:
        matches = matches.filter(cause=wanted.cause)
    if wanted.is_changed is not None:
        matches = matches.filter(
            Q(consequence__lt=SCORE_MISSING) if wanted.is_changed else Q(consequence__gt=SCORE_MISSING)
        )
    if wanted.tag:
        differing = ArraySubquery(matches.order_by().values("case_index").distinct())
        tagged = stored.cases.filter(_IsAnyOf("index", differing), tags__contains=[wanted.tag])
        matches = matches.filter(case_index__in=list(tagged.values_list("index", flat=True)))  # read once for a page
    if wanted.query:
        plain = wanted.query.replace("\0", "")
        matches = matches.filter(case_index__in=stored.cases.filter(case_id__icontains=plain).values("index"))
    if wanted.backend:
        names = {**stored.letters, 0: ""}
        pairs = ((ours, theirs) for ours, theirs in product(names, names))
        both = {"-".join((names[ours], names[theirs])): [ours, theirs] for ours, theirs in pairs}
        matches = matches.filter(evidence__buckets=both.get(wanted.backend, [0, 0]))
    if wanted.cluster:
        matches = _in_cluster(matches, stored, wanted.cluster)
    return matches


def _in_cluster(matches: QuerySet[DivergenceRecord], stored: _ListedPairs, key: str) -> QuerySet[DivergenceRecord]:
    [clusters] = ComparisonRecord.objects.filter(pk=stored.id).values_list(
        KeyTransform("clusters", "summary"), flat=True
    )
    for cluster in clusters or ():
        if cluster["key"] == key:
            tokens = [Q(token_baseline=ours, token_candidate=theirs) for ours, theirs in cluster["tokens"]]
            return matches.filter(reduce(or_, tokens), cause=cluster["cause"], flip_position__isnull=False)
    return matches.none()


def _count(
    stored: _ListedPairs, wanted: DivergenceFilter, matches: QuerySet[DivergenceRecord]
) -> tuple[int, int | None]:
    """Count the pairs that match, and their cases; of more than COUNTED pairs only that, and None."""
    counted_by_cause: dict[str, dict[str, int]] = {count["cause"]: count for count in stored.causes}
    if stored.is_finished and wanted == DivergenceFilter(cause=wanted.cause, is_changed=wanted.is_changed):
        counts = [counted_by_cause.get(wanted.cause)] if wanted.cause else list(counted_by_cause.values())
        known = [count for count in counts if count is not None]
        n_changed = sum(count["n_score_changed"] for count in known)
        n_missing = sum(count["n_pairs"] for count in known if count is counted_by_cause.get("error"))
        n_all = sum(count["n_pairs"] for count in known)
        n = {None: n_all, True: n_changed, False: n_all - n_changed - n_missing}[wanted.is_changed]
        if n > COUNTED:  # the summary says so: nothing is counted
            return n, None
    counted = matches.order_by()[: COUNTED + 1].aggregate(n=Count("pk"), n_cases=Count("case_index", distinct=True))
    return counted["n"], None if counted["n"] > COUNTED else counted["n_cases"]


def _rows_of_pair(stored: _ListedPairs, case_id: str, repeats: tuple[int, int]) -> QuerySet[DivergenceRecord]:
    case = stored.cases.filter(case_id=case_id).values("index")[:1]
    return DivergenceRecord.objects.filter(
        comparison=stored.id, case_index=Subquery(case), repeat_baseline=repeats[0], repeat_candidate=repeats[1]
    )


def _beside(place: Sequence[int], side: str) -> Q:
    """Return rows before ("lt") or after ("gt") a place in the list's order."""
    beyond = Q(pk__in=[])
    for at, name in enumerate(ORDER):
        same = Q(**dict(zip(ORDER[:at], place[:at], strict=True)))
        beyond |= same & Q(**{f"{name}__{side}": place[at]})
    # What PostgreSQL can look for in the index; the rest only cuts within it.
    return Q(**{f"{ORDER[0]}__{side}e": place[0]}) & beyond


def _unplaced(place: int) -> list[int]:
    parts = []
    for width in reversed(WIDTHS):
        place, part = divmod(place, width)
        parts.append(part)
    return parts[::-1]


def _link(stored: _ListedPairs, rows: QuerySet[DivergenceRecord]) -> CaseLink | None:
    row = rows.first()
    if row is None:
        return None
    case_id = stored.cases.values_list("case_id", flat=True).get(index=row.case_index)
    at = row.drift_onset if row.flip_position is None else row.flip_position
    return CaseLink(case_id, row.repeat_baseline, row.repeat_candidate, at)


def _rows(stored: _ListedPairs, rows: list[DivergenceRecord]) -> tuple[ComparedCase, ...]:
    cases = {case.index: case for case in stored.cases.filter(index__in={row.case_index for row in rows})}
    return tuple(_row(stored, row, cases[row.case_index]) for row in rows)


def _replay(stored: _ListedPairs, case_id: str, repeats: tuple[int, int]) -> str:
    """Return the command to decode the candidate's case again, else the baseline's; "" for two logs."""
    for run, repeat, is_logged in reversed(list(zip(stored.runs, repeats, stored.are_logged, strict=True))):
        if not is_logged:
            return replay_command(run, case_id, repeat=repeat)
    return ""


def _row(stored: _ListedPairs, row: DivergenceRecord, case: Case) -> ComparedCase:
    repeats = row.repeat_baseline, row.repeat_candidate
    at = row.drift_onset if row.flip_position is None else row.flip_position
    listed = ListedCase(
        case=case.case_id,
        tags=tuple(case.tags),
        url=pair_path(stored.runs, case.case_id, repeats, at, stored.terms),
        replay=_replay(stored, case.case_id, repeats),
    )
    return write_pair(row, listed, stored.letters, stored.words)
