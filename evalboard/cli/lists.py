"""Print lists of a server: as JSON, or a line for each row."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from evalboard.client.answers import Answer


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Align the cells of rows, a line for each row."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def print_list(
    answers: "Iterable[Answer[Any]]", cells: Callable[[Any], tuple[str, ...]], *, empty: str, as_json: bool
) -> None:
    """Print a list as JSON, or a line for each row with its cells; empty: the line for an empty list."""
    rows = list(answers)
    if as_json:
        typer.echo(json.dumps([answer.json for answer in rows], ensure_ascii=False))
    else:
        typer.echo("\n".join(columns([cells(answer.value) for answer in rows])) if rows else empty)
