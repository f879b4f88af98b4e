"""Three real vLLM servers behind a real gateway, started once for all tests of the rig."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rig.servers import Gateway, VllmServer

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-rig-4f1c9a7e2b8d6035"  # the gateway's, which nothing of the product may keep


@dataclass(frozen=True)
class Rig:
    """The servers, the last of which has weights rounded to 8 bits; the gateway stands before all."""

    float32: VllmServer
    bfloat16: VllmServer
    rounded: VllmServer
    gateway: Gateway

    def route(self, *, float32: int = 0, bfloat16: int = 0, rounded: int = 0) -> None:
        """Start the gateway anew with these weights; a server of none is left out."""
        weights = {self.float32: float32, self.bfloat16: bfloat16, self.rounded: rounded}
        self.gateway.start({server: weight for server, weight in weights.items() if weight})
        self.gateway.wait()


@pytest.fixture(scope="session")
def litellm() -> Path:
    """LiteLLM's command."""
    command = Path(os.environ.get("EVALBOARD_LITELLM") or ROOT / ".venv-rig" / "bin" / "litellm")
    if not command.exists():
        pytest.skip(f"No LiteLLM at {command}; `make rig` installs it.")
    return command


@pytest.fixture(scope="session")
def rounded_model(vllm_python: Path, sample_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the sample model with its weights rounded to 8 bits."""
    folder = tmp_path_factory.mktemp("models") / "rounded"
    script = ROOT / "bench" / "rounded_model.py"
    subprocess.run([vllm_python, script, sample_model, folder, "8"], check=True)
    return folder


@pytest.fixture(scope="session")
def rig(
    litellm: Path, vllm_python: Path, sample_model: Path, rounded_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("rig")
    float32, bfloat16 = (VllmServer(folder, dtype) for dtype in ("float32", "bfloat16"))
    rounded = VllmServer(folder, "rounded", "bfloat16")
    started = Rig(float32, bfloat16, rounded, Gateway(folder, litellm, KEY))
    servers = {float32: sample_model, bfloat16: sample_model, rounded: rounded_model}
    try:
        for server, model in servers.items():
            server.start(vllm_python, model)
        for server in servers:
            server.wait()
        yield started
    finally:
        for each in (started.gateway, *servers):
            each.stop()
