"""vLLM, in a process of its own: drives `worker/vllm_host.py` over JSON lines (docs/node.md)."""

import base64
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from evalboard.calling.calls import DecodeRequest
from evalboard.core.profile import split_sampling
from evalboard.core.trace import Failed, Forced, Outcome
from worker.engines.base import EngineDied, EngineSpec, EngineTimeout, ForceRequest, Started, TokenListing
from worker.engines.process import DeadlinePassed, EngineInterrupted, LineProcess, ProcessEnded
from worker.engines.vllm_wire import read_forced, read_ints, read_outcome, write_decode, write_force

Answer = TypeVar("Answer")

HOST = Path(__file__).resolve().parent.parent / "vllm_host.py"
DESCRIBE_SECONDS = 180.0  # the first import of torch from a slow disk
ABORT_SECONDS = 15.0  # a step that is under way must end first
STOP_SECONDS = 15.0
# The engine's interpreter is not ours, and it needs none of our secrets.
WITHHELD = re.compile(r"PYTHON|VIRTUAL_ENV|DJANGO|EVALBOARD_|PG|DATABASE_URL|REDIS_URL|.*(KEY|TOKEN|SECRET|PASSW)")
BUCKET = "s3://"
# The token without which gated models cannot be fetched, and how much of the disk models of buckets may take.
PASSED = frozenset({"HF_TOKEN", "EVALBOARD_MODEL_CACHE_GB"})


