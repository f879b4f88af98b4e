"""All responses of a run that another computation gave."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from frontend.shell.lists import read_view
from runs.access import READ, requires
from runs.run import stray_page
from runs.store import RowWindow

STRAYS_PER_PAGE = 100


@requires(READ)
@require_safe
def strays(request: HttpRequest, run_id: int) -> HttpResponse:
    view = read_view(request.GET, size=STRAYS_PER_PAGE, anchor="strays")
    page = stray_page(run_id, offset=view.offset, limit=view.size)
    listed = view.page(RowWindow(page.rows, page.n_strays))
    rows = [(answer, page.fingerprints[answer.bucket]) for answer in page.rows]
    context = {
        "run_id": run_id,
        "warnings": page.warnings,
        "page": listed,
        "rows": rows,
        "has_buckets": len(page.fingerprints) > 1,
    }
    return render(request, "runs/strays.html", context)
