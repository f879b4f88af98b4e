"""Advance experiments: the end of a condition's run starts the next one; a sweep retries what failed.

All state is in rows. A crash leaves them as they were, and the next sweep continues; concurrent sweeps act once, as the
experiment's row is locked. The kind of experiment (`variance`, `bisect`) defines its conditions and when it ends.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from django.db import transaction
from django.db.models.functions import Now

from evalboard.contract.run import EXPERIMENT_LABEL
from evalboard.core.errors import Conflict, EvalboardError
from runs.access import RUN, may
from runs.lab.bisect import BisectKind
from runs.lab.variance import VarianceKind
from runs.models import ExperimentArm, ExperimentRecord, Priority, RepeatRecord, RunRecord
from runs.run import cancel_run, create_run, measure_engine_time
from runs.webhooks import news
from runs.work import queue

Status = ExperimentArm.Status
Arms = Sequence[ExperimentArm]


class ExperimentKind(Protocol):
    """The behaviour of one kind of experiment."""

    def passes(self, run: RunRecord) -> Sequence[RepeatRecord]:
        """Return the repeats of a condition's run that count."""

    def measure(self, experiment: ExperimentRecord, arms: Arms, run: RunRecord) -> dict[str, Any] | None:
        """Return the figures of a condition whose run has ended with passes, None if unknown."""

    def prepare(self, experiment: ExperimentRecord, arms: Arms) -> None:
        """End conditions that need no run, before the next one begins."""

    def order(self, experiment: ExperimentRecord, arm: ExperimentArm) -> Mapping[str, Any]:
        """Return the arguments of `create_run` for a condition. Raises if it cannot be made."""

    def failure(self, arms: Arms) -> str:
        """Say why the waiting conditions cannot give a result, "" if they can."""

    def is_settled(self, experiment: ExperimentRecord, arms: Arms) -> bool:
        """Tell whether the waiting conditions would add nothing."""

    def add_arms(self, experiment: ExperimentRecord, arms: Arms) -> bool:
        """Store further conditions if the ended ones require them; False if none do."""


KINDS: Mapping[str, ExperimentKind] = {
    ExperimentRecord.Kind.VARIANCE: VarianceKind(),
    ExperimentRecord.Kind.BISECT: BisectKind(),
}


