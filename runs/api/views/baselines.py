"""The baselines of a suite: its history and its current ones, and how a person sets one."""

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from runs import selectors, services
from runs.access import READ, SIGN
from runs.api import pages, query, release_answers, release_shapes
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.describe import describe
from runs.api.serializers import BaselineIn
from runs.selectors import BaselineRow
from runs.selectors import suite as suite_reads


@resource(GET=READ, POST=SIGN)
@describe("GET", "Baselines, newest first", name="baselines", answer=Page[release_answers.Baseline], is_paged=True)
@describe(
    "POST",
    "Set the baseline of a model line and profile",
    name="set_baseline",
    body=BaselineIn,
    status=201,
    answer=release_answers.Baseline,
    gives_headers={"Location": "the suite's baselines"},
    refuses=[409],
)
def baseline_list(request: Request, slug: str) -> Response:
    if request.method == "POST":
        return _set(request, slug)
    query.read(request)
    suite_reads.suite_version(slug)

    def fetch(*, after: int | None, before: int | None, limit: int) -> tuple[BaselineRow, ...]:
        return selectors.baseline_rows(slug, after=after, before=before, limit=limit)

    return pages.answer(
        request, fetch, place=lambda row: row.id, show=lambda row: release_shapes.baseline(row, request)
    )


def _set(request: Request, slug: str) -> Response:
    query.read(request, is_paged=False)
    body = BaselineIn(data=request.data)
    body.is_valid(raise_exception=True)
    baseline = services.set_baseline(suite=slug, **body.validated_data, user=request.user)
    shown = release_shapes.baseline(selectors.baseline_row(baseline.pk), request)
    location = request.build_absolute_uri(reverse("api:suite_baselines", args=[slug]))
    return Response(shown, status=201, headers={"Location": location})
