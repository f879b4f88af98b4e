"""`evalboard up`: start database, web, engine and runner of one machine in order, watch and stop them."""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from evalboard.client.program import program
from evalboard.local import engine, postgres
from evalboard.local.children import Child, in_words, wait_until
from evalboard.local.folder import OWNER_ONLY, DataFolder
from evalboard.local.progress import ProgressReporter
from evalboard.local.report import CannotStart, Report
from evalboard.local.signin import PERSON

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
PAGE_SECONDS = 60.0
LOOK_SECONDS = 2.0
WATCH_SECONDS = 0.2
# Longer than any client keeps a connection that it will use again: who asks just when it closes gets no answer.
KEEP_ALIVE_SECONDS = 75
# A runner that lived this long had started well; the next death is not the same trouble again.
STEADY_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 60.0


class Ended(BaseException):
    """The person, the terminal or the machine asked to end. No error, so `except Exception` ignores it."""


@dataclass(frozen=True)
class Options:
    port: int
    data_dir: Path
    database_url: str | None
    vllm_python: Path | None
    without_engine: str | None = None  # why none is started

    @classmethod
    def read(cls, environment: Mapping[str, str], *, port: int) -> "Options":
        without_engine = engine.missing_reason(environment)
        given = None if without_engine else environment.get("EVALBOARD_VLLM_PYTHON")
        return cls(
            port=port,
            data_dir=Path(environment.get("EVALBOARD_DATA_DIR") or ROOT / "data"),
            database_url=environment.get("DATABASE_URL") or None,
            vllm_python=Path(given) if given else None,
            without_engine=without_engine,
        )


@dataclass(eq=False)
class ChildJob:
    """A child with a single task. words: the name of the step; empty if the child reports itself."""

    child: Child
    words: str
    began: float = field(default_factory=time.monotonic)


