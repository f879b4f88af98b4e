"""The cases of a run over its repeats, as they are kept; no response is read but missing ones, and no column."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import F, Func, Q, QuerySet, TextField, Value
from django.urls import reverse
from numpy.typing import NDArray

from evalboard.contract.base import finite
from evalboard.contract.response import CaseOfRun
from evalboard.core.errors import NotFound
from evalboard.core.stats import LIKELY_FLIP, UNKNOWN_CHANCE, list_mark_names
from evalboard.core.trace import unpack_chances
from runs.models import Case, CaseColumns, CaseFrame, Response, Run, RunFigures
from runs.run import figures
from runs.run.case_table import (
    FAILED,
    FRAME,
    LEFT_OUT,
    LIKELY,
    MISSING,
    MIXED,
    PASSED,
    UNSTABLE,
    Bits,
    Frame,
    make_table,
    unpack_bits,
    unpack_frame,
)
from runs.run.read_columns import read_columns
from runs.run.read_facts import RunFacts

PROMPT_SHOWN = 400  # characters; the case's own page has the whole
ONLY = {"unstable": UNSTABLE, "likely": LIKELY, "missing": MISSING, "failed": FAILED, "left_out": LEFT_OUT}


@dataclass(frozen=True, slots=True)
class Pick:
    """Which cases a list shows: unstable first, then missing, then failed, then the rest by index.

    `query` is looked for in case ids, prompts and tags; `only` is "", "unstable", "likely", "failed", "passed",
    "missing" or "left_out". Failed is scored below 1 in some repeat, passed is 1 in every repeat; left out has answers
    that are no draws; those likely to flip come the likeliest first.
    """

    query: str = ""
    only: str = ""
    offset: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is kept of a run's cases: the digest of its figures, the bits of each case, and how many repeats it has.

    error_codes: by index, of cases that some repeat has no answer of.
    """

    digest: str
    bits: Bits
    n_repeats: int
    error_codes: dict[int, tuple[str, ...]]


def case_rows(
    run_id: int, *, query: str = "", only: str = "", offset: int = 0, limit: int = 100
) -> tuple[CaseOfRun, ...]:
    """Read cases of a run as `Pick` has them. Raises NotFound."""
    run = _run(run_id)
    [rows] = _picked(run, _read(run), (Pick(query, only, offset, limit),))
    return rows


def case_lists(facts: RunFacts, picks: Sequence[Pick]) -> tuple[tuple[CaseOfRun, ...], ...]:
    """Read several lists of the cases of a run out of its facts."""
    run = facts.run
    return _picked(run, _from_row(run, facts.stored_figures, n_repeats=len(facts.repeats)), picks)


def _picked(run: Run, stored: _Stored, picks: Sequence[Pick]) -> tuple[tuple[CaseOfRun, ...], ...]:
    wanted = [_wanted(run, stored, each.query, each.only)[each.offset : each.offset + each.limit] for each in picks]
    lists = [indexes.tolist() for indexes in wanted]
    shown = sorted({index for indexes in lists for index in indexes})
    rows = dict(zip(shown, _rows(run, stored, shown), strict=True))
    return tuple(tuple(rows[index] for index in indexes) for indexes in lists)


def case_page(
    run_id: int,
    *,
    query: str = "",
    only: str = "",
    after: int | None = None,
    before: int | None = None,
    limit: int = 50,
) -> tuple[CaseOfRun, ...]:
    """Read cases in the suite's order: those beyond the index `after`, or the nearest ones before `before`."""
    run = _run(run_id)
    stored = _read(run)
    matches = np.sort(_wanted(run, stored, query, only))
    if before is not None:
        shown = matches[matches < before][-limit:]
    else:
        shown = matches[matches > (-1 if after is None else after)][:limit]
    return _rows(run, stored, shown.tolist())


def case_indexes(run: Run, *, query: str = "", only: str = "") -> list[int]:
    """Return the indexes of the cases that `case_rows` has for the same filters, in its order."""
    run = _run(run.pk)
    indexes: list[int] = _wanted(run, _read(run), query, only).tolist()
    return indexes


def _run(run_id: int) -> Run:
    run = Run.objects.select_related("suite_version__suite__policy", "profile").filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    return run


def _read(run: Run) -> _Stored:
    repeats = figures.read_packed(run)
    row = figures.kept_rows({run: repeats}, with_cases=True)[run.pk]
    return _from_row(run, row, n_repeats=len(repeats))


def _from_row(run: Run, row: RunFigures, *, n_repeats: int) -> _Stored:
    error_codes, bits = _error_codes(run), unpack_bits(bytes(row.cases)).copy()
    bits[list(error_codes)] |= MISSING
    return _Stored(row.digest, bits, n_repeats, error_codes)


def _error_codes(run: Run) -> dict[int, tuple[str, ...]]:
    codes: dict[int, list[str]] = defaultdict(list)
    failed = (
        Response.objects.filter(repeat__run=run, repeat__cases=None)
        .exclude(error_code="")
        .order_by("case_index", "error_code")
    )
    for index, code in failed.values_list("case_index", "error_code").distinct():
        codes[index].append(code)
    return {index: tuple(names) for index, names in codes.items()}


