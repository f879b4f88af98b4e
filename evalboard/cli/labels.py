"""`evalboard labels`: what people say of a run's answers, and labels made elsewhere."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli.arguments import parse_id
from evalboard.cli.lists import columns
from evalboard.client.access import connect
from evalboard.client.errors import WrongUse
from evalboard.client.program import as_typed
from evalboard.core.document import read_strict_json

if TYPE_CHECKING:
    from evalboard.contract.labels import RunLabels

MAX_SENT = 1000  # labels, the most that the server takes at a time
WORDS = {"right": True, "true": True, "1": True, "wrong": False, "false": False, "0": False}
FIELDS = ("case", "repeat", "text", "label")


def labels(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    file: Annotated[
        str, typer.Option("--import", metavar="FILE", help="Labels made elsewhere, as .jsonl or .csv.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Show what people's labels say of a run's scorers: agreement, and the corrected pass rate.

    A line of FILE has case, label (right or wrong), and the repeat or the text of the answer.
    """
    parse_id(run, "RUN")
    given = list(_read(Path(file))) if file else []
    with connect() as client:
        for start in range(0, len(given), MAX_SENT):
            client.label_answers(run, given[start : start + MAX_SENT])
        answer = client.agreement(run)
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else as_typed(_render(answer.value)))


def _read(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the labels of a file as REST takes them. Raises WrongUse with the line."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines) if file.suffix == ".csv" else map(read_strict_json, filter(str.strip, lines))
            number = 0
            for number, row in enumerate(rows, start=1):
                yield _read_row(row, f"{file}, label {number}")
            if not number:
                raise WrongUse(f"{file} has no label.")
    except OSError as problem:
        raise WrongUse(f"{file} cannot be read: {problem.strerror}.") from problem
    except (ValueError, csv.Error) as problem:
        raise WrongUse(f"{file} cannot be read: {problem}.") from problem


def _read_row(row: Any, place: str) -> dict[str, Any]:
    if not isinstance(row, dict) or not row.keys() <= {*FIELDS} or not row.keys() >= {"case", "label"}:
        raise WrongUse(f"{place}: give case, label, and repeat or text, and nothing else.")
    is_right = WORDS.get(str(row["label"]).strip().lower())
    if is_right is None:
        raise WrongUse(f"{place}: the label is {row['label']}; write right or wrong.")
    given = {"case": row["case"], "is_right": is_right}
    if (repeat := row.get("repeat")) not in (None, ""):
        if not str(repeat).isascii() or not str(repeat).isdigit():
            raise WrongUse(f"{place}: the repeat is {repeat}; write a whole number.")
        return {**given, "repeat": int(repeat)}
    return {**given, "text": row["text"]} if row.get("text") is not None else given


def _render(shown: "RunLabels") -> str:
    from evalboard.wording import labels as wording

    rows = [("scorer", "kappa", "true positives", "false positives", "pass rate")]
    for line in shown.scorers:
        measured = line.agreement
        cells = (
            f"{line.scorer.name}{' (own)' if line.scorer.is_own else ''}",
            wording.kappa(measured.kappa, measured.kappa_interval),
            wording.rate(measured.true_positive, measured.true_positive_interval),
            wording.rate(measured.false_positive, measured.false_positive_interval),
        )
        rows.append((*cells, wording.describe_rate(line)))
    table = ["", *columns(rows)] if shown.scorers else []
    return "\n".join([wording.describe_labels(shown), *wording.list_notes(shown), *table, "", shown.url])
