"""Pages of sampled runs: how they were drawn, what differs between draws, and that one draw shows no noise."""

import math
import re

import pytest

from runs.catalogue import create_policy, store_default_policies
from runs.models import RepeatScore, RunRecord
from runs.release import release_report
from runs.suites import rescore_run
from runs.suites.noise import bucket_noises
from runs.suites.read_history import histories
from tests import build
from tests.casts import cast
from tests.runs import judged

pytestmark = pytest.mark.django_db
SOMETIMES = {0: (1, 2), 1: (2, 5), 2: (3,), 3: (1, 4, 5)}


def text_of(page):
    return re.sub(r"\s+", " ", page.content.decode())


@cast
def sampled():
    """A run of seed 7, and below one of seed 8 and one of a seed that nobody named."""
    return judged.run(judged.suite(n_cases=60), SOMETIMES, by=build.process(), under="sampled", seed=7)


def like(run, **changes):
    by = run.bucket.engine_processes.get()
    return judged.run(run.suite_version, SOMETIMES, by=by, under="sampled", **changes)


@cast
def other(sampled):
    return like(sampled, seed=8)


@cast
def unnamed():
    return judged.run(judged.suite(n_cases=60), SOMETIMES, by=build.process(), under="sampled")


@pytest.mark.nightly
def test_a_sampled_run_says_how_it_was_drawn_and_raises_no_alarm(sampled, engineer):
    page = text_of(engineer.get(f"/runs/{sampled.pk}/"))
    assert re.search(r"<bdi>seed</bdi> <bdi>7</bdi>|seed 7[,<]", page.split("<dt>sampling</dt>")[1][:400])
    assert "Add repeats" in page
    assert "sampled, T = 0.7, seed 7" in page
    assert "4 cases differ between samples" in page
    assert re.search(r'only=unstable#cases">differ between draws <b>4</b>', page)
    assert "changed their score between repeats" not in page


@pytest.mark.nightly
def test_a_twin_is_called_byte_identical_and_a_run_of_another_seed_is_not(sampled, other, viewer):
    again = like(sampled, seed=7)
    page = text_of(viewer.get(f"/runs/{again.pk}/"))
    assert f'Byte-identical to <a href="/runs/{sampled.pk}/">' in page
    assert "sampled again with the same seed" in page
    assert "Byte-identical" not in text_of(viewer.get(f"/runs/{other.pk}/"))


def test_one_draw_reads_one_draw_and_never_as_no_noise(unnamed, engineer):
    RunRecord.objects.filter(pk=unnamed.pk).update(seed=None, is_one_draw=True)
    page = text_of(engineer.get(f"/runs/{unnamed.pk}/"))
    assert "Add repeats" not in page  # they would be the same draw
    assert "sampled, T = 0.7, one draw" in page
    assert "points in one sample." in page
    assert "Not known from one sample." in page
    assert "Noise floor" not in page
    suite = text_of(engineer.get("/suites/sample/"))
    assert "share one seed, so its noise is unknown" in suite
    assert "resolves" not in suite


@pytest.mark.nightly
def test_a_suites_noise_takes_each_seed_once(unnamed):
    """Two runs of one seed are the same five draws, so that ten repeats would look steadier than they are."""
    like(unnamed)
    assert n_measured(unnamed) == [5]
    like(unnamed, seed=7)
    assert n_measured(unnamed) == [10]
    judged.run(unnamed.suite_version, by=build.process())  # of the same bucket, and nothing was drawn
    assert n_measured(unnamed) == [5]


@pytest.mark.nightly
@pytest.mark.parametrize(("batch_class", "batch_part"), [("alone", "all of it from sampling"), ("fixed-8", "together")])
def test_draws_in_fixed_groups_are_also_moved_by_the_batch(batch_class, batch_part):
    """Answers that are drawn are of other lengths each time, so a group of fixed size decodes them in other batches."""
    process = build.process(build.bucket(batch_class=batch_class))
    run = judged.run(judged.suite(n_cases=60), SOMETIMES, by=process, under="sampled")
    [measured] = bucket_noises(histories(run.suite_version), version_id=run.suite_version_id, n_cases=60).values()
    assert batch_part in measured.split


