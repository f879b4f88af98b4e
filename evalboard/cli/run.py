"""`evalboard run`: ask for a run, wait for it and have it judged if told to."""

import json
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from evalboard.cli.against import Opponent, check_policy, find_opponent, judge, render_come_back
from evalboard.cli.arguments import collect_labels, parse_id
from evalboard.cli.errors import INTERRUPTED, CommandError
from evalboard.cli.release import LabelTexts, NothingCaches, WaitAtMost, build_body, check_treatment, parse_baseline
from evalboard.cli.reports import CommentFile, JunitFile, SummaryFile, parse_report_files
from evalboard.cli.wait import conclude, follow_run
from evalboard.client.access import connect
from evalboard.client.waiting import GIVE_UP_SECONDS, ask_until_answered, make_follower
from evalboard.contract.treatments import TREATMENTS
from evalboard.core.errors import EvalboardError
from evalboard.wording.run import describe_ahead

if TYPE_CHECKING:
    from evalboard.client.rest import RestClient
    from evalboard.contract.run import Run

Made = TypeVar("Made")
SECOND_RUN_AFTER = timedelta(hours=1)  # what is nearer in time is no independent run


def run(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's slug.", show_default=False)] = "",
    endpoint: Annotated[str, typer.Option(help="The endpoint's slug.", show_default=False)] = "",
    profile: Annotated[str, typer.Option(help="The profile's slug.")] = "pinned",
    repeats: Annotated[int, typer.Option(min=1, help="Number of passes over the suite.")] = 5,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The run's seed, if the profile samples or the server is external."),
    ] = None,
    model: Annotated[
        str,
        typer.Option(metavar="PATH", help="Another checkpoint of the endpoint's model: a folder on the worker."),
    ] = "",
    adapter: Annotated[
        str,
        typer.Option(
            metavar="PATH|OWNER/NAME@COMMIT", help="Another LoRA adapter on the endpoint's model, as of an endpoint."
        ),
    ] = "",
    label: LabelTexts = None,
    priority: Annotated[
        str,
        typer.Option(
            metavar="normal|bulk", help="Bulk runs after normal ones. Default: normal; with --against: release."
        ),
    ] = "",
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Shuffle the cases in each repeat.")] = False,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart", help="Start a new engine for each repeat. Default: one for each half of the repeats."
        ),
    ] = False,
    key: Annotated[str, typer.Option(metavar="TEXT", help="The same key makes no second run within a day.")] = "",
    complete: Annotated[
        str,
        typer.Option(metavar="RUN", help="Instead of a new run: decode the missing responses of this one."),
    ] = "",
    again: Annotated[
        str,
        typer.Option(metavar="RUN", help="Instead of a suite: run this one again with its settings."),
    ] = "",
    second_run_of: Annotated[
        str,
        typer.Option(metavar="RUN", help="Instead of a suite: run this run's suite again, to check for caching."),
    ] = "",
    notify: Annotated[
        bool, typer.Option("--notify", help="Follow the run: Evalboard notifies you when it ends.")
    ] = False,
    estimate: Annotated[bool, typer.Option("--estimate", help="Say what it would take, and start nothing.")] = False,
    wait_: Annotated[bool, typer.Option("--wait", help="Wait until the run has ended.")] = False,
    against: Annotated[
        str,
        typer.Option(metavar="current|RUN", help="With --wait: judge it against this run, or the current baseline."),
    ] = "",
    in_turn_with: Annotated[
        str,
        typer.Option(
            metavar="ENDPOINT",
            help="Run the suite there too, interleaved, as the baseline; --wait judges the pair.",
        ),
    ] = "",
    policy: Annotated[
        str, typer.Option(help="For the verdict: the policy; default: the suite's, else strict; paired if sampled.")
    ] = "",
    treatment: Annotated[
        str,
        typer.Option(metavar="|".join(TREATMENTS), help="For the verdict: what is judged, the part that differs."),
    ] = "model",
    nothing_caches: NothingCaches = False,
    fail_on_lean: Annotated[
        bool, typer.Option("--fail-on-lean", help="Exit with 5 if the verdict leans towards no-ship.")
    ] = False,
    give_up_after: WaitAtMost = GIVE_UP_SECONDS,
    junit: JunitFile = "",
    summary: SummaryFile = "",
    comment: CommentFile = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as JSON.")] = False,
) -> None:
    """Start a run of a suite, or complete one. Without --wait it prints where the run is and ends."""
    for option, earlier in (("--complete", complete), ("--again", again), ("--second-run-of", second_run_of)):
        if earlier and (suite or (endpoint and not again) or against or in_turn_with):
            raise typer.BadParameter("The run has its suite and endpoint already.", param_hint=option)
    if not (complete or again or second_run_of) and not (suite and endpoint):
        what, hint = ("an endpoint", "--endpoint") if suite else ("a suite", "SUITE")
        raise typer.BadParameter(f"Name {what}, or a run to --complete or to run --again.", param_hint=hint)
    _refuse_without(
        wait_, "--wait", {"--against": against, "--junit": junit, "--summary": summary, "--comment": comment}
    )
    release_options = {"--policy": policy, "--treatment": treatment != "model", "--fail-on-lean": fail_on_lean}
    release_options |= {"--nothing-caches": nothing_caches}
    is_judged = bool(against) or (wait_ and bool(in_turn_with))
    _refuse_without(is_judged, "--against, or --in-turn-with and --wait", release_options)
    if against and in_turn_with:
        raise typer.BadParameter("The run on this endpoint is the baseline already.", param_hint="--against")
    check_treatment(treatment)
    if priority not in ("", "normal", "bulk"):
        raise typer.BadParameter("Must be normal or bulk; runs of releases go first automatically.")
    if against:
        parse_baseline(against, "--against")
    files = parse_report_files(junit=junit, summary=summary, comment=comment)
    body: dict[str, Any] = {"suite": suite, "endpoint": endpoint, "profile": profile, "repeats": repeats}
    body["labels"] = collect_labels(label or [])
    if seed is not None:
        body["seed"] = seed
    body |= {"is_shuffled": True} if shuffle else {}
    body |= {"is_restarted": True} if restart else {}
    if model or adapter:
        body["model"] = {"path": model} if model else {}
        body["model"] |= {"adapter": adapter} if adapter else {}
    if against or priority:
        body["priority"] = priority or "release"
    with connect() as client:
        if estimate:
            named = {"suite": suite, "endpoint": endpoint, "profile": profile, "repeats": str(repeats)}
            cost = client.run_estimate(**named)
            typer.echo(json.dumps(cost.json) if as_json else cost.value.sentence)
            return
        for where in () if as_json or not suite else filter(None, (in_turn_with, endpoint)):
            _echo_cost(client, {"suite": suite, "endpoint": where, "profile": profile, "repeats": str(repeats)})
        opponent = None
        if against:
            opponent = find_opponent(
                client, suite=suite, endpoint=endpoint, profile=profile, against=against, policy=policy
            )
        patience = give_up_after if wait_ else 0.0
        started: list[Run]
        if second_run_of:
            body |= _ask_again(client.run(parse_id(second_run_of, "--second-run-of")).value)
        if complete:
            single = client.complete_run(complete)
            started, made = [single.value], single.json
        elif again:
            on = {"endpoint": endpoint} if endpoint else {}
            single = _start(lambda by: client.run_again(again, on, key=by), key=key, give_up_after=patience)
            started, made = [single.value], single.json
        elif in_turn_with:
            check_policy(client, policy)
            other = {name: value for name, value in body.items() if name != "model"} | {"endpoint": in_turn_with}
            sides = {"baseline": other, "candidate": body}
            pair = _start(lambda by: client.create_pair(sides, key=by), key=key, give_up_after=patience)
            started, made = [pair.value.baseline, pair.value.candidate], pair.json
            opponent = Opponent(baseline=pair.value.baseline.id, line="")
        else:
            single = _start(lambda by: client.create_run(body, key=by), key=key, give_up_after=patience)
            started, made = [single.value], single.json
        for each in started if notify else ():
            client.follow("run", each.id)
        if not wait_:
            texts = [json.dumps(made, ensure_ascii=False)] if as_json else map(_render_start, started)
            typer.echo("\n".join(texts))
            return
        for each in started:
            typer.echo(f"Run {each.id}: {each.url}", err=True)
        run_id = started[-1].id
        come_back = f"evalboard wait {run_id}" if opponent is None else render_come_back(run_id, opponent)
        answer = follow_run(client, run_id, come_back=come_back, give_up_after=give_up_after)
        if opponent is None:
            conclude(client, answer.value, files, as_json=answer.json if as_json else None)
        judge(
            client,
            answer,
            opponent,
            files,
            options=build_body(
                policy=policy, treatment=treatment, labelled=body["labels"], nothing_caches=nothing_caches
            ),
            fails_on_lean=fail_on_lean,
            give_up_after=give_up_after,
            as_json=as_json,
        )


