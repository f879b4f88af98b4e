"""Responses of a run, and the trace of each."""

from typing import Any

from rest_framework.decorators import renderer_classes
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.core import codec
from runs import selectors
from runs.access import READ
from runs.api import answers, pages, query, shapes
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.describe import JSON, WHOLE, describe, text
from runs.selectors import ResponseRow

FILTERS = {"case": text("a case id"), "repeat": WHOLE}


class PackedTrace(BaseRenderer):
    """The bytes of docs/trace-format.md, as they are."""

    media_type = "application/octet-stream"
    format = "packed"
    charset = None
    render_style = "binary"

    def render(self, data: bytes, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return data


@resource(GET=READ)
@describe(
    "GET",
    "Responses of a run, by repeat and case",
    name="responses",
    answer=Page[answers.Response],
    query=FILTERS,
    is_paged=True,
)
def response_list(request: Request, run_id: int) -> Response:
    sent = query.read(request, FILTERS)
    repeat = query.number(sent, "repeat")

    def fetch(*, after: int | None, before: int | None, limit: int) -> tuple[ResponseRow, ...]:
        return selectors.response_rows(
            run_id, case_id=sent.get("case"), repeat=repeat, after=after, before=before, limit=limit
        )

    return pages.answer(request, fetch, place=lambda row: row.place, show=shapes.response)


@resource(GET=READ)
@describe(
    "GET",
    "The trace of one response, position by position or packed",
    name="trace",
    answer={JSON: answers.Trace, PackedTrace.media_type: {"type": "string", "format": "binary"}},
)
@renderer_classes([JSONRenderer, PackedTrace])
def trace(request: Request, run_id: int, repeat: int, case: str) -> Response:
    """Position by position as JSON, or packed as a block of one trace where `Accept` asks for bytes."""
    query.read(request, is_paged=False)
    if isinstance(request.accepted_renderer, PackedTrace):
        stored, _ = selectors.stored_trace(run_id, repeat=repeat, case_id=case)
        return Response(codec.encode_block([stored]), content_type=PackedTrace.media_type)
    return Response({"positions": selectors.trace_positions(run_id, repeat=repeat, case_id=case)})
