"""All responses of a run that another computation gave."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from frontend.shell.lists import parse_offset, window_page
from runs.access import READ, requires
from runs.run import stray_page

STRAYS_PER_PAGE = 100


@requires(READ)
@require_safe
def strays(request: HttpRequest, run_id: int) -> HttpResponse:
    offset = parse_offset(request)
    page = stray_page(run_id, offset=offset, limit=STRAYS_PER_PAGE)
    listed = window_page(
        page.rows,
        offset=offset,
        limit=STRAYS_PER_PAGE,
        has_more=offset + STRAYS_PER_PAGE < page.n_strays,
        total=page.n_strays,
    )
    rows = [(answer, page.fingerprints[answer.bucket]) for answer in page.rows]
    context = {
        "run_id": run_id,
        "warnings": page.warnings,
        "page": listed,
        "rows": rows,
        "has_buckets": len(page.fingerprints) > 1,
    }
    return render(request, "runs/strays.html", context)