def _echo_cost(client: "RestClient", named: dict[str, str]) -> None:
    """Print what a run would cost, before it starts, if its endpoint has a price."""
    with suppress(EvalboardError):  # what refuses the run says so
        if (cost := client.run_estimate(**named).value.cost) is not None:
            typer.echo(f"Cost on {named['endpoint']}: {cost.text[:1].lower()}{cost.text[1:]}", err=True)


def _ask_again(run: "Run") -> dict[str, Any]:
    """Return the request for a second run. Raises CommandError while a cache may still have the answers."""
    if run.finished_at is None:
        raise CommandError(f"Run {run.id} has not ended: start its second run an hour after that.")
    if (after := run.finished_at + SECOND_RUN_AFTER) > datetime.now(UTC):
        when = f"{after:%H:%M} UTC"
        raise CommandError(f"A cache may still hold the answers of run {run.id}: start its second run after {when}.")
    what = {"suite": run.suite.slug, "suite_version": run.suite.version, "endpoint": run.endpoint}
    return {**what, "profile": run.profile, "repeats": 1}


def _start(ask: Callable[[str], Made], *, key: str, give_up_after: float) -> Made:
    """Ask by a key, again where no answer came: by the key the server knows that it is the same request."""
    key = key or f"evalboard-{uuid.uuid4()}"
    again = f"The run may or may not exist; repeat the command with --key {key}, and no second one is made."
    try:
        with make_follower() as follower:
            return ask_until_answered(lambda: ask(key), follower, advice=again, give_up_after=give_up_after)
    except KeyboardInterrupt:
        typer.echo(again, err=True)
        raise typer.Exit(INTERRUPTED) from None


def _render_start(run: "Run") -> str:
    how = f", {run.sampled.words}" if run.sampled else ""
    before = f" {describe_ahead(run.ahead)}" if run.ahead and run.ahead.n_shards else ""
    return f"Run {run.id} is {run.status}: {run.progress.n_total} responses to decode{how}.{before} {run.url}"


def _refuse_without(is_given: bool, needed: str, options: Mapping[str, object]) -> None:
    """Reject options that need another one: ignored, they would look like a check that was made."""
    for option, value in options.items():
        if value and not is_given:
            raise typer.BadParameter(f"It needs {needed}.", param_hint=option)
