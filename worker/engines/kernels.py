"""Measure this node's arithmetic by `torch_check.py`, under the engine's interpreter (docs/node.md)."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalboard.core.profile import (
    DEFAULT_PROFILES,
    SELF_TEST_VERSION,
    TESTED_BATCH_SIZES,
    parse_profile,
    plan_engine,
)
from worker.engines.base import EngineDied, EngineTimeout
from worker.engines.vllm import child_environment

SCRIPT = Path(__file__).resolve().parent.parent / "torch_check.py"
# A minute on two cores; on a GPU most of it goes into compiling kernels the first time.
MEASURE_SECONDS = 600.0
# Each kind of kernels is measured in the environment that an engine under this profile gets.
PROFILES = {"plain": "pinned", "invariant": "invariant"}


def measure(python: str | Path, hardware: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as core.profile.self_test reads it, both kinds of kernels where there are both.

    Raises EngineDied or EngineTimeout.
    """
    kinds = ("plain", "invariant") if hardware["kind"] == "cuda" else ("plain",)
    kernels = {kind: _measure(python, hardware, kind) for kind in kinds}
    return {"version": SELF_TEST_VERSION, "kernels": {"plain": None, "invariant": None, **kernels}}


def _measure(python: str | Path, hardware: Mapping[str, Any], kind: str) -> dict[str, Any]:
    decoding = parse_profile(DEFAULT_PROFILES[PROFILES[kind]]["settings"])
    plan = plan_engine(decoding, hardware, dtype="float32", quantization=None, max_model_len=2, max_tokens=1, stop=())
    command = [str(python), str(SCRIPT), kind, ",".join(map(str, TESTED_BATCH_SIZES))]
    environment = {**child_environment(), **plan.env}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=MEASURE_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise EngineTimeout(f"The {kind} kernels were not measured in {MEASURE_SECONDS:g} seconds.") from late
    except OSError as problem:
        raise EngineDied("engine_error", f"{python} cannot be run: {problem}") from problem
    if done.returncode != 0:
        words = f"{python} could not measure the {kind} kernels."
        raise EngineDied("engine_error", words, last_words=done.stderr[-8000:])
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # vLLM logs to stdout before
    return {**measured, "env": plan.env}
