"""The engine that a worker keeps: none is left behind when a start fails, and any thread may call it off."""

import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalboard.calling.calls import KeyUnreadable
from evalboard.core.profile import DEFAULT_PROFILES, parse_profile, plan_engine
from runs.models import EngineProcess, RunRecord
from runs.work import claim_shard
from runs.work.read import ShardWork, shard_work
from tests import build
from worker.engines.base import EngineDied, EngineSpec, Started, TokenListing
from worker.engines.vllm import VllmEngine, child_environment
from worker.session import EngineSession
from worker.vllm_sources import SourceFailed, fetch_bucket

HARDWARE = {"kind": "cpu", "gpus": [], "n_cores": 1}


class Scripted(VllmEngine):
    """The scripted engine, which may answer the start or the question for its vocabulary with nonsense."""

    fault = ""

    def start(self) -> Started:
        started = super().start()
        return Started(manifest={}, seconds=0.0) if self.fault == "manifest" else started

    def vocabulary(self) -> TokenListing:
        if self.fault == "vocabulary":
            raise EngineDied("engine_error", "It has none.")
        return super().vocabulary()


@pytest.fixture
def work(db: None) -> ShardWork:
    run: RunRecord = build.run()
    lease = claim_shard(worker=build.worker())
    assert lease is not None
    work = shard_work(lease.id)
    assert work.run_id == run.pk
    return work


@pytest.mark.parametrize(("fault", "error"), [("manifest", KeyError), ("vocabulary", EngineDied)])
def test_an_engine_that_cannot_be_recorded_is_ended(
    work: ShardWork, scripted_python: Path, monkeypatch: pytest.MonkeyPatch, fault: str, error: type[Exception]
) -> None:
    monkeypatch.setattr(Scripted, "fault", fault)
    made: list[Scripted] = []

    def make(spec: EngineSpec) -> Scripted:
        made.append(Scripted(spec, python=scripted_python))
        return made[-1]

    session = EngineSession(worker=build.worker("second"), hardware=HARDWARE, make_engine=make)
    with pytest.raises(error):
        session.open_for(work)
    [engine] = made
    assert engine._process is not None
    try:
        assert engine._process.has_ended
        assert not EngineProcess.objects.filter(stopped_at=None).exists()
    finally:
        engine.stop()


def test_the_token_of_a_hub_reaches_the_engine_and_nothing_that_is_stored(
    work: ShardWork, scripted_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs: list[EngineSpec] = []

    def make(spec: EngineSpec) -> Scripted:
        specs.append(spec)
        return Scripted(spec, python=scripted_python)

    work.serving.endpoint.auth = "HUB_API_KEY"
    serving = replace(work.serving, model_path="", model_repo="owner/name", model_revision="a" * 40)
    session = EngineSession(worker=build.worker("second"), hardware=HARDWARE, make_engine=make)
    with pytest.raises(KeyUnreadable, match="HUB_API_KEY is not set on the worker"):
        session.open_apart(serving)
    assert specs == []
    monkeypatch.setenv("HUB_API_KEY", "hub-token-1")
    opened = session.open_apart(serving)
    session.close()
    assert [spec.token for spec in specs] == ["hub-token-1"]
    assert "hub-token-1" not in repr(specs) + str(opened.process.manifest)


def test_a_bucket_without_its_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(SourceFailed, match=f"{sys.executable} -m pip install boto3"):
        fetch_bucket("s3://models/paint-1b")


def test_an_engine_gets_credentials_of_a_bucket_only_where_its_model_is_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert "AWS_SECRET_ACCESS_KEY" not in child_environment()
    assert "AWS_SECRET_ACCESS_KEY" in child_environment(with_aws=True)


def test_a_signal_handler_may_abort_while_the_engine_holds_its_own_lock(scripted_python: Path) -> None:
    settings: Any = DEFAULT_PROFILES["pinned"]["settings"]
    asked: dict[str, Any] = {"dtype": "float32", "quantization": None, "max_model_len": 512, "max_tokens": 16}
    plan = plan_engine(parse_profile(settings), HARDWARE, **asked, stop=())
    engine = VllmEngine(EngineSpec(model="/m", revision=None, plan=plan), python=scripted_python)

    def handled() -> None:
        with engine._lock:  # a handler runs in the very thread that it interrupts
            engine.abort()

    thread = threading.Thread(target=handled, daemon=True)
    thread.start()
    thread.join()