def open_work() -> list[int]:
    """Return the ids of experiments that are at work."""
    return list(
        ExperimentRecord.objects.filter(status=ExperimentRecord.Status.RUNNING)
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def advance(experiment_id: int) -> bool:
    """Advance an experiment as far as possible now.

    Return False if nothing can be done, or another sweep does it.
    """
    with transaction.atomic():
        running = ExperimentRecord.objects.filter(pk=experiment_id, status=ExperimentRecord.Status.RUNNING)
        experiment = running.select_for_update(skip_locked=True, of=("self",)).select_related("created_by").first()
        if experiment is None:
            return False
        arms = _arms(experiment)
        at_work = next((arm for arm in arms if arm.status == Status.RUNNING), None)
        if at_work is None or at_work.run is None or at_work.run.is_terminal:
            if at_work is not None:
                _end_arm(experiment, at_work, arms)
            has_moved, run_to_cancel = _begin_next(experiment, arms), None
        else:
            has_moved, run_to_cancel = False, _beyond_budget(experiment, arms, at_work.run)
    if run_to_cancel is not None:  # not while a row is locked: workers lock theirs in another order
        cancel_open_run(run_to_cancel)
    return has_moved or run_to_cancel is not None


def advance_after(run_id: int) -> None:
    """Advance the experiment that this ended run belongs to, so that no engine idles until a sweep."""
    ended = ExperimentArm.objects.filter(run=run_id, run__status__in=RunRecord.TERMINAL, status=Status.RUNNING)
    for experiment_id in ended.values_list("experiment", flat=True):
        advance(experiment_id)


def cut_off(experiment: ExperimentRecord) -> list[int]:
    """End the running condition with the passes it has, drop waiting ones; return the runs to cancel."""
    arms, to_cancel = _arms(experiment), list[int]()
    for arm in arms:
        if arm.status == Status.WAITING:
            arm.status = Status.MISSING
            arm.save()
        elif arm.status == Status.RUNNING and (arm.run is None or arm.run.is_terminal):
            _end_arm(experiment, arm, arms)
        elif arm.status == Status.RUNNING and arm.run is not None:
            _cut(experiment, arm, arms, arm.run)
            to_cancel.append(arm.run.pk)
    return to_cancel


def _cut(experiment: ExperimentRecord, arm: ExperimentArm, arms: Arms, run: RunRecord) -> None:
    """Store the whole passes of a condition whose run is about to be cancelled."""
    kind = KINDS[experiment.kind]
    passes = kind.passes(run)
    arm.spent_minutes += measure_engine_time(run).minutes
    arm.figures = kind.measure(experiment, arms, run) if passes else None
    arm.status = Status.MISSING
    if arm.figures is not None:
        arm.status, arm.problem = Status.CUT, f"Run {run.pk} was cancelled; whole passes kept: {len(passes)}."
    arm.save()


def _arms(experiment: ExperimentRecord) -> list[ExperimentArm]:
    related = ("run__suite_version", "endpoint", "suite_version__suite")
    return list(experiment.arms.select_related(*related).order_by("position"))


def _beyond_budget(experiment: ExperimentRecord, arms: Arms, run: RunRecord) -> int | None:
    """Return the run that is to be cancelled, because the budget is spent while it is at work."""
    if run.is_cancel_wanted:
        return None
    spent = sum(arm.spent_minutes for arm in arms) + measure_engine_time(run).minutes
    return run.pk if spent >= experiment.budget_minutes else None


def cancel_open_run(run_id: int) -> None:
    """Cancel a condition's run unless it has ended."""
    try:
        cancel_run(run_id=run_id)
    except Conflict:
        return


def _end_arm(experiment: ExperimentRecord, arm: ExperimentArm, arms: Arms) -> None:
    """Store the result of a condition whose run has ended, or was deleted."""
    run, kind = arm.run, KINDS[experiment.kind]
    if run is None:
        arm.status, arm.problem = Status.FAILED, "Its run was deleted."
    else:
        passes = kind.passes(run)
        arm.spent_minutes += measure_engine_time(run).minutes  # in addition to the time before it was resumed
        if run.status == RunRecord.Status.FINISHED:
            arm.status = Status.FINISHED
        elif passes:
            arm.status, arm.problem = Status.CUT, f"Run {run.pk} ended {run.status}; whole passes kept: {len(passes)}."
        else:
            arm.status = Status.FAILED
            why = run.failure.partition("\n")[0]
            arm.problem = f"Run {run.pk} ended {run.status} without a whole pass. {why}".strip()
        if passes:
            arm.figures = kind.measure(experiment, arms, run)
    arm.save()


def _begin_next(experiment: ExperimentRecord, arms: Arms) -> bool:
    """Start the next condition, or end the experiment; those that cannot start are skipped with a reason."""
    kind = KINDS[experiment.kind]
    kind.prepare(experiment, arms)
    for arm in arms:
        if arm.status != Status.WAITING:
            continue
        if reason := _reason_to_end(experiment, arms):
            _end(experiment, *reason)
            return True
        try:
            with transaction.atomic():
                arm.run = _create_run(experiment, arm)
        except queue.QueueFull as full:
            experiment.problem = full.detail  # it waits, and the next sweep tries again
            experiment.save(update_fields=["problem"])
            return False
        except EvalboardError as problem:
            arm.status = Status.FAILED
            arm.problem = " ".join([problem.detail, *(f"{path}: {words}" for path, words in problem.fields.items())])
            arm.save()
            continue
        arm.status = Status.RUNNING
        arm.save()
        experiment.problem = ""
        experiment.save(update_fields=["problem"])
        return True
    if kind.add_arms(experiment, arms):
        return _begin_next(experiment, _arms(experiment))
    spent = sum(arm.spent_minutes for arm in arms)
    if failure := kind.failure(arms):
        _end(experiment, ExperimentRecord.Status.FAILED, failure)
    elif any(arm.status == Status.CUT for arm in arms) and spent >= experiment.budget_minutes:
        _end(experiment, ExperimentRecord.Status.STOPPED, "")
    else:
        _end(experiment, ExperimentRecord.Status.FINISHED, "")
    return True


def _reason_to_end(experiment: ExperimentRecord, arms: Arms) -> tuple[str, str] | None:
    """Return (status, problem) if an experiment must end before its next condition; else None."""
    person, kind = experiment.created_by, KINDS[experiment.kind]
    if person is None or not may(person, RUN):
        name = "Whoever" if person is None else person.get_username()
        return ExperimentRecord.Status.FAILED, f"{name} who started it may not start runs any more."
    if failure := kind.failure(arms):
        return ExperimentRecord.Status.FAILED, failure
    if kind.is_settled(experiment, arms):
        return ExperimentRecord.Status.FINISHED, ""
    if sum(arm.spent_minutes for arm in arms) >= experiment.budget_minutes:
        return ExperimentRecord.Status.STOPPED, ""
    return None


def _end(experiment: ExperimentRecord, status: str, problem: str) -> None:
    experiment.arms.filter(status=Status.WAITING).update(status=Status.MISSING)
    experiment.status, experiment.problem, experiment.finished_at = status, problem, Now()
    experiment.save(update_fields=["status", "problem", "finished_at"])
    news.tell_of_work("experiment", experiment.pk, status=str(status), error=problem)


def _create_run(experiment: ExperimentRecord, arm: ExperimentArm) -> RunRecord:
    """Start a condition's run. Raises as `create_run` does."""
    order = KINDS[experiment.kind].order(experiment, arm)
    labels = {EXPERIMENT_LABEL: str(experiment.pk), "source": arm.source}
    return create_run(**order, labels=labels, priority=Priority.BULK, user=experiment.created_by)
