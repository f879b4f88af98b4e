"""Read a run's cases over its repeats from cached frames; only missing responses are read."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from django.db.models import F, Func, Q, QuerySet, TextField, Value
from django.db.models.functions import Left
from numpy.typing import NDArray

from evalboard.contract.base import finite
from evalboard.contract.response import CaseOfRun
from evalboard.core.images import prompt_text
from evalboard.core.stats import LIKELY_FLIP, UNKNOWN_CHANCE, list_mark_names
from evalboard.core.trace import unpack_chances
from evalboard.path_converters import reverse_case
from runs.models import Case, CaseColumns, CaseFrame, ResponseRecord, RunFiguresRecord, RunRecord
from runs.pairs.pair_facts import names_on
from runs.run import figures
from runs.run.case_table import (
    BY_ENDING,
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
    find_unstable,
    make_table,
    unpack_bits,
    unpack_frame,
)
from runs.run.read_columns import read_columns
from runs.run.read_facts import RunFacts
from runs.store import NO_BUCKET, require_row

PROMPT_SHOWN = 400  # characters; the case's own page has the whole
ANSWER_SHOWN = 200  # likewise of an answer; the response's own page has the whole
MAX_SEARCHED = 50_000  # responses; the texts of more are not read for a list of cases
ONLY = {"likely": LIKELY, "failed": FAILED, "missing": MISSING, "left_out": LEFT_OUT, **BY_ENDING}
# Each case is one of these: the first that it is. Failed alike is below 1 without being unstable; what is incomplete
# lacks a response or a score.
KINDS = ("unstable", "failed_alike", "passed", "incomplete")


@dataclass(frozen=True, slots=True)
class MixedCases:
    """Columns of all cases over k repeats.

    served_by: int64[n, k], bucket ids, NO_BUCKET where missing. scores: float64[n, k], NaN where missing or not scored.
    marks: uint8[n, k]. letters: bucket id → its name on the endpoint, by how many responses each gave.
    """

    served_by: NDArray[np.int64]
    scores: NDArray[np.float64]
    marks: NDArray[np.uint8]
    letters: Mapping[int, str]

    def name_servers(self, case_index: int) -> tuple[str, ...]:
        """Return a letter for each repeat of a case, "" where it is missing."""
        return tuple(self.letters.get(bucket, "") for bucket in self.served_by[case_index].tolist())

    def answered_by(self, bucket: int) -> NDArray[np.bool_]:
        """Return bool[n], whether a bucket answered some repeat of each case."""
        return np.asarray((self.served_by == bucket).any(axis=1))

    def read_bits(self, bucket: int) -> Bits:
        """Return uint16[n], each case's bits by one bucket's responses; 0 if it did not answer."""
        own = np.where(self.served_by == bucket, self.scores, np.nan)
        flags = {
            UNSTABLE: find_unstable(own, self.marks),
            FAILED: (own < 1).any(axis=1),
            PASSED: (own == 1).any(axis=1),
        }
        bits = np.zeros(len(own), np.uint16)
        for bit, is_so in flags.items():
            bits[is_so] |= bit
        return bits

    def find_differing(self) -> NDArray[np.bool_]:
        """Return bool[n]: whether one bucket's mean score of a case is not another's."""
        low, high = np.full(len(self.scores), np.inf), np.full(len(self.scores), -np.inf)
        for bucket in self.letters:
            own = np.where(self.served_by == bucket, self.scores, np.nan)
            n_known = (~np.isnan(own)).sum(axis=1)
            mean = np.nansum(own, axis=1) / np.maximum(n_known, 1)
            low = np.where(n_known > 0, np.minimum(low, mean), low)
            high = np.where(n_known > 0, np.maximum(high, mean), high)
        return np.asarray(high - low > 1e-9)


@dataclass(frozen=True, slots=True)
class Pick:
    """The cases of a list: unstable first, then missing, then failed, then others by index.

    If several buckets answered the run, cases that they scored differently come first.

    `query` is searched in case ids, prompts and tags, and in the answers of runs that are not too large (MAX_SEARCHED).
    `only` is "", one of KINDS, "likely", "failed", "left_out", an ending of core.trace.NOTABLE or, for a run of several
    buckets, "differ". Failed is scored below 1 in some repeat, passed is 1 in every repeat; left out has answers that
    are no samples; those likely to flip are sorted by likelihood. `bucket`: only cases that one bucket answered, by its
    responses.
    """

    query: str = ""
    only: str = ""
    offset: int = 0
    limit: int = 100
    bucket: int | None = None


@dataclass(frozen=True, slots=True)
class CaseLists:
    """Several lists of a run's cases.

    counts: by value of `Pick.only`, how many cases the first pick would list; "differ" is counted without regard to a
    bucket. is_searched: whether a search includes answers. letters: bucket id → its letter, for a run of several;
    n_answered: how many cases each answered.
    """

    rows: tuple[tuple[CaseOfRun, ...], ...]
    counts: dict[str, int]
    letters: dict[int, str]
    n_answered: dict[int, int]
    n_cases: int
    is_searched: bool


@dataclass(frozen=True, slots=True)
class _StoredCases:
    """The cached data of a run's cases: digest of its figures, bits per case, number of repeats.

    error_codes: by index, of cases that some repeat has no answer of. mixed: None where one bucket served the run.
    """

    digest: str
    bits: Bits
    n_repeats: int
    error_codes: dict[int, tuple[str, ...]]
    mixed: MixedCases | None = None

    def bits_of(self, pick: Pick) -> Bits:
        return self.bits if self.mixed is None or pick.bucket is None else self.mixed.read_bits(pick.bucket)


def case_lists(facts: RunFacts, picks: Sequence[Pick]) -> CaseLists:
    """Read several lists of the cases of a run out of its facts, with the answers that they show."""
    run, is_mixed = facts.run, len(facts.buckets) > 1
    mixed = read_mixed_cases(run) if is_mixed else None
    # A log's responses that are not in it are no errors of the run, but are shown.
    codes = _error_codes(run) if run.source_id is not None or any(repeat.errors for repeat in facts.repeats) else {}
    stored = _from_row(facts.stored_figures, codes, n_repeats=len(facts.repeats), mixed=mixed)
    return CaseLists(
        rows=_picked(run, stored, picks),
        counts=_count(run, stored, picks[0]),
        letters=dict(mixed.letters) if mixed else {},
        n_answered={bucket: int(mixed.answered_by(bucket).sum()) for bucket in mixed.letters} if mixed else {},
        n_cases=len(stored.bits),
        is_searched=is_searched(len(stored.bits), stored.n_repeats),
    )


def _count(run: RunRecord, stored: _StoredCases, pick: Pick) -> dict[str, int]:
    listed = _match(run, stored, pick)
    counts = {name: int((listed & _is(stored, replace(pick, only=name))).sum()) for name in ("", *KINDS, *ONLY)}
    if stored.mixed is not None:
        counts["differ"] = len(_wanted(run, stored, replace(pick, only="differ", bucket=None)))
    return counts


def _picked(run: RunRecord, stored: _StoredCases, picks: Sequence[Pick]) -> tuple[tuple[CaseOfRun, ...], ...]:
    wanted = [_wanted(run, stored, each)[each.offset : each.offset + each.limit] for each in picks]
    lists = [indexes.tolist() for indexes in wanted]
    shown = sorted({index for indexes in lists for index in indexes})
    rows = dict(zip(shown, _rows(run, stored, shown), strict=True))
    answers = read_answers(run, {index: row.shown for index, row in rows.items()})
    rows = {index: row.model_copy(update={"answer": answers.get(index)}) for index, row in rows.items()}
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
    """Read cases in suite order: those after the index `after`, or just before `before`."""
    run = _run(run_id)
    stored = _read(run)
    matches = np.sort(_wanted(run, stored, Pick(query, only)))
    if before is not None:
        shown = matches[matches < before][-limit:]
    else:
        shown = matches[matches > (-1 if after is None else after)][:limit]
    return _rows(run, stored, shown.tolist())


def case_indexes(run: RunRecord, *, query: str = "", only: str = "") -> list[int]:
    """Return the indexes of the cases that a list has for the same filters, in its order."""
    run = _run(run.pk)
    indexes: list[int] = _wanted(run, _read(run), Pick(query, only)).tolist()
    return indexes


def _run(run_id: int) -> RunRecord:
    return require_row(
        RunRecord.objects.select_related("suite_version__suite__policy", "profile").filter(pk=run_id),
        f"There is no run {run_id}.",
    )


def _read(run: RunRecord) -> _StoredCases:
    repeats = figures.read_packed(run)
    row = figures.kept_rows({run: repeats}, with_cases=True)[run.pk]
    return _from_row(row, _error_codes(run), n_repeats=len(repeats))


def _from_row(
    row: RunFiguresRecord,
    error_codes: dict[int, tuple[str, ...]],
    *,
    n_repeats: int,
    mixed: MixedCases | None = None,
) -> _StoredCases:
    bits = unpack_bits(bytes(row.cases)).copy()
    bits[list(error_codes)] |= MISSING
    return _StoredCases(row.digest, bits, n_repeats, error_codes, mixed)


def _error_codes(run: RunRecord) -> dict[int, tuple[str, ...]]:
    codes: dict[int, list[str]] = defaultdict(list)
    failed = (
        ResponseRecord.objects.filter(repeat__run=run, repeat__cases=None)
        .exclude(error_code="")
        .order_by("case_index", "error_code")
    )
    for index, code in failed.values_list("case_index", "error_code").distinct():
        codes[index].append(code)
    return {index: tuple(names) for index, names in codes.items()}


def _wanted(run: RunRecord, stored: _StoredCases, pick: Pick) -> NDArray[np.int64]:
    """Return the indexes of the cases to show, in the order in which they are shown."""
    bits = stored.bits_of(pick)
    shown = np.flatnonzero(_match(run, stored, pick) & _is(stored, pick))
    if pick.only == "likely" and len(shown):
        rank = -_flip_chances(run)[shown]
    elif stored.mixed is not None and pick.bucket is None:
        rank = np.where(stored.mixed.find_differing()[shown], 0, 1).astype(np.uint8)
    else:
        kinds = [(bits[shown] & bit) != 0 for bit in (UNSTABLE, MISSING, FAILED)]
        rank = np.select(kinds, [0, 1, 2], default=3).astype(np.uint8)
    return np.asarray(shown[np.argsort(rank, kind="stable")])


def _match(run: RunRecord, stored: _StoredCases, pick: Pick) -> NDArray[np.bool_]:
    """Return bool[n_cases]: the cases that match the search and that the bucket answered."""
    n_cases = len(stored.bits)
    keep = np.ones(n_cases, bool)
    if stored.mixed is not None and pick.bucket is not None:
        keep = stored.mixed.answered_by(pick.bucket)
    if pick.query:
        matches = np.zeros(n_cases, bool)
        matches[list(search_case_indexes(run, pick.query, n_repeats=stored.n_repeats))] = True
        keep &= matches
    return keep


def _is(stored: _StoredCases, pick: Pick) -> NDArray[np.bool_]:
    """Return bool[n_cases]: whether each case is what `pick.only` names."""
    bits = stored.bits_of(pick)
    if pick.only == "differ":
        return np.zeros(len(bits), bool) if stored.mixed is None else stored.mixed.find_differing()
    if pick.only in KINDS:
        is_so = [(bits & UNSTABLE) != 0, (bits & FAILED) != 0, (bits & (PASSED | MISSING)) == PASSED]
        kinds = np.select(is_so, range(3), default=3)
        return np.asarray(kinds == KINDS.index(pick.only))
    return np.asarray((bits & ONLY[pick.only]) != 0) if pick.only in ONLY else np.ones(len(bits), bool)


def _flip_chances(run: RunRecord) -> NDArray[np.float32]:
    """float32[n_cases], of the last repeat that has some, NaN where unknown."""
    columns = CaseColumns.objects.filter(repeat__run=run).exclude(flip_chances=None).order_by("-repeat__index")
    packed = columns.values_list("flip_chances", flat=True).first()
    n_cases = run.suite_version.n_cases
    return np.full(n_cases, UNKNOWN_CHANCE, np.float32) if packed is None else unpack_chances(bytes(packed), n_cases)


def search_case_indexes(run: RunRecord, query: str, *, n_repeats: int | None = None) -> frozenset[int]:
    """Return the indexes of cases that match `Pick.query`. n_repeats: of all cases, if known."""
    cases = Case.objects.filter(suite_version=run.suite_version_id)
    indexes = frozenset(search_cases(cases, query).values_list("index", flat=True))
    if n_repeats is None:
        n_repeats = run.repeats.filter(cases=None).count()
    return indexes | search_answers(run, query) if is_searched(run.suite_version.n_cases, n_repeats) else indexes


def search_cases(cases: QuerySet[Case], query: str) -> QuerySet[Case]:
    """Filter cases to those with these words in id, message or tag, ignoring case."""
    plain = query.replace("\0", "")
    messages = Func(F("content"), Value("$.messages[*].content"), function="jsonb_path_query_array")
    worded = cases.annotate(words=_OneText(messages), tag_words=_OneText(F("tags")))
    matches = Q(case_id__icontains=plain) | Q(words__icontains=plain) | Q(tag_words__icontains=plain)
    return worded.filter(matches)


class _OneText(Func):
    """The texts of a JSON list joined by line breaks."""

    template = "(SELECT string_agg(each.value, chr(10)) FROM jsonb_array_elements_text(%(expressions)s) AS each)"
    output_field = TextField()


def _rows(run: RunRecord, stored: _StoredCases, shown: list[int]) -> tuple[CaseOfRun, ...]:
    """Return the rows of cases; `shown`: their indexes, ascending."""
    cases = {case.index: case for case in Case.objects.filter(suite_version=run.suite_version_id, index__in=shown)}
    frames = _frames(run, stored, {index - index % FRAME for index in shown})
    return tuple(_row(run, cases[index], stored, frames[index - index % FRAME]) for index in shown)


def _frames(run: RunRecord, stored: _StoredCases, firsts: Collection[int]) -> dict[int, Frame]:
    frames = CaseFrame.objects.filter(run=run, digest=stored.digest, first__in=firsts)
    packed = {first: bytes(data) for first, data in frames.values_list("first", "data")}
    if len(packed) < len(firsts):  # of a run that none are kept of, or others have replaced them since
        packed = dict(make_table(read_columns(run)).pack_frames())
    return {first: unpack_frame(packed[first], n_repeats=stored.n_repeats) for first in firsts}


def _row(run: RunRecord, case: Case, stored: _StoredCases, frame: Frame) -> CaseOfRun:
    index, at = case.index, case.index % FRAME
    bits, chance = int(stored.bits[index]), float(frame.flip_chances[at])
    shown = int(frame.shown[at]) + 1
    scores = tuple(finite(value) for value in frame.scores[at].tolist())
    known = [value for value in scores if value is not None]
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
        url=reverse_case("response", run.pk, shown, case.case_id),
        prompt=prompt_of(case),
        shown=shown,
        n_traces=int(frame.n_traces[at]),
        is_likely_to_flip=chance > LIKELY_FLIP,
        served_by=stored.mixed.name_servers(index) if stored.mixed else (),
    )


def prompt_of(case: Case) -> str:
    """Return the last message of a case, cut to fit a list."""
    content = prompt_text(case.content["messages"][-1].get("content"))
    return content if len(content) <= PROMPT_SHOWN else content[:PROMPT_SHOWN] + "…"


def read_answers(run: RunRecord, shown: Mapping[int, int]) -> dict[int, str]:
    """Return case index → the start of an answer, by `shown`: case index → its repeat's index.

    A case whose response is missing is not there.
    """
    by_repeat: dict[int, list[int]] = {}
    for case_index, repeat in shown.items():
        by_repeat.setdefault(repeat, []).append(case_index)
    wanted = Q(pk=None)
    for repeat, indexes in by_repeat.items():
        wanted |= Q(repeat__index=repeat, case_index__in=indexes)
    stored = ResponseRecord.objects.filter(wanted, repeat__run=run, error_code="")
    return dict(stored.annotate(start=Left("text", ANSWER_SHOWN)).values_list("case_index", "start"))


def is_searched(n_cases: int, n_repeats: int) -> bool:
    """Tell whether a search of a run's cases looks into its answers."""
    return n_cases * n_repeats <= MAX_SEARCHED


