"""vLLM with nothing around it, run by the engine's own interpreter: what a pinned run is timed against.

One JSON line on stdin says `model`, `engine`, `env`, `sampling` and `prompts` (token ids). After the
start and one warm pass, each further line makes one pass over the prompts; its seconds are printed.
"""

import json
import os
import sys
import time
from typing import Any


def main() -> None:
    plan = json.loads(sys.stdin.readline())
    os.environ.update(plan["env"])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM writes to stdout

    from vllm.engine.arg_utils import EngineArgs
    from vllm.sampling_params import RequestOutputKind, SamplingParams
    from vllm.v1.engine.llm_engine import LLMEngine

    engine = LLMEngine.from_engine_args(EngineArgs(model=plan["model"], **plan["engine"]))
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
