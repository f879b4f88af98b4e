"""`evalboard settle`: what repeats would decide an inconclusive release, and start them."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.cli.arguments import parse_id
from evalboard.cli.errors import CommandError
from evalboard.client.access import connect
from evalboard.wording.numbers import counted, fixed, percent

if TYPE_CHECKING:
    from evalboard.contract.release import SettlePlan


class CannotSettle(CommandError):
    """Further repeats cannot be added to a release."""

    code = "conflict"
    title = "Further repeats do not help"


def settle(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The id of an inconclusive release.")],
    targeted: Annotated[
        bool, typer.Option("--targeted", help="Repeat only the cases that are most likely to flip.")
    ] = False,
    start: Annotated[bool, typer.Option("--start", help="Add the repeats; default: show their cost.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plans or the release as JSON.")] = False,
) -> None:
    """Show which repeats would decide an inconclusive release, and what they cost."""
    parse_id(release, "RELEASE")
    with connect() as client:
        answer = client.settle_plan(release)
        plan = answer.value.targeted if targeted else answer.value.plan
        if plan is None:
            raise CannotSettle(answer.value.settling or f"Further repeats would not decide release {release}.")
        if plan.refused:
            raise CannotSettle(plan.refused)
        if start:
            body = {"cases": plan.chosen, "look": plan.look, "n_responses": plan.n_responses}
            decided = client.settle(release, body)
            words = f"{_render(plan)} They are queued. {decided.value.url}"
            typer.echo(json.dumps(decided.json, ensure_ascii=False) if as_json else words)
            return
    words = f"{_render(plan)} Start them with --start."
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else words)


def _render(plan: "SettlePlan") -> str:
    """Describe a plan: the repeats of each run, and their cost."""
    runs = ", ".join(f"{counted(each.n_more, 'repeat')} of run {each.run}" for each in plan.runs)
    minutes = "" if plan.minutes is None else f", about {fixed(plan.minutes, 1)} min"
    chance = "" if plan.chance is None else f" They decide it with a chance of {percent(plan.chance)}."
    return f"{runs}: {counted(plan.n_responses, 'response')}{minutes}.{chance}"
