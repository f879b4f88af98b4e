"""`evalboard experiment`, against a server that is really there; the worker's part is played by the services."""

import json
import re
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from runs.models import ExperimentRecord, RunRecord
from runs.sweep import reconcile
from tests import build

Call = Callable[..., "CompletedProcess[str]"]
ASKED = ("experiment", "variance", "colours", "--endpoint", "local", "--runs", "5", "--source", "order")
CONTROL = ("blue", "blue", "red")


@pytest.fixture
def endpoint(transactional_db: None) -> str:
    build.suite()
    build.profile()
    return build.endpoint("local")


def serve_all() -> None:
    """Sweep and decode until no arm is at work; the order moves one pass."""
    reconcile()
    while (run := RunRecord.objects.filter(status="queued").first()) is not None:
        process = build.process()
        for index in range(1, 6):
            moved = run.labels["source"] == "order" and index == 3
            build.decode(run, index, ("blue", "red", "red") if moved else CONTROL, by=process)
        reconcile()


def test_a_plan_is_shown_with_its_cost_and_stays_until_it_is_confirmed(evalboard: Call, endpoint: str) -> None:
    done = evalboard(*ASKED)
    experiment = ExperimentRecord.objects.get()
    assert (done.returncode, done.stdout, experiment.status) == (0, "", "planned")
    title, control, *_, last = done.stderr.splitlines()
    assert title.startswith(f"Experiment {experiment.pk}, colours on local: http://")
    assert control.split("  ")[1:3] == [
        "nothing (control)",
        "5 runs, 5 engine starts, tokens unknown, time unknown (no earlier run to go by)",
    ]
    assert "  not measured: judge: no scorer of this suite is a model." in done.stderr.splitlines()
    assert last == f"Nothing is started. Confirm the plan with: evalboard experiment start {experiment.pk}"
    started = evalboard("experiment", "start", str(experiment.pk), "--budget", "20", "--json")
    assert (json.loads(started.stdout)["status"], json.loads(started.stdout)["budget_minutes"]) == ("running", 20)
    assert " is cancelled. " in evalboard("experiment", "cancel", str(experiment.pk)).stdout
    assert " is running. " in evalboard("experiment", "resume", str(experiment.pk)).stdout


def test_nobody_waits_for_a_plan_that_nobody_can_confirm(evalboard: Call, endpoint: str) -> None:
    done = evalboard(*ASKED, "--wait")
    assert (done.returncode, ExperimentRecord.objects.count()) == (64, 0)
    assert "add --yes" in done.stderr


@pytest.mark.nightly
def test_an_experiment_is_followed_to_its_end_and_printed(evalboard: Call, endpoint: str) -> None:
    done = evalboard(*ASKED, "--yes", "--wait", meanwhile=[(": running, 0 of 10 runs", serve_all)])
    experiment = ExperimentRecord.objects.get()
    assert done.returncode == 0
    sentence, heads, control, order = done.stdout.splitlines()
    assert sentence.startswith(
        f"Experiment {experiment.pk} is finished. The order of cases moves this score (±16.7 points). With nothing "
        "varied, 5 of 5 runs were equal to the bit. http"
    )
    columns = ["source", "runs", "from the control", "range over runs", "standard dev.", "flips", "finding"]
    assert re.split(" {2,}", heads) == columns
    assert re.split(" {2,}", order)[2] == "−33.3 to 0.0"
    assert control.endswith("stable")
    assert order.split("  ")[0] == "order of cases"
    assert order.endswith("a source")
    again = evalboard("experiment", "show", str(experiment.pk), "--format", "markdown", "--wait")
    assert again.stdout.startswith("# Variance of colours v1\n")
    assert "The suite has 3 cases; one case is 33.3 points." in again.stdout
    assert f"/runs/{experiment.arms.get(source='order').run_id}/)" in again.stdout
    table = evalboard("experiment", "show", str(experiment.pk), "--format", "csv").stdout.splitlines()
    assert table[0].startswith("source,name,")
    assert table[2].startswith("order,")


@pytest.mark.nightly
def test_one_that_ended_early_is_told_by_the_exit_code(evalboard: Call, endpoint: str) -> None:
    evalboard(*ASKED, "--yes")
    experiment = ExperimentRecord.objects.get()
    evalboard("experiment", "cancel", str(experiment.pk))
    assert evalboard("experiment", "show", str(experiment.pk), "--wait").returncode == 4
    assert evalboard("experiment", "show", str(experiment.pk)).returncode == 0
    assert evalboard("experiment", "show", str(experiment.pk), "--format", "pdf").returncode == 64
