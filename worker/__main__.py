"""`python -m worker`: run a worker of a pool, or the scheduler, or a self-test or proof of this node."""

import argparse
import logging
import os
import signal
import sys
from functools import partial
from types import FrameType

CANNOT_START, FAULT = 4, 70  # as docs/cli.md has them


def main() -> int:
    """Return the exit code: never 1 to 3, which are verdicts of `evalboard`."""
    try:
        return _run()
    except Exception:
        logging.exception("This is a fault in Evalboard, and the process ends.")
        return FAULT


def _run() -> int:
    if sys.argv[1:2] == ["prove"]:  # no Django: a node that is only measured needs none
        from worker import prove

        logging.basicConfig(level=logging.INFO, format="%(message)s")
        return prove.run(sys.argv[2])
    import django
    from django.db import connections

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
    django.setup()
    # A worker tries again by itself; a check would follow a connection that died by a wait for the next one, in which
    # nothing can be called off.
    connections.settings["default"]["CONN_HEALTH_CHECKS"] = False
    options = _options()
    if options.self_test:
        from worker import self_test

        return self_test.run(as_json=options.json)
    if options.scheduler:
        return _schedule()
    return _work(options.pool)


def _work(pool: str) -> int:
    from django.conf import settings

    from evalboard.calling.calls import EngineFailure
    from evalboard.core.profile import NO_ENGINE
    from worker.engines.vllm import VllmEngine, describe
    from worker.runner import Runner

    try:
        hardware = describe(settings.VLLM_PYTHON)
    except EngineFailure as problem:
        logging.warning("No engine can be started by %s: %s", settings.VLLM_PYTHON, problem)
        logging.warning("This worker serves external endpoints only.")
        hardware = {"kind": NO_ENGINE}
    make_engine = partial(
        VllmEngine,
        python=settings.VLLM_PYTHON,
        start_seconds=settings.ENGINE_START_SECONDS,
        response_seconds=settings.RESPONSE_SECONDS,
    )
    runner = Runner(pool=pool, hardware=hardware, make_engine=make_engine)
    if settings.REDIS_URL:
        from worker import team

        team.join(runner)
        return 0

    def stop(number: int, frame: FrameType | None) -> None:
        runner.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    from worker.beside import reading_suites
    from worker.sending import sending

    with sending(), reading_suites():
        runner.run_forever()
    return 0


def _schedule() -> int:
    from django.conf import settings

    if not settings.REDIS_URL:
        logging.error(
            "REDIS_URL is not set. Without Redis there is nothing to schedule: each worker sweeps on its own."
        )
        return CANNOT_START
    from worker import team

    team.schedule()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m worker", description=__doc__)
    parser.add_argument("--pool", default="default", help="the endpoints' pool that this worker serves")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--scheduler", action="store_true", help="sweep and ring at fixed times, and decode nothing")
    instead.add_argument("--self-test", action="store_true", help="test this node's arithmetic and keep the result")
    parser.add_argument("--json", action="store_true", help="the self-test's result as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
