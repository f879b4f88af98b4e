"""vLLM with nothing around it, run by the engine's own interpreter: what a pinned run is timed against.

It is started by the same `worker/vllm_start.py` as a run's engine, so the set-up is the same; no
batch is recorded, no trace is packed, nothing is sent or stored. One JSON line on stdin says `model`,
`engine`, `env`, `sampling` and `prompts` (token ids). After the start and one warm pass, each further
line makes one pass over the prompts; its seconds are printed.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "worker"))
import vllm_start


def main() -> None:
    plan = json.loads(sys.stdin.readline())
    os.environ.update({**plan["env"], **vllm_start.COMMON_ENV, "HF_HUB_OFFLINE": "1", "TORCHDYNAMO_DISABLE": "1"})
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM writes to stdout

    from vllm.sampling_params import RequestOutputKind, SamplingParams

    engine = vllm_start.start_engine(Path(plan["model"]), plan["engine"])
    sampling = SamplingParams(**plan["sampling"], n=1, output_kind=RequestOutputKind.FINAL_ONLY)
    one_pass(engine, sampling, plan["prompts"])
    print("ready", file=answers, flush=True)
    for _ in sys.stdin:
        print(one_pass(engine, sampling, plan["prompts"]), file=answers, flush=True)
    os._exit(0)


def one_pass(engine: Any, sampling: Any, prompts: list[list[int]]) -> float:
    """Decode every prompt once; wall seconds."""
    began = time.perf_counter()
    for index, prompt in enumerate(prompts):
        engine.add_request(str(index), {"prompt_token_ids": prompt}, sampling)
    while engine.has_unfinished_requests():
        engine.step()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
