"""`evalboard release`: judge a candidate against a baseline, and exit with the verdict."""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli.arguments import collect_labels, parse_id
from evalboard.cli.errors import FAILED, INCONCLUSIVE, NO_SHIP, NOT_COMPARABLE, CommandError
from evalboard.cli.output import decide
from evalboard.cli.reports import CommentFile, JunitFile, SummaryFile, parse_report_files, write_release_reports
from evalboard.cli.wait import follow_run
from evalboard.client.access import connect
from evalboard.client.waiting import GIVE_UP_SECONDS
from evalboard.contract.treatments import BY_INPUT, MODEL_TREATMENT, PAIRINGS, TREATMENTS
from evalboard.wording.numbers import counted, fixed, percent
from evalboard.wording.results import NO_VERDICT, describe_lean, describe_verdict, render_change

if TYPE_CHECKING:
    from evalboard.client.rest import RestClient
    from evalboard.contract.release import Gate, Release, SettlePlan


CODES = {"ship": 0, "no_ship": NO_SHIP, "inconclusive": INCONCLUSIVE, "not_comparable": NOT_COMPARABLE}
CURRENT = "current"
LabelTexts = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="A label, such as commit=1f3a; can be repeated.")
]
PairedBy = Annotated[
    str,
    typer.Option(metavar="input|id", help="If the prompt is judged: pair cases by their input or by their id."),
]
WaitAtMost = Annotated[float, typer.Option(min=0, help="With --wait: give up after so many seconds without an answer.")]
NothingCaches = Annotated[
    bool,
    typer.Option(
        "--nothing-caches", help="Declare that equal repeats were computed, not cached; recorded in the release."
    ),
]
WITHOUT_SCORE = ("failed", "cancelled")  # an incomplete run is for the verdict to say


@dataclass(frozen=True, slots=True)
class GateRequest:
    """A suite to judge by a candidate's run and a baseline's, or "current"; suite "": the candidate's own."""

    suite: str
    candidate: str
    baseline: str
    tier: str


def release(
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The id of the run to judge.")] = "",
    baseline: Annotated[
        str, typer.Option(metavar="current|RUN", help="A run's id, or the suite's current baseline.")
    ] = CURRENT,
    suite: Annotated[str, typer.Option(help="The suite's slug; default: the candidate's.")] = "",
    gate: Annotated[
        list[str] | None,
        typer.Option(metavar="SUITE:CANDIDATE[:BASELINE]", help="Instead of CANDIDATE; repeat for each suite."),
    ] = None,
    advisory: Annotated[
        list[str] | None,
        typer.Option(metavar="SUITE:CANDIDATE[:BASELINE]", help="A suite that is reported but does not decide."),
    ] = None,
    policy: Annotated[
        str, typer.Option(help="The policy's slug; default: the suite's own, else strict; paired if sampled.")
    ] = "",
    treatment: Annotated[
        str, typer.Option(metavar="|".join(TREATMENTS), help="What is judged: the part that differs between the sides.")
    ] = MODEL_TREATMENT,
    pair_by: PairedBy = BY_INPUT,
    nothing_caches: NothingCaches = False,
    label: LabelTexts = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the judged runs have ended.")] = False,
    show: Annotated[str, typer.Option(metavar="ID", help="Show an existing release.")] = "",
    give_up_after: WaitAtMost = GIVE_UP_SECONDS,
    junit: JunitFile = "",
    summary: SummaryFile = "",
    comment: CommentFile = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the release as JSON.")] = False,
) -> None:
    """Judge a candidate. Exit code 0: ship; 1: no-ship; 2: inconclusive; 3: not comparable."""
    gates = [_parse_gate(text, "critical", "--gate") for text in gate or []]
    gates += [_parse_gate(text, "advisory", "--advisory") for text in advisory or []]
    check_treatment(treatment)
    if show:
        _refuse_beside("--show", is_given=bool(candidate or gates))
    elif not gates:
        gates = [GateRequest(suite, parse_id(candidate, "CANDIDATE"), parse_baseline(baseline), "critical")]
    else:
        _refuse_beside("--gate", is_given=bool(candidate or suite or baseline != CURRENT))
    labels = collect_labels(label or [])
    body = build_body(policy=policy, treatment=treatment, labelled=labels, nothing_caches=nothing_caches)
    body |= {"pair_by": check_pairing(pair_by)} if pair_by != BY_INPUT else {}
    files = parse_report_files(junit=junit, summary=summary, comment=comment)
    with connect() as client:
        if show:
            answer = client.release(parse_id(show, "--show"))
        else:
            if wait:
                _wait_for(client, gates, give_up_after=give_up_after)
            answer = client.create_release({**body, "gates": [_build_gate(client, each) for each in gates]})
        decide(is_verdict=True)
        if as_json:
            typer.echo(json.dumps(answer.json, ensure_ascii=False))
        else:
            print_release(answer.value)
        raise typer.Exit(write_release_reports(files, client, answer.value, code=choose_exit_code(answer.value)))


def choose_exit_code(release: "Release") -> int:
    return CODES.get(release.verdict or "", FAILED)


def build_body(*, policy: str, treatment: str, labelled: dict[str, str], nothing_caches: bool) -> dict[str, Any]:
    """Return the fields of a release request other than its gates."""
    body: dict[str, Any] = {"treatment": treatment, "labels": labelled} | ({"policy": policy} if policy else {})
    return body | ({"nothing_caches": True} if nothing_caches else {})


