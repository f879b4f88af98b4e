"""The page of a suite's scorers: what scores it, what another would change in a run, and its adoption."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from evalboard.contract.run import RunRow
from evalboard.contract.suite import RescoredRun, SuiteVersion
from evalboard.core.errors import NotFound
from evalboard.core.scoring import judging_number
from evalboard.wording.scorers import describe_rescored, name_scorer
from frontend.shell.forms import blaming, reporting
from frontend.shell.lists import ListPage, parse_number, read_view
from frontend.suites import words
from frontend.suites.forms import ScorerForm
from runs import acts
from runs.access import READ, RUN, requires
from runs.models import RunRecord, Suite
from runs.run import rows_of, run_rows
from runs.store import RowWindow
from runs.suites import adopt_scorer, own_scorers, read, rescore_run, rescored_runs, run_to_rescore, score_changes

CASES_PER_PAGE = 50
RUNS_OFFERED = 50
PART = "scores"


@dataclass(frozen=True, slots=True)
class ScorerLine:
    """A scorer by which a run is scored. is_suites: it scores the suite's newest version."""

    rescored: RescoredRun
    name: str
    options: str
    is_suites: bool
    may_adopt: bool
    url: str


@requires(READ, post=RUN)
@require_http_methods(["GET", "HEAD", "POST"])
def scorers(request: HttpRequest, slug: str) -> HttpResponse:
    suite = read.version_answer(read.suite_version(slug))
    run_id = _run(request, slug)
    if request.method == "POST" and request.POST.get("act") == "adopt":
        return _adopt(request, suite, run_id)
    there = own_scorers()
    form = ScorerForm(request.POST or None, there=there)
    if request.method == "POST" and form.is_valid() and run_id is not None:
        with blaming(form, under="scorer"):
            made = rescore_run(run_id=run_id, scorer=form.spec())
            return redirect(_address(slug, run_id, made.pk))
    page = {"suite": suite, "form": form, "standing": words.describe_standing(suite, there)}
    page |= {"run": run_id, **(_scored(request, suite, run_id) if run_id is not None else {})}
    page |= {"choices": _list_choices(slug, run_id) if run_id is not None else ()}
    if request.GET.get("part") == PART and run_id is not None:
        answer = render(request, "suites/_rescored.html", page)
        answer.headers["Cache-Control"] = "no-store"
        return answer
    form.mark_problems()
    return render(request, "suites/scorers.html", page, status=422 if form.errors else 200)


def _run(request: HttpRequest, slug: str) -> int | None:
    """Return the run of the address, by default the suite's newest finished one."""
    named = request.GET.get("run", "")
    run_id = parse_number(named) if named else run_to_rescore(slug)
    if named and not RunRecord.objects.filter(pk=run_id or 0, suite_version__suite__slug=slug).exists():
        raise NotFound(f"Suite {slug} has no run {named}.")
    return run_id


def _list_choices(slug: str, run_id: int) -> tuple[RunRow, ...]:
    """Return the newest runs of a suite that have ended, imports included, and the one that is shown."""
    newest = tuple(row for row in run_rows(suite=slug, limit=RUNS_OFFERED) if row.is_terminal)
    if any(int(row.id) == run_id for row in newest):
        return newest
    return (*newest, *rows_of(RunRecord.objects.filter(pk=run_id)))


def _adopt(request: HttpRequest, suite: SuiteVersion, run_id: int | None) -> HttpResponse:
    chosen = parse_number(request.POST.get("scorer", ""))
    lines = rescored_runs(run_id) if run_id is not None else ()
    spec = next((each.spec["default"] for each in lines if each.scorer.id == str(chosen)), None)
    if spec is None:
        raise NotFound(f"No run of suite {suite.slug} is scored by a scorer {chosen}.")
    with reporting(request):
        version, _ = adopt_scorer(slug=suite.slug, scorer=spec)
        messages.success(request, f"{version} is scored by {name_scorer(version.scorer.spec)}. Its next run uses it.")
    return redirect("suite_scorers", slug=suite.slug)


def _scored(request: HttpRequest, suite: SuiteVersion, run_id: int) -> dict[str, Any]:
    every = rescored_runs(run_id)
    own, *others = every
    may_adopt = bool(acts.offers_on(Suite, suite.slug, request.user, by="slug")["adopt"])
    lines = tuple(_line(each, suite, may_adopt=may_adopt) for each in every)
    named = parse_number(request.GET.get("scorer", ""))
    chosen = next((each for each in others if each.scorer.id == str(named)), max(others, key=_place, default=None))
    offered = acts.can("rescore", acts.load_subject(RunRecord, run_id), request.user)
    return {
        "lines": lines,
        "chosen": chosen,
        "run_version": own.suite_version,
        "sentences": () if chosen is None or not chosen.n_scored else describe_rescored(chosen, name_scorer(own.spec)),
        "cases": None if chosen is None else _cases(request, chosen),
        "is_waiting": any(each.waiting for each in every),
        "part_url": _address(suite.slug, run_id, int(chosen.scorer.id) if chosen else None, part=PART),
        "offered": offered,
    }


def _place(rescored: RescoredRun) -> int:
    return int(rescored.scorer.id)


def _line(rescored: RescoredRun, suite: SuiteVersion, *, may_adopt: bool) -> ScorerLine:
    plan, current = rescored.spec, suite.scorer_plan
    is_other = plan["default"] not in (None, current["default"]) and plan["cases"] == current["cases"]
    return ScorerLine(
        rescored=rescored,
        name=name_scorer(plan),
        options=words.describe_options(plan["default"]),
        is_suites=plan == current,
        may_adopt=may_adopt and is_other and plan["default"]["kind"] != "recorded" and judging_number(plan) == 1,
        url=_address(suite.slug, int(rescored.run), int(rescored.scorer.id), anchor="changes"),
    )


def _cases(request: HttpRequest, chosen: RescoredRun) -> ListPage:
    active: Mapping[str, str] = {"run": chosen.run, "scorer": chosen.scorer.id}
    view = read_view(request.GET, size=CASES_PER_PAGE, active=active, anchor="changes")
    changes = score_changes(int(chosen.run), int(chosen.scorer.id))
    shown = changes.indexes[view.offset : view.offset + view.size]
    return view.page(RowWindow(changes.rows_of(shown), len(changes.indexes)))


def _address(slug: str, run_id: int, scorer_id: int | None, *, part: str = "", anchor: str = "") -> str:
    named = "".join(f"&{name}={value}" for name, value in (("scorer", scorer_id), ("part", part)) if value)
    return f"{reverse('suite_scorers', args=[slug])}?run={run_id}{named}{f'#{anchor}' if anchor else ''}"
