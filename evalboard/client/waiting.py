"""Ask a server that may be restarting, follow what it works on to its end, and show how that gets on.

A bar on a terminal, lines in CI and in files; the same for a file that comes or goes.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from evalboard.client.errors import Unreachable
from evalboard.wording.numbers import fixed
from evalboard.wording.run import describe_ahead, describe_pause

if TYPE_CHECKING:
    from evalboard.client.answers import Answer
    from evalboard.contract.comparison import Comparison
    from evalboard.contract.forced import ForcedScoring
    from evalboard.contract.lab import Experiment
    from evalboard.contract.parts import Pause
    from evalboard.contract.probe import Probe
    from evalboard.contract.replay import Replay
    from evalboard.contract.run import Run

# Between two looks: a quick end is seen within a second, and what takes an hour is asked after less and less.
LOOK_SECONDS, MAX_LOOK_SECONDS = 0.5, 5.0
SHARE_WAITED = 1 / 20  # of the time waited so far
# A server that restarts is back within this; what was asked of it goes on without it.
GIVE_UP_SECONDS = 300.0
MAX_BACKOFF_SECONDS = 15.0
LINE_SECONDS = 30.0  # a line for each look would bury a CI log

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far something is that is waited for: `name` is "run 3", `unit` what it consists of, "responses"."""

    name: str
    unit: str
    status: str
    n_done: int
    n_total: int
    is_terminal: bool
    eta_seconds: float | None = None
    note: str = ""  # what keeps it waiting
    pause: str = ""  # why its endpoint is not called, and until when


def run_progress(answer: "Answer[Run]") -> Progress:
    run, progress = answer.value, answer.value.progress
    n_done, n_total = progress.n_done, progress.n_total
    return Progress(
        f"run {run.id}",
        "responses",
        run.status,
        n_done,
        n_total,
        run.is_terminal,
        eta_seconds=progress.eta_seconds,
        note=describe_ahead(run.ahead) if run.ahead and run.ahead.n_shards else "",
        pause=_pause(run.pause),
    )


def comparison_progress(answer: "Answer[Comparison]") -> Progress:
    comparison, progress = answer.value, answer.value.progress
    name = f"comparison of {comparison.baseline} and {comparison.candidate}"
    is_terminal = progress.status in ("finished", "failed")
    return Progress(name, "pairs of traces", progress.status, progress.n_done, progress.n_total, is_terminal)


def probe_progress(answer: "Answer[Probe]") -> Progress:
    probe, calls = answer.value, answer.value.progress
    unit = "runs and scorings" if probe.sets else "calls"
    name, pause = f"probe {probe.id}", _pause(probe.pause)
    return Progress(name, unit, probe.status, calls.n_done, calls.n_total, probe.is_terminal, pause=pause)


def experiment_progress(answer: "Answer[Experiment]") -> Progress:
    experiment = answer.value
    n_done, n_total = experiment.n_done, experiment.cost.n_runs
    name, pause = f"experiment {experiment.id}", _pause(experiment.pause)
    return Progress(name, "runs", experiment.status, n_done, n_total, experiment.is_terminal, pause=pause)


def replay_progress(answer: "Answer[Replay]") -> Progress:
    replay = answer.value
    n_done, n_total = len(replay.results), len(replay.variants)
    return Progress(f"replay {replay.id}", "variants", replay.status, n_done, n_total, replay.is_terminal)


def forced_progress(answer: "Answer[ForcedScoring]") -> Progress:
    scoring = answer.value
    name, unit = f"forced scoring {scoring.id}", "answers"
    return Progress(name, unit, scoring.status, scoring.n_done, scoring.n_answers, scoring.is_terminal)


def _pause(pause: "Pause | None") -> str:
    """Say it with the time of this machine's zone."""
    return "" if pause is None else describe_pause(**dict(pause), zone=None)


class Transfer(Protocol):
    """Hears how many bytes have come, or gone, so far."""

    def tell(self, n_bytes: int) -> None: ...


