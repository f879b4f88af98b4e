"""Reads the responses and traces of pairs that differ, in bounded memory, and says how and why each parted."""

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import BigIntegerField, Func
from numpy.typing import NDArray

from evalboard.core import cause, codec, divergence, numeric_noise
from evalboard.core.cause import Cause
from evalboard.core.divergence import Divergence
from evalboard.core.numeric_noise import NumericNoise, pooled_sd
from evalboard.core.trace import Trace
from evalboard.core.vocabulary import Vocabulary
from runs import pair_facts
from runs.models import Response, TraceBlock
from runs.models import Vocabulary as VocabularyRow
from runs.services import bulk
from runs.services.comparison_groups import Groups
from runs.services.comparison_inputs import Inputs, Side

BLOCKS = "SELECT id, data FROM runs_traceblock WHERE id = ANY(%s::bigint[])"
BLOCK_BYTES = 32 << 20  # of packed blocks in memory at once
NOISE_PAIRS = 200  # pairs of repeats of one side that are read to measure its noise
STEP_TRACES = 16  # traces of each side whose margins show the step of its logits

Block = dict[int, Trace]  # slot → trace


@dataclass(frozen=True, slots=True)
class Read:
    """One response as far as its cause needs it; its text only where the other side's is another one."""

    block_id: int | None
    slot: int | None
    finish_reason: str
    error_code: str
    prompt_digest: bytes | None
    n_prompt_tokens: int | None
    vocabulary_id: int | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """One group: how it parted (None: equal traces, or none to compare) and why."""

    divergence: Divergence | None
    cause: Cause
    n_baseline: int | None
    n_candidate: int | None


def judge(inputs: Inputs, groups: Groups, noise: NumericNoise, part: slice) -> list[Judged]:
    """Judge some groups, in their order."""
    firsts = groups.firsts(part)
    ours = _responses(inputs.baseline, groups.cases[firsts], groups.baseline_repeats[firsts], groups.is_texted[firsts])
    theirs = _responses(
        inputs.candidate, groups.cases[firsts], groups.candidate_repeats[firsts], groups.is_texted[firsts]
    )
    sides = (_SideFacts(inputs, inputs.baseline), _SideFacts(inputs, inputs.candidate))
    is_logged = [side.key.run.source_id is not None for side in (inputs.baseline, inputs.candidate)]
    wanted = [(ours[at], theirs[at]) for at in np.flatnonzero(groups.is_traced[firsts])]
    traces = _traces_of_pairs([pair for pair in wanted if None not in (pair[0].block_id, pair[1].block_id)])
    judged = []
    for at, first in enumerate(firsts.tolist()):
        case, row, row_too = groups.cases[first], ours[at], theirs[at]
        parted: Divergence | None = None
        if groups.is_traced[first] and None not in (row.block_id, row_too.block_id):
            trace, trace_too = next(traces)
            words = _vocabularies(row, row_too, are_logged=all(is_logged))
            parted = divergence.find_divergence(trace, trace_too, vocabularies=words, is_decimal=any(is_logged))
        elif groups.is_traced[first]:
            parted = divergence.find_text_divergence(row.text, row_too.text)
        pair = cause.Pair(
            sides[0].of(case, groups.baseline_repeats[first], row),
            sides[1].of(case, groups.candidate_repeats[first], row_too),
        )
        is_read = parted is not None and parted.text_position is None
        judged.append(
            Judged(
                parted,
                cause.decide(pair, parted, noise),
                parted.n_baseline if parted and is_read else None,
                parted.n_candidate if parted and is_read else None,
            )
        )
    return judged


def measure_noise(inputs: Inputs, groups: Groups) -> NumericNoise:
    """The noise to judge the pairs by: from repeats of one bucket that differ, else the floor of the logits' dtype."""
    sides = (inputs.baseline, inputs.candidate)
    measured = [(_sd(side), _dtype(inputs, side)) for side in sides]
    sample = np.flatnonzero(groups.is_traced[groups.firsts(slice(None))])[:STEP_TRACES]
    firsts = groups.firsts(slice(None))[sample]
    steps = []
    for side, repeats in zip(sides, (groups.baseline_repeats, groups.candidate_repeats), strict=True):
        rows = _responses(side, groups.cases[firsts], repeats[firsts], np.zeros(len(firsts), np.bool_))
        margins = [trace.margins() for trace in _traces(row for row in rows if row.block_id is not None)]
        steps.append(numeric_noise.estimate_ulp(np.concatenate(margins)) if margins else 0.0)
    return numeric_noise.noise_between(measured[0], measured[1], ulp=max(steps))