def n_measured(run):
    found = bucket_noises(histories(run.suite_version), version_id=run.suite_version_id, n_cases=60)
    return [measured.n_repeats for measured in found.values()]


@pytest.mark.nightly
def test_a_release_says_in_one_sentence_why_it_may_be_believed(unnamed, engineer):
    ours, theirs = unnamed, like(unnamed)
    release = judged.release(ours, theirs)
    page = text_of(engineer.get(f"/releases/{release.pk}/"))
    assert "Both sides use seed 42, and samples of one seed are compared." in page
    assert "unstable case" not in page
    RunRecord.objects.filter(pk=ours.pk).update(seed=None, is_one_draw=True)
    page = text_of(engineer.get(f"/releases/{judged.release(ours, theirs).pk}/"))
    assert "They count as one sample" in page
    assert "Run the baseline again" in page
    assert ">one sample</span>" in page


@pytest.mark.nightly
def test_running_a_side_again_takes_the_seed_of_the_other(sampled, other, engineer):
    release = judged.release(sampled, other)
    address = f"/releases/{release.pk}/rerun/?gate=0&side=candidate"
    answer = engineer.post(address, {"what": "suite", "endpoint": "local"})
    assert answer.status_code == 302
    assert RunRecord.objects.latest("pk").seed == 7


@pytest.mark.nightly
def test_the_form_takes_a_seed_and_says_where_one_can_mean_nothing(engineer, db):
    build.suite()
    build.endpoint()
    build.profile()
    build.profile("sampled")
    asked = {"suite": "colours", "endpoint": "local", "profile": "sampled", "repeats": 2, "seed": "7"}
    assert engineer.post("/runs/new/", asked).status_code == 302
    assert RunRecord.objects.get().seed == 7
    refused = engineer.post("/runs/new/", {**asked, "profile": "pinned"})
    assert (refused.status_code, "temperature 0" in text_of(refused)) == (422, True)
    assert engineer.post("/runs/new/", {**asked, "seed": ""}).status_code == 302
    assert RunRecord.objects.latest("pk").seed == 42


