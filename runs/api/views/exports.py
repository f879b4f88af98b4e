"""Files: a run with its traces, its cases, the pairs of a comparison. docs/export-format.md says what is in them."""

from django.http import StreamingHttpResponse
from rest_framework.decorators import renderer_classes
from rest_framework.request import Request

from evalboard.core import table
from runs import exports
from runs.access import READ
from runs.api import compare_answers, compare_shapes, query, streams
from runs.api.access import resource
from runs.api.describe import describe
from runs.api.views import cases, compare

PAIR_NAMES = tuple(compare_answers.ComparedCase.__annotations__)


@resource(GET=READ)
@describe(
    "GET",
    "A run with its traces, as one file",
    name="export_run",
    gives_headers=streams.NAMED,
    refuses=[409],
    **streams.described(streams.Zip),
)
@renderer_classes([streams.Zip])
def run(request: Request, run_id: int) -> StreamingHttpResponse:
    """The repeats that have ended; the manifest names those that have not."""
    query.read(request, is_paged=False)
    exports.ended_run(run_id)  # refused now, and read again in the snapshot
    return streams.answer(streams.Zip, exports.run_archive(run_id), name=f"run-{run_id}.zip")


@resource(GET=READ)
@describe(
    "GET",
    "The cases of a run over its repeats, as CSV",
    name="export_cases_csv",
    query=cases.FILTERS,
    gives_headers=streams.COUNTED,
    refuses=[409],
    **streams.described(streams.Csv),
)
@renderer_classes([streams.Csv])
def cases_csv(request: Request, run_id: int) -> StreamingHttpResponse:
    return _cases(request, run_id, streams.Csv)


@resource(GET=READ)
@describe(
    "GET",
    "The cases of a run over its repeats, as JSONL",
    name="export_cases_jsonl",
    query=cases.FILTERS,
    gives_headers=streams.COUNTED,
    refuses=[409],
    **streams.described(streams.Jsonl),
)
@renderer_classes([streams.Jsonl])
def cases_jsonl(request: Request, run_id: int) -> StreamingHttpResponse:
    return _cases(request, run_id, streams.Jsonl)


@resource(GET=READ)
@describe(
    "GET",
    "The pairs that differ, as CSV",
    name="export_pairs_csv",
    query={**compare.RUNS, **compare.FILTERS},
    gives_headers=streams.COUNTED,
    refuses=compare.COMPARING,
    **streams.described(streams.Csv),
)
@renderer_classes([streams.Csv])
def pairs_csv(request: Request) -> StreamingHttpResponse:
    return _pairs(request, streams.Csv)


@resource(GET=READ)
@describe(
    "GET",
    "The pairs that differ, as JSONL",
    name="export_pairs_jsonl",
    query={**compare.RUNS, **compare.FILTERS},
    gives_headers=streams.COUNTED,
    refuses=compare.COMPARING,
    **streams.described(streams.Jsonl),
)
@renderer_classes([streams.Jsonl])
def pairs_jsonl(request: Request) -> StreamingHttpResponse:
    return _pairs(request, streams.Jsonl)


def _cases(request: Request, run_id: int, kind: type[streams.Csv | streams.Jsonl]) -> StreamingHttpResponse:
    sent = query.read(request, cases.FILTERS, is_paged=False)
    only = query.choice(sent, "only", cases.ONLY)
    found = exports.case_table(run_id, query=sent.get("query", ""), only=only)
    parts = table.write(kind.format, exports.CASE_NAMES, found.rows())
    return streams.answer(kind, parts, name=f"run-{run_id}-cases.{kind.format}", n_rows=found.n_rows)


def _pairs(request: Request, kind: type[streams.Csv | streams.Jsonl]) -> StreamingHttpResponse:
    sent = query.read(request, (*compare.RUNS, *compare.FILTERS), is_paged=False)
    wanted = compare.wanted_pairs(sent)
    report = compare.compared(sent)
    found = exports.pair_table(report, wanted)
    shown = (compare_shapes.case_row(row, report, request) for row in found.rows())
    name = f"run-{report.baseline.run_id}-against-{report.candidate.run_id}-cases.{kind.format}"
    return streams.answer(kind, table.write(kind.format, PAIR_NAMES, shown), name=name, n_rows=found.n_rows)
