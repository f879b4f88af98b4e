"""Plan, start, cancel, resume and delete experiments. `arms` advances them."""

from collections.abc import Sequence
from dataclasses import asdict
from math import ceil
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from evalboard.contract.lab_kinds import SOURCES, Source
from evalboard.contract.run import RunCost
from evalboard.core.cost import estimate_cost
from evalboard.core.errors import Conflict, InvalidInput
from evalboard.core.lab import (
    MIN_RUNS,
    NO_COST,
    PlannedArm,
    Surroundings,
    add_costs,
    plan_variance,
)
from runs import acts
from runs.access import RUN
from runs.lab.arms import cancel_open_run, cut_off
from runs.lab.surroundings import read_surroundings
from runs.models import EndpointRecord, ExperimentArm, ExperimentRecord, ProfileRecord, RunRecord, SuiteVersionRecord
from runs.pairs import planned_draws
from runs.run import MAX_REPEATS, named_endpoint, named_suite_version, newest_profile, read_pace
from runs.store import require_row
from runs.work import refuse_if_nobody_can

MAX_PLANNED = 100
DEFAULT_RUNS = 20
ROOM = 1.5  # of the default budget: estimates are right within this factor
UNKNOWN_BUDGET = 60.0  # minutes, where no run says how long a pass takes
MIN_BUDGET = 5.0
MAX_BUDGET = 10_080.0  # a week
MAX_TEMPERATURE = 2.0


def plan_experiment(
    *,
    suite: str,
    suite_version: int | None = None,
    endpoint: str | None = None,
    profile: str = "pinned",
    runs: int = DEFAULT_RUNS,
    sources: Sequence[str] | None = None,
    temperature: float | None = None,
    budget_minutes: float | None = None,
    user: Any,
) -> ExperimentRecord:
    """Store the plan of a variance experiment; nothing is decoded before it is started.

    endpoint: None: that of the suite's newest run. runs: passes over the suite in each arm. sources: those to measure,
    the control beside them; None: all that can be. temperature: at which the sampler is let go; None: as the suite was
    last drawn. budget_minutes: None: half as much again as the estimate.

    Raises NotFound, InvalidInput with fields, ProfileRefused, and Conflict where too many plans wait to be confirmed.
    """
    version = named_suite_version(suite, suite_version)
    target = _newest_endpoint(version) if endpoint is None else named_endpoint(endpoint)
    pinned = newest_profile(profile)
    fields = _problems(target, pinned, runs=runs, sources=sources, temperature=temperature, budget=budget_minutes)
    if fields:
        raise InvalidInput("The experiment is not valid.", fields=fields)
    base = target.bypass or target
    refuse_if_nobody_can(base, pinned)
    around = read_surroundings(version, target, pinned, temperature=temperature)
    wanted = frozenset(SOURCES if sources is None else map(Source, sources))
    arms, left_out = plan_variance(around, n_runs=runs, wanted=wanted)
    costs = [_estimate(version, around, arm) for arm in arms]
    refuse_if_too_many_plans()
    with transaction.atomic():
        experiment = ExperimentRecord.objects.create(
            kind=ExperimentRecord.Kind.VARIANCE,
            suite_version=version,
            endpoint=base,
            profile=pinned,
            n_runs=runs,
            left_out=[asdict(each) for each in left_out],
            budget_minutes=budget_minutes or default_budget(add_costs(costs)),
            created_by=user,
        )
        endpoints = {each.slug: each for each in EndpointRecord.objects.filter(slug__in={arm.endpoint for arm in arms})}
        ExperimentArm.objects.bulk_create(
            ExperimentArm(
                experiment=experiment,
                position=position,
                source=arm.source,
                name=arm.name,
                endpoint=endpoints[arm.endpoint],
                settings=None if arm.settings is None else dict(arm.settings),
                n_runs=arm.n_runs,
                is_shuffled=arm.is_shuffled,
                is_restarted=arm.is_restarted,
                cost=cost.to_stored(),
            )
            for position, (arm, cost) in enumerate(zip(arms, costs, strict=True))
        )
    return experiment


def _newest_endpoint(version: SuiteVersionRecord) -> EndpointRecord:
    """Return the endpoint of a suite's newest run, except logs. Raises InvalidInput without one."""
    runs = RunRecord.objects.filter(suite_version__suite=version.suite_id, source=None).select_related("endpoint")
    newest = runs.order_by("-pk").first()
    if newest is None:
        words = f"Name one: the suite {version.suite} was never run."
        raise InvalidInput("The experiment is not valid.", fields={"endpoint": words})
    return newest.endpoint


def refuse_if_too_many_plans() -> None:
    """Raise Conflict where as many plans wait to be confirmed as may."""
    if ExperimentRecord.objects.filter(status=ExperimentRecord.Status.PLANNED).count() >= MAX_PLANNED:
        raise Conflict(f"{MAX_PLANNED} plans wait to be confirmed already; delete some.")


def default_budget(cost: RunCost) -> float:
    """Return the default minutes of an experiment, by its estimated cost."""
    if cost.minutes is None:
        return UNKNOWN_BUDGET
    return float(max(ceil(ROOM * cost.minutes), MIN_BUDGET))


@transaction.atomic
def start_experiment(*, experiment_id: int, budget_minutes: float | None = None) -> None:
    """Confirm a plan and start its conditions, the control first. Raises NotFound, InvalidInput, Conflict."""
    experiment = _locked(experiment_id)
    acts.require("start", experiment)
    _set_to_work(experiment, budget_minutes)


