"""Speaks the engine host's protocol and does what the prompt says: faults that no real engine has on demand.

`say WORD` answers WORD; `die WORD` ends the process by SIGKILL; `hang WORD` never answers. The
variable SCRIPTED_SECONDS is how long each answer takes, SCRIPTED_DTYPE what the manifest reports,
SCRIPTED_DRIFT makes self-checks differ from the second on.
"""

import base64
import hashlib
import json
import os
import signal
import struct
import sys
import threading
import time
from typing import Any

TOKENS = ["<end>", *"abcdefghijklmnopqrstuvwxyz"]


def main() -> None:
    if sys.argv[-1] == "--describe":
        print(json.dumps({"hardware": {"kind": "cpu", "cpu": "scripted"}, "n_cores": 1, "versions": {"vllm": "0"}}))
        return
    n_checks = 0
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "start":
            emit({"event": "ready", "manifest": manifest(request), "seconds": 0.0})
        elif request["op"] == "decode":
            decode(request)
        elif request["op"] == "self_check":
            n_checks += 1
            drift = n_checks if os.environ.get("SCRIPTED_DRIFT") else 0
            emit({"event": "self_check", "digest": hashlib.sha256(bytes([drift])).hexdigest()})
        elif request["op"] == "vocabulary":
            lengths = ints([len(token) for token in TOKENS])
            data = base64.b64encode("".join(TOKENS).encode()).decode()
            emit({"event": "vocabulary", "digest": "f" * 64, "lengths": lengths, "bytes": data, "end_ids": [0]})
        elif request["op"] == "stop":
            return


def decode(request: dict[str, Any]) -> None:
    for asked in (asked for group in request["groups"] for asked in group):
        emit({"event": "begun", "id": asked["id"]})
        verb, _, word = asked["messages"][-1]["content"].partition(" ")
        if verb == "die":
            print("scripted: killed by its prompt", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if verb == "hang":
            threading.Event().wait()
        time.sleep(float(os.environ.get("SCRIPTED_SECONDS", "0")))
        emit(response(asked, word))
    emit({"event": "done", "serial": request["serial"], "aborted": False})


def response(asked: dict[str, Any], word: str) -> dict[str, Any]:
    ids = [TOKENS.index(letter) for letter in word] + [0]
    others = [(token + 1) % len(TOKENS) for token in ids]
    logprobs = [-0.125 * (position + 1) for position in range(len(ids))]
    return {
        "event": "response",
        "id": asked["id"],
        "request_id": f"{asked['id']}-scripted",
        "text": word,
        "finish_reason": "stop",
        "stop_reason": None,
        "prompt_token_ids": ints([1, 2, 3]),
        "token_ids": ints(ids),
        "logprobs": floats(logprobs),
        "k": 2,
        "alternative_ids": ints([token for pair in zip(ids, others, strict=True) for token in pair]),
        "alternative_logprobs": floats([value for own in logprobs for value in (own, own - 2.0)]),
        "n_cached_tokens": 0,
        "n_preemptions": 0,
        "is_corrupted": False,
        "batch_min": 1,
        "batch_max": 1,
        "queued_seconds": 0.0,
        "prefill_seconds": 0.0,
        "decode_seconds": 0.0,
    }


def manifest(request: dict[str, Any]) -> dict[str, Any]:
    return {
        "engine": {**request["engine"], "dtype": os.environ.get("SCRIPTED_DTYPE", request["engine"]["dtype"])},
        "versions": {"vllm": "0"},
        "hardware": {"kind": "cpu", "cpu": "scripted"},
        "env": {},
        "model": {
            "path": request["model_path"],
            "files": {"model.safetensors": {"size": 1, "sha256": "0" * 64}},
            "tokenizer_digest": "f" * 64,
            "template_digest": "e" * 64,
            "context_length": 1024,
        },
        "host": {"name": "scripted"},
    }


def ints(values: list[int]) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}i", *values)).decode()


def floats(values: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def emit(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    main()
