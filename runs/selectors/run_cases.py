"""The cases of a run over its repeats, read from packed columns; no response is read but missing ones."""

import json
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from django.db.models import Q, TextField
from django.db.models.functions import Cast
from numpy.typing import NDArray

from evalboard.core import columns, fragility, live_answers
from evalboard.core.errors import NotFound
from runs.models import Case, CaseColumns, Repeat, RepeatScore, Response, Run
from runs.selectors.run import CaseRow
from runs.selectors.run_scores import case_buckets, digest_table

PROMPT_SHOWN = 400  # characters; the case's own page has the whole


@dataclass(frozen=True, slots=True)
class _Table:
    """The run's cases as columns.

    scores: float64[n_cases, k], NaN where missing or not scored yet. marks: uint8[n_cases, k], as core.live_answers has
    them. is_missing: bool[n_cases], for repeats that have ended or failed on the case. score_ids: the RepeatScore of
    each repeat, or None. is_mixed: bool[n_cases], whether several buckets answered. n_texts, n_traces: int64[n_cases].
    flip_chances: float32[n_cases], NaN where unknown.
    """

    scores: NDArray[np.float64]
    marks: NDArray[np.uint8]
    is_missing: NDArray[np.bool_]
    score_ids: tuple[int | None, ...]
    is_mixed: NDArray[np.bool_]
    n_texts: NDArray[np.int64]
    n_traces: NDArray[np.int64]
    flip_chances: NDArray[np.float32]
    error_codes: dict[int, tuple[str, ...]]

    @property
    def is_unstable(self) -> NDArray[np.bool_]:
        """Cases of which two draws or more have scores that differ."""
        drawn = live_answers.drawn(self.scores, self.marks)
        first = np.where(np.isnan(drawn), np.inf, drawn).min(axis=1, initial=np.inf)
        last = np.where(np.isnan(drawn), -np.inf, drawn).max(axis=1, initial=-np.inf)
        return np.asarray(last > first)

    @property
    def is_left_out(self) -> NDArray[np.bool_]:
        """Cases with an answer that is no draw."""
        found: NDArray[np.bool_] = np.any(live_answers.is_left_out(self.marks), axis=1)
        return found

    @property
    def is_likely_to_flip(self) -> NDArray[np.bool_]:
        """Cases whose margins in the first repeat say so."""
        return fragility.is_likely(self.flip_chances)

    @property
    def is_failed(self) -> NDArray[np.bool_]:
        """Cases with a score below 1 in some repeat."""
        found: NDArray[np.bool_] = np.any(self.scores < 1, axis=1)
        return found

    @property
    def is_passed(self) -> NDArray[np.bool_]:
        """Cases scored 1 in every repeat that is scored, and missing in none."""
        found: NDArray[np.bool_] = np.any(self.scores == 1, axis=1) & ~self.is_failed & ~self.is_missing
        return found


def case_rows(
    run_id: int, *, query: str = "", only: str = "", offset: int = 0, limit: int = 100
) -> tuple[CaseRow, ...]:
    """Cases of a run: unstable first, then missing, then failed, then the rest by index. Raises NotFound.

    `query` is looked for in case ids, prompts and tags; `only` is "", "unstable", "likely", "failed", "passed",
    "missing" or "left_out". Failed is scored below 1 in some repeat, passed is 1 in every repeat; left out has answers
    that are no draws; those likely to flip come the likeliest first.
    """
    run = _run(run_id)
    table = _read(run)
    return _rows(run, table, _wanted(run, table, query, only)[offset : offset + limit])


def case_page(
    run_id: int,
    *,
    query: str = "",
    only: str = "",
    after: int | None = None,
    before: int | None = None,
    limit: int = 50,
) -> tuple[CaseRow, ...]:
    """The same in the suite's order: cases beyond the index `after`, or the nearest ones before `before`."""
    run = _run(run_id)
    table = _read(run)
    found = sorted(_wanted(run, table, query, only))
    if before is not None:
        return _rows(run, table, [index for index in found if index < before][-limit:])
    return _rows(run, table, [index for index in found if after is None or index > after][:limit])