def token_words(vocabulary_id: int | None) -> Vocabulary | None:
    return None if vocabulary_id is None else _vocabulary(vocabulary_id)


class _SideFacts:
    """What all responses of a side share, and what its buckets do, put together once."""

    def __init__(self, inputs: Inputs, side: Side) -> None:
        self._side = side
        self._asked = pair_facts.asked_of(side.key.run)
        is_named_otherwise = pair_facts.is_named_otherwise(inputs.baseline.key.run, inputs.candidate.key.run)
        served = () if is_named_otherwise else side.bucket_ids
        self._served = {bucket: pair_facts.served_of(inputs.buckets[bucket]) for bucket in served}

    def of(self, case: int, repeat: int, row: Read) -> cause.Side:
        score = float(self._side.scores[case, repeat])
        answered = pair_facts.Answered(
            text=row.text,
            error_code=row.error_code,
            finish_reason=row.finish_reason,
            prompt_digest=row.prompt_digest,
            n_prompt_tokens=row.n_prompt_tokens,
            score=None if math.isnan(score) else score,
            scorer_digest=self._side.asked.scorer_digest,
        )
        served = self._served.get(int(self._side.buckets[case, repeat]), pair_facts.UNSERVED)
        return pair_facts.side(self._asked, served, None if row is _UNKNOWN else answered)


def _responses(
    side: Side, cases: NDArray[np.int64], repeats: NDArray[np.int64], needs_text: NDArray[np.bool_]
) -> list[Read]:
    """The responses of a side at some cases and repeats, in that order; one that was never stored is all unknown."""
    found: list[Read] = [_UNKNOWN] * len(cases)
    for repeat in np.unique(repeats).tolist():
        for has_text in (False, True):
            at = np.flatnonzero((repeats == repeat) & (needs_text == has_text))
            if len(at):
                rows = _read(side.key.repeat_ids[repeat], side.case_indexes[cases[at]].tolist(), has_text)
                for place, index in zip(at.tolist(), side.case_indexes[cases[at]].tolist(), strict=True):
                    found[place] = rows.get(index, _UNKNOWN)
    return found


_UNKNOWN = Read(None, None, "", "", None, None, None)
_FIELDS = (
    "case_index",
    "trace_block_id",
    "trace_slot",
    "finish_reason",
    "error_code",
    "prompt_digest",
    "n_prompt_tokens",
    "engine_process__vocabulary_id",
)


def _read(repeat_id: int, indexes: list[int], has_text: bool) -> dict[int, Read]:
    rows = Response.objects.filter(repeat=repeat_id, case_index__in=indexes)
    fields = (*_FIELDS, "text") if has_text else _FIELDS
    found = {}
    for index, block, slot, finish, error, prompt, n_prompt, vocabulary, *text in rows.values_list(*fields):
        digest = None if prompt is None else bytes(prompt)
        found[index] = Read(block, slot, finish, error, digest, n_prompt, vocabulary, *text)
    return found


def _traces_of_pairs(pairs: Sequence[tuple[Read, Read]]) -> Iterator[tuple[Trace, Trace]]:
    """The traces of pairs, in order; at most BLOCK_BYTES of blocks are in memory, and one pair's at the least."""
    sizes = _sizes({row.block_id for pair in pairs for row in pair})
    batch: list[tuple[Read, Read]] = []
    blocks: set[int | None] = set()
    held = 0
    for pair in pairs:
        new = {row.block_id for row in pair} - blocks
        more = sum(sizes.get(block, 0) for block in new)
        if batch and held + more > BLOCK_BYTES:
            yield from _batch(batch)
            batch, blocks, held = [], set(), 0
            new = {row.block_id for row in pair}
            more = sum(sizes.get(block, 0) for block in new)
        batch.append(pair)
        blocks |= new
        held += more
    yield from _batch(batch)


