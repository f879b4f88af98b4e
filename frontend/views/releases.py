"""Releases: the list at a glance, the form that asks for one, and the page on which a person decides."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.core.digest import digest_json
from evalboard.core.errors import EvalboardError, NotFound
from frontend import compare_charts, release_forms, release_page, release_ruler, release_steps, release_words
from frontend.release_forms import CURRENT, MOST_GATES, GateForm, ReleaseForm, SignForm, blame_gates
from frontend.verdicts import OUTCOMES, VERDICTS
from runs import exports, selectors, services
from runs.access import READ, RUN, SIGN, requires, scopes_of
from runs.selectors import catalogue
from runs.selectors.comparison import ComparisonReport
from runs.selectors.release import GateReport, ReleaseReport, SettlePlan
from runs.selectors.release_list import ReleaseFilter
from runs.selectors.run import RunReport, RunRow

RELEASES_PER_PAGE = 50
RUNS_OFFERED = 200
ENDED = ("finished", "incomplete")
STAGE_PART = "stage"
MOST_DIGITS = 17


@requires(READ)
@require_safe
def releases(request: HttpRequest) -> HttpResponse:
    asked = {name: request.GET.get(name, "").strip() for name in ("suite", "verdict", "outcome")}
    choices = {
        "suite": tuple(row.slug for row in selectors.suite_rows()),
        "verdict": tuple(VERDICTS),
        "outcome": tuple(OUTCOMES),
    }
    unknown = tuple((name, asked[name]) for name, known in choices.items() if asked[name] not in ("", *known))
    asked |= {name: "" for name, _ in unknown}
    after = _number(request.GET.get("after", ""))
    rows = selectors.release_rows(ReleaseFilter(**asked), after=after, limit=RELEASES_PER_PAGE + 1)
    shown = rows[:RELEASES_PER_PAGE]
    scale = release_ruler.rows_scale((row.difference, row.interval, row.tolerance_points) for row in shown)
    kept = {name: value for name, value in asked.items() if value}
    page = {
        "lines": tuple(
            (row, release_ruler.row_ruler(row.difference, row.interval, row.tolerance_points, scale)) for row in shown
        ),
        "asked": asked,
        "choices": choices,
        "unknown": unknown,
        "is_filtered": bool(kept),
        "is_continued": after is not None,
        "newest_url": f"?{urlencode(kept)}",
        "older_url": f"?{urlencode(kept | {'after': shown[-1].id})}" if len(rows) > RELEASES_PER_PAGE else "",
    }
    return render(request, "frontend/releases.html", page)


@requires(READ)
@require_safe
def release(request: HttpRequest, release_id: int) -> HttpResponse:
    services.decide_release(release_id=release_id)
    return shown(request, selectors.release_report(release_id))


def shown(
    request: HttpRequest,
    report: ReleaseReport,
    *,
    sign_form: SignForm | None = None,
    stale: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page of a report, with the sign-off form as it was filled in where that was refused."""
    report, refusal = with_plan(report)
    gate = report.gates[report.headline_gate]
    comparison, problem = compared(gate)
    stage = _stage(report, comparison)
    if request.GET.get("part") == STAGE_PART:
        answer = HttpResponse(status=204)
        if request.GET.get("stage") != stage:
            answer.headers["HX-Refresh"] = "true"  # all of the page is new
        answer.headers["Cache-Control"] = "no-store"
        return answer
    runs = runs_of(report)
    stacks = release_page.stacks_of(gate, runs)
    scopes = scopes_of(request.user)
    steps = release_steps.steps(report, scopes, newer_baseline=newer_baseline(gate))
    if sign_form is None and SIGN in scopes:
        sign_form = release_forms.sign_form(report)
    page = release_page.context(
        report,
        runs=runs,
        comparison=comparison,
        between=selectors.fingerprint_difference(*stacks) if stacks else None,
    )
    page |= {
        "steps": steps,
        "refusal": refusal,
        "sign_form": sign_form,
        "stale": stale,
        "comparison": comparison,
        "comparison_problem": problem,
        "waterfall": compare_charts.waterfall(comparison) if comparison else None,
        "policy_words": release_words.of_settings(report.policy_settings),
        "link": request.build_absolute_uri(request.path.removesuffix("signoffs/")),
        "is_lean": gate.look is None,
        "is_moving": bool(report.settling) or _is_at_work(report, comparison),
        "stage": stage,
    }
    return render(request, "frontend/release.html", page, status=status)


