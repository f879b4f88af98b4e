"""Suites: uploaded, listed, their versions and how their scores moved; a run scored again."""

from typing import Any

from django.urls import reverse
from rest_framework.decorators import parser_classes
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.mediatypes import media_type_matches

from evalboard.contract.base import Page
from evalboard.contract.case import CaseHistory
from evalboard.contract.catalogue import Endpoint
from evalboard.contract.replay import Replay
from evalboard.contract.run import Rescored, ScorerNamed
from evalboard.contract.suite import HistoryRow, SuiteRow, SuiteVersion, SuiteVersionRow, Trial
from evalboard.contract.suite_document import SuiteIn
from evalboard.core.errors import InvalidInput
from evalboard.core.suite import SuiteText, parse_columns, parse_scorer, read_suite_text
from runs.access import ADMIN, READ, RUN
from runs.api import pages, query, wire
from runs.api.access import resource
from runs.api.describe import JSON, TEXT, StatusAnswer, describe, text, whole
from runs.api.parsers import CsvParser, JsonLinesParser, PlainText, StrictJson
from runs.api.serializers import Nothing, Object, Strict, Text, read_body
from runs.catalogue.read import endpoint_row
from runs.replays.read import replay_row
from runs.run import run_report
from runs.store import sort_rows
from runs.suites import read as suite_reads
from runs.suites.decoding import decode_case
from runs.suites.read import SUITE_ORDERS, suite_rows
from runs.suites.read_case import RUNS_READ, RUNS_SHOWN, case_history
from runs.suites.read_history import history_rows
from runs.suites.rescoring import rescore_run, set_endings
from runs.suites.suites import push_text, shipped_mapping
from runs.suites.trials import create_trial, trial_row

LINES = {
    "slug": text("of the suite; needed with JSONL and CSV"),
    "title": text("of the suite, with JSONL and CSV"),
    "scorer": text("of cases that name none: a kind, or JSON"),
    "columns": text("of CSV, such as prompt=question,target=expected"),
    "mapping": text("of another tool's JSONL: bfcl or short"),
}
RUNS_OF_CASE = {
    "offset": whole("skip so many of the newest runs"),
    "limit": whole(f"so many runs; {RUNS_SHOWN} unless given, {RUNS_READ} at most"),
}
ORDERING = query.ordering_of(SUITE_ORDERS)
VERSION = {"version": whole("the newest, unless given")}


@resource(GET=READ, POST=RUN)
@describe("GET", "Suites", name="suites", answer=Page[SuiteRow], query=ORDERING)
@describe(
    "POST",
    "Store a suite: a new version, or the one that has this content already",
    name="push_suite",
    body={JSON: SuiteIn, JsonLinesParser.media_type: TEXT, PlainText.media_type: TEXT, CsvParser.media_type: TEXT},
    query=LINES,
    status=201,
    answer=SuiteVersion,
    gives_headers={"Location": "the suite"},
    also={200: StatusAnswer("The version that has this content already", {JSON: SuiteVersion})},
)
@parser_classes([StrictJson, JsonLinesParser, PlainText, CsvParser])
def suite_list(request: Request) -> Response:
    if request.method == "POST":
        return _push(request)
    sent = query.read(request, ORDERING)
    return pages.answer_with(request, sort_rows(suite_rows(), SUITE_ORDERS, query.ordering(sent, SUITE_ORDERS)))


def _push(request: Request) -> Response:
    """Answer 201 with a new version, or 200 with the existing one of the same content."""
    version, is_new = push_text(_read_text(request))
    slug = version.suite.slug
    location = request.build_absolute_uri(reverse("api:suite", args=[slug]))
    headers = {"Location": location} if is_new else {}
    answer = suite_reads.version_answer(version)
    return wire.answer(answer, request, status=201 if is_new else 200, headers=headers)


def _read_text(request: Request) -> SuiteText:
    """Return the suite of the body: JSON, or lines with the slug of the address."""
    if media_type_matches(StrictJson.media_type, request.content_type):
        query.read(request, is_paged=False)
        body: Any = request.data
        return SuiteText("json", body)
    sent = query.read(request, LINES, is_paged=False)
    if "slug" not in sent:
        raise InvalidInput("The suite is not valid.", fields={"slug": "Name it in the address: ?slug=…"})
    return read_suite_text(
        str(request.data),
        slug=sent["slug"],
        title=sent.get("title", ""),
        form="csv" if media_type_matches(CsvParser.media_type, request.content_type) else "jsonl",
        scorer=parse_scorer(sent["scorer"]) if "scorer" in sent else None,
        columns=parse_columns(sent.get("columns", "")),
        mapping=shipped_mapping(sent["mapping"]) if "mapping" in sent else None,
    )


