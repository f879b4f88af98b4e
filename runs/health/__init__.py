"""Whether this installation can take work, and what it measures of itself."""

from runs.health import alive
from runs.health.read import doorbell_problem, what_is_missing
from runs.health.read_metrics import Metrics, metrics

__all__ = [
    "Metrics",
    "alive",
    "doorbell_problem",
    "metrics",
    "what_is_missing",
]
