"""`evalboard verify`: check that an endpoint serves the weights of a reference, and fail if not."""

import json
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.cli import diff_limits
from evalboard.cli.arguments import parse_id
from evalboard.cli.errors import FAILED, INCONCLUSIVE, NO_SHIP
from evalboard.cli.forced.force import LIMITS, create_forced, follow_scoring, judge_forced, list_forced, read_cost
from evalboard.cli.output import decide
from evalboard.cli.wait import GiveUpAfter
from evalboard.client.access import connect
from evalboard.client.waiting import GIVE_UP_SECONDS
from evalboard.wording.verification import describe_numbers

if TYPE_CHECKING:
    from evalboard.client.rest import RestClient
    from evalboard.contract.forced import ForcedCost, ForcedScoring
    from evalboard.contract.verification import Verification

CODES = {"same_stack": 0, "same_model_other_numerics": 0, "other_model": NO_SHIP, "too_few_tokens": INCONCLUSIVE}


def verify(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run of the endpoint to check.")],
    on: Annotated[
        str, typer.Option("--on", metavar="ENDPOINT", help="The reference endpoint, whose engine scores all runs.")
    ],
    control: Annotated[str, typer.Option(metavar="RUN", help="A run of the reference itself.")],
    numerics: Annotated[
        list[str], typer.Option(metavar="RUN", help="A run of the same weights in another dtype; can be repeated.")
    ],
    planted: Annotated[str, typer.Option(metavar="RUN", help="A run of slightly changed weights.")] = "",
    profile: Annotated[str, typer.Option(help="The profile of the reference engine; default: the control's.")] = "",
    again: Annotated[bool, typer.Option("--again", help="Score all answers again, even if scored before.")] = False,
    fail_on: diff_limits.FailOn = "",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verification as JSON.")] = False,
) -> None:
    """Check whether an endpoint serves a reference's weights, using answers of known origin."""
    # Here, as it brings pydantic, which no help waits for.
    from evalboard.contract.verification import Verification

    known = [("--control", control), *(("--numerics", each) for each in numerics)]
    known += [("--planted", planted)] if planted else []
    run_ids = [parse_id(text, option) for option, text in [("RUN", run), *known]]
    if len(set(run_ids)) < len(run_ids):
        raise typer.BadParameter("Each of them is a run of its own.", param_hint="RUN")
    limits = diff_limits.parse_limits(fail_on, ("shift", *LIMITS))
    with connect() as client:
        profile = profile or client.run(control).value.profile
        forced_ids = [_score(client, each, on, profile, is_new=again) for each in run_ids]
        options = [word for option, text in known for word in (option, text)]
        come_back = shlex.join(["evalboard", "verify", run, "--on", on, *options, "--profile", profile])
        scorings = [_follow(client, forced_id, come_back, give_up_after) for forced_id in forced_ids]
        own, control_id, *others = forced_ids
        first, *more = others[: len(numerics)]
        sent = {"control": control_id, "numerics": first, "more_numerics": ",".join(more)}
        sent |= {"planted": others[-1]} if planted else {}
        sent = {name: text for name, text in sent.items() if text}
        answer = client.get(Verification, f"/forced/{own}/verification/", sent)
    decide(is_verdict=True)
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else _render(answer.value))
    judge = _judge(answer.value, scorings[0])
    raise typer.Exit(CODES[answer.value.state] or diff_limits.conclude(*diff_limits.find_reached(limits, judge)))


def _judge(verification: "Verification", scoring: "ForcedScoring") -> diff_limits.Judge:
    """Return the judge of a verification. scoring: that of the endpoint's answers."""
    judge_scoring = judge_forced(scoring)

    def judge(name: str, value: str) -> tuple[str, str]:
        if name != "shift":
            return judge_scoring(name, value)
        if verification.state == "too_few_tokens":
            return "", "there are too few tokens"
        return ("" if verification.state == "same_stack" else verification.sentence.rstrip(".")), ""

    return judge


def _score(client: "RestClient", run: str, on: str, profile: str, *, is_new: bool) -> str:
    """Return the newest complete forced scoring of a run; request one if there is none."""
    if not is_new:
        cost, name = read_cost(client, run, {}), _newest(client, profile)
        for answer in list_forced(client, run):
            if _is_of_all(answer.value, cost) and (answer.value.endpoint, answer.value.profile) == (on, name):
                return answer.value.id
    return create_forced(client, run, {"endpoint": on, "profile": profile}).value.id


def _newest(client: "RestClient", profile: str) -> str:
    """Return what the newest version of a profile is called, as a scoring has it."""
    # Here, as it brings pydantic, which no help waits for.
    from evalboard.contract.parts import name_version

    versions = {each.value.slug: each.value.version for each in client.profiles()}
    return name_version(profile, versions.get(profile, 1))


def _is_of_all(scoring: "ForcedScoring", cost: "ForcedCost") -> bool:
    """Tell whether a scoring covers every present answer of the run, and has not failed."""
    is_whole = scoring.n_cases is None and scoring.model is None
    same_size = (scoring.n_answers, scoring.n_tokens) == (cost.n_answers, cost.n_tokens)
    return is_whole and same_size and scoring.status != "failed"


def _follow(client: "RestClient", forced_id: str, come_back: str, give_up_after: float) -> "ForcedScoring":
    """Wait for a scoring and return it; exits where nothing of it could be scored."""
    sentence = "The forced scorings go on."
    scoring = follow_scoring(
        client, forced_id, give_up_after=give_up_after, sentence=sentence, come_back=come_back
    ).value
    if scoring.status != "finished":
        decide()
        typer.echo(f"Forced scoring {forced_id}: {scoring.status}. {' '.join((scoring.error or '').split())}")
        raise typer.Exit(FAILED)
    return scoring


def _render(verification: "Verification") -> str:
    numbers = [f"  {name}: {value}" for name, value in describe_numbers(verification)]
    warnings = [f"  warning: {warning.text}" for warning in verification.warnings]
    return "\n".join([verification.sentence, *numbers, *warnings, f"  see: {verification.url}"])
