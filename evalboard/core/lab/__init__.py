"""The lab: what is let go of, one thing at a time, and how far a score moves when it is (docs/lab.md)."""

from evalboard.core.lab.bisect import (
    UNSTEADY_CASES,
    UNSTEADY_DECODINGS,
    Bisected,
    Blamed,
    Decodings,
    find_chance,
    judge_steps,
    plan_more_steps,
    plan_steps,
    take_common,
)
from evalboard.core.lab.cost import NO_COST, Pace, add_costs, estimate_cost
from evalboard.core.lab.figures import ArmFigures, Figures, combine_arms
from evalboard.core.lab.findings import judge_rows
from evalboard.core.lab.plan import MIN_RUNS, Choice, PlannedArm, Surroundings, UnmeasuredSource, plan_variance
from evalboard.core.lab.setups import (
    SCORER,
    WORKER,
    Field,
    Setup,
    combine_setups,
    find_fields,
    find_unreachable,
    is_case_alone,
    needs_engine,
)
from evalboard.core.lab.spacing import SPACINGS, respace
from evalboard.core.lab.spread import Spread, measure_spread
from evalboard.core.lab.steps import StepFigures, digest_head, find_parting

__all__ = [
    "MIN_RUNS",
    "NO_COST",
    "SCORER",
    "SPACINGS",
    "UNSTEADY_CASES",
    "UNSTEADY_DECODINGS",
    "WORKER",
    "ArmFigures",
    "Bisected",
    "Blamed",
    "Choice",
    "Decodings",
    "Field",
    "Figures",
    "Pace",
    "PlannedArm",
    "Setup",
    "Spread",
    "StepFigures",
    "Surroundings",
    "UnmeasuredSource",
    "add_costs",
    "combine_arms",
    "combine_setups",
    "digest_head",
    "estimate_cost",
    "find_chance",
    "find_fields",
    "find_parting",
    "find_unreachable",
    "is_case_alone",
    "judge_rows",
    "judge_steps",
    "measure_spread",
    "needs_engine",
    "plan_more_steps",
    "plan_steps",
    "plan_variance",
    "respace",
    "take_common",
]
