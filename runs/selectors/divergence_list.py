"""The pairs of a comparison that differ, the gravest first, in pages; and the neighbours of one of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet, Subquery

from evalboard.core import cause_words
from evalboard.core.cause import Cause
from evalboard.core.comparison import MISSING
from evalboard.core.errors import NotFound
from runs.models import Case, Comparison, Divergence
from runs.selectors.comparison import NO_SIDES, drawn, letters
from runs.selectors.run_cases import prompt_of

PAGE_ROWS = 150  # pairs; where five repeats are alike, 30 lines
COUNTED = 10_000  # rows; beyond, "more than 10,000" is all that is said of how many match

ORDER = ("consequence", "case_index", "repeat_baseline", "repeat_candidate")
WIDTHS = (10**2, 10**8, 10**4, 10**4)  # of the parts of a place
OWN = {"buckets"}  # in a row's evidence, for this list alone


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceFilter:
    """Which pairs are wanted; "" and None are "any".

    is_changed: whether the score changed. backend: letters of the two sides' buckets, "A-B". cluster: a
    ClusterLine's key. query: part of a case id.
    """

    cause: str = ""
    is_changed: bool | None = None
    tag: str = ""
    backend: str = ""
    cluster: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class DivergenceRow:
    """One pair that differs. Positions count from 0, None is never (position) or not known (number).

    prompt: the last message, cut. words: the cause in a sentence. Tokens are drawn, "" where a side has none at the
    flip. n_tokens_*: lengths of the two traces. backend_*: the letters of the buckets. Margins and gap in nats,
    scores in [0, 1].
    """

    place: int
    case_index: int
    case_id: str
    prompt: str
    tags: tuple[str, ...]
    repeat_baseline: int
    repeat_candidate: int
    cause: str
    numeric: str
    words: str
    evidence: dict[str, Any]
    drift_onset: int | None
    flip_position: int | None
    text_position: int | None
    n_tokens_baseline: int | None
    n_tokens_candidate: int | None
    margin_baseline: float | None
    margin_candidate: float | None
    gap_at_onset: float | None
    token_baseline: str
    token_candidate: str
    score_baseline: float | None
    score_candidate: float | None
    backend_baseline: str
    backend_candidate: str

    @property
    def is_score_changed(self) -> bool:
        return None not in (self.score_baseline, self.score_candidate) and self.score_baseline != self.score_candidate

    @property
    def repeat(self) -> str:
        """As `?repeat=` takes it."""
        return f"{self.repeat_baseline},{self.repeat_candidate}"

    @property
    def at(self) -> int | None:
        """The position to open the trace diff at: the flip, else the onset."""
        return self.drift_onset if self.flip_position is None else self.flip_position


@dataclass(frozen=True, slots=True)
class DivergencePage:
    """One page; numbers count from 1. n_found is exact up to COUNTED, beyond which has_more_than_counted."""

    rows: tuple[DivergenceRow, ...]
    page: int
    n_pages: int
    n_found: int
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
    """One page of the case list. `comparison_id` is a ComparisonReport's id. Raises NotFound."""
    kept = _kept(comparison_id)
    found = _matching(kept, wanted)
    n_found = _n_found(kept, wanted, found)
    n_pages = max(-(-min(n_found, COUNTED) // PAGE_ROWS), 1)
    page = min(max(page, 1), n_pages)
    rows = found.order_by(*ORDER)[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    return DivergencePage(
        rows=_rows(kept, list(rows)),
        page=page,
        n_pages=n_pages,
        n_found=min(n_found, COUNTED),
        has_more_than_counted=n_found > COUNTED,
    )


def divergence_rows(
    comparison_id: int, wanted: DivergenceFilter, *, after: int | None = None, before: int | None = None, limit: int
) -> tuple[DivergenceRow, ...]:
    """Rows in the list's order beyond the place `after`, or the nearest before the place `before`. Raises NotFound."""
    kept = _kept(comparison_id)
    found = _matching(kept, wanted)
    if before is not None:
        rows = list(found.filter(_beside(_unplaced(before), "lt")).order_by(*(f"-{name}" for name in ORDER))[:limit])
        return _rows(kept, rows[::-1])
    if after is not None:
        found = found.filter(_beside(_unplaced(after), "gt"))
    return _rows(kept, list(found.order_by(*ORDER)[:limit]))


def n_divergences(comparison_id: int, wanted: DivergenceFilter) -> int:
    """How many pairs match, however many there are. Raises NotFound."""
    return _matching(_kept(comparison_id), wanted).count()


def divergence_row(comparison_id: int, *, case_id: str, repeats: tuple[int, int]) -> DivergenceRow | None:
    """One pair's row, None where its two responses are the same. Raises NotFound."""
    kept = _kept(comparison_id)
    rows = _of_pair(kept, case_id, repeats)
    found = _rows(kept, list(rows[:1]))
    return found[0] if found else None


def gravest_pairs(comparison_id: int, case_indexes: Iterable[int]) -> dict[int, DivergenceRow]:
    """By case index the gravest of the case's pairs; a case whose pairs are all the same is not there."""
    kept = _kept(comparison_id)
    rows = Divergence.objects.filter(comparison=kept.id, case_index__in=list(case_indexes))
    gravest = rows.order_by("case_index", *ORDER).distinct("case_index")
    return {row.case_index: row for row in _rows(kept, list(gravest))}


def neighbours(
    comparison_id: int, *, case_id: str, repeats: tuple[int, int], wanted: DivergenceFilter | None = None
) -> Neighbours:
    """The differing cases before and after one in the list's order: each link leads to another case.

    Where the pair itself does not differ, the list's first case is the next one. Raises NotFound.
    """
    kept = _kept(comparison_id)
    found = _matching(kept, wanted or DivergenceFilter())
    own = _of_pair(kept, case_id, repeats).values_list(*ORDER).first()
    if own is None:
        return Neighbours(None, _link(kept, found.order_by(*ORDER)))
    others = found.exclude(case_index=own[1])
    backwards = [f"-{name}" for name in ORDER]
    return Neighbours(
        previous=_link(kept, others.filter(_beside(own, "lt")).order_by(*backwards)),
        next=_link(kept, others.filter(_beside(own, "gt")).order_by(*ORDER)),
    )


@dataclass(frozen=True, eq=False)
class _Kept:
    """A comparison with what its rows stand for."""

    id: int
    suite_version_id: int
    summary: dict[str, Any]
    letters: dict[int, str]
    is_finished: bool

    @property
    def cases(self) -> QuerySet[Case]:
        return Case.objects.filter(suite_version=self.suite_version_id)

    @property
    def vocabularies(self) -> tuple[int | None, int | None]:
        sides = self.summary.get("sides", NO_SIDES)
        return sides["baseline"]["vocabulary"], sides["candidate"]["vocabulary"]


def _kept(comparison_id: int) -> _Kept:
    row = Comparison.objects.select_related("baseline").filter(pk=comparison_id).first()
    if row is None:
        raise NotFound(f"There is no comparison {comparison_id} any more; compare the two runs again.")
    is_finished = row.status == Comparison.Status.FINISHED
    return _Kept(row.pk, row.baseline.suite_version_id, row.summary, letters(row.summary), is_finished)


def _matching(kept: _Kept, wanted: DivergenceFilter) -> QuerySet[Divergence]:
    found = Divergence.objects.filter(comparison=kept.id)
    if wanted.cause:
        found = found.filter(cause=wanted.cause)
    if wanted.is_changed is not None:
        found = found.filter(Q(consequence__lt=MISSING) if wanted.is_changed else Q(consequence__gt=MISSING))
    if wanted.tag:
        found = found.filter(case_index__in=kept.cases.filter(tags__contains=[wanted.tag]).values("index"))
    if wanted.query:
        plain = wanted.query.replace("\0", "")
        found = found.filter(case_index__in=kept.cases.filter(case_id__icontains=plain).values("index"))
    if wanted.backend:
        ours, _, theirs = wanted.backend.partition("-")
        ids = {letter: bucket for bucket, letter in kept.letters.items()}
        found = found.filter(evidence__buckets=[ids.get(ours, 0), ids.get(theirs, 0)])
    if wanted.cluster:
        found = _of_cluster(found, kept, wanted.cluster)
    return found


def _of_cluster(found: QuerySet[Divergence], kept: _Kept, key: str) -> QuerySet[Divergence]:
    for cluster in kept.summary.get("clusters", ()):
        if cluster["key"] == key:
            tokens = [Q(token_baseline=ours, token_candidate=theirs) for ours, theirs in cluster["tokens"]]
            return found.filter(reduce(or_, tokens), cause=cluster["cause"], flip_position__isnull=False)
    return found.none()


def _n_found(kept: _Kept, wanted: DivergenceFilter, found: QuerySet[Divergence]) -> int:
    """How many match, COUNTED + 1 at most: from the summary where it says, else counted."""
    counted_by_cause: dict[str, dict[str, int]] = {count["cause"]: count for count in kept.summary.get("causes", ())}
    if kept.is_finished and wanted == DivergenceFilter(cause=wanted.cause, is_changed=wanted.is_changed):
        counts = [counted_by_cause.get(wanted.cause)] if wanted.cause else list(counted_by_cause.values())
        known = [count for count in counts if count is not None]
        n_changed = sum(count["n_score_changed"] for count in known)
        n_missing = sum(count["n_pairs"] for count in known if count is counted_by_cause.get("error"))
        n_all = sum(count["n_pairs"] for count in known)
        return {None: n_all, True: n_changed, False: n_all - n_changed - n_missing}[wanted.is_changed]
    return found.order_by()[: COUNTED + 1].count()


def _of_pair(kept: _Kept, case_id: str, repeats: tuple[int, int]) -> QuerySet[Divergence]:
    case = kept.cases.filter(case_id=case_id).values("index")[:1]
    return Divergence.objects.filter(
        comparison=kept.id, case_index=Subquery(case), repeat_baseline=repeats[0], repeat_candidate=repeats[1]
    )


def _beside(place: Sequence[int], side: str) -> Q:
    """Rows before ("lt") or after ("gt") a place in the list's order."""
    found = Q(pk__in=[])
    for at, name in enumerate(ORDER):
        same = Q(**dict(zip(ORDER[:at], place[:at], strict=True)))
        found |= same & Q(**{f"{name}__{side}": place[at]})
    # What PostgreSQL can look for in the index; the rest only cuts within it.
    return Q(**{f"{ORDER[0]}__{side}e": place[0]}) & found


def _place(row: Divergence) -> int:
    """The row's place in the list as one number, as cursors have it: at most 18 digits."""
    place: int = 0
    for name, width in zip(ORDER, WIDTHS, strict=True):
        place = place * width + min(int(getattr(row, name)), width - 1)
    return place


def _unplaced(place: int) -> list[int]:
    found = []
    for width in reversed(WIDTHS):
        place, part = divmod(place, width)
        found.append(part)
    return found[::-1]


def _link(kept: _Kept, rows: QuerySet[Divergence]) -> CaseLink | None:
    row = rows.first()
    if row is None:
        return None
    case_id = kept.cases.values_list("case_id", flat=True).get(index=row.case_index)
    at = row.drift_onset if row.flip_position is None else row.flip_position
    return CaseLink(case_id, row.repeat_baseline, row.repeat_candidate, at)


def _rows(kept: _Kept, rows: list[Divergence]) -> tuple[DivergenceRow, ...]:
    cases = {case.index: case for case in kept.cases.filter(index__in={row.case_index for row in rows})}
    return tuple(_row(kept, row, cases[row.case_index]) for row in rows)


def _row(kept: _Kept, row: Divergence, case: Case) -> DivergenceRow:
    evidence = {name: value for name, value in row.evidence.items() if name not in OWN}
    served = [kept.letters.get(bucket, "") for bucket in row.evidence["buckets"]]
    return DivergenceRow(
        place=_place(row),
        case_index=case.index,
        case_id=case.case_id,
        prompt=prompt_of(case),
        tags=tuple(case.tags),
        repeat_baseline=row.repeat_baseline,
        repeat_candidate=row.repeat_candidate,
        cause=row.cause,
        numeric=row.numeric,
        words=cause_words.words(Cause(row.cause, row.numeric or None, row.evidence)),
        evidence=evidence,
        drift_onset=row.drift_onset,
        flip_position=row.flip_position,
        text_position=row.evidence["text_position"],
        n_tokens_baseline=row.evidence["n_tokens_baseline"],
        n_tokens_candidate=row.evidence["n_tokens_candidate"],
        margin_baseline=row.margin_baseline,
        margin_candidate=row.margin_candidate,
        gap_at_onset=row.gap_at_onset,
        token_baseline=drawn(row.token_baseline, kept.vocabularies[0]),
        token_candidate=drawn(row.token_candidate, kept.vocabularies[1]),
        score_baseline=row.score_baseline,
        score_candidate=row.score_candidate,
        backend_baseline=served[0],
        backend_candidate=served[1],
    )
