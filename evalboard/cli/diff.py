"""`evalboard diff`: two logs compared, or one split by who answered; no server is needed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from evalboard.cli.errors import FAILED, LIMIT_REACHED, CommandError
from evalboard.cli.output import decide
from evalboard.client.errors import WrongUse
from evalboard.core.garbage import without_garbage_search

if TYPE_CHECKING:
    from evalboard.logged.comparing import LogComparison

BETWEEN = "\0--"  # stands for the "--" between the logs of two sides, which the parser would take out
SHOWN = 10


class DiffCommand(TyperCommand):
    """A command whose arguments have a "--" between two lists."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [BETWEEN if each == "--" else each for each in args])


@without_garbage_search()
def diff(
    logs: Annotated[
        list[str], typer.Argument(metavar="A [B]", help="Two logs; or one, which is split by who answered.")
    ],
    log_format: Annotated[
        str, typer.Option("--format", help="The format of the logs; else it is recognised.")
    ] = "auto",
    scale: Annotated[str, typer.Option(help="The scale of scores outside 0 to 1, such as 0..10.")] = "",
    case: Annotated[str, typer.Option(metavar="ID", help="Show one case: both answers, token by token.")] = "",
    fail_on: Annotated[
        str,
        typer.Option(help="Exit with 5 on flip, shift, text, score, points=N, kl=N, cause=NAME; several with commas."),
    ] = "",
    limit: Annotated[int, typer.Option(min=0, help="How many cases to print.")] = SHOWN,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, as for a pull request.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the comparison and every pair that differs.")
    ] = False,
) -> None:
    """Compare two logs without a server: the difference, its causes, and the cases that differ."""
    from evalboard.cli import diff_limits, diff_report
    from evalboard.core.errors import InvalidInput

    sides = _split(logs)
    limits = diff_limits.parse_limits(fail_on)
    try:
        if len(sides) == 1:
            if case or fail_on:
                raise WrongUse("--case and --fail-on compare two logs, and one was given.")
            text = _split_log(sides[0][0], log_format=log_format, scale=scale, as_json=as_json, as_markdown=as_markdown)
            decide()
            typer.echo(text)
            return
        names, made = _compare(sides, log_format=log_format, scale=scale)
        reached, unknown = diff_limits.find_reached(made, limits)
        if as_json:
            text = json.dumps(_to_json(made), ensure_ascii=False)
        elif case:
            text = diff_report.render_case(made, case)
        else:
            render = diff_report.render_markdown if as_markdown else diff_report.render_text
            text = render(made, names, limit)
    except InvalidInput as problem:
        if log_format == "auto" and "format" in problem.fields:
            raise CommandError(problem.fields["format"]) from problem
        named = [f"{name}: {what}" for name, what in problem.fields.items() if what not in problem.detail]
        raise CommandError(" ".join([problem.detail, *named])) from problem
    decide(is_verdict=bool(limits))
    typer.echo(text)
    if reached or unknown:
        typer.echo(f"evalboard: --fail-on: {'; '.join([*reached, *unknown])}.", err=True)
        raise typer.Exit(LIMIT_REACHED if reached else FAILED)


def _split(logs: Sequence[str]) -> list[list[Path]]:
    """Return the logs of one side or of two. Raises WrongUse."""
    if BETWEEN in logs:
        at = logs.index(BETWEEN)
        sides = [list(logs[:at]), list(logs[at + 1 :])]
        if not all(sides) or BETWEEN in sides[1]:
            raise WrongUse("Repeats of two sides are written A1 A2 -- B1 B2, with at least one log on either side.")
    elif len(logs) > 2:
        raise WrongUse(f"Two logs can be compared, and {len(logs)} were given. Repeats are written A1 A2 -- B1 B2.")
    else:
        sides = [[log] for log in logs]
    return [[Path(log) for log in side] for side in sides]


def _compare(sides: Sequence[Sequence[Path]], *, log_format: str, scale: str) -> "tuple[list[str], LogComparison]":
    from datetime import UTC, datetime

    from evalboard.logged.comparing import LogComparison
    from evalboard.logged.memory import LogStore
    from evalboard.logged.sources import read_sides

    now = datetime.now(UTC)
    store, names, runs = LogStore(now=now), [], []
    for named in read_sides(sides, log_format=log_format, scale=scale):
        names.append(named.name)
        runs.append(store.add(named.logged, source=named.source))
    made = LogComparison(store, runs[0], runs[1], at=now)
    _ = made.comparison
    return names, made


def _to_json(made: "LogComparison") -> dict[str, Any]:
    """Return the comparison as REST answers it, and under "cases" the pairs that differ."""
    return made.comparison.to_json() | {"cases": [pair.to_json() for pair in made.write_pairs(made.pairs)]}


def _split_log(path: Path, *, log_format: str, scale: str, as_json: bool, as_markdown: bool) -> str:
    from dataclasses import asdict

    from evalboard.cli import diff_report
    from evalboard.logged.sources import read_log, split_by_backend

    parts = [(log, split_by_backend(log.logged)) for log in read_log(path, log_format=log_format, scale=scale)]
    if as_json:
        rows = [
            {"suite": log.logged.slug, "tool": log.logged.tool, "parts": [asdict(part) for part in split]}
            for log, split in parts
        ]
        return json.dumps(rows, ensure_ascii=False)
    return "\n\n".join(diff_report.render_parts(log, split, as_markdown=as_markdown) for log, split in parts)
