"""Forced scorings: what one takes, asked for, followed, and what came of each answer."""

from functools import partial

from django.urls import reverse
from rest_framework import serializers
from rest_framework.decorators import renderer_classes
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.forced import ForcedAnswer, ForcedCost, ForcedPair, ForcedScoring
from evalboard.contract.verification import Verification
from evalboard.core.errors import InvalidInput
from runs.access import READ, RUN
from runs.api import etags, pages, query, traces, wire
from runs.api.access import resource
from runs.api.describe import describe, text, whole
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


@resource(GET=READ, POST=RUN)
@describe("GET", "Forced scorings of a run, newest first", name="run_forced", answer=Page[ForcedScoring])
@describe(
    "POST",
    "Score a run's answers on another stack",
    name="create_forced",
    body=ForcedIn,
    status=201,
    answer=ForcedScoring,
    gives_headers={"Location": "the scoring"},
    refuses=[409, 422],
)
def forced_list(request: Request, run_id: int) -> Response:
    if request.method == "POST":
        scoring = create_forced(run_id=run_id, user=request.user, **read_body(ForcedIn, request))
        location = request.build_absolute_uri(reverse("api:forced", args=[scoring.pk]))
        return wire.answer(read.forced_row(scoring.pk), request, status=201, headers={"Location": location})
    query.read(request)
    return pages.answer(request, partial(read.forced_rows, run_id))


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


@resource(POST=RUN)
@describe(
    "POST",
    "Score both sides of a comparison on both stacks",
    name="create_forced_pair",
    body=ForcedPairIn,
    status=201,
    answer=ForcedPair,
    refuses=[404, 409, 422],
)
def pair(request: Request) -> Response:
    sent = read_body(ForcedPairIn, request)
    ours, theirs = sent["baseline"], sent["candidate"]
    made = create_forced_pair(baseline_id=ours, candidate_id=theirs, user=request.user)
    shown = {pair: read.forced_row(scoring.pk) for pair, scoring in made.items()}
    scored = ForcedPair(
        baseline=shown.get((ours, theirs)),
        candidate=shown.get((theirs, ours)),
        baseline_own=shown.get((ours, ours)),
        candidate_own=shown.get((theirs, theirs)),
    )
    return wire.answer(scored, request, status=201)


@resource(GET=READ)
@describe("GET", "A forced scoring, as far as it is", name="forced", answer=ForcedScoring, **etags.DESCRIBED)
def forced_detail(request: Request, forced_id: int) -> Response:
    query.read(request, is_paged=False)
    state = read.forced_state(forced_id)
    return etags.answer(request, state, lambda: wire.to_json(read.forced_row(forced_id), request))


@resource(GET=READ)
@describe("GET", "The scored answers, in the order of their cases", name="forced_answers", answer=Page[ForcedAnswer])
def answer_list(request: Request, forced_id: int) -> Response:
    query.read(request)
    return pages.answer(request, partial(read.forced_answers, forced_id))


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
