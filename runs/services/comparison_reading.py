"""Reads the responses and traces of pairs that differ, in bounded memory, and says how and why each parted."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core import cause
from evalboard.core.cause import Cause
from evalboard.core.divergence import Divergence
from evalboard.core.trace import Trace
from evalboard.core.vocabulary import Vocabulary
from runs import pair_facts, stored_traces
from runs.models import Response
from runs.pair_noise import PairNoise
from runs.pair_parting import Told, find_parting, stored_words
from runs.services.comparison_groups import Groups
from runs.services.comparison_inputs import Inputs, Side
from runs.stored_traces import Place


@dataclass(frozen=True, slots=True)
class Read:
    """One response as far as its cause needs it; its text only where the other side's is another one."""

    place: Place | None
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


def judge(inputs: Inputs, groups: Groups, noise: PairNoise, part: slice) -> list[Judged]:
    """Judge some groups, in their order."""
    firsts = groups.firsts(part)
    ours = _responses(inputs.baseline, groups.cases[firsts], groups.baseline_repeats[firsts], groups.is_texted[firsts])
    theirs = _responses(
        inputs.candidate, groups.cases[firsts], groups.candidate_repeats[firsts], groups.is_texted[firsts]
    )
    sides = (_SideFacts(inputs, inputs.baseline), _SideFacts(inputs, inputs.candidate))
    traces = stored_traces.read_pairs(
        [
            (row.place, row_too.place)
            for row, row_too, is_traced in zip(ours, theirs, groups.is_traced[firsts], strict=True)
            if is_traced and row.place and row_too.place
        ]
    )
    judged = []
    for at, first in enumerate(firsts.tolist()):
        case, row, row_too = groups.cases[first], ours[at], theirs[at]
        repeat, repeat_too = groups.baseline_repeats[first], groups.candidate_repeats[first]
        parted: Divergence | None = None
        if groups.is_traced[first]:
            trace, trace_too = next(traces) if row.place and row_too.place else (None, None)
            parted = find_parting(sides[0].told(row, trace), sides[1].told(row_too, trace_too))
        pair = cause.Pair(sides[0].of(case, repeat, row), sides[1].of(case, repeat_too, row_too))
        by = noise.between(sides[0].bucket(case, repeat), sides[1].bucket(case, repeat_too))
        is_read = parted is not None and parted.text_position is None
        judged.append(
            Judged(
                parted,
                cause.decide(pair, parted, by),
                parted.n_baseline if parted and is_read else None,
                parted.n_candidate if parted and is_read else None,
            )
        )
    return judged


def token_words(vocabulary_id: int | None) -> Vocabulary | None:
    return None if vocabulary_id is None else stored_words(vocabulary_id)


class _SideFacts:
    """What all responses of a side share, and what its buckets do, put together once."""

    def __init__(self, inputs: Inputs, side: Side) -> None:
        self._side = side
        self._asked = pair_facts.asked_of(side.key.run)
        self._served = inputs.served

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
        served = self._served.get(self.bucket(case, repeat), pair_facts.UNSERVED)
        return pair_facts.side(self._asked, served, None if row is _UNKNOWN else answered)

    def told(self, row: Read, trace: Trace | None) -> Told:
        return Told(row.text, trace, row.vocabulary_id, is_logged=self._side.key.run.source_id is not None)

    def bucket(self, case: int, repeat: int) -> int:
        return int(self._side.buckets[case, repeat])


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


_UNKNOWN = Read(None, "", "", None, None, None)
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
        place = None if block is None else (block, slot)
        found[index] = Read(place, finish, error, digest, n_prompt, vocabulary, *text)
    return found
