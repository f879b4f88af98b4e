"""Choose the neighbours of a case that is decoded again, and make the results as plain values.

A result is compared with the run's response, with the first variant of its dtype, and with the first choice of
neighbours at its batch size, so that a sweep can be read without any trace. Logprobs are in nats, positions from 0.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core import digest
from evalboard.core.compare.divergence import PARTED, Divergence, find_divergence, parted_columns
from evalboard.core.trace import Decoded, TokenTrace, encode_block, read_trace

ReplayResult = dict[str, Any]
Draw = Callable[[Sequence[int]], list[str]]

REPLAY_OUTCOMES = "identical", "drift", "flip", "shorter", "longer"  # of comparing a result with another answer
TOKENS_BEFORE = 8  # enough to recognise the place
NOT_HELD: ReplayResult = dict.fromkeys(
    (*PARTED, "drawn_before", "drawn_baseline", "drawn_candidate", "gap_before_flip")
)
OF_ANSWERS = (
    *("against_first", "against_neighbours", "n_tokens", "finish_reason", "text", "text_digest"),
    *("trace_digest", "batch_min", "batch_max", "trace"),
)


def list_neighbours(case_index: int, *, n_cases: int, batch_size: int, shift: int = 0) -> list[int]:
    """Return the case indexes that fill a batch: the next ones, wrapped, beginning `shift` further on.

    A suite with fewer cases than the batch has places gives some twice; one of a single case gives that one.
    """
    others = [(case_index + step) % n_cases for step in range(1, n_cases)] or [case_index]
    return [others[(shift + place) % len(others)] for place in range(batch_size - 1)]


def choose_shifts(*, n_choices: int, n_cases: int, batch_size: int) -> list[int] | None:
    """Return where each choice of neighbours begins, evenly spaced; None if the suite is too small.

    Two choices are never the same cases, so one case must be left over.
    """
    n_others = n_cases - 1
    if n_choices == 1 or batch_size == 1:
        return [0]
    if n_others < max(batch_size, n_choices):
        return None
    step = min(batch_size - 1, n_others // n_choices)
    return [choice * step for choice in range(n_choices)]


def compare_traces(baseline: TokenTrace, candidate: TokenTrace, draw: Draw) -> ReplayResult:
    """Compare a replayed trace (candidate) with another; `outcome` is one of REPLAY_OUTCOMES.

    `flip_position` is also where one of the two ends and the other goes on: then the one that ends has no token there.
    """
    if baseline.digest == candidate.digest:
        return {"outcome": "identical", **NOT_HELD}
    divergence = find_divergence(baseline, candidate)
    place = divergence.parts_at
    token, token_too = _token(baseline, place), _token(candidate, place)
    return {
        "outcome": _outcome(divergence),
        **parted_columns(divergence),
        "flip_position": place,
        "token_baseline": token,
        "token_candidate": token_too,
        "drawn_before": None if place is None else "".join(draw(_before(baseline, place))),
        "drawn_baseline": None if token is None else draw([token])[0],
        "drawn_candidate": None if token_too is None else draw([token_too])[0],
        "gap_before_flip": divergence.gap_before_flip,
    }


def make_decoded_result(
    variant: Mapping[str, Any],
    outcome: Decoded,
    *,
    response: TokenTrace | None,
    earlier: Sequence[tuple[Mapping[str, Any], TokenTrace]],
    draw: Draw,
) -> ReplayResult:
    """Make the result of a variant with an answer. earlier: variants and traces answered before.

    `trace` is packed and stored only if nothing else has the same bits; it is for the comparisons of later variants.
    """
    trace = outcome.trace
    first = next((other for each, other in earlier if _alike(each, variant, "dtype")), None)
    beside = next((other for each, other in earlier if _alike(each, variant, "dtype", "batch_size")), None)
    beside = beside if "batch_size" in variant else None
    known = {other.digest for _, other in earlier} | ({response.digest} if response is not None else set())
    return {
        "variant": dict(variant),
        "error": None,
        **({"outcome": "decoded", **NOT_HELD} if response is None else compare_traces(response, trace, draw)),
        "against_first": None if first is None else compare_traces(first, trace, draw),
        "against_neighbours": None if beside is None else compare_traces(beside, trace, draw),
        "n_tokens": len(trace),
        "finish_reason": outcome.finish_reason,
        "text": outcome.text,
        "text_digest": digest.text_digest(outcome.text).hex(),
        "trace_digest": trace.digest.hex(),
        "batch_min": outcome.batch_min,
        "batch_max": outcome.batch_max,
        "trace": None if trace.digest in known else base64.b64encode(encode_block([trace])).decode(),
    }


def make_failed_result(variant: Mapping[str, Any], *, code: str, detail: str) -> ReplayResult:
    """Make the result of a variant without an answer: an ERROR_CODES of core.trace, and a message."""
    return {
        "variant": dict(variant),
        "outcome": "error",
        "error": {"code": code, "detail": detail},
        **NOT_HELD,
        **dict.fromkeys(OF_ANSWERS),
    }


def list_result_traces(
    results: Sequence[Mapping[str, Any]], response: TokenTrace | None
) -> list[tuple[Mapping[str, Any], TokenTrace]]:
    """Return (variant, trace) of each result with an answer, to continue a replay."""
    known = {} if response is None else {response.digest.hex(): response}
    rows = []
    for each in results:
        name = each["trace_digest"]
        if name is None:
            continue
        if each["trace"] is not None:
            known[name] = read_trace(base64.b64decode(each["trace"]), 0)
        rows.append((each["variant"], known[name]))
    return rows


def _alike(variant: Mapping[str, Any], other: Mapping[str, Any], *names: str) -> bool:
    return all(variant.get(name) == other.get(name) for name in names)


def _outcome(divergence: Divergence) -> str:
    if divergence.parts_at is None:
        return "drift"
    return "flip" if divergence.shorter is None else "shorter" if divergence.shorter == "candidate" else "longer"


def _token(trace: TokenTrace, place: int | None) -> int | None:
    return None if place is None or place >= len(trace) else int(trace.token_ids[place])


def _before(trace: TokenTrace, place: int) -> list[int]:
    before: list[int] = trace.token_ids[max(place - TOKENS_BEFORE, 0) : place].tolist()
    return before


Ids = NDArray[np.int32]

MIN_TOKENS = 8  # a shorter run occurs in answers to many cases
TIMES_OTHERS = 2  # so much longer than a run that also occurs elsewhere, like common phrases


@dataclass(frozen=True, slots=True)
class Beside:
    """A prompt or an answer decoded in the same batch. case: the index of its case."""

    case: int
    ids: Ids


@dataclass(frozen=True, slots=True)
class Continuation:
    """A match. place: of its source, in the given order; at: its first token; n: its length."""

    place: int
    at: int
    n: int


def find_continuation(rest: Ids, beside: Sequence[Beside], own: Sequence[Ids]) -> Continuation | None:
    """Find the text that an answer continues with; None if the match is short, or not unique.

    rest: int32[n], the answer's tokens from where it diverged. own: prompt and other answers of its own case, where its
    tokens are no leak.
    """
    runs = [_longest_run(rest, each.ids) for each in beside]
    if not runs:
        return None
    place = max(range(len(runs)), key=lambda at: runs[at][0])
    n, at = runs[place]
    others = [run[0] for run, each in zip(runs, beside, strict=True) if each.case != beside[place].case]
    elsewhere = max([*others, *(_longest_run(rest, ids)[0] for ids in own)], default=0)
    return Continuation(place, at, n) if n >= max(MIN_TOKENS, TIMES_OTHERS * elsewhere) else None


def _longest_run(rest: Ids, ids: Ids) -> tuple[int, int]:
    """Return how many first tokens of `rest` occur in a row in `ids`, and where."""
    starts = np.flatnonzero(ids == rest[0]) if len(rest) else np.zeros(0, np.intp)
    n, at = 0, 0
    while len(starts):
        n, at = n + 1, int(starts[0])
        starts = starts[starts + n < len(ids)] if n < len(rest) else starts[:0]
        starts = starts[ids[starts + n] == rest[n]] if len(starts) else starts
    return n, at
