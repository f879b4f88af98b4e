"""Teams' own scorers on this worker: which there are, and the processes that score (docs/suites.md)."""

import concurrent.futures
import contextlib
import functools
import hashlib
import importlib.machinery
import importlib.metadata
import os
import re
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from django.conf import settings

from evalboard import scorers
from evalboard.contract.scorer import InstalledScorer, Kind
from evalboard.core import scoring
from evalboard.core.answer import split_parts
from evalboard.core.digest import canonical_json
from evalboard.core.scoring import SCORER_NAME, ScorerReply, UnreadableReply
from runs.work import ToScore
from worker import sandbox
from worker.engines.process import DeadlinePassed, LineProcess, LineTooLong, ProcessEnded
from worker.http_scorer import AT_ONCE, ScorerService, ServiceSilent, probe_service

START_SECONDS = 60.0  # for the first reply, on top of a reply's own time: a package may import much
CHECK_SECONDS = 1.0
FAILURES_IN_A_ROW = 10  # responses without a reply; then the others are not asked about
MAX_LINE_BYTES = 1 << 20
UNCONFINED = "[not confined]"  # before every reason, where the operator lets scorers run so
MAX_WORDS = 200  # characters of what a scorer wrote on stderr
PROBE_AGAIN_SECONDS = 600.0
STILL_ASKED = "it has yet to answer the probes"
NAME_RULE = "a scorer's name must be 1 to 80 letters, digits, '.', '_' or '-', beginning with a letter or digit"
NOT_EXECUTABLE = "it cannot be executed: chmod +x"
STARTS_WITHOUT_REPLY = 2  # of a process that has never replied; then no more are started
_looks: dict[Path, "_ServiceLook"] = {}
NOT_CODE = {"__pycache__", ".git"}
PACKAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


def find_scorers(
    *, asks_again: bool = False, check: Callable[[], None] = lambda: None, wait_seconds: float = 0.0
) -> list[InstalledScorer]:
    """List this worker's scorers: entry points of packages, and what EVALBOARD_SCORERS_DIR has.

    That holds programs, and a TOML file for each service. Nothing of theirs is imported or run. asks_again: wait for
    what services say now; `check` is called every second and may raise. Else what they said in the last
    PROBE_AGAIN_SECONDS counts: they are asked in threads of their own, and waited for at most `wait_seconds` each.
    """
    points = importlib.metadata.entry_points(group=scorers.GROUP)
    scorers_here = [_look("python", point.name, point.value, partial(_package, point)) for point in points]
    folder = settings.SCORERS_DIR
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix == ".toml":
            look = partial(_service, path, asks_again=asks_again, check=check, wait_seconds=wait_seconds)
            scorers_here.append(_look("http", path.stem, str(path), look))
        elif path.is_file() and (os.access(path, os.X_OK) or _begins_as_script(path)):
            scorers_here.append(_look("command", path.name, str(path), partial(_program, path)))
    if settings.UNCONFINED_SCORERS or all(each.kind == "http" for each in scorers_here):
        return scorers_here
    return [
        each if each.kind == "http" else replace(each, problem=each.problem or _find_gap()) for each in scorers_here
    ]


def _look(kind: Kind, name: str, place: str, find: Callable[[], InstalledScorer]) -> InstalledScorer:
    """Return a scorer; one whose files cannot be read has that as its problem."""
    if SCORER_NAME.fullmatch(name) is None:
        return InstalledScorer(kind, name, "", "", place, f"{place}: {NAME_RULE}")
    try:
        return find()
    except OSError as problem:
        return InstalledScorer(kind, name, "", "", place, f"{problem.filename or place}: {problem.strerror}")
    except AttributeError:  # importlib's word for an entry point that it cannot read
        return InstalledScorer(kind, name, "", "", place, f"{place} is no `module:name`")


@functools.cache
def _find_gap() -> str:
    return sandbox.find_gap() or ""


def _package_paths() -> list[Path]:
    """Return the import path of a scorer: the worker's own, less what has data or secrets in it."""
    private = [settings.DATA_DIR, settings.SECRETS_DIR, settings.SCORERS_DIR, settings.BASE_DIR / "manage.py"]
    paths = [Path(path).absolute() for path in sys.path]
    return [path for path in paths if path.exists() and not any(each.is_relative_to(path) for each in private)]


