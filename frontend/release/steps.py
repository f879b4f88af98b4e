"""A release's next steps as buttons: the first useful one is primary, and the only primary one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.urls import reverse

from evalboard.contract.release import ALL_CASES, Gate, GateSide, NextStep, Release, SettlePlan
from evalboard.wording.numbers import counted
from frontend.release.words import describe_outcome
from frontend.templatetags.numbers import roughly
from runs.access import ADMIN, RUN, SIGN
from runs.acts import ActOffer
from runs.release import SETTLING_STEPS
from runs.tour import LABELS as SAMPLE

TO_SIGN = "#sign"
PINNED = "pinned"  # the profile that comes with Evalboard
SIDES = ("baseline", "candidate")
TO_AN_ENDPOINT = {"pin_endpoint": "pinned to one backend", "call_uncached": "without its cache"}  # and its label
RERUN = ("draw_again", "pin_batch", "rebaseline", "run_in_turn")  # steps that run sides again
TO_AN_IMPORT = {
    "import_again": "Import new logs",
    "run_uncached": "Import the new log",
    "pin_backend": "Import the new log",
    "log_more": "Import a fuller log",
}
N_SHOWN = 2  # buttons, so that the first screen has one thing to do


@dataclass(frozen=True, slots=True)
class Step:
    """A button. `cost` is shown next to its label. is_for_all: readers may follow it.

    act: the act that its page does, and to which runs. refused: why it cannot be done now, "" where it can.
    """

    label: str
    url: str
    cost: str = ""
    is_primary: bool = False
    is_for_all: bool = False
    act: str = ""
    runs: tuple[int, ...] = ()
    refused: str = ""


CanDo = Callable[[str, Sequence[int]], ActOffer]  # whether this person may do an act to each of these runs


def possible_next(report: Release) -> tuple[NextStep, ...]:
    """Return the next steps; the tour's sample has no step that needs new logs."""
    if not is_sample(report):
        return report.next
    return tuple(line for line in report.next if line.code != "import_again")


def is_sample(report: Release) -> bool:
    """Tell whether a release is of the tour's sample, whose runs come with Evalboard."""
    return report.labels.items() >= SAMPLE.items()


def steps(
    report: Release,
    scopes: frozenset[str],
    *,
    newer_baseline: int | None = None,
    sampling: str = "",
    can: CanDo = lambda act, _: ActOffer(act),
) -> tuple[Step, ...]:
    """Return what this person may do about it, in the order in which it helps; nothing twice.

    A no-ship is looked at first: the cases that broke lead. What cannot be done now comes last.

    newer_baseline: a run that was made the baseline since; the candidate may be judged against it. sampling: a profile
    with a temperature above 0, "" where there is none.
    """
    may_run, may_sign = RUN in scopes, SIGN in scopes
    lines: list[Step] = []
    if report.verdict == "no_ship" and report.headline.changed.n_broken:
        lines.append(_broken_step(report.headline))
    if may_run and newer_baseline is not None and report.verdict == "not_comparable":
        lines.append(Step(f"Judge against run {newer_baseline}", _again(report, is_current=True), "the new baseline"))
    for line in () if report.settling else possible_next(report):
        gate = report.gates[report.headline_gate if line.gate is None else line.gate]
        for step in _buttons(line, report, gate, scopes, sampling):
            offer = can(step.act, step.runs) if step.act else ActOffer("")
            if all(step.url != other.url for other in lines) and (offer or offer.is_shown):
                lines.append(replace(step, refused=step.refused or offer.reason))
    if may_run and _may_be_the_stack(report):
        lines.append(Step("Judge the stack instead", _again(report, treatment="stack")))
    if may_run and _may_be_the_service(report):
        lines.append(Step("Judge the service instead", _again(report, treatment="service")))
    if may_sign and all(step.url != TO_SIGN for step in lines):
        lines.append(Step("Sign off…", TO_SIGN))
    lines.sort(key=lambda step: bool(step.refused))
    is_signed = report.outcome in ("approved", "rejected", "waived")
    may_act = bool({RUN, SIGN} & scopes)
    may_act = may_act or (bool(lines) and lines[0].is_for_all)
    leads = (
        bool(lines)
        and not lines[0].refused
        and may_act
        and not report.settling
        and not (is_signed and lines[0].url == TO_SIGN)
    )
    return (replace(lines[0], is_primary=True), *lines[1:]) if leads else tuple(lines)