class Follower(Protocol):
    """Hears how something gets on while it is waited for, and nothing of its end."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...

    def tell(self, progress: Progress) -> None: ...

    def say(self, words: str) -> None: ...


def ask_until_answered(ask: Callable[[], Result], follower: Follower, *, advice: str, give_up_after: float) -> Result:
    """Return what `ask` gives, asking again for a bounded time where the server does not answer.

    Raises Unreachable, with the advice, once that time is over. Other failures pass at once.
    """
    first_asked_at, n_silent = time.monotonic(), 0
    while True:
        try:
            return ask()
        except Unreachable as problem:
            silent_seconds = time.monotonic() - first_asked_at
            if silent_seconds >= give_up_after:
                raise Unreachable(f"{problem} No answer for {silent_seconds:.0f} s. {advice}") from problem
            if n_silent == 0:
                follower.say(f"{problem} Asking again for up to {give_up_after:.0f} s.")
            n_silent += 1
            time.sleep(min(2.0 ** (n_silent - 1), MAX_BACKOFF_SECONDS, max(give_up_after - silent_seconds, 0.1)))


def follow(
    ask: Callable[[], Result],
    read_progress: Callable[[Result], Progress],
    follower: Follower,
    *,
    come_back: str,
    give_up_after: float,
) -> Result:
    """Return what `ask` answers once it has ended; `come_back` is the command that goes on where this one gives up."""
    advice = f"What was asked for does not need this command; come back with: {come_back}"
    began_at = time.monotonic()
    while True:
        answer = ask_until_answered(ask, follower, advice=advice, give_up_after=give_up_after)
        progress = read_progress(answer)
        if progress.is_terminal:
            return answer
        follower.tell(progress)
        time.sleep(choose_pause(time.monotonic() - began_at, progress.eta_seconds))


def choose_pause(waited: float, eta: float | None) -> float:
    """Return the seconds until the next look, by the seconds waited so far and those that are left, None if unknown."""
    longest = MAX_LOOK_SECONDS if eta is None else min(eta / 2, MAX_LOOK_SECONDS)
    return max(min(SHARE_WAITED * waited, longest), LOOK_SECONDS)


def make_follower(environment: Mapping[str, str] = os.environ) -> Follower:
    """Make a bar on a terminal, else lines. Both leave stdout to the result."""
    if not is_terminal(environment):
        return Lines()
    # Here, and rich with it: in CI and in files nothing is drawn.
    from evalboard.client.bars import Bar

    return Bar()


@contextmanager
def follow_transfer(name: str) -> Iterator[Transfer]:
    """Do the same for a file that comes or goes; `name` is what it holds: "run 12"."""
    if not is_terminal():
        yield SizeLines(name)
        return
    from evalboard.client.bars import SizeBar

    with SizeBar(name) as bar:
        yield bar


def is_terminal(environment: Mapping[str, str] = os.environ) -> bool:
    """Say whether stderr is a terminal, and CI is not set."""
    in_ci = environment.get("CI", "").casefold() in ("1", "true", "yes")
    return sys.stderr.isatty() and not in_ci


class Lines:
    """A line when the status or a pause changes, and at most every half minute while responses come in."""

    def __init__(self) -> None:
        self._last: tuple[tuple[str, str], int, str] = (("", ""), -1, "")
        self._last_at = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return

    def tell(self, progress: Progress) -> None:
        current = ((progress.status, progress.pause), progress.n_done, progress.note)
        is_due = time.monotonic() - self._last_at >= LINE_SECONDS
        if current[0] == self._last[0] and not (is_due and current != self._last):
            return
        self._last, self._last_at = current, time.monotonic()
        left = render_time_left(progress)
        count = f"{progress.n_done} of {progress.n_total} {progress.unit}"
        text = f"{progress.name}: {progress.status}, {count}" + (f", {left}" if left else "")
        why = progress.pause or progress.note
        self.say(f"{text}. {why}" if why else text)

    def say(self, words: str) -> None:
        sys.stderr.write(words + "\n")
        sys.stderr.flush()


def render_time_left(progress: Progress) -> str:
    if progress.eta_seconds is None:
        return ""
    if progress.eta_seconds < 90:
        return f"about {progress.eta_seconds:.0f} s left"
    return f"about {progress.eta_seconds / 60:.0f} min left"


class SizeLines:
    """A line at most every half minute while a file comes or goes."""

    def __init__(self, name: str) -> None:
        self._name, self._last_at = name, time.monotonic()

    def tell(self, n_bytes: int) -> None:
        if time.monotonic() - self._last_at >= LINE_SECONDS:
            self._last_at = time.monotonic()
            sys.stderr.write(f"{self._name}: {render_size(n_bytes)} so far\n")
            sys.stderr.flush()


def render_size(n_bytes: int) -> str:
    """Return a size as pages write it: "6.4 MB", of a million bytes each."""
    if n_bytes < 1_000_000:
        return f"{fixed(n_bytes / 1000, 1)} kB"
    return f"{fixed(n_bytes / 1_000_000, 1)} MB"
