"""What to do next on a release, as buttons: the first that helps is the primary one, and there is only one."""

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.urls import reverse

from frontend.templatetags.numbers import roughly
from runs.access import RUN, SIGN
from runs.selectors.release import GateReport, ReleaseReport, SettlePlan

TO_SIGN = "#sign"


@dataclass(frozen=True, slots=True)
class Step:
    """A button; `cost` stands beside its words."""

    label: str
    url: str
    cost: str = ""
    is_primary: bool = False


def steps(report: ReleaseReport, scopes: frozenset[str], *, newer_baseline: int | None = None) -> tuple[Step, ...]:
    """What this person may do about it, in the order in which it helps; nothing twice.

    newer_baseline: a run that was made the baseline since; the candidate may be judged against it.
    """
    may_run, may_sign = RUN in scopes, SIGN in scopes
    found: list[Step] = []
    if may_run and newer_baseline is not None and report.row.verdict == "not_comparable":
        found.append(Step(f"Judge against run {newer_baseline}", _again(report, is_current=True), "the new baseline"))
    for line in () if report.settling else report.next_steps:
        gate = report.gates[report.headline_gate if line.gate is None else line.gate]
        step = _step(line.code, report, gate, may_run=may_run, may_sign=may_sign)
        if step is not None and all(step.url != other.url for other in found):
            found.append(step)
    if may_run and _may_be_the_stack(report):
        found.append(Step("Judge the stack instead", _again(report, treatment="stack")))
    if may_sign and all(step.url != TO_SIGN for step in found):
        found.append(Step("Sign off…", TO_SIGN))
    is_signed = report.row.outcome in ("approved", "rejected", "waived")
    may_act = bool({RUN, SIGN} & scopes)
    leads = bool(found) and may_act and not report.settling and not (is_signed and found[0].url == TO_SIGN)
    return (replace(found[0], is_primary=True), *found[1:]) if leads else tuple(found)


def _step(code: str, report: ReleaseReport, gate: GateReport, *, may_run: bool, may_sign: bool) -> Step | None:
    if code in ("sign", "decide_by_hand"):
        return Step("Sign off…", TO_SIGN) if may_sign else None
    if code == "larger_suite":
        return Step(f"Open suite {gate.suite}", reverse("suite", args=[gate.suite]))
    if not may_run:
        return None
    if code in ("settle", "add_repeats"):
        return _of_plan(report.row.id, report.settle) if report.settle else None
    if code == "import_again":
        return Step("Import new logs", reverse("imports"))
    if code == "rebaseline":
        return Step("Run the baseline again", _rerun(report, gate, "baseline"))
    if code == "draw_again":
        return Step("Run the baseline again", _rerun(report, gate, "baseline"))
    if code == "share_seeds":
        return Step("Run the candidate again", _rerun(report, gate, "candidate"), "with the baseline’s seed")
    if code == "rerun_missing":
        side = "baseline" if gate.baseline.status == "incomplete" else "candidate"
        return Step(f"Run the {side} again", _rerun(report, gate, side))
    if code in ("run_uncached", "pin_backend"):
        return Step("Import the new log", reverse("imports"))
    if code == "pin_batch" and gate.verdict == "not_comparable":
        side = "baseline" if gate.baseline.n_buckets > 1 else "candidate"
        return Step(f"Run the {side} again", _rerun(report, gate, side))
    if code == "pin_batch" and not gate.candidate.profile.startswith("pinned"):
        asked = {"suite": gate.suite, "endpoint": gate.candidate.endpoint, "profile": "pinned"}
        return Step("Run the candidate pinned", f"{reverse('run_new')}?{urlencode(asked)}")
    if code == "use_paired":
        return Step("Judge under paired", _again(report, policy="paired"))
    return None


def _of_plan(release_id: int, plan: SettlePlan) -> Step:
    """The button that leads to the settling that somebody has to confirm."""
    n = max(n_more for _, n_more in plan.runs)
    cost = "" if plan.minutes is None else f"≈ {roughly(60 * plan.minutes)}"
    return Step(f"Run {n} more repeat{'' if n == 1 else 's'}", reverse("release_settle", args=[release_id]), cost)


def _may_be_the_stack(report: ReleaseReport) -> bool:
    """One model on two stacks: an engine upgrade or a quantisation may be what is asked about."""
    gate = report.gates[report.headline_gate]
    is_moved = any(line.code == "rebaseline" for line in gate.reasons)
    is_same = gate.baseline.model_name == gate.candidate.model_name
    return report.row.treatment == "model" and is_moved and is_same


def _again(report: ReleaseReport, *, is_current: bool = False, **changes: str) -> str:
    """The form with the same gates filled in, against the same runs or the current baselines."""
    asked = [("candidate", str(gate.candidate.run_id)) for gate in report.gates]
    if not is_current:
        asked += [("baseline", str(gate.baseline.run_id)) for gate in report.gates]
    return f"{reverse('release_new')}?{urlencode([*asked, *changes.items()])}"


def _rerun(report: ReleaseReport, gate: GateReport, side: str) -> str:
    return f"{reverse('release_rerun', args=[report.row.id])}?{urlencode({'gate': gate.position, 'side': side})}"