def _batch(pairs: Sequence[tuple[Read, Read]]) -> Iterator[tuple[Trace, Trace]]:
    traces = iter(_traces(row for pair in pairs for row in pair))
    for _ in pairs:
        yield next(traces), next(traces)


def _traces(rows: Iterable[Read]) -> list[Trace]:
    """The traces of responses, in order; of a block only the slots that are asked for are decoded."""
    asked = [(row.block_id, row.slot) for row in rows]
    slots: dict[int, list[int]] = {}
    for block, slot in dict.fromkeys(asked):
        if block is not None and slot is not None:
            slots.setdefault(block, []).append(slot)
    decoded: dict[tuple[int | None, int | None], Trace] = {}
    # PostgreSQL unpacks and sends the next block while this one is decoded.
    for block, data in bulk.stream_binary(BLOCKS, [list(slots)]):
        traces = codec.read_traces(data, slots[block])
        decoded.update(zip(((block, slot) for slot in slots[block]), traces, strict=True))
    return [decoded[place] for place in asked]


def _sizes(ids: set[int | None]) -> dict[int | None, int]:
    size = Func("data", function="octet_length", output_field=BigIntegerField())
    return dict(TraceBlock.objects.filter(pk__in=list(ids)).values_list("pk", size))


def _sd(side: Side) -> float | None:
    """The side's noise from its own repeats: neighbouring ones of one bucket whose traces differ."""
    parts = []
    per_pair = max(NOISE_PAIRS // max(side.scores.shape[1] - 1, 1), 1)
    for repeat in range(side.scores.shape[1] - 1):
        same_bucket = side.buckets[:, repeat] == side.buckets[:, repeat + 1]
        differs = (side.traces[:, repeat] != side.traces[:, repeat + 1]).any(axis=1)
        is_there = side.is_there[:, repeat : repeat + 2].all(axis=1)
        cases = np.flatnonzero(same_bucket & differs & is_there)
        cases = cases[:: max(len(cases) // per_pair, 1)][:per_pair]
        no_text = np.zeros(len(cases), np.bool_)
        rows = [_responses(side, cases, np.full(len(cases), each), no_text) for each in (repeat, repeat + 1)]
        pairs = [pair for pair in zip(*rows, strict=True) if None not in (pair[0].block_id, pair[1].block_id)]
        for trace, other in _traces_of_pairs(pairs):
            found = divergence.find_divergence(trace, other, is_decimal=side.key.run.source_id is not None)
            parts.append((found.n_usable, found.shift_rms))
    return pooled_sd(parts)


def _dtype(inputs: Inputs, side: Side) -> str | None:
    """The dtype of the logits of the side's largest bucket, where its manifest says it."""
    return pair_facts.served_of(inputs.buckets[side.bucket_ids[0]]).dtype if side.bucket_ids else None


def _vocabularies(row: Read, row_too: Read, *, are_logged: bool) -> tuple[Vocabulary, Vocabulary] | None:
    """Both sides' words where they are not the same ones; where one is not known, ids are compared.

    The words of logs of one model go on from one import to the next, so that their ids are the same ones.
    """
    if row.vocabulary_id is None or row_too.vocabulary_id is None or row.vocabulary_id == row_too.vocabulary_id:
        return None
    if are_logged and _is_continued(row.vocabulary_id, row_too.vocabulary_id):
        return None
    return _vocabulary(row.vocabulary_id), _vocabulary(row_too.vocabulary_id)


@functools.lru_cache(maxsize=4)  # asked for every pair; a stored vocabulary never changes
def _is_continued(vocabulary_id: int, other_id: int) -> bool:
    return _vocabulary(vocabulary_id).agrees_with(_vocabulary(other_id))


@functools.lru_cache(maxsize=4)
def _vocabulary(pk: int) -> Vocabulary:
    return Vocabulary.unpack(bytes(VocabularyRow.objects.values_list("data", flat=True).get(pk=pk)))
