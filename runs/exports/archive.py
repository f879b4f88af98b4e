"""A run with its traces as one file, made while it is sent."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from evalboard.core.archive import (
    RESPONSES_NAME,
    SUITE_NAME,
    TRACES_NAME,
    ArchiveMember,
    vocabulary_name,
    write_archive,
)
from evalboard.core.stats import list_mark_names
from evalboard.core.suite import dump_case, dump_header
from runs.exports import manifest, responses
from runs.exports.responses import Scores, hex_of
from runs.exports.runs import EndedRun, ended_run, snapshot
from runs.models import Case, EngineProcess, RepeatRecord, TraceBlock, VocabularyRecord
from runs.store import instant, with_images

BATCH_BYTES = 1 << 20  # of packed blocks in memory at once; one that is larger comes alone
PART_LINES = 50
CASES_AT_ONCE = 100

BLOCKS = """
SELECT id, octet_length(data) FROM runs_traceblock AS block
 WHERE run_id = %s AND EXISTS
       (SELECT FROM runs_response WHERE trace_block_id = block.id AND repeat_id = ANY(%s::bigint[]))
 ORDER BY id
"""


def run_archive(run_id: int) -> Iterator[bytes]:
    """Yield the archive of the ended repeats in parts, within one snapshot. Raises NotFound or Conflict."""
    with snapshot():
        yield from _Archive(ended_run(run_id)).parts()


@dataclass(frozen=True, eq=False)
class _Blocks:
    """The offset and size of each trace block. ids, offsets, sizes: int64[n], 24 bytes per 32 traces."""

    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def place(self, block_id: int, slot: int) -> dict[str, int]:
        at = int(np.searchsorted(self.ids, block_id))
        return {"offset": int(self.offsets[at]), "size": int(self.sizes[at]), "slot": slot}


@dataclass(eq=False)
class _Archive:
    of: EndedRun
    blocks: _Blocks = field(init=False)
    processes: dict[int, EngineProcess] = field(init=False)
    n_responses: dict[int, int] = field(default_factory=dict)  # by the repeat's number, as they are written

    def __post_init__(self) -> None:
        self.blocks = _blocks(self.of)
        self.processes = responses.processes_of(self.of.ended)

    def parts(self) -> Iterator[bytes]:
        return write_archive(self._members(), self._manifest)

    def _manifest(self) -> dict[str, Any]:
        return manifest.of(self.of, self.processes, self.n_responses, n_blocks=len(self.blocks.ids))

    def _members(self) -> Iterator[ArchiveMember]:
        yield ArchiveMember(SUITE_NAME, _lines(self._suite()))
        yield ArchiveMember(RESPONSES_NAME, _lines(self._responses()))
        words = {process.vocabulary_id for process in self.processes.values() if process.vocabulary_id is not None}
        for pk in VocabularyRecord.objects.filter(pk__in=words).order_by("digest").values_list("pk", flat=True):
            row = VocabularyRecord.objects.get(pk=pk)
            yield ArchiveMember(vocabulary_name(row.digest), [bytes(row.data)], is_packed=True)
        yield ArchiveMember(TRACES_NAME, self._traces(), is_packed=True)

    def _suite(self) -> Iterator[dict[str, Any]]:
        version = self.of.run.suite_version
        plan = version.scorer.spec
        yield dump_header(title=version.title, max_tokens=version.max_tokens, stop=version.stop, scorer=plan["default"])
        for first in range(0, version.n_cases, CASES_AT_ONCE):
            cases = Case.objects.filter(suite_version=version, index__range=(first, first + CASES_AT_ONCE - 1))
            for case in cases.order_by("index"):
                line = dump_case(
                    case_id=case.case_id,
                    content=case.content,
                    tags=case.tags,
                    group=case.group,
                    is_reference=case.is_reference,
                    scorer=plan["cases"].get(case.case_id),
                    default=plan["default"],
                    digest=case.digest,
                )
                yield line | ({"messages": with_images(line["messages"])} if "messages" in line else {})

    def _responses(self) -> Iterator[dict[str, Any]]:
        version = self.of.run.suite_version
        for repeat in self.of.ended:
            self.n_responses[repeat.index] = 0
            scores = responses.scores_of(repeat, own=version.scorer_id)
            for indexes in responses.chunks(range(version.n_cases)):
                cases = Case.objects.filter(suite_version=version, index__range=(indexes[0], indexes[-1]))
                case_ids = dict(cases.values_list("index", "case_id"))
                for index, row in responses.some_of(repeat, indexes).items():
                    self.n_responses[repeat.index] += 1
                    yield self._response(repeat, case_ids[index], row, scores)

    def _response(self, repeat: RepeatRecord, case_id: str, row: responses.Row, scores: list[Scores]) -> dict[str, Any]:
        index = row["case_index"]
        given = {each.scorer_digest: each.at(index) for each in scores}
        own = next((each.scorer_digest for each in scores if each.is_own), None)
        score, reason = given.pop(own) if own is not None else (None, None)
        process = self.processes.get(row["engine_process_id"])
        return {
            "repeat": repeat.index,
            "case": case_id,
            "case_index": index,
            "text": row["text"],
            "text_digest": hex_of(row["text_digest"]),
            "reasoning": row["reasoning"],
            "n_reasoning_tokens": row["n_reasoning_tokens"],
            "is_truncated": row["is_truncated"],
            "finish_reason": row["finish_reason"] or None,
            "ending": row["ending"] or None,
            "error": {"code": row["error_code"], "detail": row["error_detail"]} if row["error_code"] else None,
            "score": score,
            "reason": reason,
            "other_scores": {digest: {"score": of, "reason": why} for digest, (of, why) in given.items()},
            "is_vouched": row["is_vouched"],
            "marks": list(list_mark_names(row["marks"])),
            "trace": self._trace(row),
            "unmeasured": _unmeasured(row),
            "provenance": {
                "engine_process": None if process is None else str(process.pk),
                "bucket": None if process is None else str(process.bucket_id),
                "prompt_digest": hex_of(row["prompt_digest"]),
                **{name: row[name] for name in responses.PLAIN if name != "engine_process_id"},
                "request_id": row["request_id"] or None,
            },
            "recorded_at": instant(row["recorded_at"]),
        }

    def _trace(self, row: responses.Row) -> dict[str, Any] | None:
        if row["trace_block_id"] is None:
            return None
        return {"digest": hex_of(row["trace_digest"]), **self.blocks.place(row["trace_block_id"], row["trace_slot"])}

    def _traces(self) -> Iterator[bytes]:
        for ids in _batches(self.blocks):
            rows = TraceBlock.objects.filter(pk__in=ids).order_by("pk").values_list("data", flat=True)
            yield from map(bytes, rows)


def _unmeasured(row: responses.Row) -> dict[str, Any] | None:
    """Return why the tokens are not measured, and a block of them in base64, None where there are none."""
    if not row["trace_reason"]:
        return None
    block = row["unmeasured_trace"]
    return {"reason": row["trace_reason"], "block": None if block is None else base64.b64encode(block).decode()}


def _blocks(of: EndedRun) -> _Blocks:
    with connection.cursor() as cursor:
        cursor.execute(BLOCKS, [of.run.pk, [repeat.pk for repeat in of.ended]])
        rows = np.array(cursor.fetchall(), dtype=np.int64).reshape(-1, 2)
    ids, sizes = rows[:, 0], rows[:, 1]
    return _Blocks(ids, np.cumsum(sizes) - sizes, sizes)


def _batches(blocks: _Blocks) -> Iterator[list[int]]:
    """Yield block ids in order, in batches of at most BATCH_BYTES."""
    batch: list[int] = []
    n_bytes = 0
    for block_id, size in zip(blocks.ids.tolist(), blocks.sizes.tolist(), strict=True):
        if batch and n_bytes + size > BATCH_BYTES:
            yield batch
            batch, n_bytes = [], 0
        batch.append(block_id)
        n_bytes += size
    if batch:
        yield batch


def _lines(rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    """JSONL in parts of some lines."""
    batch: list[str] = []
    for row in rows:
        batch.append(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
        if len(batch) == PART_LINES:
            yield "".join(batch).encode()
            batch = []
    yield "".join(batch).encode()
