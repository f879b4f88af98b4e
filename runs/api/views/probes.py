"""Probes of endpoints: asked for, followed, listed, and the calls they rest on."""

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from runs import services
from runs.access import READ, RUN
from runs.api import etags, pages, probe_shapes, query
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.describe import describe, one_of, text
from runs.api.probe_answers import Probe, ProbeCall, ProbeRow, ProbesHeld
from runs.api.serializers import ProbeIn
from runs.models import Probe as ProbeRecord
from runs.selectors import probe as probes
from runs.selectors.probe_batches import held_against

KINDS = ProbeRecord.Kind.values
FILTERS = {"endpoint": text("its slug"), "kind": one_of(KINDS)}


@resource(GET=READ, POST=RUN)
@describe("GET", "Probes, newest first", name="probes", answer=Page[ProbeRow], query=FILTERS, is_paged=True)
@describe(
    "POST",
    "Probe an endpoint",
    name="create_probe",
    body=ProbeIn,
    status=201,
    answer=Probe,
    gives_headers={"Location": "the probe"},
    refuses=[404, 409, 422],
)
def probe_list(request: Request) -> Response:
    if request.method == "POST":
        return _create(request)
    sent = query.read(request, FILTERS)
    kind, endpoint = query.choice(sent, "kind", KINDS), sent.get("endpoint", "")

    def fetch(*, after: int | None, before: int | None, limit: int) -> tuple[probes.ProbeRow, ...]:
        return probes.probe_rows(after=after, before=before, limit=limit, endpoint=endpoint, kind=kind)

    return pages.answer(request, fetch, place=lambda row: row.id, show=lambda row: probe_shapes.row(row, request))


def _create(request: Request) -> Response:
    query.read(request, is_paged=False)
    body = ProbeIn(data=request.data)
    body.is_valid(raise_exception=True)
    probe = services.create_probe(**body.validated_data, user=request.user)
    shown = probe_shapes.probe(probes.probe_detail(probe.pk), request)
    location = request.build_absolute_uri(reverse("api:probe", args=[probe.pk]))
    return Response(shown, status=201, headers={"Location": location})


@resource(GET=READ)
@describe("GET", "A probe, as far as it is", name="probe", answer=Probe, **etags.DESCRIBED)
def probe_detail(request: Request, probe_id: int) -> Response:
    query.read(request, is_paged=False)

    def body() -> Probe:
        return probe_shapes.probe(probes.probe_detail(probe_id), request)

    return etags.answer(request, probes.probe_state(probe_id), body)


@resource(GET=READ)
@describe("GET", "A probe's calls in the order of sending", name="probe_calls", answer=Page[ProbeCall], is_paged=True)
def call_list(request: Request, probe_id: int) -> Response:
    query.read(request)
    return pages.answer_with(request, probes.probe_calls(probe_id), show=probe_shapes.call)


@resource(GET=READ)
@describe("GET", "Two batch probes held against each other", name="probes_held", answer=ProbesHeld, refuses=[409])
def against(request: Request, probe_id: int, other: int) -> Response:
    query.read(request, is_paged=False)
    return Response(probe_shapes.held(held_against(probe_id, other)))
