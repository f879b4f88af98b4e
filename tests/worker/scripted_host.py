"""Speaks the engine host's protocol and does what the prompt says: faults that no real engine has on demand.

`say WORD` answers WORD; `cut WORD` does and is cut at its end; `slow WORD` does after twelve signs of life, one in a
quarter of a second; `die WORD` ends the process by SIGKILL; `hang WORD` never answers; `draw LETTERS` draws so many of
them as max_tokens allows, by the seed where the temperature is above 0; anything else is answered "blue". Thinking is
what stands between the tags that were sent. The variable SCRIPTED_SECONDS is how long each answer takes, SCRIPTED_DTYPE
what the manifest reports, SCRIPTED_DRIFT makes self-checks differ from the second on, and while the file
SCRIPTED_BROKEN exists no engine starts. To the file SCRIPTED_JOURNAL it appends when each answer was begun.

A given answer is scored as it would have been decoded; one to a prompt that ends with SCRIPTED_FORCE_DIES ends the
process.

SCRIPTED_RECORDED is JSON, what was recorded for each batch size and dtype: `{"2": {"drift": 1}, "4": {"word": "bled"}}`
moves the logprob at position 1 of every answer that shares its steps with one other, and makes it "bled" with three
others; `{"dies": 1}` ends the process. Whoever shares a batch with a prompt that holds the word SCRIPTED_LEAK has its
first logprob moved.

`tune` is answered with the letters of the adapter's name, "blue" without an adapter. An adapter whose name begins with
"wide" needs an engine of its own.
"""

import base64
import hashlib
import json
import os
import queue
import random
import signal
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

TOKENS = ["<end>", *"abcdefghijklmnopqrstuvwxyz"]
DRIFT = 2.0**-20


def main() -> None:
    if sys.argv[-1] == "--describe":
        print(json.dumps({"hardware": {"kind": "cpu", "cpu": "scripted"}, "n_cores": 1, "versions": {"vllm": "0"}}))
        return
    n_checks, engine, started = 0, dict[str, Any](), dict[str, Any]()
    asked: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=listen, args=[asked], daemon=True).start()
    while True:
        request = asked.get()
        if request["op"] == "start":
            if os.path.exists(os.environ.get("SCRIPTED_BROKEN", "")):  # noqa: PTH110  an empty Path would be "."
                sys.exit("scripted: no engine starts on this node")
            engine, started = request["engine"], request
            emit({"event": "ready", "manifest": manifest(request), "seconds": 0.0})
        elif request["op"] == "adapt":
            fits = is_wide(request["adapter"]) == is_wide(started["adapter"])
            started = started | {"adapter": request["adapter"]} if fits else started
            emit({"event": "adapted", "manifest": manifest(started) if fits else None, "seconds": 0.0})
        elif request["op"] == "decode":
            decode(request, asked, engine, started["adapter"])
        elif request["op"] == "force":
            force(request, asked, engine)
        elif request["op"] == "self_check":
            n_checks += 1
            drift = n_checks if os.environ.get("SCRIPTED_DRIFT") else 0
            seen = bytes([drift]) + started["adapter"].encode()
            emit({"event": "self_check", "digest": hashlib.sha256(seen).hexdigest()})
        elif request["op"] == "vocabulary":
            lengths = ints([len(token) for token in TOKENS])
            data = base64.b64encode("".join(TOKENS).encode()).decode()
            emit({"event": "vocabulary", "digest": "f" * 64, "lengths": lengths, "bytes": data, "end_ids": [0]})
        elif request["op"] == "stop":
            return


def listen(asked: "queue.SimpleQueue[dict[str, Any]]") -> None:
    for line in sys.stdin:
        asked.put(json.loads(line))
    os._exit(0)  # nobody is left to answer, whatever the main thread hangs in


def is_wide(adapter: str) -> bool:
    return Path(adapter).name.startswith("wide")


