"""Experiments: planned with their cost, run arm by arm whoever sweeps, ended by their budget, gone on with."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.wording.lab import describe_money
from runs.access import grant_role
from runs.catalogue import create_endpoint
from runs.lab import (
    cancel_experiment,
    delete_experiment,
    experiment_detail,
    experiment_state,
    plan_experiment,
    resume_experiment,
    sortable_experiments,
    start_experiment,
)
from runs.models import (
    EndpointRecord,
    EngineProcess,
    ExperimentRecord,
    JudgingRecord,
    ProfileRecord,
    ResponseRecord,
    RunRecord,
    WorkerRecord,
)
from runs.run import delete_run, estimate_run, measure_engine_time
from runs.suites import push_suite, rescore_run
from runs.sweep import reconcile
from tests import build, probes

CONTROL = ("blue", "blue", "red")
TRICKY = ("blue", "blue it is", "red")
SAMPLED = ("control", "order", "batch", "graphs", "prefix_cache")
New = Callable[..., ExperimentRecord]


@pytest.fixture
def new(db: None) -> New:
    build.suite()
    build.endpoint()
    build.profile()
    build.worker(hardware={"kind": "cuda", "gpus": [{"name": "H100", "capability": 9.0}]})
    person = build.user()

    def plan(**changes: Any) -> ExperimentRecord:
        known: dict[str, Any] = {"suite": "colours", "endpoint": "local", "runs": 5, "user": person}
        return plan_experiment(**{**known, **changes})

    return plan


def arm_at_work(experiment: ExperimentRecord) -> Any:
    return experiment.arms.get(status="running")


def serve(run: RunRecord, *texts: tuple[str, ...], by: EngineProcess | None = None, logprob: float = -0.25) -> None:
    """Decode an arm's passes as an engine would; the last texts stand for all that follow."""
    process = by or build.process()
    for index in range(1, run.repeats.count() + 1):
        build.decode(run, index, texts[min(index, len(texts)) - 1], by=process, logprob=logprob)
    ResponseRecord.objects.filter(repeat__run=run).update(decode_seconds=20, prefill_seconds=0, queued_seconds=0)


def begun(experiment: ExperimentRecord) -> ExperimentRecord:
    start_experiment(experiment_id=experiment.pk)
    reconcile()
    return experiment


def run_all(experiment: ExperimentRecord, **served: Any) -> None:
    """Serve every arm: `served` by source, `CONTROL` where nothing is said."""
    while experiment.arms.filter(status="running").exists():
        arm = arm_at_work(experiment)
        serve(arm.run, *served.get(arm.source, [CONTROL]))
        reconcile()


def row(experiment: ExperimentRecord, source: str) -> Any:
    return next(each for each in experiment_detail(experiment.pk).rows if each.source == source)


def test_nothing_is_decoded_before_a_plan_is_confirmed(new: New) -> None:
    experiment = new()
    reconcile()
    detail = experiment_detail(experiment.pk)
    assert (detail.status, detail.sentence) == ("planned", "Nothing has been decoded yet: this is the plan.")
    assert [arm.source for arm in detail.arms] == [*SAMPLED, "kv_cache", "attention", "parser"]
    assert {each.source for each in detail.not_measured} >= {"dtype", "routing", "sampler", "judge"}
    assert (detail.cost.n_runs, detail.cost.n_starts, detail.cost.minutes) == (29, 17, None)
    assert detail.budget_minutes == 60
    assert not RunRecord.objects.exists()


@pytest.mark.nightly
@pytest.mark.parametrize(("flags", "is_planned"), [(["avx2", "avx512f"], True), (["avx2"], False)])
def test_the_kv_cache_is_kept_in_8_bits_where_every_worker_s_processor_can(
    new: New, flags: list[str], is_planned: bool
) -> None:
    WorkerRecord.objects.all().delete()
    build.worker("one", hardware={"kind": "cpu", "cpu_flags": ["avx512f"]})
    build.worker("other", hardware={"kind": "cpu", "cpu_flags": flags})
    detail = experiment_detail(new().pk)
    assert ("kv_cache" in {arm.source for arm in detail.arms}) is is_planned
    assert ("kv_cache" in {each.source for each in detail.not_measured}) is not is_planned


