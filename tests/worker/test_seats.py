"""Seats on the real engine: as many as memory has room for, no answer moved by how many, and none where too few fit."""

from dataclasses import replace
from pathlib import Path

import pytest

from evalboard.contract.manifest import EngineSeats
from evalboard.core.profile import (
    DEFAULT_PROFILES,
    EnginePlan,
    identify_manifest,
    parse_profile,
    plan_engine,
    read_seats,
    set_batch_size,
)
from tests.worker.engine_cases import HARDWARE, Running, by_index, decoded, requests
from worker.engines.base import EngineDied, EngineSpec
from worker.engines.vllm import VllmEngine

pytestmark = [pytest.mark.engine, pytest.mark.nightly]

LENGTH = 512
# Of the sample model in float32: 30 layers of keys and values, 3 heads of 64 numbers each.
SEAT_BYTES = LENGTH * 30 * 2 * 3 * 64 * 4


def invariant(room: int | str, *, exactly: int | None = None) -> EnginePlan:
    """The profile `invariant` with a KV cache of so many bytes, on a CPU's ordinary kernels: it has no others."""
    settings = DEFAULT_PROFILES["invariant"]["settings"]
    parsed = parse_profile({**settings, "engine": {**settings["engine"], "kv_cache_memory_bytes": room}})
    if exactly is not None:
        parsed = set_batch_size(parsed, exactly)
    asked = {"dtype": "float32", "quantization": None, "max_model_len": LENGTH, "max_tokens": 16, "stop": ()}
    plan = plan_engine(parsed, HARDWARE, **asked)
    return replace(plan, env={**plan.env, "VLLM_BATCH_INVARIANT": "0"})


def test_fewer_seats_than_asked_give_the_same_bits(vllm_python: Path, sample_model: Path) -> None:
    found = {}
    for room in ("whole_batch", 3 * SEAT_BYTES):  # vLLM keeps a block for itself: three do not fit into the second
        running = Running(vllm_python, sample_model, invariant(room))
        try:
            # An even number, so that each has company: alone, a CPU's ordinary kernels may give other bits.
            answers = by_index(running.engine.decode(requests(running.plan, ignore_eos=True)[:4]))
            found[room] = (running.started.manifest, answers, running.engine.self_check())
        finally:
            running.engine.stop()
    (wide, of_wide, wide_check), (narrow, of_narrow, narrow_check) = found.values()
    assert read_seats(wide) == EngineSeats(wanted=64, got=64, length=LENGTH)
    assert read_seats(narrow) == EngineSeats(wanted=64, got=2, length=LENGTH)
    assert max(decoded(answer).batch_max or 0 for answer in of_wide.values()) == len(of_wide)
    assert max(decoded(answer).batch_max or 0 for answer in of_narrow.values()) == 2
    assert {decoded(answer).n_preemptions for answer in of_narrow.values()} == {0}
    assert {i: decoded(a).trace.digest for i, a in of_narrow.items()} == {
        i: decoded(a).trace.digest for i, a in of_wide.items()
    }
    assert narrow_check == wide_check
    assert identify_manifest(narrow).digest == identify_manifest(wide).digest
    assert (wide["engine"]["kv_cache_fits_batch"], narrow["engine"]["kv_cache_fits_batch"]) == (True, True)


def test_an_exact_size_that_does_not_fit_is_refused(vllm_python: Path, sample_model: Path) -> None:
    """Of a replay; that the profile `fixed` wants its seats just so stands in its plan (tests/core/test_profile.py)."""
    plan = invariant(3 * SEAT_BYTES, exactly=4)
    engine = VllmEngine(EngineSpec(model=str(sample_model), revision=None, plan=plan), python=vllm_python)
    with pytest.raises(EngineDied) as died:
        engine.start()
    assert died.value.code == "out_of_memory"
    assert f"{plan.least_seats} sequences of 512 tokens must have room in the KV cache together" in str(died.value)
    assert "there is room for 2 after the weights" in str(died.value)