class _ServiceLook:
    """What a service says, asked in a thread of its own: a slow one delays no other work and no heartbeat."""

    def __init__(self, path: Path, changed: int, before: InstalledScorer | None) -> None:
        """changed: when its file was. before: what it said last, which counts until the probes are answered."""
        self._path, self.changed = path, changed
        self.began = time.monotonic()
        self.own = before
        self.thread = threading.Thread(target=self._ask, daemon=True)
        self.thread.start()

    def _ask(self) -> None:
        try:
            self.own = probe_service(self._path)
        except Exception as problem:  # noqa: BLE001  else it would be "still asked" for ever
            self.own = InstalledScorer("http", self._path.stem, "", "", str(self._path), f"it broke: {problem}")


def _service(path: Path, *, asks_again: bool, check: Callable[[], None], wait_seconds: float) -> InstalledScorer:
    changed, last = path.stat().st_mtime_ns, _looks.get(path)
    known = last.own if last is not None and last.changed == changed else None
    is_due = last is None or last.changed != changed or time.monotonic() - last.began > PROBE_AGAIN_SECONDS
    if last is None or asks_again or (is_due and not (last.thread.is_alive() and last.changed == changed)):
        last = _looks[path] = _ServiceLook(path, changed, known)
    last.thread.join(wait_seconds)
    while asks_again and last.thread.is_alive():
        check()
        last.thread.join(CHECK_SECONDS)
    return last.own or InstalledScorer("http", path.stem, "", "", str(path), STILL_ASKED)


def _package(point: importlib.metadata.EntryPoint) -> InstalledScorer:
    top = point.module.partition(".")[0]
    spec = importlib.machinery.PathFinder.find_spec(top)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = [Path(spec.origin)] if spec and spec.origin and not folders else []
    for each in folders:
        files += [path for path in Path(each).rglob("*") if path.is_file() and not NOT_CODE & set(path.parts)]
    base = Path(folders[0]) if folders else files[0].parent if files else Path()
    problem = "" if files else f"its module {top} is not there: install it by pip, not as editable (-e)"
    version = point.dist.version if point.dist else ""
    digest = _digest(base, files, "\0".join([point.value, *_list_dependencies(point.dist)]))
    return InstalledScorer("python", point.name, digest, version, point.value, problem)


def _list_dependencies(package: importlib.metadata.Distribution | None) -> list[str]:
    """Return "name==version" of each package that a package declares, without extras.

    One that is not installed has no version.
    """
    declared = (package.requires or []) if package else []
    names = {match[0].lower() for each in declared if "extra ==" not in each and (match := PACKAGE_NAME.match(each))}
    return [f"{name}=={_find_version(name)}" for name in sorted(names)]