def test_while_no_worker_lives_the_one_seen_last_stands_for_the_pool(new: New) -> None:
    WorkerRecord.objects.all().delete()
    build.worker("gone", hardware={"kind": "cpu", "cpu_flags": ["avx512f"]})
    build.worker("without an engine", hardware={"kind": "none"})
    WorkerRecord.objects.update(stopped_at=Now(), seen_at=Now() - timedelta(hours=1))
    assert "kv_cache" in {arm.source for arm in experiment_detail(new().pk).arms}


@pytest.mark.nightly
@pytest.mark.parametrize(("n_gpus", "is_planned"), [((2, 4), True), ((1, 4), False)])
def test_a_model_is_spread_over_two_gpus_where_every_worker_has_them(
    new: New, n_gpus: tuple[int, int], is_planned: bool
) -> None:
    WorkerRecord.objects.all().delete()
    for number, count in enumerate(n_gpus):
        gpus = [{"name": "H100", "capability": 9.0}] * count
        build.worker(f"w{number}", hardware={"kind": "cuda", "gpus": gpus})
    detail = experiment_detail(new().pk)
    assert ("tensor_parallel" in {arm.source for arm in detail.arms}) is is_planned
    assert ("tensor_parallel" in {each.source for each in detail.not_measured}) is not is_planned


def test_the_cost_is_that_of_the_runs_before(new: New) -> None:
    before = build.finished_run(CONTROL, CONTROL)
    ResponseRecord.objects.filter(repeat__run=before).update(decode_seconds=20, prefill_seconds=0, queued_seconds=0)
    detail = experiment_detail(new().pk)
    by_source = {arm.source: arm.cost for arm in detail.arms}
    n_tokens = 6  # two a response
    assert by_source["control"].tokens == 5 * n_tokens
    assert by_source["control"].minutes == pytest.approx((5 * 20 + 5 * 4.5) / 60, abs=0.02)
    assert by_source["order"].minutes == pytest.approx((5 * 20 + 2 * 4.5) / 60, abs=0.02)
    assert by_source["parser"].minutes == 0
    assert detail.cost.minutes is not None
    assert detail.cost.minutes < detail.budget_minutes < 2 * detail.cost.minutes + 5


def test_an_experiment_says_what_it_costs_before_it_starts_and_after(new: New) -> None:
    assert experiment_detail(new().pk).expected_costs == ()
    price = {"currency": "USD", "input": "1", "output": "1000000"}  # a dollar for each token of an answer
    EndpointRecord.objects.filter(slug="local").update(price=price)
    experiment = new(sources=["order"])
    [most] = experiment_detail(experiment.pk).expected_costs
    assert most.is_limit
    assert most.text.startswith("At most ")
    before = build.finished_run(CONTROL, CONTROL)
    ResponseRecord.objects.filter(repeat__run=before).update(n_prompt_tokens=0, n_tokens=2)
    detail = experiment_detail(experiment.pk)
    assert [(each.amount, each.is_limit) for each in detail.expected_costs] == [("60", False)]  # 2 arms of 5 passes
    assert detail.spent_costs == ()
    begun(experiment)
    run = arm_at_work(experiment).run
    serve(run, CONTROL)
    ResponseRecord.objects.filter(repeat__run=run).update(n_prompt_tokens=0, n_tokens=2)
    build.run(labels={"experiment": str(experiment.pk)})  # another's label
    detail = experiment_detail(experiment.pk)
    assert [each.text for each in detail.spent_costs] == ["30.00 USD"]
    assert "Spent so far: 30.00 USD." in describe_money(detail)
    cancel_experiment(experiment_id=experiment.pk)
    assert experiment_detail(experiment.pk).expected_costs == ()


