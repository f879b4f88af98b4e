"""Replays of a run's cases: asked for, followed, listed."""

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from runs import services
from runs.access import READ, RUN
from runs.api import answers, etags, pages, query, shapes
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.describe import describe
from runs.api.serializers import ReplayIn
from runs.selectors import replay as replays
from runs.selectors.replay import ReplayRow


@resource(GET=READ, POST=RUN)
@describe("GET", "Replays of a run, newest first", name="replays", answer=Page[answers.Replay], is_paged=True)
@describe(
    "POST",
    "Decode one case again",
    name="create_replay",
    body=ReplayIn,
    status=201,
    answer=answers.Replay,
    gives_headers={"Location": "the replay"},
    refuses=[409, 422],
)
def replay_list(request: Request, run_id: int) -> Response:
    if request.method == "POST":
        return _create(request, run_id)
    query.read(request)

    def fetch(*, after: int | None, before: int | None, limit: int) -> tuple[ReplayRow, ...]:
        return replays.replay_rows(run_id, after=after, before=before, limit=limit)

    return pages.answer(request, fetch, place=lambda row: row.id, show=lambda row: shapes.replay(row, request))


def _create(request: Request, run_id: int) -> Response:
    query.read(request, is_paged=False)
    body = ReplayIn(data=request.data)
    body.is_valid(raise_exception=True)
    asked = dict(body.validated_data)
    replay = services.create_replay(run_id=run_id, case_id=asked.pop("case"), user=request.user, **asked)
    location = request.build_absolute_uri(reverse("api:replay", args=[replay.pk]))
    shown = shapes.replay(replays.replay_row(replay.pk), request)
    return Response(shown, status=201, headers={"Location": location})


@resource(GET=READ)
@describe("GET", "A replay, as far as it is", name="replay", answer=answers.Replay, **etags.DESCRIBED)
def replay_detail(request: Request, replay_id: int) -> Response:
    query.read(request, is_paged=False)

    def body() -> answers.Replay:
        return shapes.replay(replays.replay_row(replay_id), request)

    return etags.answer(request, replays.replay_state(replay_id), body)
