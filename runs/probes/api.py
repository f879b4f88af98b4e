"""REST of probes: request, follow and list them, and read their calls."""

from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.probe import KINDS, Probe, ProbeCall, ProbeEstimate, ProbeRow, ProbesHeld
from evalboard.contract.vendors import VendorCard
from runs.access import READ
from runs.api import wire
from runs.api.describe import describe, one_of, text
from runs.api.resource import Resource, get, resource, serve
from runs.api.serializers import Object, Strict, Text, read_body
from runs.probes import read as probes
from runs.probes.probes import create_probe, estimate_probe
from runs.probes.read_batches import compare_batches
from runs.probes.vendors import read_vendor_card

FILTERS = {"endpoint": text("its slug"), "kind": one_of(KINDS)}

VENDORS = {
    "endpoints": {**text("slugs of the endpoints, with commas between them"), "required": True},
    "reference": text("slug of the endpoint that the others are compared with"),
    "suite": text("slug of the suite that `verify` used; any unless given"),
    "until": text("a day, or a time in RFC 3339: nothing newer is used"),
}


class ProbeIn(Strict):
    endpoint = Text()
    kind = Text()
    profile = Text(default=None, allow_null=False)
    parameters = Object(default=dict)


PROBE = Resource("probe", Probe, probes.probe_detail, state=probes.probe_state)

probe_list = serve(
    PROBE.listed(
        "probes", "Probes, newest first", ProbeRow, probes.sortable_probes, probes.PROBE_ORDERS, filters=FILTERS
    ),
    PROBE.made("Probe an endpoint", ProbeIn, create_probe, refuses=[404, 409, 422]),
)


@resource(POST=READ)
@describe("POST", "What a probe would take", name="probe_estimate", body=ProbeIn, answer=ProbeEstimate, refuses=[404])
def estimate(request: Request) -> Response:
    """POST returns the calls, tokens and money of a probe, with a probe's body, and stores nothing."""
    return wire.answer(estimate_probe(**read_body(ProbeIn, request)), request)


probe_detail = serve(PROBE.one("A probe, as far as it is"))
call_list = serve(PROBE.listed("probe_calls", "A probe's calls in the order of sending", ProbeCall, probes.probe_calls))
against = serve(get("probes_held", "Two batch probes compared", ProbesHeld, compare_batches, refuses=[409]))
vendors = serve(
    get("vendors", "The vendor card of endpoints", VendorCard, read_vendor_card, query=VENDORS, refuses=[404])
)
