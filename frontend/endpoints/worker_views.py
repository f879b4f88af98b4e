"""Workers and what each is doing."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from frontend.endpoints import words
from runs.access import READ, requires
from runs.health import doorbell_problem
from runs.work import pool_rows, worker_rows

PARTS = {"pools": "endpoints/_pools.html"}


@requires(READ)
@require_safe
def workers(request: HttpRequest) -> HttpResponse:
    part = request.GET.get("part")
    if part is None:
        return render(request, "endpoints/workers.html", _live())
    if part not in PARTS:
        raise Http404
    response = render(request, PARTS[part], _live())
    response["Cache-Control"] = "no-store"
    return response


def _live() -> dict[str, object]:
    rows = worker_rows()
    pools = pool_rows(rows)
    return {
        "finding": words.describe_team(pools),
        "pools": pools,
        "deserted": tuple((pool, words.describe_desertion(pool)) for pool in pools if pool.is_deserted),
        "stopped": tuple(worker for worker in rows if worker.state == "stopped"),
        "workers": rows,
        "n_living": sum(len(pool.workers) for pool in pools),
        "has_doorbell": bool(settings.REDIS_URL),
        "doorbell_problem": doorbell_problem(),
        "look_seconds": settings.LOOK_SECONDS,
    }
