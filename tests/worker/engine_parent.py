"""A parent for a test to kill: starts an engine, decodes without end, prints the engine's process id once it does.

Usage: python engine_parent.py VLLM_PYTHON MODEL
"""

import sys
import threading

from tests.worker.engine_cases import make_plan, request
from worker.engines.base import EngineSpec
from worker.engines.vllm import VllmEngine


def main() -> None:
    plan = make_plan(max_tokens=4000, max_model_len=8192)
    engine = VllmEngine(EngineSpec(model=sys.argv[2], revision=None, plan=plan), python=sys.argv[1])
    engine.start()
    endless = dict(plan.sampling, ignore_eos=True)

    def decode() -> None:
        short = dict(plan.sampling, max_tokens=1)
        for outcome in engine.decode([request(0, "One", short), request(1, "Tell me a story", endless)]):
            print(engine.pid, outcome.case_index, flush=True)

    decoding = threading.Thread(target=decode)
    decoding.start()
    decoding.join()


if __name__ == "__main__":
    main()
