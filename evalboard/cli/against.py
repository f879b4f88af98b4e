"""Compare a new run with that of `--against`, or the baseline, looked up before the run starts."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from evalboard.cli.errors import LIMIT_REACHED, CommandError
from evalboard.cli.output import decide
from evalboard.cli.release import CURRENT, WITHOUT_SCORE, choose_exit_code, print_release
from evalboard.cli.reports import ReportFiles, write_release_reports
from evalboard.cli.wait import conclude, follow_run
from evalboard.client.errors import WrongUse
from evalboard.client.waiting import ask_until_answered, make_follower
from evalboard.wording.results import describe_end, find_lean

if TYPE_CHECKING:
    from evalboard.client.answers import Answer
    from evalboard.client.rest import RestClient
    from evalboard.contract.release import Release
    from evalboard.contract.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Opponent:
    """The run to compare with. `baseline`: its id, "current", or "" if there is no baseline yet.

    `line` is the model line that a baseline is kept for.
    """

    baseline: str
    line: str


def find_opponent(
    client: "RestClient", *, suite: str, endpoint: str, profile: str, against: str, policy: str
) -> Opponent:
    """Look up the run to compare with before the new run starts, since hours later is too late to fail.

    Raises WrongUse if a name is unknown, or if a verdict is requested and there is no baseline.
    """
    check_policy(client, policy)
    if against != CURRENT:
        other = client.run(against).value.suite.slug
        if other != suite:
            raise WrongUse(f"Run {against} is of suite {other}, not of {suite}.")
        return Opponent(baseline=against, line="")
    line = next((row.value.line for row in client.endpoints() if row.value.slug == endpoint), None)
    if line is None:
        raise WrongUse(f"There is no endpoint {endpoint}.")
    settings = next((row.value.settings for row in client.profiles() if row.value.slug == profile), None)
    if settings is None:
        raise WrongUse(f"There is no profile {profile}.")
    current = [row.value for row in client.baselines(suite) if row.value.is_current]
    is_there = any((baseline.line, baseline.profile) == (line, profile) for baseline in current)
    if not is_there and settings["batch_class"] != "mixed":
        raise WrongUse(
            f"Suite {suite} has no baseline for model line {line} under profile {profile}, so there would be no "
            'verdict. Make one of a finished run with `evalboard baseline set RUN --reason "…"`, or name a run.'
        )
    return Opponent(baseline=CURRENT if is_there else "", line=line)


def check_policy(client: "RestClient", policy: str) -> None:
    """Raise WrongUse where a policy is named that is not there."""
    if policy and policy not in {row.value.slug for row in client.policies()}:
        raise WrongUse(f"There is no policy {policy}.")


def judge(
    client: "RestClient",
    answer: "Answer[Run]",
    opponent: Opponent,
    files: ReportFiles,
    *,
    options: dict[str, Any],
    fails_on_lean: bool,
    give_up_after: float,
    as_json: bool,
) -> NoReturn:
    """Judge a finished run, print the result, write the reports, and exit with the verdict's code.

    options: of the release, besides its gate.
    """
    run = answer.value
    if not opponent.baseline or run.status in WITHOUT_SCORE:
        unjudged = {"run": answer.json, "release": None, "lean": None} if as_json else None
        conclude(client, run, files, as_json=unjudged, note="" if opponent.baseline else _advise(run, opponent))
    judgement = _create_release(client, run, opponent, options, give_up_after=give_up_after)
    release = judgement.value
    lean = find_lean(release.headline) if any(warning.code == "rough_profile" for warning in run.warnings) else None
    if lean is None:
        code = choose_exit_code(release)
        leans_down = release.verdict == "inconclusive" and release.headline.leaning == "no_ship"
    else:
        code, leans_down = 0, lean == "no_ship"
    if fails_on_lean and leans_down:
        code = LIMIT_REACHED
    decide(is_verdict=lean is None)
    if as_json:
        typer.echo(json.dumps({"run": answer.json, "release": judgement.json, "lean": lean}, ensure_ascii=False))
    else:
        typer.echo(f"{describe_end(run)} {run.url}")
        print_release(release, lean=lean)
    raise typer.Exit(write_release_reports(files, client, release, code=code, lean=lean))


def _advise(run: "Run", opponent: Opponent) -> str:
    """Say how to make the baseline that is not there."""
    where = f"for model line {opponent.line} under profile {run.profile}"
    made_of = run.id if run.status == "finished" else "RUN"
    return (
        f"Suite {run.suite.slug} has no baseline {where} yet, so no lean is given. "
        f'Make one: evalboard baseline set {made_of} --reason "…"'
    )


def _create_release(
    client: "RestClient", run: "Run", opponent: Opponent, options: dict[str, Any], *, give_up_after: float
) -> "Answer[Release]":
    """Create the release, once the run that is named as the baseline has ended as well."""
    again = render_come_back(run.id, opponent)
    gate = {"suite": run.suite.slug, "candidate": run.id, "baseline": opponent.baseline}
    if opponent.baseline != CURRENT:
        other = follow_run(client, opponent.baseline, come_back=again, give_up_after=give_up_after).value
        if other.status in WITHOUT_SCORE:
            raise CommandError(f"Run {other.id} is {other.status}: there is nothing to judge against. {other.url}")
    with make_follower() as follower:
        # Where the answer alone was lost, this makes a second release of the same runs: it says the same.
        return ask_until_answered(
            lambda: client.create_release({**options, "gates": [gate]}),
            follower,
            advice=f"Come back with: {again}",
            give_up_after=give_up_after,
        )


def render_come_back(run_id: str, opponent: Opponent) -> str:
    """Return the command that goes on where this one ends."""
    if not opponent.baseline:
        return f"evalboard wait {run_id}"
    return f"evalboard release {run_id} --baseline {opponent.baseline} --wait"
