"""Whether this installation can take work, and what it measures of itself."""

from runs.health import alive, counters
from runs.health.outage import Outage, notice
from runs.health.read import doorbell_problem, what_is_missing
from runs.health.read_metrics import Metrics, metrics

__all__ = [
    "Metrics",
    "Outage",
    "alive",
    "counters",
    "doorbell_problem",
    "metrics",
    "notice",
    "what_is_missing",
]
