"""Releases: a candidate judged, settled by further repeats, and signed."""

from django.urls import reverse
from rest_framework.decorators import renderer_classes
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from runs import exports, selectors, services
from runs.access import READ, RUN, SIGN, credential
from runs.api import pages, query, release_answers, release_shapes
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.describe import TEXT, describe, one_of, text
from runs.api.parsers import JsonLines
from runs.api.serializers import ReleaseIn, SettleIn, SignOffIn
from runs.models import Verdict
from runs.selectors import ReleaseFilter, ReleaseReport, ReleaseRow
from runs.selectors.release_list import OUTCOMES

FILTERS = {"suite": text("its slug"), "verdict": one_of(Verdict.Word.values), "outcome": one_of(OUTCOMES)}


class Lines(BaseRenderer):
    """One JSON object a line, as it is."""

    media_type = JsonLines.media_type
    format = "jsonl"
    charset = "utf-8"

    def render(self, data: str, accepted_media_type: str | None = None, renderer_context: object = None) -> str:
        return data


@resource(GET=READ, POST=RUN)
@describe(
    "GET",
    "Releases, newest first",
    name="releases",
    answer=Page[release_answers.ReleaseRow],
    query=FILTERS,
    is_paged=True,
)
@describe(
    "POST",
    "Judge a candidate",
    name="create_release",
    body=ReleaseIn,
    status=201,
    answer=release_answers.Release,
    gives_headers={"Location": "the release"},
    refuses=[404, 409],
)
def release_list(request: Request) -> Response:
    """The list shows each verdict as it was decided last; reading one release decides it again where it must be."""
    if request.method == "POST":
        return _create(request)
    sent = query.read(request, FILTERS)
    wanted = ReleaseFilter(
        suite=sent.get("suite", ""),
        verdict=query.choice(sent, "verdict", Verdict.Word.values),
        outcome=query.choice(sent, "outcome", OUTCOMES),
    )

    def fetch(*, after: int | None, before: int | None, limit: int) -> tuple[ReleaseRow, ...]:
        return selectors.release_rows(wanted, after=after, before=before, limit=limit)

    return pages.answer(
        request, fetch, place=lambda row: row.id, show=lambda row: release_shapes.release_row(row, request)
    )


def _create(request: Request) -> Response:
    query.read(request, is_paged=False)
    body = ReleaseIn(data=request.data)
    body.is_valid(raise_exception=True)
    release = services.create_release(**body.validated_data, user=request.user)
    location = request.build_absolute_uri(reverse("api:release", args=[release.pk]))
    return Response(_shown(release.pk, request), status=201, headers={"Location": location})


@resource(GET=READ)
@describe("GET", "A release with its verdict", name="release", answer=release_answers.Release, refuses=[409])
def release_detail(request: Request, release_id: int) -> Response:
    query.read(request, is_paged=False)
    return Response(_decided(release_id, request))


@resource(POST=SIGN)
@describe(
    "POST",
    "Sign a verdict",
    name="sign_release",
    body=SignOffIn,
    status=201,
    answer=release_answers.SignOff,
    refuses=[409],
)
def sign(request: Request, release_id: int) -> Response:
    """409 where what the person saw, by its digest, is no longer what the release rests on."""
    query.read(request, is_paged=False)
    body = SignOffIn(data=request.data)
    body.is_valid(raise_exception=True)
    made_with = credential(request)
    row = services.sign_release(release_id=release_id, **body.validated_data, user=request.user, made_with=made_with)
    report = selectors.release_report(release_id)
    [line] = [each for each in report.sign_offs if each.id == row.pk]
    return Response(release_shapes.sign_off(line), status=201)


@resource(GET=READ, POST=RUN)
@describe("GET", "What settling would cost", name="settle_plan", answer=release_answers.Settle, refuses=[409])
@describe(
    "POST",
    "Add the repeats that settle it",
    name="settle",
    body=SettleIn,
    answer=release_answers.Release,
    refuses=[409],
)
def settle(request: Request, release_id: int) -> Response:
    """GET: what settling would cost, null where repeats would not help. POST: the same numbers agree to it."""
    query.read(request, is_paged=False)
    if request.method == "POST":
        body = SettleIn(data=request.data)
        body.is_valid(raise_exception=True)
        services.settle_release(release_id=release_id, **body.validated_data, user=request.user)
        return Response(_decided(release_id, request))
    services.decide_release(release_id=release_id)
    report = _report(release_id)
    return Response(
        {
            "plan": None if report.settle is None else release_shapes.settle_plan(report.settle),
            "settling": report.settling or None,
        }
    )


@resource(GET=READ)
@describe("GET", "Every sign-off, oldest first", name="signoffs", answer={Lines.media_type: TEXT})
@renderer_classes([Lines])
def sign_off_export(request: Request) -> Response:
    """Every sign-off, oldest first, each with whether it still follows from the one before."""
    query.read(request, is_paged=False)
    return Response("".join(exports.sign_off_lines()))


def _decided(release_id: int, request: Request) -> release_answers.Release:
    services.decide_release(release_id=release_id)
    return _shown(release_id, request)


def _shown(release_id: int, request: Request) -> release_answers.Release:
    return release_shapes.release(_report(release_id), request)


def _report(release_id: int) -> ReleaseReport:
    return selectors.release_report(release_id, plan=services.settle_plan(release_id=release_id))
