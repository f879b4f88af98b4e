"""`evalboard case`: one case over the runs of its suite, and a decoding of it now."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.client.access import connect
from evalboard.client.program import as_typed
from evalboard.wording.case import day

if TYPE_CHECKING:
    from evalboard.contract.case import CaseHistory, CaseRun


def case(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's slug.")],
    case_id: Annotated[str, typer.Argument(metavar="ID", help="The case's id.")],
    decode: Annotated[bool, typer.Option("--decode", help="Decode it on each endpoint of yours that ran it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the history, or the replays, as JSON.")] = False,
) -> None:
    """Show since when a case passes or fails, and its distinct answers."""
    with connect() as client:
        if decode:
            made = list(client.decode_case(suite, case_id))
            lines = [f"Replay {each.value.id} is queued: {each.value.url}" for each in made]
            typer.echo(json.dumps([each.json for each in made], ensure_ascii=False) if as_json else "\n".join(lines))
            return
        answer = client.case(suite, case_id)
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else as_typed(_render(answer.value)))


def _render(history: "CaseHistory") -> str:
    lines = [" ".join((history.claim, *history.rest)), ""]
    lines += [_run_line(run) for run in reversed(history.runs)]
    for answer in history.answers:
        around = answer.excerpt
        token = f"[{around.token}]" if around.token else ""
        line = f"{'…' if around.is_cut else ''}{around.before}{token}{around.after}"
        lines += ["", f"{answer.letter}  {answer.n_repeats}×  {line[:160]}"]
        lines += [f"   {answer.reason}"] if answer.reason else []
    return "\n".join([*lines, "", history.url])


def _run_line(run: "CaseRun") -> str:
    """Return "run 8  10 Nov 2026  acme-7b-0419  ✕B ✕B"."""
    marks = (f"{_mark(each.score)}{each.answer or ''}" for each in run.repeats)
    changes = f"  (changed: {', '.join(fact.what for fact in run.changes)})" if run.changes else ""
    return f"run {run.run}  {day(run.ran_at)}  {run.model}  {' '.join(marks)}{changes}"


def _mark(score: float | None) -> str:
    return "–" if score is None else "✓" if score == 1 else "✕"