def with_plan(report: ReleaseReport) -> tuple[ReleaseReport, str]:
    """The report with what settling it would cost, where repeats would help; and why it cannot be done, else ""."""
    plan = services.settle_plan(release_id=report.row.id)
    if plan is None or plan["refused"]:
        return report, plan["refused"] if plan else ""
    runs = tuple((each["run"], each["n_more"]) for each in plan["runs"])
    settle = SettlePlan(look=plan["look"], n_responses=plan["n_responses"], runs=runs, minutes=plan["minutes"])
    return replace(report, settle=settle), ""


def newer_baseline(gate: GateReport) -> int | None:
    """A run that was made the suite's baseline after the one of this gate, and holds; None where there is none."""
    profile = gate.candidate.profile.partition(" ")[0]
    found = [
        row.run.id
        for row in selectors.current_baselines(gate.suite)
        if row.profile == profile and not row.is_expired and row.run.id > gate.baseline.run_id
    ]
    return max((run for run in found if run != gate.candidate.run_id), default=None)


def compared(gate: GateReport) -> tuple[ComparisonReport | None, str]:
    """The comparison behind the ledger; None, and why, where the two runs have none."""
    try:
        found = services.compare(baseline=gate.baseline.run_id, candidate=gate.candidate.run_id, repeats=None)
    except EvalboardError as problem:
        return None, problem.detail
    return selectors.comparison_report(found.pk), ""


def runs_of(report: ReleaseReport) -> dict[int, RunReport]:
    """All runs that its gates name, each read once."""
    named = {side.run_id for gate in report.gates for side in (gate.baseline, gate.candidate)}
    return {run_id: selectors.run_report(run_id) for run_id in sorted(named)}


def _is_at_work(report: ReleaseReport, comparison: ComparisonReport | None) -> bool:
    sides = (side for gate in report.gates for side in (gate.baseline, gate.candidate))
    is_queued = comparison is not None and comparison.progress.status == "queued"
    return is_queued or any(side.status in ("queued", "running") for side in sides)


def _stage(report: ReleaseReport, comparison: ComparisonReport | None) -> str:
    """What the page depends on; a page that is open asks whether it is still so."""
    statuses = [side.status for gate in report.gates for side in (gate.baseline, gate.candidate)]
    progress = comparison.progress.status if comparison else ""
    return digest_json([report.input_digest, report.settling, report.row.outcome, progress, *statuses])[:16]


@requires(READ)
@require_safe
def sign_offs_export(request: HttpRequest) -> StreamingHttpResponse:
    """Everybody's sign-offs with the chain of their digests, a JSON object a line."""
    answer = StreamingHttpResponse(exports.sign_off_lines(), content_type="application/x-ndjson")
    answer.headers["Content-Disposition"] = 'attachment; filename="signoffs.jsonl"'
    return answer