class Up:
    """One machine's installation, from its start to Ctrl-C."""

    def __init__(self, options: Options, report: Report) -> None:
        self._options = options
        self._report = report
        self._address = f"http://{HOST}:{options.port}"
        self._folder = DataFolder(options.data_dir)
        self._database: postgres.Server | None = None
        self._web: Child | None = None
        self._jobs: list[
            ChildJob
        ] = []  # what is under way and ends by itself: a command, an installation, a conversion
        self._runner: RunnerProcess | None = None
        self._environment: dict[str, str] = {}
        self._is_asked_to_end = False

    def run(self) -> None:
        """Start everything and stay until a signal asks for the end. Raises CannotStart."""
        os.umask(OWNER_ONLY)  # of everything that is started here, too
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._end)
        try:
            self._start()
            self._stay()
        except Ended:
            self._report.say("\nStopping. Running work goes back to the queue and is taken up by the next `make up`.")
        finally:
            self._stop()

    def _start(self) -> None:
        self._folder.prepare()
        if self._options.vllm_python:
            engine.check_given(self._options.vllm_python, needs_model=not self._folder.sample_model.exists())
        self._folder.hold({"pid": os.getpid(), "url": self._address})
        check_port(self._options.port)
        if self._options.database_url is None:
            self._database = postgres.Server(self._folder.postgres, log=self._folder.logs / "postgres.log")
        self._environment = self._make_environment()
        # Neither needs the other: a first start takes seconds for each.
        static = self._begin("static files", "collect_static")
        self._start_database()
        samples = self._start_web(self._begin_samples(), static)
        link = self._address + samples["signin"]
        self._report.say(f"\nThe page is up. This link signs you in, once:\n\n    {link}\n", url=link)
        tour = self._begin_tour(is_first=samples["is_first"])
        if self._options.without_engine:
            self._finish_tour(tour)
            self._report.say(
                f"No engine is started here ({self._options.without_engine}), and so no sample run. "
                f"External endpoints and imported logs work: {program()} endpoint add --help"
            )
        else:
            self._start_engine()
        self._runner = RunnerProcess(self._report, environment=self._environment, log=self._folder.logs / "runner.log")
        self._finish_tour(tour)
        if samples["runs"]:
            self._follow(samples["runs"])

    def _start_database(self) -> None:
        if self._database is None:
            postgres.check_answers(self._options.database_url or "")
            return
        with self._report.step(f"PostgreSQL {postgres.VERSION} in {self._folder.postgres}"):
            self._database.start()
            self._database.create_database("evalboard")

    def _begin_samples(self) -> "ChildJob":
        """Bring the tables up to date, and begin to load the samples, which go on meanwhile."""
        options = ["--no-engine"] if self._options.without_engine else []
        what = "sample suite and profiles" if options else "sample suite, profiles, endpoints and runs"
        with self._report.step("database tables"):
            job = self._begin(what, "load_samples", "--migrate", "--no-tour", *options)
            while job in self._jobs and not job.child.output():
                self._pause()
        job.began = time.monotonic()
        return job

    def _begin_tour(self, *, is_first: bool) -> "ChildJob | None":
        """Begin to load the tour onto a fresh board; a start that was cut off leaves that to the next."""
        if is_first:
            self._folder.awaits_tour.touch()
        if not self._folder.awaits_tour.exists():
            return None
        return self._begin("sample tour", "sample_tour", PERSON)

    def _finish_tour(self, tour: "ChildJob | None") -> None:
        if tour is not None:
            self._finish(tour)
            self._folder.awaits_tour.unlink(missing_ok=True)

    def _make_environment(self) -> dict[str, str]:
        own = engine.NO_PYTHON if self._options.without_engine else engine.own_python(ROOT)
        python = self._options.vllm_python or own
        return {
            "EVALBOARD_SECRET_KEY": self._folder.secret(),
            "EVALBOARD_VERDICT_KEY": self._folder.secret("verdict-key"),
            "EVALBOARD_PUBLIC_ADDRESS": self._address,
            "EVALBOARD_STATIC_DIR": str(self._folder.static),
            **os.environ,
            "DATABASE_URL": self._options.database_url or (self._database.url("evalboard") if self._database else ""),
            "EVALBOARD_DATA_DIR": str(self._folder.path),
            "EVALBOARD_VLLM_PYTHON": str(python),
            "EVALBOARD_WEB_BIND": f"{HOST}:{self._options.port}",
            "PYTHONUNBUFFERED": "1",
        }

    def _begin(self, words: str, *arguments: str) -> "ChildJob":
        """Start a management command without logging its stdout, which may be a secret such as a sign-in link."""
        log = self._folder.logs / f"{arguments[0]}.log"
        log.write_bytes(b"")
        command: list[str | Path] = [sys.executable, ROOT / "manage.py", *arguments]
        name = f"manage.py {arguments[0]}"
        return self._add(Child(name, command, log=log, env=self._environment, cwd=ROOT, captures=True), words)

    def _add(self, child: Child, words: str = "") -> "ChildJob":
        job = ChildJob(child, words)
        self._jobs.append(job)
        return job

    def _start_web(self, samples: "ChildJob", static: "ChildJob") -> dict[str, Any]:
        """Start the web server, wait until it answers and the samples are loaded; return the loader's output."""
        self._finish(static)  # the web server looks once which files there are
        began = time.monotonic()
        command = [sys.executable, "-m", "gunicorn", "evalboard.wsgi", "--bind", f"{HOST}:{self._options.port}"]
        command += ["--worker-class", "gthread", "--workers", "1", "--threads", "8", "--no-control-socket"]
        command += ["--keep-alive", str(KEEP_ALIVE_SECONDS)]
        log = self._folder.logs / "web.log"
        self._web = Child("the web server", command, log=log, env=self._environment, cwd=ROOT)
        if not wait_until(self._page_answers, PAGE_SECONDS):
            raise CannotStart(f"The page does not answer within {PAGE_SECONDS:.0f} s; {log} may say why.")
        self._report.tell_step("page", time.monotonic() - began)
        self._finish(samples)
        loaded: dict[str, Any] = json.loads(samples.child.output().splitlines()[-1])
        return loaded

    def _page_answers(self) -> bool:
        self._watch()
        connection = HTTPConnection(HOST, self._options.port, timeout=5)
        try:
            connection.request("GET", "/api/v1/health")
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def _start_engine(self) -> None:
        python = self._options.vllm_python
        if python is None:
            python = engine.own_python(ROOT)
            log = self._folder.logs / "install.log" if self._report.as_json else None
            self._finish(self._add(engine.start_install(ROOT, log=log)))
        log = self._folder.logs / "sample_model.log"
        conversion = engine.start_conversion(python, ROOT, out=self._folder.sample_model, log=log)
        self._finish(self._add(conversion, "sample model"))

    def _finish(self, job: "ChildJob") -> None:
        """Wait until a job is done, watching the others meanwhile."""
        while job in self._jobs:
            self._pause()

    def _pause(self) -> None:
        self._watch()
        time.sleep(WATCH_SECONDS / 4)

    def _look_after(self, job: "ChildJob") -> None:
        """See whether a job has ended, and report it. Raises CannotStart where it failed."""
        job.child.output()
        status = job.child.exit_status()
        if status is None:
            return
        self._jobs.remove(job)
        if status != 0:
            raise CannotStart(
                _why(job.child, status) if job.child.log else f"the {job.child.name} are missing; the reason is above."
            )
        if job.words:
            self._report.tell_step(job.words, time.monotonic() - job.began)

    def _follow(self, run_ids: list[Any]) -> None:
        token = self._folder.token()
        if token is None:
            return
        progress = ProgressReporter(self._report, address=self._address, token=token, run_ids=run_ids)
        try:
            while not progress.is_over:
                progress.look()
                self._watch_for(LOOK_SECONDS)
        finally:
            progress.close()
        self._report.say("\nThe sample runs have ended. The page stays up until Ctrl-C.")

    def _stay(self) -> NoReturn:
        while True:
            self._watch_for(LOOK_SECONDS)

    def _watch_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._watch()
            time.sleep(WATCH_SECONDS)

    def _watch(self) -> None:
        """Raise if the database or the web server has ended.

        Raises Ended for a signal whose own exception was lost, too: Python ignores what is raised in some hooks.
        """
        if self._is_asked_to_end:
            raise Ended
        if self._database and self._database.exit_status() is not None:
            raise CannotStart(
                f"PostgreSQL {self._database.state()}; {self._database.log} says why. Run `make up` again."
            )
        if self._web and (status := self._web.exit_status()) is not None:
            raise CannotStart(_why(self._web, status))
        if self._runner:
            self._runner.watch()
        for job in list(self._jobs):
            self._look_after(job)

    def _end(self, number: int, frame: FrameType | None) -> NoReturn:
        self._is_asked_to_end = True
        raise Ended

    def _stop(self) -> None:
        """End everything in the order in which one leans on the other; a second signal hurries."""
        leaning = [*(job.child for job in self._jobs), self._runner, self._web, self._database]
        parts = [part for part in leaning if part is not None]
        try:
            for part in parts:
                part.stop(self._report.say)
        except Ended:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            for part in parts:
                part.kill()
        self._folder.release()


