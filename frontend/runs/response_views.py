"""The page of one response: its text with its tokens, and each choice's alternatives."""

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalboard.wording.numbers import listed
from evalboard.wording.release_verdict import MARK_WORDS
from evalboard.wording.replay import replay_command
from evalboard.wording.run import explain_trace_reason
from frontend.compare import pair_address
from frontend.runs import charts, words
from frontend.shell import addresses, tokens
from frontend.shell.copies import list_copies, write_prompt, write_tokens
from frontend.shell.findings import join_marks, parts_of
from frontend.shell.lists import read_view
from runs.access import READ, requires
from runs.replays import list_case_replays
from runs.run import ResponsePage, TraceWindow, response_page, stray_page
from runs.store import RowWindow

PARTS = {"alternatives": "runs/_alternatives.html"}


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
    added = parts_of("response", run_id, repeat, case)
    at = _position(request.GET.get("at"))
    page = response_page(run_id, repeat=repeat, case_id=case, at=at)
    trace = page.trace
    part = request.GET.get("part")
    if part is not None:
        if part not in PARTS:
            raise Http404
        return render(request, PARTS[part], {"trace": trace, "added": added})
    context = {
        "page": page,
        "response": page.response,
        "trace": trace,
        "added": added,
        "marked": join_marks(added),
        "lines": tokens.lines(trace.tokens, before=page.response.n_reasoning_tokens) if trace else (),
        "before": trace.tokens[0].position - 1 if trace else -1,
        "last_shown": trace.tokens[-1].position if trace else -1,
        "after": _after(trace) if trace else None,
        "margins": charts.margin_chart(trace) if trace else None,
        "caption": words.describe_margins(trace, trace.narrowest) if trace and trace.narrowest else None,
        "own_score": next((score for score in page.scores if score.is_own), None),
        "trace_reason": page.response.trace_reason and explain_trace_reason(page.response.trace_reason),
        "left_out": listed([MARK_WORDS[mark] for mark in page.response.marks if mark in MARK_WORDS] or [""]),
        "copies": list_copies(
            ("id", page.response.case),
            ("prompt", write_prompt(page.messages)),
            ("answer", page.response.text),
            ("tokens", write_tokens(trace.tokens) if trace else ""),
        ),
        "repeats": tuple(_repeat_link(page, index) for index in range(1, page.n_repeats + 1)),
        "replays": list_case_replays(run_id, page.response.case_index),
        "replay_command": replay_command(run_id, case, repeat=repeat) if page.can_replay else "",
        "previous_url": _url(page, page.previous_case_id),
        "next_url": _url(page, page.next_case_id),
    }
    return render(request, "runs/response.html", context)


def _position(text: str | None) -> int | None:
    return int(text[:9]) if text is not None and text.isascii() and text.isdigit() else None


def _after(trace: TraceWindow) -> int | None:
    """Return the first position behind those that are shown."""
    following = trace.tokens[-1].position + 1
    return following if following < trace.n else None


def _url(page: ResponsePage, case_id: str | None) -> str:
    if case_id is None:
        return ""
    return addresses.response_url(page.run_id, page.response.repeat, case_id)


def _repeat_link(page: ResponsePage, index: int) -> RepeatLink:
    return RepeatLink(
        index=index,
        url=addresses.response_url(page.run_id, index, page.response.case),
        is_here=index == page.response.repeat,
        has_same_trace=index in page.same_trace_repeats,
        diff_url=_diff_url(page, index),
    )


def _diff_url(page: ResponsePage, index: int) -> str:
    """Return the page comparing this repeat with another one whose trace differs; "" if there is none."""
    if index == page.response.repeat or index in page.same_trace_repeats or page.response.error:
        return ""
    repeats = min(index, page.response.repeat), max(index, page.response.repeat)
    return pair_address.pair_url(page.run_id, page.run_id, page.response.case, repeats=repeats)


STRAYS_PER_PAGE = 100


@requires(READ)
@require_safe
def strays(request: HttpRequest, run_id: int) -> HttpResponse:
    view = read_view(request.GET, size=STRAYS_PER_PAGE, anchor="strays")
    page = stray_page(run_id, offset=view.offset, limit=view.size)
    listed = view.page(RowWindow(page.rows, page.n_strays))
    rows = [(answer, page.stacks[answer.bucket]) for answer in page.rows]
    context = {
        "run_id": run_id,
        "warnings": page.warnings,
        "page": listed,
        "rows": rows,
        "has_buckets": len(page.stacks) > 1,
    }
    return render(request, "runs/strays.html", context)
