"""`evalboard force`, against a server that is really there; the worker's part is played by the services."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from runs.models import ForcedScoringRecord, RunRecord
from tests import build, forced
from tests.cli.conftest import ctrl_c

Call = Callable[..., "CompletedProcess[str]"]
QUEUED = ": queued, 0 of 4 answers\n"
TAKES = "takes 4 answers with 8 tokens, after prompts of 28 tokens.\n"


@pytest.fixture
def run(transactional_db: None) -> RunRecord:
    made = build.finished_run()
    build.endpoint("other", dtype="bfloat16")
    return made


def finish(*, dies_on: tuple[int, ...] = ()) -> None:
    forced.scored(ForcedScoringRecord.objects.get(), dies_on=dies_on)


def test_a_scoring_is_asked_for_followed_and_read(evalboard: Call, run: RunRecord) -> None:
    done = evalboard("force", str(run.pk), "--on", "other", meanwhile=[(QUEUED, finish)])
    scoring = ForcedScoringRecord.objects.get()
    assert (done.returncode, done.stderr) == (0, f"Scoring run {run.pk} {TAKES}forced scoring {scoring.pk}{QUEUED}")
    title, distance, *_ = done.stdout.splitlines()
    assert title.startswith(f"Forced scoring {scoring.pk} of run {run.pk} on other: finished. http://")
    assert distance.startswith("Over 8 tokens of 4 answers the logprobs differ by 0.250 nats (median)")
    for limit, code, words in (
        ("flip", 5, "flip: 4 tokens would have been chosen otherwise"),
        ("kl=1", 4, "kl: the answers were not sampled"),
        ("shift", 64, "--fail-on takes flip, kl=N here, not shift."),
    ):
        done = evalboard("force", "--show", str(scoring.pk), "--fail-on", limit)
        assert (done.returncode, words in done.stderr) == (code, True), done.stderr


def test_what_it_takes_is_said_without_asking_for_it(evalboard: Call, run: RunRecord) -> None:
    done = evalboard("force", str(run.pk), "--cost")
    assert (done.returncode, done.stdout) == (0, f"Scoring run {run.pk} {TAKES}")
    assert not ForcedScoringRecord.objects.exists()


@pytest.mark.parametrize(
    "chosen",
    [
        ("--tag", "tag-1", "--repeats", "2"),
        pytest.param(("--cases", "sea", "--repeats", "2"), marks=pytest.mark.nightly),
    ],
)
def test_what_it_takes_is_of_the_answers_that_are_chosen(
    evalboard: Call, run: RunRecord, chosen: tuple[str, ...]
) -> None:
    done = evalboard("force", str(run.pk), *chosen, "--cost")
    assert done.stdout.startswith(f"Scoring run {run.pk} takes 1 answer with ")
    refused = evalboard("force", str(run.pk), "--on", "other", "--tag", "moon")
    assert (refused.returncode, refused.stdout) == (64, "")
    assert "takes" not in refused.stderr
    assert not ForcedScoringRecord.objects.exists()


@pytest.mark.nightly
def test_cases_repeats_and_another_run_s_stack_are_sent_along(evalboard: Call, run: RunRecord) -> None:
    other = build.finished_run(on="other")
    asked = ("force", str(run.pk), "--as", str(other.pk), "--cases", "sky, sea", "--repeats", "2")
    evalboard(*asked, meanwhile=[(": queued, 0 of 2 answers\n", ctrl_c)])
    scoring = ForcedScoringRecord.objects.get()
    assert (scoring.endpoint.slug, scoring.repeats, scoring.n_answers) == ("other", [2], 2)


@pytest.mark.nightly
def test_a_tag_is_sent_along(evalboard: Call, run: RunRecord) -> None:
    asked = ("force", str(run.pk), "--on", "other", "--tag", "tag-1")
    evalboard(*asked, meanwhile=[(": queued, 0 of 2 answers\n", ctrl_c)])
    assert ForcedScoringRecord.objects.get().n_answers == 2


@pytest.mark.nightly
def test_json_is_the_scoring_and_nothing_else(evalboard: Call, run: RunRecord) -> None:
    done = evalboard("force", str(run.pk), "--on", "other", "--json", meanwhile=[(QUEUED, finish)])
    assert json.loads(done.stdout)["figures"]["n_responses"] == 4
    again = evalboard("force", "--show", str(ForcedScoringRecord.objects.get().pk))
    assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.nightly
def test_a_scoring_without_any_trace_is_4_and_says_why(evalboard: Call, run: RunRecord) -> None:
    done = evalboard("force", str(run.pk), "--on", "other", meanwhile=[(QUEUED, lambda: finish(dies_on=(0, 1, 2)))])
    assert (done.returncode, done.stdout.splitlines()[-1]) == (4, "It died.")


@pytest.mark.parametrize("options", [(), ("--on", "other", "--as", "1"), ("--show", "1", "--on", "other")])
def test_what_makes_no_sense_is_64(evalboard: Call, run: RunRecord, options: tuple[str, ...]) -> None:
    assert evalboard("force", str(run.pk), *options).returncode == 64
    assert not ForcedScoringRecord.objects.exists()
