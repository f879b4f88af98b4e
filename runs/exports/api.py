"""Files: a run with its traces, its cases, the pairs of a comparison, a release (docs/formats.md)."""

from django.http import StreamingHttpResponse
from rest_framework.decorators import renderer_classes
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.compare import ComparedCase
from evalboard.core import table
from runs import exports
from runs.access import READ
from runs.api import query, streams, wire
from runs.api.describe import TEXT, View, describe
from runs.api.parsers import JsonLinesParser
from runs.api.resource import resource
from runs.compare import api
from runs.run import api as api_run


class JsonLinesRenderer(BaseRenderer):
    """JSON Lines, passed through unchanged."""

    media_type = JsonLinesParser.media_type
    format = "jsonl"
    charset = "utf-8"

    def render(self, data: str, accepted_media_type: str | None = None, renderer_context: object = None) -> str:
        return data


PAIR_KEY = ("case", "repeat_baseline", "repeat_candidate")
PAIR_NAMES = (
    *PAIR_KEY,
    *(name for name, field in ComparedCase.model_fields.items() if not field.exclude and name not in PAIR_KEY),
)


@streams.serves(streams.Zip, "A run with its traces, as one file", name="export_run", refuses=[409])
def run(request: Request, run_id: int) -> StreamingHttpResponse:
    """The repeats that have ended; the manifest names those that have not."""
    query.read(request, is_paged=False)
    exports.ended_run(run_id)  # refused now, and read again in the snapshot
    return streams.answer(streams.Zip, exports.run_archive(run_id), name=f"run-{run_id}.zip")


@streams.serves(
    streams.Zip, "A release with the inputs of its verdict, as one file", name="export_release", refuses=[409]
)
def release(request: Request, release_id: int) -> StreamingHttpResponse:
    """`evalboard verify-release` judges it again without a server."""
    query.read(request, is_paged=False)
    return streams.answer(streams.Zip, exports.release_bundle(release_id), name=f"release-{release_id}.zip")


@resource(GET=READ)
@describe("GET", "Every sign-off, oldest first", name="signoffs", answer={JsonLinesRenderer.media_type: TEXT})
@renderer_classes([JsonLinesRenderer])
def sign_offs(request: Request) -> Response:
    """Every sign-off, oldest first, each with whether it still follows from the one before."""
    query.read(request, is_paged=False)
    return Response("".join(exports.sign_off_lines()))


def _serve_cases(kind: type[streams.Csv | streams.Jsonl]) -> View:
    summary, name = f"The cases of a run over its repeats, as {kind.format.upper()}", f"export_cases_{kind.format}"

    @streams.serves(kind, summary, name=name, query=api_run.CASE_FILTERS, refuses=[409])
    def cases(request: Request, run_id: int) -> StreamingHttpResponse:
        sent = query.read(request, api_run.CASE_FILTERS, is_paged=False)
        only = query.choice(sent, "only", api_run.ONLY)
        rows = exports.case_table(run_id, query=sent.get("query", ""), only=only)
        parts = table.write(kind.format, exports.CASE_NAMES, rows.rows())
        return streams.answer(kind, parts, name=f"run-{run_id}-cases.{kind.format}", n_rows=rows.n_rows)

    return cases


def _serve_pairs(kind: type[streams.Csv | streams.Jsonl]) -> View:
    summary, name = f"The pairs that differ, as {kind.format.upper()}", f"export_pairs_{kind.format}"

    @streams.serves(kind, summary, name=name, query={**api.RUNS, **api.FILTERS}, refuses=api.COMPARING)
    def pairs(request: Request) -> StreamingHttpResponse:
        sent = query.read(request, (*api.RUNS, *api.FILTERS), is_paged=False)
        wanted = api.wanted_pairs(sent)
        report = api.compared(sent)
        rows = exports.pair_table(report, wanted)
        shown = (wire.to_json(row, request) for row in rows.rows())
        name = f"run-{report.baseline}-against-{report.candidate}-cases.{kind.format}"
        return streams.answer(kind, table.write(kind.format, PAIR_NAMES, shown), name=name, n_rows=rows.n_rows)

    return pairs


cases_csv, cases_jsonl = _serve_cases(streams.Csv), _serve_cases(streams.Jsonl)
pairs_csv, pairs_jsonl = _serve_pairs(streams.Csv), _serve_pairs(streams.Jsonl)