@pytest.mark.nightly
def test_an_experiment_s_cost_has_its_judge_before_it_starts_and_after(new: New) -> None:
    price = {"currency": "USD", "input": "0", "output": "1000000"}
    jury = probes.remote("jury", price=price)
    judge = {"kind": "judge", "endpoint": jury, "profile": "pinned", "template": "Is {{answer}} right?"}
    judge |= {"reads": {"choice": {"yes": 1, "no": 0}}, "draws": 1, "max_tokens": 2}
    cases = [{"id": f"case-{n}", "prompt": "Which?", "target": "blue"} for n in range(3)]
    push_suite(document={"slug": "judged", "max_tokens": 20, "scorer": judge, "cases": cases})
    experiment = new(suite="judged", sources=["order"])
    arms = [arm for arm in experiment_detail(experiment.pk).arms if arm.cost.n_runs]
    wanted = estimate_run(suite="judged", endpoint="local", repeats=5).judge
    assert wanted is not None
    [expected] = experiment_detail(experiment.pk).expected_costs
    assert (expected.amount, expected.is_limit) == (str(2 * wanted.n_calls * len(arms)), True)
    begun(experiment)
    run = arm_at_work(experiment).run
    judged = build.run(version=run.suite_version, on=jury)
    judged = build.decode(judged, 1, CONTROL) and judged
    JudgingRecord.objects.create(run=run, scorer=run.suite_version.scorer, judge_run=judged)
    ResponseRecord.objects.filter(repeat__run=judged).update(n_prompt_tokens=0, n_tokens=2)
    assert [each.text for each in experiment_detail(experiment.pk).spent_costs] == ["6.00 USD"]


def test_a_warm_engine_s_start_is_of_the_run_that_it_started_for(new: New) -> None:
    warm, other = build.process(), build.process(start_seconds=4.5)
    first, second = build.finished_run(CONTROL, by=warm), build.run(repeats=2)
    build.decode(second, 1, CONTROL, by=warm)
    build.decode(second, 2, CONTROL, by=other)
    build.finished_run(CONTROL, by=other)
    assert [(time.n_starts, time.start_seconds) for time in map(measure_engine_time, (first, second))] == [(1, 4.5)] * 2
    third = build.finished_run(CONTROL, by=other)
    assert (measure_engine_time(third).n_starts, measure_engine_time(third).start_seconds) == (0, 0)


def test_the_next_arm_starts_when_the_run_of_the_one_before_has_ended(
    new: New, django_capture_on_commit_callbacks: Any
) -> None:
    experiment = begun(new())
    run = arm_at_work(experiment).run
    with django_capture_on_commit_callbacks(execute=True):
        serve(run, CONTROL)
    assert arm_at_work(experiment).source == "order"


def test_arms_are_ordinary_runs_one_after_another_the_control_first(new: New) -> None:
    experiment = begun(new())
    control = arm_at_work(experiment)
    assert RunRecord.objects.count() == 1
    assert control.run.is_restarted
    assert (control.run.priority, control.run.profile.slug) == ("bulk", "pinned")
    assert control.run.labels == {"experiment": str(experiment.pk), "source": "control"}
    serve(control.run, CONTROL)
    reconcile()
    order = arm_at_work(experiment).run
    assert (order.is_shuffled, order.is_restarted, order.profile.slug) == (True, False, "pinned")
    serve(order, CONTROL)
    reconcile()
    batch = arm_at_work(experiment).run
    assert (batch.profile.slug, batch.profile.settings["batch_class"]) == ("pinned.batch", "mixed")
    run_all(experiment)
    experiment.refresh_from_db()
    assert experiment.status == "finished"
    assert not experiment.arms.exclude(status="finished").exists()
    assert ProfileRecord.objects.get(slug="pinned.graphs").settings["engine"]["enforce_eager"] is False


