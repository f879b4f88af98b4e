"""Probes of kind `verify`: what they ask for, what serves again, how they end, and what they refuse."""

from typing import Any

import pytest

from evalboard.core.errors import InvalidInput, NotFound
from runs.models import EndpointRecord, EngineProcess, ForcedScoringRecord, ProbeRecord, RunRecord, ScheduledStart
from runs.probes import create_probe, newest_probes, probes_before, read
from runs.run import cancel_run, delete_run
from runs.schedules import create_schedule
from runs.schedules.schedules import start_due
from tests import build, probes, verifying
from tests.nightly import few, nightly

pytestmark = pytest.mark.django_db


@pytest.fixture
def stack() -> EngineProcess:
    """The reference's."""
    return build.process()


def slugs(probe: ProbeRecord) -> list[tuple[str, str]]:
    return [(each.role, each.run.endpoint.slug) for each in probe.sets.all() if each.run is not None]


def test_it_asks_the_endpoint_and_what_is_known_at_once(stack: EngineProcess) -> None:
    probe = verifying.ask(user=build.user("grace"))
    assert probe.parameters == {
        "suite": "texts",
        "suite_version": 1,
        "reference": "reference",
        "numerics": "second",
        "planted": None,
    }
    assert slugs(probe) == [("endpoint", "asked"), ("control", "reference"), ("numerics", "second")]
    assert {(run.repeats.count(), run.labels["probe"]) for run in RunRecord.objects.all()} == {(1, str(probe.pk))}
    detail = read.probe_detail(probe.pk)
    assert next((each.role, each.run_status, each.forced) for each in detail.sets) == ("endpoint", "queued", None)
    assert (detail.progress.n_done, detail.progress.n_total, detail.control) == (0, 6, None)


@pytest.mark.parametrize(
    ("shift", "state"),
    [(0.0, "same_stack"), (0.02, "other_model"), *nightly([(0.01, "same_model_other_numerics"), (3.0, "other_model")])],
)
def test_it_ends_with_one_of_the_words(stack: EngineProcess, shift: float, state: str) -> None:
    probe = verifying.end(verifying.ask(planted="changed"), stack, endpoint=shift)
    assert probe.finding is not None, probe.error
    assert (probe.status, probe.finding["state"]) == ("finished", state)
    own = probe.sets.get(role="endpoint")
    assert probe.finding["numbers"]["endpoint"]["forced"] == str(own.scoring_id)
    assert probe.finding["numbers"]["planted"] is not None
    assert [row.finding and row.finding.state for row in newest_probes(endpoint="asked")] == [state]
    assert [row.kind for row in probes_before(["asked"], until=probe.finished_at)] == ["verify"]  # type: ignore[arg-type]


@pytest.mark.nightly
def test_it_waits_while_anything_is_at_work(stack: EngineProcess) -> None:
    probe = verifying.ask()
    verifying.look()
    probe.refresh_from_db()
    assert (probe.status, probe.owner, ForcedScoringRecord.objects.count(), probe.n_crashes) == ("queued", None, 0, 0)
    before = read.probe_state(probe.pk)
    verifying.end_runs(probe, stack)
    verifying.look()
    assert [each.run.endpoint.slug for each in ForcedScoringRecord.objects.all()] == [
        "asked"
    ]  # it says which stack scores
    assert read.probe_state(probe.pk) != before
    verifying.look()
    assert ForcedScoringRecord.objects.count() == 1
    verifying.end_scorings(stack)
    verifying.look()
    assert ForcedScoringRecord.objects.count() == 3


@pytest.mark.nightly
def test_a_second_one_asks_only_the_endpoint(stack: EngineProcess) -> None:
    first = verifying.end(verifying.ask(planted="changed"), stack)
    n_runs, n_scorings = RunRecord.objects.count(), ForcedScoringRecord.objects.count()
    second = verifying.end(verifying.ask(planted="changed"), stack, endpoint=0.0)
    assert (RunRecord.objects.count(), ForcedScoringRecord.objects.count()) == (n_runs + 1, n_scorings + 1)
    for role in ("control", "numerics", "planted"):
        assert second.sets.get(role=role).scoring_id == first.sets.get(role=role).scoring_id
    assert second.finding is not None
    assert second.finding["state"] == "same_stack"


@pytest.mark.nightly
def test_what_is_known_is_scored_anew_where_the_reference_has_another_stack_since(stack: EngineProcess) -> None:
    first = verifying.end(verifying.ask(), stack)
    other = build.process(build.bucket("float16"))
    second = verifying.end(verifying.ask(), other, endpoint=0.0)
    assert second.finding is not None, second.error
    assert second.finding["numbers"]["bucket"] == str(other.bucket_id)
    before, after = (each.sets.get(role="control") for each in (first, second))
    assert after.run_id != before.run_id  # the noise of the stack that was says nothing of this one
    before, after = (each.sets.get(role="numerics") for each in (first, second))
    assert (after.run_id, after.scoring_id) == (before.run_id, after.scoring_id)
    assert after.scoring_id != before.scoring_id
    assert [each["code"] for each in second.finding["numbers"]["warnings"]] == ["rendered"]