def check_treatment(treatment: str, *others: str) -> None:
    known = (*others, *TREATMENTS)
    if treatment not in known:
        raise typer.BadParameter(f"Must be one of: {', '.join(known)}.", param_hint="--treatment")


def check_pairing(pair_by: str) -> str:
    if pair_by not in PAIRINGS:
        raise typer.BadParameter(f"Must be one of: {', '.join(PAIRINGS)}.", param_hint="--pair-by")
    return pair_by


def _wait_for(client: "RestClient", gates: list[GateRequest], *, give_up_after: float) -> None:
    """Follow each run to its end. Raises CommandError where one ended without a score to judge."""
    again = shlex.join(["evalboard", *sys.argv[1:]])
    for run_id in dict.fromkeys(run for gate in gates for run in (gate.candidate, gate.baseline) if run != CURRENT):
        run = follow_run(client, run_id, sentence="The runs go on.", come_back=again, give_up_after=give_up_after).value
        if run.status in WITHOUT_SCORE:
            raise CommandError(f"Run {run_id} is {run.status}: there is nothing to judge. {run.url}")


def _build_gate(client: "RestClient", gate: GateRequest) -> dict[str, str]:
    return {**asdict(gate), "suite": gate.suite or client.run(gate.candidate).value.suite.slug}


def print_release(release: "Release", *, lean: str | None = None) -> None:
    """Print the verdict, or the lean if given, the summary, the serving stacks, and the next steps."""
    word = describe_verdict(release.verdict) if lean is None else describe_lean(lean)
    typer.echo(f"Release {release.id}: {word}. {release.url}\n{release.summary}")
    for gate in release.gates:
        if costs := [side.cost.text for side in (gate.baseline, gate.candidate) if side.cost]:
            typer.echo(f"Cost of the runs of {gate.suite}: {' and '.join(costs)}.")
    if lean is not None:
        typer.echo(NO_VERDICT)
    for line in _render_table(release.gates) if len(release.gates) > 1 else []:
        typer.echo(line)
    for cause in release.other_causes:
        typer.echo(f"{cause.code}: {cause.state}. {cause.text}.")
    for text in release.computations:
        typer.echo(text)
    for step in release.next:
        typer.echo(f"next: {step.text}")
    for warning in release.warnings:
        typer.echo(f"{warning.severity}: {warning.text}", err=True)


def _render_table(gates: Sequence["Gate"]) -> list[str]:
    """Return a line for each gate: suite, tier, verdict, and the change with its interval."""
    rows = [(gate.suite, gate.tier, describe_verdict(gate.verdict), render_change(gate)) for gate in gates]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  " + "  ".join([*(f"{row[at]:<{widths[at]}}" for at in range(3)), row[3]]).rstrip() for row in rows]


def _parse_gate(text: str, tier: str, option: str) -> GateRequest:
    parts = text.split(":")
    if len(parts) not in (2, 3) or not parts[0]:
        raise typer.BadParameter(f"{text} is not SUITE:CANDIDATE or SUITE:CANDIDATE:BASELINE.", param_hint=option)
    suite, candidate, baseline = [*parts, CURRENT][:3]
    return GateRequest(suite, parse_id(candidate, option), parse_baseline(baseline, option), tier)


def parse_baseline(text: str, option: str = "--baseline") -> str:
    """Return a run's id, or "current". Raises typer.BadParameter."""
    return text if text == CURRENT else parse_id(text, option)


def _refuse_beside(option: str, *, is_given: bool) -> None:
    if is_given:
        raise typer.BadParameter("It already names what is judged; leave out the rest.", param_hint=option)


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


def rerun(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The id of a release.")],
    side: Annotated[
        list[str] | None,
        typer.Option(metavar="SIDE[:ENDPOINT]", help="baseline or candidate; named twice, both run in turn."),
    ] = None,
    gate: Annotated[
        int | None, typer.Option(min=0, help="Which suite of several, from 0; default: the headline.")
    ] = None,
    profile: Annotated[str, typer.Option(help="Another profile; default: the side's own.")] = "",
    reference: Annotated[bool, typer.Option("--reference", help="Run only the suite's reference set.")] = False,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Shuffle the cases in each repeat.")] = False,
    key: Annotated[str, typer.Option(help="Sent again with the same key, the request starts no second run.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the runs as JSON.")] = False,
) -> None:
    """Run sides of a release again, with today's suite, profile and stack."""
    parse_id(release, "RELEASE")
    body: dict[str, Any] = {"profile": profile} if profile else {}
    body |= ({} if gate is None else {"gate": gate}) | ({"is_reference": True} if reference else {})
    body |= {"is_shuffled": True} if shuffle else {}
    for text in side or []:
        name, _, endpoint = text.partition(":")
        if name not in ("baseline", "candidate"):
            raise typer.BadParameter(f"{text} is not baseline or candidate.", param_hint="--side")
        body[name] = {"endpoint": endpoint} if endpoint else {}
    with connect() as client:
        answer = client.rerun(release, body, key=key)
    made = [run for run in (answer.value.baseline, answer.value.candidate) if run is not None]
    words = "\n".join(f"Run {run.id} is {run.status}. {run.url}" for run in made)
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else words)
