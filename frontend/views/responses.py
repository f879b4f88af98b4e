"""One response: its text beside its tokens, and what stood next to each choice."""

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalboard.core.verdict_words import CAME, listed
from frontend import addresses, charts, commands, findings, pair_address, tokens
from runs import selectors
from runs.access import READ, requires
from runs.selectors.replay import replays_of
from runs.selectors.response import ResponseReport, ScoreCell, TokenCell

PARTS = {"alternatives": "frontend/_alternatives.html"}


@dataclass(frozen=True, slots=True)
class RepeatLink:
    index: int
    url: str
    is_here: bool
    has_same_trace: bool
    diff_url: str


@requires(READ)
@require_safe
def response(request: HttpRequest, run_id: int, repeat: int, case: str) -> HttpResponse:
    report = selectors.response_report(run_id, repeat=repeat, case_id=case)
    selected = _selected(report, request.GET.get("at"))
    part = request.GET.get("part")
    if part is not None:
        if part not in PARTS:
            raise Http404
        return render(request, PARTS[part], {"response": report, "selected": selected})
    narrowest = tokens.narrowest(report.tokens)
    page = {
        "response": report,
        "selected": selected,
        "lines": tokens.lines(report.tokens),
        "narrowest": narrowest,
        "margins": charts.margin_chart(report.tokens, at=selected.position if selected else None),
        "caption": findings.of_margins(narrowest) if narrowest else None,
        "own_score": _own_score(report),
        "left_out": listed([CAME[mark] for mark in report.marks if mark in CAME] or [""]),
        "repeats": tuple(_repeat_link(report, index) for index in range(1, report.n_repeats + 1)),
        "replays": replays_of(run_id, report.case_index),
        "replay_command": "" if report.is_logged else commands.replay(run_id, case, repeat=repeat),
        "previous_url": _url(report, report.previous_case_id),
        "next_url": _url(report, report.next_case_id),
    }
    return render(request, "frontend/response.html", page)


def _selected(report: ResponseReport, asked: str | None) -> TokenCell | None:
    """The position of the address, or else the narrowest one: what a reader looks for first."""
    if asked is not None and asked.isascii() and asked.isdigit() and int(asked[:9]) < len(report.tokens):
        return report.tokens[int(asked[:9])]
    return tokens.narrowest(report.tokens) or (report.tokens[0] if report.tokens else None)


def _own_score(report: ResponseReport) -> ScoreCell | None:
    return next((score for score in report.scores if score.is_own), None)


def _url(report: ResponseReport, case_id: str | None) -> str:
    if case_id is None:
        return ""
    return addresses.of_response(report.run_id, report.repeat, case_id)


def _repeat_link(report: ResponseReport, index: int) -> RepeatLink:
    return RepeatLink(
        index=index,
        url=addresses.of_response(report.run_id, index, report.case_id),
        is_here=index == report.repeat,
        has_same_trace=index in report.same_trace_repeats,
        diff_url=_diff_url(report, index),
    )


def _diff_url(report: ResponseReport, index: int) -> str:
    """Where this repeat and another, whose trace differs, are held against each other; "" where there is nothing."""
    if index == report.repeat or index in report.same_trace_repeats or report.error_code:
        return ""
    repeats = min(index, report.repeat), max(index, report.repeat)
    return pair_address.of_pair(report.run_id, report.run_id, report.case_id, repeats=repeats)
