"""Suites: uploaded, listed, their versions and how their scores moved; a run scored again."""

from collections.abc import Sequence
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
from evalboard.contract.suite import (
    HistoryRow,
    OwnScorer,
    RescoredCase,
    RescoredRun,
    SuiteRow,
    SuiteVersion,
    SuiteVersionRow,
    Trial,
)
from evalboard.contract.suite_document import SuiteIn
from evalboard.core.errors import InvalidInput
from evalboard.core.suite import SuiteText, parse_columns, parse_scorer, read_suite_text, refuse_unused_scorer
from runs.access import ADMIN, READ, RUN
from runs.api import pages, query, wire
from runs.api.describe import JSON, TEXT, StatusAnswer, describe, text, whole
from runs.api.parsers import CsvParser, JsonLinesParser, PlainText, StrictJson
from runs.api.resource import Resource, get, resource, serve
from runs.api.serializers import Flag, Nothing, Object, Strict, Text, read_body
from runs.catalogue.read import endpoint_row
from runs.models import TrialRecord
from runs.replays.read import replay_row
from runs.run import run_report
from runs.store import sort_rows
from runs.suites import read as suite_reads
from runs.suites.decoding import decode_case
from runs.suites.own_scorers import own_scorers
from runs.suites.read import SUITE_ORDERS, suite_rows
from runs.suites.read_case import RUNS_READ, RUNS_SHOWN, case_history
from runs.suites.read_history import history_rows
from runs.suites.rescored import rescored_run, score_changes
from runs.suites.rescoring import rescore_run, set_endings
from runs.suites.suites import adopt_scorer, push_text, shipped_mapping
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
    scorer = parse_scorer(sent["scorer"]) if "scorer" in sent else None
    read = read_suite_text(
        str(request.data),
        slug=sent["slug"],
        title=sent.get("title", ""),
        form="csv" if media_type_matches(CsvParser.media_type, request.content_type) else "jsonl",
        scorer=scorer,
        columns=parse_columns(sent.get("columns", "")),
        mapping=shipped_mapping(sent["mapping"]) if "mapping" in sent else None,
    )
    refuse_unused_scorer(read, scorer)
    return read


SUITE = Resource("suite", SuiteVersion, suite_reads.version_answer)


def _show_version(slug: str, *, version: int | None) -> SuiteVersion:
    return suite_reads.version_answer(suite_reads.suite_version(slug, version=version))


def _list_versions(slug: str) -> Sequence[SuiteVersionRow]:
    suite_reads.suite_version(slug)
    return suite_reads.version_lines(slug)


def _list_history(slug: str, *, version: int | None) -> Sequence[HistoryRow]:
    return history_rows(suite_reads.suite_version(slug, version=version))


suite_detail = serve(get("suite", "A suite's newest version, or another", SuiteVersion, _show_version, query=VERSION))
version_list = serve(SUITE.listed("suite_versions", "Versions, newest first", SuiteVersionRow, _list_versions))
history = serve(
    SUITE.listed(
        "suite_history",
        "Runs of one version, one row for each run and bucket",
        HistoryRow,
        _list_history,
        filters=VERSION,
    )
)


class AdoptIn(Strict):
    scorer = Object()


adopt = serve(
    SUITE.made(
        "Adopt a scorer: a new version of the same cases, or the one that is stored already",
        AdoptIn,
        adopt_scorer,
        name="adopt_scorer",
        again="The version that has these cases and this scorer already",
        show=suite_reads.version_answer,
        is_located=False,
        by="",
        refuses=[409],
    )
)

scorer_list = serve(SUITE.listed("scorers", "The teams' own scorers that workers have", OwnScorer, own_scorers))


class TrialIn(Strict):
    suite = Object()
    endpoint = Text()
    case = Text(required=False)
    profile = Text(required=False)


TRIAL = Resource("trial", Trial, trial_row)


def _create_trial(*, suite: dict[str, Any], **fields: Any) -> TrialRecord:
    return create_trial(read=SuiteText("json", suite), **fields)


trial_list = serve(
    TRIAL.made(
        "Send one case of a suite to an endpoint and score its answer; the suite is not stored",
        TrialIn,
        _create_trial,
        refuses=[404],
    )
)
trial_detail = serve(TRIAL.one("A trial, as far as it is"))


def _show_history(slug: str, case: str, *, offset: int | None, limit: int | None) -> CaseHistory:
    return case_history(slug, case, offset=offset or 0, limit=min(limit or RUNS_SHOWN, RUNS_READ))


def _decode(*, slug: str, case: str, user: Any) -> Page[Replay]:
    """Return the replays, all of which are in the list."""
    made = decode_case(slug=slug, case_id=case, user=user)
    return Page[Replay](next=None, previous=None, results=tuple(replay_row(each.pk) for each in made))


case_detail = serve(
    get("suite_case", "A case over the runs of its suite", CaseHistory, _show_history, query=RUNS_OF_CASE),
    SUITE.made(
        "Decode a case now, on each of our endpoints that ran it",
        Nothing,
        _decode,
        name="decode_case",
        show=lambda page: page,
        answer=Page[Replay],
        is_located=False,
        refuses=[409, 422],
    ),
)


class RescoreIn(Strict):
    scorer = Object(required=False)
    cases = Object(required=False)
    judge_again = Flag(required=False)


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


rescored = serve(
    get("rescored", "What would change if another scorer of a run decided", RescoredRun, rescored_run),
)


@resource(GET=READ)
@describe("GET", "The cases whose score would change", name="rescored_cases", answer=Page[RescoredCase])
def rescored_cases(request: Request, run_id: int, scorer_id: int) -> Response:
    """Answer the cases of a run that another scorer scores otherwise, the furthest moved first."""
    query.read(request)
    changes = score_changes(run_id, scorer_id)
    return pages.answer_with(request, changes.indexes, make_rows=changes.rows_of)


class EndingsIn(Strict):
    endings = Object()


ENDPOINT = Resource("endpoint", Endpoint, endpoint_row, changes=ADMIN, takes_record=True)
endings = serve(ENDPOINT.acted("set_endings", "Say what words end an answer", set_endings, body=EndingsIn))
