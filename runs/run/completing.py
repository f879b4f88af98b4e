"""Go on from a run that has ended: decode the responses that it misses, or all of it in a new run."""

from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from evalboard.wording.numbers import counted
from runs import acts
from runs.catalogue.read import endpoint_row
from runs.models import CaseColumns, Priority, RepeatRecord, RepeatScore, ResponseRecord, RunRecord, Shard
from runs.pairs import planned_draws
from runs.run.runs import create_run, locked, named_endpoint, newest_profile, put_to_work
from runs.store import require_row, take_as_long_as_it_takes
from runs.work import queue

FRESH = {"n_crashes": 0, "n_failed_starts": 0, "n_rests": 0, "error": "", "owner": None, "in_flight": None}


def complete_run(*, run_id: int) -> RunRecord:
    """Queue the cases that a run misses, under its own settings and seeds.

    Raises NotFound, or Conflict where it has not ended, ended whole, or was read from a log.
    """
    with transaction.atomic():
        take_as_long_as_it_takes()
        mine = Shard.objects.filter(repeat__run=run_id)
        list(mine.select_for_update(of=("self",)).order_by("pk").values_list("pk"))  # before their run, as everywhere
        run = locked(run_id)
        acts.require("complete", run)
        ResponseRecord.objects.filter(repeat__run=run).exclude(error_code="").delete()
        short = list(acts.short_shards(run))
        n_missing = sum(shard.n_cases - shard.n_there for shard in short)  # type: ignore[attr-defined]
        queue.refuse_beyond_limit(run.created_by, n_missing)
        again = mine.filter(pk__in=[shard.pk for shard in short])
        again.update(status=Shard.Status.QUEUED, n_done=acts.N_THERE, lease_until=None, next_at=Now(), **FRESH)
        repeats = RepeatRecord.objects.filter(pk__in={shard.repeat_id for shard in short})
        repeats.update(status=RepeatRecord.Status.QUEUED, finished_at=None)
        for packed in (CaseColumns, RepeatScore):  # made again when the repeat ends
            packed.objects.filter(repeat__in=repeats).delete()
        run.failure, run.is_cancel_wanted = "", False
        run.save(update_fields=["failure", "is_cancel_wanted"])
        put_to_work(run, f"{counted(n_missing, 'missing response')} asked for again.", code="completing")
    return run


def run_again(*, run_id: int, user: Any = None, **changes: Any) -> RunRecord:
    """Start a new run with the settings of one. changes: for `order_again`, which raises."""
    return create_run(**order_again(run_id, **changes), user=user)


def _model_of(run: RunRecord) -> dict[str, Any]:
    """Return the model of a run with its base, which the run's own order may leave out."""
    if run.endpoint.is_remote:
        return endpoint_row(run.endpoint).model.to_json()
    named = run.endpoint.checkpoint(run.model_override)
    return {name.removeprefix("model_"): value for name, value in named.items() if value}


def order_again(
    run_id: int, *, endpoint: str | None = None, suite: str | None = None, is_today: bool = False, profile: str = ""
) -> dict[str, Any]:
    """Return what `create_run` takes for a run with the settings of another.

    They are suite version, profile, repeats, seed, model and labels. endpoint: another one to run it on, with the model
    that this serves. suite: another one, in its newest version. is_today: the newest versions of its suite and profile,
    and the same model wherever it runs, for a release to judge. profile: another one, if is_today. Raises NotFound, or
    Conflict where it has not ended or was read from a log.
    """
    related = RunRecord.objects.select_related("suite_version__suite", "endpoint", "profile")
    run = require_row(related.filter(pk=run_id), f"There is no run {run_id}.")
    acts.require("again", run)
    target = run.endpoint if endpoint is None else named_endpoint(endpoint)
    decoding = newest_profile(profile or run.profile.slug) if is_today else run.profile
    draws = planned_draws(decoding, target, seed=run.seed)
    model = run.model_override if target == run.endpoint else None
    if is_today and target != run.endpoint:
        model = _model_of(run)
    priority = Priority.BULK if run.priority == Priority.BULK else Priority.NORMAL
    return {
        "suite": suite or run.suite_version.suite.slug,
        "suite_version": None if suite or is_today else run.suite_version.number,
        "endpoint": target.slug,
        "profile": decoding,
        "repeats": run.repeats.filter(cases=None).count(),
        "seed": run.seed if draws.has_call_seeds else None,
        "model": model,
        "labels": run.labels,
        "priority": Priority.RELEASE if is_today else priority,
        "is_shuffled": run.is_shuffled,
        "is_restarted": run.is_restarted,
    }
