"""REST of probes: request, follow and list them, and read their calls."""

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.probe import KINDS, Probe, ProbeCall, ProbeRow, ProbesHeld
from runs.access import READ, RUN
from runs.api import etags, pages, query, wire
from runs.api.access import resource
from runs.api.describe import describe, one_of, text
from runs.api.serializers import Object, Strict, Text, read_body
from runs.probes import read as probes
from runs.probes.probes import create_probe
from runs.probes.read_batches import compare_batches

FILTERS = {"endpoint": text("its slug"), "kind": one_of(KINDS), **query.ordering_of(probes.PROBE_ORDERS)}


class ProbeIn(Strict):
    endpoint = Text()
    kind = Text()
    profile = Text(default=None, allow_null=False)
    parameters = Object(default=dict)


@resource(GET=READ, POST=RUN)
@describe("GET", "Probes, newest first", name="probes", answer=Page[ProbeRow], query=FILTERS)
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

    listed = probes.sortable_probes(endpoint=endpoint, kind=kind)
    return pages.answer_list(request, listed, ordering=query.ordering(sent, probes.PROBE_ORDERS))


def _create(request: Request) -> Response:
    probe = create_probe(**read_body(ProbeIn, request), user=request.user)
    location = request.build_absolute_uri(reverse("api:probe", args=[probe.pk]))
    return wire.answer(probes.probe_detail(probe.pk), request, status=201, headers={"Location": location})


@resource(GET=READ)
@describe("GET", "A probe, as far as it is", name="probe", answer=Probe, **etags.DESCRIBED)
def probe_detail(request: Request, probe_id: int) -> Response:
    query.read(request, is_paged=False)
    state = probes.probe_state(probe_id)
    return etags.answer(request, state, lambda: wire.to_json(probes.probe_detail(probe_id), request))


@resource(GET=READ)
@describe("GET", "A probe's calls in the order of sending", name="probe_calls", answer=Page[ProbeCall])
def call_list(request: Request, probe_id: int) -> Response:
    query.read(request)
    return pages.answer_with(request, probes.probe_calls(probe_id))


@resource(GET=READ)
@describe("GET", "Two batch probes compared", name="probes_held", answer=ProbesHeld, refuses=[409])
def against(request: Request, probe_id: int, other: int) -> Response:
    query.read(request, is_paged=False)
    return wire.answer(compare_batches(probe_id, other), request)
