"""The audit trail, for admins: listed, exported and checked."""

from typing import Any

from django.http import StreamingHttpResponse
from rest_framework.decorators import renderer_classes
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.audit import ACTS, KINDS_AUDITED, AuditCheck, AuditLine
from evalboard.contract.base import Page
from runs.access import ADMIN
from runs.api import pages, query, streams, wire
from runs.api.describe import TEXT, describe
from runs.api.resource import resource
from runs.audit.trail import AuditFilter, audit_lines, check_trail, export_lines
from runs.store import RecordList

FILTERS: dict[str, dict[str, Any]] = {
    "person": {"type": "string", "description": "name of the person, or of the server's account"},
    "act": {"type": "string", "enum": list(ACTS)},
    "kind": {"type": "string", "enum": list(KINDS_AUDITED)},
    "subject": {"type": "string", "description": "its id"},
    "address": {"type": "string", "description": "where the request came from"},
    "at": {"type": "string", "description": "a day, or two as 2026-11-01..2026-11-20, in UTC"},
}


def _read_filter(request: Request, *, is_paged: bool) -> AuditFilter:
    sent = query.read(request, FILTERS, is_paged=is_paged)
    since, until = query.days(sent, "at")
    for name in ("act", "kind"):
        query.choice(sent, name, FILTERS[name]["enum"])
    texts = {name: value for name, value in sent.items() if name != "at"}
    return AuditFilter(**texts, since=since, until=until)


@resource(GET=ADMIN)
@describe("GET", "Lines of the audit trail, newest first", name="audit_lines", answer=Page[AuditLine], query=FILTERS)
def line_list(request: Request) -> Response:
    listed = audit_lines(_read_filter(request, is_paged=True))
    # A line does not say its row's id, which a cursor names.
    named = RecordList(
        listed.records, lambda records: tuple(zip(records, listed.make_rows(records), strict=True)), listed.orders
    )
    return pages.answer(
        request, named.rows, place=lambda row: int(row[0].pk), show=lambda row: wire.to_json(row[1], request)
    )


@resource(GET=ADMIN)
@describe(
    "GET",
    "Lines of the audit trail as JSON lines, oldest first",
    name="export_audit",
    answer={streams.Jsonl.media_type: TEXT},
    gives_headers=streams.NAMED,
    query=FILTERS,
)
@renderer_classes([streams.Jsonl])
def export(request: Request) -> StreamingHttpResponse:
    lines = export_lines(_read_filter(request, is_paged=False))
    return streams.answer(streams.Jsonl, lines, name="audit.jsonl")


@resource(GET=ADMIN)
@describe("GET", "Whether the lines of the audit trail are whole", name="audit_check", answer=AuditCheck)
def check(request: Request) -> Response:
    query.read(request, is_paged=False)
    return wire.answer(check_trail(), request)