@pytest.mark.nightly
def test_the_table_says_what_moved_and_what_did_not(new: New) -> None:
    experiment = begun(new())
    run_all(experiment, batch=[CONTROL, ("blue", "red", "red"), ("blue", "blue", "blue")])
    detail = experiment_detail(experiment.pk)
    assert [each.source for each in detail.rows][:2] == ["control", "batch"]
    assert detail.control == pytest.approx(200 / 3)
    control, batch, order = (row(experiment, name) for name in ("control", "batch", "order"))
    assert (control.state, control.n_same, control.n_flipped, control.n_responses) == ("holds", 5, 0, 12)
    assert (batch.state, batch.n_same, batch.n_flipped, batch.n_responses, batch.first_flip) == ("source", 1, 4, 15, 0)
    assert batch.reach == pytest.approx(100 / 3)
    assert [point.repeat for point in batch.points] == [1, 2, 3, 4, 5]
    assert (order.state, order.reach) == ("none_seen", 0.0)
    assert order.range_interval[0] == 0
    assert order.speed == pytest.approx(1, rel=0.05)
    assert detail.sentence.startswith("Batching moves this score (±33.3 points)")
    assert detail.sentence.endswith("With nothing varied, 5 of 5 runs were equal to the bit.")


@pytest.mark.nightly
def test_the_parser_is_measured_on_the_controls_texts(new: New) -> None:
    rescore_run(run_id=build.finished_run(CONTROL).pk, scorer={"kind": "contains"})
    experiment = begun(new(budget_minutes=60))
    run_all(experiment)
    parser = row(experiment, "parser")
    names = {point.name: point.score for point in parser.points}
    assert len(names) == 5
    assert any(name.startswith("scorer ") for name in names)
    assert {point.run for point in parser.points} == {None}
    assert (parser.range_interval, parser.n_same, parser.speed) == (None, None, None)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("scorer", "other", "state", "moved_by"),
    [
        ({"kind": "exact"}, None, "none_seen", set()),
        (
            {"kind": "exact", "normalise": {"whitespace": "keep"}},
            None,
            "source",
            {"a line before the text", "a line after the text"},
        ),
        ({"kind": "exact"}, {"kind": "exact", "normalise": {"case": "fold"}}, "none_seen", set()),
        ({"kind": "exact"}, {"kind": "contains"}, "source", {"scorer"}),
    ],
)
def test_a_parser_that_reads_the_same_texts_otherwise_is_a_source(
    new: New, scorer: dict[str, Any], other: dict[str, Any] | None, state: str, moved_by: set[str]
) -> None:
    """One that trips over line breaks, or another scorer; beside each stands one that reads them all alike."""
    cases = [{"id": f"case-{n}", "prompt": f"Say {n}.", "target": "blue"} for n in range(3)]
    limits = {"slug": "words", "title": "Words", "max_tokens": 24}
    version, _ = push_suite(document={**limits, "scorer": scorer, "cases": cases})
    if other:
        rescore_run(run_id=build.finished_run(TRICKY, version=version).pk, scorer=other)
    experiment = begun(new(suite="words", sources=["parser"]))
    serve(arm_at_work(experiment).run, TRICKY if other else CONTROL)
    reconcile()
    control, parser = experiment_detail(experiment.pk).control, row(experiment, "parser")
    moved = {point.name for point in parser.points if point.score != control}
    assert parser.state == state
    assert {"scorer" if name.startswith("scorer ") else name for name in moved} == moved_by


@pytest.mark.nightly
def test_where_the_control_moves_nothing_is_blamed(new: New) -> None:
    experiment = begun(new())
    run_all(experiment, control=[CONTROL, ("blue", "red", "red")], batch=[("red", "red", "red")])
    assert row(experiment, "batch").state == "not_blamed"
    sentence = experiment_detail(experiment.pk).sentence
    assert sentence == "The control moved by ±16.7, so nothing below can be attributed to its source."


