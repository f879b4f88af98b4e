"""The list of endpoints, and each one's page: who answers, what it honours, and what depends on it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.contract.catalogue import Endpoint
from evalboard.contract.probe import Probe, ProbeHop, ProbeRow
from evalboard.contract.schedule import Schedule, ScheduleStart
from evalboard.core.trace import ERROR_CODES
from evalboard.wording.clock import describe_clock
from evalboard.wording.numbers import listed
from evalboard.wording.run import describe_price
from frontend.endpoints import words
from frontend.endpoints.shares import draw_hours, draw_shares
from frontend.endpoints.timeline import lanes
from frontend.endpoints.words import (
    API_WORDS,
    ENGINE_TITLES,
    ENGINE_WORDS,
    describe_endpoint,
    render_check_rows,
)
from frontend.probes.words import mark, mark_of
from frontend.shell.forms import once, reporting
from frontend.shell.lists import MAX_OFFSET, ListView, read_view
from runs import acts
from runs.access import READ, RUN, requires
from runs.baselines import baselines_on
from runs.catalogue import read
from runs.fingerprints import EndpointTimeline, daily_shares, endpoint_report, newest_check, timelines
from runs.health import doorbell_problem
from runs.models import EndpointRecord, ProbeRecord
from runs.probes import create_probe, hops_of, newest_probes
from runs.probes import read as probe_selector
from runs.schedules import describe_times, schedule_rows
from runs.suites import run_reference_sets_on
from runs.work import WORKER_ORDERS, pool_rows, worker_rows

ENDPOINTS_PER_PAGE = 100
FINGERPRINTS_SHOWN, TURNS_SHOWN, BASELINES_SHOWN, PROBES_SHOWN = 6, 5, 10, 8
CHECK = ProbeRecord.Kind.CAPABILITY
REFERENCE = "reference"  # what a POST starts; anything else is a check


@dataclass(frozen=True, slots=True)
class EndpointScheduleLine:
    """A schedule of the endpoint: what it starts, when, and its last result."""

    row: Schedule
    times: str
    last: ScheduleStart | None
    word: str
    glyph: str


@requires(READ)
@require_safe
def endpoints(request: HttpRequest) -> HttpResponse:
    view = read_view(request.GET, orders=read.ENDPOINT_ORDERS, default="slug", size=ENDPOINTS_PER_PAGE)
    shown = view.slice(read.endpoint_rows())
    return render(request, "endpoints/endpoints.html", {"endpoint_kinds": _by_kind(shown.rows), "list": shown})


def _by_kind(rows: Sequence[Endpoint]) -> tuple[tuple[str, str, tuple[Endpoint, ...]], ...]:
    """Return (engine, words, its endpoints) of each kind that there is."""
    kinds = ((engine, tuple(row for row in rows if row.engine == engine)) for engine in ENGINE_TITLES)
    return tuple((engine, ENGINE_TITLES[engine], endpoints) for engine, endpoints in kinds if endpoints)


@requires(READ, post=RUN)
@require_http_methods(["GET", "HEAD", "POST"])
@once
def endpoint(request: HttpRequest, endpoint: str) -> HttpResponse:
    """Show an endpoint. POST starts a capability check, or its baselines' reference sets."""
    if request.method == "POST":
        with reporting(request):
            if request.POST.get("what") == REFERENCE:
                return _run_reference_sets(request, endpoint)
            probe = create_probe(endpoint=endpoint, kind=CHECK, profile=None, parameters={}, user=request.user)
            messages.success(request, f"Check {probe.pk} is queued; this page follows it.")
            return redirect("probe", probe_id=probe.pk)
        return redirect("endpoint", endpoint)
    probes = newest_probes(endpoint=endpoint)
    hops = hops_of([int(row.id) for row in probes])
    baselines = baselines_on(endpoint, limit=BASELINES_SHOWN)
    lines = timelines(endpoint=endpoint, turns=TURNS_SHOWN)
    report = endpoint_report(endpoint, probes=probes)
    line = lines[0] if lines else None
    shown = line.fingerprints[:FINGERPRINTS_SHOWN] if line else ()
    check = _detail(report.check)
    direct = newest_check(report.bypass) if report.bypass else None
    scheduled = schedule_rows(endpoint=endpoint)
    first_seen = {each.fingerprint.id: each.first_at for each in line.fingerprints} if line else {}
    profile = report.fitting_profile or "pinned"
    page = {
        "endpoint": report,
        "engine_words": ENGINE_WORDS[report.engine],
        "api_words": API_WORDS.get(report.api or "", ""),
        "acts": (offers := acts.offers_on(EndpointRecord, endpoint, request.user, by="slug")),
        "check_command": f"evalboard endpoint check {endpoint} --wait",
        "run_command": f"evalboard run <suite> --endpoint {endpoint} --profile {profile} --wait",
        "price": describe_price(report.price.to_json()) if report.price else "",
        "errors": tuple((seen, ERROR_CODES.get(seen.code, "")) for seen in report.last.errors),
        "n_missing": sum(seen.n for seen in report.last.errors),
        "clock": describe_clock(report.last.clock_ahead) if report.last.clock_ahead else "",
        "headers": tuple((report.headers or {}).items()),
        "extra_body": json.dumps(report.extra_body, ensure_ascii=False) if report.extra_body else "",
        "is_remote": report.base_url is not None,
        "finding": describe_endpoint(
            report,
            check=check,
            hops=tuple(hops.values()),
            was_probed=bool(probes),
            is_named=line is not None,
            n_expired=sum(row.is_current and row.is_expired for row in baselines),
        ),
        "check_rows": render_check_rows(check, _detail(direct)) if report.check else (),
        "check_hop": _sentence(hops, report.check),
        "has_direct": direct is not None,
        "lanes": lanes(EndpointTimeline(endpoint, shown, line.turns)) if line and shown else None,
        "turns": line.turns if line else (),
        "hours": draw_hours(report.hours),
        "shares": draw_shares(daily_shares(endpoint, first_seen=first_seen), line.turns if line else ()),
        "n_more": len(line.fingerprints) - len(shown) if line else 0,
        "probes": tuple((row, mark(row), _sentence(hops, row)) for row in probes if row.kind != CHECK)[:PROBES_SHOWN],
        "schedules": tuple(map(_schedule_line, scheduled)),
        "next_check_at": min(
            (row.next_at for row in scheduled if row.probe and row.probe.kind == CHECK and row.next_at), default=None
        ),
        "baselines": baselines,
        "again": acts.find_open("again", [row.run_id for row in baselines if row.is_expired], request.user),
        "may_run_reference": offers["run"] and any(row.is_current for row in baselines),
    }
    return render(request, "endpoints/endpoint.html", page)


