"""Releases: the list at a glance, the form that asks for one, and the page on which a person decides."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.contract.compare import Comparison
from evalboard.contract.release import Gate, Release
from evalboard.contract.run import RunRow
from evalboard.contract.treatments import BY_ID, BY_INPUT
from evalboard.core.errors import EvalboardError
from frontend.compare import charts
from frontend.compare.pair_address import lists_of
from frontend.release import forms, words
from frontend.release import page as release_page
from frontend.release import steps as release_steps
from frontend.release.forms import CURRENT, MAX_GATES, GateForm, ReleaseForm, SignForm, blame_gates
from frontend.release.verdicts import OUTCOMES, VERDICTS
from frontend.shell.charts import changes
from frontend.shell.forms import once
from frontend.shell.lists import Filter, filter_by, parse_number, read_filters, read_view
from frontend.shell.live import answer_list
from frontend.shell.run_choices import offered_runs
from runs import acts, exports
from runs.access import READ, RUN, SIGN, requires, scopes_of
from runs.baselines import baseline_runs
from runs.catalogue import read
from runs.compare import compare, report_of
from runs.fingerprints import fingerprint_difference
from runs.models import ReleaseRecord, RunRecord
from runs.probes import hops_of, probes_before
from runs.release import (
    NO_PLANS,
    RELEASE_ORDERS,
    Decided,
    ReleaseFilter,
    SettlePlans,
    compare_gate,
    create_release,
    decide,
    refuse_settling,
    release_report,
    release_stage,
    settle_plans,
    shown_stage,
    sortable_releases,
)
from runs.run import bucket_reports, event_lines
from runs.suites import suite_slugs

RELEASES_PER_PAGE = 50
STAGE_PART = "stage"


@requires(READ)
@require_safe
def releases(request: HttpRequest) -> HttpResponse:
    filters = read_filters(
        request.GET,
        filter_by("suite", suite_slugs()),
        Filter("verdict", "Verdict", tuple((code, mark.label) for code, mark in VERDICTS.items())),
        Filter("outcome", "Sign-off", tuple((code, mark.label) for code, mark in OUTCOMES.items())),
    )
    view = read_view(request.GET, orders=RELEASE_ORDERS, default="-id", size=RELEASES_PER_PAGE, active=filters.active)
    shown = view.read(sortable_releases(ReleaseFilter(**filters.values)))
    scale = changes.rows_scale((row.difference, row.interval, row.tolerance_points) for row in shown.rows)
    page = {
        "lines": tuple(
            (row, changes.row_ruler(row.difference, row.interval, row.tolerance_points, scale)) for row in shown.rows
        ),
        "filters": filters,
        "list": shown,
    }
    is_moving = any(row.verdict is None for row in shown.rows)
    return answer_list(request, "release/list.html", "release/_rows.html", page, is_moving=is_moving)


@requires(READ)
@require_safe
def release(request: HttpRequest, release_id: int) -> HttpResponse:
    decided = decide(release_id=release_id)
    if request.GET.get("part") == STAGE_PART:
        return _is_still_so(request, decided)
    return shown(request, release_report(release_id, decided=decided), decided=decided)


def _is_still_so(request: HttpRequest, decided: Decided) -> HttpResponse:
    """Answer an open page that polls: unchanged, or reload."""
    stage = release_stage(decided)
    progress = ""
    with suppress(EvalboardError):  # two runs that have no comparison
        progress = compare_gate(decided, stage.headline_gate).status
    answer = HttpResponse(status=204)
    if request.GET.get("stage") != stage.digest(progress):
        answer.headers["HX-Refresh"] = "true"
    answer.headers["Cache-Control"] = "no-store"
    return answer


def shown(
    request: HttpRequest,
    report: Release,
    *,
    decided: Decided | None = None,
    sign_form: SignForm | None = None,
    stale: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Return the page of a report, with the sign-off form as it was filled in where that was refused."""
    report, plans = with_plan(report, decided)
    gate = report.headline
    comparison, problem = compared(gate, decided)
    runs = named_runs(report)
    buckets = bucket_reports(runs)
    stacks = release_page.stacks_of(gate, buckets)
    known = refuse_settling(plans)
    if decided is None:
        offers = acts.offers_of(ReleaseRecord.objects.get(pk=int(report.id)), request.user, known)
        sides = list(RunRecord.objects.filter(pk__in=runs))
    else:
        sides = [run for each in decided.gates for run in (each.baseline_run, each.candidate_run)]
        known["sign"] = acts.refuse_signing(decided.release, sides)
        offers = acts.offers_of(decided.release, request.user, known)
    loaded = cache(lambda: {run.pk: run for run in acts.with_surroundings(sides)})
    scopes = scopes_of(request.user) - (set() if offers["sign"] else {SIGN})
    newer = newer_baseline(gate) if report.verdict == "not_comparable" else None
    lines = release_steps.steps(
        report,
        scopes,
        newer_baseline=newer,
        sampling=read.sampling_profile() if any(line.code == "draw" for line in report.next) else "",
        can=lambda act, of: acts.can_on_all(act, [loaded()[run] for run in of], request.user),
    )
    steps, more_steps = release_steps.split_steps(lines)
    if sign_form is None and SIGN in scopes:
        sign_form = forms.sign_form(report)
    page = release_page.context(
        report,
        buckets=buckets,
        changes=event_lines(runs, words.CHANGES),
        comparison=comparison,
        between=fingerprint_difference(*stacks) if stacks else None,
    )
    page |= {
        "acts": offers,
        "steps": steps,
        "more_steps": more_steps,
        "refused_steps": tuple(step for step in lines if step.refused),
        "is_sign_first": any(step.is_primary and step.url == release_steps.TO_SIGN for step in lines),
        "sign_form": sign_form,
        "stale": stale,
        "comparison": comparison,
        "comparison_problem": problem,
        "waterfall": charts.waterfall(comparison, lists_of(comparison)) if comparison else None,
        "policy_words": words.describe_settings(report.policy),
        "probe_lines": _probe_lines(report),
        "link": request.build_absolute_uri(request.path.removesuffix("signoffs/")),
        "is_lean": gate.look is None,
        "is_moving": bool(report.settling) or _is_at_work(report, comparison),
        "stage": shown_stage(report).digest(comparison.progress.status if comparison else ""),
    }
    return render(request, "release/page.html", page, status=status)


