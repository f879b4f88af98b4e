"""The cases of a run as a table: one row for each case and repeat that has ended, missing ones too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.base import finite
from evalboard.contract.compare import ComparedCase, Comparison
from evalboard.core.errors import Conflict
from evalboard.core.images import prompt_text
from evalboard.core.stats import UNKNOWN_CHANCE, list_mark_names
from evalboard.core.trace import unpack_chances
from runs.compare import DivergenceFilter, divergence_rows, n_divergences
from runs.exports import responses
from runs.exports.responses import Scores, hex_of
from runs.exports.runs import EndedRun, ended_run, snapshot
from runs.models import Case, CaseColumns, ComparisonRecord, EngineProcess, RepeatRecord
from runs.run import case_indexes
from runs.store import instant

CASE_NAMES = (
    "run",
    "repeat",
    "case",
    "case_index",
    "score",
    "reason",
    "is_missing",
    "error_code",
    "error_detail",
    "finish_reason",
    "ending",
    "n_tokens",
    "n_reasoning_tokens",
    "is_truncated",
    "n_prompt_tokens",
    "flip_chance",
    "is_vouched",
    "marks",
    "bucket",
    "model",
    "fingerprint",
    "batch_class",
    "tags",
    "group",
    "prompt",
    "target",
    "text",
    "reasoning",
    "trace_digest",
    "decode_seconds",
    "recorded_at",
)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CaseExport:
    """A case export, chosen before anything is read. indexes: of cases, in the suite's order."""

    of: EndedRun
    indexes: Sequence[int]

    @property
    def n_rows(self) -> int:
        return sum(len(self._indexes_of(repeat)) for repeat in self.of.ended)

    def rows(self) -> Iterator[Row]:
        """Yield rows by repeat and case, within one snapshot. Raises NotFound if the run was deleted."""
        with snapshot():
            ended_run(self.of.run.pk)
            processes = responses.processes_of(self.of.ended)
            chances = _flip_chances(self.of)
            for repeat in self.of.ended:
                yield from self._repeat_rows(repeat, processes, chances)

    def _indexes_of(self, repeat: RepeatRecord) -> Sequence[int]:
        """Return the requested cases that a repeat was to decode."""
        chosen = self.of.chosen(repeat)
        return self.indexes if chosen is None else [index for index in self.indexes if chosen[index]]

    def _repeat_rows(
        self, repeat: RepeatRecord, processes: dict[int, EngineProcess], chances: NDArray[np.float32]
    ) -> Iterator[Row]:
        version = self.of.run.suite_version
        scores = next((each for each in responses.scores_of(repeat, own=version.scorer_id) if each.is_own), None)
        for indexes in responses.chunks(self._indexes_of(repeat)):
            rows = Case.objects.filter(suite_version=version, index__in=list(indexes))
            cases = {case.index: case for case in rows}
            stored = responses.some_of(repeat, indexes)
            for index in indexes:
                row = stored.get(index)
                process = None if row is None else processes.get(row["engine_process_id"])
                yield {
                    "run": str(self.of.run.pk),
                    "repeat": repeat.index,
                    **_case(cases[index]),
                    **_answer(row),
                    **_scored(scores, index),
                    **_served(process),
                    "flip_chance": finite(float(chances[index])),
                }


def case_table(run_id: int, *, query: str = "", only: str = "") -> CaseExport:
    """Choose cases by the filters of a run's list. Raises NotFound, or Conflict if no repeat has ended."""
    ended = ended_run(run_id)
    every: Sequence[int] = range(ended.n_cases)
    return CaseExport(ended, sorted(case_indexes(ended.run, query=query, only=only)) if query or only else every)


def _case(case: Case) -> Row:
    return {
        "case": case.case_id,
        "case_index": case.index,
        "tags": list(case.tags),
        "group": case.group or None,
        "prompt": prompt_text(case.content["messages"][-1].get("content")),
        "target": case.content["target"],
    }


def _answer(row: responses.Row | None) -> Row:
    """Return a response's fields: all unknown if the repeat did not reach the case, an error if it failed."""
    known = row or {}
    return {
        "is_missing": row is None or row["error_code"] != "",
        "error_code": known.get("error_code") or None,
        "error_detail": known.get("error_detail") or None,
        "finish_reason": known.get("finish_reason") or None,
        "ending": known.get("ending") or None,
        "n_tokens": known.get("n_tokens"),
        "n_reasoning_tokens": known.get("n_reasoning_tokens"),
        "is_truncated": known.get("is_truncated"),
        "n_prompt_tokens": known.get("n_prompt_tokens"),
        "is_vouched": known.get("is_vouched"),
        "marks": list(list_mark_names(known.get("marks", 0))),
        "text": known.get("text"),
        "reasoning": known.get("reasoning"),
        "trace_digest": hex_of(known.get("trace_digest")),
        "decode_seconds": known.get("decode_seconds"),
        "recorded_at": instant(known.get("recorded_at")),
    }


def _scored(scores: Scores | None, index: int) -> Row:
    score, reason = (None, None) if scores is None else scores.at(index)
    return {"score": score, "reason": reason}


def _served(process: EngineProcess | None) -> Row:
    if process is None:
        return dict.fromkeys(("bucket", "model", "fingerprint", "batch_class"))
    bucket = process.bucket
    return {
        "bucket": str(bucket.pk),
        "model": bucket.model.name,
        "fingerprint": bucket.fingerprint.digest,
        "batch_class": bucket.batch_class,
    }


def _flip_chances(of: EndedRun) -> NDArray[np.float32]:
    """float32[n_cases], of the first repeat, NaN where unknown."""
    stored = CaseColumns.objects.filter(repeat__run=of.run, flip_chances__isnull=False)
    packed = stored.values_list("flip_chances", flat=True).first()
    if packed is None:
        return np.full(of.n_cases, UNKNOWN_CHANCE, dtype=np.float32)
    return unpack_chances(bytes(packed), of.n_cases)


AT_ONCE = 500  # pairs in memory together


@dataclass(frozen=True, slots=True)
class PairTable:
    """A pair export, counted before anything is read."""

    of: Comparison
    wanted: DivergenceFilter
    n_rows: int

    def rows(self) -> Iterator[ComparedCase]:
        """Yield rows in the order of the case list, the gravest first, within one snapshot. Raises NotFound."""
        with snapshot():
            place: int | None = None
            while rows := divergence_rows(self.of.id, self.wanted, after=place, limit=AT_ONCE):
                yield from rows
                place = rows[-1].place


def pair_table(report: Comparison, wanted: DivergenceFilter) -> PairTable:
    """Choose pairs. Raises Conflict while comparing, since a part would be taken for the whole."""
    progress = report.progress
    if progress.status == ComparisonRecord.Status.FAILED:
        raise Conflict(f"The comparison failed, so there is nothing to export: {progress.error}")
    if progress.status != ComparisonRecord.Status.FINISHED:
        done = f"{progress.n_done} of {progress.n_total} pairs are read"
        raise Conflict(f"The comparison is still at work: {done}. Export it when it has finished.")
    return PairTable(report, wanted, n_divergences(report.id, wanted))
