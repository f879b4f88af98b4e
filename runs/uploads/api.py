"""Suites that are too large for one request: opened, sent in parts, closed, followed."""

import re
from functools import partial

from django.core.validators import RegexValidator
from django.urls import reverse
from rest_framework.decorators import parser_classes
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.upload import Upload, UploadPart
from evalboard.core.errors import InvalidInput
from runs.access import ADMIN, READ, RUN
from runs.api import pages, query, wire
from runs.api.authentication import scopes_of
from runs.api.describe import JSON, TEXT, StatusAnswer, describe, one_of, text
from runs.api.parsers import PackedLines, StrictJson
from runs.api.resource import resource
from runs.api.serializers import Strict, Text, Whole, read_body
from runs.uploads import read
from runs.uploads.uploads import close_upload, delete_upload, open_upload, store_part

SHA256_DIGITS = "[0-9a-fA-F]{64}"
NO_SHA256 = "Must be 64 hexadecimal digits."
SHA256 = {"sha256": text("of the lines, before they were compressed: 64 hexadecimal digits", f"^{SHA256_DIGITS}$")}
OWN = {"own": one_of(["true"], "only uploads that the caller opened")}
ENCODING = {"Content-Encoding": text("zstd or gzip, where the lines are compressed", "^(zstd|gzip)$")}


class UploadIn(Strict):
    slug = Text()
    title = Text(required=False)


class WholeIn(Strict):
    """All lines of the upload, in the order of their offsets, before they were compressed."""

    n_bytes = Whole(min_value=1)
    sha256 = Text(validators=[RegexValidator(rf"\A{SHA256_DIGITS}\Z", NO_SHA256)])


@resource(GET=READ, POST=RUN)
@describe("GET", "Suites that were sent in parts, newest first", name="uploads", answer=Page[Upload], query=OWN)
@describe(
    "POST",
    "Begin a suite that is sent in parts",
    name="open_upload",
    body=UploadIn,
    status=201,
    answer=Upload,
    gives_headers={"Location": "the upload"},
    refuses=[409],
)
def upload_list(request: Request) -> Response:
    if request.method == "POST":
        upload = open_upload(**read_body(UploadIn, request), user=request.user)
        location = request.build_absolute_uri(reverse("api:upload", args=[upload.pk]))
        answer = read.upload_row(upload.pk)
        return wire.answer(answer, request, status=201, headers={"Location": location})
    is_own = query.choice(query.read(request, OWN), "own", ["true"]) == "true"
    return pages.answer(request, partial(read.upload_rows, created_by=request.user if is_own else None))


@resource(GET=READ, DELETE=RUN)
@describe("GET", "An upload, as far as it is", name="upload", answer=Upload)
@describe(
    "DELETE",
    "Forget an upload that one opened, or with `admin` any; a version that was made of it stays",
    name="delete_upload",
    status=204,
)
def upload_detail(request: Request, upload_id: int) -> Response:
    query.read(request, is_paged=False)
    if request.method == "DELETE":
        delete_upload(upload_id=upload_id, user=request.user, may_all=ADMIN in scopes_of(request))
        return Response(status=204)
    return wire.answer(read.upload_row(upload_id), request)


@resource(POST=RUN)
@describe(
    "POST",
    "Send a part of an upload that one opened: whole lines of the suite's JSONL",
    name="send_part",
    body={PackedLines.media_type: TEXT},
    query=SHA256,
    takes_headers=ENCODING,
    status=201,
    answer=UploadPart,
    also={200: StatusAnswer("The very part was there already", {JSON: UploadPart})},
    refuses=[409, 413],
)
@parser_classes([PackedLines])
def part(request: Request, upload_id: int, offset: int) -> Response:
    """Keep whole lines that begin at byte `offset` of the file; sent again, a part does no harm."""
    sent = query.read(request, SHA256, is_paged=False)
    if not re.fullmatch(SHA256_DIGITS, sent.get("sha256", "")):
        raise InvalidInput("The part is not valid.", fields={"sha256": NO_SHA256})
    lines = request.data if isinstance(request.data, bytes) else b""
    place = {"upload_id": upload_id, "offset": offset}
    stored, is_new = store_part(**place, lines=lines, sha256=sent["sha256"], user=request.user)
    answer = UploadPart(offset=stored.offset, n_bytes=stored.n_bytes, sha256=stored.sha256)
    return wire.answer(answer, request, status=201 if is_new else 200)


@resource(POST=RUN)
@describe(
    "POST",
    "Say that an upload that one opened is whole",
    name="close_upload",
    body=WholeIn,
    answer=Upload,
    refuses=[409],
)
@parser_classes([StrictJson])
def close(request: Request, upload_id: int) -> Response:
    """Have a worker parse the upload; reading it shows the progress."""
    close_upload(upload_id=upload_id, **read_body(WholeIn, request), user=request.user)
    return wire.answer(read.upload_row(upload_id), request)
