"""Scorers that are services. An operator's file names one; 20 fixed answers tell which code it runs."""

import json
import random
import threading
import tomllib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evalboard.calling.calls import EndpointRefused, KeyUnreadable
from evalboard.calling.retries import RETRIED, backoff_seconds, wished_seconds
from evalboard.calling.wire import CallFailed, TryFailed, Wire
from evalboard.contract.scorer import InstalledScorer
from evalboard.core.digest import digest_json
from worker.engines.named_secrets import read_headers

AT_ONCE = 8  # calls
TRIES = 5
LONGEST_WAIT_SECONDS = 60.0
PROBE_TRIES, PROBE_SECONDS, PROBE_WAIT_SECONDS = 3, 5.0, 1.0
FIELDS = {"url", "auth", "headers"}
# Sums, half of them wrong: what a service says of these is part of what it is.
PROBES = tuple(
    {
        "id": number,
        "case": {
            "id": f"probe-{number}",
            "messages": [{"role": "user", "content": f"What is {number} + {number}?"}],
            "target": str(2 * number),
            "tools": None,
            "tags": [],
        },
        "response": {
            "text": f" It is {2 * number + number % 2}.",
            "calls": [],
            "thinking": None,
            "finish_reason": "stop",
        },
        "options": {},
    }
    for number in range(20)
)


class ServiceSilent(Exception):
    """A service gave no reply; the text says why, for people, and is the end of a sentence."""


class ScorerService:
    """One service. `ask` and `cut` are thread-safe; its calls share connections."""

    def __init__(self, path: Path) -> None:
        """path: a TOML file of `url`, `auth` and `headers`, as endpoints have them. Raises ValueError."""
        self._is_cut = threading.Event()
        try:
            facts = tomllib.loads(path.read_text())
        except ValueError as problem:
            raise ValueError(f"{path} is no TOML file: {problem}") from None
        known = {"url": "", "auth": "", "headers": {}} | facts
        wrong = facts.keys() - FIELDS or [name for name in ("url", "auth") if not isinstance(known[name], str)]
        if wrong or not known["url"] or not isinstance(known["headers"], dict):
            raise ValueError(f"{path} must have url, and may have auth and headers, and nothing else")
        try:
            headers, self._mask = read_headers(known["auth"], known["headers"])
            hosts = {urlsplit(facts["url"]).hostname or ""}  # the operator names it: it may be inside the network
            self._wire = Wire(facts["url"], headers, n_connections=AT_ONCE, hosts=hosts)
        except (EndpointRefused, KeyUnreadable) as problem:
            raise ValueError(problem.detail) from None

    def ask(
        self,
        line: Mapping[str, Any],
        *,
        seconds: float,
        check: Callable[[], None] = lambda: None,
        tries: int = TRIES,
        longest_wait: float = LONGEST_WAIT_SECONDS,
    ) -> bytes:
        """Send one request and return the reply; tried again where it may pass. Raises ServiceSilent."""
        body = json.dumps(line).encode()
        for n_failed in range(1, tries + 1):
            check()
            wait: float | None = None
            try:
                reply = self._wire.post("", body, seconds=seconds)
            except TryFailed as problem:
                words, wait = str(problem).rstrip("."), problem.seconds
            except (CallFailed, EndpointRefused) as problem:
                raise ServiceSilent(self._mask.text(str(problem).rstrip("."))) from None
            else:
                if reply.status == 200:
                    return reply.content
                words = f"it answered with status {reply.status}"
                if reply.status not in RETRIED:
                    raise ServiceSilent(words)
                wait = wished_seconds(reply.headers, datetime.now(UTC))
            if n_failed < tries:
                wished = backoff_seconds(n_failed, random.Random()) if wait is None else wait  # noqa: S311
                self._is_cut.wait(min(wished, longest_wait))
        raise ServiceSilent(f"{self._mask.text(words)}, {tries} times in a row")

    def cut(self) -> None:
        """End every call that is under way; `check` is called before it would be tried again."""
        self._is_cut.set()
        self._wire.cut()

    def close(self) -> None:
        self._wire.close()


def probe_service(path: Path) -> InstalledScorer:
    """Return a service as a scorer. Its digest covers its version and what it says of PROBES."""
    try:
        service = ScorerService(path)
    except (ValueError, OSError) as problem:
        return InstalledScorer("http", path.stem, "", "", str(path), str(problem))
    version, replies = "", []
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            ask = partial(service.ask, seconds=PROBE_SECONDS, tries=PROBE_TRIES, longest_wait=PROBE_WAIT_SECONDS)
            for content in pool.map(ask, PROBES):
                reply = json.loads(content)
                version = str(reply.get("version", ""))
                replies.append({name: reply.get(name) for name in ("value", "answer", "scores", "error")})
    except ServiceSilent as problem:
        return InstalledScorer("http", path.stem, "", version, str(path), f"it gave no answer to a probe: {problem}")
    except (ValueError, AttributeError, RecursionError):
        return InstalledScorer("http", path.stem, "", version, str(path), "its answer to a probe is no JSON object")
    finally:
        service.close()
    digest = digest_json({"version": version, "replies": replies})
    return InstalledScorer("http", path.stem, digest, version, str(path))
