"""The noise of a run as a program reads it."""

import pytest

from tests import build
from tests.api.conftest import Api

FIELDS = {
    "n_repeats",
    "n_draws",
    "does_first_differ",
    "disagreement_rate",
    "sd_points",
    "expected_range_points",
    "range5_points",
    "n_unstable",
    "n_likely_to_flip",
    "interval",
    "reach",
    "level",
    "split",
    "overdispersion",
    "is_overdispersed",
    "texts_alike",
    "scores_alike",
    "resolution",
}


def test_a_finished_run_says_how_much_its_score_moves(api: Api) -> None:
    body = api.get(f"/runs/{build.finished_run().pk}/").json()
    found = body["noise"]
    assert set(found) == FIELDS
    assert found == body["buckets"][0]["noise"]
    assert (found["n_repeats"], found["n_unstable"], found["level"]) == (2, 1, 0.9)
    assert (found["n_draws"], found["does_first_differ"]) == (None, False)  # all repeats are draws
    assert found["range5_points"] == pytest.approx(100 / 3)
    for low, high in (found["interval"], found["reach"]):
        assert 0 <= low < 50 < high <= 100
    assert set(found["resolution"]) == {"repeats", "points", "elsewhere_points", "churn"}


def test_a_run_at_work_says_nowhere_yet_where_its_score_lies(api: Api) -> None:
    run = build.run(repeats=3)
    for repeat in (1, 2):
        build.decode(run, repeat, ("blue", "blue", "red"))
    found = api.get(f"/runs/{run.pk}/").json()["noise"]
    assert (found["interval"], found["reach"], found["level"], found["range5_points"]) == (None, None, None, None)
    assert found["disagreement_rate"] == 0


def test_a_run_of_two_buckets_has_noise_by_bucket_only(api: Api) -> None:
    float32, bfloat16 = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    run = build.run(repeats=2)
    build.decode(run, 1, ("blue", "blue", "red"), by=[float32, float32, bfloat16])
    build.decode(run, 2, ("blue", "red", "red"), by=[float32, float32, bfloat16])
    body = api.get(f"/runs/{run.pk}/").json()
    assert set(body["noise"]) == FIELDS
    assert (body["noise"]["n_unstable"], body["noise"]["n_draws"]) == (None, None)
    assert [bucket["noise"]["n_unstable"] for bucket in body["buckets"]] == [1, 0]


def test_responses_say_how_likely_their_case_is_to_flip(api: Api) -> None:
    run = build.run(repeats=2)
    build.decode(run, 1, ("blue", "red", None), logprob=-2.0)  # "red" and "blue" exactly tied
    build.decode(run, 2, ("blue", "red", "red"))
    rows = api.get(f"/runs/{run.pk}/responses/").json()["results"]
    assert [row["flip_chance"] for row in rows] == [0.5, 0.5, None, 0.5, 0.5, None]
    assert api.get(f"/runs/{run.pk}/").json()["noise"]["n_likely_to_flip"] == 2