@pytest.mark.parametrize(
    ("endpoint", "parameters", "field"),
    few(
        [
            ("asked", {"reference": None}, "parameters.reference"),
            ("asked", {"reference": "hosted"}, "parameters.reference"),
            ("asked", {"suite": None}, "parameters.suite"),
            ("asked", {"numerics": "asked"}, "parameters.numerics"),
            ("asked", {"planted": "reference"}, "parameters.planted"),
            ("asked", {"planted": 3}, "parameters.planted"),
            ("asked", {"reference": "changed"}, "parameters.numerics"),  # nothing here has its model in another dtype
            ("reference", {}, "parameters.reference"),
        ],
        4,
    ),
)
def test_what_cannot_be_verified_is_refused_by_name(
    stack: EngineProcess, endpoint: str, parameters: dict[str, Any], field: str
) -> None:
    verifying.ask()
    probes.remote("hosted")
    RunRecord.objects.filter(endpoint__slug="asked").delete()
    n_runs = RunRecord.objects.count()
    known = {"suite": "texts", "reference": "reference"}
    with pytest.raises(InvalidInput) as refused:
        create_probe(endpoint=endpoint, kind="verify", parameters={**known, **parameters})
    assert set(refused.value.fields) == {field}
    assert (ProbeRecord.objects.count(), RunRecord.objects.count()) == (1, n_runs)


def test_what_it_names_must_be_there(stack: EngineProcess) -> None:
    verifying.ask()
    for name in ("suite", "reference", "numerics", "planted"):
        with pytest.raises(NotFound, match="nowhere"):
            verifying.ask(**{name: "nowhere"})
    assert ProbeRecord.objects.count() == 1


def test_a_suite_with_more_cases_than_count_is_refused(stack: EngineProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.forced.known_answers.MAX_ANSWERS", verifying.N - 1)
    with pytest.raises(InvalidInput) as refused:
        verifying.ask()
    assert refused.value.fields == {"parameters.suite": "It has 12 cases, and a verification reads 11 answers at most."}


def test_without_forced_scoring_it_is_refused(stack: EngineProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalboard.wings.WINGS", ("lab",))
    with pytest.raises(InvalidInput) as refused:
        verifying.ask()
    assert refused.value.fields == {"kind": "It needs forced scoring, which this installation does not have."}
    assert not ProbeRecord.objects.exists()


def test_the_reference_is_the_endpoints_own_and_the_suite_that_of_its_newest_run(stack: EngineProcess) -> None:
    verifying.ask()
    EndpointRecord.objects.filter(slug="asked").update(reference=EndpointRecord.objects.get(slug="reference"))
    probe = create_probe(endpoint="asked", kind="verify", parameters={})
    assert (probe.parameters["reference"], probe.parameters["suite"]) == ("reference", "texts")


def test_a_run_that_came_to_nothing_fails_it(stack: EngineProcess) -> None:
    probe = verifying.ask()
    run = probe.sets.get(role="endpoint").run
    assert run is not None
    cancel_run(run_id=run.pk)
    probe = verifying.end(probe, stack)
    assert (probe.status, probe.error) == ("failed", f"Run {run.pk}, of its endpoint, is cancelled.")
    assert (probe.finding, ForcedScoringRecord.objects.count()) == (None, 0)


@pytest.mark.nightly
def test_a_run_that_was_deleted_fails_it_and_takes_nothing_from_one_that_has_ended(stack: EngineProcess) -> None:
    ended = verifying.end(verifying.ask(), stack)
    control = ended.sets.get(role="control").run
    assert control is not None
    waiting = verifying.ask()
    delete_run(run_id=control.pk)
    waiting = verifying.end(waiting, stack)
    assert (waiting.status, waiting.error) == ("failed", "The run of its control was deleted.")
    ended.refresh_from_db()
    assert ended.finding is not None
    assert [(each.role, each.run) for each in read.probe_detail(ended.pk).sets][1] == ("control", None)


@pytest.mark.nightly
def test_it_is_scheduled_as_others_are(stack: EngineProcess) -> None:
    ada = build.user("ada")
    verifying.end(verifying.ask(), stack)
    order = {"endpoint": "asked", "kind": "verify", "parameters": {"suite": "texts", "reference": "reference"}}
    schedule = create_schedule(slug="weights", cron="0 3 * * *", kind="probe", order=order, user=ada)
    assert ProbeRecord.objects.count() == 1  # it was tried, and taken back with its run
    type(schedule).objects.update(next_at="2026-01-01T00:00:00Z")
    assert start_due(schedule.pk)
    start = ScheduledStart.objects.get()
    assert (start.problem, start.probe and start.probe.kind) == ("", "verify")
    assert start.probe is not None
    assert start.probe.sets.count() == 3
