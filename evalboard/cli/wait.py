"""`evalboard wait`, and what `evalboard run --wait` does after starting its run."""

import json
import time
from typing import Annotated

import typer

from evalboard.cli import place
from evalboard.cli.client import Client, RunAnswer
from evalboard.cli.errors import FAILED, INTERRUPTED, CommandError, Unreachable
from evalboard.cli.progress import Follower, follower

LOOK_SECONDS = 2.0
# A server that restarts is back within this; the run itself goes on without it.
GIVE_UP_SECONDS = 300.0
BACKOFF_SECONDS_MAX = 15.0


def wait(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    give_up_after: Annotated[
        float, typer.Option(min=0, help="Seconds without an answer of the server after which to stop waiting.")
    ] = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as JSON when it has ended.")] = False,
) -> None:
    """Wait until a run has ended. Exit code 0: finished; 4: anything else."""
    if not run.isascii() or not run.isdigit():
        raise typer.BadParameter("A run's id is a number.", param_hint="RUN")
    with Client(place.find()) as client:
        finish(client, run, give_up_after=give_up_after, as_json=as_json)


def finish(client: Client, run_id: str, *, give_up_after: float, as_json: bool) -> None:
    """Follow a run to its end, print its result, and exit with its code."""
    try:
        with follower() as told:
            run = _follow(client, run_id, told, give_up_after=give_up_after)
    except KeyboardInterrupt:
        typer.echo(f"Run {run_id} goes on. Come back with: evalboard wait {run_id}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(json.dumps(run.json, ensure_ascii=False) if as_json else result(run))
    for warning in [] if as_json else run.warnings:
        typer.echo(f"warning: {warning}", err=True)
    raise typer.Exit(0 if run.status == "finished" else FAILED)


def _follow(client: Client, run_id: str, told: Follower, *, give_up_after: float) -> RunAnswer:
    """The run once it has ended. A server that does not answer is asked again, for a bounded time."""
    answered_at, n_silent = time.monotonic(), 0
    while True:
        try:
            run = client.run(run_id)
        except Unreachable as problem:
            silent_seconds = time.monotonic() - answered_at
            if silent_seconds >= give_up_after:
                raise CommandError(
                    f"{problem} No answer for {silent_seconds:.0f} s. The run does not need this command; "
                    f"come back with: evalboard wait {run_id}"
                ) from problem
            if n_silent == 0:
                told.say(f"{problem} Asking again for up to {give_up_after:.0f} s.")
            n_silent += 1
            pause = min(2.0 ** (n_silent - 1), BACKOFF_SECONDS_MAX, max(give_up_after - silent_seconds, 0.1))
            time.sleep(pause)
            continue
        if run.is_terminal:
            return run
        answered_at, n_silent = time.monotonic(), 0
        told.tell(run)
        time.sleep(LOOK_SECONDS)


def span(points: tuple[float, float]) -> str:
    """A range in words, "80.6 to 81.3 points"; one number where every repeat scored the same."""
    low, high = points
    return f"{low:.1f} points" if low == high else f"{low:.1f} to {high:.1f} points"


def result(run: RunAnswer) -> str:
    """A run's end in one line."""
    n_repeats = len(run.json["repeats"])
    repeats = "1 repeat" if n_repeats == 1 else f"{n_repeats} repeats"
    if run.range is not None:
        return f"Run {run.id} finished: {span(run.range)} over {repeats}. {run.url}"
    if run.status == "finished":
        n_buckets = len(run.json["buckets"])
        return f"Run {run.id} finished in {n_buckets} buckets, so no score is given for the whole. {run.url}"
    return f"Run {run.id} is {run.status}: {run.n_done} of {run.n_total} responses, no score. {run.url}"
