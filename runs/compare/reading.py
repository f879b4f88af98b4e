"""Read the responses and traces of pairs that differ, in bounded memory, and say how and why each parted."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare import (
    Cause,
    Divergence,
    KnownResponse,
    Pair,
    Vocabularies,
    find_cause,
    find_divergences,
    find_text_divergence,
)
from evalboard.core.trace import Vocabulary
from runs.compare.groups import Groups
from runs.compare.inputs import Inputs, Side
from runs.pairs import PairNoise, TracedText, pair_facts, stored_words, vocabularies
from runs.store import TracePair, TracePlace, bulk, stored_traces


@dataclass(frozen=True, slots=True)
class Read:
    """One response as far as its cause needs it; its text only where the other side's is another one."""

    place: TracePlace | None
    finish_reason: str
    error_code: str
    prompt_digest: bytes | None
    n_prompt_tokens: int | None
    seed_sent: int | None
    vocabulary_id: int | None
    n_reasoning_tokens: int | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """One group: how it parted (None: equal traces, or none to compare) and why."""

    divergence: Divergence | None
    cause: Cause
    n_baseline: int | None
    n_candidate: int | None


def judge(inputs: Inputs, groups: Groups, part: slice) -> Iterator[Judged]:
    """Judge some groups, in their order: all is read at once, and then they are judged one by one.

    So PostgreSQL can store what was judged while the rest still is.
    """
    firsts = groups.firsts(part)
    cases, is_texted = groups.cases[firsts], groups.is_texted[firsts]
    repeats = groups.baseline_repeats[firsts], groups.candidate_repeats[firsts]
    ours = read_responses(inputs.baseline, cases, repeats[0], is_texted)
    theirs = read_responses(inputs.candidate, cases, repeats[1], is_texted)
    sides = (_SideFacts(inputs, inputs.baseline), _SideFacts(inputs, inputs.candidate))
    partings = _find_partings(sides, (ours, theirs), groups.is_traced[firsts], groups.has_other_trace[firsts])
    rows = zip(cases.tolist(), *(each.tolist() for each in repeats), ours, theirs, partings, strict=True)
    return _judge(sides, inputs.noise, rows)


def _judge(
    sides: tuple["_SideFacts", "_SideFacts"],
    noise: PairNoise,
    rows: Iterable[tuple[int, int, int, Read, Read, Divergence | None]],
) -> Iterator[Judged]:
    """Yield each pair judged: its case and repeats, both responses and how they parted. Nothing is read for it."""
    for case, repeat, repeat_too, row, row_too, parted in rows:
        pair = Pair(sides[0].known_response(case, repeat, row), sides[1].known_response(case, repeat_too, row_too))
        by = noise.between(sides[0].bucket(case, repeat), sides[1].bucket(case, repeat_too))
        is_read = parted is not None and parted.text_position is None
        yield Judged(
            parted,
            find_cause(pair, parted, by),
            parted.n_baseline if parted and is_read else None,
            parted.n_candidate if parted and is_read else None,
        )


def _find_partings(
    sides: tuple["_SideFacts", "_SideFacts"],
    rows: tuple[list[Read], list[Read]],
    is_traced: NDArray[np.bool_],
    has_other_trace: NDArray[np.bool_],
) -> list[Divergence | None]:
    """Find how each pair of responses parts, as `find_parting` does of one: all pairs of traces in a few passes."""
    partings: list[Divergence | None] = [None] * len(is_traced)
    traced: list[tuple[int, TracePair, Vocabularies | None]] = []
    for at in np.flatnonzero(is_traced).tolist():
        ours, theirs = rows[0][at], rows[1][at]
        if ours.place is None or theirs.place is None:
            partings[at] = find_text_divergence(ours.text, theirs.text)
            continue
        words = vocabularies(sides[0].traced_text(ours), sides[1].traced_text(theirs))
        if words is not None or has_other_trace[at]:
            traced.append((at, (ours.place, theirs.place), words))
    is_decimal = any(side.is_logged for side in sides)
    n_read = 0
    for columns in stored_traces.read_pair_columns([places for _, places, _ in traced]):
        part = traced[n_read : n_read + len(columns[0])]
        words_of = [words for _, _, words in part]
        divergences = find_divergences(*columns, vocabularies=words_of, is_decimal=is_decimal)
        for (at, _, _), parted in zip(part, divergences, strict=True):
            partings[at] = parted
        n_read += len(part)
    return partings


