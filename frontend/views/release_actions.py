"""What people do to a release. Each is one service call; its refusal becomes words on the page."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from evalboard.core.errors import Conflict, EvalboardError, NotFound
from frontend import release_forms, release_words
from frontend.forms import blame
from frontend.release_forms import RerunForm, SettleForm, SignForm
from frontend.templatetags.numbers import roughly
from frontend.verdicts import DECISIONS
from frontend.views.releases import runs_of, shown, with_plan
from runs import selectors, services
from runs.access import RUN, SIGN, credential, requires
from runs.selectors import catalogue
from runs.selectors.imported import import_of
from runs.selectors.release import GateReport, ReleaseReport
from runs.selectors.suite_standing import suite_standing

WHOLE, REFERENCE = "suite", "reference"
SIDES = ("baseline", "candidate")


@requires(SIGN)
@require_POST
def sign(request: HttpRequest, release_id: int) -> HttpResponse:
    services.decide_release(release_id=release_id)
    report = selectors.release_report(release_id)
    form = SignForm(request.POST, verdict=report.row.verdict)
    if not form.is_valid():
        form.mark_problems()
        return shown(request, report, sign_form=form, status=422)
    asked = form.cleaned_data
    try:
        services.sign_release(
            release_id=release_id,
            decision=asked["decision"],
            note=asked["note"],
            input_digest=asked["input_digest"],
            expires_at=form.until(),
            user=request.user,
            made_with=credential(request),
        )
    except NotFound:
        raise
    except Conflict as problem:
        report = selectors.release_report(release_id)
        if asked["input_digest"] == report.input_digest:
            form.add_error(None, problem.detail)
            return shown(request, report, sign_form=form, status=409)
        return _stale(request, report, asked, problem)
    except EvalboardError as problem:
        blame(form, problem)
        form.mark_problems()
        return shown(request, report, sign_form=form, status=422)
    messages.success(request, f"{DECISIONS[asked['decision']].happened}. It holds while nothing it rests on changes.")
    answer = redirect("release", release_id=release_id)
    answer["Location"] += "#sign-offs"
    return answer


def _stale(request: HttpRequest, report: ReleaseReport, asked: dict[str, Any], problem: Conflict) -> HttpResponse:
    """The page as it is now, with what changed since it was read; what was written stays in the form."""
    form = release_forms.sign_form(report, note=asked["note"], expires_at=asked.get("expires_at"))
    changes = release_words.inputs_changed(report, runs_of(report), release_forms.read_at(asked["read_at"]))
    stale = {"problem": problem.detail, "changes": changes}
    return shown(request, report, sign_form=form, stale=stale, status=409)


@requires(RUN)
@require_http_methods(["GET", "HEAD", "POST"])
def settle(request: HttpRequest, release_id: int) -> HttpResponse:
    services.decide_release(release_id=release_id)
    report, refusal = with_plan(selectors.release_report(release_id))
    if request.method == "POST":
        form = SettleForm(request.POST)
        if form.is_valid():
            return _settled(request, release_id, form)
    plan = report.settle
    if plan is None:
        messages.warning(request, refusal or report.settling or "More repeats are not what would settle this release.")
        return redirect("release", release_id=release_id)
    form = SettleForm(initial={"look": plan.look, "n_responses": plan.n_responses})
    page = {"release": report, "row": report.row, "plan": plan, "form": form, "lines": _plan_lines(report)}
    page["minutes"] = "" if plan.minutes is None else roughly(60 * plan.minutes)
    return render(request, "frontend/release_settle.html", page)


def _settled(request: HttpRequest, release_id: int, form: SettleForm) -> HttpResponse:
    try:
        services.settle_release(release_id=release_id, **form.cleaned_data, user=request.user)
    except NotFound:
        raise
    except EvalboardError as problem:
        messages.error(request, problem.detail)
        return redirect("release_settle", release_id=release_id)
    messages.success(request, "The repeats are queued on both sides; the verdict follows by itself.")
    return redirect("release", release_id=release_id)


def _plan_lines(report: ReleaseReport) -> tuple[dict[str, Any], ...]:
    """Each run of the plan once: which side of which suite it is, and how many repeats it has and gets."""
    more = dict(report.settle.runs) if report.settle else {}
    found: dict[int, dict[str, Any]] = {}
    for gate in report.gates:
        for name, side in (("baseline", gate.baseline), ("candidate", gate.candidate)):
            if more.get(side.run_id):
                n_more = more[side.run_id]
                line = {"side": name, "of": side, "gate": gate, "n_more": n_more, "n_after": side.n_repeats + n_more}
                found.setdefault(side.run_id, line)
    return tuple(found.values())


@requires(RUN)
@require_http_methods(["GET", "HEAD", "POST"])
def rerun(request: HttpRequest, release_id: int) -> HttpResponse:
    """Run one side of a gate again as it was asked for: the whole suite, or its reference set first."""
    report = selectors.release_report(release_id)
    gate, side = _asked_side(request, report)
    if import_of(side.run_id) is not None:
        text = f"Run {side.run_id} was read from a log; only the tool that made it can run it again."
        messages.warning(request, text)
        return redirect("release", release_id=release_id)
    run = selectors.run_report(side.run_id)
    endpoints = tuple(dict.fromkeys((side.endpoint, gate.candidate.endpoint, gate.baseline.endpoint)))
    whats = [(WHOLE, f"The whole suite: {run.n_cases:,} cases, {run.row.n_repeats} repeats.")]
    standing = suite_standing(selectors.suite_report(gate.suite, with_cases=False))
    if standing.n_reference:
        whats.append(
            (REFERENCE, f"Its reference set first: {standing.n_reference:,} cases, for a quick look; no gate.")
        )
    initial = {"what": WHOLE, "endpoint": side.endpoint}
    form = RerunForm(request.POST or None, initial=initial, whats=whats, endpoints=endpoints)
    if request.method == "POST" and form.is_valid():
        try:
            made = _run_again(request, run.asked, gate, form.cleaned_data, seed=_seed(gate, side, run.asked))
        except EvalboardError as problem:
            blame(form, problem)
        else:
            messages.success(request, f"Run {made.pk} is queued; this page follows it.")
            return redirect("run", run_id=made.pk)
    form.mark_problems()
    page = {
        "release": report,
        "row": report.row,
        "gate": gate,
        "name": "baseline" if side is gate.baseline else "candidate",
        "side": side,
        "form": form,
        "has_two_endpoints": len(endpoints) > 1,
    }
    return render(request, "frontend/release_rerun.html", page, status=422 if form.errors else 200)


def _asked_side(request: HttpRequest, report: ReleaseReport) -> tuple[GateReport, Any]:
    """The side that the address names; the headline's baseline where it names none."""
    asked = request.GET.get("gate", "")
    is_place = asked.isascii() and asked.isdigit() and len(asked) < 4
    place = int(asked) if is_place else report.headline_gate
    if place >= len(report.gates):
        raise NotFound(f"Release {report.row.id} has no gate {place}.")
    gate = report.gates[place]
    return gate, gate.candidate if request.GET.get("side") == "candidate" else gate.baseline


