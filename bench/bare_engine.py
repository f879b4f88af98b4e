"""The engine's process, which also makes passes with nothing around them: what a pinned run is timed against.

Run in place of `worker/vllm_host.py`, by the engine's own interpreter. A decode whose request has `bare` (prompts as
token ids) and `sampling` is one pass of vLLM's own loop over them: no batch is recorded, no trace is packed, nothing
is sent but the seconds that it took. Runs and passes have one engine so: two that are started alike differ by 3 %.
"""

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "worker"))
import vllm_host


class BareHost(vllm_host.Host):  # type: ignore[misc]
    """Answers what every host answers, and bare passes."""

    def decode(self, request: dict[str, Any]) -> None:
        if "bare" in request:
            self._emit({"event": "bare", "seconds": self._one_pass(request["bare"], request["sampling"])})
        else:
            super().decode(request)

    def _one_pass(self, prompts: list[list[int]], settings: dict[str, Any]) -> float:
        """Decode every prompt once; wall seconds."""
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        engine, scheduler = self._engine, self._engine.engine_core.engine_core.scheduler
        sampling = SamplingParams(**settings, n=1, output_kind=RequestOutputKind.FINAL_ONLY)
        watched, scheduler.schedule = scheduler.schedule, type(scheduler).schedule.__get__(scheduler)
        began = time.perf_counter()
        for index, prompt in enumerate(prompts):
            engine.add_request(str(index), {"prompt_token_ids": prompt}, sampling)
        while engine.has_unfinished_requests():
            engine.step()
        seconds = time.perf_counter() - began
        scheduler.schedule = watched
        return seconds


if __name__ == "__main__":
    vllm_host.Host = BareHost
    vllm_host.main()
