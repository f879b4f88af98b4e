"""Logs of other tools to be imported: made-up responses of one length, in the shape that the tools write today."""

import json
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tests.importers.zips import zip_of

SEED = 20261121
N_POSITIONS = 200
FLIP_AT = 100  # the position from which on a response that flips has other tokens
WORDS = [f" {word}" for word in ("rain", "falls", "on", "the", "sea", "and", "wind", "blows", "över", "…", "night")]

Entry = dict[str, Any]


def write_inspect_log(
    path: Path, n_responses: int, *, n_flips: int = 0, shift: float = 0.0, is_of_today: bool = False
) -> None:
    """Write a `.eval` as Inspect 0.3 does: a sample has its tokens in its output, in its call twice, and in a patch.

    n_flips: how many responses choose other tokens from FLIP_AT on. shift: what is added to every logprob, in nats.
    is_of_today: packed as by Inspect 0.3.285, by Zstandard and without spaces; else as by earlier ones, deflated.
    """
    header = {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": path.stem,
            "created": "2026-11-21T02:06:31+00:00",
            "task": "bench",
            "dataset": {"name": "bench", "samples": n_responses},
            "model": "openai-api/local/bench",
            "model_generate_config": {"temperature": 0.0, "max_tokens": N_POSITIONS, "seed": 42},
            "config": {"epochs": 1},
            "packages": {"inspect_ai": "0.3.285"},
        },
        "results": {"total_samples": n_responses, "completed_samples": n_responses},
        "stats": {"started_at": "2026-11-21T02:06:31+00:00", "completed_at": "2026-11-21T02:07:03+00:00"},
    }
    samples = (_sample(number, content) for number, content in enumerate(_answers(n_responses, n_flips, shift)))
    named = ((f"samples/case-{number}_epoch_1.json", sample) for number, sample in enumerate(samples))
    members = chain(named, [("header.json", header)])
    if is_of_today:
        path.write_bytes(zip_of({name: msgspec.json.encode(value) for name, value in members}))
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, value in members:
            archive.writestr(name, json.dumps(value))


def write_chat_lines(
    path: Path, n_responses: int, *, n_positions: int = N_POSITIONS, n_flips: int = 0, shift: float = 0.0
) -> None:
    """Write raw chat completions with their requests, one object a line. n_flips, shift: as of `write_inspect_log`."""
    with path.open("w") as stream:
        for number, content in enumerate(_answers(n_responses, n_flips, shift, n_positions)):
            row = {
                "custom_id": f"case-{number}",
                "started_at": "2026-11-21T02:13:03.149758+00:00",
                "latency_s": 5.8757,
                "request": {"model": "bench", "messages": [_question(number)], "temperature": 0.0, "seed": 42},
                "status_code": 200,
                "response": _body(number, content),
            }
            stream.write(json.dumps(row) + "\n")


def _answers(n: int, n_flips: int = 0, shift: float = 0.0, n_positions: int = N_POSITIONS) -> Iterator[list[Entry]]:
    rng = np.random.default_rng(SEED)
    for number in range(n):
        chosen = rng.integers(0, len(WORDS), (n_positions, 1)) + np.arange(2)
        chosen[min(FLIP_AT, n_positions // 2) :] += number < n_flips
        logprobs = shift - np.sort(rng.exponential(2.0, (n_positions, 2)).astype(np.float32))
        yield [
            {**_token(word, logprob), "top_logprobs": [_token(word, logprob), _token(other, behind)]}
            for (word, other), (logprob, behind) in zip(
                (chosen % len(WORDS)).tolist(), logprobs.astype(np.float32).tolist(), strict=True
            )
        ]


def _token(word: int, logprob: float) -> Entry:
    return {"token": WORDS[word], "logprob": logprob, "bytes": list(WORDS[word].encode())}


def _question(number: int) -> dict[str, str]:
    return {"role": "user", "content": f"What comes after {number}?"}


def _text(content: list[Entry]) -> str:
    return "".join(entry["token"] for entry in content)


def _body(number: int, content: list[Entry]) -> dict[str, Any]:
    message = {"role": "assistant", "content": _text(content)}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1795226792,
        "model": "bench",
        "choices": [{"index": 0, "message": message, "logprobs": {"content": content}, "finish_reason": "stop"}],
        "system_fingerprint": "vllm-0.32.0-bench",
        "usage": {"prompt_tokens": 20, "completion_tokens": N_POSITIONS},
    }


def _sample(number: int, content: list[Entry]) -> dict[str, Any]:
    message = {"id": f"m{number}", "content": _text(content), "source": "generate", "role": "assistant"}
    choice = {"message": message, "stop_reason": "stop", "logprobs": {"content": content}}
    output = {
        "model": "bench",
        "choices": [choice],
        "completion": message["content"],
        "usage": {"input_tokens": 20, "output_tokens": N_POSITIONS},
        "time": 3.8,
        "response_id": f"chatcmpl-{number}",
    }
    call = {
        "event": "model",
        "timestamp": "2026-11-21T02:06:32+00:00",
        "model": "openai-api/local/bench",
        "input": [_question(number)],
        "tools": [],
        "tool_choice": "none",
        "config": {"temperature": 0.0, "seed": 42},
        "output": output,
        "call": {"request": {"model": "bench"}, "response": _body(number, content), "time": 3.8},
        "completed": "2026-11-21T02:06:36+00:00",
    }
    patch = {"event": "state", "changes": [{"op": "add", "path": "/output/choices/0", "value": choice}]}
    return {
        "id": f"case-{number}",
        "epoch": 1,
        "input": _question(number)["content"],
        "target": "rain",
        "messages": [_question(number), message],
        "output": output,
        "scores": {"includes": {"value": "C", "answer": message["content"]}},
        "events": [call, patch],
        "attachments": {},
    }
