"""`evalboard profile`: list, show and add the settings that runs are pinned to."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.cli.arguments import parse_body
from evalboard.cli.errors import CommandError
from evalboard.cli.lists import print_list
from evalboard.cli.output import printable
from evalboard.client.access import connect

if TYPE_CHECKING:
    from evalboard.contract.catalogue import Profile

app = typer.Typer(help="Profiles.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]


class NoSuchProfile(CommandError):
    """There is no profile of that name."""

    code = "not_found"
    title = "There is no such profile"


@app.callback()
def profile() -> None:
    """Profiles."""


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the newest version of each profile."""
    with connect() as client:
        print_list(client.profiles(), _list_cells, empty="There is no profile yet.", as_json=as_json)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="PROFILE", help="The profile's slug.")], as_json: AsJson = False
) -> None:
    """Show the settings of a profile's newest version."""
    with connect() as client:
        answer = next((each for each in client.profiles() if each.value.slug == name), None)
    if answer is None:
        raise NoSuchProfile(f"There is no profile {printable(name)}; evalboard profile list names them.")
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else _render(answer.value))


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="PROFILE", help="The slug; one that exists gets its next version.")],
    settings: Annotated[str, typer.Option(metavar="JSON|@FILE", help="The settings, as a JSON object.")],
    title: Annotated[str, typer.Option(help="A title; default: none.")] = "",
    as_json: AsJson = False,
) -> None:
    """Add a profile, or the next version of one."""
    with connect() as client:
        answer = client.create_profile({"slug": name, "title": title, "settings": parse_body(settings, "--settings")})
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else _render(answer.value))


def _list_cells(profile: "Profile") -> tuple[str, ...]:
    return profile.slug, f"v{profile.version}", str(profile.settings.get("batch_class", "")), printable(profile.title)


def _render(profile: "Profile") -> str:
    settings = json.dumps(profile.settings, ensure_ascii=False, indent=2, sort_keys=True)
    return f"{profile.slug} v{profile.version}, {printable(profile.title)}. Digest {profile.digest}.\n{settings}"
