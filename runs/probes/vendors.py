"""Put the newest findings of endpoints that claim one model side by side: the vendor card."""

import json
import shlex
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.utils.dateparse import parse_date, parse_datetime

from evalboard.contract import vendors as contract
from evalboard.core.errors import InvalidInput
from evalboard.core.probes import PARAMETERS, VENDOR_ROWS, judge_vendor_facts
from evalboard.wording.capability import LABELS as PARAMETER_LABELS
from evalboard.wording.capability import describe_row
from evalboard.wording.numbers import capital
from evalboard.wording.run import describe_price
from evalboard.wording.vendors import LABELS, MIXES, ROWS, describe_vendor_row
from runs.models import BucketRecord, EndpointRecord, ProbeRecord
from runs.run import named_endpoint, named_suite_version

MAX_ENDPOINTS = 20
MAX_COMMANDS = 6
PARAMETER = "parameter."  # before the name of a row of the capability check
OPENROUTER, AZURE = "openrouter.ai", (".openai.azure.com", ".services.ai.azure.com")
LITELLM = "litellm"
# Of a verification, by its state.
_VERIFIED = {
    "same_stack": "good",
    "same_model_other_numerics": "good",
    "other_model": "fault",
    "too_few_tokens": "unclear",
}
_OF_PARAMETERS = {"honoured": "good", "not_asked": "not_measured"}

Kind = ProbeRecord.Kind


def read_vendor_card(*, endpoints: str, suite: str = "", reference: str = "", until: str = "") -> contract.VendorCard:
    """Return the card of endpoints. Raises NotFound and InvalidInput.

    endpoints: slugs, with commas between them. suite: of the verifications to use; "" for any. reference: the endpoint
    whose vendor probe the others' are compared with. until: a day or a time, after which nothing is used.
    """
    slugs, before = [slug.strip() for slug in endpoints.split(",") if slug.strip()], _parse_until(until)
    if not 1 <= len(slugs) <= MAX_ENDPOINTS or len(set(slugs)) < len(slugs):
        words = f"Give the slugs of 1 to {MAX_ENDPOINTS} endpoints, each of them once."
        raise InvalidInput("The query is not valid.", fields={"endpoints": words})
    served = [named_endpoint(slug) for slug in slugs]
    compared_with = named_endpoint(reference) if reference else None
    if suite:
        named_suite_version(suite, None)
    columns = [_read_column(endpoint, compared_with, suite, before) for endpoint in served]
    names = [*VENDOR_ROWS, "price", "verify", *(f"{PARAMETER}{name}" for name in PARAMETERS)]
    return contract.VendorCard(
        suite=suite or None,
        reference=reference or None,
        until=before,
        endpoints=tuple(_describe_column(endpoint, before) for endpoint in served),
        rows=tuple(
            contract.VendorRow(
                row=name, label=_label(name), cells=tuple(cells.get(name, NOT_MEASURED) for cells in columns)
            )
            for name in names
        ),
    )


NOT_MEASURED = contract.VendorCell(
    state="not_measured", sentence=ROWS.write("not_measured"), n=None, at=None, probe=None
)


def _parse_until(text: str) -> datetime | None:
    """Return the end of a day, or a time; None for "". Raises InvalidInput."""
    if not text:
        return None
    try:
        day = parse_date(text)
        at = parse_datetime(text) if day is None else datetime.combine(day, time(tzinfo=UTC)) + timedelta(days=1)
    except (ValueError, OverflowError):  # the shape of a date, but no such day, or none after it
        at = None
    if at is None or at.tzinfo is None:
        words = "Must be a day as 2026-11-20, or a time in RFC 3339 as 2026-11-20T12:00:00Z."
        raise InvalidInput("The query is not valid.", fields={"until": words})
    return at


def _label(name: str) -> str:
    return PARAMETER_LABELS[name.removeprefix(PARAMETER)] if name.startswith(PARAMETER) else LABELS[name]


def _read_column(
    endpoint: EndpointRecord, reference: EndpointRecord | None, suite: str, until: datetime | None
) -> dict[str, contract.VendorCell]:
    """Return the cells of an endpoint that were measured, by row."""
    cells: dict[str, contract.VendorCell] = {}
    probe = _newest(endpoint, Kind.VENDOR, until)
    if probe is not None:
        known = {} if reference is None or reference == endpoint else {"parameters": probe.parameters}
        other = _newest(reference, Kind.VENDOR, until, **known) if reference is not None and known else None
        facts = [each.finding["numbers"]["facts"] for each in (probe, other) if each is not None and each.finding]
        cells |= {row["row"]: _cell(probe, row) for row in judge_vendor_facts(*facts)}
        if reference == endpoint:
            own = {"sentence": ROWS.write("is_reference")}
            cells |= {name: cell.model_copy(update=own) for name, cell in cells.items() if cell.state == "not_measured"}
    if (check := _newest(endpoint, Kind.CAPABILITY, until)) is not None and check.finding:
        for row in check.finding["numbers"]["rows"]:
            state = _OF_PARAMETERS.get(row["state"], row["state"])
            cells[f"{PARAMETER}{row['parameter']}"] = _dated(check, state, describe_row(row))
    suite_filter = {"parameters__suite": suite} if suite else {}
    if (verified := _newest(endpoint, Kind.VERIFY, until, **suite_filter)) is not None and verified.finding:
        finding = verified.finding
        cells["verify"] = _dated(verified, _VERIFIED.get(finding["state"], "unclear"), finding["sentence"])
    price = probe.price if probe is not None else endpoint.price if until is None else {}
    if price:
        cells["price"] = contract.VendorCell(
            state="measured",
            sentence=f"{capital(describe_price(price))}.",
            n=None,
            at=None if probe is None else probe.finished_at,
            probe=None if probe is None else str(probe.pk),
        )
    return cells


