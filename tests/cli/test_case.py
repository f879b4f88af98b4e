"""`evalboard case`: the history as text, and a decoding now."""

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from runs.models import ReplayRecord, RunRecord
from tests import build

Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def run(transactional_db: None) -> RunRecord:
    return build.finished_run()


def test_it_prints_the_claim_the_runs_and_the_distinct_answers(evalboard: Call, run: RunRecord) -> None:
    done = evalboard("case", "colours", "sea")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "Passed 1 of 2 times in 1 run; the newest run passed 1 of 2."
    assert any(line.startswith(f"run {run.pk} ") and line.endswith("paint-1b  ✓A ✕B") for line in lines)
    assert [line for line in lines if line[:2] in ("A ", "B ")] == ["A  1×  [blue]", "B  1×  [red]"]
    assert lines[-1].endswith("/suites/colours/cases/sea/")


@pytest.mark.nightly
def test_decode_starts_a_replay_on_each_endpoint_that_ran_it(evalboard: Call, run: RunRecord) -> None:
    newer = build.finished_run()
    build.finished_run(on="second")
    done = evalboard("case", "colours", "a/b c", "--decode")
    assert (done.returncode, done.stderr) == (0, "")
    made = ReplayRecord.objects.order_by("id")
    assert [(each.endpoint.slug, each.case_index) for each in made] == [("local", 2), ("second", 2)]
    assert made[0].run_id == newer.pk, "the newest run of each"
    assert [line.split(" is ")[0] for line in done.stdout.splitlines()] == [f"Replay {each.pk}" for each in made]
