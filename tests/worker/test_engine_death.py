"""How an engine ends: hanging, called off, without a model, and with its parent.

The kernel stops and kills any process alike, so most of these are not vLLM, whose start takes ten seconds.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.processes import environment_of, is_there, wait_for_end
from tests.waiting import wait_until
from tests.worker.engine_cases import Running, decoded, make_plan, request
from worker.engines.base import EngineDied, EngineSpec, EngineTimeout
from worker.engines.vllm import HOST, VllmEngine, child_environment, describe

ROOT = Path(__file__).resolve().parents[2]
SPEC = EngineSpec(model="scripted", revision=None, plan=make_plan())


def test_an_engine_that_hangs_is_killed_at_the_deadline(scripted_python: Path) -> None:
    running = Running(scripted_python, Path("scripted"), make_plan(), response_seconds=1.0)
    try:
        pid = running.engine.pid
        assert pid is not None
        sampling = running.plan.sampling
        outcomes = running.engine.decode([request(0, "say blue", sampling), request(1, "hang blue", sampling)])
        assert next(outcomes).case_index == 0
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(EngineTimeout) as late:
            list(outcomes)
        assert late.value.code == "timeout"
        assert not is_there(pid)
    finally:
        running.engine.stop()


def test_a_response_may_take_longer_than_the_deadline_while_its_tokens_come(scripted_python: Path) -> None:
    """Twelve signs of life, a quarter of a second between two, where two seconds are allowed without one."""
    running = Running(scripted_python, Path("scripted"), make_plan(), response_seconds=2.0)
    try:
        sampling = running.plan.sampling
        [outcome] = running.engine.decode([request(0, "slow green", sampling)])
        assert decoded(outcome).text == "green"
    finally:
        running.engine.stop()


@pytest.fixture
def silent_python(tmp_path: Path) -> Path:
    """An interpreter whose engine never comes up."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexec sleep 3600\n")
    script.chmod(0o755)
    return script


def test_a_start_that_takes_too_long_is_killed(silent_python: Path) -> None:
    engine = VllmEngine(SPEC, python=silent_python, start_seconds=0.3)
    with pytest.raises(EngineTimeout):
        engine.start()
    assert engine.pid is not None
    assert not is_there(engine.pid)


def test_a_start_can_be_called_off(silent_python: Path) -> None:
    engine = VllmEngine(SPEC, python=silent_python)

    def call_off() -> None:
        wait_until(lambda: engine.pid is not None)
        engine.abort()

    threading.Thread(target=call_off).start()
    with pytest.raises(EngineDied, match="called off"):
        engine.start()
    assert engine.pid is not None
    assert not is_there(engine.pid)


@pytest.mark.engine
@pytest.mark.nightly
def test_a_model_that_is_not_there_is_told_in_words(vllm_python: Path, tmp_path: Path) -> None:
    engine = VllmEngine(EngineSpec(model=str(tmp_path), revision=None, plan=make_plan()), python=vllm_python)
    with pytest.raises(EngineDied, match=r"no config\.json") as died:
        engine.start()
    assert died.value.code == "engine_error"
    assert "Traceback" in died.value.last_words


def test_an_interpreter_without_vllm_is_told_in_words() -> None:
    with pytest.raises(EngineDied, match="cannot load vLLM") as died:
        describe(sys.executable)
    assert "No module named" in died.value.last_words


@pytest.mark.engine
@pytest.mark.nightly
def test_hardware_is_described_without_an_engine(vllm_python: Path) -> None:
    found = describe(vllm_python)
    assert found["kind"] in ("cpu", "cuda")
    assert found["n_cores"] >= 1
    assert found["versions"]["vllm"]
    assert (found["kind"] == "cuda") is bool(found["gpus"])


@pytest.mark.engine
@pytest.mark.nightly
def test_an_engine_in_the_middle_of_a_decode_dies_with_its_parent(vllm_python: Path, sample_model: Path) -> None:
    command = [sys.executable, "-m", "tests.worker.engine_parent", str(vllm_python), str(sample_model)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline().split()[0])  # one response is out, an endless one is being decoded
        parent.kill()
    wait_for_end(pid)


@pytest.mark.engine
@pytest.mark.nightly
def test_a_frozen_engine_dies_with_its_parent(vllm_python: Path) -> None:
    script = """
import json, subprocess, sys
host = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
host.stdin.write(b'{"op": "describe"}\\n')
host.stdin.flush()
assert json.loads(host.stdout.readline())["event"] == "described"
print(host.pid, flush=True)
host.wait()
"""
    command = [sys.executable, "-c", script, str(vllm_python), str(HOST)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=child_environment()) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(pid, signal.SIGSTOP)
        parent.kill()
    wait_for_end(pid)


def test_an_engine_ends_when_nobody_can_ask_it_any_more() -> None:
    """Before it has loaded anything, so that any interpreter will do."""
    with subprocess.Popen(
        [sys.executable, HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as host:
        assert host.stdin is not None
        host.stdin.close()
        assert host.wait() != 0


def test_an_engine_does_not_see_our_secrets(scripted_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://not-for-engines")
    monkeypatch.setenv("PYTHONPATH", "not-for-engines")
    monkeypatch.setenv("EVALBOARD_SECRET_KEY", "not-for-engines")
    running = Running(scripted_python, Path("scripted"), make_plan())
    try:
        assert running.engine.pid is not None
        assert "not-for-engines" not in environment_of(running.engine.pid).values()
    finally:
        running.engine.stop()
