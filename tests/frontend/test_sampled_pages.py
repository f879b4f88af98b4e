"""Pages of sampled runs: how they were drawn, what differs between draws, and that one draw shows no noise."""

import re

import pytest

from runs.models import Run
from runs.selectors.suite_history import histories
from runs.selectors.suite_noise import bucket_noises
from tests import build
from tests.runs import judged

pytestmark = pytest.mark.django_db
SOMETIMES = {0: (1, 2), 1: (2, 5), 2: (3,), 3: (1, 4, 5)}


def text_of(page):
    return re.sub(r"\s+", " ", page.content.decode())


@pytest.fixture
def sampled():
    version, process = judged.suite(n_cases=60), build.process()

    def make(**changes):
        return judged.run(version, SOMETIMES, by=process, under="sampled", **changes)

    return make


def test_a_sampled_run_says_how_it_was_drawn_and_raises_no_alarm(sampled, engineer):
    page = text_of(engineer.get(f"/runs/{sampled(seed=7).pk}/"))
    assert re.search(r"<bdi>seed</bdi> <bdi>7</bdi>|seed 7[,<]", page.split("<dt>sampling</dt>")[1][:400])
    assert "Add repeats" in page
    assert "sampled, T = 0.7, seed 7" in page
    assert "4 cases differ between draws" in page
    assert "Cases that differ between draws" in page
    assert "Differ between draws" in page


def test_a_twin_is_called_byte_identical_and_a_run_of_another_seed_is_not(sampled, viewer):
    first, again, other = sampled(seed=7), sampled(seed=7), sampled(seed=8)
    page = text_of(viewer.get(f"/runs/{again.pk}/"))
    assert f'Byte-identical to <a href="/runs/{first.pk}/">' in page
    assert "drawn anew from the same seed" in page
    assert "Byte-identical" not in text_of(viewer.get(f"/runs/{other.pk}/"))


def test_one_draw_reads_one_draw_and_never_as_no_noise(sampled, engineer):
    run = sampled()
    Run.objects.filter(pk=run.pk).update(seed=None, is_one_draw=True)
    page = text_of(engineer.get(f"/runs/{run.pk}/"))
    assert "Add repeats" not in page  # they would be the same draw
    assert "sampled, T = 0.7, one draw" in page
    assert "points in one draw." in page
    assert "Not known from one draw." in page
    assert "Noise floor" not in page
    suite = text_of(engineer.get("/suites/sample/"))
    assert "are one draw, so its noise is not known" in suite
    assert "resolves" not in suite


def test_a_suites_noise_takes_each_seed_once(sampled):
    """Two runs of one seed are the same five draws, so that ten repeats would look steadier than they are."""
    run, _ = sampled(), sampled()
    assert n_measured(run) == [5]
    sampled(seed=7)
    assert n_measured(run) == [10]
    judged.run(run.suite_version, by=build.process())  # of the same bucket, and nothing was drawn
    assert n_measured(run) == [5]


def n_measured(run):
    found = bucket_noises(histories(run.suite_version), n_cases=60)
    return [measured.n_repeats for measured in found.values()]


def test_a_release_says_in_one_sentence_why_it_may_be_believed(sampled, engineer):
    ours, theirs = sampled(), sampled()
    release = judged.release(ours, theirs)
    page = text_of(engineer.get(f"/releases/{release.pk}/"))
    assert "both sides were drawn by seed 42, and each draw is held against that of the same seeds." in page
    assert "unstable case" not in page
    Run.objects.filter(pk=ours.pk).update(seed=None, is_one_draw=True)
    page = text_of(engineer.get(f"/releases/{judged.release(ours, theirs).pk}/"))
    assert "so they are one draw" in page
    assert "Run the baseline again" in page
    assert ">one draw</span>" in page


def test_running_a_side_again_takes_the_seed_of_the_other(sampled, engineer):
    ours, theirs = sampled(seed=7), sampled(seed=8)
    release = judged.release(ours, theirs)
    address = f"/releases/{release.pk}/rerun/?gate=0&side=candidate"
    answer = engineer.post(address, {"what": "suite", "endpoint": "local"})
    assert answer.status_code == 302
    assert Run.objects.latest("pk").seed == 7


def test_the_form_takes_a_seed_and_says_where_one_can_mean_nothing(engineer, db):
    build.suite()
    build.endpoint()
    build.profile()
    build.profile("sampled")
    asked = {"suite": "colours", "endpoint": "local", "profile": "sampled", "repeats": 2, "seed": "7"}
    assert engineer.post("/runs/new/", asked).status_code == 302
    assert Run.objects.get().seed == 7
    refused = engineer.post("/runs/new/", {**asked, "profile": "pinned"})
    assert (refused.status_code, "temperature 0" in text_of(refused)) == (422, True)
    assert engineer.post("/runs/new/", {**asked, "seed": ""}).status_code == 302
    assert Run.objects.latest("pk").seed == 42