class RunnerProcess:
    """The process that works on shards; started again when it dies, each time after a longer pause."""

    def __init__(self, report: Report, *, environment: Mapping[str, str], log: Path) -> None:
        self._report = report
        self._environment = environment
        self._log = log
        self._n_deaths = 0
        self._start_at = 0.0
        self._child: Child | None = None
        self._start()

    def _start(self) -> None:
        self._started_at = time.monotonic()
        command = [sys.executable, "-m", "worker"]
        # It may be in the middle of a response; its own end hands the shard back.
        self._child = Child("the runner", command, log=self._log, env=self._environment, cwd=ROOT, patience=20)

    def watch(self) -> None:
        if self._child is None:
            if time.monotonic() >= self._start_at:
                self._start()
            return
        status = self._child.exit_status()
        if status is None:
            return
        now = time.monotonic()
        self._n_deaths = 1 if now - self._started_at > STEADY_SECONDS else self._n_deaths + 1
        pause = min(2.0 ** (self._n_deaths - 1), LONGEST_PAUSE_SECONDS)
        last = self._child.end_of_log(lines=1)
        self._report.say(
            f"          The runner ended with {in_words(status)} and is started again in {pause:.0f} s; "
            f"{self._log} ends with: {last}"
        )
        self._child, self._start_at = None, now + pause

    def stop(self, tell: Callable[[str], None]) -> None:
        if self._child:
            self._child.stop(tell)

    def kill(self) -> None:
        if self._child:
            self._child.kill()


def check_port(port: int) -> None:
    """Refuse a port that another program has or that this user may not have."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError as problem:
            raise CannotStart(
                f"Port {port} of {HOST} cannot be had ({problem.strerror}); choose another, "
                f"as in `make up PORT={port + 1 if port >= 1024 else 8800}`."
            ) from problem


def _why(child: Child, status: int) -> str:
    return f"{child.name} ended with {in_words(status)}; {child.log} ends with: {child.end_of_log(lines=1)}"
