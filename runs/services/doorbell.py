"""Rings for the shards of a run, once its rows can be found; the run's history tells where that was not possible."""

from functools import partial

from django.conf import settings
from django.db import transaction

from runs import dispatch
from runs.models import Event, Run, Shard
from runs.services import history


def ring_after_commit(run: Run) -> None:
    """Tell the run's pool after this transaction. Redis, or a history that cannot be written, never fails it."""
    transaction.on_commit(partial(_ring, run), robust=True)


def _ring(run: Run) -> None:
    n_shards = Shard.objects.claimable().filter(repeat__run=run).count()
    if not dispatch.ring_or_log(run.endpoint.pool, n_shards=n_shards):
        text = f"The queue is delayed: Redis does not answer. Workers look every {settings.LOOK_SECONDS:g} s."
        history.note_once(run.pk, "queue_delayed", text, level=Event.Level.WARNING)
