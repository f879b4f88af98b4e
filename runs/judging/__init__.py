"""Judgings: answers scored by a model, in a run of its own."""

from runs.judging.judgings import advance_judging, due_judgings, work_on_judgings

__all__ = ["advance_judging", "due_judgings", "work_on_judgings"]
