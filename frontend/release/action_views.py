"""What people do to a release. Each is one service call; its refusal becomes words on the page."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evalboard.contract.release import ALL_CASES, Gate, GateSide, Release, SettlePlan
from evalboard.core.compare import LOADED_BATCHES
from evalboard.core.errors import Conflict, EvalboardError, NotFound
from evalboard.wording.release_verdict import in_ten
from frontend.release import forms, steps, words
from frontend.release.forms import RerunForm, SettleForm, SignForm
from frontend.release.verdicts import DECISIONS
from frontend.release.views import named_runs, shown, with_plan
from frontend.shell.forms import blame, blaming, posted_from, reporting
from frontend.templatetags.numbers import roughly
from runs import acts
from runs.access import RUN, SIGN, credential, requires
from runs.catalogue import read
from runs.models import EndpointRecord, Priority
from runs.release import (
    SETTLE_ACTS,
    decide_release,
    refuse_settling,
    release_report,
    settle_release,
    sign_release,
)
from runs.run import create_pair, create_run, event_lines, run_report
from runs.suites import reference_suite, suite_report, suite_standing

WHOLE, REFERENCE = "suite", "reference"
BOTH, ALONE = "both", "alone"
SIDES = ("baseline", "candidate")


@requires(SIGN)
@posted_from("release", "release_id", at="sign")
def sign(request: HttpRequest, release_id: int) -> HttpResponse:
    decide_release(release_id=release_id)
    report = release_report(release_id)
    form = SignForm(request.POST, verdict=report.verdict)
    if not form.is_valid():
        form.mark_problems()
        return shown(request, report, sign_form=form, status=422)
    fields = form.cleaned_data
    try:
        _, was_there = sign_release(
            release_id=release_id,
            decision=fields["decision"],
            note=fields["note"],
            input_digest=fields["input_digest"],
            expires_at=form.until(),
            after=request.POST.get("after"),
            user=request.user,
            made_with=credential(request),
        )
    except NotFound:
        raise
    except Conflict as problem:
        report = release_report(release_id)
        if fields["input_digest"] == report.input_digest:
            form.add_error(None, problem.detail)
            form.data = {**request.POST.dict(), "after": forms.newest_sign_off(report)}
            return shown(request, report, sign_form=form, status=409)
        return _stale(request, report, fields, problem)
    except EvalboardError as problem:
        blame(form, problem)
        form.mark_problems()
        return shown(request, report, sign_form=form, status=422)
    happened = DECISIONS[fields["decision"]].happened
    if was_there:
        messages.info(request, f"{happened} already, by you. Nothing was added.")
    else:
        messages.success(request, f"{happened}. It holds while nothing it rests on changes.")
    answer = redirect("release", release_id=release_id)
    answer["Location"] += "#sign-offs"
    return answer


def _stale(request: HttpRequest, report: Release, fields: dict[str, Any], problem: Conflict) -> HttpResponse:
    """Return the page as it is now, with what changed since it was read, and the form's input."""
    form = forms.sign_form(report, note=fields["note"], expires_at=fields.get("expires_at"))
    events = event_lines(named_runs(report), words.CHANGES)
    changes = words.inputs_changed(report, events, forms.read_at(fields["read_at"]))
    stale = {"problem": problem.detail, "changes": changes}
    return shown(request, report, sign_form=form, stale=stale, status=409)


@requires(RUN)
@require_http_methods(["GET", "HEAD", "POST"])
def settle(request: HttpRequest, release_id: int) -> HttpResponse:
    decide_release(release_id=release_id)
    report, plans = with_plan(release_report(release_id))
    if request.method == "POST":
        form = SettleForm(request.POST)
        if form.is_valid():
            return _settled(request, release_id, form)
    cases = request.GET.get("cases", ALL_CASES)
    plan, no = plans.of(cases), refuse_settling(plans)[SETTLE_ACTS.get(cases, "settle")]
    if plan is None or no is not None:
        messages.warning(request, report.settling or (no.reason if no else ""))
        return redirect("release", release_id=release_id)
    form = SettleForm(initial={"look": plan.look, "n_responses": plan.n_responses, "cases": plan.chosen})
    page = {"release": report, "plan": plan, "form": form, "lines": _plan_lines(report, plan)}
    page["chance"] = "" if plan.chance is None else in_ten(plan.chance)
    page["minutes"] = "" if plan.minutes is None else roughly(60 * plan.minutes)
    return render(request, "release/settle.html", page)


def _settled(request: HttpRequest, release_id: int, form: SettleForm) -> HttpResponse:
    with reporting(request):
        settle_release(release_id=release_id, **form.cleaned_data, user=request.user)
        messages.success(request, "The repeats are queued on both sides; the verdict follows by itself.")
        return redirect("release", release_id=release_id)
    return redirect(steps.settle_address(release_id, form.cleaned_data["cases"]))


