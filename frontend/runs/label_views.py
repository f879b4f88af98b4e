"""Label a run's answers as right or wrong, and see what the labels show of its scorers."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.contract.labels import LabelledAnswer, RunLabels
from evalboard.core.errors import InvalidInput
from evalboard.core.stats import RIGHT
from evalboard.wording import labels as wording
from frontend.shell.forms import once, reporting
from frontend.shell.lists import parse_number, read_view
from runs import acts
from runs.access import READ, RUN, requires
from runs.labels import (
    PAGE,
    count_own_labels,
    label_answers,
    labelled_answers,
    next_answers,
    remove_label,
    run_labels,
    undo_label,
)
from runs.models import RunRecord

ROWS = 25


@requires(READ)
@require_safe
def labels(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show what labels say of each scorer, and the labelled answers, disagreements first."""
    offers = acts.offers_on(RunRecord, run_id, request.user)
    shown = run_labels(run_id)
    view = read_view(request.GET, size=ROWS, anchor="answers")
    rows = sorted(labelled_answers(run_id, user=request.user), key=_agrees)
    context = {
        "run_id": run_id,
        "labels": shown,
        "finding": wording.describe_labels(shown),
        "notes": wording.list_notes(shown),
        "lines": [_line(shown, place) for place in range(len(shown.scorers))],
        "answers": view.slice(rows),
        "n_apart": sum(_is_apart(row) for row in rows),
        "may_label": offers["label"],
        "why_not": offers["label"].reason if offers["label"].is_shown else "",
        "page_size": PAGE,
    }
    return render(request, "runs/labels.html", context)


def _is_apart(row: LabelledAnswer) -> bool:
    return row.score is not None and not row.is_disputed and (row.score >= RIGHT) != (row.label >= RIGHT)


def _agrees(row: LabelledAnswer) -> tuple[bool, float]:
    return not _is_apart(row), -abs((row.score if row.score is not None else row.label) - row.label)


def _line(shown: RunLabels, place: int) -> dict[str, Any]:
    line = shown.scorers[place]
    measured = line.agreement
    return {
        "scorer": line.scorer,
        "n": measured.n_labels,
        "kappa": wording.kappa(measured.kappa, measured.kappa_interval),
        "true_positive": wording.rate(measured.true_positive, measured.true_positive_interval),
        "false_positive": wording.rate(measured.false_positive, measured.false_positive_interval),
        "rate": line.rate,
    }


@requires(RUN)
@require_http_methods(["GET", "HEAD", "POST"])
@once
def label(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the next answer to label, without its score, or take what a person says of one.

    `from` in the address is how many of the run's answers the person had labelled when these 20 began.
    """
    began = parse_number(request.GET.get("from", ""), digits=9)
    if request.method == "POST":
        with reporting(request):
            _take(run_id, request.POST, request.user)
        listed = f"{reverse('run_labels', args=[run_id])}#answers"
        return redirect(listed if began is None else f"{request.path}?from={began}")
    if not (offer := acts.offers_on(RunRecord, run_id, request.user)["label"]):
        messages.warning(request, offer.reason)
        return redirect("run_labels", run_id=run_id)
    n_own = count_own_labels(run_id, user=request.user)
    began = n_own if began is None else min(began, n_own)
    answers = next_answers(run_id, user=request.user, limit=1)
    if not answers:
        messages.info(request, "You have labelled every answer of this run.")
    if n_own - began >= PAGE or not answers:
        return redirect("run_labels", run_id=run_id)
    number = n_own - began + 1
    context = {"run_id": run_id, "answer": answers[0], "number": number, "page_size": PAGE, "began": began}
    return render(request, "runs/label.html", context | {"n_own": n_own})


def _take(run_id: int, sent: QueryDict, user: Any) -> None:
    choice, case = sent.get("said", ""), sent.get("case", "")
    repeat = parse_number(sent.get("repeat", ""), digits=9) or 0
    if choice == "undo":
        undo_label(run_id=run_id, user=user)
    elif choice == "remove":
        remove_label(run_id=run_id, repeat=repeat, case=case, user=user)
    elif choice in ("right", "wrong"):
        label_answers(
            run_id=run_id, labels=[{"case": case, "repeat": repeat, "is_right": choice == "right"}], user=user
        )
    else:
        raise InvalidInput("Nothing was stored: say whether the answer is right or wrong.")
