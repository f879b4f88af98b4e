"""A probe's calls as requests to an engine, and an engine's outcomes as the calls' answers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from evalboard.calling.calls import DecodeRequest
from evalboard.contract.probe_kinds import EXACT, ProbeKind
from evalboard.core.probes import ProbeExchange, choose_sampling
from evalboard.core.profile import EnginePlan
from evalboard.core.trace import Decoded, Outcome, TokenTrace

LEFT_OUT = "engine_error: The engine left the call out."


def make_request(
    place: int,
    call: ProbeExchange,
    prompts: Sequence[Any],
    *,
    kind: str,
    parameters: Mapping[str, Any],
    plan: EnginePlan,
) -> DecodeRequest:
    """Return the request of a call. prompts: the messages of each; place: what its outcome is found by."""
    # A probe reads whole responses: what a model thinks is part of what it was asked for.
    sampling = {**plan.sampling, **choose_sampling(kind, parameters, call.group)}
    sampling.pop("reasoning_tags", None)
    if call.seed is not None:
        sampling["seed"] = call.seed
    return DecodeRequest(case_index=place, messages=prompts[call.prompt], sampling=sampling)


def with_answer(call: ProbeExchange, outcome: Outcome | None, kind: str) -> ProbeExchange:
    """Return the call with its answer, or with the error that came in its place."""
    if outcome is None:
        return replace(call, error=LEFT_OUT)
    if not isinstance(outcome, Decoded):
        return replace(call, error=f"{outcome.code}: {outcome.detail}")
    return replace(
        call,
        token_ids=tuple(outcome.trace.token_ids.tolist()),
        text=outcome.text,
        finish_reason=outcome.finish_reason,
        top=_top(outcome.trace),
        batch_max=outcome.batch_max,
        trace_digest=outcome.trace.digest.hex() if kind in EXACT else "",
        **(_evidence(outcome.trace) if kind == ProbeKind.AUDIT else {}),
    )


def _evidence(trace: TokenTrace) -> dict[str, Any]:
    """Return the evidence that an incident may need.

    JSON has only finite numbers: the smallest float replaces others.
    """
    least = float(np.finfo(np.float32).min)
    logprobs = np.nan_to_num(trace.logprobs, nan=least, neginf=least, posinf=0.0)
    return {"logprobs": tuple(logprobs.tolist()), "at": datetime.now(UTC).isoformat(timespec="milliseconds")}


def _top(trace: TokenTrace) -> tuple[tuple[int, float], ...]:
    """The alternatives of the first position whose logprob is a number; JSON has no others."""
    first = trace.alternatives(0) if len(trace) else []
    return tuple((each.token_id, each.logprob) for each in first if math.isfinite(each.logprob))
