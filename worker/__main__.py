"""`python -m worker`: one worker that polls the database for shards, until it is told to stop."""

import argparse
import logging
import os
import signal
import sys
from functools import partial
from types import FrameType

import django


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
    django.setup()

    from django.conf import settings

    from worker.engines.base import EngineFailure
    from worker.engines.vllm import VllmEngine, describe
    from worker.runner import Runner

    options = _options()
    try:
        hardware = describe(settings.VLLM_PYTHON)
    except EngineFailure as problem:
        logging.error("No engine can be started by %s: %s", settings.VLLM_PYTHON, problem)
        return 1
    make_engine = partial(
        VllmEngine,
        python=settings.VLLM_PYTHON,
        start_seconds=settings.ENGINE_START_SECONDS,
        response_seconds=settings.RESPONSE_SECONDS,
    )
    runner = Runner(pool=options.pool, hardware=hardware, make_engine=make_engine)

    def stop(number: int, frame: FrameType | None) -> None:
        runner.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    runner.run_forever()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m worker", description=__doc__)
    parser.add_argument("--pool", default="default", help="the endpoints' pool that this worker serves")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
