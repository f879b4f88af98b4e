"""Replays of a run's cases, and of requests of production: asked for, followed, listed."""

from functools import partial

from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.replay import Replay
from runs import models
from runs.access import READ, RUN
from runs.api import etags, pages, query, wire
from runs.api.access import resource
from runs.api.describe import describe
from runs.api.serializers import Object, Strict, Text, Whole, read_body
from runs.replays import read as replays
from runs.replays.replays import create_body_replay, create_replay

ORDERING = query.ordering_of(replays.REPLAY_ORDERS)


class ReplayIn(Strict):
    case = Text()
    repeat = Whole(required=False, min_value=1)
    batch_sizes = serializers.ListField(child=Whole(), required=False)
    dtypes = serializers.ListField(child=Text(), required=False)
    neighbours = Whole(required=False)
    profile = Text(required=False)


class BodyReplayIn(Strict):
    endpoint = Text()
    profile = Text()
    body = Object()


@resource(GET=READ, POST=RUN)
@describe("GET", "Replays of a run, newest first", name="replays", answer=Page[Replay])
@describe(
    "POST",
    "Decode one case again",
    name="create_replay",
    body=ReplayIn,
    status=201,
    answer=Replay,
    gives_headers={"Location": "the replay"},
    refuses=[409, 422],
)
def replay_list(request: Request, run_id: int) -> Response:
    if request.method == "POST":
        return _create(request, run_id)
    query.read(request)

    return pages.answer(request, partial(replays.replay_rows, run_id))


def _create(request: Request, run_id: int) -> Response:
    fields = read_body(ReplayIn, request)
    replay = create_replay(run_id=run_id, case_id=fields.pop("case"), user=request.user, **fields)
    return _made(replay, request)


@resource(GET=READ, POST=RUN)
@describe(
    "GET",
    "Replays under the settings of production, newest first",
    name="production_replays",
    answer=Page[Replay],
    query=ORDERING,
)
@describe(
    "POST",
    "Decode a request of production",
    name="create_body_replay",
    body=BodyReplayIn,
    status=201,
    answer=Replay,
    gives_headers={"Location": "the replay"},
    refuses=[404, 422],
)
def production_list(request: Request) -> Response:
    if request.method == "POST":
        return _made(create_body_replay(**read_body(BodyReplayIn, request), user=request.user), request)
    sent = query.read(request, ORDERING)
    return pages.answer_list(request, replays.sortable_replays(), ordering=query.ordering(sent, replays.REPLAY_ORDERS))


def _made(replay: models.ReplayRecord, request: Request) -> Response:
    location = request.build_absolute_uri(reverse("api:replay", args=[replay.pk]))
    return wire.answer(replays.replay_row(replay.pk), request, status=201, headers={"Location": location})


@resource(GET=READ)
@describe("GET", "A replay, as far as it is", name="replay", answer=Replay, **etags.DESCRIBED)
def replay_detail(request: Request, replay_id: int) -> Response:
    query.read(request, is_paged=False)
    state = replays.replay_state(replay_id)
    return etags.answer(request, state, lambda: wire.to_json(replays.replay_row(replay_id), request))