def _probe_lines(report: Release) -> tuple[release_page.ProbeLine, ...]:
    """Return what was known of all sides' endpoints when the verdict was reached, or now if none was."""
    endpoints = {side.endpoint for gate in report.gates for side in (gate.baseline, gate.candidate)}
    probes = probes_before(endpoints, until=report.decided_at or timezone.now())
    return release_page.probe_lines(probes, hops_of([int(probe.id) for probe in probes]))


def with_plan(report: Release, decided: Decided | None = None) -> tuple[Release, SettlePlans]:
    """Return the report with the cost of deciding it, if repeats help, and the plans."""
    if report.verdict != "inconclusive":
        return report, NO_PLANS
    plans = settle_plans(release_id=int(report.id), gates=None if decided is None else decided.gates)
    return report.model_copy(update={"settle": plans.whole, "settle_targeted": plans.targeted}), plans


def newer_baseline(gate: Gate) -> int | None:
    """Return a valid baseline run set after this gate's, None without one."""
    runs = baseline_runs(gate.suite, gate.candidate.profile)
    later = (run for run in runs if run > gate.baseline.run_id and run != gate.candidate.run_id)
    return max(later, default=None)


def compared(gate: Gate, decided: Decided | None = None) -> tuple[Comparison | None, str]:
    """Return the comparison behind the ledger; None, and why, where the two runs have none."""
    try:
        if decided is None:
            baseline, candidate = gate.run_ids
            terms = gate.terms
            row = compare(baseline=baseline, candidate=candidate, treatment=terms.treatment, pair_by=terms.pair_by)
        else:
            row = compare_gate(decided, gate.position)
    except EvalboardError as problem:
        return None, problem.detail
    return report_of(row, is_timed=False), ""


def named_runs(report: Release) -> list[int]:
    """Return all runs that its gates name, each once."""
    return sorted({side.run_id for side in report.sides})


def _is_at_work(report: Release, comparison: Comparison | None) -> bool:
    is_queued = comparison is not None and comparison.progress.status == "queued"
    return is_queued or any(side.status in ("queued", "running") for side in report.sides)


@requires(READ)
@require_safe
def sign_offs_export(request: HttpRequest) -> StreamingHttpResponse:
    """Send everybody's sign-offs with the chain of their digests, a JSON object a line."""
    answer = StreamingHttpResponse(exports.sign_off_lines(), content_type="application/x-ndjson")
    answer.headers["Content-Disposition"] = 'attachment; filename="signoffs.jsonl"'
    return answer


