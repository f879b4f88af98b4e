"""Wall time of a pinned run against the bare engine doing the same prompts in the same set-up."""

import io
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command

from evalboard.core.profile import EnginePlan, parse_profile, plan_engine
from evalboard.core.trace import Trace, read_block, read_trace
from runs.models import Endpoint, Profile, Response, Run, TraceBlock
from runs.run import create_run
from tests.bench import bench_trace
from tests.bench.row import Row, median_row
from worker.engines.vllm import VllmEngine, child_environment, describe
from worker.runner import Runner

BARE = Path(__file__).with_name("bare_engine.py")
AIM = "≤ 1.02"
ROUNDS = 10


def prepare() -> None:
    """Make the sample suite and endpoints, and the sample model where it is missing."""
    call_command("load_samples", no_runs=True, stdout=io.StringIO())
    _use_sample_model()


def measure() -> list[Row]:
    """One repeat of the sample suite on a warm engine, and the same prompts on a warm bare one, in turn.

    Both engines stay in memory and one decodes at a time. Self-checks and starts are left out of both. Then the size of
    the traces that this gave, and of recorded ones.
    """
    prepare()
    hardware = describe(settings.VLLM_PYTHON)
    make_engine = partial(VllmEngine, python=settings.VLLM_PYTHON)
    runner = Runner(pool="default", hardware=hardware, make_engine=make_engine)
    try:
        _one_run(runner)  # starts the engine, and leaves the prompts' token ids in its traces
        with _bare_engine(_plan(hardware)) as bare_pass:
            pairs = [(_one_run(runner), bare_pass()) for _ in range(ROUNDS)]
    finally:
        runner.stop()
        runner.run_forever()  # stopped already: only lets its engine go
    ratios = [ours / bare for ours, bare in pairs]
    return [
        median_row("pinned run, one repeat of the sample suite", [ours for ours, _ in pairs], "s"),
        median_row("bare engine, the same prompts", [bare for _, bare in pairs], "s"),
        median_row("run against bare engine", ratios, "ratio", aim=AIM),
        *bench_trace.measure(_recorded_traces()),
    ]


def _recorded_traces() -> list[Trace]:
    """The traces of the newest run, each once."""
    blocks = TraceBlock.objects.filter(run=Run.objects.latest("id"), is_packed=True)
    return [trace for block in blocks for trace in read_block(bytes(block.data))]


def _use_sample_model() -> None:
    model = Path(
        os.environ.get("EVALBOARD_TEST_MODEL")
        or Path(settings.VLLM_PYTHON).parent.parent / "evalboard-models" / "smollm2-135m-instruct"
    )
    if not (model / "config.json").exists():
        subprocess.run([settings.VLLM_PYTHON, settings.BASE_DIR / "worker" / "sample_model.py", model], check=True)
    Endpoint.objects.update(model_path=str(model))


def _one_run(runner: Runner) -> float:
    """Seconds from the first claim to the end of a run of one repeat; the engine is warm but for the first time."""
    run = create_run(suite="sample", endpoint="sample-float32", profile="pinned", repeats=1)
    began = time.perf_counter()
    while runner.claim_and_run():
        pass
    seconds = time.perf_counter() - began
    run.refresh_from_db()
    if run.status != Run.Status.FINISHED:
        raise RuntimeError(f"The measured run ended as {run.status}: {run.failure}")
    return seconds


def _plan(hardware: dict[str, Any]) -> EnginePlan:
    run = Run.objects.select_related("endpoint", "suite_version").latest("id")
    return plan_engine(
        parse_profile(Profile.objects.get(slug="pinned").settings),
        hardware,
        dtype=run.endpoint.dtype,
        quantization=None,
        max_model_len=run.endpoint.max_model_len,
        max_tokens=run.suite_version.max_tokens,
        stop=tuple(run.suite_version.stop),
    )


@contextmanager
def _bare_engine(plan: EnginePlan) -> Iterator[Any]:
    """Yield a function that makes one pass and returns its seconds."""
    prompts = []
    for response in Response.objects.select_related("trace_block").order_by("case_index"):
        assert response.trace_block is not None
        assert response.trace_slot is not None
        prompt = read_trace(bytes(response.trace_block.data), response.trace_slot).prompt_token_ids
        assert prompt is not None
        prompts.append(prompt.tolist())
    request = {
        "model": Endpoint.objects.get(slug="sample-float32").model_path,
        "engine": plan.engine,
        "env": plan.env,
        "sampling": plan.sampling,
        "prompts": prompts,
    }
    bare = subprocess.Popen(
        [settings.VLLM_PYTHON, BARE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=child_environment(),
    )
    assert bare.stdin is not None
    assert bare.stdout is not None

    def one_pass() -> float:
        print("go", file=bare.stdin, flush=True)
        return float(bare.stdout.readline())  # type: ignore[union-attr]

    try:
        print(json.dumps(request), file=bare.stdin, flush=True)
        if bare.stdout.readline().strip() != "ready":
            raise RuntimeError("The bare engine did not start.")
        yield one_pass
    finally:
        bare.kill()
        bare.wait()
