"""Forced scorings: what one takes, asked for, followed, and what came of each answer."""

from functools import partial
from typing import Any

from django.urls import path
from rest_framework import serializers
from rest_framework.decorators import renderer_classes
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.forced import ForcedAnswer, ForcedCost, ForcedPair, ForcedScoring
from evalboard.contract.verification import Verification
from evalboard.core.errors import InvalidInput
from runs.access import READ
from runs.api import query, traces, wire
from runs.api.describe import describe, text, whole
from runs.api.resource import Resource, resource, serve
from runs.api.serializers import Id, Strict, Text, Whole, read_body
from runs.forced import read
from runs.forced.scorings import create_forced, create_forced_pair
from runs.forced.verification import verify_scoring
from runs.run import show_trace

_IDS = r"^\d+(,\d+)*$"
KNOWN = {
    "control": {**whole("the forced scoring of the reference's own answers"), "required": True},
    "numerics": {**whole("that of answers of the same weights in a second dtype"), "required": True},
    "more_numerics": text("further such scorings, of other dtypes or kernels, separated by commas", _IDS),
    "planted": whole("that of answers of weights that were changed a little"),
}


class ForcedCostIn(Strict):
    cases = serializers.ListField(child=Text(), required=False, min_length=1)
    tag = Text(required=False)
    repeats = serializers.ListField(child=Whole(min_value=1), required=False, min_length=1)


class ForcedIn(ForcedCostIn):
    endpoint = Text(required=False)
    profile = Text(required=False)
    as_run = Id(required=False)


class ForcedPairIn(Strict):
    baseline = Id()
    candidate = Id()


FORCED = Resource("forced", ForcedScoring, read.forced_row, state=read.forced_state)


def _create_pair(*, baseline: int, candidate: int, user: Any) -> ForcedPair:
    made = create_forced_pair(baseline_id=baseline, candidate_id=candidate, user=user)
    rows = {pair: read.forced_row(scoring.pk) for pair, scoring in made.items()}
    return ForcedPair(
        baseline=rows.get((baseline, candidate)),
        candidate=rows.get((candidate, baseline)),
        baseline_own=rows.get((baseline, baseline)),
        candidate_own=rows.get((candidate, candidate)),
    )


forced_list = serve(
    FORCED.listed(
        "run_forced",
        "Forced scorings of a run, newest first",
        ForcedScoring,
        lambda run_id: partial(read.forced_rows, run_id),
    ),
    FORCED.made(
        "Score a run's answers on another stack",
        ForcedIn,
        create_forced,
        gives_headers={"Location": "the scoring"},
        refuses=[409, 422],
    ),
)
pair = serve(
    FORCED.made(
        "Score both sides of a comparison on both stacks",
        ForcedPairIn,
        _create_pair,
        name="create_forced_pair",
        show=lambda pair: pair,
        answer=ForcedPair,
        is_located=False,
        refuses=[404, 409, 422],
    )
)
forced_detail = serve(FORCED.one("A forced scoring, as far as it is"))
answer_list = serve(
    FORCED.listed(
        "forced_answers",
        "The scored answers, in the order of their cases",
        ForcedAnswer,
        lambda forced_id: partial(read.forced_answers, forced_id),
    )
)


@resource(GET=READ, POST=READ)
@describe("GET", "What scoring all answers of a run takes", name="forced_cost", answer=ForcedCost)
@describe(
    "POST", "What scoring some answers of a run takes", name="forced_cost_of", body=ForcedCostIn, answer=ForcedCost
)
def cost(request: Request, run_id: int) -> Response:
    """POST returns the cost of scoring chosen answers, with a scoring's body, and stores nothing."""
    if request.method == "POST":
        return wire.answer(read.forced_cost(run_id, **read_body(ForcedCostIn, request)), request)
    query.read(request, is_paged=False)
    return wire.answer(read.forced_cost(run_id), request)


@resource(GET=READ)
@describe(
    "GET",
    "The forced trace of a response's answer, position by position or packed",
    name="forced_trace",
    query=traces.RANGE,
    answer=traces.ANSWER,
)
@renderer_classes(traces.RENDERERS)
def trace(request: Request, forced_id: int, repeat: int, case: str) -> Response:
    """Answer the forced trace of a response.

    It has the response's own tokens, unless they were retokenised.
    """
    load = partial(read.stored_forced_trace, forced_id, repeat=repeat, case_id=case)
    return traces.answer(request, load, show=show_trace)


@resource(GET=READ)
@describe(
    "GET",
    "Whether the weights of the stack that scores gave these answers",
    name="forced_verification",
    answer=Verification,
    query=KNOWN,
    refuses=[409],
)
def verification(request: Request, forced_id: int) -> Response:
    """Answer the verification of a scoring by scorings of known origin on the same stack."""
    sent = query.read(request, KNOWN, is_paged=False)
    control, numerics, planted = (query.number(sent, name) for name in ("control", "numerics", "planted"))
    more = query.numbers(sent, "more_numerics")
    if control is None or numerics is None:
        missing = {name: "Must be given." for name in ("control", "numerics") if name not in sent}
        raise InvalidInput("The query is not valid.", fields=missing)
    return wire.answer(verify_scoring(forced_id, control=control, numerics=[numerics, *more], planted=planted), request)


urlpatterns = [
    path("runs/<int:run_id>/forced/", forced_list, name="run_forced"),
    path("runs/<int:run_id>/forced/cost/", cost, name="forced_cost"),
    path("forced/<int:forced_id>/", forced_detail, name="forced"),
    path("forced/<int:forced_id>/verification/", verification, name="forced_verification"),
    path("forced/<int:forced_id>/responses/", answer_list, name="forced_answers"),
    path("forced/<int:forced_id>/responses/<int:repeat>/<text_path:case>/trace/", trace, name="forced_trace"),
    path("compare/forced/", pair, name="forced_pair"),
]