@pytest.mark.nightly
def test_bits_that_move_without_an_answer_are_said_to(new: New) -> None:
    experiment = begun(new(sources=["graphs"]))
    serve(arm_at_work(experiment).run, CONTROL)
    reconcile()
    serve(arm_at_work(experiment).run, CONTROL, logprob=-0.2500001)
    reconcile()
    assert (row(experiment, "graphs").state, row(experiment, "graphs").n_same) == ("bits_only", 0)


@pytest.mark.nightly
def test_another_dtype_of_the_weights_is_held_against_the_control(new: New) -> None:
    build.endpoint("half", dtype="bfloat16")
    experiment = begun(new(sources=["dtype"]))
    serve(arm_at_work(experiment).run, CONTROL)
    reconcile()
    arm = arm_at_work(experiment)
    assert (arm.endpoint.slug, arm.run.repeats.count()) == ("half", 2)
    serve(arm.run, ("red", "red", "red"), by=build.process(build.bucket("bfloat16")))
    reconcile()
    dtype = row(experiment, "dtype")
    assert (dtype.state, dtype.range_interval, dtype.shift) == ("source", None, None)
    assert dtype.range == (0.0, pytest.approx(200 / 3))
    assert dtype.condition == "the same weights in bfloat16"


@pytest.mark.nightly
def test_an_arm_that_fails_says_so_and_the_others_go_on(new: New) -> None:
    experiment = begun(new(sources=["order", "graphs"]))
    serve(arm_at_work(experiment).run, CONTROL)
    reconcile()
    order = arm_at_work(experiment).run
    order.repeats.update(status="failed", finished_at=timezone.now())
    RunRecord.objects.filter(pk=order.pk).update(
        status="failed", failure="No engine starts.\nTraceback", finished_at=timezone.now()
    )
    reconcile()
    run_all(experiment)
    detail = experiment_detail(experiment.pk)
    assert detail.status == "finished"
    failed = next(arm for arm in detail.arms if arm.source == "order")
    assert (failed.status, failed.problem) == (
        "failed",
        f"Run {order.pk} ended failed without a whole pass. No engine starts.",
    )
    assert (row(experiment, "order").state, row(experiment, "order").finding) == (
        "not_measured",
        "could not be measured",
    )
    assert row(experiment, "graphs").state == "none_seen"


@pytest.mark.nightly
def test_without_a_control_the_experiment_has_failed(new: New) -> None:
    experiment = begun(new())
    delete = arm_at_work(experiment).run
    delete.repeats.update(status="failed", finished_at=timezone.now())
    RunRecord.objects.filter(pk=delete.pk).update(status="failed", finished_at=timezone.now())
    delete_run(run_id=delete.pk)
    reconcile()
    detail = experiment_detail(experiment.pk)
    assert detail.status == "failed"
    assert detail.sentence.startswith("The control failed, so nothing can be compared with it. Its run was deleted.")
    assert {arm.status for arm in detail.arms} == {"failed", "missing"}


def test_it_stops_at_its_budget_and_says_what_is_missing(new: New) -> None:
    experiment = begun(new(budget_minutes=1))
    serve(arm_at_work(experiment).run, CONTROL)  # five passes of 20 s
    reconcile()
    detail = experiment_detail(experiment.pk)
    assert detail.status == "stopped"
    assert detail.spent_minutes > 1
    assert [arm.status for arm in detail.arms] == ["finished", *["missing"] * 6, "finished"]
    assert detail.sentence.startswith("Stopped by its budget. 6 conditions are missing.")
    assert RunRecord.objects.count() == 1


