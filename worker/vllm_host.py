"""The process that embeds vLLM: one engine, one profile, JSON lines in and out.

Run as `python worker/vllm_host.py` by the interpreter that has vLLM and not Evalboard: standard
library, torch and vLLM only. Requests come on stdin, one JSON object a line; events go to a
private copy of stdout, so that no library can write into them; what libraries say goes to stderr.
docs/node.md lists every request and event. `--describe` prints hardware and versions and ends.

The process dies with its parent: by the kernel's signal, and when its stdin ends.
"""

import base64
import ctypes
import gc
import hashlib
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import vllm_code
import vllm_forced  # next to this file: a script's own folder is on its path
import vllm_manifest
import vllm_sources
import vllm_start
import vllm_tokens
from vllm_tokens import RequestRefused

PR_SET_PDEATHSIG = 1
FATAL_STATUS = 3
SELF_CHECK_PROMPTS = (
    "The capital of France is a city on the river Seine, and its name is",
    "def add(a, b):\n    return a + b\n\ndef subtract(a, b):",
    "One, two, three, four, five, six, seven, eight, nine, ten,",
    '{"name": "get_weather", "arguments": {"city": "Zurich", "unit":',
)
SELF_CHECK_TOKENS = 8  # of each prompt, and of each answer
LIFE_SECONDS = 1.0  # between two signs that tokens are still coming
Event = dict[str, Any]


class Batches:
    """Records with how many others each request shared a step, by watching the scheduler.

    The method of the scheduler that vLLM itself chose is wrapped, so that the class, and with it
    synchronous or asynchronous scheduling, stays vLLM's choice.
    """

    def __init__(self, scheduler: Any, begun: Callable[[str], None]) -> None:
        self.sizes: dict[str, tuple[int, int]] = {}  # internal id -> (smallest, largest)
        self.n_tokens = 0  # of prompts and answers that were computed so far
        self._schedule = scheduler.schedule
        self._begun = begun
        scheduler.schedule = self.schedule

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        step = self._schedule(*args, **kwargs)
        size = len(step.num_scheduled_tokens)
        self.n_tokens += sum(step.num_scheduled_tokens.values())
        for internal_id in step.num_scheduled_tokens:
            known = self.sizes.get(internal_id)
            if known is None:
                self._begun(internal_id)
            low, high = known or (size, size)
            self.sizes[internal_id] = (min(low, size), max(high, size))
        return step


