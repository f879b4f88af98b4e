"""Pause external servers after too many failures or on their request, with all work on them."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Case, F, Subquery, When
from django.db.models.functions import Coalesce, Greatest, Now

from evalboard.calling.retries import rest_seconds
from evalboard.contract.parts import Pause
from evalboard.core.errors import LeaseLost
from runs import acts
from runs.models import EndpointRecord, Event, RunRecord, Shard
from runs.store import history, require_row, storable
from runs.work import requests
from runs.work.claims import Lease
from runs.work.shards import SHARDS, fail_run, let_go

RESTS_BEFORE_GIVING_UP = 24  # without an answer between them; the last nineteen take ten minutes each


def rest_endpoint(*, lease: Lease, reason: str, seconds: float, n_failures: int) -> bool:
    """Return a shard to the queue because its endpoint is paused, with all work on the endpoint.

    n_failures: calls that failed in a row. The attempt does not count against the shard; unanswered cases are tried
    again. Return False if RESTS_BEFORE_GIVING_UP pauses gave no answer to any case: then it is not returned.
    """
    endpoint = _endpoint(lease)
    if endpoint is None:
        return True
    # First: a worker that claims the shard before the pause sees it, and waits as well.
    note_rest(endpoint_id=endpoint.pk, reason=reason, seconds=seconds, n_failures=n_failures)
    mine = SHARDS.held_row(lease)
    mine.update(n_rests=F("n_rests") + 1)
    if mine.filter(n_rests__gte=RESTS_BEFORE_GIVING_UP).exists():
        return False
    _give_back(lease, storable(reason))
    return True


def note_rest(*, endpoint_id: int, reason: str, seconds: float, n_failures: int) -> None:
    """Pause an endpoint. n_failures: calls that failed in a row."""
    until = Now() + timedelta(seconds=seconds)
    resting = EndpointRecord.objects.filter(pk=endpoint_id)
    since = Coalesce(F("failing_since"), Now())
    resting.update(n_failures=n_failures, rests_until=until, rest_reason=storable(reason), failing_since=since)


def wait_for_endpoint(*, lease: Lease) -> bool:
    """Return a shard to the queue if its endpoint is paused; return whether it is."""
    endpoint = _endpoint(lease)
    if endpoint is None or not EndpointRecord.objects.filter(pk=endpoint.pk, rests_until__gt=Now()).exists():
        return False
    _give_back(lease, endpoint.rest_reason)
    return True


def read_pause(endpoint_id: int) -> Pause | None:
    """Return until when an endpoint is not called, and why; None while it is. By the database's clock."""
    paused = EndpointRecord.objects.filter(pk=endpoint_id, rests_until__gt=Now()).first()
    if paused is None or paused.rests_until is None:
        return None
    return Pause(n_failures=paused.n_failures, reason=paused.rest_reason, until=paused.rests_until)


def give_up_time(pause: Pause, n_rests: int) -> datetime:
    """Return when the cases of a shard are given up if no call is answered. n_rests: its pauses so far."""
    further = range(1, RESTS_BEFORE_GIVING_UP - n_rests)
    return pause.until + timedelta(seconds=sum(rest_seconds(pause.n_failures + n) for n in further))


def paused_until(endpoint: str) -> Case:
    """Return a query expression for the end of a pause; null without one. endpoint: relation name."""
    until = f"{endpoint}__rests_until"
    return Case(When(**{f"{until}__gt": Now()}, then=F(until)))


def try_endpoint(*, endpoint: str) -> EndpointRecord:
    """Let the next call of a paused endpoint go at once; if it fails, the endpoint is paused again.

    Raises NotFound. An endpoint that is not paused is left as it is.
    """
    with transaction.atomic():
        locked = EndpointRecord.objects.select_for_update(no_key=True).filter(slug=endpoint)
        paused = require_row(locked, f"There is no endpoint {endpoint}.")
        if acts.require("try_now", paused):
            paused.rests_until = None
            paused.save(update_fields=["rests_until"])
            delayed = Shard.objects.open().filter(status=Shard.Status.QUEUED, repeat__run__endpoint=paused)
            delayed.filter(next_at__gt=Now()).update(next_at=Now())
            requests.ring_after_commit(paused.pool)
    return paused


def end_rest(*, endpoint_id: int) -> None:
    """Forget failed calls: one has come through."""
    rested = EndpointRecord.objects.filter(pk=endpoint_id).exclude(n_failures=0, rests_until=None, rest_reason="")
    rested.update(n_failures=0, rests_until=None, rest_reason="", failing_since=None)


def fail_refused(*, lease: Lease, reason: str, code: str = "endpoint_refused") -> None:
    """End the run of a shard whose endpoint takes no call of it. A lease that is lost changes nothing.

    code: of the history line.
    """
    run_id = SHARDS.held_row(lease).values_list("repeat__run", flat=True).first()
    if run_id is not None:
        fail_run(run_id=run_id, code=code, reason=reason)


def _endpoint(lease: Lease) -> EndpointRecord | None:
    return EndpointRecord.objects.filter(runs__repeats__shards__in=SHARDS.held_row(lease)).first()


def _give_back(lease: Lease, reason: str) -> None:
    try:
        with SHARDS.locked(lease=lease, related=["repeat__run__endpoint"]) as shard:
            let_go(shard, reason=reason, may_fail=False)
    except LeaseLost:
        return
    run = shard.repeat.run
    _pause(run.endpoint)
    text = f"Endpoint {run.endpoint} is paused; the run continues automatically: {reason}"
    history.note_once(run.pk, "endpoint_rests", text, level=Event.Level.WARNING)


def _pause(endpoint: EndpointRecord) -> None:
    """Delay queued shards of an endpoint until its pause ends; shards being claimed are handled there."""
    with transaction.atomic():
        waiting = Shard.objects.claimable().filter(repeat__run__in=RunRecord.objects.filter(endpoint=endpoint))
        shard_ids = list(
            waiting.select_for_update(of=("self",), skip_locked=True).order_by("pk").values_list("pk", flat=True)
        )
        until = EndpointRecord.objects.filter(pk=endpoint.pk).values("rests_until")
        Shard.objects.filter(pk__in=shard_ids).update(next_at=Greatest(F("next_at"), Subquery(until)))
