"""`evalboard compare`: what changed between two runs, and why."""

import json
from typing import Annotated

import typer

from evalboard.cli import place
from evalboard.cli import verdict_words as words
from evalboard.cli.answers import ComparisonAnswer
from evalboard.cli.client import Client
from evalboard.cli.errors import FAILED, INTERRUPTED
from evalboard.cli.patience import GIVE_UP_SECONDS, follow
from evalboard.cli.progress import follower


def compare(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="The id of the run to compare against.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The id of the run to compare.")],
    give_up_after: Annotated[
        float, typer.Option(min=0, help="Seconds without an answer of the server after which to stop waiting.")
    ] = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare two runs: the difference, whether it may be read as one change, and its ledger by cause."""
    for run, name in ((baseline, "BASELINE"), (candidate, "CANDIDATE")):
        if not run.isascii() or not run.isdigit():
            raise typer.BadParameter("A run's id is a number.", param_hint=name)
    again = f"evalboard compare {baseline} {candidate}"
    with Client(place.find()) as client:
        try:
            with follower() as told:
                found = follow(
                    lambda: client.compare(baseline, candidate), told, come_back=again, give_up_after=give_up_after
                )
        except KeyboardInterrupt:
            typer.echo(f"The comparison goes on. Come back with: {again}", err=True)
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps(found.json, ensure_ascii=False))
    else:
        _tell(found)
    raise typer.Exit(0 if found.status == "finished" else FAILED)


def _tell(found: ComparisonAnswer) -> None:
    title = f"Run {found.json['candidate']} against run {found.json['baseline']}"
    if found.status != "finished":
        typer.echo(f"{title}: the comparison {found.status}. {found.error} {found.url}")
        return
    score = found.json["score"]
    change = "no difference given"
    if found.difference is not None:
        change = f"{words.points(found.difference)} points ({score['baseline']:.1f} to {score['candidate']:.1f})"
    is_comparable = "comparable" if found.is_comparable else "not comparable"
    typer.echo(f"{title}: {change}, {is_comparable}. {found.url}")
    for text in found.blocks:
        typer.echo(f"{'note' if found.is_comparable else 'not comparable'}: {text}")
    rows = [(row["cause"], _n_cases(row["n_cases"]), f"{words.points(row['points'])} points") for row in found.ledger]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for cause, n_cases, points in rows:
        typer.echo(f"  {cause:<{widths[0]}}  {n_cases:>{widths[1]}}  {points:>{widths[2]}}")


def _n_cases(n: int) -> str:
    return "1 case" if n == 1 else f"{n:,} cases"