@pytest.mark.nightly
def test_several_draws_of_a_case_stand_on_the_pages_of_run_suite_and_release(sampled, engineer):
    """56 of 60 cases always pass; of the four others 3, 3, 4 and 2 draws of 5 do, as SOMETIMES has them wrong."""
    section = text_of(engineer.get(f"/runs/{sampled.pk}/")).split('id="draws"')[1].split("</section>")[0]
    cells = {
        name: [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", rest)]
        for name, rest in re.findall(r'<th scope="row" class="keep">(.*?)</th>(.*?)</tr>', section)
    }
    assert list(cells) == ["avg@5", "pass@2", "pass@5", "pass^2", "pass^5", "maj@5"]
    assert cells["avg@5"][0] == "97.3"
    assert cells["pass@5"][:2] == ["100.0", "–"]  # every case passed once; no draw is left to measure it by
    assert cells["pass^5"][0] == "93.3"
    assert cells["maj@5"][0] == "98.3"  # the last of the four has 3 wrong answers that agree
    assert cells["pass@2"][1] != "–"
    assert "pass@5 and pass^5: no interval on these cases. All samples of a case are used" in section
    assert "maj@5: no interval on these cases. A vote of fewer samples is a different vote" in section
    assert "at least one is right 100.0 times in 100, and all of them 93.3." in section
    assert "pass^5 93.3" in re.sub(r"<[^>]+>", "", text_of(engineer.get("/suites/sample/")))
    page = text_of(engineer.get(f"/releases/{judged.release(sampled, like(sampled, seed=8)).pk}/"))
    assert "how often all of 5 samples are right" in page
    greedy = judged.run(sampled.suite_version, SOMETIMES, by=build.process())
    assert 'id="draws"' not in text_of(engineer.get(f"/runs/{greedy.pk}/"))


@pytest.mark.nightly
def test_metrics_that_draws_do_not_have_are_named_with_the_reason(unnamed, engineer):
    RepeatScore.objects.filter(repeat__run=unnamed).update(answers=None)  # as scored by an earlier version
    page = text_of(engineer.get(f"/runs/{unnamed.pk}/"))
    assert "maj@n is left out: the answers were not stored." in page
    rescore_run(run_id=unnamed.pk)
    assert "maj@5" in text_of(engineer.get(f"/runs/{unnamed.pk}/"))
    unlike = judged.suite("unlike", n_cases=60, scorer={"kind": "contains"})
    page = text_of(engineer.get(f"/runs/{judged.run(unlike, SOMETIMES, by=build.process(), under='sampled').pk}/"))
    assert ("maj@5" in page, "the scorer extracts no answer" in page) == (False, True)


@pytest.mark.nightly
def test_a_release_is_judged_by_the_metric_that_its_policy_names(engineer):
    """Both sides are right equally often; of two draws one is right more often where the draws of a case differ."""
    sure = judged.run(judged.suite(n_cases=60), {n: range(1, 6) for n in range(5)}, by=build.process(), under="sampled")
    unsure = judged.run(sure.suite_version, dict.fromkeys(range(25), (1,)), by=build.process(), under="sampled")
    settings = {"rule": "paired", "tolerance_points": 1.0, "metric": "pass@2"}
    store_default_policies()
    create_policy(slug="of-two", title="One of two draws", settings=settings)
    by_mean = judged.release(unsure, sure, policy="paired")
    release = judged.release(unsure, sure, policy="of-two")
    assert release_report(by_mean.pk).headline.difference == 0.0
    gate = release_report(release.pk).headline
    assert (gate.metric, gate.verdict) == ("pass@2", "no_ship")
    assert (gate.baseline.score, gate.candidate.score) == (100.0, pytest.approx(100 * 55 / 60))
    page = text_of(engineer.get(f"/releases/{release.pk}/"))
    assert "60 cases, by pass@2" in page
    assert "sample by pass@2 fell from 100.0 to 91.7." in page
    assert "The drop is larger than the 1.0 point you accept" in page
    assert "paired, by pass@2" in text_of(engineer.get("/settings/"))


@pytest.mark.nightly
def test_what_moves_the_score_between_repeats_stands_in_one_line(sampled, engineer):
    line = re.compile(r"Repeats differ by \S+ points, all of it from sampling\. No second backend answered\.")
    assert line.search(text_of(engineer.get(f"/runs/{sampled.pk}/")))
    assert line.search(text_of(engineer.get("/suites/sample/")))
    assert line.search(text_of(engineer.get(f"/releases/{judged.release(sampled, like(sampled, seed=8)).pk}/")))
    by = build.process(build.bucket(batch_class="mixed"))
    mixed = judged.run(sampled.suite_version, {0: (1, 2), 1: (2, 5), 7: (3,)}, by=by, under="sampled", seed=9)
    page = text_of(engineer.get(f"/runs/{mixed.pk}/"))
    assert "from sampling and batching together" in page
    assert "To separate them, run the same seed under another batch class." in page
    same = judged.run(sampled.suite_version, {0: (1, 2), 1: (2, 5), 7: (3,)}, by=by, under="sampled", seed=7)
    both = re.compile(r"Repeats differ by (\S+) points: sampling (\S+), batching (\S+)\.")
    total, sampler, batch = map(float, both.search(text_of(engineer.get(f"/runs/{same.pk}/"))).groups())
    assert min(sampler, batch) > 0
    assert total == pytest.approx(math.hypot(sampler, batch), abs=0.1)
    page = text_of(engineer.get("/suites/sample/"))
    assert "To separate them" not in page
    assert line.search(page)
    assert both.search(page)
