"""A suite's history as a figure: nothing pooled, nothing joined across a rotation."""

import json
from datetime import UTC, datetime, timedelta

from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.run import Draws
from evalboard.contract.suite import BucketHistory, BucketOfHistory, HistoryRow, SuiteVersion
from evalboard.core.profile import UNKNOWN_STACK
from frontend.suites import baselines, history, words
from runs.suites import SuiteReport

START = datetime(2026, 11, 1, tzinfo=UTC)


def served_by(bucket: int, digest: str) -> BucketOfHistory:
    stack = FingerprintNamed(id=str(bucket), digest=digest * 16, label="vLLM")
    return BucketOfHistory(id=str(bucket), model="paint-1b", fingerprint=stack.digest, batch_class="alone", stack=stack)


def point(run_id: int, day: float, points: tuple[float, ...], *, endpoint: str = "local") -> HistoryRow:
    span = (min(points), max(points)) if points else None
    return HistoryRow(
        run=str(run_id),
        suite_version=1,
        date=START + timedelta(days=day),
        status="finished",
        waiting_for=None,
        endpoint=endpoint,
        profile="pinned",
        profile_version=1,
        bucket=served_by(1, "5be2"),
        repeats=points,
        n_buckets=1,
        warnings=(),
        range=span,
        url=f"/runs/{run_id}/",
        range_so_far=span,
        n_repeats=5,
        line="",
        draws=Draws(),
        is_imported=False,
    )


def bucket(id_: int, digest: str, *points: HistoryRow) -> BucketHistory:
    named = served_by(id_, digest)
    return BucketHistory(**dict(named), runs=tuple(each.model_copy(update={"bucket": named}) for each in points))


def report(*buckets: BucketHistory) -> SuiteReport:
    suite = SuiteVersion(
        slug="colours",
        title="Colours",
        version=1,
        digest="d" * 64,
        n_cases=24,
        max_tokens=24,
        stop=(),
        scorer={},
        created_at=START,
        url="/suites/colours/versions/1/",
    )
    return SuiteReport(suite=suite, version_id=1, versions=(), buckets=buckets)


def test_a_rotation_is_a_new_fingerprint_on_the_same_endpoint_and_profile():
    old = bucket(1, "5be2", point(1, 0, (80.0,)), point(2, 1, (81.0,)))
    new = bucket(2, "a81c", point(3, 2, (79.0,)))
    (turn,) = baselines.rotations((old, new))
    assert (turn.before.digest[:4], turn.after.digest[:4], turn.run_id) == ("5be2", "a81c", 3)


def test_a_server_that_names_nothing_has_not_rotated():
    old, new = bucket(1, "5be2", point(1, 0, (80.0,))), bucket(2, "a81c", point(2, 1, (81.0,)))
    unnamed = new.runs[0].bucket.stack.model_copy(update={"label": UNKNOWN_STACK})
    runs = tuple(
        each.model_copy(update={"bucket": each.bucket.model_copy(update={"stack": unnamed})}) for each in new.runs
    )
    assert len(baselines.rotations((old, new))) == 1
    assert baselines.rotations((old, new.model_copy(update={"runs": runs}))) == ()


def test_two_endpoints_side_by_side_are_no_rotation():
    one = bucket(1, "5be2", point(1, 0, (80.0,)))
    other = bucket(2, "a81c", point(2, 1, (81.0,), endpoint="other"))
    assert baselines.rotations((one, other)) == ()


def test_every_repeat_is_a_mark_and_no_line_joins_two_runs():
    made = history.figure(report(bucket(1, "5be2", point(1, 0, (80.0, 82.0)), point(2, 1, (81.0, 81.5, 81.0)))))
    bars, marks = made["data"]
    assert len(marks["x"]) == 5
    assert bars["y"] == [80.0, 82.0, None, 81.0, 81.5, None]
    json.dumps(made, allow_nan=False)


def test_buckets_differ_in_shape():
    made = history.figure(report(bucket(1, "5be2", point(1, 0, (80.0,))), bucket(2, "a81c", point(2, 1, (81.0,)))))
    assert len({trace["meta"]["symbol"] for trace in made["data"]}) == 2
    assert len([trace["name"] for trace in made["data"] if "name" in trace]) == 2, "the legend of an image"


def stray(run_id, day, points):
    """A run that two buckets served: this one only a little of it."""
    return point(run_id, day, points).model_copy(update={"n_buckets": 2})


def test_a_share_of_a_mixed_run_does_not_stretch_the_axis_and_is_named_where_it_leaves_it():
    usual = bucket(1, "5be2", point(1, 0, (80.0, 82.0)), point(2, 1, (81.0, 81.5)), stray(3, 2, (81.0, 81.2)))
    torn = bucket(2, "a81c", stray(3, 2, (20.0, 100.0)))
    layout = history.figure(report(usual, torn))["layout"]
    low, high = layout["yaxis"]["range"]
    assert (low < 80, low > 70, high < 90) == (True, True, True)
    beyond = [words for words in layout["annotations"] if words["name"] == "beyond"]
    assert [(words["text"], words["y"]) for words in beyond] == [("run 3 ↓ 20.0", low), ("run 3 ↑ 100.0", high)]


def test_where_all_runs_are_mixed_they_set_the_axis():
    layout = history.figure(report(bucket(1, "5be2", stray(1, 0, (20.0, 90.0)))))["layout"]
    assert layout["yaxis"]["range"][0] < 20
    assert not [words for words in layout["annotations"] if words["name"] == "beyond"]


def test_names_at_an_edge_never_touch():
    usual = bucket(1, "5be2", point(1, 0, (80.0, 82.0)), point(2, 30, (81.0, 81.5)))
    torn = bucket(2, "a81c", *(stray(10 + n, n, (10.0, 20.0)) for n in range(30)))
    layout = history.figure(report(usual, torn))["layout"]
    beyond = [words for words in layout["annotations"] if words["name"] == "beyond"]
    assert beyond[0]["text"].startswith("run 39 ↓ 10.0 and ")
    assert len(beyond) <= 5
    named = sum(1 + int(words["text"].rpartition("and ")[2].split()[0]) for words in beyond if "more" in words["text"])
    assert named + sum("more" not in words["text"] for words in beyond) == 30


def test_one_bucket_alone_is_drawn_on_its_own_axis():
    one, other = bucket(1, "5be2", point(1, 0, (80.0, 82.0))), bucket(2, "a81c", point(2, 1, (40.0, 41.0)))
    figure = history.figure(report(one, other), only=other)
    assert len(figure["data"]) == 2
    assert figure["layout"]["yaxis"]["range"][1] < 50


def test_without_scores_there_is_no_figure():
    assert history.figure(report(bucket(1, "5be2", point(1, 0, ())))) is None


def test_the_finding_never_compares_across_buckets():
    old = bucket(1, "5be2", point(1, 0, (90.0, 91.0)))
    new = bucket(2, "a81c", point(2, 1, (70.0, 71.0), endpoint="other"))
    said = words.describe_suite(report(old, new))
    assert "70.0–71.0" in said.claim
    assert "90.0" not in said.claim + said.rest
    assert "First run of this model on this server." in said.rest
