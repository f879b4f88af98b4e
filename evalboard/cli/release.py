"""`evalboard release`: judge a candidate against a baseline, and exit with the verdict."""

import json
import re
import shlex
import sys
from typing import Annotated, Any

import typer

from evalboard.cli import labels, place, reports
from evalboard.cli import verdict_words as words
from evalboard.cli.answers import ReleaseAnswer
from evalboard.cli.client import Client
from evalboard.cli.errors import FAILED, INCONCLUSIVE, INTERRUPTED, NO_SHIP, NOT_COMPARABLE, CommandError
from evalboard.cli.patience import GIVE_UP_SECONDS, follow
from evalboard.cli.progress import follower
from evalboard.cli.reports import CommentFile, JunitFile, SummaryFile
from evalboard.core.verdict_names import verdict_name

CODES = {"ship": 0, "no_ship": NO_SHIP, "inconclusive": INCONCLUSIVE, "not_comparable": NOT_COMPARABLE}
CURRENT = "current"
ID = re.compile(r"[0-9]{1,18}", re.ASCII)
WITHOUT_SCORE = ("failed", "cancelled")  # an incomplete run is for the verdict to say

Gate = dict[str, Any]


def release(
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The id of the run to judge.")] = "",
    baseline: Annotated[
        str, typer.Option(metavar="current|RUN", help="The suite's current baseline, or a run by its id.")
    ] = CURRENT,
    suite: Annotated[str, typer.Option(help="The suite's slug; default: that of the candidate.")] = "",
    gate: Annotated[
        list[str] | None,
        typer.Option(metavar="SUITE:CANDIDATE[:BASELINE]", help="In place of CANDIDATE; once for each suite."),
    ] = None,
    advisory: Annotated[
        list[str] | None,
        typer.Option(metavar="SUITE:CANDIDATE[:BASELINE]", help="A suite that is shown and never decides."),
    ] = None,
    policy: Annotated[
        str, typer.Option(help="The policy's slug; default: the suite's own, else strict; paired if sampled.")
    ] = "",
    treatment: Annotated[
        str, typer.Option(metavar="model|stack", help="What differs between the sides, and so is judged.")
    ] = "model",
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Such as commit=1f3a; may be given several times.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="First wait until the runs that are judged have ended.")] = False,
    show: Annotated[str, typer.Option(metavar="ID", help="Come back to a release that was created before.")] = "",
    give_up_after: Annotated[
        float, typer.Option(min=0, help="With --wait: seconds without an answer after which to stop waiting.")
    ] = GIVE_UP_SECONDS,
    junit: JunitFile = "",
    summary: SummaryFile = "",
    comment: CommentFile = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the release as JSON.")] = False,
) -> None:
    """Judge a candidate. Exit code 0: ship; 1: no-ship; 2: inconclusive; 3: not comparable."""
    gates = [_gate(text, "critical", "--gate") for text in gate or []]
    gates += [_gate(text, "advisory", "--advisory") for text in advisory or []]
    refuse_other_treatment(treatment)
    if show:
        _refuse_beside("--show", is_given=bool(candidate or gates))
    elif not gates:
        gates = [{"suite": suite, "candidate": _id(candidate, "CANDIDATE"), "baseline": baseline_of(baseline)}]
    else:
        _refuse_beside("--gate", is_given=bool(candidate or suite or baseline != CURRENT))
    body = body_of(policy=policy, treatment=treatment, labelled=labels.read(label or []))
    wanted = reports.asked(junit=junit, summary=summary, comment=comment)
    with Client(place.find()) as client:
        if show:
            judged = client.release(_id(show, "--show"))
        else:
            if wait:
                _wait_for(client, gates, give_up_after=give_up_after)
            named = [{**each, "suite": each["suite"] or _suite_of(client, each["candidate"])} for each in gates]
            judged = client.create_release({**body, "gates": named})
        if as_json:
            typer.echo(json.dumps(judged.json, ensure_ascii=False))
        else:
            tell(judged)
        code = CODES.get(judged.verdict, FAILED)
        raise typer.Exit(reports.of_release(wanted, client, judged, code=code))


def body_of(*, policy: str, treatment: str, labelled: dict[str, str]) -> dict[str, Any]:
    """What is asked of a release beside its gates."""
    return {"treatment": treatment, "labels": labelled} | ({"policy": policy} if policy else {})


def refuse_other_treatment(treatment: str) -> None:
    if treatment not in ("model", "stack"):
        raise typer.BadParameter("Must be model or stack.", param_hint="--treatment")


def _wait_for(client: Client, gates: list[Gate], *, give_up_after: float) -> None:
    """Follow each run to its end. Raises CommandError where one ended without a score to judge."""
    named = [run for each in gates for run in (each["candidate"], each["baseline"]) if run != CURRENT]
    again = shlex.join(["evalboard", *sys.argv[1:]])
    try:
        with follower() as told:
            for run_id in dict.fromkeys(named):
                ended = follow(
                    lambda run_id=run_id: client.run(run_id),  # type: ignore[misc]
                    told,
                    come_back=again,
                    give_up_after=give_up_after,
                )
                if ended.status in WITHOUT_SCORE:
                    raise CommandError(f"Run {run_id} is {ended.status}: there is nothing to judge. {ended.url}")
    except KeyboardInterrupt:
        typer.echo(f"The runs go on. Come back with: {again}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _suite_of(client: Client, run_id: str) -> str:
    return str(client.run(run_id).json["suite"]["slug"])


def tell(judged: ReleaseAnswer, *, lean: str | None = None) -> None:
    """Print the verdict, or the lean where there is none, the sentence, and what comes next."""
    word = verdict_name(judged.verdict) if lean is None else words.of_lean(lean)
    typer.echo(f"Release {judged.id}: {word}. {judged.url}\n{judged.summary}")
    if lean is not None:
        typer.echo(words.NO_VERDICT)
    for line in _table(judged.gates) if len(judged.gates) > 1 else []:
        typer.echo(line)
    for step in judged.next_steps:
        typer.echo(f"next: {step}")
    for warning in judged.warnings:
        typer.echo(f"warning: {warning}", err=True)


def _table(gates: list[Gate]) -> list[str]:
    """A line for each gate: suite, tier, verdict, and the change with its interval."""
    rows = [
        (str(each["suite"]), str(each["tier"]), verdict_name(str(each["verdict"])), words.change(each))
        for each in gates
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  " + "  ".join([*(f"{row[at]:<{widths[at]}}" for at in range(3)), row[3]]).rstrip() for row in rows]


def _gate(text: str, tier: str, option: str) -> Gate:
    parts = text.split(":")
    if len(parts) not in (2, 3) or not parts[0]:
        raise typer.BadParameter(f"{text} is not SUITE:CANDIDATE or SUITE:CANDIDATE:BASELINE.", param_hint=option)
    suite, candidate, baseline = [*parts, CURRENT][:3]
    return {
        "suite": suite,
        "candidate": _id(candidate, option),
        "baseline": baseline_of(baseline, option),
        "tier": tier,
    }


def baseline_of(text: str, option: str = "--baseline") -> str:
    """A run's id, or "current". Raises typer.BadParameter."""
    return text if text == CURRENT else _id(text, option)


def _id(text: str, option: str) -> str:
    if not ID.fullmatch(text):
        raise typer.BadParameter(f"{text or 'Nothing'} is no id; an id is a number.", param_hint=option)
    return text


def _refuse_beside(option: str, *, is_given: bool) -> None:
    if is_given:
        raise typer.BadParameter("It says by itself what is judged; leave the rest away.", param_hint=option)