def _run(run_id: int) -> Run:
    run = Run.objects.select_related("suite_version").filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    return run


def _rows(run: Run, table: _Table, shown: list[int]) -> tuple[CaseRow, ...]:
    cases = Case.objects.filter(suite_version=run.suite_version_id, index__in=shown)
    by_index = {case.index: case for case in cases}
    reasons = _reasons(table, shown)
    is_unstable = table.is_unstable
    return tuple(_row(by_index[index], table, reasons.get(index, ""), is_unstable[index]) for index in shown)


def case_indexes(run: Run, *, query: str = "", only: str = "") -> list[int]:
    """The indexes of the cases that `case_rows` has for the same filters, in its order."""
    return _wanted(run, _read(run), query, only)


def _read(run: Run) -> _Table:
    n_cases = run.suite_version.n_cases
    indexes = list(Repeat.objects.filter(run=run).order_by("index").values_list("index", flat=True))
    place = {index: position for position, index in enumerate(indexes)}
    scores = np.full((n_cases, len(indexes)), np.nan)
    score_ids: list[int | None] = [None] * len(indexes)
    is_missing = np.zeros(n_cases, dtype=bool)
    own = RepeatScore.objects.filter(repeat__run=run, scorer=run.suite_version.scorer_id)
    for pk, index, packed in own.values_list("pk", "repeat__index", "scores"):
        scores[:, place[index]] = values = columns.unpack_scores(bytes(packed))
        score_ids[place[index]] = pk
        is_missing |= np.isnan(values)
    marks = np.zeros((n_cases, len(indexes)), np.uint8)
    packed_columns = CaseColumns.objects.filter(repeat__run=run)
    texts, traces, served = [], [], []
    flip_chances = np.full(n_cases, fragility.UNKNOWN, dtype=np.float32)
    names = ("repeat__index", "text_digests", "trace_digests", "flip_chances", "marks", "buckets", "bucket_ids")
    for index, text, trace, chances, marked, buckets, bucket_ids in packed_columns.values_list(*names):
        marks[:, place[index]] = columns.unpack_marks(None if marked is None else bytes(marked), n_cases)
        texts.append(digest_table(text))
        traces.append(digest_table(trace))
        served.append(case_buckets(buckets, bucket_ids))
        if chances is not None:
            flip_chances = columns.unpack_chances(bytes(chances), n_cases)
    error_codes = _error_codes(run)
    is_missing[list(error_codes)] = True
    return _Table(
        scores=scores,
        marks=marks,
        is_missing=is_missing,
        score_ids=tuple(score_ids),
        is_mixed=_is_mixed(served, n_cases),
        n_texts=_n_different(texts, n_cases),
        n_traces=_n_different(traces, n_cases),
        flip_chances=flip_chances,
        error_codes=error_codes,
    )


def _error_codes(run: Run) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = defaultdict(list)
    failed = Response.objects.filter(repeat__run=run).exclude(error_code="").order_by("case_index", "error_code")
    for index, code in failed.values_list("case_index", "error_code").distinct():
        found[index].append(code)
    return {index: tuple(codes) for index, codes in found.items()}


def _is_mixed(served: list[NDArray[np.int64]], n_cases: int) -> NDArray[np.bool_]:
    """bool[n_cases]: whether two repeats of a case came from two buckets; one that is missing came from none."""
    if not served:
        return np.zeros(n_cases, dtype=bool)
    table = np.column_stack(served)
    last = table.max(axis=1)
    found: NDArray[np.bool_] = np.where(table < 0, last[:, None], table).min(axis=1) != last
    return found


