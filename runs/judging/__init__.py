"""Judgings: answers scored by a model, in a run of its own."""

from runs.judging.judgings import advance_judging, due_judgings, work_on_judgings
from runs.judging.read import as_rows, judge_facts, judged_run, judgings_of, newest_judgings

__all__ = [
    "advance_judging",
    "as_rows",
    "due_judgings",
    "judge_facts",
    "judged_run",
    "judgings_of",
    "newest_judgings",
    "work_on_judgings",
]
