"""People's labels of a run's answers: taken, removed, and compared with its scorers."""

from runs.labels.labels import label_answers, remove_label, undo_label
from runs.labels.read import (
    PAGE,
    count_own_labels,
    labelled_answers,
    next_answers,
    run_labels,
)

__all__ = [
    "PAGE",
    "count_own_labels",
    "label_answers",
    "labelled_answers",
    "next_answers",
    "remove_label",
    "run_labels",
    "undo_label",
]
