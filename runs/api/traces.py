"""Answer a trace: positions as JSON, or packed bytes, as `Accept` requests."""

from collections.abc import Callable
from typing import Any

from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.trace import Trace
from evalboard.core.errors import InvalidInput
from evalboard.core.trace import TokenTrace, Vocabulary, encode_block
from runs.api import query, wire
from runs.api.describe import JSON, whole

RANGE = {
    "start": whole("the first position to answer; 0 if not given"),
    "limit": whole("how many positions to answer at most; all if not given"),
}


class PackedTrace(BaseRenderer):
    """The bytes of docs/formats.md, as they are."""

    media_type = "application/octet-stream"
    format = "packed"
    charset = None
    render_style = "binary"

    def render(self, data: bytes, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return data


RENDERERS = [JSONRenderer, PackedTrace]
ANSWER = {JSON: Trace, PackedTrace.media_type: {"type": "string", "format": "binary"}}


def answer(
    request: Request, load: Callable[[], tuple[TokenTrace, Vocabulary | None]], *, show: Callable[..., Trace]
) -> Response:
    """Answer the trace that `load` returns; `show` makes the JSON.

    Raises InvalidInput for a part of a packed trace.
    """
    sent = query.read(request, RANGE, is_paged=False)
    start, limit = query.number(sent, "start"), query.number(sent, "limit")
    if isinstance(request.accepted_renderer, PackedTrace):
        if sent:
            fields = dict.fromkeys(sent, "A packed trace is answered whole.")
            raise InvalidInput("The query is not valid.", fields=fields)
        return Response(encode_block([load()[0]]), content_type=PackedTrace.media_type)
    return wire.answer(show(*load(), start=start, limit=limit), request)
