"""`evalboard compare`: what changed between two runs, and why."""

import json
import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.cli import diff_limits
from evalboard.cli.arguments import parse_id
from evalboard.cli.errors import FAILED
from evalboard.cli.output import decide
from evalboard.cli.release import PairedBy, check_pairing, check_treatment
from evalboard.cli.summary import draw_line
from evalboard.cli.wait import GiveUpAfter, follow_to_end
from evalboard.client.access import connect
from evalboard.client.progress import comparison_progress
from evalboard.client.waiting import GIVE_UP_SECONDS
from evalboard.contract.treatments import BY_INPUT, TREATMENTS
from evalboard.wording.numbers import counted, fixed, scores_beside, signed
from evalboard.wording.outcomes import count_changes, count_targeted

if TYPE_CHECKING:
    from evalboard.contract.compare import ComparedSides, Comparison, LedgerLine, LedgerPart, PromptsCompared

MARKED = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}  # as wdiff and git --word-diff have them


def compare(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="The run to compare with, by id.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The run to compare, by id.")],
    treatment: Annotated[
        str,
        typer.Option(
            metavar="|".join(TREATMENTS),
            help="What is judged; default: the model, or the prompt where no case is the same.",
        ),
    ] = "",
    pair_by: PairedBy = BY_INPUT,
    fail_on: diff_limits.FailOn = "",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare two runs: the difference, whether it can be read as one change, and its ledger by cause."""
    parse_id(baseline, "BASELINE")
    parse_id(candidate, "CANDIDATE")
    check_treatment(treatment, "")
    terms = {"treatment": treatment} if treatment else {}
    terms |= {"pair_by": check_pairing(pair_by)} if pair_by != BY_INPUT else {}
    limits = diff_limits.parse_limits(fail_on, diff_limits.OF_COMPARISON)
    with connect() as client:
        answer = follow_to_end(
            lambda: client.compare(baseline, candidate, **terms),
            comparison_progress,
            sentence="The comparison goes on.",
            come_back=shlex.join(["evalboard", *sys.argv[1:]]),
            give_up_after=give_up_after,
        )
    comparison = answer.value
    decide(is_verdict=bool(limits))
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else render_comparison(comparison))
    if not comparison.progress.is_finished:
        raise typer.Exit(FAILED)
    raise typer.Exit(diff_limits.conclude(*diff_limits.find_reached(limits, diff_limits.judge_comparison(comparison))))


def render_comparison(comparison: "Comparison", title: str = "") -> str:
    """Return the change, its comparability, whether logprobs agree, and a line for each cause.

    title: names both sides; by default the runs.
    """
    title = title or f"Run {comparison.candidate} against run {comparison.baseline}"
    progress, score = comparison.progress, comparison.score
    if not progress.is_finished:
        return f"{title}: the comparison {progress.status}. {progress.error or ''} {comparison.url}"
    change = "no difference given"
    if score.difference is not None and score.baseline is not None and score.candidate is not None:
        beside = scores_beside(score.baseline, score.candidate, score.difference)
        ends = f"({beside.baseline} to {beside.candidate}) {beside.note}".rstrip()
        change = f"{signed(score.difference)} points {ends}"
    is_comparable = "comparable" if comparison.comparable else "not comparable"
    notes = [f"{'note' if comparison.comparable else 'not comparable'}: {block.text}" for block in comparison.blocks]
    named = [(f"{indent}{row.cause}", row) for line in comparison.ledger for indent, row in _with_parts(line)]
    rows = [
        (name, counted(row.n_cases, "case"), f"{signed(row.points if row.shown is None else row.shown)} points")
        for name, row in named
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    ledger = [f"  {cause:<{widths[0]}}  {n_cases:>{widths[1]}}  {moved:>{widths[2]}}" for cause, n_cases, moved in rows]
    computation = [] if comparison.computation is None else [comparison.computation.text]
    outcomes = [text] if (text := count_changes(comparison.parts, comparison.outcomes)) else []
    noise = [] if comparison.noise_share is None else [comparison.noise_share.text]
    targeted = [text] if (text := count_targeted(comparison)) else []
    speed = [text] if (text := _describe_speed(comparison.sides)) else []
    title = f"{title}: {change}, {is_comparable}. {comparison.url}".rstrip()
    prompts = [] if comparison.prompts is None else _list_changes(comparison.prompts)
    return "\n".join([title, *notes, *prompts, *computation, *outcomes, *targeted, *ledger, *noise, *speed])


def _describe_speed(sides: "ComparedSides") -> str:
    """Say how long an answer took and how many tokens it has on both sides; "" unless both are known."""
    baseline, candidate = sides.baseline.speed, sides.candidate.speed
    if baseline is None or candidate is None:
        return ""
    named = (("median", "median_seconds", " s"), ("95 % within", "p95_seconds", " s"), ("tokens out", "tokens", ""))
    pairs = ((what, getattr(baseline, name), getattr(candidate, name), unit) for what, name, unit in named)
    known = [(what, (ours, theirs), unit) for what, ours, theirs, unit in pairs if None not in (ours, theirs)]
    parts = [f"{what} {' to '.join(f'{fixed(end, 2)}{unit}' for end in ends)}" for what, ends, unit in known]
    costs = [side.cost.text for side in (sides.baseline, sides.candidate) if side.cost]
    cost = f" Cost of the runs: {' to '.join(costs)}." if len(costs) == 2 else ""
    return f"An answer: {', '.join(parts)}.{cost}" if parts else ""


def _list_changes(prompts: "PromptsCompared") -> list[str]:
    """Say what changed in the prompts: {+what was added+}, [-what was removed-]."""
    lines = [prompts.text] if prompts.changes else []
    indent = "    " if prompts.n_changes > 1 else "  "
    for change in prompts.changes:
        if prompts.n_changes > 1:
            lines.append(f"  in {counted(change.n_cases, 'case')}, as in {change.case}:")
        lines += [
            f"{indent}{message.role}: {draw_line(''.join(_mark(piece.kind, piece.text) for piece in message.pieces))}"
            for message in change.messages
        ]
    return lines


def _mark(kind: str, text: str) -> str:
    before, after = MARKED[kind]
    return f"{before}{text}{after}"


def _with_parts(line: "LedgerLine") -> "list[tuple[str, LedgerPart]]":
    """Return a line of the ledger and under it its parts, each with its indent."""
    return [("", line), *(("  ", part) for part in line.parts or ())]
