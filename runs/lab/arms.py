"""What moves an experiment on: whoever sweeps starts the next arm when the one before it has ended.

The rows are the job. A sweep that dies leaves them as they were, and the next one goes on; two sweeps at once are one,
as the experiment's row is locked.
"""

from dataclasses import asdict

from django.db import transaction
from django.db.models.functions import Now

from evalboard.core.errors import Conflict, EvalboardError
from evalboard.core.lab_kinds import Source
from runs.access import RUN, may
from runs.catalogue import create_profile
from runs.lab.engine_time import measure_engine_time
from runs.lab.parsed_figures import measure_parser
from runs.lab.run_figures import measure_run, whole_passes
from runs.models import Experiment, ExperimentArm, Priority, Profile, Repeat, Run
from runs.run import cancel_run, create_run, newest_profile
from runs.work import queue

LABEL = "experiment"  # of a run that is an arm
Status = ExperimentArm.Status


def open_experiments() -> list[int]:
    """Return the ids of experiments that are at work."""
    return list(Experiment.objects.filter(status=Experiment.Status.RUNNING).order_by("pk").values_list("pk", flat=True))


def advance(experiment_id: int) -> bool:
    """Take the steps of an experiment that can be taken now; False where there is none, or another sweep takes them."""
    with transaction.atomic():
        running = Experiment.objects.filter(pk=experiment_id, status=Experiment.Status.RUNNING)
        experiment = running.select_for_update(skip_locked=True, of=("self",)).select_related("created_by").first()
        if experiment is None:
            return False
        arms = list(experiment.arms.select_related("run__suite_version", "endpoint").order_by("position"))
        at_work = next((arm for arm in arms if arm.status == Status.RUNNING), None)
        if at_work is None or at_work.run is None or at_work.run.is_terminal:
            if at_work is not None:
                _end_arm(at_work, arms)
            has_moved, run_to_cancel = _begin_next(experiment, arms), None
        else:
            has_moved, run_to_cancel = False, _beyond_budget(experiment, arms, at_work.run)
    if run_to_cancel is not None:  # not while a row is locked: workers lock theirs in another order
        _cancel(run_to_cancel)
    return has_moved or run_to_cancel is not None


def _beyond_budget(experiment: Experiment, arms: list[ExperimentArm], run: Run) -> int | None:
    """Return the run that is to be cancelled, because the budget is spent while it is at work."""
    if run.is_cancel_wanted:
        return None
    spent = sum(arm.spent_minutes for arm in arms) + measure_engine_time(run).minutes
    return run.pk if spent >= experiment.budget_minutes else None


def _cancel(run_id: int) -> None:
    try:
        cancel_run(run_id=run_id)
    except Conflict:
        return  # it ended meanwhile


def _end_arm(arm: ExperimentArm, arms: list[ExperimentArm]) -> None:
    """Keep what came of an arm whose run has ended, or was deleted."""
    run = arm.run
    if run is None:
        arm.status, arm.problem = Status.FAILED, "Its run was deleted."
    else:
        passes = whole_passes(run)
        arm.spent_minutes = measure_engine_time(run).minutes
        if run.status == Run.Status.FINISHED:
            arm.status = Status.FINISHED
        elif passes:
            arm.status, arm.problem = Status.CUT, f"Run {run.pk} ended {run.status} after {len(passes)} whole passes."
        else:
            arm.status = Status.FAILED
            why = run.failure.partition("\n")[0]
            arm.problem = f"Run {run.pk} ended {run.status} without a whole pass. {why}".strip()
        first = _first_pass(arms)
        if passes and first is not None:
            arm.figures = asdict(measure_run(run, first))
    arm.save()


def _begin_next(experiment: Experiment, arms: list[ExperimentArm]) -> bool:
    """Start the next arm, or end the experiment; arms that cannot start are passed over, with the reason."""
    first = _first_pass(arms)
    for arm in arms:
        if arm.status != Status.WAITING:
            continue
        if arm.source == Source.PARSER and first is not None:  # as soon as it can be: it costs nothing
            arm.figures, arm.status = asdict(measure_parser(first)), Status.FINISHED
            arm.save()
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
    spent = sum(arm.spent_minutes for arm in arms)
    if first is None:
        _end(experiment, Experiment.Status.FAILED, "The control has no whole pass, and everything is held against it.")
    elif any(arm.status == Status.CUT for arm in arms) and spent >= experiment.budget_minutes:
        _end(experiment, Experiment.Status.STOPPED, "")
    else:
        _end(experiment, Experiment.Status.FINISHED, "")
    return True


def _reason_to_end(experiment: Experiment, arms: list[ExperimentArm]) -> tuple[str, str] | None:
    """Return the status and the problem with which an experiment ends before its next arm; None where it goes on."""
    person = experiment.created_by
    if person is None or not may(person, RUN):
        name = "Whoever" if person is None else person.get_username()
        return Experiment.Status.FAILED, f"{name} who started it may not start runs any more."
    control = next(arm for arm in arms if arm.source == Source.CONTROL)
    if control.status in (Status.FAILED, Status.MISSING):
        return Experiment.Status.FAILED, f"The control has failed, and everything is held against it. {control.problem}"
    if sum(arm.spent_minutes for arm in arms) >= experiment.budget_minutes:
        return Experiment.Status.STOPPED, ""
    return None


def _end(experiment: Experiment, status: str, problem: str) -> None:
    experiment.arms.filter(status=Status.WAITING).update(status=Status.MISSING)
    experiment.status, experiment.problem, experiment.finished_at = status, problem, Now()
    experiment.save(update_fields=["status", "problem", "finished_at"])


def _first_pass(arms: list[ExperimentArm]) -> Repeat | None:
    """Return the control's first whole pass, which everything is held against; None where it has none."""
    control = next(arm for arm in arms if arm.source == Source.CONTROL)
    passes = [] if control.run is None or not control.run.is_terminal else whole_passes(control.run)
    return passes[0] if passes else None


def _create_run(experiment: Experiment, arm: ExperimentArm) -> Run:
    """Start an arm's run under its profile, which is stored under a name of its own. Raises as `create_run` does."""
    version = experiment.suite_version
    return create_run(
        suite=version.suite.slug,
        suite_version=version.number,
        endpoint=arm.endpoint.slug,
        profile=_profile(experiment.profile, arm).slug,
        repeats=arm.n_runs,
        labels={LABEL: str(experiment.pk), "source": arm.source},
        priority=Priority.BULK,
        is_shuffled=arm.is_shuffled,
        is_restarted=arm.is_restarted,
        user=experiment.created_by,
    )


def _profile(pinned: Profile, arm: ExperimentArm) -> Profile:
    if arm.settings is None:
        if newest_profile(pinned.slug) != pinned:
            raise Conflict(f"The profile {pinned.slug} was changed since the plan; plan the experiment again.")
        return pinned
    title = f"The lab: {pinned} with the {arm.source.replace('_', ' ')} let go"
    return create_profile(slug=f"{pinned.slug}.{arm.source}", title=title, settings=arm.settings)[0]
