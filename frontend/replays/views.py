"""Replays of production requests: request and list them, and show each with its answer."""

from typing import Any

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.contract.replay import Replay
from evalboard.core.profile import OBSERVED
from frontend.shell import tokens
from frontend.shell.forms import JSONText, PlainForm, blaming, endpoint_choices, once
from frontend.shell.lists import parse_number, read_view
from frontend.shell.live import answer_list, answer_progress
from runs.access import READ, RUN, may, requires
from runs.catalogue import read as catalogue
from runs.models import EndpointRecord
from runs.replays import create_body_replay, replay_page
from runs.replays import read as selector
from runs.run import TraceWindow
from runs.work import unclaimed_reason

EXAMPLE = '{"messages": [{"role": "user", "content": "…"}], "temperature": 0.7, "max_tokens": 256}'


class BodyForm(PlainForm):
    endpoint = forms.ChoiceField(label="On", help_text="Your own endpoint with production’s weights.")
    profile = forms.ChoiceField(help_text="Production’s settings. The request’s own sampling overrides them.")
    body = JSONText(
        label="Request",
        widget=forms.Textarea(attrs={"rows": 10, "placeholder": EXAMPLE, "class": "mono"}),
        help_text="The body of a chat completion request, without headers. It is stored unchanged.",
    )

    def __init__(self, *args: Any, endpoints: Any = (), profiles: Any = (), **kwargs: Any) -> None:
        """Build the form. endpoints, profiles: rows of the catalogue, without external ones and logs."""
        super().__init__(*args, **kwargs)
        choices: dict[str, Any] = self.fields
        choices["endpoint"].choices = endpoint_choices(endpoints, EndpointRecord.Engine.VLLM)
        choices["profile"].choices = [
            (row.slug, row.slug) for row in profiles if row.settings.get("batch_class") != OBSERVED
        ]


REPLAYS_PER_PAGE = 25
PARTS = {"alternatives": "runs/_alternatives.html", "progress": "replays/_said.html"}


@requires(READ, post=RUN)
@require_http_methods(["GET", "HEAD", "POST"])
@once
def replays(request: HttpRequest) -> HttpResponse:
    choices = {"endpoints": catalogue.endpoint_rows(), "profiles": catalogue.profile_rows()}
    form = BodyForm(request.POST if request.method == "POST" else None, **choices)
    if form.is_bound and form.is_valid():
        with blaming(form):
            made = create_body_replay(**form.cleaned_data, user=request.user)
            return redirect("replay", replay_id=made.pk)
    form.mark_problems()
    query = request.GET if request.method != "POST" else {}
    view = read_view(query, orders=selector.REPLAY_ORDERS, default="-id", size=REPLAYS_PER_PAGE)
    shown = view.read(selector.sortable_replays())
    page = {"rows": shown.rows, "list": shown, "form": form, "may_run": may(request.user, RUN)}
    is_moving = any(not row.is_terminal for row in shown.rows)
    status = 422 if form.errors else 200
    return answer_list(request, "replays/list.html", "replays/_rows.html", page, is_moving=is_moving, status=status)


@requires(READ)
@require_safe
def replay(request: HttpRequest, replay_id: int) -> HttpResponse:
    row = selector.replay_row(replay_id)
    part = request.GET.get("part")
    if part is not None and part not in PARTS:
        raise Http404
    if part == "progress":
        shown = {"replay": row, "nobody": _nobody(row)}
        return answer_progress(request, PARTS[part], shown, is_over=row.is_terminal)
    page = replay_page(replay_id, at=parse_number(request.GET.get("at", "")))
    if part is not None:
        return render(request, PARTS[part], {"trace": page.window})
    process = page.process
    context = {
        "replay": row,
        "nobody": _nobody(row),
        "settings": _list_settings(row),
        "result": page.result,
        "process": process,
        "bucket": process.bucket if process else None,
        "messages_sent": page.messages,
        **(_tokens(page.window) if page.window else {}),
    }
    return render(request, "replays/page.html", context)


def _nobody(row: Replay) -> str:
    """Say why no worker can take a waiting production request; "" if one can."""
    return unclaimed_reason(row.production.endpoint) if row.production and row.status == "queued" else ""


def _tokens(window: TraceWindow) -> dict[str, Any]:
    following = window.tokens[-1].position + 1
    return {
        "trace": window,
        "marked": frozenset(),  # these tokens are not scored on another stack
        "lines": tokens.lines(window.tokens),
        "before": window.tokens[0].position - 1,
        "last_shown": window.tokens[-1].position,
        "after": following if following < window.n else None,
    }


def _list_settings(row: Replay) -> list[tuple[str, list[tuple[str, Any]]]]:
    """Return the settings in effect, by place: as sent to the engine, and as read back from it."""
    answer = row.production.answer if row.production else None
    if answer is None:
        return []
    parts = (("Sent with the request", answer.sampling), ("Of the engine, read back from inside it", answer.engine))
    return [(title, sorted(values.items())) for title, values in parts if values]
