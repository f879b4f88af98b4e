"""Read how far something is from each kind of answer, and write the time left and a size in words."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalboard.wording.numbers import fixed
from evalboard.wording.run import describe_ahead, describe_giving_up, describe_pause

if TYPE_CHECKING:
    from evalboard.client.answers import Answer
    from evalboard.contract.compare import Comparison
    from evalboard.contract.parts import Pause
    from evalboard.contract.probe import Probe
    from evalboard.contract.replay import Replay
    from evalboard.contract.run import Run
    from evalboard.contract.suite import RescoredRun, Trial


@dataclass(frozen=True, slots=True)
class WaitProgress:
    """The progress of something waited for. name: "run 3"; unit: what is counted, "responses"."""

    name: str
    unit: str
    status: str
    n_done: int
    n_total: int
    is_terminal: bool
    eta_seconds: float | None = None
    note: str = ""  # what keeps it waiting
    pause: str = ""  # why its endpoint is not called, and until when


def run_progress(answer: "Answer[Run]") -> WaitProgress:
    run, progress = answer.value, answer.value.progress
    n_done, n_total = progress.n_done, progress.n_total
    return WaitProgress(
        f"run {run.id}",
        "responses",
        "waiting for endpoint" if run.waiting_for else run.status,
        n_done,
        n_total,
        run.is_terminal,
        eta_seconds=progress.eta_seconds,
        note=describe_ahead(run.ahead) if run.ahead and run.ahead.n_shards else run.waits_for or "",
        pause=" ".join(filter(None, (render_pause(run.waiting_for), _giving_up(run)))),
    )


def trial_progress(answer: "Answer[Trial]") -> WaitProgress:
    trial = answer.value
    return WaitProgress(f"case {trial.case}", "answers", trial.status, trial.is_terminal, 1, trial.is_terminal)


def rescored_progress(answer: "Answer[RescoredRun]") -> WaitProgress:
    rescored = answer.value
    status, n_done = ("scoring", sum(score is not None for score in rescored.after))
    name, note = f"run {rescored.run}", rescored.waits_for or ""
    return WaitProgress(name, "repeats", status, n_done, len(rescored.after), not rescored.waiting, note=note)


def comparison_progress(answer: "Answer[Comparison]") -> WaitProgress:
    comparison, progress = answer.value, answer.value.progress
    name = f"comparison of {comparison.baseline} and {comparison.candidate}"
    is_terminal = progress.status in ("finished", "failed")
    return WaitProgress(name, "pairs of traces", progress.status, progress.n_done, progress.n_total, is_terminal)


def probe_progress(answer: "Answer[Probe]") -> WaitProgress:
    probe, calls = answer.value, answer.value.progress
    unit = "runs and scorings" if probe.sets else "calls"
    name, pause = f"probe {probe.id}", render_pause(probe.pause)
    return WaitProgress(name, unit, probe.status, calls.n_done, calls.n_total, probe.is_terminal, pause=pause)


def replay_progress(answer: "Answer[Replay]") -> WaitProgress:
    replay = answer.value
    n_done, n_total = len(replay.results), len(replay.variants)
    return WaitProgress(f"replay {replay.id}", "variants", replay.status, n_done, n_total, replay.is_terminal)


def render_pause(pause: "Pause | None") -> str:
    """Say it with the time of this machine's zone."""
    if pause is None:
        return ""
    return describe_pause(n_failures=pause.n_failures, reason=pause.reason, until=pause.until, zone=None)


def _giving_up(run: "Run") -> str:
    return "" if run.gives_up_at is None else describe_giving_up(run.gives_up_at, zone=None)


def render_time_left(progress: WaitProgress) -> str:
    if progress.eta_seconds is None:
        return ""
    if progress.eta_seconds < 90:
        return f"about {progress.eta_seconds:.0f} s left"
    return f"about {progress.eta_seconds / 60:.0f} min left"


def render_size(n_bytes: int) -> str:
    """Return a size as pages write it: "6.4 MB", of a million bytes each."""
    if n_bytes < 1_000_000:
        return f"{fixed(n_bytes / 1000, 1)} kB"
    return f"{fixed(n_bytes / 1_000_000, 1)} MB"
