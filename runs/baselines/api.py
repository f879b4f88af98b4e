"""The baselines of a suite: its history and its current ones, and how a person sets one."""

from functools import partial

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.baseline import Baseline
from runs.access import READ, SIGN
from runs.api import pages, query, wire
from runs.api.describe import describe
from runs.api.resource import resource
from runs.api.serializers import Id, Strict, Text, read_body
from runs.baselines.baselines import set_baseline
from runs.baselines.read import baseline_row, baseline_rows, require_suite


class BaselineIn(Strict):
    run = Id()
    reason = Text()


@resource(GET=READ, POST=SIGN)
@describe("GET", "Baselines, newest first", name="baselines", answer=Page[Baseline])
@describe(
    "POST",
    "Set the baseline of a model line and profile",
    name="set_baseline",
    body=BaselineIn,
    status=201,
    answer=Baseline,
    gives_headers={"Location": "the suite's baselines"},
    refuses=[409],
)
def baseline_list(request: Request, slug: str) -> Response:
    if request.method == "POST":
        return _set(request, slug)
    query.read(request)
    require_suite(slug)
    return pages.answer(request, partial(baseline_rows, slug))


def _set(request: Request, slug: str) -> Response:
    baseline = set_baseline(suite=slug, **read_body(BaselineIn, request), user=request.user)
    location = request.build_absolute_uri(reverse("api:suite_baselines", args=[slug]))
    return wire.answer(baseline_row(baseline.pk), request, status=201, headers={"Location": location})
