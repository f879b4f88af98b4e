"""Rollouts of training runs: all series, and one with its charts and steps."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from evalboard.contract.rollouts import RolloutStep
from evalboard.wording.rollouts import (
    describe_step,
    describe_worst_token,
    explain_limits,
    list_checks,
    write_kl,
    write_share,
)
from frontend.rollouts import chart
from frontend.shell.forms import posted_from, reporting
from runs.access import READ, RUN, requires
from runs.rollouts import chart_points, delete_series, series_row, series_rows, show_step, step_rows

SHOWN = 25  # steps in the table


@requires(READ)
@require_safe
def all_series(request: HttpRequest) -> HttpResponse:
    rows = [{"of": row, "last": write_kl(row.last.kl_k3), "worst": write_kl(row.worst.kl_k3)} for row in series_rows()]
    return render(request, "rollouts/list.html", {"rows": rows})


@requires(READ)
@require_safe
def one_series(request: HttpRequest, series: str) -> HttpResponse:
    row = series_row(series)
    points = chart_points(series)
    last = row.last
    why = explain_limits(last, max_kl=last.max_kl, max_clip_share=last.max_clip_share)
    plots = (
        _plot("kl", "KL", "the sampler’s to the trainer’s, by k3", chart.draw_kl(points, last.max_kl), last.max_kl),
        _plot(
            "clip",
            "Clip share",
            f"tokens whose ratio is outside 1 ± {last.clip_range:g}",
            chart.draw_clip(points, last.max_clip_share),
            last.max_clip_share,
        ),
    )
    page = {
        "series": row,
        "claim": f"Step {last.step}: {why or describe_step(last)}",
        "rest": describe_worst_token(last),
        "worst": write_kl(row.worst.kl_k3),
        "checks": tuple(list_checks(last)),
        "plots": [plot for plot in plots if plot["figure"] is not None],
        "steps": [_row(show_step(step)) for step in step_rows(series)[:SHOWN]],
    }
    return render(request, "rollouts/series.html", page)


def _plot(name: str, title: str, about: str, figure: dict[str, Any] | None, limit: float | None) -> dict[str, Any]:
    """Return what the page says of a figure; `limit` in words, "" without one."""
    write = write_kl if name == "kl" else write_share
    words = "" if limit is None else write(limit)
    return {"name": name, "title": title, "about": about, "figure": figure, "limit": words}


def _row(step: RolloutStep) -> dict[str, Any]:
    return {"of": step, "kl": write_kl(step.kl_k3, step.kl_k3_error), "clip": write_share(step.clip_share)}


@requires(RUN)
@posted_from("rollout_series", "series")
def delete(request: HttpRequest, series: str) -> HttpResponse:
    with reporting(request):
        delete_series(series=series)
    return redirect("rollouts")
