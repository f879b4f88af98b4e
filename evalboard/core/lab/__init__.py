"""The lab: what is let go of, one thing at a time, and how far a score moves when it is (docs/lab.md)."""

from evalboard.core.lab.cost import Cost, Pace, add_costs, estimate_cost
from evalboard.core.lab.figures import ArmFigures, Figures, combine_arms
from evalboard.core.lab.findings import judge_rows
from evalboard.core.lab.plan import MIN_RUNS, Choice, LeftOut, PlannedArm, Surroundings, plan_variance
from evalboard.core.lab.spacing import SPACINGS, respace
from evalboard.core.lab.spread import Spread, measure_spread

__all__ = [
    "MIN_RUNS",
    "SPACINGS",
    "ArmFigures",
    "Choice",
    "Cost",
    "Figures",
    "LeftOut",
    "Pace",
    "PlannedArm",
    "Spread",
    "Surroundings",
    "add_costs",
    "combine_arms",
    "estimate_cost",
    "judge_rows",
    "measure_spread",
    "plan_variance",
    "respace",
]
