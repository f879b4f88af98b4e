"""Bisects: each condition is a step, both unchanged sides first; results decide about more steps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from evalboard.contract.lab_kinds import StepAnswer
from evalboard.core.errors import EvalboardError
from evalboard.core.lab import (
    UNSTEADY_CASES,
    Bisected,
    Decodings,
    StepFigures,
    find_chance,
    judge_steps,
    plan_more_steps,
    take_common,
)
from runs.lab.steps import (
    count_decodings,
    measure_step,
    order_step,
    planner_of,
    price_steps,
    settable_fields,
    store_steps,
)
from runs.models import ExperimentArm, ExperimentRecord, RepeatRecord, RunRecord

Status = ExperimentArm.Status
Arms = Sequence[ExperimentArm]
ENDED = (Status.FINISHED, Status.CUT, Status.FAILED)


class BisectKind:
    """The kind `bisect` of experiments (`arms.ExperimentKind`)."""

    def passes(self, run: RunRecord) -> Sequence[RepeatRecord]:
        """Return the one repeat, where it has ended with answers."""
        return list(run.repeats.filter(status__in=(RunRecord.Status.FINISHED, RunRecord.Status.INCOMPLETE)))

    def measure(self, experiment: ExperimentRecord, arms: Arms, run: RunRecord) -> dict[str, Any] | None:
        return asdict(measure_step(experiment, run))

    def prepare(self, experiment: ExperimentRecord, arms: Arms) -> None:
        """Every step takes a run."""

    def order(self, experiment: ExperimentRecord, arm: ExperimentArm) -> Mapping[str, Any]:
        is_end = not arm.turned or set(arm.turned) == set(settable_fields(experiment))
        chance = () if is_end else find_chance(settable_fields(experiment), read_decodings(experiment.arms.all()))
        return order_step(experiment, arm, left_out=chance)

    def failure(self, arms: Arms) -> str:
        n_turned = max((len(arm.turned or ()) for arm in arms), default=0)
        ends = ([arm for arm in arms if len(arm.turned or ()) == n] for n in (0, n_turned))
        lost = (end for end in ends if end and all(arm.status in (Status.FAILED, Status.MISSING) for arm in end))
        failed = next((end[0] for end in lost), None)
        if failed is None:
            return ""
        side = "candidate" if failed.turned else "baseline"
        return f"The unchanged {side} could not be decoded, so no step can be compared with it. {failed.problem}"

    def is_settled(self, experiment: ExperimentRecord, arms: Arms) -> bool:
        """Return whether neither side reproduced its answers, so that no step can show anything."""
        return judge(experiment, arms).reproduced == ()

    def add_arms(self, experiment: ExperimentRecord, arms: Arms) -> bool:
        if any(arm.status == Status.CUT and arm.figures is None for arm in arms) or self.failure(arms):
            return False
        common = take_common(read_decodings(arms))
        steps = plan_more_steps(settable_fields(experiment), common, min_cases=_min_cases(experiment))
        if not steps:
            return False
        try:
            planner = planner_of(experiment)
        except EvalboardError:
            return False
        decoded = [step for step in steps for _ in range(count_decodings(experiment.plan))]
        store_steps(experiment, planner, decoded, price_steps(planner, decoded, frozenset(arms[-1].turned or ())))
        return True


def judge(experiment: ExperimentRecord, arms: Arms) -> Bisected:
    """Return the result of the steps that have ended."""
    common = take_common(read_decodings(arms))
    return judge_steps(settable_fields(experiment), common, min_cases=_min_cases(experiment))


def read_decodings(arms: Iterable[ExperimentArm]) -> Decodings:
    """Return what each decoding of the steps that have ended gave, none where it failed."""
    decodings: dict[frozenset[str], list[Sequence[StepAnswer]]] = {}
    for arm in arms:
        if arm.status in ENDED:
            given = decodings.setdefault(frozenset(arm.turned or ()), [])
            given += [] if arm.figures is None else [StepFigures.from_json(arm.figures).shown]
    return decodings


def _min_cases(experiment: ExperimentRecord) -> int:
    return UNSTEADY_CASES if count_decodings(experiment.plan) > 1 else 1