@pytest.mark.nightly
def test_a_run_that_spends_the_budget_is_cut_and_keeps_its_whole_passes(new: New) -> None:
    experiment = begun(new(budget_minutes=2, sources=["order"]))
    serve(arm_at_work(experiment).run, CONTROL)
    reconcile()
    order = arm_at_work(experiment).run
    for index in (1, 2):
        build.decode(order, index, CONTROL, by=build.process())
    ResponseRecord.objects.filter(repeat__run=order).update(decode_seconds=20, prefill_seconds=0, queued_seconds=0)
    reconcile()
    order.refresh_from_db()
    assert order.status == "cancelled"
    reconcile()
    detail = experiment_detail(experiment.pk)
    assert (detail.status, detail.arms[1].status, row(experiment, "order").n_runs) == ("stopped", "cut", 2)
    resume_experiment(experiment_id=experiment.pk, budget_minutes=30)
    reconcile()
    assert experiment_detail(experiment.pk).arms[0].status == "finished"
    again = arm_at_work(experiment)
    assert (again.source, again.run_id == order.pk) == ("order", False)
    run_all(experiment)
    assert experiment_detail(experiment.pk).status == "finished"


def test_cancelling_stops_the_run_that_is_at_work(new: New) -> None:
    experiment = begun(new())
    at_work = arm_at_work(experiment).run
    cancel_experiment(experiment_id=experiment.pk)
    at_work.refresh_from_db()
    assert at_work.status == "cancelled"
    reconcile()
    assert experiment_detail(experiment.pk).status == "cancelled"
    assert RunRecord.objects.count() == 1
    cancel_experiment(experiment_id=experiment.pk)
    with pytest.raises(Conflict):
        start_experiment(experiment_id=experiment.pk)
    delete_experiment(experiment_id=experiment.pk)
    assert RunRecord.objects.count() == 1


@pytest.mark.nightly
def test_cancelling_after_the_run_at_work_has_ended_counts_it_as_ended(new: New) -> None:
    experiment = begun(new(sources=["order"]))
    serve(arm_at_work(experiment).run, CONTROL)
    cancel_experiment(experiment_id=experiment.pk)
    detail = experiment_detail(experiment.pk)
    assert (detail.status, [arm.status for arm in detail.arms]) == ("cancelled", ["finished", "missing"])
    assert row(experiment, "control").n_runs == 5


@pytest.mark.nightly
def test_cancelling_keeps_the_whole_passes_of_a_control_at_work(new: New) -> None:
    experiment = begun(new(sources=["order"]))
    control = arm_at_work(experiment).run
    for index in (1, 2):
        build.decode(control, index, CONTROL, by=build.process())
    cancel_experiment(experiment_id=experiment.pk)
    assert [arm.status for arm in experiment_detail(experiment.pk).arms] == ["cut", "missing"]
    assert row(experiment, "control").n_runs == 2


@pytest.mark.nightly
def test_cancelling_keeps_the_whole_passes_of_the_arm_at_work(new: New) -> None:
    experiment = begun(new(sources=["order", "graphs"]))
    serve(arm_at_work(experiment).run, CONTROL)
    reconcile()
    order = arm_at_work(experiment).run
    for index in (1, 2):
        build.decode(order, index, CONTROL, by=build.process())
    build.decode(order, 3, CONTROL[:2], by=build.process(), ends=False)
    cancel_experiment(experiment_id=experiment.pk)
    detail = experiment_detail(experiment.pk)
    assert (detail.status, [arm.status for arm in detail.arms]) == ("cancelled", ["finished", "cut", "missing"])
    assert detail.arms[1].problem == f"Run {order.pk} was cancelled; whole passes kept: 2."
    assert row(experiment, "order").n_runs == 2
    resume_experiment(experiment_id=experiment.pk)
    reconcile()
    run_all(experiment)
    assert [arm.status for arm in experiment_detail(experiment.pk).arms] == ["finished"] * 3
    assert row(experiment, "order").n_runs == 5


