"""Series of rollouts with their steps, and the points of their charts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import Count, F, OuterRef, Q, Subquery
from django.urls import reverse

from evalboard.contract import rollouts as contract
from runs.models import RolloutSeriesRecord, RolloutStepRecord
from runs.rollouts.series import require_series

if TYPE_CHECKING:
    from django.db.models import QuerySet

MAX_POINTS = 400  # that a chart has room for


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """The largest KL and clip share of the steps from first to last; None is not known."""

    first: int
    last: int
    kl: float | None
    clip_share: float | None
    is_over: bool


def series_rows(name: str = "") -> tuple[contract.RolloutSeries, ...]:
    """Return all series, newest first, or the one of a name."""
    steps = RolloutStepRecord.objects.filter(series=OuterRef("pk"))
    series = RolloutSeriesRecord.objects.select_related("created_by").annotate(
        n_steps=Count("steps"),
        n_over=Count("steps", filter=Q(steps__is_over=True)),
        last_id=Subquery(steps.order_by("-step").values("pk")[:1]),
        worst_id=Subquery(steps.order_by(F("kl_k3").desc(nulls_last=True), "step").values("pk")[:1]),
    )
    rows = list(series.filter(n_steps__gt=0, **({"name": name} if name else {})).order_by("-pk"))
    ids = {pk for row in rows for pk in (row.last_id, row.worst_id)}
    found_steps = {step.pk: step for step in RolloutStepRecord.objects.select_related("series").filter(pk__in=ids)}
    return tuple(_series(row, found_steps) for row in rows)


def series_row(series: str) -> contract.RolloutSeries:
    """Return a series by its name. Raises NotFound."""
    require_series(series)
    return series_rows(series)[0]


def step_rows(series: str) -> "QuerySet[RolloutStepRecord]":
    """Return a series' steps, the newest step first. Raises NotFound."""
    return require_series(series).steps.select_related("series").order_by("-step")


def show_step(step: RolloutStepRecord) -> contract.RolloutStep:
    """Return a step as it was logged last."""
    others = {name: getattr(step, name) for name in _COLUMNS}
    return contract.RolloutStep.from_stored(step.figures, series=step.series.name, **others)


_COLUMNS = ("step", "max_kl", "max_clip_share", "is_over", "n_logged", "logged_at")


def chart_points(series: str) -> tuple[ChartPoint, ...]:
    """Return up to MAX_POINTS points in the order of the steps. Raises NotFound.

    A longer series has several steps in each point, which shows the worst of them.
    """
    rows = list(step_rows(series).order_by("step").values_list("step", "kl_k3", "clip_share", "is_over"))
    parts = np.array_split(np.arange(len(rows)), min(len(rows), MAX_POINTS)) if rows else []
    return tuple(_point([rows[index] for index in part]) for part in parts)


def _point(rows: list[Any]) -> ChartPoint:
    kls, shares = ([row[place] for row in rows if row[place] is not None] for place in (1, 2))
    return ChartPoint(
        first=rows[0][0],
        last=rows[-1][0],
        kl=max(kls, default=None),
        clip_share=max(shares, default=None),
        is_over=any(row[3] for row in rows),
    )


def _series(row: Any, steps: dict[int, RolloutStepRecord]) -> contract.RolloutSeries:
    return contract.RolloutSeries.from_record(
        row,
        id=str(row.pk),
        last=show_step(steps[row.last_id]),
        worst=show_step(steps[row.worst_id]),
        created_by=row.created_by and row.created_by.get_username(),
        url=reverse("rollout_series", args=[row.name]),
    )
