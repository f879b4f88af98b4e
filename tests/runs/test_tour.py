"""The sample of the tour: real runs and releases of each verdict, loaded once, taken away by one command."""

import io
import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command

from runs.access import grant_role
from runs.catalogue import store_default_policies, store_default_profiles
from runs.models import (
    BaselineRecord,
    ComparisonRecord,
    EndpointRecord,
    ImportRecord,
    PolicyRecord,
    ReleaseRecord,
    ResponseRecord,
    RunRecord,
    Suite,
    SuiteVersionRecord,
)
from runs.release import sign_release
from runs.tour import LABELS, SUITE, end_tour, load_tour, remove_tour, tour_of
from tests import build
from tests.casts import cast

pytestmark = pytest.mark.django_db
TOLD = "no_ship"


@cast
def person() -> Any:
    store_default_profiles()
    store_default_policies()
    user = get_user_model().objects.create(username="mira")
    grant_role(user=user, role="admin")
    return user


@cast
def tour(person: Any) -> Any:
    load_tour(user=person)
    found = tour_of(person)
    assert found is not None
    return found


def words() -> list[str]:
    return sorted(ReleaseRecord.objects.values_list("verdict__word", flat=True))


def test_a_fresh_board_gets_a_baseline_and_a_release_of_each_verdict(tour: Any) -> None:
    assert words() == ["inconclusive", "no_ship", "not_comparable", "ship"]
    apart = ReleaseRecord.objects.get(verdict__word="not_comparable")
    assert apart.verdict.document["reasons"][0]["code"] == "model_changed"
    assert BaselineRecord.objects.get().run_id == int(tour.release.baseline.run)
    assert all(run.labels == LABELS and run.status == "finished" for run in RunRecord.objects.all())
    assert set(RunRecord.objects.values_list("suite_version__suite__slug", flat=True)) == {SUITE}


def test_its_runs_are_whole_and_attested_and_no_log(tour: Any) -> None:
    n_cases = SuiteVersionRecord.objects.get(suite__slug=SUITE).n_cases
    for run in RunRecord.objects.all():
        responses = ResponseRecord.objects.filter(repeat__run=run)
        assert responses.count() == 5 * n_cases
        assert not responses.filter(trace_block=None).exists()
        assert (run.is_log, run.is_of_elsewhere) == (False, True)
        assert run.bucket is not None
        assert all(pin["held"] for each in run.bucket.engine_processes.all() for pin in each.pins)


def test_the_tour_tells_of_a_case_that_broke_at_a_token(tour: Any) -> None:
    assert tour.release.verdict == TOLD
    assert tour.comparison.score.difference < 0
    scores = tour.case.outcome
    assert sum(scores.scores_baseline) > sum(scores.scores_candidate)
    assert tour.case.excerpt.baseline.token != tour.case.excerpt.candidate.token


def test_loading_it_again_changes_nothing(tour: Any, person: Any) -> None:
    before = RunRecord.objects.count(), ReleaseRecord.objects.count(), ImportRecord.objects.count()
    load_tour(user=person)
    assert (RunRecord.objects.count(), ReleaseRecord.objects.count(), ImportRecord.objects.count()) == before


def test_who_has_ended_it_sees_it_no_more_and_others_do(tour: Any, person: Any) -> None:
    end_tour(user=person)
    end_tour(user=person)
    assert tour_of(person) is None
    assert tour_of(get_user_model().objects.create(username="noa")) is not None


@pytest.mark.nightly
def test_taken_away_nothing_of_it_is_left(tour: Any, person: Any) -> None:
    assert remove_tour() == ()
    for record in (
        RunRecord,
        ReleaseRecord,
        BaselineRecord,
        Suite,
        EndpointRecord,
        ImportRecord,
        ComparisonRecord,
        ResponseRecord,
    ):
        assert not record.objects.exists(), record
    assert not PolicyRecord.objects.filter(slug=SUITE).exists()
    assert tour_of(person) is None


def test_what_is_no_sample_stays(tour: Any) -> None:
    run = build.finished_run(["blue"])
    remove_tour()
    assert list(RunRecord.objects.all()) == [run]


def test_what_was_signed_stays_and_is_named(tour: Any, person: Any) -> None:
    release = ReleaseRecord.objects.get(pk=tour.release.id)
    assert release.verdict is not None
    sign_release(
        release_id=release.pk,
        decision="reject",
        note="A try.",
        input_digest=release.verdict.input_digest,
        user=person,
    )
    kept = remove_tour()
    assert f"Release {release.pk} was signed; it stays, with its runs." in kept
    assert list(ReleaseRecord.objects.all()) == [release]
    assert set(RunRecord.objects.values_list("pk", flat=True)) == {
        int(tour.release.baseline.run),
        int(tour.release.candidate.run),
    }


def test_a_board_that_has_suites_gets_no_tour_by_itself(db: None, settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path
    build.finished_run(["blue"])
    call_command("load_samples", no_engine=True, stdout=io.StringIO())
    assert not Suite.objects.filter(slug=SUITE).exists()


@pytest.mark.nightly
def test_the_tour_can_be_left_to_its_own_command(db: None, settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path
    for is_first in (True, False):
        said = io.StringIO()
        call_command("load_samples", no_engine=True, no_tour=True, migrate=True, stdout=said, stderr=io.StringIO())
        tables, samples = map(json.loads, said.getvalue().splitlines())
        assert (tables, samples["is_first"]) == ({"tables": True}, is_first)
    assert not Suite.objects.filter(slug=SUITE).exists()


@pytest.mark.nightly
def test_a_board_without_an_engine_has_it_from_the_start(db: None, settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path
    call_command("load_samples", no_engine=True, stdout=io.StringIO())
    assert words() == ["inconclusive", "no_ship", "not_comparable", "ship"]
    remove_tour()
    call_command("load_samples", no_engine=True, stdout=io.StringIO())
    assert not ReleaseRecord.objects.exists()
