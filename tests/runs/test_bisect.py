"""Bisects: planned from what differs, decoded step by step, blaming only what was tried both ways."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.lab import (
    cancel_experiment,
    experiment_detail,
    plan_bisect,
    resume_experiment,
    sortable_experiments,
    start_experiment,
)
from runs.models import EndpointRecord, ExperimentRecord, RepeatRecord, ResponseRecord, RunRecord
from runs.run import delete_run
from runs.suites import push_suite
from runs.sweep import reconcile
from tests import build

BLUE, RED = ("blue", "blue", "blue"), ("red", "red", "blue")
Flips = Callable[[set[str]], bool]


@pytest.fixture
def person(db: None) -> Any:
    build.suite()
    build.worker()
    build.endpoint()
    build.endpoint("half", dtype="bfloat16")
    build.profile()
    return build.user()


def profile(slug: str, **changes: Any) -> str:
    """`pinned` with changes by path, as engine__enforce_eager."""
    settings = copy.deepcopy(DEFAULT_PROFILES["pinned"]["settings"])
    for name, value in changes.items():
        section, leaf = name.split("__")
        settings[section][leaf] = value
    return create_profile(slug=slug, title=slug, settings=settings)[0].slug


def plan(person: Any, ours: RunRecord, theirs: RunRecord, **changes: Any) -> ExperimentRecord:
    return plan_bisect(baseline=ours.pk, candidate=theirs.pk, user=person, **changes)


def fields(experiment: ExperimentRecord) -> dict[str, Any]:
    return {each.name: each for each in bisect(experiment).fields}


def bisect(experiment: ExperimentRecord) -> Any:
    return experiment_detail(experiment.pk).bisect


def begun(experiment: ExperimentRecord) -> ExperimentRecord:
    start_experiment(experiment_id=experiment.pk)
    reconcile()
    return experiment


def decode(arm: Any, *, has_flipped: bool) -> None:
    """Decode a step as an engine would: the two cases that tell flip, or do not."""
    texts = dict(enumerate(RED if has_flipped else BLUE))
    repeat = RepeatRecord.objects.get(run=arm.run)
    bucket = build.bucket(arm.endpoint.dtype)
    build.decode(arm.run, 1, texts if repeat.cases is not None else list(texts.values()), by=build.process(bucket))
    ResponseRecord.objects.filter(repeat__run=arm.run).update(decode_seconds=20, prefill_seconds=0, queued_seconds=0)


def run_all(experiment: ExperimentRecord, flips: Flips) -> None:
    while (arm := experiment.arms.filter(status="running").first()) is not None:
        decode(arm, has_flipped=flips(set(arm.turned)))
        reconcile()


def two_runs(under: str = "pinned", on: str = "half") -> tuple[RunRecord, RunRecord]:
    """A run that answers blue, and one on another endpoint or under another profile that answers two cases red."""
    ours = build.finished_run(BLUE)
    theirs = build.finished_run(RED, on=on, under=under, by=build.process(build.bucket("bfloat16")))
    return ours, theirs


def test_a_plan_names_what_differs_and_decodes_nothing(person: Any) -> None:
    ours, theirs = two_runs(profile("compiled", engine__enforce_eager=False, sampling__top_k=5))
    detail = experiment_detail(plan(person, ours, theirs).pk)
    reconcile()
    assert (detail.kind, detail.status, RunRecord.objects.count()) == ("bisect", "planned", 2)
    found = detail.bisect
    assert found is not None
    assert {each.name: (each.baseline, each.candidate) for each in found.fields} == {
        "dtype": ("float32", "bfloat16"),
        "engine.enforce_eager": ("on", "off"),
        "sampling.top_k": ("0", "5"),
    }
    assert {each.finding for each in found.fields} == {"not tried yet"}
    assert [case.case for case in found.cases] == ["sky", "sea"]
    assert [(case.unit, case.position, case.score_baseline, case.score_candidate) for case in found.cases] == [
        ("token", 0, 100.0, 0.0)
    ] * 2
    assert (found.n_beside, found.n_flips, found.points) == (1, 2, pytest.approx(-200 / 3))
    assert [arm.name for arm in detail.arms][:2] == ["baseline as it was", "candidate as it was"]
    assert (len(detail.arms), detail.cost.n_starts) == (8, 5)
    assert detail.sentence == "Nothing has been decoded yet: this is the plan."


def test_the_one_field_that_matters_is_the_cause_tried_both_ways(person: Any) -> None:
    ours, theirs = two_runs(profile("compiled", engine__enforce_eager=False, sampling__top_k=5))
    experiment = begun(plan(person, ours, theirs))
    run_all(experiment, lambda turned: "dtype" in turned)
    detail = experiment_detail(experiment.pk)
    assert detail.status == "finished"
    by_name = fields(experiment)
    dtype = by_name["dtype"]
    assert (dtype.state, dtype.n_made, dtype.n_undone, dtype.n_steps) == ("cause", 2, 2, 2)
    assert dtype.points == pytest.approx(-200 / 3)
    assert {by_name[name].state for name in by_name if name != "dtype"} == {"cleared"}
    assert detail.sentence == (
        "dtype alone causes 2 of 2 flips, and undoing it removes 2 of 2. It explains −66.7 of −66.7 points. "
        "enforce_eager and top_k cause none."
    )
    assert {step.n_beside_moved for step in bisect(experiment).steps} == {0}
    assert sortable_experiments().rows(limit=5)[0].sentence == detail.sentence


@pytest.mark.nightly
def test_steps_are_ordinary_runs_of_the_chosen_cases_on_endpoints_between_the_two(person: Any) -> None:
    ours, theirs = two_runs(profile("compiled", engine__enforce_eager=False))
    build.endpoint("long", dtype="bfloat16", max_model_len=1024)
    RunRecord.objects.filter(pk=theirs.pk).update(endpoint=EndpointRecord.objects.get(slug="long"))
    experiment = begun(plan(person, ours, theirs))
    run_all(experiment, lambda turned: False)
    runs = [arm.run for arm in experiment.arms.exclude(run=None)]
    assert {run.priority for run in runs} == {"bulk"}
    assert {run.labels["experiment"] for run in runs} == {str(experiment.pk)}
    assert all(repeat.cases is not None for run in runs for repeat in run.repeats.all())
    assert (runs[0].endpoint.slug, runs[0].profile.slug) == ("local", "pinned")
    assert (runs[1].endpoint.slug, runs[1].profile.slug) == ("long", "compiled")
    assert len(runs) == 2  # the candidate's flips did not come again, and nothing between can show any
    between = begun(plan(person, ours, theirs))
    run_all(between, lambda turned: "dtype" in turned)
    slugs = {tuple(arm.turned): arm.run.endpoint.slug for arm in between.arms.select_related("run__endpoint")}
    assert slugs["dtype",] == "half"
    assert slugs["max_model_len",].startswith("local.")


@pytest.mark.nightly
def test_two_fields_that_matter_only_together_are_named_together(person: Any) -> None:
    ours, theirs = two_runs(profile("odd", engine__enforce_eager=False, sampling__top_k=5, sampling__min_p=0.1))
    experiment = begun(plan(person, ours, theirs))
    assert experiment.arms.count() == 10
    run_all(experiment, lambda turned: {"sampling.top_k", "sampling.min_p"} <= turned)
    assert experiment.arms.count() == 12  # both turned, and both undone
    by_name = fields(experiment)
    assert (by_name["sampling.top_k"].state, by_name["sampling.top_k"].note) == ("together", "with min_p")
    assert (by_name["sampling.top_k"].n_made, by_name["sampling.top_k"].n_undone) == (0, 2)
    assert by_name["dtype"].state == "cleared"
    assert experiment_detail(experiment.pk).sentence.startswith(
        "min_p and top_k cause 2 of 2 flips only together, and undoing both removes 2 of 2."
    )


@pytest.mark.nightly
def test_one_field_takes_two_steps(person: Any) -> None:
    ours, theirs = two_runs()
    experiment = begun(plan(person, ours, theirs))
    run_all(experiment, lambda turned: "dtype" in turned)
    assert experiment.arms.count() == 2
    assert fields(experiment)["dtype"].state == "cause"


@pytest.mark.nightly
def test_what_nobody_can_set_is_named_and_not_blamed(person: Any) -> None:
    ours = build.finished_run(BLUE)
    older = build.bucket()
    older.fingerprint.manifest = {**older.fingerprint.manifest, "versions": {"vllm": "0.31.0"}}
    older.fingerprint.pk, older.fingerprint.digest = None, "e" * 64
    older.fingerprint.save()
    older.pk = None
    older.fingerprint = older.fingerprint
    older.save()
    theirs = build.finished_run(RED, on="half", by=build.process(older, manifest={}))
    build.process()  # what the worker served with last
    experiment = begun(plan(person, ours, theirs))
    version = fields(experiment)["versions.vllm"]
    assert (version.state, version.note) == ("not_reachable", "no live worker has 0.31.0")
    run_all(experiment, lambda turned: False)
    detail = experiment_detail(experiment.pk)
    assert detail.sentence == (
        "With all settable fields as in the candidate, 0 of 2 flips came again: none of them is the cause. "
        "Not tried: vllm version."
    )
    assert detail.status == "finished"
    assert fields(experiment)["dtype"].state == "not_tried"


def test_another_scorer_alone_is_scored_again_and_decodes_nothing(person: Any) -> None:
    ours = build.finished_run(("blue sky", "blue", "red"))
    document = {
        "slug": "colours",
        "title": "Colours",
        "max_tokens": 24,
        "scorer": {"kind": "contains"},
        "cases": [
            {"id": case, "prompt": f"Which colour has {case}?", "target": "blue", "tags": [f"tag-{at}"]}
            for at, case in enumerate(("sky", "sea", "a/b c"))
        ],
    }
    push_suite(document=document)
    theirs = build.finished_run(("blue sky", "blue", "red"))
    experiment = begun(plan(person, ours, theirs))
    scorer = fields(experiment)["scorer"]
    assert (scorer.state, scorer.points, scorer.n_steps) == ("scorer_only", pytest.approx(100 / 3), 0)
    detail = experiment_detail(experiment.pk)
    assert (detail.status, len(detail.arms)) == ("finished", 0)
    assert detail.sentence == "The scorer alone moves the score, by +33.3 points."


@pytest.mark.nightly
def test_where_cases_share_batches_each_step_decodes_the_whole_suite(person: Any) -> None:
    pinned = DEFAULT_PROFILES["pinned"]["settings"]
    settings = {**pinned, "batch_class": "mixed", "engine": {**pinned["engine"], "max_num_seqs": 8}}
    create_profile(slug="shared", title="Shared", settings=settings)
    ours, theirs = two_runs("shared", on="local")
    experiment = begun(plan(person, ours, theirs))
    run_all(experiment, lambda turned: "batching" in turned)
    whole = {tuple(arm.turned): arm.run.repeats.get().cases is None for arm in experiment.arms.all()}
    assert whole[()] is False
    assert whole["batching",] is True


def decode_as(arm: Any, texts: tuple[str, ...]) -> None:
    repeat = RepeatRecord.objects.get(run=arm.run)
    chosen = dict(enumerate(texts)) if repeat.cases is not None else list(texts)
    build.decode(arm.run, 1, chosen, by=build.process(build.bucket(arm.endpoint.dtype)))
    ResponseRecord.objects.filter(repeat__run=arm.run).update(decode_seconds=20, prefill_seconds=0, queued_seconds=0)
    reconcile()


def batched_runs(baseline: tuple[str, ...], candidate: tuple[str, ...]) -> tuple[RunRecord, RunRecord]:
    """Two runs that batch cases as they come, one of them in another dtype and with another top_k."""
    pinned = DEFAULT_PROFILES["pinned"]["settings"]
    settings = {**pinned, "batch_class": "mixed", "engine": {**pinned["engine"], "max_num_seqs": 8}}
    create_profile(slug="shared", title="Shared", settings=settings)
    other = {**settings, "sampling": {**settings["sampling"], "top_k": 5}}
    create_profile(slug="other", title="Other", settings=other)
    ours = build.finished_run(baseline, under="shared", by=build.process(build.bucket(batch_class="mixed")))
    by = build.process(build.bucket("bfloat16", batch_class="mixed"))
    return ours, build.finished_run(candidate, on="half", under="other", by=by)


@pytest.mark.nightly
def test_where_batches_move_answers_each_step_is_decoded_three_times_and_chance_is_named(person: Any) -> None:
    ours, theirs = batched_runs(("blue", "blue", "blue"), ("red", "red", "red"))
    experiment = plan(person, ours, theirs)
    detail = experiment_detail(experiment.pk)
    assert detail.bisect is not None
    assert (detail.bisect.n_decodings, len(detail.arms), detail.cost.n_runs) == (3, 12, 12)
    names = [arm.name for arm in detail.arms]
    assert names[:4] == [*(f"baseline as it was ({n} of 3)" for n in (1, 2, 3)), "candidate as it was (1 of 3)"]
    assert detail.cost.n_starts == 3  # decodings of one step share an engine, and so do steps of one dtype in turn
    begun(experiment)
    n = 0
    while (arm := experiment.arms.filter(status="running").first()) is not None:
        n += 1
        flipped = "red" if "dtype" in arm.turned else "blue"
        decode_as(arm, (flipped, flipped, "red" if n % 2 else "blue"))
    shown = bisect(experiment)
    assert n == 12
    assert [(case.is_chance, case.is_reproduced) for case in shown.cases] == [
        (False, True),
        (False, True),
        (True, False),
    ]
    assert {name: each.state for name, each in fields(experiment).items()} == {
        "dtype": "cause",
        "sampling.top_k": "cleared",
    }
    assert fields(experiment)["dtype"].points == pytest.approx(-200 / 3)  # without the case that is chance
    sentence = experiment_detail(experiment.pk).sentence
    assert (
        "1 chosen case is left out as chance (a/b c): one side gave several answers in 3 equal decodings." in sentence
    )
    assert "did not reproduce" not in sentence


@pytest.mark.nightly
def test_one_case_convicts_no_field_where_batches_move_answers(person: Any) -> None:
    ours, theirs = batched_runs(("blue", "blue", "blue"), ("red", "blue", "blue"))
    experiment = begun(plan(person, ours, theirs))
    while (arm := experiment.arms.filter(status="running").first()) is not None:
        decode_as(arm, ("red" if "dtype" in arm.turned else "blue", "blue", "blue"))
    assert bisect(experiment).blamed == ()
    assert fields(experiment)["dtype"].state == "open"
    assert "One case is not enough to blame a field" in experiment_detail(experiment.pk).sentence


@pytest.mark.nightly
def test_cases_that_moved_the_score_and_did_not_come_again_have_no_cause(person: Any) -> None:
    ours = build.finished_run(("blue", "red", "blue"))
    theirs = build.finished_run(("red", "sea", "blue"), on="half", by=build.process(build.bucket("bfloat16")))
    experiment = begun(plan(person, ours, theirs))
    while (arm := experiment.arms.filter(status="running").first()) is not None:
        decode_as(arm, ("blue", "sea" if arm.turned else "red", "blue"))
    sentence = experiment_detail(experiment.pk).sentence
    assert "The cases that moved the score did not reproduce; their cause is unknown." in sentence
    assert "It explains" not in sentence


@pytest.mark.nightly
def test_it_stops_at_its_budget_and_goes_on_where_it_was(person: Any) -> None:
    ours, theirs = two_runs(profile("compiled", engine__enforce_eager=False))
    experiment = begun(plan(person, ours, theirs, budget_minutes=0.5))
    run_all(experiment, lambda turned: "dtype" in turned)
    detail = experiment_detail(experiment.pk)
    assert detail.status == "stopped"
    assert detail.sentence.startswith("Stopped by its budget. 2 conditions are missing.")
    n_runs = RunRecord.objects.count()
    resume_experiment(experiment_id=experiment.pk, budget_minutes=60)
    reconcile()
    run_all(experiment, lambda turned: "dtype" in turned)
    assert RunRecord.objects.count() == n_runs + 2
    assert fields(experiment)["dtype"].state == "cause"


@pytest.mark.nightly
def test_a_cancelled_one_ends_its_run_and_a_lost_sweep_costs_nothing(person: Any) -> None:
    ours, theirs = two_runs()
    experiment = begun(plan(person, ours, theirs))
    reconcile()
    reconcile()
    assert RunRecord.objects.count() == 3
    cancel_experiment(experiment_id=experiment.pk)
    assert experiment.arms.first().run.status == "cancelled"
    assert experiment_detail(experiment.pk).status == "cancelled"


@pytest.mark.nightly
def test_a_step_that_fails_says_so_and_the_others_go_on(person: Any) -> None:
    ours, theirs = two_runs(profile("compiled", engine__enforce_eager=False))
    experiment = begun(plan(person, ours, theirs))
    while (arm := experiment.arms.filter(status="running").first()) is not None:
        if arm.turned == ["dtype"]:
            RunRecord.objects.filter(pk=arm.run_id).update(status="failed", failure="No engine starts.")
        else:
            decode(arm, has_flipped="dtype" in arm.turned)
        reconcile()
    detail = experiment_detail(experiment.pk)
    assert detail.status == "finished"
    assert "No engine starts." in {arm.problem for arm in detail.arms if arm.problem}.pop()
    assert fields(experiment)["dtype"].state == "not_tried"
    assert bisect(experiment).blamed == ()


@pytest.mark.nightly
def test_runs_that_are_deleted_leave_what_was_found(person: Any) -> None:
    ours, theirs = two_runs()
    experiment = begun(plan(person, ours, theirs))
    run_all(experiment, lambda turned: "dtype" in turned)
    sentence = experiment_detail(experiment.pk).sentence
    delete_run(run_id=theirs.pk)
    assert experiment_detail(experiment.pk).sentence == sentence


@pytest.mark.nightly
def test_what_cannot_be_bisected_is_refused_with_the_reason(person: Any) -> None:
    ours = build.finished_run(BLUE)
    same = build.finished_run(BLUE)
    with pytest.raises(Conflict, match="No known setting of these two runs differs"):
        plan(person, ours, same)
    with pytest.raises(Conflict, match="Every answer of the two runs is the same"):
        plan(person, ours, build.finished_run(BLUE, on="half", by=build.process(build.bucket("bfloat16"))))
    with pytest.raises(InvalidInput):
        plan(person, ours, ours)
    with pytest.raises(InvalidInput):
        plan(person, ours, same, cases=0)
    with pytest.raises(InvalidInput):
        plan(person, ours, same, budget_minutes=0)
    with pytest.raises(NotFound):
        plan_bisect(baseline=ours.pk, candidate=0, user=person)
    with pytest.raises(Conflict, match="no whole pass"):
        plan(person, ours, build.run())
    RunRecord.objects.filter(pk=same.pk).update(is_reported=True)
    with pytest.raises(Conflict, match="served by an external server"):
        plan(person, ours, same)
    assert not ExperimentRecord.objects.exists()