class VllmEngine:
    """One vLLM process under one plan. Nothing of it survives `stop`.

    response_seconds: how long the engine may decode no token; however long a response is, it may take its time.
    """

    def __init__(
        self, spec: EngineSpec, *, python: str | Path, start_seconds: float = 900.0, response_seconds: float = 600.0
    ) -> None:
        self._spec = spec
        self._python = str(python)
        self._start_seconds = start_seconds
        self._response_seconds = response_seconds
        self._process: LineProcess | None = None
        # Guards the two flags below, which `abort` reads and sets; a signal handler may call it while we hold it.
        self._lock = threading.RLock()
        self._is_abortable = False
        self._is_abort_wanted = False
        self._serial = 0
        self._in_flight: set[int] = set()

    @property
    def pid(self) -> int | None:
        """Return the process id, None before the start."""
        return self._process.pid if self._process else None

    def start(self) -> Started:
        """Start the process and load the model. Raises EngineDied or EngineTimeout."""
        self._open_to_abort()
        try:
            deadline = time.monotonic() + self._start_seconds
            try:
                env = child_environment(
                    with_aws=any(each.startswith(BUCKET) for each in (self._spec.model, self._spec.adapter))
                )
                process = LineProcess([self._python, str(HOST)], env)
            except OSError as problem:
                raise EngineDied("engine_error", f"{self._python} cannot be run: {problem}") from problem
            with self._lock:
                self._process = process
                if self._is_abort_wanted:
                    process.interrupt()
            self._send(self._start_request(), seconds=self._start_seconds)
            ready = self._receive("ready", deadline=deadline)
        except EngineInterrupted:
            self._fail("engine_error", "The start was called off.")
        finally:
            self._close_to_abort()
        return Started(manifest=ready["manifest"], seconds=ready["seconds"])

    def adapt(self, adapter: str, token: str) -> Started | None:
        """Exchange the adapter; None where the other one needs an engine of its own."""
        self._send({"op": "adapt", "adapter": adapter, "model_token": token})
        event = self._receive("adapted")
        return Started(manifest=event["manifest"], seconds=event["seconds"]) if event["manifest"] else None

    def decode(self, requests: Iterable[DecodeRequest]) -> Iterator[Outcome]:
        """Yield each outcome as it finishes; after `abort` it ends early. Raises EngineDied or EngineTimeout."""
        by_id = {str(request.case_index): request for request in requests}
        groups = self._groups(by_id.values())
        yield from self._answers("decode", groups, lambda event: read_outcome(event, by_id[event["id"]]))

    def force(self, requests: Iterable[ForceRequest]) -> Iterator[Forced | Failed]:
        """Yield each given answer's trace as it is scored; otherwise like `decode`."""
        messages = [write_force(request) for request in requests]
        size = self._spec.plan.group_size or max(len(messages), 1)
        groups = [messages[begin : begin + size] for begin in range(0, len(messages), size)]
        yield from self._answers("force", groups, read_forced)

    def _answers(
        self, operation: str, groups: list[list[dict[str, Any]]], read: Callable[[dict[str, Any]], Answer]
    ) -> Iterator[Answer]:
        """Yield the host's answers to the groups' requests as they come; `abort` ends it early."""
        if not any(groups):
            return
        self._serial += 1
        self._open_to_abort()
        is_done = False
        try:
            self._send({"op": operation, "serial": self._serial, "groups": groups}, seconds=self._response_seconds)
            while True:
                event = self._receive(deadline=time.monotonic() + self._response_seconds)
                if event["event"] == "alive":
                    continue  # the deadline is one of silence
                if event["event"] == "begun":
                    self._in_flight.add(int(event["id"]))
                elif event["event"] == "done":
                    is_done = True
                    return
                else:
                    self._in_flight.discard(int(event["id"]))
                    yield read(event)
        except EngineInterrupted:
            pass
        except (EngineDied, EngineTimeout):
            is_done = True
            raise
        finally:
            self._close_to_abort()
            if not is_done:  # aborted, or the caller does not want more
                self._drain()
            self._in_flight.clear()

    def self_check(self) -> str:
        """Return the digest of token ids and logprob bits of four fixed prompts. Raises EngineFailure."""
        plan = self._spec.plan
        sampling, _ = split_sampling(plan.sampling)
        self._send({"op": "self_check", "sampling": sampling, "group_size": plan.group_size})
        return str(self._receive("self_check")["digest"])

    def vocabulary(self) -> TokenListing:
        """Return the bytes of every token id. Raises EngineDied or EngineTimeout."""
        self._send({"op": "vocabulary"})
        event = self._receive("vocabulary")
        data, tokens, begin = base64.b64decode(event["bytes"]), list[bytes | None](), 0
        for length in read_ints(event["lengths"]).tolist():
            tokens.append(None if length < 0 else data[begin : begin + length])
            begin += max(length, 0)
        return TokenListing(tokens=tokens, end_ids=tuple(event["end_ids"]), digest=event["digest"])

    def abort(self) -> None:
        """Make a decode or a start that is under way end early. Callable from any thread."""
        with self._lock:
            if not self._is_abortable:
                return
            self._is_abort_wanted = True
            if self._process is not None:
                self._process.interrupt()

    def stop(self) -> None:
        """End the process and every process it started; harmless when it has already ended."""
        if self._process is None or self._process.has_ended:
            return
        try:
            self._process.send({"op": "stop"}, seconds=1.0)
            self._process.wait(seconds=STOP_SECONDS)
        except (ProcessEnded, DeadlinePassed, EngineInterrupted):
            pass
        self._process.kill()

    def last_words(self) -> str:
        """Return the end of the engine's stderr."""
        return self._process.last_words() if self._process else ""

    def _start_request(self) -> dict[str, Any]:
        spec = self._spec
        is_path = Path(spec.model).is_absolute() or spec.model.startswith(BUCKET)  # a repository is called owner/name
        return {
            "op": "start",
            "model_path": spec.model if is_path else "",
            "model_repo": "" if is_path else spec.model,
            "model_revision": spec.revision or "",
            "model_token": spec.token,
            "adapter": spec.adapter,
            "engine": dict(spec.plan.engine),
            "env": dict(spec.plan.env),
            "least_seats": spec.plan.least_seats,
        }

    def _groups(self, requests: Iterable[DecodeRequest]) -> list[list[dict[str, Any]]]:
        """Split the requests into groups that may be decoded together.

        With a fixed composition a case's neighbours follow from its index alone, whatever else is asked for; otherwise
        requests keep the order in which they come.
        """
        size = self._spec.plan.group_size
        if size is None:
            return [[write_decode(request) for request in requests]]
        ordered = sorted(requests, key=lambda request: request.case_index)
        groups = groupby(ordered, key=lambda request: request.case_index // size)
        return [[write_decode(request) for request in group] for _, group in groups]

    def _drain(self) -> None:
        """Call off the decode under way and read away what still comes of it, so that the engine stays usable."""
        if self._process is None or self._process.has_ended:
            return
        deadline = time.monotonic() + ABORT_SECONDS
        try:
            self._process.send({"op": "abort", "serial": self._serial}, seconds=ABORT_SECONDS)
            while self._process.receive(deadline=deadline)["event"] not in ("done", "fatal"):
                pass
        except (ProcessEnded, DeadlinePassed, EngineInterrupted):
            self._process.kill()

    def _open_to_abort(self) -> None:
        with self._lock:
            self._is_abort_wanted, self._is_abortable = False, True

    def _close_to_abort(self) -> None:
        """Stop accepting an abort, which would affect the next operation."""
        with self._lock:
            self._is_abortable = False
            if self._process is not None:
                self._process.clear_interrupt()

    def _send(self, message: Mapping[str, Any], *, seconds: float | None = None) -> None:
        seconds = self._response_seconds if seconds is None else seconds
        try:
            self._running().send(message, seconds=seconds)
        except ProcessEnded:
            self._fail_as_it_ended()
        except DeadlinePassed:
            self._time_out(f"The engine took no request in {seconds:g} seconds.")

    def _receive(self, kind: str | None = None, *, deadline: float | None = None) -> dict[str, Any]:
        """Return the next event, or the next of one kind. Raises EngineDied, EngineTimeout, Interrupted."""
        began = time.monotonic()
        deadline = began + self._response_seconds if deadline is None else deadline
        try:
            while True:
                event = self._running().receive(deadline=deadline)
                if event["event"] == "fatal":
                    self._running().wait(seconds=STOP_SECONDS)
                    self._fail(event["code"], event["detail"])
                if kind is None or event["event"] == kind:
                    return event
        except ProcessEnded:
            self._fail_as_it_ended()
        except DeadlinePassed:
            self._time_out(f"Nothing came from the engine in {deadline - began:.0f} seconds.")

    def _running(self) -> LineProcess:
        if self._process is None or self._process.has_ended:
            raise EngineDied("engine_error", "The engine is not running.", last_words=self.last_words())
        return self._process

    def _fail_as_it_ended(self) -> NoReturn:
        process = self._running()
        process.wait(seconds=STOP_SECONDS)
        process.kill()
        self._fail("engine_error", f"The engine {process.exit_words()}.")

    def _fail(self, code: str, detail: str) -> NoReturn:
        if self._process is not None:
            self._process.kill()
        raise EngineDied(code, detail, last_words=self.last_words(), in_flight=tuple(sorted(self._in_flight)))

    def _time_out(self, detail: str) -> NoReturn:
        self._running().kill()
        raise EngineTimeout(detail, last_words=self.last_words(), in_flight=tuple(sorted(self._in_flight)))


def describe(python: str | Path) -> dict[str, Any]:
    """Return what hardware and versions an interpreter with vLLM finds, without starting an engine.

    {"kind": "cpu" | "cuda", "gpus": [{"name", "capability", ...}], "n_cores", "versions": {...}, ...}.
    Raises EngineDied or EngineTimeout.
    """
    command = [str(python), str(HOST), "--describe"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=child_environment(), timeout=DESCRIBE_SECONDS
        )
    except subprocess.TimeoutExpired as late:
        raise EngineTimeout(f"{python} did not describe itself in {DESCRIBE_SECONDS:g} seconds.") from late
    except OSError as problem:
        raise EngineDied("engine_error", f"{python} cannot be run: {problem}") from problem
    if done.returncode != 0:
        raise EngineDied("engine_error", f"{python} cannot load vLLM.", last_words=done.stderr[-8000:])
    node = json.loads(done.stdout.splitlines()[-1])
    return {**node["hardware"], "n_cores": node["n_cores"], "versions": node["versions"]}


def child_environment(*, with_aws: bool = False) -> dict[str, str]:
    """Return our environment without our secrets and without what would bend another interpreter.

    with_aws: with this node's AWS credentials, for an engine whose model is in a bucket.
    """
    passed = {name for name in os.environ if name in PASSED or (with_aws and name.startswith("AWS_"))}
    return {name: value for name, value in os.environ.items() if name in passed or not WITHHELD.match(name)}
