"""The pages of the lab: a plan with its cost, the table with a dot a run, and what a person may do."""

from typing import Any

import pytest
from django.test import Client

from evalboard.contract.lab import LabPoint
from frontend.lab.charts import draw_strips
from runs.lab import experiment_detail, plan_experiment, start_experiment
from runs.models import Experiment, Run
from runs.sweep import reconcile
from tests import build

CONTROL = ("blue", "blue", "red")
MOVED = ("blue", "red", "red")


@pytest.fixture
def planned(db: None) -> Experiment:
    build.suite()
    build.endpoint()
    build.profile()
    person = build.user("planner")
    return plan_experiment(suite="colours", endpoint="local", runs=5, sources=["order", "batch"], user=person)


def served(experiment: Experiment, *moving: str) -> Experiment:
    """Run it to its end; the arms of these sources move one of their passes."""
    start_experiment(experiment_id=experiment.pk)
    reconcile()
    while (arm := experiment.arms.filter(status="running").first()) is not None:
        process = build.process()
        for index in range(1, 6):
            texts = MOVED if arm.source in moving and index == 3 else CONTROL
            build.decode(Run.objects.get(pk=arm.run_id), index, texts, by=process)
        reconcile()
    return experiment


def page(client: Client, experiment: Experiment) -> str:
    answer = client.get(f"/lab/{experiment.pk}/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_an_experiment_is_planned_confirmed_and_cancelled_by_buttons(engineer: Client, planned: Experiment) -> None:
    form = {"suite": "colours", "endpoint": "local", "profile": "pinned", "runs": "5", "temperature": "0.7"}
    answer = engineer.post("/lab/", form)
    made = Experiment.objects.latest("id")
    assert answer["Location"] == f"/lab/{made.pk}/"
    text = page(engineer, made)
    for words in ("Nothing has been decoded yet", "prefix cache", "sampler", "not known", "Not measured here"):
        assert words in text
    assert "Start</button>" in text
    engineer.post(f"/lab/{made.pk}/start/")
    assert "The control is at work" in page(engineer, made)
    assert "0 of 30" in engineer.get(f"/lab/{made.pk}/?part=progress").content.decode()
    engineer.post(f"/lab/{made.pk}/cancel/")
    assert "Go on with what is missing" in page(engineer, made)
    engineer.post(f"/lab/{made.pk}/resume/", {"budget_minutes": "30"})
    assert Experiment.objects.get(pk=made.pk).budget_minutes == 30
    engineer.post(f"/lab/{made.pk}/cancel/")
    engineer.post(f"/lab/{made.pk}/delete/")
    assert list(Experiment.objects.all()) == [planned]


def test_what_is_wrong_stands_at_its_field(engineer: Client, planned: Experiment) -> None:
    sent = {"suite": "colours", "endpoint": "local", "profile": "pinned", "runs": "5", "temperature": "9"}
    refused = engineer.post("/lab/", sent)
    assert refused.status_code == 422
    assert "Must be above 0 and at most 2." in refused.content.decode()


def test_the_page_has_the_sentence_the_table_and_a_link_for_each_dot(engineer: Client, planned: Experiment) -> None:
    text = page(engineer, served(planned, "batch"))
    assert "<strong><bdi>Batching moves this score (±16.7);</bdi></strong>" in text
    assert "the order of cases not at all" in text
    run = planned.arms.get(source="batch").run_id
    assert text.count(f'<a href="/runs/{run}/"><title>') == 5
    assert "5 of 5 equal to the bit" in text
    assert "Copy as Markdown" in text
    assert f'href="/api/v1/experiments/{planned.pk}/report.md"' in text
    assert "blameless" not in text
    assert "Batching moves this score" in engineer.get("/lab/").content.decode()


def test_where_the_control_moved_no_finding_is_shown_as_one(engineer: Client, planned: Experiment) -> None:
    text = page(engineer, served(planned, "control", "batch"))
    assert "nothing below can be blamed on its source" in text
    assert 'class="sources blameless"' in text


def test_who_may_not_start_runs_is_offered_no_button(viewer: Client, planned: Experiment) -> None:
    text = page(viewer, planned)
    assert "Start</button>" not in text
    assert "Delete" not in text
    assert "Plan it" not in viewer.get("/lab/").content.decode()
    assert viewer.post(f"/lab/{planned.pk}/start/").status_code == 403


def test_equal_scores_are_one_ring_and_others_stand_beside_each_other(planned: Experiment) -> None:
    detail = experiment_detail(served(planned, "batch").pk)
    strips = draw_strips(detail)
    assert strips is not None
    control, batch = (
        next(at for at, row in enumerate(detail.rows) if row.source == name) for name in ("control", "batch")
    )
    assert (strips.rows[control].dots, strips.rows[control].words) == ((), "5 of 5 equal to the bit")
    dots = strips.rows[batch].dots
    assert strips.rows[batch].ring is None
    assert len({(dot.x, dot.y) for dot in dots}) == 5
    assert len({dot.x for dot in dots}) == 2
    assert strips.band_x is not None
    assert strips.band_x < max(dot.x for dot in dots) < strips.band_x + strips.band_width
    assert all(0 < dot.x < 100 for dot in dots)


def test_a_thousand_equal_scores_stay_within_their_row(planned: Experiment) -> None:
    detail = experiment_detail(served(planned, "batch").pk)
    batch = next(row for row in detail.rows if row.source == "batch")
    points = tuple(LabPoint(score=score, run="1", repeat=at, name="") for at in range(1, 101) for score in (40.0, 60.0))
    many = detail.model_copy(update={"rows": (batch.model_copy(update={"points": points}),)})
    strips: Any = draw_strips(many)
    ys = [dot.y for dot in strips.rows[0].dots]
    assert 3 <= min(ys) < max(ys) <= 41
