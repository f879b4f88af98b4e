"""Probes: asked for and listed, and each by itself with the calls it rests on."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.core.errors import EvalboardError
from frontend import commands, probe_charts, probe_numbers, probe_words
from frontend.forms import blame
from frontend.paging import number_of, offset_of, page_of
from frontend.probe_forms import ProbeForm
from runs import services
from runs.access import READ, RUN, may, requires
from runs.models import Probe
from runs.selectors import catalogue
from runs.selectors import probe as selector
from runs.selectors.probe import ProbeDetail, ProbeRow
from runs.selectors.probe_batches import comparable_batches, held_against
from runs.selectors.probe_canaries import canaries
from runs.selectors.probe_tokens import probe_tokens

PROBES_PER_PAGE = 25
CALLS_PER_PAGE = 25
PARTS = {"progress": "frontend/_probe_live.html"}


@requires(READ, post=RUN)
@require_http_methods(["GET", "HEAD", "POST"])
def probes(request: HttpRequest) -> HttpResponse:
    choices = {"endpoints": catalogue.endpoint_rows(), "profiles": catalogue.profile_rows()}
    if request.method != "POST":
        asked = {name: request.GET[name] for name in ("endpoint", "kind") if request.GET.get(name)}
        return render(request, "frontend/probes.html", _list(request) | {"form": ProbeForm(initial=asked, **choices)})
    form = ProbeForm(request.POST, **choices)
    if form.is_valid():
        asked_for = form.cleaned_data
        try:
            probe = services.create_probe(
                endpoint=asked_for["endpoint"],
                kind=asked_for["kind"],
                profile=asked_for["profile"] or None,
                parameters=asked_for["parameters"],
                user=request.user,
            )
        except EvalboardError as problem:
            blame(form, problem)
        else:
            messages.success(request, f"Probe {probe.pk} is queued; this page follows it.")
            return redirect("probe", probe_id=probe.pk)
    form.mark_problems()
    return render(request, "frontend/probes.html", _list(request) | {"form": form}, status=422)


@requires(READ)
@require_safe
def probe(request: HttpRequest, probe_id: int) -> HttpResponse:
    found = selector.probe_detail(probe_id)
    part = request.GET.get("part")
    if part is None:
        return render(request, "frontend/probe.html", _live(found) | _rest(request, found))
    if part not in PARTS:
        raise Http404
    response = render(request, PARTS[part], _live(found) | {"is_part": True})
    if found.row.is_terminal:
        response["HX-Refresh"] = "true"  # the numbers and the calls below are there now
    response["Cache-Control"] = "no-store"
    return response


def _list(request: HttpRequest) -> dict[str, object]:
    slugs = tuple(row.slug for row in catalogue.endpoint_rows())
    known = {"endpoint": slugs, "kind": tuple(Probe.Kind.values)}
    # What a form that was sent back has in it is no filter.
    sent = request.GET if request.method != "POST" else {}
    asked = {name: sent.get(name, "").strip() for name in known}
    unknown = tuple((name, asked[name]) for name in known if asked[name] not in ("", *known[name]))
    asked |= {name: "" for name, _ in unknown}
    after = number_of(sent.get("before", ""))
    rows = selector.probe_rows(after=after, limit=PROBES_PER_PAGE + 1, endpoint=asked["endpoint"], kind=asked["kind"])
    kept = {name: value for name, value in asked.items() if value}
    shown = rows[:PROBES_PER_PAGE]
    return {
        "rows": tuple((row, probe_words.mark(row)) for row in shown),
        "asked": asked,
        "unknown": unknown,
        "known": known,
        "kinds": probe_words.costs(),
        "finding": probe_words.of_list(shown) if shown and after is None and not kept else None,
        "is_filtered": bool(kept),
        "is_continued": after is not None,
        "newest_url": f"?{urlencode(kept)}",
        "older_url": _older(kept, shown) if len(rows) > PROBES_PER_PAGE else "",
        "may_probe": may(request.user, RUN),
    }


def _older(kept: dict[str, str], shown: tuple[ProbeRow, ...]) -> str:
    return f"?{urlencode(kept | {'before': str(shown[-1].id)})}"


def _live(found: ProbeDetail) -> dict[str, object]:
    return {
        "probe": found,
        "row": found.row,
        "finding": probe_words.of_probe(found),
        "mark": probe_words.mark(found.row),
        "announced_percent": 10 * (10 * found.n_done // max(found.n_total, 1)),
    }


def _chart(found: ProbeDetail, numbers: dict[str, Any]) -> dict[str, object]:
    """What the kind has to draw, with the template that draws it; nothing where there is nothing to see."""
    row = found.row
    chart: object = None
    if row.kind == Probe.Kind.CANARY and numbers:
        chart = probe_charts.canaries(canaries(row.id))
    elif row.kind == Probe.Kind.SEED and "prompts" in numbers:
        chart = probe_charts.pairs(numbers, found.prompts)
    elif row.kind == Probe.Kind.BATCH and "first_divergences" in numbers:
        tokens = probe_tokens(row.id, probe_charts.token_ids(numbers))
        chart = probe_charts.places(numbers, found.prompts, tokens)
    return {"chart": chart, "chart_template": f"frontend/_probe_{row.kind}_chart.html"}


def _against(request: HttpRequest, probe_id: int) -> dict[str, object]:
    """The batch probes that this one can be held against, and what came of it where one was chosen."""
    others, chosen = comparable_batches(probe_id), number_of(request.GET.get("against", ""))
    if chosen not in {line.id for line in others} or chosen is None:
        return {"others": others}
    held = held_against(probe_id, chosen)
    return {"others": others, "chosen": chosen, "held": held, "held_words": probe_words.parted(held.finding.sentence)}


def _rest(request: HttpRequest, found: ProbeDetail) -> dict[str, object]:
    row, calls = found.row, selector.probe_calls(found.row.id)
    numbers = found.finding["numbers"] if found.finding else {}
    return {
        **_chart(found, numbers),
        **(_against(request, row.id) if row.kind == Probe.Kind.BATCH and numbers else {}),
        "question": probe_words.KINDS[row.kind].question,
        "numbers": probe_numbers.rows(row.kind, numbers),
        "tables": probe_numbers.tables(row.kind, numbers, found.prompts, calls) if numbers else (),
        "calls": page_of(calls, offset=offset_of(request), limit=CALLS_PER_PAGE),
        "n_errors": sum(bool(call.error) for call in calls),
        "has_seeds": any(call.seed is not None for call in calls),
        "command": commands.probe(row.endpoint, row.kind, row.profile_slug, found.parameters),
        "settings": {name: value for name, value in found.parameters.items() if name != "prompts"},
    }