@requires(RUN)
@require_http_methods(["GET", "HEAD", "POST"])
def new_release(request: HttpRequest) -> HttpResponse:
    asked = request.POST if request.method == "POST" else request.GET
    runs, unknown = _offered(_numbers(asked, "candidate"), _numbers(asked, "baseline"))
    for run_id in unknown if request.method != "POST" else ():
        messages.warning(request, f"There is no run {run_id}.")
    policies = catalogue.policy_rows()
    if request.method != "POST":
        rows = _prefilled(request, runs)
        initial = {name: request.GET[name] for name in ("policy", "treatment") if name in request.GET}
        initial["labels"] = _labels(runs, _numbers(asked, "candidate"))
        form = ReleaseForm(initial=initial, policies=policies)
        return _form_page(request, form, rows, runs)
    n_rows = min(max(_number(asked.get("n_gates", "")) or 1, 1), MOST_GATES)
    form = ReleaseForm(asked, policies=policies)
    rows = [GateForm(asked, prefix=f"gate-{place}", runs=runs, is_optional=place > 0) for place in range(n_rows)]
    if "add" in asked:
        rows = [_unjudged(row, runs, place) for place, row in enumerate(rows)]
        rows.append(GateForm(prefix=f"gate-{n_rows}", runs=runs, is_optional=True))
        return _form_page(request, ReleaseForm(initial=asked.dict(), policies=policies), rows[:MOST_GATES], runs)
    if all([form.is_valid(), *(row.is_valid() for row in rows)]):
        suites = {row.id: row.suite for row in runs}
        chosen = [(row, gate) for row in rows if (gate := row.gate(suites)) is not None]
        try:
            made = services.create_release(
                gates=[gate for _, gate in chosen],
                policy=form.cleaned_data["policy"] or None,
                treatment=form.cleaned_data["treatment"],
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
        "may_add": len(rows) < MOST_GATES,
        "has_errors": has_errors,
    }
    return render(request, "frontend/release_new.html", page, status=status)


def _prefilled(request: HttpRequest, runs: tuple[RunRow, ...]) -> list[GateForm]:
    """A row for each `?candidate=`, with its `?baseline=` in the same order; one empty row where there is none."""
    known = {row.id for row in runs}
    candidates = [run for run in _numbers(request.GET, "candidate") if run in known]
    baselines = [run if run in known else CURRENT for run in _numbers(request.GET, "baseline")]
    rows = []
    for place, run in enumerate(candidates[:MOST_GATES] or [None]):
        baseline = baselines[place] if place < len(baselines) else CURRENT
        initial = {"candidate": "" if run is None else str(run), "baseline": str(baseline), "tier": "critical"}
        rows.append(GateForm(initial=initial, prefix=f"gate-{place}", runs=runs, is_optional=place > 0))
    return rows


def _unjudged(row: GateForm, runs: tuple[RunRow, ...], place: int) -> GateForm:
    """What was typed so far, without a word about it yet."""
    initial = {name: row[name].value() for name in row.fields}
    return GateForm(initial=initial, prefix=f"gate-{place}", runs=runs, is_optional=place > 0)


def _offered(*named: list[int]) -> tuple[tuple[RunRow, ...], list[int]]:
    """The newest runs that ended, and those that the address names; and which of these are none."""
    newest = [row for row in selectors.run_rows(limit=RUNS_OFFERED) if row.status in ENDED]
    known = {row.id for row in newest}
    unknown = []
    for run_id in dict.fromkeys(run for runs in named for run in runs if run not in known):
        try:
            newest.append(selectors.run_report(run_id).row)
        except NotFound:
            unknown.append(run_id)
    return tuple(newest), unknown


def _labels(runs: tuple[RunRow, ...], candidates: list[int]) -> str:
    """The first candidate's own labels, which say what is being released."""
    row = next((row for row in runs if candidates and row.id == candidates[0]), None)
    return "\n".join(f"{name}={value}" for name, value in row.labels.items()) if row else ""


def _numbers(asked: Any, name: str) -> list[int]:
    """The numbers of an address or a form under a name; nonsense reads as not there."""
    values = asked.getlist(name) or [value for key, value in asked.items() if key.endswith(f"-{name}")]
    return [number for value in values if (number := _number(value)) is not None]


def _number(text: str) -> int | None:
    """An id of the address; nonsense reads as none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None
