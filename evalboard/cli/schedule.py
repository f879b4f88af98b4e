"""`evalboard schedule`: start runs or probes at set times."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli.errors import CommandError
from evalboard.cli.lists import print_list
from evalboard.cli.output import printable
from evalboard.client.access import connect

if TYPE_CHECKING:
    from evalboard.client.answers import Answer
    from evalboard.client.rest import RestClient
    from evalboard.contract.schedule import Schedule

app = typer.Typer(help="Schedules.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's slug.")]


class NoSuchSchedule(CommandError):
    """There is no schedule of that name."""

    code = "not_found"
    title = "There is no such schedule"


@app.callback()
def schedule() -> None:
    """Schedules."""


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the schedules, the one that is due next first."""
    with connect() as client:
        print_list(client.schedules(), _list_cells, empty="Nothing is scheduled.", as_json=as_json)


@app.command()
def add(
    name: Name,
    cron: Annotated[str, typer.Option(metavar="CRON", help="Five cron fields, such as '0 3 * * 1'.")],
    endpoint: Annotated[str, typer.Option(help="The endpoint's slug.")],
    suite: Annotated[str, typer.Option(help="Start a run of this suite.")] = "",
    probe: Annotated[str, typer.Option(metavar="KIND", help="Or start a probe of this kind.")] = "",
    profile: Annotated[str, typer.Option(help="The profile's slug; a probe chooses one itself.")] = "",
    repeats: Annotated[int | None, typer.Option(min=1, help="The run's repeats; default: 5.")] = None,
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help="Such as Europe/Berlin.")] = "UTC",
    as_json: AsJson = False,
) -> None:
    """Start a run or a probe at set times, in your name."""
    if bool(suite) == bool(probe):
        raise typer.BadParameter("Give what is started: --suite for a run, or --probe.", param_hint="--suite")
    order: dict[str, Any] = {"endpoint": endpoint} | ({"profile": profile} if profile else {})
    if suite:
        kind, order = "run", {"suite": suite, "profile": "pinned", **order}
        order |= {"repeats": repeats} if repeats else {}
    else:
        kind, order = "probe", {"kind": probe, **order}
    with connect() as client:
        answer = client.create_schedule({"slug": name, "cron": cron, "time_zone": time_zone, kind: order})
    _print(answer, as_json=as_json)


@app.command()
def pause(name: Name, as_json: AsJson = False) -> None:
    """Start nothing more of a schedule until it is resumed."""
    with connect() as client:
        answer = client.pause_schedule(_find(client, name))
    _print(answer, as_json=as_json)


@app.command()
def resume(name: Name, as_json: AsJson = False) -> None:
    """Go on with a schedule from its next due time."""
    with connect() as client:
        answer = client.resume_schedule(_find(client, name))
    _print(answer, as_json=as_json)


@app.command()
def delete(name: Name, as_json: AsJson = False) -> None:
    """Delete a schedule. What it started stays."""
    with connect() as client:
        deleted = _find(client, name)
        client.delete_schedule(deleted)
    sentence = f"Schedule {printable(name)} was deleted. What it started stays."
    typer.echo(json.dumps({"id": deleted, "slug": name}) if as_json else sentence)


def _find(client: "RestClient", name: str) -> str:
    """Return the id of a schedule. Raises NoSuchSchedule."""
    for each in client.schedules():
        if each.value.slug == name:
            return each.value.id
    raise NoSuchSchedule(f"There is no schedule {printable(name)}; evalboard schedule list names them.")


def _print(answer: "Answer[Schedule]", *, as_json: bool) -> None:
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else "  ".join(_list_cells(answer.value)))


def _list_cells(schedule: "Schedule") -> tuple[str, ...]:
    if schedule.run is not None:
        order = f"run of {schedule.run.suite} on {schedule.run.endpoint}, {schedule.run.profile}"
    else:
        order = f"{schedule.probe.kind} probe of {schedule.probe.endpoint}" if schedule.probe else ""
    due = f"next {schedule.next_at:%Y-%m-%d %H:%M} UTC" if schedule.next_at else "paused"
    return schedule.slug, f"{schedule.cron} {schedule.time_zone}", due, order
