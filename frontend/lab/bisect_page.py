"""A bisect's page: bars of what each field makes and undoes, and a mark per case and step."""

from typing import Any

from evalboard.contract.lab import Bisect, BisectStep, Experiment
from evalboard.wording.bisect import MARK_WORDS, MARKS
from evalboard.wording.bisect_report import describe_beside
from evalboard.wording.numbers import counted


def bisect_page(experiment: Experiment, bisect: Bisect) -> dict[str, Any]:
    """Return the template's context, besides the experiment."""
    n_fields = max((len(step.turned) for step in bisect.steps), default=0)
    return {
        "bisect": bisect,
        "runs": [{"id": each, "is_there": each in bisect.there} for each in (bisect.baseline, bisect.candidate)],
        "are_both_there": {bisect.baseline, bisect.candidate} <= set(bisect.there),
        "fields": [
            {"field": field, "made": _part(field.n_made, bisect), "undone": _part(field.n_undone, bisect)}
            for field in bisect.fields
        ],
        "steps": [_line(step, bisect, n_fields) for step in bisect.steps],
        "marks": [{"sign": sign, "words": MARK_WORDS[shown]} for shown, sign in MARKS.items()],
        "beside": describe_beside(bisect),
        "unreached": [field for field in bisect.fields if field.state == "not_reachable"],
        "several": _describe_several(bisect, n_fields, is_over=experiment.is_terminal),
    }


def _part(n: int | None, bisect: Bisect) -> dict[str, float] | None:
    if n is None or not bisect.n_reproduced:
        return None
    return {"n": n, "of": bisect.n_reproduced, "percent": round(100 * n / bisect.n_reproduced)}


def _line(step: BisectStep, bisect: Bisect, n_fields: int) -> dict[str, Any]:
    is_known = step.n_candidate is not None and bisect.n_reproduced
    return {
        "step": step,
        "is_side": len(step.turned) in (0, n_fields),
        "cells": [{"shown": shown, "sign": MARKS[shown], "words": MARK_WORDS[shown]} for shown in step.shown],
        "gave": f"{step.n_candidate} of {bisect.n_reproduced}" if is_known else "",
        "mark": {"waiting": "queued", "cut": "incomplete", "missing": "cancelled"}.get(step.status, step.status),
    }


def _describe_several(bisect: Bisect, n_fields: int, *, is_over: bool) -> str:
    """Say whether fields were tried together, and why not."""
    tried = [step for step in bisect.steps if 1 < len(step.turned) < n_fields - 1]
    if tried:
        return f"tried together in {counted(len(tried), 'step')}, as no field alone explains every flip"
    if not is_over:
        return "only where no field alone explains every flip"
    return "not tried together: no step was left to take" if bisect.n_unexplained else "not needed"