@requires(RUN)
@require_http_methods(["GET", "HEAD", "POST"])
@once
def new_release(request: HttpRequest) -> HttpResponse:
    query = request.POST if request.method == "POST" else request.GET
    runs, unknown = offered_runs(_numbers(query, "candidate"), _numbers(query, "baseline"))
    for run_id in unknown if request.method != "POST" else ():
        messages.warning(request, f"There is no run {run_id}.")
    policies = read.policy_rows()
    if request.method != "POST":
        rows = _prefilled(request, runs)
        initial = {
            name: request.GET[name]
            for name in ("policy", "treatment", "pair_by_id", "nothing_caches")
            if name in request.GET
        }
        initial["labels"] = _labels(runs, _numbers(query, "candidate"))
        form = ReleaseForm(initial=initial, policies=policies)
        return _form_page(request, form, rows, runs)
    n_rows = min(max(parse_number(query.get("n_gates", "")) or 1, 1), MAX_GATES)
    form = ReleaseForm(query, policies=policies)
    rows = [GateForm(query, prefix=f"gate-{place}", runs=runs, is_optional=place > 0) for place in range(n_rows)]
    if "add" in query:
        rows = [_unjudged(row, runs, place) for place, row in enumerate(rows)]
        rows.append(GateForm(prefix=f"gate-{n_rows}", runs=runs, is_optional=True))
        return _form_page(request, ReleaseForm(initial=query.dict(), policies=policies), rows[:MAX_GATES], runs)
    if all([form.is_valid(), *(row.is_valid() for row in rows)]):
        suites = {int(row.id): row.suite.slug for row in runs}
        chosen = [(row, gate) for row in rows if (gate := row.gate(suites)) is not None]
        try:
            made = create_release(
                gates=[gate for _, gate in chosen],
                policy=form.cleaned_data["policy"] or None,
                treatment=form.cleaned_data["treatment"],
                pair_by=BY_ID if form.cleaned_data["pair_by_id"] else BY_INPUT,
                nothing_caches=form.cleaned_data["nothing_caches"],
                labels=form.cleaned_data["labels"],
                user=request.user,
            )
        except EvalboardError as problem:
            blame_gates(form, [row for row, _ in chosen], problem)
        else:
            return redirect("release", release_id=made.pk)
    return _form_page(request, form, rows, runs, status=422)


def _form_page(
    request: HttpRequest, form: ReleaseForm, rows: list[GateForm], runs: tuple[RunRow, ...], status: int = 200
) -> HttpResponse:
    for each in (form, *rows):
        if each.is_bound:
            each.mark_problems()
    has_errors = any(each.is_bound and each.errors for each in (form, *rows))
    page = {
        "form": form,
        "rows": rows,
        "runs": runs,
        "n_gates": len(rows),
        "may_add": len(rows) < MAX_GATES,
        "has_errors": has_errors,
    }
    return render(request, "release/new.html", page, status=status)


def _prefilled(request: HttpRequest, runs: tuple[RunRow, ...]) -> list[GateForm]:
    """Return a row for each `?candidate=`, with its `?baseline=` in the same order.

    One empty row where there is none.
    """
    known = {int(row.id) for row in runs}
    candidates = [run for run in _numbers(request.GET, "candidate") if run in known]
    baselines = [run if run in known else CURRENT for run in _numbers(request.GET, "baseline")]
    rows = []
    for place, run in enumerate(candidates[:MAX_GATES] or [None]):
        baseline = baselines[place] if place < len(baselines) else CURRENT
        initial = {"candidate": "" if run is None else str(run), "baseline": str(baseline), "tier": "critical"}
        rows.append(GateForm(initial=initial, prefix=f"gate-{place}", runs=runs, is_optional=place > 0))
    return rows


def _unjudged(row: GateForm, runs: tuple[RunRow, ...], place: int) -> GateForm:
    """Return the form's input so far, without validation errors."""
    initial = {name: row[name].value() for name in row.fields}
    return GateForm(initial=initial, prefix=f"gate-{place}", runs=runs, is_optional=place > 0)


def _labels(runs: tuple[RunRow, ...], candidates: list[int]) -> str:
    """Return the first candidate's labels, which name what is released."""
    row = next((row for row in runs if candidates and int(row.id) == candidates[0]), None)
    return "\n".join(f"{name}={value}" for name, value in row.labels.items()) if row else ""


def _numbers(query: Any, name: str) -> list[int]:
    """Return the numbers of an address or a form under a name; nonsense reads as not there."""
    values = query.getlist(name) or [value for key, value in query.items() if key.endswith(f"-{name}")]
    return [number for value in values if (number := parse_number(value)) is not None]