@resource(GET=READ)
@describe("GET", "A suite's newest version, or another", name="suite", answer=SuiteVersion, query=VERSION)
def suite_detail(request: Request, slug: str) -> Response:
    sent = query.read(request, VERSION, is_paged=False)
    version = suite_reads.suite_version(slug, version=query.number(sent, "version"))
    return wire.answer(suite_reads.version_answer(version), request)


@resource(GET=READ)
@describe("GET", "Versions, newest first", name="suite_versions", answer=Page[SuiteVersionRow])
def version_list(request: Request, slug: str) -> Response:
    query.read(request)
    suite_reads.suite_version(slug)
    return pages.answer_with(request, suite_reads.version_lines(slug))


@resource(GET=READ)
@describe(
    "GET",
    "Runs of one version, one row for each run and bucket",
    name="suite_history",
    answer=Page[HistoryRow],
    query=VERSION,
)
def history(request: Request, slug: str) -> Response:
    """Answer the runs of a suite version, by default the newest."""
    sent = query.read(request, VERSION)
    version = suite_reads.suite_version(slug, version=query.number(sent, "version"))
    return pages.answer_with(request, history_rows(version))


class TrialIn(Strict):
    suite = Object()
    endpoint = Text()
    case = Text(required=False)
    profile = Text(required=False)


@resource(POST=RUN)
@describe(
    "POST",
    "Send one case of a suite to an endpoint and score its answer; the suite is not stored",
    name="create_trial",
    body=TrialIn,
    status=201,
    answer=Trial,
    gives_headers={"Location": "the trial"},
    refuses=[404],
)
def trial_list(request: Request) -> Response:
    body = read_body(TrialIn, request)
    trial = create_trial(read=SuiteText("json", body.pop("suite")), user=request.user, **body)
    location = request.build_absolute_uri(reverse("api:trial", args=[trial.pk]))
    return wire.answer(trial_row(trial.pk), request, status=201, headers={"Location": location})


@resource(GET=READ)
@describe("GET", "A trial, as far as it is", name="trial", answer=Trial)
def trial_detail(request: Request, trial_id: int) -> Response:
    query.read(request, is_paged=False)
    return wire.answer(trial_row(trial_id), request)


@resource(GET=READ, POST=RUN)
@describe("GET", "A case over the runs of its suite", name="suite_case", answer=CaseHistory, query=RUNS_OF_CASE)
@describe(
    "POST",
    "Decode a case now, on each of our endpoints that ran it",
    name="decode_case",
    body=Nothing,
    status=201,
    answer=Page[Replay],
    refuses=[409, 422],
)
def case_detail(request: Request, slug: str, case: str) -> Response:
    if request.method == "POST":
        return _decode(request, slug, case)
    sent = query.read(request, RUNS_OF_CASE, is_paged=False)
    limit = min(query.number(sent, "limit") or RUNS_SHOWN, RUNS_READ)
    history = case_history(slug, case, offset=query.number(sent, "offset") or 0, limit=limit)
    return wire.answer(history, request)


def _decode(request: Request, slug: str, case: str) -> Response:
    """Answer the replays, all of which are in the list."""
    read_body(Nothing, request)
    made = decode_case(slug=slug, case_id=case, user=request.user)
    page = Page[Replay](next=None, previous=None, results=tuple(replay_row(each.pk) for each in made))
    return wire.answer(page, request, status=201)


class RescoreIn(Strict):
    scorer = Object(required=False)
    cases = Object(required=False)


@resource(POST=RUN)
@describe("POST", "Score stored responses again", name="rescore", body=RescoreIn, answer=Rescored, refuses=[409])
def rescore(request: Request, run_id: int) -> Response:
    """Score stored responses with another scorer; `scores` of the answer has both."""
    body = read_body(RescoreIn, request)
    if not body:
        raise InvalidInput("There is nothing to score with.", fields={"scorer": "Give a scorer, or cases with theirs."})
    scorer = rescore_run(run_id=run_id, **body)
    named = ScorerNamed(id=str(scorer.pk), digest=scorer.digest)
    return wire.answer(Rescored(scorer=named, run=run_report(run_id)), request)


class EndingsIn(Strict):
    endings = Object()


@resource(POST=ADMIN)
@describe("POST", "Say what words end an answer", name="set_endings", body=EndingsIn, answer=Endpoint)
def endings(request: Request, endpoint: str) -> Response:
    return wire.answer(endpoint_row(set_endings(endpoint=endpoint, **read_body(EndingsIn, request))), request)
