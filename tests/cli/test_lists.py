"""Lists of the command line, schedules and profiles, against a server that is really there."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from runs.models import ProfileRecord, ReleaseRecord, RepeatRecord, RunRecord, ScheduleRecord
from tests import build, judged

Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def stored(transactional_db: None) -> None:
    build.run()


@pytest.mark.nightly
def test_schedules_are_made_listed_paused_resumed_and_deleted(evalboard: Call, stored: None) -> None:
    run = ("--cron", "0 3 * * 1", "--endpoint", "local", "--suite", "colours", "--repeats", "3")
    done = evalboard("schedule", "add", "nightly", *run, "--time-zone", "Europe/Berlin")
    assert done.returncode == 0, done.stderr
    made = ScheduleRecord.objects.get()
    assert made.order == {"suite": "colours", "endpoint": "local", "profile": "pinned", "repeats": 3}
    assert "nightly  0 3 * * 1 Europe/Berlin  next " in done.stdout
    assert "run of colours on local, pinned" in evalboard("schedule", "list").stdout
    assert "paused" in evalboard("schedule", "pause", "nightly").stdout
    resumed = json.loads(evalboard("schedule", "resume", "nightly", "--json").stdout)
    assert (resumed["slug"], bool(resumed["next_at"])) == ("nightly", True)
    assert json.loads(evalboard("schedule", "delete", "nightly", "--json").stdout)["slug"] == "nightly"
    assert not ScheduleRecord.objects.exists()
    gone = evalboard("schedule", "pause", "nightly")
    assert (gone.returncode, "There is no schedule nightly" in gone.stderr) == (4, True)
    assert evalboard("schedule", "add", "x", "--cron", "0 3 * * 1", "--endpoint", "local").returncode == 64


def test_suites_profiles_and_baselines_are_listed_and_shown(evalboard: Call, stored: None) -> None:
    assert evalboard("suite", "list").stdout.startswith("colours  v1  3 cases  1 run  newest run ")
    assert evalboard("suite", "show", "colours").stdout.startswith("colours v1, ")
    assert json.loads(evalboard("suite", "show", "colours", "--version", "1", "--json").stdout)["n_cases"] == 3
    assert evalboard("profile", "list").stdout.startswith("pinned  v1  alone")
    shown = json.loads(evalboard("profile", "show", "pinned", "--json").stdout)
    assert shown["settings"] == ProfileRecord.objects.get().settings
    assert evalboard("profile", "show", "none").returncode == 4
    assert evalboard("baseline", "list", "colours").stdout == "colours has no baseline yet.\n"


@pytest.mark.nightly
def test_a_profile_is_added_by_who_may(evalboard: Call, stored: None) -> None:
    admin = build.token(build.user("root", "admin"), "read", "admin")
    settings = json.dumps(ProfileRecord.objects.get().settings)
    done = evalboard("profile", "add", "own", "--settings", settings, "--title", "Our own", EVALBOARD_TOKEN=admin)
    assert done.stdout.startswith("own v1, Our own. Digest "), done.stderr


@pytest.mark.nightly
def test_what_would_decide_a_release_is_shown_and_started(evalboard: Call, transactional_db: None) -> None:
    judged.policy()
    sides = str(judged.open_run().pk), "--baseline", str(judged.run().pk), "--policy", "lenient"
    assert evalboard("release", *sides).returncode == 2
    release = str(ReleaseRecord.objects.get().pk)
    plan = evalboard("settle", release)
    assert "Start them with --start." in plan.stdout, plan.stderr
    before = RepeatRecord.objects.count()
    assert "They are queued." in evalboard("settle", release, "--start").stdout
    assert RepeatRecord.objects.count() > before
    both = evalboard("rerun", release, "--side", "baseline:local", "--side", "candidate", "--json")
    assert both.returncode == 64, both.stdout
    assert "run it again when it has ended" in both.stderr
    RunRecord.objects.update(status=RunRecord.Status.FINISHED)
    made = json.loads(evalboard("rerun", release, "--side", "candidate", "--json").stdout)
    assert (made["baseline"], made["candidate"]["status"]) == (None, "queued")
    RunRecord.objects.filter(pk=int(made["candidate"]["id"])).delete()
    RunRecord.objects.update(status=RunRecord.Status.QUEUED)
    again = evalboard("settle", release)
    assert again.returncode == 4
