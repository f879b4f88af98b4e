"""Steps of training runs over REST: logged, replaced, listed, refused, deleted."""

from typing import Any

import pytest
from django.test import Client

from evalboard.core.rollout_steps import measure_step
from runs.models import RolloutSeriesRecord, RolloutStepRecord
from tests import build
from tests.api.conftest import Api
from tests.core.test_rollout_steps import tensors

pytestmark = pytest.mark.django_db
STEPS = "/rollouts/grpo/steps/"


def body(step: int = 0, **others: Any) -> dict[str, Any]:
    return {"step": step, "figures": measure_step(tensors("verl")).to_json(), **others}


def test_a_step_is_201_and_again_200(api: Api) -> None:
    first = api.post(STEPS, body(3, max_kl=0.001))
    assert (first.status_code, first.json()["is_over"], first.json()["n_logged"]) == (201, True, 1)
    again = api.post(STEPS, body(3, max_kl=10.0, max_clip_share=None))
    assert (again.status_code, again.json()["is_over"], again.json()["n_logged"]) == (200, False, 2)
    assert RolloutStepRecord.objects.count() == 1
    api.post(STEPS, body(1))
    assert [row["step"] for row in api.get(STEPS).json()["results"]] == [3, 1]
    series = api.get("/rollouts/grpo/").json()
    assert (series["n_steps"], series["n_over"], series["last"]["step"], series["worst"]["step"]) == (2, 0, 3, 1)
    assert [row["name"] for row in api.get("/rollouts/").json()["results"]] == ["grpo"]


def test_figures_that_are_none_are_refused_and_leave_nothing(api: Api) -> None:
    figures = body()["figures"]
    wrong = api.post(STEPS, {"step": 0, "figures": {**figures, "kl_k3": "high"}})
    assert (wrong.status_code, list(wrong.json()["fields"])) == (400, ["figures.kl_k3"])
    assert api.post("/rollouts/No%20Name/steps/", body()).status_code == 400
    assert api.post(STEPS, {**body(), "max_clip_share": 2}).status_code == 400
    assert not RolloutSeriesRecord.objects.exists()


def test_figures_beyond_their_range_are_refused_and_the_largest_are_drawn(api: Api) -> None:
    figures = body()["figures"]
    far = {**figures, "n_tokens": -1, "clip_share": 7.0, "worst": {**figures["worst"], "token_id": 2**60}}
    wrong = api.post(STEPS, {"step": 0, "figures": far})
    assert (wrong.status_code, set(wrong.json()["fields"])) == (
        400,
        {"figures.n_tokens", "figures.clip_share", "figures.worst.token_id"},
    )
    most = {**figures, "kl_k3": -1e308, "worst": {**figures["worst"], "sampler": -1e308, "log_ratio": 1e308}}
    assert api.post(STEPS, {"step": 0, "figures": most}).status_code == 201
    client = Client()
    client.force_login(build.user("grace", "viewer"))
    assert client.get("/rollouts/grpo/").status_code == 200


def test_a_series_is_deleted_with_its_steps(api: Api) -> None:
    api.post(STEPS, body())
    assert api.delete("/rollouts/grpo/").status_code == 204
    assert not RolloutStepRecord.objects.exists()
    assert api.get(STEPS).status_code == api.get("/rollouts/grpo/").status_code == 404
