"""`evalboard force`: score the answers of a run on another stack, and say how far it is."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli import diff_limits
from evalboard.cli.arguments import parse_id, parse_number, split
from evalboard.cli.errors import FAILED
from evalboard.cli.output import decide
from evalboard.cli.wait import GiveUpAfter, follow_to_end
from evalboard.client.access import connect
from evalboard.client.progress import WaitProgress
from evalboard.client.waiting import GIVE_UP_SECONDS
from evalboard.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalboard.client.answers import Answer
    from evalboard.client.rest import RestClient
    from evalboard.contract.forced import ForcedCost, ForcedScoring

LIMITS = ("flip", "kl")


def force(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")] = "",
    on: Annotated[
        str, typer.Option("--on", metavar="ENDPOINT", help="The endpoint whose engine scores the answers.")
    ] = "",
    profile: Annotated[str, typer.Option(help="The engine's profile; default: the run's.")] = "",
    as_run: Annotated[
        str, typer.Option("--as", metavar="RUN", help="Instead of --on: use the stack of this run.")
    ] = "",
    cases: Annotated[str, typer.Option(metavar="ID,ID", help="Score only these cases.")] = "",
    tag: Annotated[str, typer.Option(metavar="TAG", help="Score only cases with this tag.")] = "",
    repeats: Annotated[str, typer.Option(metavar="1,2", help="Score only these repeats.")] = "",
    cost: Annotated[bool, typer.Option("--cost", help="Print the cost and score nothing.")] = False,
    show: Annotated[str, typer.Option(metavar="ID", help="Show an earlier scoring.")] = "",
    fail_on: diff_limits.FailOn = "",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scoring as JSON when it has ended.")] = False,
) -> None:
    """Score a run's answers on another stack: how likely it finds each of their tokens."""
    chosen = _chosen(cases, tag, repeats)
    limits = diff_limits.parse_limits(fail_on, LIMITS)
    if cost:
        parse_id(run, "RUN")
        with connect() as client:
            typer.echo(_say_cost(client, run, chosen))
        return
    stack: dict[str, str] = {}
    if show:
        if run or on or as_run:
            raise typer.BadParameter("Use it without RUN, --on and --as.", param_hint="--show")
        parse_id(show, "--show")
    else:
        parse_id(run, "RUN")
        if bool(on) == bool(as_run):
            raise typer.BadParameter("Give either --on or --as.", param_hint="--on")
        stack |= {"endpoint": on} if on else {"as_run": parse_id(as_run, "--as")}
        stack |= {"profile": profile} if profile else {}
    with connect() as client:
        if not show:
            typer.echo(_say_cost(client, run, chosen), err=True)
        forced_id = show or create_forced(client, run, stack | chosen).value.id
        answer = follow_scoring(client, forced_id, give_up_after=give_up_after)
    decide(is_verdict=bool(limits))
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else _render(answer.value))
    if answer.value.status != "finished":
        raise typer.Exit(FAILED)
    raise typer.Exit(diff_limits.conclude(*diff_limits.find_reached(limits, judge_forced(answer.value))))


def create_forced(client: "RestClient", run: str, body: dict[str, Any]) -> "Answer[ForcedScoring]":
    from evalboard.contract.forced import ForcedScoring

    return client.post(ForcedScoring, f"/runs/{run}/forced/", body)


def list_forced(client: "RestClient", run: str) -> "Iterator[Answer[ForcedScoring]]":
    """Yield the forced scorings of a run, newest first."""
    from evalboard.contract.forced import ForcedScoring

    return client.rows(ForcedScoring, f"/runs/{run}/forced/", {})


def read_cost(client: "RestClient", run: str, chosen: dict[str, Any]) -> "ForcedCost":
    """Return what scoring all answers of a run costs, or the chosen ones."""
    from evalboard.contract.forced import ForcedCost

    path = f"/runs/{run}/forced/cost/"
    return (client.post(ForcedCost, path, chosen) if chosen else client.get(ForcedCost, path)).value


def follow_scoring(
    client: "RestClient", forced_id: str, *, give_up_after: float, sentence: str = "", come_back: str = ""
) -> "Answer[ForcedScoring]":
    """Follow a forced scoring to its end. sentence, come_back: where it is one of several."""
    # Here and below, as it brings pydantic, which no help waits for.
    from evalboard.contract.forced import ForcedScoring

    return follow_to_end(
        lambda: client.poll(ForcedScoring, f"/forced/{forced_id}/"),
        _progress,
        sentence=sentence or f"Forced scoring {forced_id} goes on.",
        come_back=come_back or f"evalboard force --show {forced_id}",
        give_up_after=give_up_after,
    )


def judge_forced(scoring: "ForcedScoring") -> diff_limits.Judge:
    """Return the judge of a forced scoring that has ended."""

    def judge(name: str, value: str) -> tuple[str, str]:
        figures = scoring.figures
        if figures is None:
            return "", "several backends answered, so there are no figures for the whole"
        if name == "kl":
            if figures.kl_k3 is None or not scoring.are_draws:
                return "", "the answers were not sampled from the distribution that their logprobs are of"
            kl = figures.kl_k3.value
            return (f"{kl:.3g} nats per token" if kl >= float(value) else ""), ""
        if scoring.is_sampled:
            return "", "the answers were sampled, so any token may differ from the most likely one"
        if not figures.n_ranked:
            return "", "of no token is it known whether this stack would have chosen it"
        n = figures.n_not_top
        return (f"{counted(n, 'token')} would have been chosen otherwise" if n else ""), ""

    return judge


def _progress(answer: "Answer[ForcedScoring]") -> WaitProgress:
    scoring = answer.value
    name, unit = f"forced scoring {scoring.id}", "answers"
    return WaitProgress(name, unit, scoring.status, scoring.n_done, scoring.n_answers, scoring.is_terminal)


def _chosen(cases: str, tag: str, repeats: str) -> dict[str, Any]:
    """Return whose answers are scored, as a body has it: nothing where all of them are."""
    chosen: dict[str, Any] = {"cases": split(cases)} if cases else {}
    chosen |= {"tag": tag} if tag else {}
    chosen |= {"repeats": [parse_number(part, "--repeats") for part in split(repeats)]} if repeats else {}
    return chosen


def _say_cost(client: "RestClient", run: str, chosen: dict[str, Any]) -> str:
    cost = read_cost(client, run, chosen)
    takes = f"{counted(cost.n_answers, 'answer')} with {counted(cost.n_tokens, 'token')}"
    text = f"Scoring run {run} takes {takes}, after prompts of {counted(cost.n_prompt_tokens, 'token')}."
    return f"{text} {cost.n_uncounted:,} answers have an unknown number of tokens." if cost.n_uncounted else text


def _render(scoring: "ForcedScoring") -> str:
    where = "by its trainer" if scoring.is_reported else f"on {scoring.endpoint}"
    title = f"Forced scoring {scoring.id} of run {scoring.run} {where}: {scoring.status}. {scoring.url}"
    return "\n".join([title, *(scoring.reading or [" ".join((scoring.error or "").split())])])
