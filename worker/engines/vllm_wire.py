"""What goes to `worker/vllm_host.py` and what comes of it, as JSON objects (docs/node.md)."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.calling.calls import DecodeRequest
from evalboard.core.digest import short_digest
from evalboard.core.profile import split_sampling
from evalboard.core.trace import Decoded, Failed, Forced, Outcome, Timings, TokenTrace
from worker.engines.base import ForceRequest

ANSWERS = frozenset({"stop", "length", "repetition"})  # the finish reasons of a whole answer


def write_decode(request: DecodeRequest) -> dict[str, Any]:
    """Return a case to decode as the host reads it."""
    sampling, switches = split_sampling(request.sampling)
    tags = request.sampling.get("reasoning_tags")
    message: dict[str, Any] = {"id": str(request.case_index), "sampling": sampling, "reasoning_tags": tags}
    if request.prompt_token_ids is not None:
        return message | {"prompt_token_ids": list(request.prompt_token_ids)}
    messages = [dict(part) for part in request.messages]
    return message | {"messages": messages, "tools": request.tools, "switches": switches}


def write_force(request: ForceRequest) -> dict[str, Any]:
    """Return an answer to score as the host reads it."""
    sampling, switches = split_sampling(request.sampling)
    return {
        "id": str(request.place),
        "sampling": sampling,
        "switches": switches,
        "messages": [dict(part) for part in request.messages],
        "tools": request.tools,
        "prompt_token_ids": request.prompt_token_ids,
        "answer_token_ids": request.answer_token_ids,
        "answer_text": request.answer_text,
    }


def read_forced(event: Mapping[str, Any]) -> Forced | Failed:
    """Read what the host gave for an answer to score."""
    place = int(event["id"])
    if event["event"] == "error":
        return Failed(place, event["code"], event["detail"])
    if event["is_corrupted"]:
        return Failed(place, "engine_error", "vLLM gave logprobs that are no numbers: NaN in its logits.")
    return Forced(
        place=place,
        trace=_trace(event, read_ints(event["prompt_token_ids"])),
        n_cached_tokens=event["n_cached_tokens"],
        batch_min=event["batch_min"],
        batch_max=event["batch_max"],
    )


def read_outcome(event: Mapping[str, Any], request: DecodeRequest) -> Outcome:
    """Read what the host gave for a case to decode."""
    if event["event"] == "error":
        return Failed(request.case_index, event["code"], event["detail"])
    if event["finish_reason"] not in ANSWERS:
        return Failed(request.case_index, "engine_error", f"vLLM ended the response with {event['finish_reason']!r}.")
    if event["is_corrupted"]:
        return Failed(request.case_index, "engine_error", "vLLM marks the response as corrupted: NaN in its logits.")
    prompt = read_ints(event["prompt_token_ids"])
    return Decoded(
        case_index=request.case_index,
        text=event["text"],
        reasoning=event["reasoning"],
        n_reasoning_tokens=event["n_reasoning_tokens"],
        finish_reason=event["finish_reason"],
        trace=_trace(event, prompt),
        n_prompt_tokens=len(prompt),
        prompt_digest=short_digest(prompt.tobytes()),
        seed_sent=request.sampling.get("seed"),
        request_id=event["request_id"],
        n_cached_tokens=event["n_cached_tokens"],
        n_preemptions=event["n_preemptions"],
        batch_min=event["batch_min"],
        batch_max=event["batch_max"],
        timings=Timings(
            queued_seconds=event["queued_seconds"],
            prefill_seconds=event["prefill_seconds"],
            decode_seconds=event["decode_seconds"],
        ),
    )


def _trace(event: Mapping[str, Any], prompt: NDArray[np.int32]) -> TokenTrace:
    token_ids = read_ints(event["token_ids"])
    shape = (len(token_ids), event["k"])
    return TokenTrace(
        token_ids=token_ids,
        logprobs=_floats(event["logprobs"]),
        alternative_ids=read_ints(event["alternative_ids"]).reshape(shape),
        alternative_logprobs=_floats(event["alternative_logprobs"]).reshape(shape),
        prompt_token_ids=prompt,
    )


def read_ints(text: str) -> NDArray[np.int32]:
    """Read little-endian int32 out of base64."""
    return np.frombuffer(base64.b64decode(text), dtype="<i4")


def _floats(text: str) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")
