"""The rig's servers, all real: `vllm serve` of the CPU build on the sample model, and LiteLLM's proxy before it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import httpx

from tests.servers import free_lasting_port

MODEL, SEEDLESS = "smollm2", "smollm2-seedless"  # as the gateway names them; the servers know the first
# LiteLLM takes a DATABASE_URL for its own.
_INHERITED = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}
START_SECONDS = 600.0  # three servers start together, and other work may keep the cores busy


class Served:
    """A server of a child process on a port of 127.0.0.1; it and what it started end together."""

    def __init__(self, log: Path, *, health: str) -> None:
        self.port = free_lasting_port()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self._log, self._health = log, health
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, command: list[str | Path], environment: Mapping[str, str]) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**_INHERITED, **environment}, process_group=0
            )

    def wait(self) -> Self:
        """Wait until it answers; fail with its last words where it ended."""
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            ended = self._process is None or self._process.poll() is not None
            assert not ended, f"{self._log.name}: the server ended:\n{self._log.read_text()[-2000:]}"
            assert time.monotonic() < deadline, f"{self._log.name}: no answer after {START_SECONDS:.0f} s"
            time.sleep(0.2)
        return self

    def stop(self) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _answers(self) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"http://127.0.0.1:{self.port}{self._health}", timeout=2).is_success
        return False


class VllmServer(Served):
    """`vllm serve` in one dtype: small, and one of several on a machine. Its name says what it serves."""

    def __init__(self, folder: Path, name: str, dtype: str | None = None) -> None:
        super().__init__(folder / f"{name}.log", health="/health")
        self.name, self.dtype = name, dtype or name
        self._folder = folder

    def start(self, python: Path, model: Path) -> None:
        command: list[str | Path] = [python, "-m", "vllm.entrypoints.cli.main", "serve", model]
        command += ["--host", "127.0.0.1", "--port", str(self.port), "--served-model-name", MODEL]
        command += ["--dtype", self.dtype, "--max-model-len", "1024", "--max-num-seqs", "4", "--enforce-eager"]
        command += ["--kv-cache-memory-bytes", str(64 * 2**20)]
        self.launch(command, {**ENVIRONMENT, "PYTHONPATH": str(_distribution(self._folder))})


# What the product's own engine sets as well (docs/node.md): no compiler, and threads that let others have the cores.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "TORCHDYNAMO_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}


def _distribution(folder: Path) -> Path:
    """Return a folder that says that vLLM is installed: `vllm serve` asks, and the CPU build has another name."""
    named = folder / "distribution" / "vllm-0.32.0+cpu.dist-info"
    named.mkdir(parents=True, exist_ok=True)
    (named / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n")
    return named.parent


class Gateway(Served):
    """LiteLLM's proxy: MODEL goes to several servers by weight and nothing says so, SEEDLESS drops every seed."""

    def __init__(self, folder: Path, command: Path, key: str) -> None:
        super().__init__(folder / "litellm.log", health="/health/liveliness")
        self._settings, self._command, self._key = folder / "litellm.json", command, key

    def start(self, weights: Mapping[VllmServer, int]) -> None:
        """Start it, or start it anew with other weights at the same address."""
        self.stop()
        models = [_model(MODEL, server, weight=weight) for server, weight in weights.items()]
        models.append(_model(SEEDLESS, next(iter(weights)), additional_drop_params=["seed"]))
        settings = {"model_list": models, "router_settings": {"routing_strategy": "simple-shuffle", "num_retries": 0}}
        self._settings.write_text(json.dumps(settings))  # YAML may be written as JSON
        known = {"LITELLM_MASTER_KEY": self._key, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        options = ["--config", str(self._settings), "--host", "127.0.0.1", "--port", str(self.port)]
        self.launch([self._command, *options, "--telemetry", "False"], known)


def _model(name: str, server: VllmServer, **parameters: object) -> dict[str, object]:
    there = {"model": f"hosted_vllm/{MODEL}", "api_base": server.base_url, **parameters}
    return {"model_name": name, "litellm_params": there, "model_info": {"id": f"{name}-{server.name}"}}
