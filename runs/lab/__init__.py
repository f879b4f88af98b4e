"""The lab: experiments that say where variance comes from, in ordinary runs that anyone can open."""

from runs.lab.arms import advance, advance_after, open_work
from runs.lab.bisect_plan import DEFAULT_CASES, plan_bisect
from runs.lab.experiments import (
    DEFAULT_RUNS,
    cancel_experiment,
    delete_experiment,
    plan_experiment,
    resume_experiment,
    start_experiment,
)
from runs.lab.read import (
    EXPERIMENT_ORDERS,
    experiment_detail,
    experiment_state,
    sortable_experiments,
)

SWEPT = ((open_work, advance),)
AFTER_RUN = (advance_after,)

__all__ = [
    "AFTER_RUN",
    "DEFAULT_CASES",
    "DEFAULT_RUNS",
    "EXPERIMENT_ORDERS",
    "SWEPT",
    "cancel_experiment",
    "delete_experiment",
    "experiment_detail",
    "experiment_state",
    "plan_bisect",
    "plan_experiment",
    "resume_experiment",
    "sortable_experiments",
    "start_experiment",
]
