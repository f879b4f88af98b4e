"""Small logs of Inspect AI, written in code."""

import json
from typing import Any

from tests.importers.zips import zip_of

Log = dict[str, Any]


def entry(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": []}


def model_event(text: str = "Paris", *, message_id: str = "m1", **facts: Any) -> dict[str, Any]:
    body = {"id": "chat-1", "system_fingerprint": "vllm-1", "model": "smol", "choices": [{"token_ids": [7]}]}
    return {
        "event": "model",
        "model": "openai-api/local/smol",
        "input": [{"role": "user", "content": "Capital of France?"}],
        "config": {"temperature": 0.5, "seed": 7, "stop_seqs": ["\n"]},
        "output": {"choices": [{"message": {"id": message_id, "content": text}}]},
        "call": {"request": {}, "response": body},
        **facts,
    }


def sample(case_id: Any = "c1", epoch: int = 1, **facts: Any) -> dict[str, Any]:
    choice = {
        "message": {"id": "m1", "role": "assistant", "content": "Paris", "source": "generate"},
        "stop_reason": "stop",
        "logprobs": {"content": [entry("Paris", -0.1)]},
    }
    return {
        "id": case_id,
        "epoch": epoch,
        "input": "Capital of France?",
        "target": "Paris",
        "messages": [{"role": "user", "content": "Capital of France?"}, choice["message"]],
        "output": {"model": "smol", "choices": [choice], "completion": "Paris", "response_id": "chat-1", "time": 0.5},
        "scores": {"includes": {"value": "C", "answer": "Paris"}},
        "events": [model_event()],
        "attachments": {},
        **facts,
    }


def log(*samples: dict[str, Any], status: str = "success", **facts: Any) -> Log:
    return {
        "version": 2,
        "status": status,
        "eval": {
            "eval_id": "E1",
            "task": "Capitals/EU",
            "task_version": 3,
            "model": "openai-api/local/smol",
            "model_base_url": "http://user:secret@gpu-7:8000/v1?key=secret",
            "model_generate_config": {"temperature": 0.0, "max_tokens": 32},
            "config": {"epochs": 1},
            "revision": {"commit": "abc1234", "dirty": True},
            "packages": {"inspect_ai": "0.3.285"},
        },
        "stats": {"started_at": "2026-11-21T02:06:31+00:00", "completed_at": "2026-11-21T02:07:03+00:00"},
        "samples": list(samples or [sample()]),
        **facts,
    }


def packed(content: Log, **how: Any) -> bytes:
    """The log as `.eval`, or killed before its end where it has no status."""
    top = {name: value for name, value in content.items() if name != "samples"}
    members = {"header.json" if "status" in content else "_journal/start.json": json.dumps(top).encode()}
    for number, one in enumerate(content["samples"]):
        members[f"samples/{number}.json"] = json.dumps(one).encode()
    return zip_of(members, **how)
