"""Wall time of a pinned run against its own engine doing the same prompts with nothing around it."""

import io
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command

from bench import bench_trace
from bench.row import Row, median_row
from evalboard.core.profile import split_sampling
from evalboard.core.trace import TokenTrace, read_block, read_trace
from runs.models import EndpointRecord, ResponseRecord, RunRecord, TraceBlock
from runs.run import create_run
from worker.engines import vllm
from worker.engines.base import EngineSpec
from worker.runner import Runner

BARE_HOST = Path(__file__).with_name("bare_engine.py")
AIM = "≤ 1.02"
ROUNDS = 10


class BareEngine(vllm.VllmEngine):
    """vLLM whose process can also make a pass with nothing around it."""

    def bare_pass(self, prompts: list[list[int]]) -> float:
        """Decode every prompt once; the seconds that the process took for it."""
        request = {"op": "decode", "bare": prompts, "sampling": split_sampling(self._spec.plan.sampling)[0]}
        self._send(request)
        return float(self._receive("bare")["seconds"])


def prepare() -> None:
    """Make the sample suite and endpoints, and the sample model where it is missing."""
    call_command("load_samples", no_runs=True, stdout=io.StringIO())
    _use_sample_model()


def measure() -> list[Row]:
    """One repeat of the sample suite, and the same prompts with nothing around them, in turn on one warm engine.

    Self-checks and starts are left out of both. Then the size of the traces that this gave, and of recorded ones.
    """
    prepare()
    hardware = vllm.describe(settings.VLLM_PYTHON)
    vllm.HOST = BARE_HOST
    pairs = _pairs(hardware)
    ratios = [ours / bare for ours, bare in pairs]
    return [
        median_row("pinned run, one repeat of the sample suite", [ours for ours, _ in pairs], "s"),
        median_row("bare engine, the same prompts", [bare for _, bare in pairs], "s"),
        median_row("run against bare engine", ratios, "ratio", aim=AIM),
        *bench_trace.measure(_recorded_traces()),
    ]


def _pairs(hardware: dict[str, Any]) -> list[tuple[float, float]]:
    """Start an engine; the seconds of runs and of bare passes on it, in turn."""
    started: list[BareEngine] = []

    def make_engine(spec: EngineSpec) -> BareEngine:
        started.append(BareEngine(spec, python=settings.VLLM_PYTHON))
        return started[-1]

    runner = Runner(pool="default", hardware=hardware, make_engine=make_engine)
    try:
        _one_run(runner)  # starts the engine, and leaves the prompts' token ids in its traces
        prompts = _prompts()
        started[-1].bare_pass(prompts)
        return [(_one_run(runner), started[-1].bare_pass(prompts)) for _ in range(ROUNDS)]
    finally:
        runner.stop()
        runner.run_forever()  # stopped already: only lets its engine go


def _recorded_traces() -> list[TokenTrace]:
    """The traces of the newest run, each once."""
    blocks = TraceBlock.objects.filter(run=RunRecord.objects.latest("id"), is_packed=True)
    return [trace for block in blocks for trace in read_block(bytes(block.data))]


def _use_sample_model() -> None:
    model = Path(
        os.environ.get("EVALBOARD_TEST_MODEL")
        or Path(settings.VLLM_PYTHON).parent.parent / "evalboard-models" / "smollm2-135m-instruct"
    )
    if not (model / "config.json").exists():
        subprocess.run([settings.VLLM_PYTHON, settings.BASE_DIR / "worker" / "sample_model.py", model], check=True)
    EndpointRecord.objects.update(model_path=str(model))


def _one_run(runner: Runner) -> float:
    """Seconds from the first claim to the end of a run of one repeat; the engine is warm but for the first time."""
    run = create_run(suite="sample", endpoint="sample-float32", profile="pinned", repeats=1)
    began = time.perf_counter()
    while runner.claim_and_run():
        pass
    seconds = time.perf_counter() - began
    run.refresh_from_db()
    if run.status != RunRecord.Status.FINISHED:
        raise RuntimeError(f"The measured run ended as {run.status}: {run.failure}")
    return seconds


def _prompts() -> list[list[int]]:
    """The token ids of the newest run's prompts, in the suite's order."""
    prompts = []
    responses = ResponseRecord.objects.filter(repeat__run=RunRecord.objects.latest("id"))
    for response in responses.select_related("trace_block").order_by("case_index"):
        assert response.trace_block is not None
        assert response.trace_slot is not None
        prompt = read_trace(bytes(response.trace_block.data), response.trace_slot).prompt_token_ids
        assert prompt is not None
        prompts.append(prompt.tolist())
    return prompts
