"""The pages of the lab: a plan with its cost, the table with a dot a run, and what a person may do."""

import re
from collections.abc import Container
from html import unescape
from typing import Any

import pytest
from django.test import Client

from evalboard.contract.lab import LabPoint
from evalboard.core.profile import DEFAULT_PROFILES
from frontend.compare import comparing
from frontend.lab.charts import draw_strips
from runs.catalogue import create_profile
from runs.lab import experiment_detail, plan_bisect, plan_experiment, start_experiment
from runs.models import ExperimentArm, ExperimentRecord, RunRecord
from runs.run import delete_run, run_rows
from runs.sweep import reconcile
from tests import build
from tests.casts import cast
from tests.frontend.conftest import form_key

CONTROL = ("blue", "blue", "red")
MOVED = ("blue", "red", "red")


@cast
def planned() -> ExperimentRecord:
    build.suite()
    build.endpoint()
    build.profile()
    person = build.user("planner")
    return plan_experiment(suite="colours", endpoint="local", runs=5, sources=["order", "batch"], user=person)


def served(experiment: ExperimentRecord, *moving: str, passes: Container[int] = (3,)) -> ExperimentRecord:
    """Run it to its end; the arms of these sources move these passes of their five."""
    start_experiment(experiment_id=experiment.pk)
    reconcile()
    while (arm := experiment.arms.filter(status="running").first()) is not None:
        process = build.process()
        for index in range(1, 6):
            texts = MOVED if arm.source in moving and index in passes else CONTROL
            build.decode(RunRecord.objects.get(pk=arm.run_id), index, texts, by=process)
        reconcile()
    return experiment


def page(client: Client, experiment: ExperimentRecord) -> str:
    answer = client.get(f"/lab/{experiment.pk}/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_an_experiment_is_planned_confirmed_and_cancelled_by_buttons(
    engineer: Client, planned: ExperimentRecord
) -> None:
    form = {"suite": "colours", "endpoint": "local", "profile": "pinned", "runs": "5", "temperature": "0.7"}
    answer = engineer.post("/lab/", form)
    made = ExperimentRecord.objects.latest("id")
    assert answer["Location"] == f"/lab/{made.pk}/"
    text = page(engineer, made)
    for words in ("Nothing has been decoded yet", "prefix cache", "sampler", "not known", "Not measured here"):
        assert words in text
    assert "Start</button>" in text
    engineer.post(f"/lab/{made.pk}/start/")
    assert "The control is running" in page(engineer, made)
    assert "0 of 25" in engineer.get(f"/lab/{made.pk}/?part=progress").content.decode()
    engineer.post(f"/lab/{made.pk}/cancel/")
    assert "Go on with what is missing" in page(engineer, made)
    engineer.post(f"/lab/{made.pk}/resume/", {"budget_minutes": "30"})
    assert ExperimentRecord.objects.get(pk=made.pk).budget_minutes == 30
    engineer.post(f"/lab/{made.pk}/cancel/")
    engineer.post(f"/lab/{made.pk}/delete/")
    assert list(ExperimentRecord.objects.all()) == [planned]


def test_what_is_wrong_stands_at_its_field(engineer: Client, planned: ExperimentRecord) -> None:
    sent = {"suite": "colours", "endpoint": "local", "profile": "pinned", "runs": "5", "temperature": "9"}
    refused = engineer.post("/lab/", sent)
    assert refused.status_code == 422
    assert "Must be above 0 and at most 2." in refused.content.decode()


def test_the_page_has_the_sentence_the_table_and_a_link_for_each_dot(
    engineer: Client, planned: ExperimentRecord
) -> None:
    text = page(engineer, served(planned, "batch"))
    assert "<strong><bdi>Batching moves this score (±16.7 points);</bdi></strong>" in text
    assert "no visible effect of the order of cases" in text
    run = planned.arms.get(source="batch").run_id
    assert text.count(f'<a href="/runs/{run}/"><title>') == 5
    assert "5 of 5 equal to the bit" in text
    assert "Copy as Markdown" in text
    assert f'href="/api/v1/experiments/{planned.pk}/report.md"' in text
    assert "blameless" not in text
    assert "Batching moves this score" in engineer.get("/lab/").content.decode()


@pytest.mark.nightly
def test_a_source_that_moves_every_run_alike_says_how_far_from_the_control(
    engineer: Client, planned: ExperimentRecord
) -> None:
    text = page(engineer, served(planned, "batch", passes=range(1, 6)))
    assert text.count(" from the control</span>") == 1
    assert '<span class="under">−33.3 from the control</span>' in text


@pytest.mark.nightly
def test_where_the_control_moved_no_finding_is_shown_as_one(engineer: Client, planned: ExperimentRecord) -> None:
    text = page(engineer, served(planned, "control", "batch"))
    assert "nothing below can be attributed to its source" in text
    assert 'class="sources blameless"' in text


def test_who_may_not_start_runs_is_offered_no_button(viewer: Client, planned: ExperimentRecord) -> None:
    text = page(viewer, planned)
    assert "Start</button>" not in text
    assert "Delete" not in text
    assert "Plan it" not in viewer.get("/lab/").content.decode()
    assert viewer.post(f"/lab/{planned.pk}/start/").status_code == 403


@pytest.mark.nightly
def test_equal_scores_are_one_ring_and_others_stand_beside_each_other(planned: ExperimentRecord) -> None:
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
    assert strips.band is not None
    assert strips.band.x < max(dot.x for dot in dots) < strips.band.end
    assert all(0 < dot.x < 100 for dot in dots)


