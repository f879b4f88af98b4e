"""Two real vLLM servers behind a real gateway, started once for all tests of the rig."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rig.servers import Gateway, VllmServer

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-rig-4f1c9a7e2b8d6035"  # the gateway's, which nothing of the product may keep


@dataclass(frozen=True)
class Rig:
    """The servers; the gateway stands before both."""

    float32: VllmServer
    bfloat16: VllmServer
    gateway: Gateway

    def route(self, *, float32: int = 0, bfloat16: int = 0) -> None:
        """Start the gateway anew with these weights; a server of none is left out."""
        weights = {self.float32: float32, self.bfloat16: bfloat16}
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
def rig(
    vllm_python: Path, sample_model: Path, litellm: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("rig")
    started = Rig(VllmServer(folder, "float32"), VllmServer(folder, "bfloat16"), Gateway(folder, litellm, KEY))
    servers = (started.float32, started.bfloat16)
    try:
        for server in servers:
            server.start(vllm_python, sample_model)
        for server in servers:
            server.wait()
        yield started
    finally:
        for each in (started.gateway, *servers):
            each.stop()
