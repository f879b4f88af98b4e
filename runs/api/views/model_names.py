"""Names of models that count as one: everybody reads them, admins say them and take them back."""

from rest_framework.request import Request
from rest_framework.response import Response

from runs import services
from runs.access import ADMIN, READ
from runs.api import pages, query
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.catalogue_answers import SameModel
from runs.api.describe import describe
from runs.api.serializers import SameModelIn
from runs.api.shapes import instant
from runs.selectors.model_names import SameModelRow, same_model_row, same_model_rows


@resource(GET=READ, POST=ADMIN)
@describe("GET", "Names of models that people said are one", name="model_names", answer=Page[SameModel], is_paged=True)
@describe(
    "POST",
    "Say that two names are one model",
    name="say_same_model",
    body=SameModelIn,
    status=201,
    answer=SameModel,
    refuses=[409],
)
def model_name_list(request: Request) -> Response:
    if request.method == "POST":
        return _say(request)
    query.read(request)
    return pages.answer_with(request, same_model_rows(), show=_shape)


def _say(request: Request) -> Response:
    query.read(request, is_paged=False)
    body = SameModelIn(data=request.data)
    body.is_valid(raise_exception=True)
    said = services.say_same_model(**body.validated_data, user=request.user)
    return Response(_shape(same_model_row(said.pk)), status=201)


@resource(GET=READ, DELETE=ADMIN)
@describe("GET", "Two names of one model", name="model_name", answer=SameModel)
@describe("DELETE", "Take back that two names are one model", name="take_back_same_model", status=204)
def model_name_detail(request: Request, same_model_id: int) -> Response:
    query.read(request, is_paged=False)
    if request.method == "DELETE":
        services.take_back_same_model(same_model_id=same_model_id, user=request.user)
        return Response(status=204)
    return Response(_shape(same_model_row(same_model_id)))


def _shape(row: SameModelRow) -> SameModel:
    return {
        "id": str(row.id),
        "name": row.names[0],
        "other_name": row.names[1],
        "reason": row.reason,
        "said_by": row.said_by or None,
        "said_at": instant(row.said_at),
        "taken_back_by": row.taken_back_by or None,
        "taken_back_at": instant(row.taken_back_at),
    }
