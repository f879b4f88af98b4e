"""The run that a suite's candidates are judged against."""

from runs.baselines.baselines import current_baseline, set_baseline
from runs.baselines.read import (
    baseline_of,
    baseline_row,
    baseline_rows,
    baseline_runs,
    baselines_on,
    baselines_with,
    current_baselines,
    rotation_rows,
)

__all__ = [
    "baseline_of",
    "baseline_row",
    "baseline_rows",
    "baseline_runs",
    "baselines_on",
    "baselines_with",
    "current_baseline",
    "current_baselines",
    "rotation_rows",
    "set_baseline",
]
