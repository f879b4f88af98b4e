"""What decoding a case again gave: plain values, as they are stored and sent.

A result is held against the run's response, against the first variant of its dtype, and against the first choice of
neighbours at its batch size, so that a sweep can be read without any trace. Logprobs are in nats, positions from 0.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalboard.core import codec, digest
from evalboard.core.divergence import Divergence, find_divergence
from evalboard.core.provenance import Decoded
from evalboard.core.trace import Trace

Result = dict[str, Any]
Draw = Callable[[Sequence[int]], list[str]]

TOKENS_BEFORE = 8  # enough to recognise the place
NOT_HELD: Result = {
    "drift_onset": None,
    "gap_at_onset": None,
    "flip_position": None,
    "token_baseline": None,
    "token_candidate": None,
    "drawn_before": None,
    "drawn_baseline": None,
    "drawn_candidate": None,
    "margin_baseline": None,
    "margin_candidate": None,
    "gap_before_flip": None,
}


def held(baseline: Trace, candidate: Trace, draw: Draw) -> Result:
    """How a replayed trace (candidate) parts from another; `outcome` is one of core.replay.HELD.

    `flip_position` is also where one of the two ends and the other goes on: then the one that ends has no token there.
    """
    if baseline.digest == candidate.digest:
        return {"outcome": "identical", **NOT_HELD}
    found = find_divergence(baseline, candidate)
    place = found.parts_at
    token, token_too = _token(baseline, place), _token(candidate, place)
    return {
        "outcome": _outcome(found),
        "drift_onset": found.drift_onset,
        "gap_at_onset": found.gap_at_onset,
        "flip_position": place,
        "token_baseline": token,
        "token_candidate": token_too,
        "drawn_before": None if place is None else "".join(draw(_before(baseline, place))),
        "drawn_baseline": None if token is None else draw([token])[0],
        "drawn_candidate": None if token_too is None else draw([token_too])[0],
        "margin_baseline": found.margin_baseline,
        "margin_candidate": found.margin_candidate,
        "gap_before_flip": found.gap_before_flip,
    }


def decoded(
    variant: Mapping[str, Any],
    outcome: Decoded,
    *,
    response: Trace | None,
    earlier: Sequence[tuple[Mapping[str, Any], Trace]],
    draw: Draw,
) -> Result:
    """The result of a variant that gave an answer. `earlier`: variant and trace of those that did before, in order.

    `trace` is packed and kept only where nothing else holds the same bits; it is for the comparisons of later variants.
    """
    trace = outcome.trace
    first = next((other for each, other in earlier if _alike(each, variant, "dtype")), None)
    beside = next((other for each, other in earlier if _alike(each, variant, "dtype", "batch_size")), None)
    beside = beside if "batch_size" in variant else None
    known = {other.digest for _, other in earlier} | ({response.digest} if response is not None else set())
    return {
        "variant": dict(variant),
        "error": None,
        **({"outcome": "decoded", **NOT_HELD} if response is None else held(response, trace, draw)),
        "against_first": None if first is None else held(first, trace, draw),
        "against_neighbours": None if beside is None else held(beside, trace, draw),
        "n_tokens": len(trace),
        "finish_reason": outcome.finish_reason,
        "text_digest": digest.text_digest(outcome.text).hex(),
        "trace_digest": trace.digest.hex(),
        "batch_min": outcome.batch_min,
        "batch_max": outcome.batch_max,
        "trace": None if trace.digest in known else base64.b64encode(codec.encode_block([trace])).decode(),
    }


def failed(variant: Mapping[str, Any], *, code: str, detail: str) -> Result:
    """The result of a variant that gave none: one of core.provenance.ERROR_CODES, with the engine's own words."""
    return {
        "variant": dict(variant),
        "outcome": "error",
        "error": {"code": code, "detail": detail},
        **NOT_HELD,
        "against_first": None,
        "against_neighbours": None,
        "n_tokens": None,
        "finish_reason": None,
        "text_digest": None,
        "trace_digest": None,
        "batch_min": None,
        "batch_max": None,
        "trace": None,
    }


def traces(results: Sequence[Mapping[str, Any]], response: Trace | None) -> list[tuple[Mapping[str, Any], Trace]]:
    """Variant and trace of each result that has an answer, as an attempt that goes on with a replay needs them."""
    known = {} if response is None else {response.digest.hex(): response}
    found = []
    for each in results:
        name = each["trace_digest"]
        if name is None:
            continue
        if each["trace"] is not None:
            known[name] = codec.read_trace(base64.b64decode(each["trace"]), 0)
        found.append((each["variant"], known[name]))
    return found


def _alike(variant: Mapping[str, Any], other: Mapping[str, Any], *names: str) -> bool:
    return all(variant.get(name) == other.get(name) for name in names)


def _outcome(found: Divergence) -> str:
    if found.parts_at is None:
        return "drift"
    return "flip" if found.shorter is None else "shorter" if found.shorter == "candidate" else "longer"


def _token(trace: Trace, place: int | None) -> int | None:
    return None if place is None or place >= len(trace) else int(trace.token_ids[place])


def _before(trace: Trace, place: int) -> list[int]:
    before: list[int] = trace.token_ids[max(place - TOKENS_BEFORE, 0) : place].tolist()
    return before
