"""Answers that are sent while they are read: files, with the name under which a browser keeps them."""

from collections.abc import Callable, Iterator
from typing import Any

from django.http import StreamingHttpResponse
from rest_framework.decorators import renderer_classes
from rest_framework.renderers import BaseRenderer

from runs.access import READ
from runs.api.describe import TEXT, View, describe
from runs.api.parsers import JsonLinesParser
from runs.api.resource import resource

ROW_COUNT = "X-Row-Count"
NAMED = {"Content-Disposition": "the file's name"}
COUNTED = {**NAMED, ROW_COUNT: "how many rows there are, so that an answer that was cut off shows"}
BINARY = {"type": "string", "format": "binary"}


class _File(BaseRenderer):
    """A media type that `Accept` may name; the view writes the content."""

    charset = None
    render_style = "binary"

    def render(self, data: bytes, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return data


class Zip(_File):
    media_type = "application/zip"
    format = "zip"


class Csv(_File):
    media_type = "text/csv"
    format = "csv"


class Jsonl(_File):
    media_type = JsonLinesParser.media_type
    format = "jsonl"


class Markdown(_File):
    media_type = "text/markdown"
    format = "md"


def serves(kind: type[_File], summary: str, *, name: str, **described: Any) -> Callable[[View], View]:
    """Make an API view of a function that answers with a file of one kind. described: more for `describe`."""
    answer = {kind.media_type: BINARY if kind is Zip else TEXT}
    headers = COUNTED if kind in (Csv, Jsonl) else NAMED
    describes = describe("GET", summary, name=name, answer=answer, gives_headers=headers, **described)
    return lambda view: resource(GET=READ)(describes(renderer_classes([kind])(view)))


def answer(kind: type[_File], parts: Iterator[bytes], *, name: str, n_rows: int | None = None) -> StreamingHttpResponse:
    """Stream the parts.

    Refuse everything that can be refused before: after the first byte an error can only break the connection, which the
    client notices.
    """
    charset = "; charset=utf-8" if kind in (Csv, Markdown) else ""
    headers = {
        "Content-Type": f"{kind.media_type}{charset}",
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Accel-Buffering": "no",  # a proxy that keeps it until it is whole would give up on a large one
        **({} if n_rows is None else {ROW_COUNT: str(n_rows)}),
    }
    return StreamingHttpResponse(parts, headers=headers)