def _plan_lines(report: Release, plan: SettlePlan) -> tuple[dict[str, Any], ...]:
    """Return each run of the plan once: its side and suite, its repeats now and later."""
    more = {each.run_id: (each.n_more, each.n_chosen) for each in plan.runs}
    lines: dict[int, dict[str, Any]] = {}
    for gate in report.gates:
        for name, side, _ in gate.sides:
            if more.get(side.run_id):
                n_more, n_cases = more[side.run_id]
                line = {"side": name, "of": side, "gate": gate, "n_more": n_more, "n_cases": n_cases}
                line["n_after"] = side.n_repeats + n_more
                lines.setdefault(side.run_id, line)
    return tuple(lines.values())


@requires(RUN)
@require_http_methods(["GET", "HEAD", "POST"])
def rerun(request: HttpRequest, release_id: int) -> HttpResponse:
    """Run one side of a gate again, or both interleaved: the whole suite, or its reference set."""
    report = release_report(release_id)
    gate, side = _named_side(request, report)
    if not (offer := acts.can_on_runs("again", [side.run_id], request.user)):
        messages.warning(request, offer.reason)
        return redirect("release", release_id=release_id)
    run = run_report(side.run_id)
    named = dict.fromkeys((side.endpoint, gate.candidate.endpoint, gate.baseline.endpoint))
    records = {each.slug: each for each in EndpointRecord.objects.filter(slug__in=named)}
    endpoints = tuple(slug for slug in named if acts.can("run", records[slug], request.user))
    whats = [(WHOLE, words.SAID.write("rerun_suite", n=run.suite.n_cases, n_repeats=run.n_repeats))]
    standing = suite_standing(suite_report(gate.suite))
    if standing.n_reference:
        whats.append((REFERENCE, words.SAID.write("rerun_reference", n=standing.n_reference)))
    name = "baseline" if side is gate.baseline else "candidate"
    # Where no load can move a bit, the other side need not be run again.
    is_loaded = run.batch_class in LOADED_BATCHES and bool(acts.can_on_runs("again", gate.run_ids, request.user))
    sides = [(BOTH, words.SAID.write("rerun_both"))] if is_loaded else []
    sides.append((ALONE, words.SAID.write("rerun_alone", name=name)))
    initial = {"sides": sides[0][0], "what": WHOLE, "endpoint": side.endpoint}
    form = RerunForm(request.POST or None, initial=initial, sides=sides, whats=whats, endpoints=endpoints)
    if request.method == "POST" and form.is_valid():
        with blaming(form):
            made = _run_again(gate, name, form.cleaned_data, user=request.user)
            queued = f"Run {made[-1].pk} is" if len(made) == 1 else f"Runs {made[0].pk} and {made[1].pk} are"
            messages.success(request, f"{queued} queued; this page follows run {made[-1].pk}.")
            return redirect("run", run_id=made[-1].pk)
    form.mark_problems()
    page = {
        "release": report,
        "gate": gate,
        "name": name,
        "side": side,
        "form": form,
        "has_two_endpoints": len(endpoints) > 1,
        "is_loaded": is_loaded,
    }
    return render(request, "release/rerun.html", page, status=422 if form.errors else 200)


def _named_side(request: HttpRequest, report: Release) -> tuple[Gate, GateSide]:
    """Return the side that the address names; the headline's baseline where it names none."""
    text = request.GET.get("gate", "")
    is_place = text.isascii() and text.isdigit() and len(text) < 4
    place = int(text) if is_place else report.headline_gate
    if place >= len(report.gates):
        raise NotFound(f"Release {report.id} has no gate {place}.")
    gate = report.gates[place]
    return gate, gate.candidate if request.GET.get("side") == "candidate" else gate.baseline


def _run_again(gate: Gate, name: str, chosen: dict[str, Any], *, user: Any) -> tuple[Any, ...]:
    """Ask for the named side again, or for both in turn; return the runs, the candidate's last."""
    bodies = {side: run_report(of.run_id).request_body for side, of, _ in gate.sides}
    own, other = bodies[name], bodies[SIDES[1 - SIDES.index(name)]]
    # Two sides of one seed draw alike; the run's own stands where the other has none.
    seed = other.get("seed", own.get("seed"))
    order = {**_order(own, gate, chosen["what"], endpoint=chosen["endpoint"]), "seed": seed}
    if chosen["sides"] != BOTH:
        return (create_run(**order, priority=Priority.RELEASE, user=user),)
    beside = {**_order(other, gate, chosen["what"], endpoint=other["endpoint"]), "seed": seed}
    orders = (order, beside) if name == SIDES[0] else (beside, order)
    return create_pair(baseline=orders[0], candidate=orders[1], user=user)


def _order(request_body: dict[str, Any], gate: Gate, what: str, *, endpoint: str) -> dict[str, Any]:
    """Return the order of an earlier run with the same model, for any endpoint."""
    model = request_body.get("model")
    if model is None and endpoint != request_body["endpoint"]:
        model = _own_model(request_body["endpoint"])
    return {
        "suite": reference_suite(slug=gate.suite).suite.slug if what == REFERENCE else gate.suite,
        "endpoint": endpoint,
        "profile": request_body["profile"],
        "repeats": request_body["repeats"],
        "model": model,
        "labels": request_body.get("labels") or {},
    }


def _own_model(endpoint: str) -> dict[str, str]:
    """Return an endpoint's own model, to be named where another endpoint serves it."""
    return next(row.model.to_json() for row in read.endpoint_rows() if row.slug == endpoint)
