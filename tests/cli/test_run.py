"""`evalboard run`."""

import json
from collections.abc import Callable
from datetime import timedelta
from subprocess import CompletedProcess

import pytest
from django.conf import settings
from django.utils import timezone

from runs.models import RunRecord
from runs.run import cancel_run
from tests import build

Call = Callable[..., "CompletedProcess[str]"]

ASKED = ("run", "colours", "--endpoint", "local", "--profile", "pinned")


@pytest.fixture(autouse=True)
def _catalogue(transactional_db: None) -> None:
    build.suite()
    build.endpoint()
    build.profile()


def test_a_run_is_asked_for_and_said_where_it_is(evalboard: Call) -> None:
    done = evalboard(*ASKED, "--repeats", "2", "--label", "commit=1f3a", "--label", "url=http://x/?a=b")
    run = RunRecord.objects.get()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Run {run.pk} is queued: 6 responses to decode. http://")
    assert run.labels == {"commit": "1f3a", "url": "http://x/?a=b"}
    assert run.created_by is not None


def test_a_sampled_run_says_its_temperature_and_seed(evalboard: Call) -> None:
    build.profile("sampled")
    asked = (*ASKED[:-1], "sampled", "--repeats", "2")
    done = evalboard(*asked, "--seed", "7")
    assert "6 responses to decode, sampled, T = 0.7, seed 7. http" in done.stdout
    assert RunRecord.objects.get().seed == 7
    greedy = evalboard(*ASKED, "--seed", "7")
    assert greedy.returncode != 0
    assert "temperature 0" in greedy.stderr


def test_json_is_the_run_as_the_server_has_it(evalboard: Call) -> None:
    body = json.loads(evalboard(*ASKED, "--json").stdout)
    assert (body["status"], len(body["repeats"])) == ("queued", 5)


def test_another_checkpoint_may_be_named(evalboard: Call) -> None:
    path = str(settings.MODEL_ROOTS[0] / "paint-1b-v2")
    assert evalboard(*ASKED, "--model", path).returncode == 0
    assert RunRecord.objects.get().model_override == {"path": path}


def test_a_baseline_is_asked_for_in_turn_and_only_once(evalboard: Call) -> None:
    build.endpoint("other")
    asked = (*ASKED, "--repeats", "2", "--in-turn-with", "other", "--label", "commit=1f3a", "--key", "ci-1")
    done = evalboard(*asked)
    theirs, ours = RunRecord.objects.all()
    assert [str(run.endpoint) for run in (ours, theirs)] == ["other", "local"]
    assert ours.events.get(code="created").text.endswith(f"in turn with run {theirs.pk}.")
    assert (done.returncode, [line.split(":")[0] for line in done.stdout.splitlines()]) == (
        0,
        [f"Run {run.pk} is queued" for run in (ours, theirs)],
    )
    body = json.loads(evalboard(*asked, "--json").stdout)
    assert (body["baseline"]["id"], body["candidate"]["id"]) == (str(ours.pk), str(theirs.pk))
    assert RunRecord.objects.count() == 2


def test_a_candidates_checkpoint_is_not_the_baselines(evalboard: Call) -> None:
    path = str(settings.MODEL_ROOTS[0] / "paint-1b-v2")
    assert evalboard(*ASKED, "--in-turn-with", "local", "--model", path).returncode == 0
    assert [run.model_override for run in RunRecord.objects.order_by("pk")] == [None, {"path": path}]


@pytest.mark.nightly
def test_a_second_run_asks_the_same_once_more_an_hour_later(evalboard: Call) -> None:
    evalboard(*ASKED, "--repeats", "2")
    first = RunRecord.objects.get()
    done = evalboard("run", "--second-run-of", str(first.pk))
    assert "has not ended" in done.stderr
    RunRecord.objects.filter(pk=first.pk).update(finished_at=timezone.now() - timedelta(minutes=50))
    assert "may still hold the answers of run" in evalboard("run", "--second-run-of", str(first.pk)).stderr
    RunRecord.objects.filter(pk=first.pk).update(finished_at=timezone.now() - timedelta(minutes=61))
    assert evalboard("run", "--second-run-of", str(first.pk)).returncode == 0
    second = RunRecord.objects.exclude(pk=first.pk).get()
    names = ("suite_version", "endpoint", "profile")
    assert [getattr(second, name) for name in names] == [getattr(first, name) for name in names]
    assert second.repeats.count() == 1


