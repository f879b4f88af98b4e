"""Both sides of a release asked for at once: workers decode their repeats in turn, and the release says so."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from evalboard.core.errors import InvalidInput, NotFound
from runs.models import Event, RepeatRecord, RunRecord
from runs.release import release_report
from runs.run import create_pair
from runs.work import claim_shard
from tests import build
from tests.nightly import few
from tests.runs import judged, logs
from tests.runs.judged import SAMPLE_POLICY

pytestmark = pytest.mark.django_db


def order(**changes: Any) -> dict[str, Any]:
    return {"suite": "colours", "endpoint": "local", "profile": "fast", "repeats": 3, **changes}


@pytest.fixture
def stage() -> None:
    build.suite()
    build.endpoint()
    build.endpoint("other")
    build.profile("fast")


def test_workers_claim_the_repeats_of_both_sides_in_turn(stage: None) -> None:
    ours, theirs = create_pair(baseline=order(), candidate=order(endpoint="other"))
    worker, claimed = build.worker(), []
    while (lease := claim_shard(worker=worker)) is not None:
        repeat = RepeatRecord.objects.get(shards=lease.id)
        claimed.append((repeat.run, repeat.index))
    assert claimed == [(ours, 1), (theirs, 1), (theirs, 2), (ours, 2), (ours, 3), (theirs, 3)]


def test_each_history_names_the_other_run(stage: None) -> None:
    ours, theirs = create_pair(baseline=order(), candidate=order(repeats=2))
    texts = [Event.objects.get(run=run, code="created").text for run in (ours, theirs)]
    assert texts == [
        f"Asked for: colours v1, 3 repeats, fast on local, in turn with run {theirs.pk}.",
        f"Asked for: colours v1, 2 repeats, fast on local, in turn with run {ours.pk}.",
    ]


@pytest.mark.parametrize(
    ("changes", "error", "field"),
    [
        ({"endpoint": "nowhere"}, NotFound, None),
        ({"repeats": 0}, InvalidInput, "candidate.repeats"),
        ({"suite": "shapes"}, InvalidInput, "candidate.suite"),
    ],
)
def test_what_one_side_lacks_leaves_nothing_behind(
    stage: None, changes: dict[str, Any], error: type[Exception], field: str | None
) -> None:
    build.suite("shapes")
    with pytest.raises(error) as raised:
        create_pair(baseline=order(), candidate=order(**changes))
    assert field is None or field in raised.value.fields  # type: ignore[attr-defined]
    assert not RunRecord.objects.exists()


@pytest.mark.parametrize(("sides", "expected"), [("ABBAABBAAB", True), ("AAAAABBBBB", False)])
def test_a_release_says_in_which_order_the_repeats_ended(sides: str, expected: bool) -> None:
    version, process = judged.suite(policy=SAMPLE_POLICY), build.process()
    pair = {"A": judged.run(version, by=process), "B": judged.run(version, by=process)}
    began = timezone.now() - timedelta(hours=1)
    left = {side: list(run.repeats.order_by("index")) for side, run in pair.items()}
    for minute, side in enumerate(sides):
        RepeatRecord.objects.filter(pk=left[side].pop(0).pk).update(finished_at=began + timedelta(minutes=minute))
    [gate] = release_report(judged.release(pair["A"], pair["B"]).pk).gates
    names = {"A": "baseline", "B": "candidate"}
    # Pinned batches are moved by no load, so that who took no turns is not told to.
    assert "not_in_turn" not in {line.code for line in gate.warnings}
    assert gate.order == tuple(names[side] for side in sides)
    assert gate.is_in_turn is expected


@pytest.mark.parametrize(
    ("minutes", "expected"), few([((0, 9, 10, 19), False), ((0, 11, 10, 19), None), ((), None)], 2)
)
def test_of_logs_the_hours_of_whole_runs_count(minutes: tuple[int, ...], expected: bool | None) -> None:
    began = timezone.now() - timedelta(hours=1)
    at = [began + timedelta(minutes=minute) for minute in minutes] or [None] * 4
    pair = [
        logs.stored(logs.log(started_at=start, finished_at=end, labels={"commit": name}))
        for name, start, end in (("one", *at[:2]), ("two", *at[2:]))
    ]
    [gate] = release_report(judged.release(*pair, policy="paired").pk).gates
    assert gate.is_in_turn is expected


def test_whole_runs_that_move_are_not_judged_where_the_sides_took_no_turns() -> None:
    version, process = judged.suite(policy=SAMPLE_POLICY), build.process(build.bucket(batch_class="mixed"))
    answers = [("blue",) * n + ("red",) * (judged.N_CASES - n) for n in (1, 4, 7, 5, 2)]
    pair = [build.finished_run(*answers, version=version, by=process, under="fast") for _ in range(2)]
    verdict = judged.release(*pair).verdict
    assert verdict is not None
    assert judged.codes(verdict.document["reasons"]) == ["not_in_turn"]
    assert judged.codes(verdict.document["next"])[0] == "run_in_turn"