def _find_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _begins_as_script(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(2) == b"#!"
    return False


def _program(path: Path) -> InstalledScorer:
    if not os.access(path, os.X_OK):
        return InstalledScorer("command", path.name, "", "", str(path), f"{NOT_EXECUTABLE} {path}")
    return InstalledScorer("command", path.name, _digest(path.parent, [path], ""), "", str(path))


def _digest(base: Path, files: Iterable[Path], entry: str) -> str:
    """Return the SHA-256 over an entry point and the names and contents of files, whatever their order."""
    whole = hashlib.sha256(f"{entry}\0".encode())
    for path in sorted(files):
        whole.update(f"{path.relative_to(base).as_posix()}\0".encode())
        facts = path.stat()
        whole.update(_content_digest(path, facts.st_mtime_ns, facts.st_size))
    return whole.hexdigest()


@functools.lru_cache(maxsize=10_000)
def _content_digest(path: Path, _changed: int, _size: int) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


class PlanScorer:
    """Scores by a plan: by our own rules here, and by each of a team's scorers in a process.

    Its processes end with the `with` block. check: raises where the work must end; asked every second.
    """

    def __init__(self, plan: scoring.Plan, *, check: Callable[[], None]) -> None:
        self._plan = plan
        self._check = check
        self._specs = list(scoring.external_specs(plan))
        self._here = {each.digest: each for each in self._find()}
        self._processes: dict[bytes, AskedScorer] = {}
        self._lock = threading.Lock()

    def _find(self) -> list[InstalledScorer]:
        is_called = any(spec["kind"] == "http" for spec in self._specs)
        return find_scorers(asks_again=is_called, check=self._check) if self._specs else []

    @property
    def missing(self) -> list[str]:
        """Return the names of the scorers that were not here at the start."""
        return [spec["name"] for spec in self._specs if spec["digest"] not in self._here]

    def find_changed(self) -> list[str]:
        """Return the names of the scorers that are other code by now, or gone.

        A service that no longer answers has answered until now, and is none of them.
        """
        now = {(each.kind, each.name): each.digest for each in self._find()}
        silent = {key for key, digest in now.items() if key[0] == "http" and not digest}
        here = set(now.values())
        gone = [spec for spec in self._specs if spec["digest"] not in here]
        return [spec["name"] for spec in gone if (spec["kind"], spec["name"]) not in silent]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.close()

    def score_all(self, responses: Sequence[ToScore]) -> Iterator[tuple[int, ScorerReply]]:
        """Yield index and score of each. Services are asked about several at once, processes about one."""
        called: list[ToScore] = []
        others: list[ToScore] = []
        for each in responses:
            is_called = scoring.scorer_for(self._plan, each.case_id)["kind"] == "http"
            (called if is_called else others).append(each)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            calls = [pool.submit(self.score, response) for response in called]
            try:
                for response, call in zip(called, calls, strict=True):
                    while not concurrent.futures.wait([call], timeout=CHECK_SECONDS).done:
                        self._check()
                    yield response.index, call.result()
            except BaseException:  # the work must end: no call is waited for
                pool.shutdown(wait=False, cancel_futures=True)
                for process in self._processes.values():
                    if isinstance(process, ServiceCalls):
                        process.cut()
                raise
        for response in others:
            self._check()
            yield response.index, self.score(response)

    def score(self, response: ToScore) -> ScorerReply:
        spec = scoring.scorer_for(self._plan, response.case_id)
        if spec["kind"] not in scoring.EXTERNAL:
            given = scoring.score(
                spec,
                text=response.text,
                target=response.target,
                tools=response.tools,
                thinking=response.thinking,
                is_truncated=response.is_truncated,
            )
            return ScorerReply(given.value, given.reason, given.answer)
        if response.is_truncated:
            return ScorerReply(scoring.TRUNCATED.value, scoring.TRUNCATED.reason)
        if (installed := self._here.get(spec["digest"])) is None:
            return _unscored(f"The scorer {spec['name']} is no longer on this worker.")
        key = canonical_json(spec)
        with self._lock:
            if key not in self._processes:
                made = ServiceCalls if installed.kind == "http" else ScorerProcess
                self._processes[key] = made(spec, installed, self._check)
        return self._processes[key].score(response)


class NoReply(Exception):
    """A scorer gave no reply; the text says what it did instead."""


class AskedScorer(ABC):
    """A team's scorer, asked about one response after another. A failure leaves one unscored."""

    def __init__(self, spec: Mapping[str, Any], installed: InstalledScorer, check: Callable[[], None]) -> None:
        self._spec, self._installed, self._check = spec, installed, check
        self._n_silent = 0  # responses in a row without a reply
        self._n_allowed = FAILURES_IN_A_ROW
        self._last_problem = ""

    def score(self, response: ToScore) -> ScorerReply:
        """Score one response; an unscored one has the scorer's words."""
        if self._n_silent >= self._n_allowed:
            return _unscored(f"{self._last_problem} It was so {self._n_silent} times in a row, so no more were tried.")
        try:
            line = self._ask(_line(response, self._spec["options"]))
            reply = scoring.read_reply(self._spec, line, number=response.index)
        except NoReply as problem:
            return self._failed(str(problem))
        except UnreadableReply as problem:
            if not problem.is_in_step:  # a process would answer each later response with the line before
                self._start_over()
                return self._failed(f"{problem}.")
            return _unscored(f"The scorer {self._installed.name} {problem}.")
        self._n_silent = 0
        if reply.value is None:
            return _unscored(reply.reason)
        is_confined = self._installed.kind == "http" or not settings.UNCONFINED_SCORERS
        return reply if is_confined else replace(reply, reason=scoring.capped(f"{UNCONFINED} {reply.reason}".rstrip()))

    @abstractmethod
    def close(self) -> None:
        """End what it runs in."""

    @abstractmethod
    def _start_over(self) -> None:
        """Forget what was written and not read."""

    @abstractmethod
    def _ask(self, line: Mapping[str, Any]) -> bytes:
        """Return what it writes about a response. Raises NoReply."""

    def _failed(self, what: str) -> ScorerReply:
        self._n_silent += 1
        self._last_problem = f"The scorer {self._installed.name} {what}"
        return _unscored(self._last_problem)


class ScorerProcess(AskedScorer):
    """A package or a program, in a confined process of its own."""

    _process: LineProcess | None = None
    _has_replied = False

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _start_over(self) -> None:
        self.close()

    def _ask(self, line: Mapping[str, Any]) -> bytes:
        began = time.monotonic()
        seconds = self._spec["seconds"] + (START_SECONDS if self._process is None else 0)
        try:
            process = self._process = self._process or self._start()
            process.send(line, seconds=seconds)
            line_back = self._receive(process, deadline=began + seconds)
            self._has_replied, self._n_allowed = True, FAILURES_IN_A_ROW
            return line_back
        except DeadlinePassed:
            what = f"gave no score within {seconds:g} seconds."
            if not self._has_replied:  # each start takes START_SECONDS more
                self._n_allowed = STARTS_WITHOUT_REPLY
                what = f"{what} It must flush each line that it writes."
        except LineTooLong:
            what = f"wrote a line of more than {MAX_LINE_BYTES} bytes."
        except ProcessEnded:
            what = "ended."
        except OSError as problem:
            what = f"did not start: {problem.strerror or problem}"
        ended = self._process
        self.close()
        last = "" if ended is None else ended.last_words().strip().rpartition("\n")[2][:MAX_WORDS]
        raise NoReply(f"{what} It wrote: {last}" if last else what)

    def _receive(self, process: LineProcess, *, deadline: float) -> bytes:
        while True:
            try:
                return process.receive_line(
                    deadline=min(deadline, time.monotonic() + CHECK_SECONDS), most_bytes=MAX_LINE_BYTES
                )
            except DeadlinePassed:
                self._check()
                if time.monotonic() >= deadline:
                    raise

    def _start(self) -> LineProcess:
        own = self._installed
        paths = _package_paths()  # the worker's own, so that what it found is what runs
        python = [sys.executable, "-I", scorers.__file__, own.place, *map(str, paths)]
        command = [own.place] if own.kind == "command" else python
        itself = Path(own.place if own.kind == "command" else scorers.__file__)
        settled = Path(sys.prefix, "pyvenv.cfg")  # without which an environment's Python does not start
        readable = [each for each in (itself, settled, *paths) if each.exists()]
        if settings.UNCONFINED_SCORERS:
            return LineProcess(command, sandbox.ENVIRONMENT)
        limits = (self._spec[name] for name in ("memory_mb", "processes", "scratch_mb"))
        return sandbox.ConfinedLines(command, confinement=sandbox.Confinement(*limits), readable=readable)


class ServiceCalls(AskedScorer):
    """Calls of a service, several at once."""

    def __init__(self, spec: Mapping[str, Any], installed: InstalledScorer, check: Callable[[], None]) -> None:
        super().__init__(spec, installed, check)
        self._service = ScorerService(Path(installed.place))

    def close(self) -> None:
        self._service.close()

    def cut(self) -> None:
        """End the calls that other threads make."""
        self._service.cut()

    def _start_over(self) -> None:
        pass  # each call has a reply of its own

    def _ask(self, line: Mapping[str, Any]) -> bytes:
        try:
            return self._service.ask(line, seconds=self._spec["seconds"], check=self._check)
        except ServiceSilent as problem:
            raise NoReply(f"gave no reply: {problem}.") from None


def _line(response: ToScore, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a scorer is asked: docs/suites.md has the fields."""
    parts = split_parts(response.text)
    return {
        "id": response.index,
        "case": {
            "id": response.case_id,
            "messages": response.messages,
            "target": response.target,
            "tools": response.tools,
            "tags": response.tags,
        },
        "response": {
            "text": parts.text or ("" if parts.calls else response.text),
            "calls": parts.calls or [],
            "thinking": response.thinking,
            "finish_reason": response.finish_reason,
        },
        "options": options,
    }


def _unscored(reason: str) -> ScorerReply:
    return ScorerReply(None, scoring.capped(f"Unscored: {reason}"))
