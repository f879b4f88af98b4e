"""`evalboard diff`: two logs compared, or one split by who answered; no server is needed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from evalboard.cli import diff_limits
from evalboard.cli.errors import CommandError
from evalboard.cli.output import decide
from evalboard.cli.release import PairedBy, check_pairing, check_treatment
from evalboard.client.errors import WrongUse
from evalboard.contract.treatments import AUTO, BY_INPUT
from evalboard.core.garbage import without_garbage_search

if TYPE_CHECKING:
    from evalboard.logged.comparing import LogComparison
    from evalboard.logged.sources import SplitRun

BETWEEN = "\0--"  # replaces the "--" between two sides' logs, which the parser would remove
SHOWN, SHOWN_IN_CHECK = 10, 5


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
    fail_on: diff_limits.FailOn = "",
    html: Annotated[
        str, typer.Option(metavar="FILE", help="Write a report as one HTML file too, which opens without a network.")
    ] = "",
    treatment: Annotated[
        str,
        typer.Option(help="What is judged: auto, model, stack, service or prompt. auto takes what alone differs."),
    ] = AUTO,
    pair_by: PairedBy = BY_INPUT,
    limit: Annotated[
        int | None, typer.Option(min=0, show_default="10; 5 in Markdown", help="How many cases to print.")
    ] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, as for a pull request.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the comparison and every pair that differs.")
    ] = False,
) -> None:
    """Compare two logs without a server: the difference, its causes, and the cases that differ."""
    from evalboard.cli import diff_report
    from evalboard.cli.report_file import ReportFile
    from evalboard.core.errors import InvalidInput

    if as_json + as_markdown + bool(case) > 1:
        raise WrongUse("--json, --markdown and --case each print another form: give one of them.")
    check_treatment(treatment, AUTO)
    check_pairing(pair_by)
    sides = _split(logs)
    limits = diff_limits.parse_limits(fail_on, diff_limits.OF_LOGS)
    file = ReportFile(html, sides, fail_on) if html else None
    reached: tuple[list[str], list[str]] = [], []
    try:
        with _fetch(sides) as (paths, addresses):
            if len(paths) == 1:
                if case or fail_on:
                    raise WrongUse("--case and --fail-on compare two logs, and one was given.")
                split = _split_log(paths[0][0], addresses, log_format, scale)
                text = _write_split(split, as_json=as_json, as_markdown=as_markdown)
                if file:
                    file.write_split(split)
            else:
                names, made = _compare(
                    paths, addresses, log_format=log_format, scale=scale, treatment=treatment, pair_by=pair_by
                )
                judge = diff_limits.judge_comparison(made.comparison, lambda: made.mean_kl)
                reached = diff_limits.find_reached(limits, judge)
                if as_json:
                    text = json.dumps(_to_json(made), ensure_ascii=False)
                elif case:
                    text = diff_report.render_case(made, case)
                elif as_markdown:
                    n_shown = SHOWN_IN_CHECK if limit is None else limit
                    text = diff_report.render_markdown(made, names, n_shown, [*reached[0], *reached[1]])
                else:
                    text = diff_report.render_text(made, names, SHOWN if limit is None else limit)
                if file:
                    file.write_comparison(made, names, diff_limits.tell_ending(fail_on, *reached))
    except InvalidInput as problem:
        if log_format == "auto" and "format" in problem.fields:
            raise CommandError(problem.fields["format"]) from problem
        named = [f"{name}: {what}" for name, what in problem.fields.items() if what not in problem.detail]
        raise CommandError(" ".join([problem.detail, *named])) from problem
    decide(is_verdict=bool(limits))
    typer.echo(text)
    raise typer.Exit(diff_limits.conclude(*reached))


def _split(logs: Sequence[str]) -> list[list[str]]:
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
    if any(not log.strip() for side in sides for log in side):
        raise WrongUse("A log has an empty name, as where a variable is not set.")
    if sum(side.count("-") for side in sides) > 1:
        raise WrongUse("Standard input is one log: `-` can be given once.")
    return sides


@contextmanager
def _fetch(sides: Sequence[Sequence[str]]) -> Iterator[tuple[list[list[Path]], dict[str, str]]]:
    """Yield the sides as paths, runs of a server downloaded; and what people call these."""
    names: dict[str, str] = {}
    with TemporaryDirectory(prefix="evalboard-diff-") as folder:

        def path_of(log: str) -> Path:
            if not log.startswith(("http://", "https://")):
                return Path(log)
            from evalboard.cli.export import download_run

            path = Path(folder) / f"{len(names)}.zip"
            download_run(log, path)
            names[str(path)] = log
            return path

        yield [[path_of(log) for log in side] for side in sides], names


def _compare(
    sides: Sequence[Sequence[Path]],
    addresses: Mapping[str, str],
    *,
    log_format: str,
    scale: str,
    treatment: str,
    pair_by: str,
) -> "tuple[list[str], LogComparison]":
    from datetime import UTC, datetime

    from evalboard.logged.comparing import LogComparison
    from evalboard.logged.memory import LogStore
    from evalboard.logged.sources import find_archive, read_sides

    now = datetime.now(UTC)
    store = LogStore(now=now)
    # An archive first, so that a log of its cases is one of its suite, as on its server.
    order = sorted(range(len(sides)), key=lambda at: find_archive(sides[at][0]) is None)
    named = read_sides([sides[at] for at in order], log_format=log_format, scale=scale)
    runs = {at: (each.name, each.add_to(store)) for at, each in zip(order, named, strict=True)}
    made = LogComparison(store, runs[0][1], runs[1][1], at=now, treatment=treatment, pair_by=pair_by)
    _ = made.comparison
    return [addresses.get(runs[at][0], runs[at][0]) for at in range(2)], made


def _to_json(made: "LogComparison") -> dict[str, Any]:
    """Return the comparison as REST answers it, with differing pairs in "cases" and the notes on each log."""
    notes = {"baseline": list(made.baseline.notes), "candidate": list(made.candidate.notes)}
    pairs = [pair.to_json() for pair in made.write_pairs(made.pairs)]
    return made.comparison.to_json() | {"cases": pairs, "notes": notes}


def _split_log(path: Path, addresses: Mapping[str, str], log_format: str, scale: str) -> "list[SplitRun]":
    from dataclasses import replace

    from evalboard.logged.sources import split_by_backend

    runs = split_by_backend(path, log_format=log_format, scale=scale)
    return [replace(run, name=addresses.get(run.name, run.name)) for run in runs]


def _write_split(split: "Sequence[SplitRun]", *, as_json: bool, as_markdown: bool) -> str:
    from dataclasses import asdict

    from evalboard.cli import diff_report

    if as_json:
        rows = [
            {"suite": run.suite, "tool": run.tool, "notes": list(run.notes), "parts": list(map(asdict, run.parts))}
            for run in split
        ]
        return json.dumps(rows, ensure_ascii=False)
    return "\n\n".join(diff_report.render_parts(run, as_markdown=as_markdown) for run in split)