@pytest.mark.nightly
def test_what_a_cancelled_run_took_counts_when_the_experiment_goes_on(new: New) -> None:
    experiment = begun(new(sources=["order"], budget_minutes=30))
    build.decode(arm_at_work(experiment).run, 1, CONTROL, by=build.process())
    ResponseRecord.objects.update(decode_seconds=60, prefill_seconds=0, queued_seconds=0)
    cancel_experiment(experiment_id=experiment.pk)
    lost = experiment_detail(experiment.pk).spent_minutes
    assert lost > 1
    resume_experiment(experiment_id=experiment.pk)
    reconcile()
    run_all(experiment)
    detail = experiment_detail(experiment.pk)
    own = sum(
        measure_engine_time(RunRecord.objects.get(pk=arm.run)).minutes for arm in detail.arms if arm.run is not None
    )
    assert (detail.status, detail.spent_minutes) == ("finished", pytest.approx(lost + own, abs=0.01))


def test_who_may_start_no_runs_any_more_starts_no_further_arm(new: New) -> None:
    experiment = begun(new())
    grant_role(user=experiment.created_by, role="viewer")
    serve(arm_at_work(experiment).run, CONTROL)
    reconcile()
    detail = experiment_detail(experiment.pk)
    assert (detail.status, RunRecord.objects.count()) == ("failed", 1)
    assert detail.problem == "ada who started it may not start runs any more."


def test_a_profile_that_was_changed_since_the_plan_is_not_run(new: New) -> None:
    experiment = new()
    pinned = ProfileRecord.objects.get(slug="pinned")
    ProfileRecord.objects.create(slug="pinned", version=2, title="", settings=pinned.settings, digest="f" * 64)
    begun(experiment)
    assert "was changed since the plan" in (experiment_detail(experiment.pk).problem or "")


@pytest.mark.nightly
def test_a_gateway_is_held_against_its_bypass(new: New) -> None:
    theirs = {"engine": "openai", "model_name": "paint-1b", "line": "paint"}
    create_endpoint(slug="direct", base_url="http://127.0.0.1:1/v1", **theirs)
    create_endpoint(slug="router", base_url="http://127.0.0.1:2/v1", bypass="direct", **theirs)
    detail = experiment_detail(new(endpoint="router").pk)
    assert detail.endpoint == "direct"
    assert [(arm.source, arm.endpoint) for arm in detail.arms][:2] == [("control", "direct"), ("order", "direct")]
    assert ("routing", "router") in [(arm.source, arm.endpoint) for arm in detail.arms]
    assert {each.source: each.code for each in detail.not_measured}["graphs"] == "not_ours"


@pytest.mark.nightly
def test_the_state_changes_with_every_pass_and_arm(new: New) -> None:
    experiment = new()
    states = [experiment_state(experiment.pk)]
    begun(experiment)
    states.append(experiment_state(experiment.pk))
    build.decode(arm_at_work(experiment).run, 1, CONTROL)
    states.append(experiment_state(experiment.pk))
    assert len(set(states)) == 3
    with pytest.raises(NotFound):
        experiment_state(0)
    with pytest.raises(NotFound):
        experiment_detail(0)


def test_an_endpoint_that_nobody_names_is_that_of_the_suite_s_newest_run(new: New) -> None:
    with pytest.raises(InvalidInput) as refused:
        new(endpoint=None)
    assert refused.value.fields == {"endpoint": "Name one: the suite colours was never run."}
    build.endpoint("other")
    build.run(on="other")
    assert new(endpoint=None).endpoint.slug == "other"


def test_lists_are_newest_first(new: New) -> None:
    first, second = new(), new()
    assert [each.id for each in sortable_experiments().rows(limit=5)] == [str(second.pk), str(first.pk)]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"runs": 4}, "runs"),
        ({"runs": 101}, "runs"),
        ({"sources": ["weather"]}, "sources"),
        ({"temperature": 0.0}, "temperature"),
        ({"budget_minutes": 0.0}, "budget_minutes"),
        ({"profile": "fast"}, "profile"),
        ({"profile": "sampled"}, "profile"),
    ],
)
def test_what_is_no_experiment_is_refused_by_its_field(new: New, changes: dict[str, Any], field: str) -> None:
    build.profile("fast")
    build.profile("sampled")
    with pytest.raises(InvalidInput) as refused:
        new(**changes)
    assert list(refused.value.fields) == [field]
