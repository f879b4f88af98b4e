"""`evalboard bisect`, against a server that is really there; the worker's part is played by the services."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from runs.models import ExperimentRecord, RunRecord
from runs.sweep import reconcile
from tests import build

Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def runs(transactional_db: None) -> tuple[str, str]:
    """Two runs that differ in their dtype, and in the answers to two cases."""
    build.suite()
    build.endpoint()
    build.endpoint("half", dtype="bfloat16")
    ours = build.finished_run(("blue", "blue", "blue"))
    theirs = build.finished_run(("red", "red", "blue"), on="half", by=build.process(build.bucket("bfloat16")))
    return str(ours.pk), str(theirs.pk)


def serve_all() -> None:
    """Sweep and decode until no step is at work."""
    reconcile()
    while (run := RunRecord.objects.filter(status="queued").first()) is not None:
        colour = "red" if run.endpoint.dtype == "bfloat16" else "blue"
        texts = dict(enumerate((colour, colour, "blue")))
        build.decode(run, 1, texts, by=build.process(build.bucket(run.endpoint.dtype)))
        reconcile()


@pytest.mark.nightly
def test_a_bisect_is_planned_confirmed_and_printed_in_every_form(evalboard: Call, runs: tuple[str, str]) -> None:
    done = evalboard("bisect", *runs, "--cases", "1")
    planned = ExperimentRecord.objects.get()
    assert (done.returncode, planned.status, len(planned.plan["cases"])) == (0, "planned", 1)
    assert f"colours from run {runs[0]} to {runs[1]}: http" in done.stderr
    assert "  dtype: float32 → bfloat16" in done.stderr.splitlines()
    started = evalboard("bisect", *runs, "--yes", "--json")
    experiment = json.loads(started.stdout)
    assert (experiment["kind"], experiment["status"]) == ("bisect", "running")
    serve_all()
    shown = evalboard("experiment", "show", experiment["id"], "--wait")
    assert shown.returncode == 0
    sentence, heads, dtype = shown.stdout.splitlines()
    assert "dtype alone causes 2 of 2 flips, and undoing it removes 2 of 2." in sentence
    assert heads.split()[:3] == ["field", "baseline", "candidate"]
    assert dtype.split()[:7] == ["dtype", "float32", "bfloat16", "2", "of", "2", "2"]
    csv = evalboard("experiment", "show", experiment["id"], "--format", "csv").stdout.splitlines()
    assert csv[0].startswith("field,baseline,candidate,reach,n_made,n_undone")
    assert csv[1].startswith("dtype,float32,bfloat16,here,2,2,2,")
    markdown = evalboard("experiment", "show", experiment["id"], "--format", "markdown").stdout
    for words in ("# Which change moved it?", "| candidate as it was | ◆ | ◆ | 2 of 2 |", "## Plan and cost"):
        assert words in markdown
    assert f"`evalboard bisect {runs[0]} {runs[1]} --cases 2`" in markdown


def test_what_cannot_be_bisected_is_said(evalboard: Call, runs: tuple[str, str]) -> None:
    done = evalboard("bisect", runs[0], runs[0], "--yes")
    assert done.returncode == 64
    assert "Must be another run." in done.stderr
    assert evalboard("bisect", "x", runs[0]).returncode == 64
