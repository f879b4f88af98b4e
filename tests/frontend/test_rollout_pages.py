"""The pages of training steps: the list, and a series with its charts."""

import json
import re
from collections.abc import Callable

import pytest
from django.test import Client

from evalboard.core.rollout_steps import measure_step
from runs.models import RolloutSeriesRecord
from runs.rollouts import chart_points, log_step
from tests import build
from tests.core.test_rollout_steps import tensors

pytestmark = pytest.mark.django_db


def logged(n: int, *, over: int = -1) -> None:
    user = build.user("trainer", "engineer")
    figures = measure_step(tensors("verl"))
    for step in range(n):
        measured = figures.model_copy(update={"kl_k3": 0.5 if step == over else 0.0005})
        log_step(series="grpo", step=step, figures=measured.to_json(), max_kl=0.001, user=user)


def test_a_series_shows_its_last_step_its_charts_and_who_is_over(client_of: Callable[[str], Client]) -> None:
    logged(5, over=3)
    viewer = client_of("viewer")
    page = viewer.get("/rollouts/grpo/").content.decode()
    assert "Step 4: The KL (k3) is 0.0005" in page
    assert "position 2 of response 3" in page
    figure = json.loads(re.search(r'<script id="kl" type="application/json">(.*?)</script>', page)[1])  # type: ignore[index]
    open_marks, over = figure["data"][1:]
    assert (open_marks["x"], over["x"]) == ([0, 1, 2, 4], [3])
    assert "step 3" in over["text"][0]
    assert len(figure["layout"]["shapes"]) == 1  # the limit
    assert "Delete" not in page
    assert 'href="/rollouts/grpo/"' in viewer.get("/rollouts/").content.decode()
    assert viewer.get("/rollouts/none/").status_code == 404


def test_a_long_series_shows_the_worst_of_each_stretch() -> None:
    logged(0)
    series = RolloutSeriesRecord.objects.create(name="long")
    series.steps.bulk_create(
        series.steps.model(
            series=series,
            step=step,
            figures={},
            kl_k3=1.0 if step == 777 else None if step == 5 else 0.1,
            clip_share=0.0,
            is_over=step == 777,
        )
        for step in range(1000)
    )
    points = chart_points("long")
    assert len(points) == 400
    [worst] = [point for point in points if point.is_over]
    assert worst.kl == 1.0
    assert worst.first <= 777 <= worst.last
    assert [point.first for point in points[1:]] == [point.last + 1 for point in points[:-1]]


def test_an_engineer_deletes_a_series(client_of: Callable[[str], Client]) -> None:
    logged(1)
    engineer = client_of("engineer")
    assert "Delete 1 step now" in engineer.get("/rollouts/grpo/").content.decode()
    assert engineer.post("/rollouts/grpo/delete/").status_code == 302
    assert not RolloutSeriesRecord.objects.exists()
