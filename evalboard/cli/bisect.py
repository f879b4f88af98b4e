"""`evalboard bisect`: which of the settings that differ between two runs made the difference."""

from typing import Annotated, Any

import typer

from evalboard.cli.arguments import parse_id
from evalboard.cli.experiment import AsJson, Budget, Form, Wait, Yes, check_form, plan_and_start
from evalboard.cli.wait import GiveUpAfter
from evalboard.client.waiting import GIVE_UP_SECONDS


def bisect(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="The run to compare with, by id.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The run with other answers, by id.")],
    cases: Annotated[int, typer.Option(min=1, max=100, help="Cases per step (max).")] = 20,
    budget: Budget = None,
    yes: Yes = False,
    wait: Wait = False,
    form: Form = "text",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Find which settings explain the difference of two runs, by decoding differing cases again."""
    check_form(form)
    runs = {"baseline": int(parse_id(baseline, "BASELINE")), "candidate": int(parse_id(candidate, "CANDIDATE"))}
    body: dict[str, Any] = {"kind": "bisect", **runs, "cases": cases}
    if budget is not None:
        body["budget_minutes"] = budget
    plan_and_start(body, yes=yes, wait=wait, form=form, give_up_after=give_up_after, as_json=as_json)