class Host:
    """Owns the engine and answers requests one after another. emit: sends an event."""

    def __init__(self, emit: Callable[[Event], None], inbox: "queue.Queue[Event]") -> None:
        self._emit = emit
        self._inbox = inbox
        self._waiting: list[Event] = []  # requests that came while a decode was running
        self._engine: Any = None
        self._batches: Batches
        self._seats: int | None = None  # how many requests the engine has at a time; None: all of a group
        self._names: dict[str, str] = {}  # internal id -> the id that the parent gave
        self._tags: dict[str, vllm_tokens.Tags | None] = {}  # internal id -> between which texts its model thinks
        self._given: dict[str, int] = {}  # internal id -> how many tokens of an answer are scored and not decoded
        self._tokenizer_digest = ""
        self._manifest: dict[str, Any] = {}  # of the start, without an adapter
        self._lora_settings: dict[str, Any] = {}
        self._lora_ids: dict[str, int] = {}  # digest of an adapter's files -> the number that vLLM knows it by
        self._lora: Any = None  # the LoRARequest of every decoding; None: the base decodes
        self._life = (time.monotonic(), 0)  # when a sign of life was given last, and how many tokens there were

    def serve(self) -> None:
        """Answer requests until told to stop."""
        answers: dict[str, Callable[[Event], None]] = {
            "start": self.start,
            "adapt": self.adapt,
            "describe": lambda _: self._emit({"event": "described", **describe()}),
            "decode": self.decode,
            "force": self.decode,  # requests with an answer, which is scored
            "self_check": self.self_check,
            "vocabulary": lambda _: self.vocabulary(),
            "abort": lambda _: None,  # of a decode that had already ended
        }
        while True:
            request = self._waiting.pop(0) if self._waiting else self._inbox.get()
            if request["op"] == "stop":
                break
            answers[request["op"]](request)
        if self._engine is not None:
            self._engine.engine_core.shutdown(timeout=10)

    def start(self, request: Event) -> None:
        """Load the model and report the environment manifest."""
        started = time.monotonic()
        env = {**request["env"], **vllm_start.COMMON_ENV}
        path, repo, revision = request["model_path"], request["model_repo"], request["model_revision"]
        if path:
            env["HF_HUB_OFFLINE"] = "1"
        os.environ.update(env)
        import torch

        if not torch.cuda.is_available():
            # vLLM compiles a small function of its sampler even in eager mode, and dies without a compiler.
            os.environ["TORCHDYNAMO_DISABLE"] = "1"
        before = vllm_manifest.relevant_environment()
        folder = vllm_start.model_folder(path, repo, revision, request["model_token"])
        address, token = request["adapter"], request["model_token"]
        adapter = vllm_start.adapter_folder(address, token) if address else None
        self._lora_settings = vllm_start.lora_settings(adapter) if adapter else {}
        with ThreadPoolExecutor(2) as reader:  # reading the files takes as long as loading them: do both at once
            files = reader.submit(vllm_manifest.model_files, folder)
            code = reader.submit(vllm_code.code_versions)
            self._engine = vllm_start.start_engine(folder, {**request["engine"], **self._lora_settings})
            model = {
                "path": path if path.startswith(vllm_sources.BUCKET) else str(folder),
                "repo": repo,
                "revision": revision,
                "files": files.result(),
            }
        self._batches = Batches(self._engine.engine_core.engine_core.scheduler, self._begun)
        if request["least_seats"] is not None:
            self._seats = vllm_start.seats(self._engine, least=request["least_seats"])
        self._manifest = vllm_manifest.manifest(
            self._engine,
            seats=self._seats,
            room=vllm_start.room(self._engine),
            model=model,
            code=code.result(),
            env=before,
            pinned_env=sorted(request["env"]),
        )
        self._tokenizer_digest = self._manifest["model"]["tokenizer_digest"]
        manifest = self._load(adapter, address) if adapter else self._manifest
        self._emit({"event": "ready", "manifest": manifest, "seconds": time.monotonic() - started})

    def adapt(self, request: Event) -> None:
        """Decode with another adapter of the same base from now on, and report the manifest with it.

        Nothing changes, and the manifest is null, where the adapter needs an engine with other settings.
        """
        started = time.monotonic()
        folder = vllm_start.adapter_folder(request["adapter"], request["model_token"])
        fits = vllm_start.lora_settings(folder) == self._lora_settings
        manifest = self._load(folder, request["adapter"]) if fits else None
        self._emit({"event": "adapted", "manifest": manifest, "seconds": time.monotonic() - started})

    def _load(self, folder: Any, address: str) -> Event:
        """Have vLLM load the adapter that an address names; return the manifest with its files."""
        from vllm.lora.request import LoRARequest

        files = vllm_manifest.adapter_files(folder)
        digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
        number = self._lora_ids.setdefault(digest, len(self._lora_ids) + 1)
        self._lora = LoRARequest(digest, number, str(folder))  # vLLM's prefix cache knows it by the digest
        self._engine.add_lora(self._lora)
        if number not in self._engine.list_loras():
            raise RuntimeError(f"vLLM did not load the adapter {address}")
        model = self._manifest["model"]
        return {
            **self._manifest,
            "model": {**model, "files": {**model["files"], **files}, "adapter": {"path": address}},
        }

    def decode(self, request: Event) -> None:
        """Decode groups of requests, or score given answers, each group only when the one before is drained."""
        for group in request["groups"]:
            for event in self._run(group, serial=request["serial"]):
                if event["event"] == "aborted":
                    self._emit({"event": "done", "serial": request["serial"], "aborted": True})
                    return
                self._emit(event)
        self._emit({"event": "done", "serial": request["serial"], "aborted": False})

    def self_check(self, request: Event) -> None:
        """Decode the fixed prompts and report a digest over their token ids and logprob bits."""
        tokenizer = self._engine.get_tokenizer()
        n = SELF_CHECK_TOKENS
        sampling = {**request["sampling"], "max_tokens": n, "min_tokens": 0, "ignore_eos": True, "stop": []}
        checks = []
        for index, text in enumerate(SELF_CHECK_PROMPTS):
            ids = tokenizer.encode(text, add_special_tokens=False)[:n]
            checks.append({"id": f"self-check-{index}", "prompt_token_ids": ids, "sampling": sampling})
        size = request.get("group_size") or len(checks)
        answers: dict[str, Event] = {}
        for begin in range(0, len(checks), size):
            for event in self._run(checks[begin : begin + size], serial=None):
                if event["event"] == "error":
                    raise RuntimeError(f"the self-check was refused: {event['detail']}")
                answers[event["id"]] = event
        total = hashlib.sha256()
        for name in sorted(answers):
            for part in ("token_ids", "logprobs", "alternative_ids", "alternative_logprobs"):
                total.update(base64.b64decode(answers[name][part]))
        self._emit({"event": "self_check", "digest": total.hexdigest()})

    def vocabulary(self) -> None:
        """Report the bytes of every token id."""
        tokenizer = self._engine.get_tokenizer()
        tokens = vllm_tokens.token_bytes(tokenizer)
        self._emit(
            {
                "event": "vocabulary",
                "digest": self._tokenizer_digest,
                "lengths": vllm_tokens.ints(-1 if token is None else len(token) for token in tokens),
                "bytes": base64.b64encode(b"".join(token or b"" for token in tokens)).decode(),
                "end_ids": vllm_tokens.end_ids(self._engine, tokenizer),
            }
        )

    def _run(self, group: list[Event], *, serial: int | None) -> Iterator[Event]:
        """Decode one group; yield `response`, `error`, and at last `aborted` if the parent aborted.

        A request gets its seat when one is free, in the group's order: between two steps, so never by the clock.
        """
        engine, waiting = self._engine, deque(group)
        while True:
            while waiting and (self._seats is None or len(self._names) < self._seats):
                request = waiting.popleft()
                try:
                    self._add(request)
                except RequestRefused as refusal:
                    yield {"event": "error", "id": request["id"], "code": refusal.code, "detail": refusal.detail}
            if not engine.has_unfinished_requests():
                return
            if self._abort_came(serial):
                engine.abort_request(list(self._names.values()))
                self._names.clear()
                self._tags.clear()
                self._given.clear()
                self._batches.sizes.clear()
                yield {"event": "aborted"}
                return
            for output in engine.step():
                if output.finished:
                    yield self._finished(output)
            self._give_life_sign()

    def _add(self, request: Event) -> None:
        from vllm import exceptions
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        tokenizer, ids = self._engine.get_tokenizer(), request.get("prompt_token_ids")
        if ids is None:
            ids = vllm_tokens.render(tokenizer, request["messages"], request["tools"], request["switches"])
        is_forced = "answer_token_ids" in request
        given = vllm_forced.answer_ids(tokenizer, request, ids) if is_forced else []
        settings = vllm_forced.sampling(request) if is_forced else request["sampling"]
        try:
            sampling = SamplingParams(**settings, n=1, flat_logprobs=True, output_kind=RequestOutputKind.FINAL_ONLY)
            internal_id = self._engine.add_request(
                request["id"], {"prompt_token_ids": ids + given}, sampling, lora_request=self._lora
            )
        except (getattr(exceptions, "VLLMClientError", ValueError), ValueError) as problem:  # 0.25 has no such class
            raise RequestRefused(self._refusal_code(ids + given), str(problem)) from problem
        self._names[internal_id] = request["id"]
        if is_forced:
            self._given[internal_id] = len(given)
        else:
            self._tags[internal_id] = request.get("reasoning_tags")

    def _refusal_code(self, ids: list[int]) -> str:
        if not ids:
            return "prompt_empty"
        longest = self._engine.vllm_config.model_config.max_model_len
        return "prompt_too_long" if len(ids) >= longest else "engine_error"

    def _begun(self, internal_id: str) -> None:
        name = self._names.get(internal_id)
        if name is not None and not name.startswith("self-check-"):
            self._emit({"event": "begun", "id": name})

    def _give_life_sign(self) -> None:
        """Say that tokens are still coming, so that a long response is not taken for an engine that hangs."""
        at, n_tokens = self._life
        if self._batches.n_tokens > n_tokens and time.monotonic() - at >= LIFE_SECONDS:
            self._life = (time.monotonic(), self._batches.n_tokens)
            self._emit({"event": "alive", "n_tokens": self._batches.n_tokens})

    def _abort_came(self, serial: int | None) -> bool:
        while not self._inbox.empty():
            request = self._inbox.get()
            if request["op"] == "stop":
                self._waiting.append(request)
                return True
            if request["op"] == "abort" and request["serial"] == serial:
                return True
            if request["op"] != "abort":
                self._waiting.append(request)
        return False

    def _finished(self, output: Any) -> Event:
        """Turn a finished request into a `response` or a `forced` event."""
        internal_id = next(key for key, name in self._names.items() if name == output.request_id)
        del self._names[internal_id]
        smallest, largest = self._batches.sizes.pop(internal_id, (None, None))
        served = {
            "id": output.request_id,
            "request_id": internal_id,
            "n_cached_tokens": output.num_cached_tokens,
            "batch_min": smallest,
            "batch_max": largest,
        }
        if internal_id in self._given:
            return {"event": "forced", **served, **vllm_forced.trace(output, self._given.pop(internal_id))}
        return {"event": "response", **served, **self._response(output, self._tags.pop(internal_id))}

    def _response(self, output: Any, tags: vllm_tokens.Tags | None) -> Event:
        answer, stats = output.outputs[0], output.metrics
        return {
            **vllm_tokens.split_reasoning(self._engine.get_tokenizer(), tags, output),
            "finish_reason": str(answer.finish_reason),
            "stop_reason": answer.stop_reason,
            "prompt_token_ids": vllm_tokens.ints(output.prompt_token_ids),
            **vllm_tokens.trace(answer),
            "n_preemptions": getattr(stats, "num_preemptions", None),  # 0.25 does not count them: unknown
            "is_corrupted": stats.is_corrupted,
            "queued_seconds": stats.scheduled_ts - stats.queued_ts,
            "prefill_seconds": stats.first_token_ts - stats.scheduled_ts,
            "decode_seconds": stats.last_token_ts - stats.first_token_ts,
        }


