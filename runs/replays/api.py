"""Replays of a run's cases, and of requests of production: asked for, followed, listed."""

from functools import partial

from rest_framework import serializers

from evalboard.contract.replay import Replay
from runs.api.resource import Resource, serve
from runs.api.serializers import Object, Strict, Text, Whole
from runs.replays import read as replays
from runs.replays.replays import create_body_replay, create_replay


class ReplayIn(Strict):
    case = Text(source="case_id")
    repeat = Whole(required=False, min_value=1)
    batch_sizes = serializers.ListField(child=Whole(), required=False)
    dtypes = serializers.ListField(child=Text(), required=False)
    neighbours = Whole(required=False)
    profile = Text(required=False)


class BodyReplayIn(Strict):
    endpoint = Text()
    profile = Text()
    body = Object()


REPLAY = Resource("replay", Replay, replays.replay_row, state=replays.replay_state)

replay_list = serve(
    REPLAY.listed(
        "replays", "Replays of a run, newest first", Replay, lambda run_id: partial(replays.replay_rows, run_id)
    ),
    REPLAY.made("Decode one case again", ReplayIn, create_replay, refuses=[409, 422]),
)
production_list = serve(
    REPLAY.listed(
        "production_replays",
        "Replays under the settings of production, newest first",
        Replay,
        replays.sortable_replays,
        replays.REPLAY_ORDERS,
    ),
    REPLAY.made(
        "Decode a request of production",
        BodyReplayIn,
        create_body_replay,
        name="create_body_replay",
        refuses=[404, 422],
    ),
)
replay_detail = serve(REPLAY.one("A replay, as far as it is"))
