"""`evalboard run`: ask for a run, wait for it and have it judged if told to."""

import json
import uuid
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from evalboard.cli import against as judging
from evalboard.cli import labels, place, release, reports, wait
from evalboard.cli.answers import RunAnswer
from evalboard.cli.client import Client
from evalboard.cli.errors import INTERRUPTED
from evalboard.cli.patience import GIVE_UP_SECONDS, answered
from evalboard.cli.progress import follower
from evalboard.cli.reports import CommentFile, JunitFile, SummaryFile


def run(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's slug.")],
    endpoint: Annotated[str, typer.Option(help="The endpoint's slug.")],
    profile: Annotated[str, typer.Option(help="The profile's slug.")],
    repeats: Annotated[int, typer.Option(min=1, help="How many passes over the suite.")] = 5,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Where the profile samples: what every call's seed follows from; default: its own."),
    ] = None,
    model: Annotated[
        str,
        typer.Option(metavar="PATH", help="Another checkpoint of the endpoint's model line, a folder on the worker."),
    ] = "",
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Such as commit=1f3a; may be given several times.")
    ] = None,
    key: Annotated[
        str, typer.Option(metavar="TEXT", help="With the same key, within a day, no second run is made.")
    ] = "",
    wait_: Annotated[bool, typer.Option("--wait", help="Wait until the run has ended.")] = False,
    against: Annotated[
        str, typer.Option(metavar="current|RUN", help="With --wait: judge the run against a baseline, or a run.")
    ] = "",
    policy: Annotated[
        str, typer.Option(help="With --against: the policy; default: the suite's own, else strict; paired if sampled.")
    ] = "",
    treatment: Annotated[
        str, typer.Option(metavar="model|stack", help="With --against: what differs between the sides.")
    ] = "model",
    fail_on_lean: Annotated[
        bool, typer.Option("--fail-on-lean", help="With --against: exit with 1 where it leans towards no-ship.")
    ] = False,
    give_up_after: Annotated[
        float, typer.Option(min=0, help="With --wait: seconds without an answer after which to stop waiting.")
    ] = GIVE_UP_SECONDS,
    junit: JunitFile = "",
    summary: SummaryFile = "",
    comment: CommentFile = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as JSON.")] = False,
) -> None:
    """Start a run of a suite. Without --wait it prints where the run is and ends."""
    _refuse_without(
        wait_, "--wait", {"--against": against, "--junit": junit, "--summary": summary, "--comment": comment}
    )
    judged_so = {"--policy": policy, "--treatment": treatment != "model", "--fail-on-lean": fail_on_lean}
    _refuse_without(bool(against), "--against", judged_so)
    release.refuse_other_treatment(treatment)
    if against:
        release.baseline_of(against, "--against")
    wanted = reports.asked(junit=junit, summary=summary, comment=comment)
    body: dict[str, Any] = {"suite": suite, "endpoint": endpoint, "profile": profile, "repeats": repeats}
    body["labels"] = labels.read(label or [])
    if seed is not None:
        body["seed"] = seed
    if model:
        body["model"] = {"path": model}
    with Client(place.find()) as client:
        opponent = judging.find(client, body, against, policy) if against else None
        started = _start(client, body, key=key, give_up_after=give_up_after if wait_ else 0.0)
        if not wait_:
            _tell(started, as_json=as_json)
            return
        typer.echo(f"Run {started.id}: {started.url}", err=True)
        again = f"evalboard wait {started.id}" if opponent is None else judging.come_back(started.id, opponent)
        ended = wait.until_ended(client, started.id, come_back=again, give_up_after=give_up_after)
        if opponent is None:
            wait.conclude(client, ended, wanted, as_json=as_json)
            return
        judging.conclude(
            client,
            ended,
            opponent,
            wanted,
            asked=release.body_of(policy=policy, treatment=treatment, labelled=body["labels"]),
            fails_on_lean=fail_on_lean,
            give_up_after=give_up_after,
            as_json=as_json,
        )


def _start(client: Client, body: Mapping[str, Any], *, key: str, give_up_after: float) -> RunAnswer:
    """Ask for the run, again where no answer came: by its key the server knows that it is the same request."""
    key = key or f"evalboard-{uuid.uuid4()}"
    again = f"Whether the run was made is not known; ask again with --key {key}, and no second one is made."
    try:
        with follower() as told:
            return answered(lambda: client.create_run(body, key=key), told, advice=again, give_up_after=give_up_after)
    except KeyboardInterrupt:
        typer.echo(again, err=True)
        raise typer.Exit(INTERRUPTED) from None


def _tell(started: RunAnswer, *, as_json: bool) -> None:
    how = f", {started.sampled}" if started.sampled else ""
    said = f"Run {started.id} is {started.status}: {started.n_total} responses to decode{how}. {started.url}"
    typer.echo(json.dumps(started.json, ensure_ascii=False) if as_json else said)


def _refuse_without(is_given: bool, needed: str, options: Mapping[str, object]) -> None:
    """What has no meaning by itself is refused: left unread it would pass for a check that was made."""
    for option, value in options.items():
        if value and not is_given:
            raise typer.BadParameter(f"It needs {needed}.", param_hint=option)
