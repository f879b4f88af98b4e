"""The only file that rings the doorbell.

A ring says that a pool has work, and no more: what the work is stands in the database, where a worker that
hears nothing finds it a little later. So no ring is waited for, stored or sent again, and one that fails
never fails what it was rung for.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction

from evalboard import request_ids
from runs.models import Event, RunRecord, Shard
from runs.store import history

logger = logging.getLogger(__name__)

VERSION = 1  # of the message; a worker leaves alone what a newer one says, and finds the work by looking
CLAIM = "evalboard.claim"
MAX_RINGS = 64  # a pool with more idle workers than this is woken in several sweeps


class DoorbellAway(Exception):
    """The broker does not answer, or takes no message; the text is its own."""


def queue_of(pool: str) -> str:
    """Return the queue that workers of a pool listen to."""
    return f"gpu.{pool}"


def ring_after_commit(run: RunRecord) -> None:
    """Notify the run's pool after this transaction. Failures of Redis or history never fail it."""
    transaction.on_commit(partial(_ring, run), robust=True)


def _ring(run: RunRecord) -> None:
    n_shards = Shard.objects.claimable().filter(repeat__run=run).count()
    if not ring_or_log(run.endpoint.pool, n_shards=n_shards):
        text = f"The queue is delayed: Redis does not answer. Workers look every {settings.LOOK_SECONDS:g} s."
        history.note_once(run.pk, "queue_delayed", text, level=Event.Level.WARNING)


def ring_or_log(pool: str, *, n_shards: int) -> bool:
    """Ring; False, with a line in the log, where that could not be done."""
    try:
        ring(pool, n_shards=n_shards)
    except DoorbellAway as away:
        logger.warning("The doorbell of pool %s could not be rung: %s", pool, away)
        return False
    return True


def ring(pool: str, *, n_shards: int) -> int:
    """Bring the pool's queue up to one ring for each waiting shard; how many rings were sent.

    More would only pile up while no worker listens. A ring carries no time at which it ends: a worker whose clock
    is ahead would take every one for late. It carries the id of the request that it is rung in, for the worker's log.
    Without a broker nothing is sent. Raises DoorbellAway.
    """
    if not settings.REDIS_URL:
        return 0
    from evalboard.celery import app

    queue = queue_of(pool)
    try:
        with _broker() as connection:
            n_waiting = _length(connection.default_channel, queue)
            n_rings = max(0, min(n_shards, MAX_RINGS) - n_waiting)
            message = {"v": VERSION, "request_id": request_ids.current.get()}
            for _ in range(n_rings):
                app.send_task(CLAIM, kwargs=message, queue=queue, connection=connection)
    except Exception as problem:  # kombu, redis-py and the socket each raise their own
        raise DoorbellAway(f"{type(problem).__name__}: {problem}") from problem
    return n_rings


def ask() -> None:
    """Check that the broker answers, if one is configured. Raises DoorbellAway."""
    if not settings.REDIS_URL:
        return
    from evalboard.celery import CONTROL

    try:
        with _broker() as connection:
            _length(connection.default_channel, CONTROL)
    except Exception as problem:  # kombu, redis-py and the socket each raise their own
        raise DoorbellAway(f"{type(problem).__name__}: {problem}") from problem


@contextmanager
def _broker() -> Iterator[Any]:
    """Yield a new connection with timeouts of EVALBOARD_REDIS_SECONDS, because a web request waits for it.

    The workers' own `socket_timeout` is longer, for they wait for rings on theirs.
    """
    from evalboard.celery import app

    patience = {"socket_timeout": settings.REDIS_SECONDS}
    with app.connection_for_write(url=settings.REDIS_URL, transport_options=patience) as connection:
        connection.ensure_connection(max_retries=0)
        yield connection


def _length(channel: Any, queue: str) -> int:
    return int(channel.queue_declare(queue=queue, durable=True).message_count)