def _n_different(digests: list[NDArray[np.uint8]], n_cases: int) -> NDArray[np.int64]:
    """How many different digests each case has; zero bytes stand for a missing response and count as none."""
    if not digests:
        return np.zeros(n_cases, dtype=np.int64)
    # All have 16 bytes, so numpy's habit of ignoring trailing zeros can make no two of them equal.
    table = np.sort(np.column_stack([np.ascontiguousarray(one).view("S16")[:, 0] for one in digests]), axis=1)
    is_new = np.column_stack([table[:, :1] != b"", (table[:, 1:] != table[:, :-1]) & (table[:, 1:] != b"")])
    found: NDArray[np.int64] = np.sum(is_new, axis=1, dtype=np.int64)
    return found


def _wanted(run: Run, table: _Table, query: str, only: str) -> list[int]:
    """The indexes that are asked for, in the order in which they are shown."""
    kinds = {
        "unstable": table.is_unstable,
        "likely": table.is_likely_to_flip,
        "missing": table.is_missing,
        "failed": table.is_failed,
        "passed": table.is_passed,
        "left_out": table.is_left_out,
    }
    keep = kinds[only].copy() if only in kinds else np.ones(len(table.is_missing), dtype=bool)
    if query:
        found = np.zeros_like(keep)
        found[_matching(run, query)] = True
        keep &= found
    if only == "likely":
        rank = -table.flip_chances
    else:
        rank = np.select([kinds["unstable"], kinds["missing"], kinds["failed"]], [0, 1, 2], default=3)
    order = np.argsort(rank, kind="stable")
    return [int(index) for index in order[keep[order]]]


def _matching(run: Run, query: str) -> list[int]:
    plain = query.replace("\0", "")
    cases = Case.objects.filter(suite_version=run.suite_version_id).annotate(
        words=Cast("content__messages", TextField()), tag_words=Cast("tags", TextField())
    )
    # The text of a JSON value escapes quotes and backslashes, so they are looked for as they stand there.
    escaped = json.dumps(plain, ensure_ascii=False)[1:-1]
    matches = Q(case_id__icontains=plain) | Q(words__icontains=escaped) | Q(tag_words__icontains=escaped)
    return list(cases.filter(matches).values_list("index", flat=True))


def _reasons(table: _Table, shown: list[int]) -> dict[int, str]:
    """For each case the reason of the first repeat with the lowest score; other repeats' reasons stay packed."""
    wanted: dict[int, list[int]] = defaultdict(list)
    for index in shown:
        row = table.scores[index]
        if not np.isnan(row).all() and (score_id := table.score_ids[int(np.nanargmin(row))]) is not None:
            wanted[score_id].append(index)
    found: dict[int, str] = {}
    for pk, packed in RepeatScore.objects.filter(pk__in=wanted).values_list("pk", "reasons"):
        reasons = columns.unpack_reasons(bytes(packed))
        found.update({index: reasons[index] or "" for index in wanted[pk]})
    return found


def _row(case: Case, table: _Table, reason: str, is_unstable: np.bool_) -> CaseRow:
    index = case.index
    known = [float(value) for value in table.scores[index] if not np.isnan(value)]
    return CaseRow(
        index=index,
        case_id=case.case_id,
        prompt=prompt_of(case),
        tags=tuple(case.tags),
        scores=tuple(None if np.isnan(value) else float(value) for value in table.scores[index]),
        mean=sum(known) / len(known) if known and not table.is_mixed[index] else None,
        reason=reason,
        n_texts=int(table.n_texts[index]),
        n_traces=int(table.n_traces[index]),
        error_codes=table.error_codes.get(index, ()),
        is_unstable=bool(is_unstable),
        flip_chance=None if np.isnan(table.flip_chances[index]) else float(table.flip_chances[index]),
        is_likely_to_flip=bool(table.flip_chances[index] > fragility.LIKELY),
        marks=tuple(live_answers.names_of(mark) for mark in table.marks[index].tolist()),
    )


def prompt_of(case: Case) -> str:
    """The last message of a case, cut to what a list has room for."""
    content = case.content["messages"][-1].get("content") or ""
    return content if len(content) <= PROMPT_SHOWN else content[:PROMPT_SHOWN] + "…"
