"""`evalboard experiment`: plan an experiment, confirm its cost, and read where variance comes from."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from evalboard.cli.arguments import parse_id
from evalboard.cli.errors import FAILED
from evalboard.cli.output import decide
from evalboard.cli.wait import GiveUpAfter, follow_to_end
from evalboard.client.access import connect
from evalboard.client.program import as_typed
from evalboard.client.progress import WaitProgress, render_pause
from evalboard.client.waiting import GIVE_UP_SECONDS

if TYPE_CHECKING:
    from evalboard.client.answers import Answer
    from evalboard.client.rest import RestClient
    from evalboard.contract.lab import Experiment


app = typer.Typer(help="Experiments in the lab.", no_args_is_help=True)
FORMS = ("text", "markdown", "csv")

Form = Annotated[str, typer.Option("--format", metavar="text|markdown|csv", help="Output format.")]
ExperimentId = Annotated[str, typer.Argument(metavar="ID", help="The experiment's id.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the experiment as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Start without confirmation.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it has ended, and print the result.")]
Budget = Annotated[
    float | None,
    typer.Option(
        metavar="MINUTES", help="Limit on engine minutes; nothing starts beyond it. Default: 1.5 times the estimate."
    ),
]


@app.callback()
def experiment() -> None:
    """Experiments in the lab."""


@app.command()
def variance(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's slug.")],
    endpoint: Annotated[
        str,
        typer.Option(
            help="The endpoint's slug. A gateway is compared with its bypass. Default: that of the suite's last run."
        ),
    ] = "",
    profile: Annotated[
        str, typer.Option(help="The profile of settings that stay fixed; its batch size must be 1.")
    ] = "pinned",
    runs: Annotated[int, typer.Option(min=5, max=100, help="Passes over the suite in each condition.")] = 20,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE", help="A source to vary, such as batch; can be repeated. Default: all possible."),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Temperature to test the sampler at; default: as last sampled.")
    ] = None,
    budget: Budget = None,
    yes: Yes = False,
    wait: Wait = False,
    form: Form = "text",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Measure where a score's variance comes from: vary one source at a time, and keep the others fixed."""
    check_form(form)
    body: dict[str, Any] = {"kind": "variance", "suite": suite, "profile": profile, "runs": runs}
    optional = {"endpoint": endpoint, "sources": source, "temperature": temperature, "budget_minutes": budget}
    body |= {name: value for name, value in optional.items() if value}
    plan_and_start(body, yes=yes, wait=wait, form=form, give_up_after=give_up_after, as_json=as_json)


def plan_and_start(
    body: dict[str, Any], *, yes: bool, wait: bool, form: str, give_up_after: float, as_json: bool
) -> NoReturn:
    """Have an experiment planned, show the plan, start it once it is confirmed, and exit.

    body: of `POST /experiments/`. With `wait` it is followed to its end.
    """
    is_asked = sys.stdin.isatty()
    if wait and not (yes or is_asked):
        raise typer.BadParameter("The plan needs a confirmation; add --yes.", param_hint="--wait")
    with connect() as client:
        planned = _post(client, "", body).value
        typer.echo(render_plan(planned), err=True)
        if not (yes or (is_asked and typer.confirm(f"Start experiment {planned.id}?", err=True))):
            hint = f"Nothing is started. Confirm the plan with: evalboard experiment start {planned.id}"
            typer.echo(as_typed(hint), err=True)
            raise typer.Exit(0)
        answer = _post(client, f"{planned.id}/start/", {})
        if wait:
            answer = _follow(client, planned.id, give_up_after=give_up_after)
            decide()
        _print(answer, form, as_json=as_json)
    raise typer.Exit(_exit_code(answer.value) if wait else 0)


