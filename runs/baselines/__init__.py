"""The run that a suite's candidates are judged against."""

from runs.baselines.baselines import current_baseline, set_baseline
from runs.baselines.read import (
    baseline_row,
    baseline_rows,
    baseline_runs,
    baselines_beside,
    baselines_on,
    current_baselines,
    held_against,
    references_to_compare,
    rotation_rows,
    rotations_in_full,
    unattended_rotations,
)

__all__ = [
    "baseline_row",
    "baseline_rows",
    "baseline_runs",
    "baselines_beside",
    "baselines_on",
    "current_baseline",
    "current_baselines",
    "held_against",
    "references_to_compare",
    "rotation_rows",
    "rotations_in_full",
    "set_baseline",
    "unattended_rotations",
]