def decode(
    request: dict[str, Any], asked: "queue.SimpleQueue[dict[str, Any]]", engine: dict[str, Any], adapter: str
) -> None:
    for case, beside in [(case, group) for group in request["groups"] for case in group]:
        if not asked.empty():  # while it decodes, an engine is asked for nothing but to abort
            emit({"event": "done", "serial": asked.get()["serial"], "aborted": True})
            return
        emit({"event": "begun", "id": case["id"]})
        if journal := os.environ.get("SCRIPTED_JOURNAL"):
            with Path(journal).open("a") as file:
                print(time.time(), file=file)
        verb, _, word = case["messages"][-1]["content"].partition(" ")
        if verb == "die":
            print("scripted: killed by its prompt", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if verb == "hang":
            threading.Event().wait()
        for n_tokens in range(12 if verb == "slow" else 0):
            time.sleep(0.25)
            emit({"event": "alive", "n_tokens": n_tokens})
        time.sleep(float(os.environ.get("SCRIPTED_SECONDS", "0")))
        if verb == "draw":
            word = drawn(word, case["sampling"])
        if verb == "tune" and adapter:
            verb, word = "say", Path(adapter).name
        emit(
            response(case, word if verb in ("say", "cut", "slow", "draw") else "blue", beside, engine)
            | ended(case, verb)
        )
    emit({"event": "done", "serial": request["serial"], "aborted": False})


def force(request: dict[str, Any], asked: "queue.SimpleQueue[dict[str, Any]]", engine: dict[str, Any]) -> None:
    """Score the letters that are given; a text is cut into letters, a prompt that is rendered is [7, 7]."""
    for case in [case for group in request["groups"] for case in group]:
        if not asked.empty():
            emit({"event": "done", "serial": asked.get()["serial"], "aborted": True})
            return
        emit({"event": "begun", "id": case["id"]})
        fatal = os.environ.get("SCRIPTED_FORCE_DIES")
        if fatal and case["messages"][-1]["content"].endswith(fatal):
            print("scripted: killed by an answer", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(float(os.environ.get("SCRIPTED_SECONDS", "0")))
        ids = case["answer_token_ids"]
        if ids is None:
            ids = [TOKENS.index(letter) for letter in case["answer_text"] if letter in TOKENS]
        if not ids:
            emit({"event": "error", "id": case["id"], "code": "not_rebuilt", "detail": "scripted: no letter"})
            continue
        prompt = case["prompt_token_ids"]
        emit(forced(case, [7, 7] if prompt is None else prompt, ids, engine))
    emit({"event": "done", "serial": request["serial"], "aborted": False})


def forced(case: dict[str, Any], prompt: list[int], ids: list[int], engine: dict[str, Any]) -> dict[str, Any]:
    """As the letters were decoded, in float32; in another dtype less likely, and the second is no first choice."""
    logprobs = [-0.125 * (position + 1) for position in range(len(ids))]
    others = [(token + 1) % len(TOKENS) for token in ids]
    pairs = [((own, value), (other, value - 2.0)) for own, other, value in zip(ids, others, logprobs, strict=True)]
    if engine["dtype"] != "float32":
        logprobs = [value - 0.25 for value in logprobs]
        pairs = [((own, value), (other, value - 2.0)) for own, other, value in zip(ids, others, logprobs, strict=True)]
        if len(pairs) > 1:
            pairs[1] = ((others[1], logprobs[1] + 0.5), pairs[1][0])
    listed = [each for pair in pairs for each in pair]
    return {
        "event": "forced",
        "id": case["id"],
        "request_id": f"{case['id']}-scripted",
        "prompt_token_ids": ints(prompt),
        "token_ids": ints(ids),
        "logprobs": floats(logprobs),
        "k": 2,
        "alternative_ids": ints([token for token, _ in listed]),
        "alternative_logprobs": floats([value for _, value in listed]),
        "is_corrupted": False,
        "n_cached_tokens": 0,
        "batch_min": 1,
        "batch_max": 1,
    }


def ended(case: dict[str, Any], verb: str) -> dict[str, str]:
    return {"finish_reason": "length"} if verb == "cut" else {}


def split(word: str, tags: dict[str, str] | None) -> dict[str, Any]:
    """Take the first letters, up to the end tag, for thinking, where they begin with the start tag."""
    if tags is None or not word.startswith(tags["start"]):
        return {"text": word, "reasoning": None, "n_reasoning_tokens": None}
    thought, end, answer = word.removeprefix(tags["start"]).partition(tags["end"])
    n_tokens = len(word) - len(answer) if end else len(word) + 1
    return {"text": answer, "reasoning": thought, "n_reasoning_tokens": n_tokens}


def drawn(letters: str, sampling: dict[str, Any]) -> str:
    if sampling["temperature"] == 0:
        return letters
    return "".join(random.Random(sampling["seed"]).choices(letters, k=sampling["max_tokens"] - 1))


def response(asked: dict[str, Any], word: str, group: list[dict[str, Any]], engine: dict[str, Any]) -> dict[str, Any]:
    size = min(len(group), engine.get("max_num_seqs", len(group)))
    recorded = json.loads(os.environ.get("SCRIPTED_RECORDED", "{}"))
    found = recorded.get(str(size)) or recorded.get(engine["dtype"]) or {}
    if "dies" in found:
        print("scripted: no memory for this batch", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    word = found.get("word", word)
    ids = [TOKENS.index(letter) for letter in word] + [0]
    others = [(token + 1) % len(TOKENS) for token in ids]
    logprobs = [-0.125 * (position + 1) for position in range(len(ids))]
    if "drift" in found:
        logprobs[found["drift"]] -= DRIFT
    if leaks_to(asked, group):
        logprobs[0] -= DRIFT
    return {
        "event": "response",
        "id": asked["id"],
        "request_id": f"{asked['id']}-scripted",
        **split(word, asked["reasoning_tags"]),
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
        "batch_min": size,
        "batch_max": size,
        "queued_seconds": 0.0,
        "prefill_seconds": 0.0,
        "decode_seconds": 0.0,
    }


def leaks_to(asked: dict[str, Any], group: list[dict[str, Any]]) -> bool:
    word = os.environ.get("SCRIPTED_LEAK")
    return word is not None and any(
        word in case["messages"][-1]["content"] for case in group if case["id"] != asked["id"]
    )


def manifest(request: dict[str, Any]) -> dict[str, Any]:
    return {
        "engine": {**request["engine"], "dtype": os.environ.get("SCRIPTED_DTYPE", request["engine"]["dtype"])},
        "versions": {"vllm": "0"},
        "hardware": {"kind": "cpu", "cpu": "scripted"},
        "env": {},
        "model": {
            "path": request["model_path"],
            "files": {"model.safetensors": {"size": 1, "sha256": "0" * 64}, **adapter_files(request["adapter"])},
            "tokenizer_digest": "f" * 64,
            "template_digest": "e" * 64,
            "context_length": 1024,
        },
        "host": {"name": "scripted"},
    }


def adapter_files(path: str) -> dict[str, Any]:
    if not path:
        return {}
    sha256 = hashlib.sha256(path.encode()).hexdigest()
    return {"adapter/adapter_model.safetensors": {"size": 1, "sha256": sha256}}


def ints(values: list[int]) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}i", *values)).decode()


def floats(values: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def emit(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    main()
