"""A worker process in a team: woken by the doorbell through Celery, and polling in between."""

import logging
import signal
import threading
from types import FrameType
from typing import Any

from celery.signals import beat_embedded_init, worker_ready, worker_shutting_down
from django.conf import settings
from django.db import connections

from evalboard.celery import CONTROL, app
from evalboard.local.children import die_with_parent
from runs.work import dispatch
from worker.beside import reading_suites
from worker.runner import Runner
from worker.sending import sending

logger = logging.getLogger(__name__)

# One shard and one engine at a time; threads, because a prefork child may not have an engine as its child.
ONE_AT_A_TIME = ["--pool", "threads", "--concurrency", "1"]
ALONE = ["--without-gossip", "--without-mingle", "--without-heartbeat"]

_joined: Runner | None = None


def runner() -> Runner:
    """Return the runner of this process. Raises LookupError in a process that is no worker."""
    if _joined is None:
        raise LookupError("This process has not joined a pool; `evalboard worker --pool NAME` does.")
    return _joined


def join(member: Runner) -> None:
    """Work for the runner's pool until the process is told to stop."""
    global _joined
    _joined = member
    worker_shutting_down.connect(_stop)
    # Until Celery has handlers of its own: the thread below may be at work before that.
    signal.signal(signal.SIGTERM, _leave)
    looking = threading.Thread(target=_look, args=[member], name="look")
    looking.start()
    try:
        while not member.is_stopping:
            _celery([*ONE_AT_A_TIME, "--queues", dispatch.queue_of(member.worker.pool)], name=member.worker.name)
            # Where nobody told it to end, it came upon what is no message at all, which is gone from the queue now.
    finally:
        member.stop()
        looking.join()


def schedule() -> None:
    """Sweep at fixed times and send the outbox. Several schedulers do no harm."""
    sender, reader = sending(), reading_suites()
    end_with_the_scheduler = die_with_parent(signal.SIGTERM)

    def start_sender(**signal_facts: Any) -> None:
        sender.start()
        reader.start()

    def bind_clock(**signal_facts: Any) -> None:
        end_with_the_scheduler()

    # Not before: the clock that Celery forks off must find no thread at work. Celery says it once, however often
    # it loses Redis and finds it again.
    worker_ready.connect(start_sender)
    # The forked clock would outlive a killed scheduler, and ring for ever next to the new one's.
    beat_embedded_init.connect(bind_clock)
    try:
        _celery(["--beat", "--pool", "threads", "--concurrency", "2", "--queues", CONTROL], name="scheduler")
    finally:
        for thread in (sender, reader):
            thread.stop()
            if thread.is_alive():
                thread.join()


def _look(member: Runner) -> None:
    """Do the worker's own chores, and poll for work that no ring announced."""
    try:
        member.run_forever(look_seconds=settings.LOOK_SECONDS)
    finally:
        connections.close_all()  # this thread's own


def _stop(**signal_facts: Any) -> None:
    runner().stop()


def _leave(number: int, frame: FrameType | None) -> None:
    runner().stop()
    raise SystemExit(0)


def _celery(options: list[str], *, name: str) -> None:
    app.worker_main(["worker", "--hostname", f"{name}@%h", "--loglevel", "INFO", *ALONE, *options])
