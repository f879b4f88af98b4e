"""`evalboard rollouts`: series that training loops log, and a check of their newest steps."""

import json
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.cli.errors import INCONCLUSIVE, NO_SHIP
from evalboard.cli.lists import columns, print_list
from evalboard.cli.output import decide
from evalboard.client.access import connect
from evalboard.wording.rollouts import (
    describe_step,
    describe_worst_token,
    explain_limits,
    list_checks,
    write_kl,
    write_share,
)

if TYPE_CHECKING:
    from evalboard.contract.rollouts import RolloutSeries, RolloutStep

HEADS = ("step", "KL (k3)", "outside clip", "tokens", "")


def rollouts(
    series: Annotated[str, typer.Argument(metavar="SERIES", help="A series' name; empty: list all.")] = "",
    last: Annotated[int, typer.Option(min=1, help="How many of the newest steps to check.")] = 10,
    max_kl: Annotated[
        float | None, typer.Option(min=0, help="Limit of the KL (k3), in nats per token. Default: each step's own.")
    ] = None,
    max_clip_share: Annotated[
        float | None, typer.Option(min=0, max=1, help="Limit of the share of tokens outside the clip range.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the series or its steps as JSON.")] = False,
) -> None:
    """Show how far a sampler is from its trainer, step by step; exit with 1 if a step is over its limit."""
    with connect() as client:
        if not series:
            print_list(client.rollouts(), _cells, empty="No training run has logged a step.", as_json=as_json)
            return
        answers = list(islice(client.rollout_steps(series), last))
    steps = [answer.value for answer in answers]
    over = [(step, words) for step in steps if (words := _explain(step, max_kl, max_clip_share))]
    decide(is_verdict=True)
    if as_json:
        typer.echo(json.dumps([answer.json for answer in answers], ensure_ascii=False))
    else:
        is_over = {step.step for step, _ in over}
        rows = [(*_numbers(step), "over the limit" if step.step in is_over else "") for step in steps]
        typer.echo("\n".join(columns([HEADS, *rows])))
        newest = steps[0]
        for line in (describe_step(newest), describe_worst_token(newest), *list_checks(newest)):
            if line:
                typer.echo(line)
        for step, words in over:
            typer.echo(f"Step {step.step}: {words} {describe_worst_token(step)}".rstrip())
    known = any(step.kl_k3 is not None for step in steps)
    raise typer.Exit(NO_SHIP if over else 0 if known else INCONCLUSIVE)


def _explain(step: "RolloutStep", max_kl: float | None, max_clip_share: float | None) -> str:
    return explain_limits(
        step,
        max_kl=step.max_kl if max_kl is None else max_kl,
        max_clip_share=step.max_clip_share if max_clip_share is None else max_clip_share,
    )


def _numbers(step: "RolloutStep") -> tuple[str, str, str, str]:
    return str(step.step), write_kl(step.kl_k3, step.kl_k3_error), write_share(step.clip_share), f"{step.n_compared:,}"


def _cells(series: "RolloutSeries") -> tuple[str, ...]:
    return (
        series.name,
        f"{series.n_steps:,} steps",
        f"step {series.last.step}: {write_kl(series.last.kl_k3)}",
        f"largest {write_kl(series.worst.kl_k3)} at step {series.worst.step}",
        f"{series.n_over:,} over a limit",
    )