def _newest(endpoint: EndpointRecord, kind: str, until: datetime | None, **fields: Any) -> ProbeRecord | None:
    """Return the newest finished probe with enough answers."""
    probes = ProbeRecord.objects.filter(endpoint=endpoint, kind=kind, status=ProbeRecord.Status.FINISHED, **fields)
    probes = probes.exclude(finding__state="incomplete").defer("answers").order_by("-pk")
    return (probes if until is None else probes.filter(finished_at__lte=until)).first()


def _cell(probe: ProbeRecord, row: Mapping[str, Any]) -> contract.VendorCell:
    return _dated(probe, row["state"], describe_vendor_row(row), row["detail"].get("n"))


def _dated(probe: ProbeRecord, state: str, sentence: str, n: int | None = None) -> contract.VendorCell:
    return contract.VendorCell(state=state, sentence=sentence, n=n, at=probe.finished_at, probe=str(probe.pk))


# --- one vendor of several


def _describe_column(endpoint: EndpointRecord, until: datetime | None) -> contract.VendorColumn:
    probe = _newest(endpoint, Kind.VENDOR, until)
    facts = probe.finding["numbers"]["facts"] if probe is not None and probe.finding else {"builds": {}, "models": {}}
    code, options = _find_mix(endpoint, probe, facts)
    return contract.VendorColumn(
        endpoint=endpoint.slug,
        model=endpoint.model_repo or endpoint.model_path,
        mixes=MIXES.write(code) if code else None,
        commands=tuple(_command(endpoint, name, changed) for name, changed in options[:MAX_COMMANDS]),
    )


def _find_mix(
    endpoint: EndpointRecord, probe: ProbeRecord | None, facts: Mapping[str, Any]
) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """Return why several vendors may answer, and of each vendor its name and its endpoint's fields."""
    host = urlsplit(endpoint.base_url).hostname or ""
    is_several = len(facts["builds"]) > 1 or len(facts["models"]) > 1
    if host == OPENROUTER or host.endswith(f".{OPENROUTER}"):
        given = endpoint.extra_body.get("provider") or {}
        if isinstance(given, Mapping) and len(given.get("only") or ()) == 1 and given.get("allow_fallbacks") is False:
            return "", []
        names = _list_backends(probe, "openrouter") or ["PROVIDER"]
        pinned = [(name, {"provider": {"only": [name], "allow_fallbacks": False}}) for name in names]
        return "openrouter", [(name, {"extra_body": {**endpoint.extra_body, **body}}) for name, body in pinned]
    if host.endswith(AZURE):
        return ("azure", [("DEPLOYMENT", {"model": "DEPLOYMENT"})]) if is_several else ("", [])
    if is_several and _list_backends(probe, LITELLM):
        return "litellm", [("TAG", {"extra_body": {**endpoint.extra_body, "tags": ["TAG"]}})]
    return "", []


def _list_backends(probe: ProbeRecord | None, source: str) -> list[str]:
    """Return the backends of a probe's answers that this source names."""
    if probe is None:
        return []
    buckets: Iterable[BucketRecord] = probe.buckets.select_related("fingerprint")
    known = [bucket.fingerprint.manifest.get("source", {}) for bucket in buckets]
    return sorted({each["backend"] for each in known if each.get("backend_from") == source})


def _command(endpoint: EndpointRecord, name: str, changed: Mapping[str, Any]) -> str:
    slug = "-".join([endpoint.slug, *"".join(char if char.isalnum() else " " for char in name.lower()).split()])
    words = ["evalboard", "endpoint", "add", slug, "--base-url", endpoint.base_url]
    words += ["--model", changed.get("model", endpoint.model_repo)]
    if endpoint.auth:
        words += ["--key-file" if endpoint.auth.startswith("/") else "--key-env", endpoint.auth]
    body = changed.get("extra_body", endpoint.extra_body)
    words += ["--extra-body", json.dumps(body, separators=(",", ":"), ensure_ascii=False)] if body else []
    return shlex.join(words)