@pytest.mark.nightly
def test_a_thousand_equal_scores_stay_within_their_row(planned: ExperimentRecord) -> None:
    detail = experiment_detail(served(planned, "batch").pk)
    batch = next(row for row in detail.rows if row.source == "batch")
    points = tuple(LabPoint(score=score, run="1", repeat=at, name="") for at in range(1, 101) for score in (40.0, 60.0))
    many = detail.model_copy(update={"rows": (batch.model_copy(update={"points": points}),)})
    strips: Any = draw_strips(many)
    ys = [dot.y for dot in strips.rows[0].dots]
    assert 3 <= min(ys) < max(ys) <= 41


@cast
def bisected() -> ExperimentRecord:
    """A bisect of two runs that differ in their dtype and in one setting of the engine; it is the dtype."""
    build.suite()
    build.endpoint()
    build.endpoint("half", dtype="bfloat16")
    build.profile()
    pinned = DEFAULT_PROFILES["pinned"]["settings"]
    compiled = {**pinned["engine"], "enforce_eager": False}
    create_profile(slug="compiled", title="Compiled", settings={**pinned, "engine": compiled})
    ours = build.finished_run(CONTROL)
    theirs = build.finished_run(MOVED, on="half", under="compiled", by=build.process(build.bucket("bfloat16")))
    experiment = plan_bisect(baseline=ours.pk, candidate=theirs.pk, user=build.user("planner"))
    start_experiment(experiment_id=experiment.pk)
    reconcile()
    while (arm := experiment.arms.filter(status="running").first()) is not None:
        texts = MOVED if "dtype" in arm.turned else CONTROL
        bucket = build.bucket(arm.endpoint.dtype)
        build.decode(RunRecord.objects.get(pk=arm.run_id), 1, dict(enumerate(texts)), by=build.process(bucket))
        reconcile()
    return experiment


def test_the_page_of_a_bisect_says_which_change_moved_it(engineer: Client, bisected: ExperimentRecord) -> None:
    text = page(engineer, bisected)
    runs = bisected.plan["runs"]
    for words in (
        "Which change moved it?",
        "dtype alone causes 1 of 1 flips, and undoing it removes 1 of 1.",
        "tried both ways",
        "+ dtype bfloat16",
        "candidate as it was",
        "2 further cases that did not move were controls: none moved in any step.",
        f"evalboard bisect {runs[0]} {runs[1]} --cases 1",
        "Copy as Markdown",
    ):
        assert words in text
    assert f'href="/compare/{runs[0]}/{runs[1]}/cases/sea/"' in text
    assert text.count('data-shown="candidate"') == 2
    delete_run(run_id=runs[1])
    text = page(engineer, bisected)
    assert f"/compare/{runs[0]}" not in text
    assert "the cause" in text


def test_a_refused_form_asks_for_news_of_the_list_and_not_of_the_forms_address(engineer: Client, db: None) -> None:
    refused = engineer.post("/lab/bisect/", {"baseline": "1"})
    assert refused.status_code == 422
    polled = re.search(r'id="live-rows" hx-get="([^"]+)"', refused.content.decode())[1]
    assert polled.startswith("/lab/?part=rows")
    assert engineer.get(unescape(polled)).status_code == 204


def test_a_bisect_is_planned_from_the_form_and_refused_at_its_fields(
    engineer: Client, bisected: ExperimentRecord
) -> None:
    runs = bisected.plan["runs"]
    sent = {"baseline": runs[0], "candidate": runs[1], "cases": "5"} | form_key(engineer.get("/lab/"))
    n_before = ExperimentRecord.objects.count()
    answer, again = (engineer.post("/lab/bisect/", sent) for _ in range(2))
    assert (answer["Location"], ExperimentRecord.objects.count()) == (again["Location"], n_before + 1)
    made = ExperimentRecord.objects.latest("id")
    assert (answer["Location"], made.kind) == (f"/lab/{made.pk}/", "bisect")
    assert "Nothing has been decoded yet" in page(engineer, made)
    same = engineer.post("/lab/bisect/", {"baseline": runs[0], "candidate": runs[0], "cases": "5"})
    assert same.status_code == 422
    assert "Must be another run." in same.content.decode()
    assert engineer.post("/lab/bisect/", {"baseline": "x"}).status_code == 422
    filled = engineer.get(f"/lab/?baseline={runs[0]}&candidate={runs[1]}").content.decode()
    assert f'value="{runs[0]}" selected' in filled
    assert engineer.post("/lab/bisect/", {"baseline": runs[0], "candidate": "999999", "cases": "5"}).status_code == 422


def test_a_plan_above_its_budget_says_so_before_it_starts(engineer: Client, planned: ExperimentRecord) -> None:
    arms = ExperimentArm.objects.filter(experiment=planned)
    for arm in arms:
        arms.filter(pk=arm.pk).update(cost={**arm.cost, "minutes": 2.0})
    ExperimentRecord.objects.filter(pk=planned.pk).update(budget_minutes=3.0)
    total = 2.0 * len(arms)
    assert f"The estimate of {total} min is above the budget of 3.0 min" in page(engineer, planned)
    ExperimentRecord.objects.filter(pk=planned.pk).update(budget_minutes=total)
    assert "above the budget" not in page(engineer, planned)


@pytest.mark.nightly
def test_the_runs_of_an_experiment_are_not_offered_to_compare_with(bisected: ExperimentRecord) -> None:
    ours, theirs = bisected.plan["runs"]
    rows = tuple(run_rows())
    assert {row.id for row in comparing.with_answers(rows)} >= {str(ours), str(theirs)}
    ExperimentArm.objects.filter(experiment=bisected).update(run=theirs)
    assert str(theirs) not in {row.id for row in comparing.with_answers(rows)}


def test_only_who_may_start_runs_plans_a_bisect(viewer: Client, bisected: ExperimentRecord) -> None:
    assert viewer.post("/lab/bisect/", {"baseline": "1", "candidate": "2"}).status_code == 403
