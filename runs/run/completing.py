"""Complete a run that lacks responses: decode what is missing, and leave the others unchanged."""

from django.db import transaction
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce, Now

from evalboard.core.errors import Conflict
from evalboard.wording.numbers import counted
from runs.models import CaseColumns, RepeatRecord, RepeatScore, ResponseRecord, RunRecord, Shard
from runs.run.runs import locked, put_to_work
from runs.store import take_as_long_as_it_takes
from runs.work import queue

COMPLETED = (RunRecord.Status.INCOMPLETE, RunRecord.Status.FAILED, RunRecord.Status.CANCELLED)
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
        if run.source_id is not None:
            raise Conflict(f"Run {run_id} was read from a log, and nothing here decodes it. Import a longer log of it.")
        if run.status not in COMPLETED:
            raise Conflict(f"Run {run_id} is {run.status}; incomplete, failed and cancelled runs can be completed.")
        ResponseRecord.objects.filter(repeat__run=run).exclude(error_code="").delete()
        there = ResponseRecord.objects.filter(
            repeat=OuterRef("repeat"), case_index__gte=OuterRef("first"), case_index__lte=OuterRef("last")
        )
        n_there = Coalesce(Subquery(there.order_by().values("repeat").annotate(n=Count("pk")).values("n")), 0)
        n_by_shard = dict(mine.annotate(n_there=n_there).values_list("pk", "n_there"))
        short = [shard for shard in mine if n_by_shard[shard.pk] < shard.n_cases]
        if not short:
            raise Conflict(f"Run {run_id} misses no response.")
        n_missing = sum(shard.n_cases - n_by_shard[shard.pk] for shard in short)
        queue.refuse_beyond_limit(run.created_by, n_missing)
        again = mine.filter(pk__in=[shard.pk for shard in short])
        again.update(status=Shard.Status.QUEUED, n_done=n_there, lease_until=None, next_at=Now(), **FRESH)
        repeats = RepeatRecord.objects.filter(pk__in={shard.repeat_id for shard in short})
        repeats.update(status=RepeatRecord.Status.QUEUED, finished_at=None)
        for packed in (CaseColumns, RepeatScore):  # made again when the repeat ends
            packed.objects.filter(repeat__in=repeats).delete()
        run.failure, run.is_cancel_wanted = "", False
        run.save(update_fields=["failure", "is_cancel_wanted"])
        put_to_work(run, f"{counted(n_missing, 'missing response')} asked for again.", code="completing")
    return run