@transaction.atomic
def resume_experiment(*, experiment_id: int, budget_minutes: float | None = None) -> None:
    """Resume an experiment that was stopped, cancelled or failed; measured conditions are unchanged.

    budget_minutes: in total, including what was spent. Raises NotFound, InvalidInput, Conflict.
    """
    experiment = _locked(experiment_id)
    acts.require("resume", experiment)
    left = experiment.arms.exclude(status=ExperimentArm.Status.FINISHED)
    left.update(status=ExperimentArm.Status.WAITING, run=None, problem="", figures=None)
    _set_to_work(experiment, budget_minutes)


def cancel_experiment(*, experiment_id: int) -> None:
    """Cancel an experiment and its current run; ended passes stay. Raises NotFound, Conflict."""
    with transaction.atomic():
        experiment = _locked(experiment_id)
        if not acts.require("cancel", experiment):
            return
        run_ids = cut_off(experiment)
        experiment.status, experiment.finished_at = ExperimentRecord.Status.CANCELLED, Now()
        experiment.save(update_fields=["status", "finished_at"])
    for run_id in run_ids:  # not while a row is locked: workers lock theirs in another order
        cancel_open_run(run_id)


@transaction.atomic
def delete_experiment(*, experiment_id: int) -> None:
    """Delete a plan or an ended experiment; runs stay. Raises NotFound, and Conflict while running."""
    experiment = _locked(experiment_id)
    acts.require("delete", experiment)
    experiment.delete()


def _set_to_work(experiment: ExperimentRecord, budget_minutes: float | None) -> None:
    if problem := budget_problem(budget_minutes):
        raise InvalidInput("The budget is not valid.", fields={"budget_minutes": problem})
    experiment.budget_minutes = budget_minutes or experiment.budget_minutes
    experiment.status, experiment.problem, experiment.finished_at = ExperimentRecord.Status.RUNNING, "", None
    experiment.started_at = experiment.started_at or Now()
    experiment.save()


def _problems(
    target: EndpointRecord,
    pinned: ProfileRecord,
    *,
    runs: int,
    sources: Sequence[str] | None,
    temperature: float | None,
    budget: float | None,
) -> dict[str, str]:
    fields: dict[str, str] = {}
    if (no := acts.refusal("run", target)) is not None:
        fields["endpoint"] = no.reason
    if pinned.settings.get("batch_class") != "alone":
        fields["profile"] = "Must decode at batch size 1, as pinned does: everything is compared with it."
    elif planned_draws(pinned, target).is_sampled:
        fields["profile"] = "Must decode at temperature 0, or no two runs of the control could be equal."
    if not MIN_RUNS <= runs <= MAX_REPEATS:
        fields["runs"] = f"Must be a whole number from {MIN_RUNS} to {MAX_REPEATS}."
    if unknown := sorted(set(sources or ()) - set(SOURCES)):
        fields["sources"] = f"There is no source {unknown[0]}; there are {', '.join(SOURCES)}."
    if temperature is not None and not 0 < temperature <= MAX_TEMPERATURE:
        fields["temperature"] = f"Must be above 0 and at most {MAX_TEMPERATURE:g}."
    if problem := budget_problem(budget):
        fields["budget_minutes"] = problem
    return fields


def budget_problem(minutes: float | None) -> str | None:
    """Return the problem of a budget, None if it is valid."""
    if minutes is None or 0 < minutes <= MAX_BUDGET:
        return None
    return f"Must be a number of minutes above 0, at most {MAX_BUDGET:,.0f}."


def _estimate(version: SuiteVersionRecord, around: Surroundings, arm: PlannedArm) -> RunCost:
    if not arm.n_runs:
        return NO_COST
    endpoint = EndpointRecord.objects.get(slug=arm.endpoint)
    settings = around.settings if arm.settings is None else arm.settings
    pace = read_pace(version, endpoint, batch_class=settings["batch_class"])
    if pace.pass_seconds is None and arm.endpoint != around.endpoint:
        pace = read_pace(version, EndpointRecord.objects.get(slug=around.endpoint), batch_class=settings["batch_class"])
    has_engine = not endpoint.is_remote
    return estimate_cost(arm.n_runs, pace=pace, is_restarted=arm.is_restarted, has_engine=has_engine)


def _locked(experiment_id: int) -> ExperimentRecord:
    return require_row(
        ExperimentRecord.objects.select_for_update().filter(pk=experiment_id),
        f"There is no experiment {experiment_id}.",
    )


@acts.rule("start", ExperimentRecord, RUN)
def _start(experiment: ExperimentRecord) -> acts.No | None:
    if experiment.status == ExperimentRecord.Status.PLANNED:
        return None
    return acts.No(f"Experiment {experiment.pk} is {experiment.status}; it was confirmed before.", is_shown=False)


@acts.rule("resume", ExperimentRecord, RUN)
def _resume(experiment: ExperimentRecord) -> acts.No | None:
    status = ExperimentRecord.Status
    if experiment.status in (status.STOPPED, status.CANCELLED, status.FAILED):
        return None
    text = f"Experiment {experiment.pk} is {experiment.status}; nothing of it is left to go on with."
    return acts.No(text, is_shown=False)


@acts.rule("cancel", ExperimentRecord, RUN)
def _cancel_experiment(experiment: ExperimentRecord) -> acts.No | None:
    if experiment.status == ExperimentRecord.Status.RUNNING:
        return None
    is_done = experiment.status == ExperimentRecord.Status.CANCELLED
    text = f"Experiment {experiment.pk} is {experiment.status}; it is not at work."
    return acts.No(text, is_shown=False, is_done=is_done)


@acts.rule("delete", ExperimentRecord, RUN)
def _delete_experiment(experiment: ExperimentRecord) -> acts.No | None:
    is_at_work = experiment.status == ExperimentRecord.Status.RUNNING
    return acts.No(f"Experiment {experiment.pk} is at work; cancel it first.") if is_at_work else None
