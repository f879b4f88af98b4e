"""Runs on the real engine and the real model: pinned repeats give the same bytes, another dtype another bucket."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalboard.core import codec
from evalboard.core.profile_defaults import DEFAULT_PROFILES
from runs import selectors, services
from runs.models import Response, Run
from tests.worker.conftest import WorkerProcess

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]

CASES = [
    {"id": "capital", "prompt": "What is the capital of France? One word.", "target": "Paris"},
    {"id": "sum", "prompt": "2 + 3 = ? Answer with the number only.", "target": "5"},
]
TOO_LONG = {"id": "long", "prompt": "word " * 400, "target": "none"}


@pytest.fixture
def new_run(settings: Any, sample_model: Path) -> Callable[..., Run]:
    settings.MODEL_ROOTS = [sample_model.parent]
    for slug, cases in (("real", CASES), ("too-long", [*CASES, TOO_LONG])):
        suite = {"slug": slug, "title": "Real", "max_tokens": 8, "scorer": {"kind": "contains"}, "cases": cases}
        services.push_suite(document=suite)
    services.create_profile(slug="pinned", title="", settings=DEFAULT_PROFILES["pinned"]["settings"])
    for dtype in ("float32", "bfloat16"):
        services.create_endpoint(
            slug=dtype, model_path=str(sample_model), dtype=dtype, line="smollm2", max_model_len=256
        )

    def create(suite: str, endpoint: str) -> Run:
        return services.create_run(suite=suite, endpoint=endpoint, profile="pinned", repeats=2)

    return create


# Real engines of a team, rung for through Redis, are in tests/faults/test_two_workers.py.
@pytest.mark.parametrize("setup", ["one machine"], indirect=True)
def test_pinned_runs_repeat_to_the_byte_and_another_dtype_lands_in_another_bucket(
    new_run: Callable[[str, str], Run],
    start_worker: Callable[..., WorkerProcess],
    wait_until: Callable[[Callable[[], object], str], None],
    vllm_python: Path,
    sample_model: Path,
) -> None:
    first, second, other = (
        new_run(*wanted) for wanted in (("real", "float32"), ("real", "float32"), ("too-long", "bfloat16"))
    )
    start_worker(
        EVALBOARD_VLLM_PYTHON=str(vllm_python),
        EVALBOARD_MODEL_ROOTS=str(sample_model.parent),
        EVALBOARD_RESPONSE_SECONDS="120",
        EVALBOARD_LEASE_SECONDS="30",
    )
    wait_until(lambda: not Run.objects.exclude(finished_at__isnull=False).exists(), "three runs have ended")

    report = selectors.run_report(second.pk)
    assert report.twin is not None
    assert (report.twin.run_id, report.twin.n_equal, report.twin.n_compared) == (first.pk, 4, 4)
    assert [pin.name for pin in report.pins if not pin.held] == []
    assert len(report.processes) == 2  # the halves of a run come from processes of their own
    assert all(process.self_checks_same for process in report.processes)

    assert report.row.status == "finished"
    partial = selectors.run_report(other.pk)
    assert partial.row.status == "incomplete"  # one prompt does not fit; the others have their responses
    assert partial.errors_by_code == {"prompt_too_long": 2}
    assert (partial.progress.n_done, partial.progress.n_total) == (4, 6)
    buckets = {run.pk: selectors.run_report(run.pk).buckets for run in (first, second, other)}
    assert buckets[first.pk][0].id == buckets[second.pk][0].id
    assert buckets[other.pk][0].id != buckets[first.pk][0].id
    assert buckets[other.pk][0].model_digest == buckets[first.pk][0].model_digest

    stored = Response.objects.filter(repeat__run=first, error_code="").select_related("trace_block")
    for response in stored:
        assert response.trace_block is not None
        assert response.trace_slot is not None
        trace = codec.read_trace(bytes(response.trace_block.data), response.trace_slot)
        assert len(trace) == response.n_tokens
        assert (response.batch_min, response.batch_max, response.n_cached_tokens) == (1, 1, 0)
        assert (trace.logprobs == trace.alternative_logprobs[:, 0]).all()  # greedy: the chosen one is the first
