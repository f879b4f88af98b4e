"""Choose two runs to compare: ticked in a list, or chosen here."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from frontend.compare import comparing, last_viewed
from frontend.shell.lists import parse_number
from runs.access import READ, requires
from runs.baselines import current_baselines
from runs.run import oldest_first, place_of, run_rows
from runs.suites import suite_rows, suite_to_compare

RUNS_OFFERED = 200


@requires(READ)
@require_safe
def choose(request: HttpRequest) -> HttpResponse:
    """Redirect to the comparison of two runs: ticked ones with the older as baseline, or as chosen.

    Without a choice, the last viewed comparison opens again.
    """
    if not request.GET and (last := last_viewed.last(request)) is not None:
        return redirect("compare", *last)
    ticked = request.GET.getlist("run")
    runs = oldest_first({run for text in ticked if (run := parse_number(text)) is not None})
    if len(runs) == 2:
        return redirect("compare", baseline=runs[0], candidate=runs[1])
    sides = [parse_number(request.GET.get(name, "")) for name in ("baseline", "candidate")]
    if None not in sides and sides[0] != sides[1]:
        return redirect("compare", baseline=sides[0], candidate=sides[1])
    if ticked:
        messages.warning(request, f"Tick two runs to compare them; {len(runs)} ticked.")
    elif None not in sides:
        messages.warning(request, "Choose two different runs; a run against itself shows how its repeats differ.")
    return render(request, "compare/choice.html", _page(request.GET.get("suite", "")))


def _page(wanted: str) -> dict[str, object]:
    """Return a suite's runs: the wanted suite, else the newest with two runs to compare, else the newest."""
    suites = tuple(row for row in suite_rows() if row.newest_run is not None)
    newest = max(suites, key=lambda row: place_of(row.newest_run) if row.newest_run else 0, default=None)
    known = {row.slug for row in suites}
    slug = wanted if wanted in known else suite_to_compare() or (newest.slug if newest else "")
    rows = comparing.with_answers(run_rows(suite=slug, limit=RUNS_OFFERED)) if slug else ()
    baselines = tuple(row for row in current_baselines(slug) if not row.is_expired) if slug else ()
    return {
        "suites": suites,
        "slug": slug,
        "unknown": wanted if wanted not in ("", *known) else "",
        "rows": rows,
        "chosen": comparing.first_choice(rows, baselines),
        "baseline_ids": {row.run.id for row in baselines},
    }
