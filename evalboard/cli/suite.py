"""`evalboard suite push`: a file of cases becomes a suite's newest version."""

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from evalboard.cli import place
from evalboard.cli.client import Client
from evalboard.cli.errors import WrongUse
from evalboard.core import suite as suites
from evalboard.core import suite_mapping
from evalboard.core.errors import InvalidInput

MAPPINGS = Path(__file__).resolve().parents[2] / "runs" / "samples" / "mappings"
FIELDS_NAMED = 10

app = typer.Typer(help="Suites.", no_args_is_help=True)


@app.callback()
def suite() -> None:
    """Suites."""


@app.command()
def push(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON, or JSONL with one case a line.")],
    slug: Annotated[
        str, typer.Option(help="The suite's slug; default: the document's own, else the file's name.")
    ] = "",
    title: Annotated[str, typer.Option(help="The suite's title; default: the document's own, else the slug.")] = "",
    mapping: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="Read FILE as another tool's JSONL by this mapping.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the suite version as JSON.")] = False,
) -> None:
    """Store a suite, or find that its content is stored already."""
    try:
        document = _document(file, slug=slug, title=title, mapping=mapping)
        suites.parse_suite(document)  # so that a mistake is named before anything is sent
    except InvalidInput as problem:
        raise WrongUse(f"{file}: {_words(problem)}") from problem
    with Client(place.find()) as client:
        answer = client.push_suite(document)
    if as_json:
        typer.echo(json.dumps(answer.json, ensure_ascii=False))
        return
    stored = answer.json
    state = "stored" if answer.is_new else "was there already"
    typer.echo(f"{stored['slug']} v{stored['version']} {state}: {stored['n_cases']} cases. {stored['url']}")


def _document(file: Path, *, slug: str, title: str, mapping: str) -> dict[str, Any]:
    text = _read(file)
    name = slug or re.sub(r"[^a-z0-9_-]+", "-", file.stem.lower()).strip("-_")
    if mapping:
        document = suite_mapping.map_jsonl(text, suite_mapping.parse_mapping(_mapping(mapping)), slug=name)
    elif file.suffix.lower() in (".jsonl", ".ndjson"):
        document = suites.read_jsonl(text, slug=name)
    else:
        document = suites.read_json(text)
        if not isinstance(document, dict):
            raise InvalidInput("A suite is a JSON object; cases one a line stand in a file that ends in .jsonl.")
        document = {"slug": name, **document}
    return document | ({"slug": slug} if slug else {}) | ({"title": title} if title else {})


def _mapping(named: str) -> Any:
    """One that ships with the product, by name, or a file."""
    path = Path(named)
    if not path.exists() and (shipped := MAPPINGS / f"{named}.json").exists():
        path = shipped
    if not path.exists():
        known = ", ".join(sorted(found.stem for found in MAPPINGS.glob("*.json")))
        raise WrongUse(f"There is no mapping {named}: it is a file, or one of {known}.")
    return suites.read_json(_read(path))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise WrongUse(f"{path} cannot be read: {problem.strerror}.") from problem
    except UnicodeDecodeError as problem:
        raise WrongUse(f"{path} is not UTF-8: {problem.reason} at byte {problem.start}.") from problem


def _words(problem: InvalidInput) -> str:
    named = [
        f"{name}: {text}" for name, text in list(problem.fields.items())[:FIELDS_NAMED] if text not in problem.detail
    ]
    return "; ".join([problem.detail.rstrip("."), *named]) + "."
