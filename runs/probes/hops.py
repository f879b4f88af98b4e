"""Pair the probes of a gateway and its direct endpoint, and name a probe's known-good endpoint."""

from collections.abc import Collection
from typing import Any

from django.db.models import Q

from evalboard.contract.probe import ProbeHop
from evalboard.wording import probe_states
from evalboard.wording.hop import HopSide, describe_hop, find_losses
from runs.models import EndpointRecord, ProbeRecord


def hop_of(probe: ProbeRecord) -> ProbeHop | None:
    """Return the gateway pair of a probe with their common conclusion; None if it has no partner."""
    other = _other(probe)
    if other is None:
        return None
    return _pair(*((other, probe) if probe.bypass_of_id else (probe, other)))


def hops_of(probe_ids: Collection[int]) -> dict[str, ProbeHop]:
    """Return probe id → gateway pair, for probes that have a partner."""
    if not probe_ids:
        return {}
    asked_around = ProbeRecord.objects.filter(Q(pk__in=probe_ids) | Q(bypass_of__in=probe_ids), bypass_of__isnull=False)
    both = asked_around.select_related("endpoint", "bypass_of__endpoint").defer("answers", "bypass_of__answers")
    hops: dict[str, ProbeHop] = {}
    for direct in both.order_by("-pk"):
        if (gateway := direct.bypass_of) is not None:
            pair = _pair(gateway, direct)
            hops |= {str(each.pk): pair for each in (gateway, direct)}
    return hops


def _pair(gateway: ProbeRecord, direct: ProbeRecord) -> ProbeHop:
    have_found = gateway.finding is not None and direct.finding is not None
    sides = (_side(direct), _side(gateway)) if have_found else None
    return ProbeHop(
        gateway=gateway.endpoint.slug,
        direct=direct.endpoint.slug,
        gateway_probe=str(gateway.pk),
        direct_probe=str(direct.pk),
        sentence=describe_hop(gateway.kind, *sides) if sides else None,
        losses=find_losses(gateway.kind, *sides) if sides else (),
    )


def describe_control(probe: ProbeRecord) -> str | None:
    """Name the known-good endpoint that a probe is compared with, if any; None for our own engine."""
    if probe.kind in (ProbeRecord.Kind.VERIFY, ProbeRecord.Kind.VENDOR, ProbeRecord.Kind.BORDER):
        return None  # it has its own answers of known origin, a card to be compared on, or prompts of its own
    other, endpoint = _other(probe), probe.endpoint
    if other is not None and not probe.bypass_of_id:
        return f"{other.endpoint.slug}, reached without the gateway: probe {other.pk}, {_outcome(other)}."
    if not endpoint.is_remote:
        return None
    if endpoint.reference is None:
        return "No control. Set a bypass or a reference endpoint to get one."
    known = _newest(endpoint.reference, probe)
    if known is None:
        return f"No control: no such probe of the reference, {endpoint.reference.slug}, had ended before."
    return f"{endpoint.reference.slug}, the endpoint's reference: probe {known.pk}, {_outcome(known)}."


def _other(probe: ProbeRecord) -> ProbeRecord | None:
    if probe.bypass_of_id:
        return ProbeRecord.objects.defer("answers").select_related("endpoint").get(pk=probe.bypass_of_id)
    return probe.bypass_probes.defer("answers").select_related("endpoint").order_by("pk").first()


def _newest(reference: EndpointRecord, probe: ProbeRecord) -> ProbeRecord | None:
    """Return the reference's newest finished probe of this kind before this one."""
    same = ProbeRecord.objects.filter(
        endpoint=reference, kind=probe.kind, status=ProbeRecord.Status.FINISHED, pk__lt=probe.pk
    )
    return same.defer("answers").order_by("-pk").first()


def _outcome(probe: ProbeRecord) -> str:
    if probe.finding is None:
        return str(probe.status)
    return probe_states.describe_state(probe.kind, probe.finding["state"]).word.lower()


def _side(probe: ProbeRecord) -> HopSide:
    finding: dict[str, Any] = probe.finding or {}
    return HopSide(probe.endpoint.slug, finding["state"], finding["numbers"])
