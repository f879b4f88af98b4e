"""A suite's history as a figure: nothing pooled, nothing joined across a rotation."""

import json
from datetime import UTC, datetime, timedelta

from frontend import baseline_bands, history, suite_words
from runs.selectors.suite import BucketHistory, HistoryPoint, SuiteReport

START = datetime(2026, 11, 1, tzinfo=UTC)


def point(
    run_id: int, day: float, points: tuple[float, ...], *, endpoint: str = "local", bucket: int = 1
) -> HistoryPoint:
    return HistoryPoint(
        run_id=run_id,
        at=START + timedelta(days=day),
        bucket_id=bucket,
        points=points,
        range=(min(points), max(points)) if points else None,
        n_repeats=5,
        status="finished",
        endpoint=endpoint,
        profile="pinned",
    )


def bucket(id_: int, digest: str, *points: HistoryPoint) -> BucketHistory:
    return BucketHistory(
        bucket_id=id_,
        model_name="paint-1b",
        fingerprint_digest=digest * 16,
        fingerprint_label="vLLM",
        batch_class="alone",
        points=points,
    )


def report(*buckets: BucketHistory) -> SuiteReport:
    return SuiteReport(
        slug="colours",
        title="Colours",
        version=1,
        digest="d" * 64,
        n_cases=24,
        points_per_case=100 / 24,
        max_tokens=24,
        scorer={},
        versions=(),
        buckets=buckets,
        cases=(),
    )


def test_a_rotation_is_a_new_fingerprint_on_the_same_endpoint_and_profile():
    old = bucket(1, "5be2", point(1, 0, (80.0,)), point(2, 1, (81.0,)))
    new = bucket(2, "a81c", point(3, 2, (79.0,)))
    (turn,) = baseline_bands.rotations((old, new))
    assert (turn.before[:4], turn.after[:4], turn.run_id) == ("5be2", "a81c", 3)


def test_two_endpoints_side_by_side_are_no_rotation():
    one = bucket(1, "5be2", point(1, 0, (80.0,)))
    other = bucket(2, "a81c", point(2, 1, (81.0,), endpoint="other"))
    assert baseline_bands.rotations((one, other)) == ()


def test_every_repeat_is_a_mark_and_no_line_joins_two_runs():
    made = history.figure(report(bucket(1, "5be2", point(1, 0, (80.0, 82.0)), point(2, 1, (81.0, 81.5, 81.0)))))
    bars, marks = made["data"]
    assert len(marks["x"]) == 5
    assert bars["y"] == [80.0, 82.0, None, 81.0, 81.5, None]
    json.dumps(made, allow_nan=False)


def test_buckets_differ_in_shape():
    made = history.figure(report(bucket(1, "5be2", point(1, 0, (80.0,))), bucket(2, "a81c", point(2, 1, (81.0,)))))
    assert len({trace["meta"]["symbol"] for trace in made["data"]}) == 2


def test_without_scores_there_is_no_figure():
    assert history.figure(report(bucket(1, "5be2", point(1, 0, ())))) is None


def test_the_finding_never_compares_across_buckets():
    old = bucket(1, "5be2", point(1, 0, (90.0, 91.0)))
    new = bucket(2, "a81c", point(2, 1, (70.0, 71.0), endpoint="other"))
    said = suite_words.of_suite(report(old, new))
    assert "70.0–71.0" in said.claim
    assert "90.0" not in said.claim + said.rest
    assert "first of its bucket" in said.rest