def test_a_run_is_completed_instead_of_a_new_one(evalboard: Call) -> None:
    evalboard(*ASKED, "--repeats", "1")
    run = RunRecord.objects.get()
    refused = evalboard("run", "--complete", str(run.pk))
    assert (refused.returncode, "is queued; incomplete, failed and" in refused.stderr) == (64, True)
    cancel_run(run_id=run.pk)
    done = evalboard("run", "--complete", str(run.pk))
    assert done.stdout.startswith(f"Run {run.pk} is queued: 3 responses to decode. http://")
    assert RunRecord.objects.get().status == "queued"


@pytest.mark.nightly
def test_a_run_is_run_again_with_its_settings(evalboard: Call) -> None:
    evalboard(*ASKED, "--repeats", "2", "--label", "commit=1f3a")
    run = RunRecord.objects.get()
    refused = evalboard("run", "--again", str(run.pk))
    assert (refused.returncode, "is queued; run it again when it has ended" in refused.stderr) == (64, True)
    cancel_run(run_id=run.pk)
    done = evalboard("run", "--again", str(run.pk))
    again = RunRecord.objects.exclude(pk=run.pk).get()
    assert done.stdout.startswith(f"Run {again.pk} is queued: 6 responses to decode. http://")
    assert (again.labels, again.seed, again.repeats.count()) == ({"commit": "1f3a"}, run.seed, 2)
    assert "no endpoint nowhere" in evalboard("run", "--again", str(run.pk), "--endpoint", "nowhere").stderr


def test_waiting_prints_the_range_when_the_run_has_ended(evalboard: Call) -> None:
    def decode() -> None:
        build.decode(RunRecord.objects.get(), 1, ("blue", "blue", "red"))

    done = evalboard(*ASKED, "--repeats", "1", "--wait", meanwhile=[("queued, 0 of 3 responses", decode)])
    assert done.stdout.startswith(f"Run {RunRecord.objects.get().pk} finished: 66.7 points over 1 repeat. http://")
    assert "http://" in done.stderr.splitlines()[0]
    assert "info: One of 3 cases is 33.3 points." in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "colours", "--profile", "pinned"), "Name an endpoint, or a run to --complete"),
        ((*ASKED, "--complete", "7"), "has its suite and endpoint already"),
        ((*ASKED, "--repeats", "0"), "--repeats"),
        ((*ASKED, "--repeats", "many"), "--repeats"),
        ((*ASKED, "--label", "commit"), "commit is not KEY=VALUE"),
        ((*ASKED, "--speed", "fast"), "No such option"),
        ((*ASKED, "--in-turn-with", "local", "--wait", "--against", "current"), "is the baseline already"),
        ((*ASKED, "--in-turn-with", "local", "--policy", "strict"), "It needs --against, or --in-turn-with and --wait"),
        ((*ASKED, "--in-turn-with", "local", "--wait", "--policy", "nothing"), "There is no policy nothing"),
        ((*ASKED, "--in-turn-with", "nowhere"), "The baseline: There is no endpoint nowhere"),
        (("run", "nothing", "--endpoint", "local", "--profile", "pinned"), "There is no suite nothing"),
        ((*ASKED, "--model", "/etc/passwd"), "model.path: Must lie under"),
        (("walk",), "No such command 'walk'"),
    ],
)
def test_wrong_use_is_one_sentence_and_64(evalboard: Call, arguments: tuple[str, ...], words: str) -> None:
    done = evalboard(*arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert words in done.stderr
    assert done.stderr.startswith("evalboard: ")
    assert done.stderr.count("\n") == 1
    assert not RunRecord.objects.exists()