def _wanted(run: Run, stored: _Stored, query: str, only: str) -> NDArray[np.int64]:
    """Return the indexes of the cases to show, in the order in which they are shown."""
    bits = stored.bits
    if only == "passed":
        keep = (bits & (PASSED | FAILED | MISSING)) == PASSED
    else:
        keep = (bits & ONLY[only]) != 0 if only in ONLY else np.ones(len(bits), bool)
    if query:
        matches = np.zeros_like(keep)
        cases = Case.objects.filter(suite_version=run.suite_version_id)
        matches[list(search_cases(cases, query).values_list("index", flat=True))] = True
        keep &= matches
    shown = np.flatnonzero(keep)
    if only == "likely" and len(shown):
        rank = -_flip_chances(run)[shown]
    else:
        kinds = [(bits[shown] & bit) != 0 for bit in (UNSTABLE, MISSING, FAILED)]
        rank = np.select(kinds, [0, 1, 2], default=3).astype(np.uint8)
    return np.asarray(shown[np.argsort(rank, kind="stable")])


def _flip_chances(run: Run) -> NDArray[np.float32]:
    """float32[n_cases], of the last repeat that has some, NaN where unknown."""
    columns = CaseColumns.objects.filter(repeat__run=run).exclude(flip_chances=None).order_by("-repeat__index")
    packed = columns.values_list("flip_chances", flat=True).first()
    n_cases = run.suite_version.n_cases
    return np.full(n_cases, UNKNOWN_CHANCE, np.float32) if packed is None else unpack_chances(bytes(packed), n_cases)


def search_cases(cases: QuerySet[Case], query: str) -> QuerySet[Case]:
    """Narrow cases to those that hold these words in their id, a message or a tag, in capitals or not."""
    plain = query.replace("\0", "")
    messages = Func(F("content"), Value("$.messages[*].content"), function="jsonb_path_query_array")
    worded = cases.annotate(words=_OneText(messages), tag_words=_OneText(F("tags")))
    matches = Q(case_id__icontains=plain) | Q(words__icontains=plain) | Q(tag_words__icontains=plain)
    return worded.filter(matches)


class _OneText(Func):
    """The texts of a JSON list as one text, each on a line of its own."""

    template = "(SELECT string_agg(each.value, chr(10)) FROM jsonb_array_elements_text(%(expressions)s) AS each)"
    output_field = TextField()


def _rows(run: Run, stored: _Stored, shown: list[int]) -> tuple[CaseOfRun, ...]:
    """Return the rows of cases; `shown`: their indexes, ascending."""
    cases = {case.index: case for case in Case.objects.filter(suite_version=run.suite_version_id, index__in=shown)}
    frames = _frames(run, stored, {index - index % FRAME for index in shown})
    return tuple(_row(run, cases[index], stored, frames[index - index % FRAME]) for index in shown)


def _frames(run: Run, stored: _Stored, firsts: Collection[int]) -> dict[int, Frame]:
    frames = CaseFrame.objects.filter(run=run, digest=stored.digest, first__in=firsts)
    packed = {first: bytes(data) for first, data in frames.values_list("first", "data")}
    if len(packed) < len(firsts):  # of a run that none are kept of, or others have replaced them since
        packed = dict(make_table(read_columns(run)).pack_frames())
    return {first: unpack_frame(packed[first], n_repeats=stored.n_repeats) for first in firsts}


def _row(run: Run, case: Case, stored: _Stored, frame: Frame) -> CaseOfRun:
    index, at = case.index, case.index % FRAME
    bits, chance = int(stored.bits[index]), float(frame.flip_chances[at])
    scores = tuple(finite(value) for value in frame.scores[at].tolist())
    known = [value for value in scores if value is not None]
    lowest = scores.index(min(known)) if known else 0
    return CaseOfRun(
        case=case.case_id,
        case_index=index,
        tags=tuple(case.tags),
        score=sum(known) / len(known) if known and not bits & MIXED else None,
        scores=scores,
        reason=frame.reasons[at] or None,
        errors=stored.error_codes.get(index, ()),
        marks=tuple(list_mark_names(mark) for mark in frame.marks[at].tolist()),
        n_texts=int(frame.n_texts[at]),
        is_unstable=bool(bits & UNSTABLE),
        flip_chance=finite(chance),
        url=reverse("response", args=[run.pk, lowest + 1, case.case_id]),
        prompt=prompt_of(case),
        n_traces=int(frame.n_traces[at]),
        is_likely_to_flip=chance > LIKELY_FLIP,
    )


def prompt_of(case: Case) -> str:
    """Return the last message of a case, cut to what a list has room for."""
    content = case.content["messages"][-1].get("content") or ""
    return content if len(content) <= PROMPT_SHOWN else content[:PROMPT_SHOWN] + "…"