def _run_reference_sets(request: HttpRequest, endpoint: str) -> HttpResponse:
    """Start them and lead to the run, or to the endpoint's runs where there are several."""
    runs = run_reference_sets_on(endpoint=endpoint, user=request.user)
    verb = "is" if len(runs) == 1 else "are"
    messages.success(request, f"The reference set {verb} queued: {listed([f'run {run.pk}' for run in runs])}.")
    if len(runs) == 1:
        return redirect("run", run_id=runs[0].pk)
    return redirect(f"{reverse('runs')}?{urlencode({'endpoint': endpoint})}")


def _sentence(hops: Mapping[str, ProbeHop], row: ProbeRow | None) -> str:
    """Return what the gateway drops, by one of the pair's probes; "" without a pair."""
    hop = hops.get(row.id) if row else None
    return (hop.sentence or "") if hop else ""


def _schedule_line(row: Schedule) -> EndpointScheduleLine:
    """Return a schedule's line, with a word and glyph for its last start, if any."""
    last = row.starts[0] if row.starts else None
    times = describe_times(row.cron)
    return EndpointScheduleLine(row, times[:1].lower() + times[1:], last, *_outcome(row, last))


def _outcome(row: Schedule, last: ScheduleStart | None) -> tuple[str, str]:
    if last is None:
        return "nothing yet", "idle"
    if last.problem:
        return "refused", "failed"
    if last.status is None:
        return "deleted since", "idle"
    if row.probe is not None and last.state is not None:
        shown = mark_of(row.probe.kind, last.state)
        return shown.word.lower(), shown.glyph
    return last.status, last.status


def _detail(row: ProbeRow | None) -> Probe | None:
    """Return a check with its numbers, where it has any."""
    return probe_selector.probe_detail(int(row.id)) if row and row.finding else None


PARTS = {"pools": "endpoints/_pools.html"}


@requires(READ)
@require_safe
def workers(request: HttpRequest) -> HttpResponse:
    part = request.GET.get("part")
    # A pool has all its workers on one page, in the order of the address.
    view = replace(read_view(request.GET, orders=WORKER_ORDERS, default="state", size=MAX_OFFSET), offset=0)
    if part is None:
        return render(request, "endpoints/workers.html", _live(view) | {"part_url": view.url(part="pools")})
    if part not in PARTS:
        raise Http404
    response = render(request, PARTS[part], _live(view))
    response["Cache-Control"] = "no-store"
    return response


def _live(view: ListView) -> dict[str, object]:
    rows = worker_rows()
    pools = tuple(replace(pool, workers=view.slice(pool.workers).rows) for pool in pool_rows(rows))
    return {
        "list": view.slice(()),
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
