"""Draws on the real engine: two copies of the sample model, one with its weights rounded to 8 bits, at T = 0.7.

Both decode the sample suite with the seeds that a run's calls are sent. The second copy does so twice: by the seed of
the first, so that draw stands against draw, and by another one. What is told is how wide the verdict's interval is.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.row import Row
from evalboard.calling.calls import DecodeRequest
from evalboard.core import scoring
from evalboard.core.profile import DEFAULT_PROFILES, call_seed, parse_profile, plan_engine
from evalboard.core.stats import estimate_difference
from evalboard.core.suite import ALPHAS, LOOKS, CaseDocument, SuiteDocument, parse_suite
from evalboard.core.trace import Decoded
from worker.engines.base import EngineSpec
from worker.engines.vllm import VllmEngine, describe

ROOT = Path(__file__).resolve().parents[1]
PYTHON = os.environ.get("EVALBOARD_VLLM_PYTHON", str(ROOT / ".venv-engine" / "bin" / "python"))
MODEL = Path(PYTHON).parent.parent / "evalboard-models" / "smollm2-135m-instruct"
TEMPERATURE, REPEATS = 0.7, 5
SEED, OTHER_SEED = 42, 43
STEPS = 127  # of 8 bits to either side of 0

Scores = NDArray[np.float64]


def measure() -> list[Row]:
    """Decode the suite 3 × 5 times; a few minutes on two cores."""
    suite = parse_suite(json.loads((ROOT / "runs" / "samples" / "sample.json").read_text()))
    with tempfile.TemporaryDirectory() as folder:
        rounded = Path(folder) / "rounded"
        shutil.copytree(MODEL, rounded)
        round_weights(rounded / "model.safetensors")
        [baseline] = _decoded(MODEL, suite, [SEED])
        shared, apart = _decoded(rounded, suite, [SEED, OTHER_SEED])
    ours, theirs, others = (_scores(suite, texts) for texts in (baseline, shared, apart))
    parted = np.array(baseline) != np.array(shared)
    widths = [_width(ours, theirs, share_seeds=True), _width(ours, others, share_seeds=False)]
    what = f"weights rounded to 8 bits, T = {TEMPERATURE:g}, {REPEATS} draws of {len(ours)} cases"
    return [
        Row(f"{what}: texts that are not the same by one seed", 100 * float(parted.mean()), "%", f"of {parted.size}"),
        Row(f"{what}: draws that score otherwise by one seed", 100 * float((ours != theirs).mean()), "%"),
        Row(f"{what}: interval at the first look, shared seeds", widths[0], "points wide"),
        Row(f"{what}: interval at the first look, seeds apart", widths[1], "points wide"),
        Row(f"{what}: how many times narrower by shared seeds", widths[1] / widths[0], "times"),
    ]


def round_weights(path: Path) -> None:
    """Round each row of each matrix of a bfloat16 safetensors file to 255 steps, as 8-bit weights have them."""
    data = bytearray(path.read_bytes())
    n_header = int.from_bytes(data[:8], "little")
    for name, tensor in json.loads(data[8 : 8 + n_header]).items():
        if name == "__metadata__" or len(tensor["shape"]) != 2:
            continue
        first, last = (8 + n_header + offset for offset in tensor["data_offsets"])
        bits = np.frombuffer(data[first:last], "<u2").astype("<u4") << 16
        values = bits.view("<f4").reshape(tensor["shape"])
        step = np.abs(values).max(axis=1, keepdims=True) / STEPS
        rounded = np.where(step > 0, np.round(values / np.where(step > 0, step, 1)) * step, 0).astype("<f4")
        data[first:last] = ((rounded.view("<u4") + 0x8000) >> 16).astype("<u2").tobytes()
    path.write_bytes(data)


def _decoded(model: Path, suite: SuiteDocument, seeds: Sequence[int]) -> list[list[list[str]]]:
    """The texts by seed of the run, case and repeat."""
    settings = parse_profile(_settings())
    plan = plan_engine(
        settings,
        describe(PYTHON),
        dtype="float32",
        quantization=None,
        max_model_len=2048,
        max_tokens=suite.max_tokens,
        stop=suite.stop,
    )
    engine = VllmEngine(EngineSpec(model=str(model), revision=None, plan=plan), python=PYTHON)
    engine.start()
    try:
        return [_run(engine, plan.sampling, suite, seed) for seed in seeds]
    finally:
        engine.stop()


def _settings() -> dict[str, Any]:
    fixed = DEFAULT_PROFILES["fixed"]["settings"]
    return {**fixed, "sampling": {**fixed["sampling"], "temperature": TEMPERATURE}}


def _run(engine: VllmEngine, sampling: dict[str, Any], suite: SuiteDocument, run_seed: int) -> list[list[str]]:
    texts = [[""] * REPEATS for _ in suite.cases]
    for repeat in range(1, REPEATS + 1):
        requests = [
            DecodeRequest(
                case_index=index,
                messages=case.messages,
                tools=case.tools,
                sampling={
                    **sampling,
                    "seed": call_seed(sampling, run_seed=run_seed, repeat=repeat, case_id=case.id),
                },
            )
            for index, case in enumerate(suite.cases)
        ]
        for outcome in engine.decode(requests):
            if not isinstance(outcome, Decoded):
                raise RuntimeError(f"A case was not decoded: {outcome}")
            texts[outcome.case_index][repeat - 1] = outcome.text
    return texts


def _scores(suite: SuiteDocument, texts: list[list[str]]) -> Scores:
    return np.array(
        [[_scored(suite, case, text) for text in of_case] for case, of_case in zip(suite.cases, texts, strict=True)]
    )


def _scored(suite: SuiteDocument, case: CaseDocument, text: str) -> float:
    spec = case.scorer or suite.scorer
    assert spec is not None
    return scoring.score(spec, text=text, target=case.target, tools=case.tools).value


def _width(baseline: Scores, candidate: Scores, *, share_seeds: bool) -> float:
    return 2 * estimate_difference(baseline, candidate, share_seeds=share_seeds).half_width(ALPHAS[LOOKS[0]][0])