@app.command()
def show(
    experiment: ExperimentId,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")] = False,
    form: Form = "text",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Show an experiment's conclusion and table so far."""
    check_form(form)
    parse_id(experiment, "ID")
    with connect() as client:
        answer = _follow(client, experiment, give_up_after=give_up_after) if wait else _read(client, experiment)
        if wait:
            decide()
        _print(answer, form, as_json=as_json)
    raise typer.Exit(_exit_code(answer.value) if wait else 0)


@app.command()
def start(
    experiment: ExperimentId,
    budget: Budget = None,
    as_json: AsJson = False,
) -> None:
    """Confirm a plan that was made before: its runs begin."""
    parse_id(experiment, "ID")
    with connect() as client:
        _print(_post(client, f"{experiment}/start/", _budget(budget)), as_json=as_json)


@app.command()
def cancel(experiment: ExperimentId, as_json: AsJson = False) -> None:
    """Stop an experiment, with the run that it is at; passes that have ended stay."""
    parse_id(experiment, "ID")
    with connect() as client:
        _print(_post(client, f"{experiment}/cancel/", {}), as_json=as_json)


@app.command()
def resume(
    experiment: ExperimentId,
    budget: Budget = None,
    as_json: AsJson = False,
) -> None:
    """Go on with what an experiment left out when it was stopped, cancelled or failed."""
    parse_id(experiment, "ID")
    with connect() as client:
        _print(_post(client, f"{experiment}/resume/", _budget(budget)), as_json=as_json)


def render_plan(experiment: "Experiment") -> str:
    """Return the plan: a line per condition, the cost, and what cannot be measured here."""
    from evalboard.wording.lab import describe_arm, describe_cost, describe_money

    arms = [(describe_arm(arm.source, arm.name), describe_cost(arm.cost)) for arm in experiment.arms]
    arms.append(("all", f"{describe_cost(experiment.cost)}; {experiment.budget_minutes:g} min are allowed"))
    width = max(len(name) for name, _ in arms)
    bisect = experiment.bisect
    between = f"on {experiment.endpoint}" if bisect is None else f"from run {bisect.baseline} to {bisect.candidate}"
    lines = [f"Experiment {experiment.id}, {experiment.suite.slug} {between}: {experiment.url}"]
    if bisect is not None:
        lines += [f"  {field.label}: {field.baseline} → {field.candidate}" for field in bisect.fields]
    lines += [f"  {name:<{width}}  {cost}" for name, cost in arms]
    if words := describe_money(experiment):
        lines.append(f"  {words}")
    lines += [f"  not measured: {each.label}: {each.reason}" for each in experiment.not_measured]
    if bisect is not None:
        unreachable = [field for field in bisect.fields if field.state == "not_reachable"]
        lines += [f"  not reachable: {field.label}: {field.note}" for field in unreachable]
    return "\n".join(lines)


def _budget(minutes: float | None) -> dict[str, float]:
    return {} if minutes is None else {"budget_minutes": minutes}


def _post(client: "RestClient", path: str, body: dict[str, Any]) -> "Answer[Experiment]":
    from evalboard.contract.lab import Experiment

    return client.post(Experiment, f"/experiments/{path}", body)


def _read(client: "RestClient", experiment_id: str) -> "Answer[Experiment]":
    from evalboard.contract.lab import Experiment

    return client.poll(Experiment, f"/experiments/{experiment_id}/")


def _follow(client: "RestClient", experiment_id: str, *, give_up_after: float) -> "Answer[Experiment]":
    return follow_to_end(
        lambda: _read(client, experiment_id),
        _progress,
        sentence=f"Experiment {experiment_id} goes on.",
        come_back=f"evalboard experiment show {experiment_id} --wait",
        give_up_after=give_up_after,
    )


def _progress(answer: "Answer[Experiment]") -> WaitProgress:
    experiment = answer.value
    n_done, n_total = experiment.n_done, experiment.cost.n_runs
    name, pause = f"experiment {experiment.id}", render_pause(experiment.pause)
    return WaitProgress(name, "runs", experiment.status, n_done, n_total, experiment.is_terminal, pause=pause)


def _print(answer: "Answer[Experiment]", form: str = "text", *, as_json: bool) -> None:
    # Here, as no other command waits for them.
    from evalboard.core import table
    from evalboard.wording.lab_report import render_report
    from evalboard.wording.lab_table import render_table, table_names, table_rows

    experiment = answer.value
    if as_json:
        typer.echo(json.dumps(answer.json, ensure_ascii=False))
        return
    match form:
        case "markdown":
            typer.echo(render_report(experiment), nl=False)
        case "csv":
            typer.echo(b"".join(table.write("csv", table_names(experiment), table_rows(experiment))).decode(), nl=False)
        case _:
            typer.echo(f"Experiment {experiment.id} is {experiment.status}. {experiment.sentence} {experiment.url}")
            for line in render_table(experiment):
                typer.echo(line)


def _exit_code(experiment: "Experiment") -> int:
    return 0 if experiment.status == "finished" else FAILED


def check_form(form: str) -> None:
    """Refuse a form that nothing is printed in."""
    if form not in FORMS:
        raise typer.BadParameter(f"Must be one of {', '.join(FORMS)}.", param_hint="--format")


def bisect(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="The run to compare with, by id.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The run with other answers, by id.")],
    cases: Annotated[int, typer.Option(min=1, max=100, help="Cases per step (max).")] = 20,
    budget: Budget = None,
    yes: Yes = False,
    wait: Wait = False,
    form: Form = "text",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Find which settings explain the difference of two runs, by decoding differing cases again."""
    check_form(form)
    runs = {"baseline": int(parse_id(baseline, "BASELINE")), "candidate": int(parse_id(candidate, "CANDIDATE"))}
    body: dict[str, Any] = {"kind": "bisect", **runs, "cases": cases, **_budget(budget)}
    plan_and_start(body, yes=yes, wait=wait, form=form, give_up_after=give_up_after, as_json=as_json)


def register(program: typer.Typer, group: type[TyperGroup]) -> None:
    """Add the commands of the lab. group: the class of commands that have commands."""
    program.command()(bisect)
    program.add_typer(app, name="experiment", cls=group)
