"""`evalboard verify`, against a server that is really there; the worker's part is played by the services."""

import json
from collections.abc import Callable, Mapping
from subprocess import CompletedProcess

import pytest

from runs.forced import create_forced
from runs.models import ForcedScoringRecord, RunRecord
from tests import build, forced
from tests.cli.conftest import ctrl_c

Call = Callable[..., "CompletedProcess[str]"]
N = 12
SHIFTS = {"honest": 0.01, "swapped": 0.02, "control": 0.0, "numerics": 0.01, "planted": 0.02}
QUEUED = ": queued, 0 of 12 answers\n"
Runs = Mapping[str, RunRecord]


@pytest.fixture
def runs(transactional_db: None) -> Runs:
    build.suite(case_ids=[f"case-{number:02}" for number in range(N)])
    build.endpoint("reference")
    return {name: build.finished_run(["blue"] * N) for name in SHIFTS}


def command(runs: Runs, run: str = "swapped", *more: str) -> list[str]:
    known = [word for name in ("control", "numerics", "planted") for word in (f"--{name}", str(runs[name].pk))]
    return ["verify", str(runs[run].pk), "--on", "reference", *known, *more]


def finish(runs: Runs, *, dies_on: tuple[int, ...] = ()) -> Callable[[], None]:
    """Return what scores everything that waits, each token less likely by as much as the run is off."""
    shifts = {run.pk: SHIFTS[name] for name, run in runs.items()}

    def score() -> None:
        reference = build.process()
        for scoring in ForcedScoringRecord.objects.filter(status="queued").order_by("pk"):
            shift = shifts.get(scoring.run_id, 0.01)
            forced.scored(scoring, by=reference, shift=shift, other_at=None, dies_on=dies_on)

    return score


def test_another_model_is_1_with_the_numbers_behind_it(evalboard: Call, runs: Runs) -> None:
    done = evalboard(*command(runs), meanwhile=[(QUEUED, finish(runs))])
    assert done.returncode == 1
    sentence, *lines = done.stdout.splitlines()
    assert sentence.startswith("Another model: 24 tokens of 12 answers are farther from the reference")
    names = [line.strip().partition(": ")[0] for line in lines]
    assert names[:6] == ["statistic", "endpoint", "control", "numerics", "planted", "boundary"]
    assert "  above numerics: p = 0.001" in lines
    assert lines[-1].endswith(f"/forced/{ForcedScoringRecord.objects.get(run=runs['swapped']).pk}/")
    stored = ForcedScoringRecord.objects.values_list("run", "endpoint__slug", "profile__slug")
    asked = [runs[name].pk for name in ("swapped", "control", "numerics", "planted")]
    assert sorted(stored) == sorted((run, "reference", "pinned") for run in asked)
    honest = command(runs, "honest", "--fail-on", "shift")
    done = evalboard(*honest, meanwhile=[(QUEUED, finish(runs))])
    assert (done.returncode, "--fail-on: shift: Same model, other numerics" in done.stderr) == (5, True), done.stderr


@pytest.mark.nightly
def test_what_was_scored_is_used_again(evalboard: Call, runs: Runs) -> None:
    first = evalboard(*command(runs, "honest", "--json"), meanwhile=[(QUEUED, finish(runs))])
    again = evalboard(*command(runs, "honest", "--json"))
    assert (first.returncode, again.returncode, again.stderr) == (0, 0, "")
    assert json.loads(first.stdout) == json.loads(again.stdout)
    assert json.loads(again.stdout)["state"] == "same_model_other_numerics"
    assert ForcedScoringRecord.objects.count() == 4


@pytest.mark.nightly
def test_all_is_scored_anew_where_that_is_wanted_and_ctrl_c_leaves_it_going(evalboard: Call, runs: Runs) -> None:
    evalboard(*command(runs), meanwhile=[(QUEUED, finish(runs))])
    stopped = evalboard(*command(runs, "swapped", "--again"), meanwhile=[(QUEUED, ctrl_c)])
    assert (stopped.returncode, ForcedScoringRecord.objects.count()) == (130, 8)
    come_back = stopped.stderr.rpartition("Come back with: evalboard ")[2].split()
    assert evalboard(*come_back, meanwhile=[(QUEUED, finish(runs))]).returncode == 1
    assert ForcedScoringRecord.objects.count() == 8


@pytest.mark.nightly
def test_what_was_scored_in_part_elsewhere_or_otherwise_is_not_used(evalboard: Call, runs: Runs) -> None:
    build.endpoint("other")
    build.profile("fast")
    run = runs["swapped"]
    create_forced(run_id=run.pk, endpoint="reference", cases=["case-00"])
    create_forced(run_id=run.pk, endpoint="other")
    create_forced(run_id=run.pk, endpoint="reference", profile="fast")
    lost = create_forced(run_id=run.pk, endpoint="reference")
    ForcedScoringRecord.objects.filter(pk=lost.pk).update(status="failed")
    evalboard(*command(runs), meanwhile=[(QUEUED, ctrl_c)])
    assert ForcedScoringRecord.objects.filter(run=run).count() == 5
    assert ForcedScoringRecord.objects.latest("pk").profile.slug == "pinned"


@pytest.mark.nightly
def test_too_few_tokens_are_2(evalboard: Call, runs: Runs) -> None:
    few = build.finished_run(["blue"], version=build.suite("one", case_ids=["sky"]))
    arguments = command({**runs, "few": few}, "few", "--profile", "pinned")
    done = evalboard(*arguments, meanwhile=[(": queued, 0 of 1 answers\n", finish(runs))])
    assert (done.returncode, done.stdout.partition(":")[0]) == (2, "Too few tokens")


@pytest.mark.nightly
def test_a_run_that_cannot_be_scored_is_4_and_says_why(evalboard: Call, runs: Runs) -> None:
    done = evalboard(*command(runs), meanwhile=[(QUEUED, finish(runs, dies_on=tuple(range(N))))])
    assert (done.returncode, done.stdout.endswith(": failed. It died.\n")) == (4, True)


def test_what_makes_no_sense_is_64(evalboard: Call, runs: Runs) -> None:
    known = ["--on", "reference", "--control", str(runs["control"].pk)]
    for more in ([], ["--numerics", "two"], ["--numerics", str(runs["control"].pk)]):
        assert evalboard("verify", str(runs["swapped"].pk), *known, *more).returncode == 64
    assert not ForcedScoringRecord.objects.exists()