def split_steps(lines: tuple[Step, ...]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the buttons shown on the page, and those in the menu, without those that cannot be done now.

    Signing has a bar of its own.
    """
    others = tuple(step for step in lines if step.url != TO_SIGN and not step.refused)
    return others[:N_SHOWN], others[N_SHOWN:]


def _broken_step(gate: Gate) -> Step:
    n = gate.changed.n_broken
    label = "See the case that broke" if n == 1 else f"See the {n:,} cases that broke"
    return Step(label, describe_outcome(gate, "broken"), is_for_all=True)


def _buttons(line: NextStep, report: Release, gate: Gate, scopes: frozenset[str], sampling: str) -> list[Step]:
    """Return the buttons of a step, which act on the sides that its sentence names."""
    may_run, may_admin = RUN in scopes, ADMIN in scopes
    sides = {name: (side.run_id, side.profile) for name, side, _ in gate.sides}
    lacks = line.code == "share_seeds" and gate.baseline.draws.seed == gate.candidate.draws.seed
    if line.code == "rerun_missing" or lacks:
        return [_complete_step(sides[name][0]) for name in line.sides if may_run]
    if line.code == "second_run":
        return [_second_step(gate, name, side) for name, side, _ in gate.sides if may_run and name in line.sides]
    if line.code == "log_more" and not any(side.is_log for _, side, _ in gate.sides):
        return [_in_turn_step(report, gate)] if may_run else []
    if line.code in TO_AN_ENDPOINT:
        named = (side for name, side, _ in gate.sides if name in (line.sides or SIDES) and not side.is_log)
        return [_endpoint_step(line.code, each) for each in dict.fromkeys(s.endpoint for s in named) if may_admin]
    if line.code == "judge_again":
        return [_judge_step(name, sides[name][0]) for name in line.sides if may_run]
    if line.code in ("draw", "shuffle") and may_run and (sampling or line.code == "shuffle"):
        both = line.model_copy(update={"sides": SIDES})
        return [step for step in [rerun_step(report.id, both, sides, sampling=sampling)] if step is not None]
    if line.code == "draw" and may_admin:
        query = urlencode({"from": gate.candidate.profile})
        return [Step("Add a profile with a temperature", f"{reverse('profile_new')}?{query}")]
    if line.code in (*RERUN, "share_seeds"):
        step = rerun_step(report.id, line, sides) if may_run else None
    else:
        step = _step(line.code, report, gate, may_run=may_run, may_sign=SIGN in scopes)
    return [] if step is None else [step]


def _in_turn_step(report: Release, gate: Gate) -> Step:
    """Return the form of two runs in turn, or that of a judgement which accepts them as served alike."""
    if gate.is_in_turn:
        return Step("Judge under paired", _again(report, policy="paired", treatment="service"))
    endpoints = {"endpoint": gate.candidate.endpoint, "in_turn_with": gate.baseline.endpoint}
    query = {"suite": gate.suite, **endpoints, "profile": gate.candidate.profile}
    return Step("Run both in turn", f"{reverse('run_new')}?{urlencode(query)}")


def _endpoint_step(code: str, endpoint: str) -> Step:
    query = urlencode({"kind": "openai", "from": endpoint})
    return Step(f"Add {endpoint} {TO_AN_ENDPOINT[code]}", f"{reverse('endpoint_new')}?{query}")


def _complete_step(run: int) -> Step:
    return Step(f"Complete run {run}", reverse("run", args=[run]), act="complete", runs=(run,))


def _judge_step(name: str, run: int) -> Step:
    return Step(f"Judge the {name} again", f"{reverse('run', args=[run])}#judge", act="rescore", runs=(run,))


def _second_step(gate: Gate, name: str, side: GateSide) -> Step:
    if side.is_log:
        return Step(f"Import a second log of the {name}", f"{reverse('imports')}?second_of={side.run}")
    query = {"suite": gate.suite, "endpoint": side.endpoint, "profile": side.profile, "repeats": "1"}
    return Step(f"Run the {name} a second time", f"{reverse('run_new')}?{urlencode(query)}")


def rerun_step(
    release: str, line: NextStep, sides: Mapping[str, tuple[int, str]], *, sampling: str = ""
) -> Step | None:
    """Return the button of a step that runs sides of a gate again; None where that does not help.

    sides: the run and the profile of each. sampling: the profile of the step `draw`.
    """
    if line.block == "scorer_changed":
        run = sides["baseline"][0]
        return Step("Score the baseline again", f"{reverse('run', args=[run])}#scores", act="rescore", runs=(run,))
    is_other = line.block == "batch_class"
    profile = sides["baseline"][1] if is_other else PINNED if line.code == "pin_batch" and line.block is None else ""
    profile = sampling if line.code == "draw" else profile
    if not line.sides or (is_other and profile == sides["candidate"][1]):
        return None
    whom, again = ("both sides", "alternating") if len(line.sides) > 1 else (f"the {line.sides[0]}", "again")
    query = {"gate": line.gate or 0, "side": line.sides, **({"profile": profile} if profile else {})}
    query |= {"shuffled": "1"} if line.code == "shuffle" else {}
    url = f"{reverse('release_rerun', args=[release])}?{urlencode(query, doseq=True)}"
    cost = "with the baseline’s seed" if line.code == "share_seeds" else ""
    named = tuple(sides[name][0] for name in line.sides)
    again = f"under {profile}" if profile else "in shuffled order" if line.code == "shuffle" else again
    return Step(f"Run {whom} {again}", url, cost, act="again", runs=named)


def _step(code: str, report: Release, gate: Gate, *, may_run: bool, may_sign: bool) -> Step | None:
    if code in ("sign", "decide_by_hand"):
        return Step("Sign off…", TO_SIGN) if may_sign else None
    if code == "judge_more":
        return Step("Change the judge", reverse("suite_scorers", args=[gate.suite]))
    if code == "larger_suite":
        return Step("Use a larger suite", reverse("suite", args=[gate.suite]), "4 × the cases")
    if code == "find_build":
        runs = [gate.baseline.run_id, gate.candidate.run_id]
        return Step("Compare the two runs", reverse("compare", args=runs), is_for_all=True)
    if not may_run:
        return None
    if code in SETTLING_STEPS:
        return settling_step(report.id, report.settle) if report.settle else None
    if code == "settle_targeted":
        return settling_step(report.id, report.settle_targeted) if report.settle_targeted else None
    if code == "await_scores":
        return Step("See what scoring waits for", f"{reverse('run', args=[gate.baseline.run])}#scores")
    if code in TO_AN_IMPORT:
        return Step(TO_AN_IMPORT[code], reverse("imports"))
    if code == "nothing_caches":
        return Step("Say that nothing caches there", _again(report, nothing_caches="on"))
    if code == "certify":
        return _certify_step(gate)
    if code == "use_paired":
        return Step("Judge under paired", _again(report, policy="paired"))
    if code == "use_mean":
        return Step("Choose another policy", _again(report))
    return None


def _certify_step(gate: Gate) -> Step:
    """Return the button that leads to the probe, with the endpoint chosen where both sides have one."""
    query = {"kind": "determinism"}
    if gate.baseline.endpoint == gate.candidate.endpoint:
        query = {"endpoint": gate.candidate.endpoint, **query}
    return Step("Probe determinism", f"{reverse('probes')}?{urlencode(query)}#new")


def settling_step(release_id: str, plan: SettlePlan) -> Step:
    """Return the button to the confirmation of further repeats."""
    repeats = counted(max(each.n_more for each in plan.runs), "more repeat")
    label = f"Run {repeats}" if plan.chosen == ALL_CASES else f"Run {repeats} of the noisiest cases"
    cost = "" if plan.minutes is None else f"≈ {roughly(60 * plan.minutes)}"
    return Step(label, settle_address(release_id, plan.chosen), cost, refused=plan.refused or "")


def settle_address(release_id: str | int, cases: str) -> str:
    """Return where the plan of these cases is confirmed."""
    address = reverse("release_settle", args=[release_id])
    return address if cases == ALL_CASES else f"{address}?{urlencode({'cases': cases})}"


def _may_be_the_stack(report: Release) -> bool:
    """Tell whether one model ran on two stacks, which suggests judging the stack."""
    gate = report.headline
    is_moved = bool({line.code for line in (*gate.reasons, *report.next)} & {"rebaseline", "judge_stack"})
    is_same = gate.baseline.model == gate.candidate.model
    return report.treatment == "model" and is_moved and is_same


def _may_be_the_service(report: Release) -> bool:
    """Tell whether model and stack both differ, which suggests judging the service."""
    codes = {line.code for line in (*report.headline.reasons, *report.next)}
    return report.treatment != "service" and bool(codes & {"stack_changed", "model_changed", "judge_service"})


def _again(report: Release, *, is_current: bool = False, **changes: str) -> str:
    """Return the form with the same gates filled in, against the same runs or the current baselines."""
    query = [("candidate", gate.candidate.run) for gate in report.gates]
    if not is_current:
        query += [("baseline", gate.baseline.run) for gate in report.gates]
    return f"{reverse('release_new')}?{urlencode([*query, *changes.items()])}"