def search_answers(run: RunRecord, query: str) -> frozenset[int]:
    """Return the indexes of cases with an answer that contains the words, ignoring case."""
    matches = ResponseRecord.objects.filter(repeat__run=run, repeat__cases=None, text__icontains=words_of_query(query))
    return frozenset(matches.order_by().values_list("case_index", flat=True).distinct())


def words_of_query(query: str) -> str:
    """Return the text to search in answers: `·` and `⏎` mean a space and a newline, as in tokens."""
    return query.replace("\0", "").replace("·", " ").replace("⏎", "\n")


def read_mixed_cases(run: RunRecord) -> MixedCases:
    """Read the columns of a run's repeats of all cases that have ended."""
    columns = read_columns(run)
    shape = (columns.n_cases, len(columns.repeats))
    served_by, scores, marks = np.full(shape, NO_BUCKET), np.full(shape, np.nan), np.zeros(shape, np.uint8)
    for place, repeat in enumerate(columns.repeats):
        if repeat.served_by is not None:
            served_by[:, place] = repeat.served_by
        if repeat.scores is not None:
            scores[:, place] = repeat.scores
        if repeat.marks is not None:
            marks[:, place] = repeat.marks
    buckets, n_responses = np.unique(served_by[served_by != NO_BUCKET], return_counts=True)
    by_share = buckets[np.lexsort((buckets, -n_responses))].tolist()
    return MixedCases(served_by, scores, marks, names_on(run.endpoint_id, by_share))
