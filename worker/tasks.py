"""What Celery calls: an id in, one call. The work itself is in `runner` and the slices of `runs`."""

from typing import Any

from celery import shared_task

from evalboard import request_ids
from runs import sweep
from runs.compare import work_on_comparison
from runs.health import alive
from runs.work import dispatch, work_on_strays
from worker import team


@shared_task(name=dispatch.CLAIM)
def claim(v: int = 0, request_id: str = request_ids.NO_REQUEST, **later: Any) -> None:
    """Handle a ring: work until nothing is left. Fields of newer versions are ignored.

    The log names the request that rang; it is a hint, since what is claimed first may be another's.
    """
    if v <= dispatch.VERSION:
        with request_ids.about(request_id):
            team.runner().work()


@shared_task(name="evalboard.reconcile")
def reconcile(**later: Any) -> None:
    sweep.reconcile()
    work_on_comparison()  # where no worker is there to do it
    work_on_strays()
    alive.note_sweep()
