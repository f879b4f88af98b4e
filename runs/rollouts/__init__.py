"""Rollouts of training runs: steps that a trainer measured, stored, listed and read as one series."""

from runs.rollouts.read import ChartPoint, chart_points, series_row, series_rows, show_step, step_rows
from runs.rollouts.series import delete_series, log_step

__all__ = [
    "ChartPoint",
    "chart_points",
    "delete_series",
    "log_step",
    "series_row",
    "series_rows",
    "show_step",
    "step_rows",
]