def token_words(vocabulary_id: int | None) -> Vocabulary | None:
    return None if vocabulary_id is None else stored_words(vocabulary_id)


class _SideFacts:
    """What all responses of a side share, and what its buckets do, put together once."""

    def __init__(self, inputs: Inputs, side: Side) -> None:
        self._side = side
        self._settings = pair_facts.request_settings(side.key.run)
        self._served = inputs.served

    def known_response(self, case: int, repeat: int, row: Read) -> KnownResponse:
        score = float(self._side.scores[case, repeat])
        response = pair_facts.ResponseFacts(
            text=row.text,
            n_reasoning_tokens=row.n_reasoning_tokens,
            error_code=row.error_code,
            finish_reason=row.finish_reason,
            prompt_digest=row.prompt_digest,
            n_prompt_tokens=row.n_prompt_tokens,
            seed_sent=row.seed_sent,
            score=None if math.isnan(score) else score,
            scorer_digest=self._side.setup.scorer_digest,
        )
        served = self._served.get(self.bucket(case, repeat), pair_facts.UNKNOWN_SERVING)
        return pair_facts.make_response(self._settings, served, None if row is _UNKNOWN else response)

    @property
    def is_logged(self) -> bool:
        return bool(self._side.key.run.is_reported)

    def traced_text(self, row: Read) -> TracedText:
        """Return what tells whose words a response's tokens are."""
        return TracedText(row.text, None, row.vocabulary_id, is_logged=self.is_logged)

    def bucket(self, case: int, repeat: int) -> int:
        return int(self._side.buckets[case, repeat])


def read_responses(
    side: Side, cases: NDArray[np.int64], repeats: NDArray[np.int64], needs_text: NDArray[np.bool_]
) -> list[Read]:
    """Return the responses of a side at some cases and repeats, in that order; one never stored is all unknown."""
    responses: list[Read] = [_UNKNOWN] * len(cases)
    for repeat in np.unique(repeats).tolist():
        for has_text in (False, True):
            at = np.flatnonzero((repeats == repeat) & (needs_text == has_text))
            if len(at):
                rows = _read(side.key.repeat_ids[repeat], side.case_indexes[cases[at]].tolist(), has_text)
                for place, index in zip(at.tolist(), side.case_indexes[cases[at]].tolist(), strict=True):
                    responses[place] = rows.get(index, _UNKNOWN)
    return responses


_UNKNOWN = Read(None, "", "", None, None, None, None, None)
# Over the binary protocol and with one parameter for all cases: the ORM takes several times as long over thousands.
RESPONSES = """
SELECT case_index, trace_block_id, trace_slot, finish_reason, error_code, prompt_digest, n_prompt_tokens, seed_sent,
       process.vocabulary_id, n_reasoning_tokens, CASE WHEN %s THEN text ELSE '' END
  FROM runs_response
  LEFT JOIN runs_engineprocess AS process ON process.id = engine_process_id
 WHERE repeat_id = %s AND case_index = ANY(%s::bigint[])
"""


def _read(repeat_id: int, indexes: list[int], has_text: bool) -> dict[int, Read]:
    rows = bulk.stream_binary(RESPONSES, [has_text, repeat_id, indexes], at_once=100)
    return {
        index: Read(None if block is None else (block, slot), finish, error, *others)
        for index, block, slot, finish, error, *others in rows
    }
