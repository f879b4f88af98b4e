"""What `evalboard run --against` holds its run against: a run, or the current baseline that it found beforehand."""

import json
from dataclasses import dataclass
from typing import Any

import typer

from evalboard.cli import release, reports, wait
from evalboard.cli import verdict_words as words
from evalboard.cli.answers import ReleaseAnswer, RunAnswer
from evalboard.cli.client import Client
from evalboard.cli.errors import FAILED, NO_SHIP, CommandError, WrongUse
from evalboard.cli.patience import answered
from evalboard.cli.progress import follower
from evalboard.cli.reports import Reports
from evalboard.cli.run_words import of_end


@dataclass(frozen=True, slots=True, kw_only=True)
class Opponent:
    """`baseline` is a run's id, or "current"; "" where no baseline is there yet, which a rough profile may do without.

    `line` is the model line that a baseline is kept for.
    """

    baseline: str
    line: str


def find(client: Client, body: dict[str, Any], against: str, policy: str) -> Opponent:
    """What the run will be held against, before it is started: hours later is too late to learn that it is not there.

    Raises WrongUse where a name is unknown, or where a verdict is asked for and there is no baseline.
    """
    if policy and policy not in {row["slug"] for row in client.policies()}:
        raise WrongUse(f"There is no policy {policy}.")
    if against != release.CURRENT:
        suite = client.run(against).suite
        if suite != body["suite"]:
            raise WrongUse(f"Run {against} is of suite {suite}, not of {body['suite']}.")
        return Opponent(baseline=against, line="")
    line = next((row["line"] for row in client.endpoints() if row["slug"] == body["endpoint"]), None)
    if line is None:
        raise WrongUse(f"There is no endpoint {body['endpoint']}.")
    profile = next((row for row in client.profiles() if row["slug"] == body["profile"]), None)
    if profile is None:
        raise WrongUse(f"There is no profile {body['profile']}.")
    kept = [row for row in client.baselines(body["suite"]) if row["is_current"]]
    is_there = any(row["line"] == line and row["profile"] == body["profile"] for row in kept)
    if not is_there and profile["settings"]["batch_class"] != "mixed":
        where = f"for model line {line} under profile {body['profile']}"
        raise WrongUse(
            f"Suite {body['suite']} has no baseline {where}, so there would be no verdict. Make one of a finished run "
            'with `evalboard baseline set RUN --reason "…"`, or name a run.'
        )
    return Opponent(baseline=release.CURRENT if is_there else "", line=line)


def conclude(
    client: Client,
    run: RunAnswer,
    opponent: Opponent,
    wanted: Reports,
    *,
    asked: dict[str, Any],
    fails_on_lean: bool,
    give_up_after: float,
    as_json: bool,
) -> None:
    """Judge a run that has ended, print what came of it, write the reports, and exit with its code.

    `asked` is what the release is asked for beside its gate.
    """
    if not opponent.baseline or run.status in release.WITHOUT_SCORE:
        _without(client, run, opponent, wanted, as_json=as_json)
    judged = _judge(client, run, opponent, asked, give_up_after=give_up_after)
    headline = judged.gates[judged.json["headline_gate"]]
    lean = words.lean_of(headline) if run.is_rough else None
    if lean is None:
        code = release.CODES.get(judged.verdict, FAILED)
        leans_down = judged.verdict == "inconclusive" and headline["leaning"] == "no_ship"
    else:
        code, leans_down = 0, lean == "no_ship"
    if fails_on_lean and leans_down:
        code = NO_SHIP
    if as_json:
        typer.echo(json.dumps({"run": run.json, "release": judged.json, "lean": lean}, ensure_ascii=False))
    else:
        typer.echo(f"{of_end(run)} {run.url}")
        release.tell(judged, lean=lean)
    raise typer.Exit(reports.of_release(wanted, client, judged, code=code, lean=lean))


def _without(client: Client, run: RunAnswer, opponent: Opponent, wanted: Reports, *, as_json: bool) -> None:
    """What is said of a run that nothing can be held against, or that has nothing to judge."""
    note = ""
    if not opponent.baseline:
        where = f"for model line {opponent.line} under profile {run.json['profile']}"
        made_of = run.id if run.status == "finished" else "RUN"
        note = (
            f"Suite {run.suite} has no baseline {where} yet, so no lean is given. "
            f'Make one: evalboard baseline set {made_of} --reason "…"'
        )
    if as_json:
        typer.echo(json.dumps({"run": run.json, "release": None, "lean": None}, ensure_ascii=False))
    else:
        typer.echo(f"{of_end(run)} {run.url}")
        if note:
            typer.echo(f"next: {note}")
        for warning in run.warnings:
            typer.echo(f"warning: {warning}", err=True)
    code = 0 if run.status == "finished" else FAILED
    raise typer.Exit(reports.of_run(wanted, client, run, code=code, note=note))


def _judge(
    client: Client, run: RunAnswer, opponent: Opponent, asked: dict[str, Any], *, give_up_after: float
) -> ReleaseAnswer:
    """Create the release, once the run that is named as the baseline has ended as well."""
    again = come_back(run.id, opponent)
    gate = {"suite": run.suite, "candidate": run.id, "baseline": opponent.baseline}
    if opponent.baseline != release.CURRENT:
        ended = wait.until_ended(client, opponent.baseline, come_back=again, give_up_after=give_up_after)
        if ended.status in release.WITHOUT_SCORE:
            raise CommandError(f"Run {ended.id} is {ended.status}: there is nothing to judge against. {ended.url}")
    with follower() as told:
        # Where the answer alone was lost this makes a second release of the same runs: of no weight, and said alike.
        return answered(
            lambda: client.create_release({**asked, "gates": [gate]}),
            told,
            advice=f"Come back with: {again}",
            give_up_after=give_up_after,
        )


def come_back(run_id: str, opponent: Opponent) -> str:
    """The command that goes on where this one ends."""
    if not opponent.baseline:
        return f"evalboard wait {run_id}"
    return f"evalboard release {run_id} --baseline {opponent.baseline} --wait"
