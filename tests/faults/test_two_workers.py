"""Two workers of one stack share a run, and its bytes are those that one worker gives."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_endpoint, create_profile
from runs.models import ResponseRecord, RunRecord, WorkerRecord
from runs.run import create_run, run_report
from runs.suites import push_suite
from tests.faults.whole import assert_counted
from tests.worker.conftest import Join, Start, Wait, ended

pytestmark = pytest.mark.django_db

WORDS = ("blue", "red", "green", "orange", "violet")
QUESTIONS = ("What is the capital of {}? One word.", "Name a river in {}.")
COUNTRIES = ("France", "Peru", "Japan", "Kenya", "Norway", "India", "Chile", "Egypt")


def trace_digests(run: RunRecord) -> list[tuple[int, int, bytes, bytes]]:
    rows = ResponseRecord.objects.filter(repeat__run=run).order_by("repeat__index", "case_index")
    return [
        (repeat, case, bytes(text), bytes(trace))
        for repeat, case, text, trace in rows.values_list("repeat__index", "case_index", "text_digest", "trace_digest")
    ]


def assert_equal(by_one: RunRecord, by_two: RunRecord) -> None:
    served = WorkerRecord.objects.filter(engine_processes__responses__repeat__run=by_two).distinct()
    assert served.count() == 2
    assert by_one.bucket_id == by_two.bucket_id
    assert trace_digests(by_one) == trace_digests(by_two)
    twin = run_report(by_two.pk).twin  # what the run's page says
    assert twin is not None
    n_responses = len(trace_digests(by_one))
    assert (twin.run, twin.n_equal, twin.n_compared) == (str(by_one.pk), n_responses, n_responses)


@pytest.mark.nightly
def test_a_run_by_two_workers_has_the_bytes_of_a_run_by_one(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    """On the scripted engine: claims, packing and references between repeats, with shards of both workers mixed."""
    prompts = [f"say {WORDS[number % len(WORDS)]}" for number in range(48)]
    join_worker()
    by_one = new_run(prompts, repeats=3)
    work_until(lambda: ended(by_one), "the run by one worker ends")
    join_worker()
    by_two = new_run(prompts, repeats=3)
    work_until(lambda: ended(by_two), "the run by two workers ends")  # they take shards in turn
    assert by_two.status == "finished"
    assert_counted(by_two)
    assert_equal(by_one, by_two)


@pytest.mark.engine
@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("setup", ["team"], indirect=True)
def test_two_real_engines_give_the_bytes_of_one(
    start_worker: Start, wait_until: Wait, vllm_python: Path, sample_model: Path, settings: Any
) -> None:
    """On vLLM: each worker keeps to a core of its own, for the number of threads is part of the fingerprint."""
    settings.MODEL_ROOTS = [sample_model.parent]
    prompts = [question.format(country) for country in COUNTRIES for question in QUESTIONS]
    cases = [{"id": f"case-{n}", "prompt": prompt, "target": "none"} for n, prompt in enumerate(prompts)]
    suite = {"slug": "real", "title": "Real", "max_tokens": 4, "scorer": {"kind": "contains"}, "cases": cases}
    push_suite(document=suite)
    create_profile(slug="pinned", title="", settings=DEFAULT_PROFILES["pinned"]["settings"])
    create_endpoint(slug="real", model_path=str(sample_model), dtype="float32", line="smollm2", max_model_len=256)
    cores = sorted(os.sched_getaffinity(0))

    def start(core: int) -> None:
        worker = start_worker(
            EVALBOARD_VLLM_PYTHON=str(vllm_python),
            EVALBOARD_MODEL_ROOTS=str(sample_model.parent),
            EVALBOARD_RESPONSE_SECONDS="120",
            EVALBOARD_LEASE_SECONDS="30",
            PYTHONPATH=os.environ.get("PYTHONPATH", ""),  # a fresh interpreter takes a second before it asks
        )
        os.sched_setaffinity(worker.pid, {core})  # before it asks how many cores it has, and starts anything

    def run() -> RunRecord:
        created = create_run(suite="real", endpoint="real", profile="pinned", repeats=1)
        wait_until(lambda: ended(created), "the run ends")
        assert created.status == "finished"
        return created

    start(cores[0])
    by_one = run()
    start(cores[-1])
    wait_until(lambda: WorkerRecord.objects.count() == 2, "the second worker has registered")
    by_two = run()
    assert {worker.hardware["n_cores"] for worker in WorkerRecord.objects.all()} == {1}
    assert_equal(by_one, by_two)
