"""Bisects: each arm is a step, both sides as they were first; what these show decides whether more are decoded."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from evalboard.contract.lab_kinds import StepAnswer
from evalboard.core.errors import EvalboardError
from evalboard.core.lab import StepFigures, judge_steps, plan_more_steps
from runs.lab.steps import measure_step, order_step, planner_of, settable_fields, store_steps
from runs.models import ExperimentArm, ExperimentRecord, RepeatRecord, RunRecord

Status = ExperimentArm.Status
Arms = Sequence[ExperimentArm]
ENDED = (Status.FINISHED, Status.CUT, Status.FAILED)


class BisectKind:
    """A kind of experiment (`arms.ExperimentKind`)."""

    def passes(self, run: RunRecord) -> Sequence[RepeatRecord]:
        """Return the one repeat, where it has ended with answers."""
        return list(run.repeats.filter(status__in=(RunRecord.Status.FINISHED, RunRecord.Status.INCOMPLETE)))

    def measure(self, experiment: ExperimentRecord, arms: Arms, run: RunRecord) -> dict[str, Any] | None:
        return asdict(measure_step(experiment, run))

    def prepare(self, experiment: ExperimentRecord, arms: Arms) -> None:
        """Every step takes a run."""

    def order(self, experiment: ExperimentRecord, arm: ExperimentArm) -> Mapping[str, Any]:
        return order_step(experiment, arm)

    def failure(self, arms: Arms) -> str:
        failed = next((arm for arm in arms[:2] if arm.status in (Status.FAILED, Status.MISSING)), None)
        if failed is None:
            return ""
        side = "candidate" if failed.turned else "baseline"
        return f"The {side} as it was could not be decoded, and every step is held against it. {failed.problem}"

    def is_settled(self, experiment: ExperimentRecord, arms: Arms) -> bool:
        """Where neither side gives its own answers again, no step between the two can show anything."""
        return judge_steps(settable_fields(experiment), answers(arms)).reproduced == ()

    def add_arms(self, experiment: ExperimentRecord, arms: Arms) -> bool:
        if any(arm.status == Status.CUT and arm.figures is None for arm in arms) or self.failure(arms):
            return False
        steps = plan_more_steps(settable_fields(experiment), answers(arms))
        if not steps:
            return False
        try:
            planner = planner_of(experiment)
        except EvalboardError:
            return False
        befores = [frozenset(arms[-1].turned or ()), *steps]
        costs = [planner.estimate(step, before) for before, step in zip(befores, steps, strict=False)]
        store_steps(experiment, planner, steps, costs)
        return True


def answers(arms: Arms) -> dict[frozenset[str], tuple[StepAnswer, ...]]:
    """Return what each step that has ended gave, nothing where it failed, as `core.lab` judges them."""
    return {
        frozenset(arm.turned or ()): StepFigures.from_json(arm.figures).shown if arm.figures is not None else ()
        for arm in arms
        if arm.status in ENDED
    }