def main() -> None:
    """Run the protocol until told to stop, or until the engine fails."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Nothing but this file may read requests or write events: libraries get stderr and an empty stdin.
    requests = os.fdopen(os.dup(0), "rb")
    events = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123  a file descriptor is wanted
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    inbox: queue.Queue[Event] = queue.Queue()
    threading.Thread(target=listen, args=(requests, inbox), daemon=True).start()

    def emit(event: Event) -> None:
        events.write(json.dumps(event, allow_nan=False).encode() + b"\n")
        events.flush()

    try:
        Host(emit, inbox).serve()
    except BaseException as problem:  # noqa: BLE001  whatever it is, the parent must hear of it
        traceback.print_exc()
        is_said = isinstance(problem, vllm_sources.SourceFailed | vllm_start.AdapterRefused)  # in a sentence for people
        detail = str(problem) if is_said else f"{type(problem).__name__}: {problem}"
        emit({"event": "fatal", "code": vllm_start.failure_code(problem), "detail": detail})
        sys.stderr.flush()
        os._exit(FATAL_STATUS)  # an engine in an unknown state may hang in its destructors
    os._exit(0)


def describe() -> Event:
    described: Event = vllm_manifest.describe(vllm_code.code_versions())
    return described


def listen(requests: Any, inbox: "queue.Queue[Event]") -> None:
    """Read requests in a separate thread, so that the parent's end is noticed during a long step."""
    for line in requests:
        inbox.put(json.loads(line))
    if os.getpgrp() == os.getpid():  # started as the leader of a group: take its other processes along
        os.killpg(0, signal.SIGKILL)
    os._exit(FATAL_STATUS)


if __name__ == "__main__":
    gc.disable()  # imports leave no garbage, and looking for it is a quarter of their time; start_engine enables it
    if sys.argv[1:] == ["--describe"]:
        print(json.dumps(describe()))
    else:
        main()