def _seed(gate: GateReport, side: Any, asked: dict[str, Any]) -> int | None:
    """The other side's, so that the two draw alike; the run's own where the other has none."""
    other = gate.candidate if side is gate.baseline else gate.baseline
    known: dict[str, Any] = selectors.run_report(other.run_id).asked
    found: int | None = known.get("seed", asked.get("seed"))
    return found


def _run_again(
    request: HttpRequest, asked: dict[str, Any], gate: GateReport, chosen: dict[str, Any], *, seed: int | None
) -> Any:
    """`asked` is the body that asked for the run. Its model stays, whichever endpoint is to serve it."""
    suite = gate.suite
    if chosen["what"] == REFERENCE:
        suite = services.reference_suite(slug=gate.suite).suite.slug
    model = asked.get("model")
    if model is None and chosen["endpoint"] != asked["endpoint"]:
        model = _own_model(asked["endpoint"])
    return services.create_run(
        suite=suite,
        endpoint=chosen["endpoint"],
        profile=asked["profile"],
        repeats=asked["repeats"],
        seed=seed,
        model=model,
        labels=asked.get("labels") or {},
        user=request.user,
    )


def _own_model(endpoint: str) -> dict[str, str]:
    """An endpoint's own model, to be named where another endpoint serves it."""
    row = next(row for row in catalogue.endpoint_rows() if row.slug == endpoint)
    return {"repo": row.model, "revision": row.revision} if row.revision else {"path": row.model}
