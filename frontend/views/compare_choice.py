"""Which two runs to hold against each other: ticked in a list, or chosen here."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from frontend import comparing
from runs import selectors
from runs.access import READ, requires
from runs.selectors.run_list import place_of

MOST_DIGITS = 9
RUNS_OFFERED = 200


@requires(READ)
@require_safe
def choose(request: HttpRequest) -> HttpResponse:
    """Two ticked runs lead to their comparison, the older one as the baseline; two chosen ones as they were chosen."""
    asked = request.GET.getlist("run")
    runs = selectors.oldest_first({run for text in asked if (run := _number(text)) is not None})
    if len(runs) == 2:
        return redirect("compare", baseline=runs[0], candidate=runs[1])
    sides = [_number(request.GET.get(name, "")) for name in ("baseline", "candidate")]
    if None not in sides and sides[0] != sides[1]:
        return redirect("compare", baseline=sides[0], candidate=sides[1])
    if asked:
        messages.warning(request, f"Tick two runs to compare them; {len(runs)} ticked.")
    elif None not in sides:
        messages.warning(request, "Choose two different runs; a run against itself shows how its repeats differ.")
    return render(request, "frontend/compare_choice.html", _page(request.GET.get("suite", "")))


def _page(asked: str) -> dict[str, object]:
    """The runs of one suite: what is asked for, else the newest that has two to compare, else the one that ran last."""
    suites = tuple(row for row in selectors.suite_rows() if row.last_run is not None)
    newest = max(suites, key=lambda row: place_of(row.last_run) if row.last_run else 0, default=None)
    known = {row.slug for row in suites}
    slug = asked if asked in known else selectors.suite_to_compare() or (newest.slug if newest else "")
    rows = comparing.with_answers(selectors.run_rows(suite=slug, limit=RUNS_OFFERED)) if slug else ()
    baselines = tuple(row for row in selectors.current_baselines(slug) if not row.is_expired) if slug else ()
    return {
        "suites": suites,
        "slug": slug,
        "unknown": asked if asked not in ("", *known) else "",
        "rows": rows,
        "chosen": comparing.first_choice(rows, baselines),
        "held": {row.run.id for row in baselines},
    }


def _number(text: str) -> int | None:
    """An id of the address; nonsense reads as none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None
