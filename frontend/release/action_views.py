"""What people do to a release. Each is one service call; its refusal becomes words on the page."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evalboard.contract.release import ALL_CASES, Gate, Release, SettlePlan
from evalboard.core.compare import LOADED_BATCHES
from evalboard.core.errors import Conflict, EvalboardError, NotFound
from evalboard.wording.release_verdict import in_ten
from frontend.release import forms, steps, words
from frontend.release.forms import RerunForm, SettleForm, SignForm
from frontend.release.verdicts import DECISIONS
from frontend.release.views import named_runs, shown, with_plan
from frontend.shell.forms import blame, blaming, once, posted_from, reporting, show_queued
from frontend.shell.lists import parse_number
from frontend.templatetags.numbers import roughly
from runs import acts
from runs.access import RUN, SIGN, credential, requires
from runs.catalogue.read import decoding_profiles
from runs.models import EndpointRecord
from runs.release import (
    SETTLE_ACTS,
    decide_release,
    refuse_settling,
    release_report,
    rerun_sides,
    settle_release,
    sign_release,
)
from runs.run import event_lines, run_report
from runs.suites import suite_report, suite_standing

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
@once
def rerun(request: HttpRequest, release_id: int) -> HttpResponse:
    """Run sides of a gate again: the whole suite, or its reference set; two sides in turn."""
    report = release_report(release_id)
    gate, names = _named_sides(request, report)
    sides = {name: side for name, side, _ in gate.sides}
    if not (offer := acts.can_on_runs("again", [sides[name].run_id for name in names], request.user)):
        messages.warning(request, offer.reason)
        return redirect("release", release_id=release_id)
    profile = request.GET.get("profile", "")
    if profile and profile not in decoding_profiles():
        raise NotFound(f"There is no profile {profile}.")
    is_shuffled = "shuffled" in request.GET
    form = RerunForm(request.POST or None, **_rerun_choices(request, gate, names))
    if request.method == "POST" and form.is_valid():
        with blaming(form):
            chosen = form.cleaned_data
            again = dict.fromkeys(SIDES) if chosen["sides"] == BOTH else dict.fromkeys(names)
            if len(names) == 1:
                again[names[0]] = chosen["endpoint"]
            order: dict[str, Any] = {
                "release_id": release_id,
                "gate": gate.position,
                "sides": again,
                "profile": profile,
            }
            order |= {"is_reference": chosen["what"] == REFERENCE, "is_shuffled": is_shuffled}
            return show_queued(request, rerun_sides(**order, user=request.user), "this page follows it")
    form.mark_problems()
    page = {"release": report, "gate": gate, "sides": [(name, sides[name]) for name in names], "form": form}
    page |= {"whom": "both sides" if len(names) > 1 else f"the {names[0]}", "profile": profile}
    page["is_shuffled"] = is_shuffled
    return render(request, "release/rerun.html", page, status=422 if form.errors else 200)


def _named_sides(request: HttpRequest, report: Release) -> tuple[Gate, list[str]]:
    """Return the gate and the sides that the address names; the headline's baseline where it names none."""
    place = parse_number(request.GET.get("gate", str(report.headline_gate)))
    if place is None or place >= len(report.gates):
        raise NotFound(f"Release {report.id} has no such gate.")
    return report.gates[place], [name for name in SIDES if name in request.GET.getlist("side")] or ["baseline"]


def _rerun_choices(request: HttpRequest, gate: Gate, names: list[str]) -> dict[str, Any]:
    """Return the choices of the form, and what is chosen at first: what the address names."""
    own = gate.baseline if names[0] == "baseline" else gate.candidate
    run = run_report(own.run_id)
    whats = [(WHOLE, words.SAID.write("rerun_suite", n=run.suite.n_cases, n_repeats=run.n_repeats))]
    if n_reference := suite_standing(suite_report(gate.suite)).n_reference:
        whats.append((REFERENCE, words.SAID.write("rerun_reference", n=n_reference)))
    both = [(BOTH, words.SAID.write("rerun_both"))]
    # Where no load can move a bit, the other side need not be run again.
    may_both = run.batch_class in LOADED_BATCHES and bool(acts.can_on_runs("again", gate.run_ids, request.user))
    sides = (
        both
        if len(names) > 1
        else [(ALONE, words.SAID.write("rerun_alone", name=names[0])), *(both if may_both else [])]
    )
    slugs = dict.fromkeys((own.endpoint, gate.candidate.endpoint, gate.baseline.endpoint) if len(names) == 1 else ())
    records = {each.slug: each for each in EndpointRecord.objects.filter(slug__in=slugs)}
    endpoints = [slug for slug in slugs if acts.can("run", records[slug], request.user)]
    initial = {"sides": sides[0][0], "what": WHOLE, "endpoint": own.endpoint}
    return {"initial": initial, "sides": sides, "whats": whats, "endpoints": endpoints}
