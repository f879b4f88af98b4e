"""Replays on the real engine and the real model: the same bits as it was, and another dtype's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.profile_defaults import DEFAULT_PROFILES
from runs import services
from runs.models import EngineProcess, Run
from runs.selectors.replay import ReplayRow, replay_row
from tests.worker.conftest import WorkerProcess, ended

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]

QUESTIONS = ("What is the capital of France?", "Name a colour.", "List five animals.", "Count to ten.")


@pytest.fixture
def run(settings: Any, sample_model: Path) -> Run:
    settings.MODEL_ROOTS = [sample_model.parent]
    cases = [{"id": f"case-{n}", "prompt": prompt, "target": "blue"} for n, prompt in enumerate(QUESTIONS)]
    document = {"slug": "real", "title": "Real", "max_tokens": 12, "scorer": {"kind": "contains"}, "cases": cases}
    services.push_suite(document=document)
    services.create_profile(slug="pinned", title="", settings=DEFAULT_PROFILES["pinned"]["settings"])
    services.create_endpoint(
        slug="float32", model_path=str(sample_model), dtype="float32", line="smollm2", max_model_len=256
    )
    return services.create_run(suite="real", endpoint="float32", profile="pinned", repeats=1)


# How a replay is claimed in each set-up is tested with the scripted engine, in test_replay.py.
@pytest.mark.parametrize("setup", ["one machine"], indirect=True)
def test_a_pinned_case_is_replayed_to_the_bit_and_other_sizes_and_dtypes_say_what_they_gave(
    run: Run,
    start_worker: Callable[..., WorkerProcess],
    wait_until: Callable[[Callable[[], object], str], None],
    vllm_python: Path,
    sample_model: Path,
) -> None:
    def replayed(**asked: Any) -> ReplayRow:
        replay = services.create_replay(run_id=run.pk, case_id="case-2", **asked)
        wait_until(lambda: replay_row(replay.pk).is_terminal, "the replay has ended")
        row = replay_row(replay.pk)
        assert (row.status, row.error) == ("finished", "")
        return row

    start_worker(
        EVALBOARD_VLLM_PYTHON=str(vllm_python),
        EVALBOARD_MODEL_ROOTS=str(sample_model.parent),
        EVALBOARD_RESPONSE_SECONDS="120",
        EVALBOARD_LEASE_SECONDS="30",
    )
    wait_until(lambda: ended(run), "the run ends")
    assert run.status == "finished"

    as_it_was = replayed()
    assert as_it_was.reading == ("Identical: every token and every logprob has the bits of the run’s response.",)
    facts = as_it_was.results[0].facts
    assert (facts["same_bucket"], facts["same_prompt"], facts["batch_max"]) == (True, True, 1)

    by_size = replayed(batch_sizes=[1, 4])
    alone, full = (line.facts for line in by_size.results)
    assert alone["outcome"] == "identical"
    assert (full["batch_min"], full["batch_max"], full["neighbours"]) == (4, 4, [3, 0, 1])
    assert (full["same_fingerprint"], full["same_bucket"]) == (True, False)
    assert full["outcome"] != "error"  # what it gives is this processor's own; docs/replay.md has what was measured
    assert not any("not reached" in said or "not held" in said for said in by_size.reading)

    by_dtype = replayed(dtypes=["float32", "bfloat16"])
    same, other = (line.facts for line in by_dtype.results)
    assert (same["outcome"], same["same_bucket"]) == ("identical", True)
    assert other["outcome"] in ("drift", "flip", "shorter", "longer")
    assert other["same_model"] is True
    assert other["drift_onset"] == 0 or other["flip_position"] == 0  # eight bits of mantissa move the first logprob

    run.refresh_from_db()
    dtypes = set(EngineProcess.objects.filter(repeats__run=run).values_list("manifest__engine__dtype", flat=True))
    assert dtypes == {"float32"}  # what other variants started is not the run's
