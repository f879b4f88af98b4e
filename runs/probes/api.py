"""REST of probes: request, follow and list them, and read their calls."""

from evalboard.contract.probe import KINDS, Probe, ProbeCall, ProbeRow, ProbesHeld
from evalboard.contract.vendors import VendorCard
from runs.api.describe import one_of, text
from runs.api.resource import Resource, get, serve
from runs.api.serializers import Object, Strict, Text
from runs.probes import read as probes
from runs.probes.probes import create_probe
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
probe_detail = serve(PROBE.one("A probe, as far as it is"))
call_list = serve(PROBE.listed("probe_calls", "A probe's calls in the order of sending", ProbeCall, probes.probe_calls))
against = serve(get("probes_held", "Two batch probes compared", ProbesHeld, compare_batches, refuses=[409]))
vendors = serve(
    get("vendors", "The vendor card of endpoints", VendorCard, read_vendor_card, query=VENDORS, refuses=[404])
)
