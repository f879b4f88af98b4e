"""The page of one case: its results over the runs of its suite, and its distinct answers."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.contract.case import CaseAnswer, CaseHistory
from evalboard.wording.numbers import counted, listed
from frontend.compare import pair_address
from frontend.shell import addresses
from frontend.shell.forms import once, reporting
from frontend.shell.lists import ListView, read_view
from runs.access import READ, RUN, requires
from runs.models import ImageRecord
from runs.replays import list_replays_of_case
from runs.store import RowWindow
from runs.suites import RUNS_SHOWN, case_history, decode_case

RUNS_NAMED = 3


@dataclass(frozen=True, slots=True)
class CaseAnswerLine:
    """An answer with where it was given, its page, and its token diff against A, "" for A itself."""

    answer: CaseAnswer
    place: str
    url: str
    diff_url: str


@requires(READ, post=RUN)
@require_http_methods(["GET", "HEAD", "POST"])
@once
def case(request: HttpRequest, slug: str, case: str) -> HttpResponse:
    if request.method == "POST":
        return _decode(request, slug, case)
    offset = read_view(request.GET, size=RUNS_SHOWN).offset
    history = case_history(slug, case, offset=offset, limit=RUNS_SHOWN)
    view = ListView({}, "", RUNS_SHOWN, offset, {}, {}, anchor="life")
    context = {
        "history": history,
        "followed_as": f"{slug}/{case}",
        "lines": tuple(_answer_line(history, answer) for answer in history.answers),
        "page": view.page(RowWindow(history.runs, history.n_runs)),
        "link": request.build_absolute_uri(addresses.case_url(slug, case)),
        "replays": list_replays_of_case(slug, case),
        "n_hidden": history.n_answers - len(history.answers),
    }
    return render(request, "suites/case.html", context)


@requires(READ)
@require_safe
def image(request: HttpRequest, digest: str) -> HttpResponse:
    """Return an image of a suite. Its type is one of four that a browser draws and never runs."""
    row = get_object_or_404(ImageRecord, pk=digest)
    return HttpResponse(bytes(row.data), content_type=row.media_type)


def _decode(request: HttpRequest, slug: str, case: str) -> HttpResponse:
    """Request the replays, and return to the list of them."""
    with reporting(request):
        made = decode_case(slug=slug, case_id=case, user=request.user)
        messages.success(request, f"Decoding on {counted(len(made), 'endpoint')}. Reload to see the answers.")
    return redirect(f"{addresses.case_url(slug, case)}#replays")


def _answer_line(history: CaseHistory, answer: CaseAnswer) -> CaseAnswerLine:
    first = history.answers[0]
    diff = ""
    if answer is not first:
        sides = int(first.run), int(answer.run)
        diff = pair_address.pair_url(*sides, history.case, repeats=(first.repeat, answer.repeat))
    url = addresses.response_url(int(answer.run), answer.repeat, history.case)
    return CaseAnswerLine(answer, _describe_place(answer), url, diff)


def _describe_place(answer: CaseAnswer) -> str:
    """Say which repeats gave an answer: "run 7, repeat 4", "9 repeats of runs 8 and 9"."""
    if answer.n_repeats == 1:
        return f"run {answer.run}, repeat {answer.repeat}"
    if len(answer.runs) > RUNS_NAMED:
        return f"{answer.n_repeats:,} repeats of {len(answer.runs):,} runs"
    noun = "run" if len(answer.runs) == 1 else "runs"
    return f"{counted(answer.n_repeats, 'repeat')} of {noun} {listed(answer.runs[::-1])}"
