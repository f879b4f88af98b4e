"""Settling: the repeats that were confirmed, on both sides in turn, and a verdict over all of them."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from evalboard.contract.release import RepeatsToAdd, SettlePlan
from evalboard.core.errors import Conflict, NotFound
from runs.catalogue import create_policy
from runs.models import Event, ReleaseRecord, RepeatRecord, RunRecord, Settling, Shard
from runs.release import create_release, decide_release, settle_plans, settle_release
from runs.run import add_repeats, cancel_run
from tests import build
from tests.casts import cast
from tests.runs import judged

pytestmark = pytest.mark.django_db
POLICY = {"slug": "sample", "rule": "paired", "tolerance_points": 20.0, "looks": [3, 10, 20]}
POLICY_SETTINGS = {name: value for name, value in POLICY.items() if name != "slug"}
# Two cases that are wrong in some repeats.
SOMETIMES = {0: (1, 2, 3), 1: (2, 5)}


@cast
def process() -> Any:
    return build.process()


@cast
def pair(process: Any) -> tuple[RunRecord, RunRecord]:
    version = judged.suite(n_cases=7, policy=POLICY)
    return judged.run(version, repeats=3, by=process), judged.run(version, repeats=3, by=process)


@cast
def open_one(pair: tuple[RunRecord, RunRecord]) -> ReleaseRecord:
    """Nothing moved, and on seven cases three repeats say so only to 21.9 points; ten, to 8.1."""
    release = judged.release(*pair)
    assert release.verdict is not None
    assert release.verdict.word == "inconclusive"
    return release


def plan_of(release: ReleaseRecord) -> SettlePlan:
    plan = settle_plans(release_id=release.pk).whole
    assert plan is not None
    return plan


def settle(release: ReleaseRecord, by: Any = None, **changes: Any) -> Settling:
    plan = plan_of(release)
    asked = {"look": plan.look, "n_responses": plan.n_responses, **changes}
    return settle_release(release_id=release.pk, **asked, user=by)


def claim_order(runs: tuple[RunRecord, RunRecord]) -> list[tuple[int, int]]:
    """(run, repeat) of queued shards, in the order in which workers claim them; each once."""
    queued = Shard.objects.filter(repeat__run__in=runs, status="queued").order_by("id")
    return list(dict.fromkeys(queued.values_list("repeat__run", "repeat__index")))


def test_the_plan_names_what_it_takes(open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]) -> None:
    plan = plan_of(open_one)
    assert (plan.look, plan.n_responses, plan.refused) == (10, 98, None)
    assert plan.runs == tuple(RepeatsToAdd(run=str(run.pk), n_before=3, n_more=7, n_chosen=None) for run in pair)
    RunRecord.objects.filter(pk=pair[0].pk).update(started_at=None)
    assert plan_of(open_one).minutes is None  # no speed is known


def test_minutes_come_from_the_speed_that_the_runs_had(
    open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]
) -> None:
    began = timezone.now() - timedelta(hours=2)
    for run, seconds in zip(pair, (60, 120), strict=True):
        RunRecord.objects.filter(pk=run.pk).update(started_at=began)
        for repeat in run.repeats.all():
            late = timedelta(hours=1) if repeat.index == 3 else timedelta(0)  # a pause that says nothing
            ended = began + timedelta(seconds=seconds * repeat.index) + late
            RepeatRecord.objects.filter(pk=repeat.pk).update(finished_at=ended)
    plan = plan_of(open_one)
    assert plan.minutes == pytest.approx(7 * 3)


def test_repeats_go_to_both_sides_in_turn(open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]) -> None:
    person = build.user()
    settling = settle(open_one, person)
    assert claim_order(pair) == [(run.pk, 3 + n) for n in range(1, 8) for run in (pair if n % 2 else pair[::-1])]
    assert (settling.asked_by, settling.plan) == (person, [
        {"run": run.pk, "n_before": 3, "n_more": 7, "n_chosen": None} for run in pair
    ])  # fmt: skip
    for run, other in (pair, pair[::-1]):
        run.refresh_from_db()
        assert (run.status, run.finished_at) == ("queued", None)
        text = Event.objects.get(run=run, code="repeats_added").text
        assert text == f"7 repeats added to settle release {open_one.pk}, in turn with run {other.pk}."


@pytest.mark.nightly
def test_the_verdict_is_taken_over_all_repeats_when_the_last_has_ended(
    open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]
) -> None:
    look = settle(open_one).look
    assert settle_plans(release_id=open_one.pk).whole is None  # under way
    judged.more(pair[0], range(4, look + 1))
    assert decide_release(release_id=open_one.pk).pk == open_one.verdict_id
    judged.more(pair[1], range(4, look + 1))
    settled = decide_release(release_id=open_one.pk)
    gate = settled.document["gates"][0]
    assert (gate["look"], gate["k_baseline"], gate["k_candidate"]) == (look, look, look)
    assert settled.word == "ship"
    assert settle_plans(release_id=open_one.pk).whole is None


def test_other_numbers_than_the_plans_add_nothing(open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]) -> None:
    for changed in ({"look": 7}, {"n_responses": 1}):
        with pytest.raises(Conflict, match="plan has changed"):
            settle(open_one, **changed)
    assert not Settling.objects.exists()
    assert RepeatRecord.objects.filter(run__in=pair).count() == 6


def test_asked_twice_it_is_done_once(open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]) -> None:
    plan = plan_of(open_one)
    asked = {"release_id": open_one.pk, "look": plan.look, "n_responses": plan.n_responses, "user": None}
    settle_release(**asked)
    with pytest.raises(Conflict, match="the verdict is taken when it has ended"):
        settle_release(**asked)
    assert RepeatRecord.objects.filter(run__in=pair).count() == 2 * plan.look


def test_a_stack_that_was_rotated_away_can_give_no_more(open_one: ReleaseRecord, process: Any) -> None:
    small = judged.suite("small", n_cases=3)
    rotated = judged.run(small, repeats=1, by=build.bucket("bfloat16"))
    refused = plan_of(open_one).refused
    assert refused.startswith("Another stack serves local under pinned since")
    assert f"(run {rotated.pk})" in refused
    with pytest.raises(Conflict, match="Another stack"):
        settle(open_one)
    assert not Settling.objects.exists()


def test_a_run_that_did_not_finish_gets_no_more(open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]) -> None:
    add_repeats(run_id=pair[1].pk, n=1)
    cancel_run(run_id=pair[1].pk)
    with pytest.raises(Conflict, match=f"Run {pair[1].pk} is cancelled"):
        settle(open_one)


def test_what_repeats_cannot_settle_has_no_plan(pair: tuple[RunRecord, RunRecord], process: Any) -> None:
    create_policy(
        slug="wide", title="Wide", settings={"rule": "paired", "tolerance_points": 30.0, "looks": [3, 10, 20]}
    )
    ship = judged.release(*pair, policy="wide")
    assert settle_plans(release_id=ship.pk).whole is None
    create_policy(slug="guarded", title="", settings={**POLICY_SETTINGS, "rule": "strict"})
    noisy = judged.release(
        pair[0], judged.run(pair[0].suite_version, SOMETIMES, repeats=3, by=process), policy="guarded"
    )
    assert noisy.verdict is not None
    assert noisy.verdict.document["reasons"][0]["code"] == "noisy"
    assert settle_plans(release_id=noisy.pk).whole is None
    with pytest.raises(Conflict, match="cannot decide this release"):
        settle_release(release_id=noisy.pk, look=10, n_responses=300, user=None)
    with pytest.raises(NotFound):
        settle_plans(release_id=999_999)


def test_a_single_run_is_brought_up_to_the_first_look(pair: tuple[RunRecord, RunRecord], process: Any) -> None:
    candidate = judged.run(pair[0].suite_version, repeats=1, by=process)
    release = judged.release(pair[0], candidate)
    plan = plan_of(release)
    assert (plan.look, plan.n_responses) == (3, 14)
    assert plan.runs == (RepeatsToAdd(run=str(candidate.pk), n_before=1, n_more=2, n_chosen=None),)


def test_only_the_gates_that_need_it_are_settled(pair: tuple[RunRecord, RunRecord], process: Any) -> None:
    other = judged.suite("colours", n_cases=8)
    sure = [judged.run(other, repeats=3, by=process) for _ in range(2)]
    third = judged.suite("words", n_cases=7)
    open_advice = [judged.run(third, repeats=3, by=process) for _ in range(2)]
    release = create_release(
        gates=[
            {"suite": "colours", "candidate": sure[1].pk, "baseline": sure[0].pk},
            {"suite": "sample", "candidate": pair[1].pk, "baseline": pair[0].pk},
            {"suite": "words", "candidate": open_advice[1].pk, "baseline": open_advice[0].pk, "tier": "advisory"},
        ],
        policy="sample",
    )
    assert [each.run_id for each in plan_of(release).runs] == [run.pk for run in pair]


def test_a_repeat_that_was_cancelled_before_counts_for_nothing(pair: tuple[RunRecord, RunRecord]) -> None:
    RepeatRecord.objects.filter(run=pair[1], index=2).update(status="cancelled")
    release = judged.release(*pair)
    plan = plan_of(release)
    assert plan.look == 3
    assert plan.runs == (RepeatsToAdd(run=str(pair[1].pk), n_before=3, n_more=1, n_chosen=None),)
    settle(release)
    assert claim_order(pair) == [(pair[1].pk, 4)]
