"""Workers and what each is doing."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from frontend import findings
from runs import selectors
from runs.access import READ, requires

PARTS = {"pools": "frontend/_pools.html"}


@requires(READ)
@require_safe
def workers(request: HttpRequest) -> HttpResponse:
    part = request.GET.get("part")
    if part is None:
        return render(request, "frontend/workers.html", _live())
    if part not in PARTS:
        raise Http404
    response = render(request, PARTS[part], _live())
    response["Cache-Control"] = "no-store"
    return response


def _live() -> dict[str, object]:
    rows = selectors.worker_rows()
    pools = selectors.pool_rows(rows)
    return {
        "finding": findings.of_team(pools),
        "pools": pools,
        "deserted": tuple((pool, findings.of_desertion(pool)) for pool in pools if pool.is_deserted),
        "stopped": tuple(worker for worker in rows if worker.state == "stopped"),
        "workers": rows,
        "n_living": sum(len(pool.workers) for pool in pools),
        "has_doorbell": bool(settings.REDIS_URL),
        "doorbell_problem": selectors.doorbell_problem(),
        "look_seconds": settings.LOOK_SECONDS,
    }
