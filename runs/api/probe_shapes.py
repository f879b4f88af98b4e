"""Probes as JSON; shapes.py has what all shapes share."""

from rest_framework.request import Request

from runs.api.probe_answers import Probe, ProbeAsked, ProbeCall, ProbeRow, ProbesHeld
from runs.api.shapes import instant, page_url
from runs.selectors import probe as probes
from runs.selectors.probe_batches import HeldAgainst


def row(found: probes.ProbeRow, request: Request) -> ProbeRow:
    finding = {"state": found.state, "sentence": found.sentence} if found.state else None
    return {**_asked(found, request), "finding": finding}  # type: ignore[typeddict-item]


def probe(found: probes.ProbeDetail, request: Request) -> Probe:
    return {
        **_asked(found.row, request),
        "parameters": found.parameters,
        "progress": {"n_done": found.n_done, "n_total": found.n_total},
        "finding": found.finding,  # type: ignore[typeddict-item]
        "error": found.error or None,
        "workers": list(found.workers),
        "waits_for": list(found.waits_for),
    }


def call(each: probes.CallRow) -> ProbeCall:
    return {
        "prompt": each.prompt,
        "group": each.group,
        "round": each.round,
        "seed": each.seed,
        "text": each.text,
        "tokens": list(each.tokens),
        "finish_reason": each.finish_reason or None,
        "batch_max": each.batch_max,
        "worker": each.worker or None,
        "fingerprint": each.fingerprint or None,
        "error": each.error or None,
    }


def held(found: HeldAgainst) -> ProbesHeld:
    finding = found.finding
    return {
        "first": str(found.first),
        "second": str(found.second),
        "state": finding.state,
        "sentence": finding.sentence,
        "numbers": dict(finding.numbers),
    }


def _asked(found: probes.ProbeRow, request: Request) -> ProbeAsked:
    return {
        "id": str(found.id),
        "endpoint": found.endpoint,
        "kind": found.kind,
        "profile": found.profile_slug,
        "profile_version": found.profile_version,
        "status": found.status,
        "created_by": found.created_by or None,
        "created_at": instant(found.created_at),
        "finished_at": instant(found.finished_at),
        "url": page_url(request, "probe", found.id),
    }
