"""Endpoints, profiles and policies as the API, the settings page and the forms have them."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from evalboard.contract import catalogue as contract
from evalboard.contract.facts import SettingCheck
from evalboard.core.profile import OBSERVED, SIZES, names_calls
from runs.models import EndpointRecord, PolicyRecord, ProbeRecord, ProfileRecord, Suite

ENDPOINT_ORDERS = {name: name for name in ("slug", "model_name", "pool")}


def endpoint_rows() -> tuple[contract.Endpoint, ...]:
    """List all endpoints by slug."""
    return tuple(map(endpoint_row, EndpointRecord.objects.select_related("reference", "bypass").order_by("slug")))


def endpoint_slugs(engines: Collection[str] | None = None) -> tuple[str, ...]:
    """List the slugs of all endpoints, or of those with one of these engines."""
    endpoints = EndpointRecord.objects.all() if engines is None else EndpointRecord.objects.filter(engine__in=engines)
    return tuple(endpoints.order_by("slug").values_list("slug", flat=True))


def profile_rows() -> tuple[contract.Profile, ...]:
    """List the newest version of every profile, by slug."""
    return tuple(map(profile_row, ProfileRecord.objects.order_by("slug", "-version").distinct("slug")))


def decoding_profiles() -> tuple[str, ...]:
    """List the slugs of profiles that can decode: all but those observed in logs."""
    newest = ProfileRecord.objects.order_by("slug", "-version").distinct("slug").values_list("slug", "settings")
    return tuple(slug for slug, settings in newest if settings.get("batch_class") != OBSERVED)


def sampling_profile() -> str:
    """Return the first profile that decodes at a temperature above 0, "" where there is none."""
    temperatures = ((row.slug, row.settings["sampling"].get("temperature")) for row in profile_rows())
    known = (slug for slug, given in temperatures if isinstance(given, int | float) and given > 0)
    return next((slug for slug in known if slug in decoding_profiles()), "")


def policy_rows() -> tuple[contract.Policy, ...]:
    """List the newest version of every policy by slug, with the suites that use any version of it."""
    newest = PolicyRecord.objects.select_related("created_by").order_by("slug", "-version").distinct("slug")
    suites: dict[str, list[str]] = defaultdict(list)
    for policy, suite in Suite.objects.exclude(policy=None).order_by("slug").values_list("policy__slug", "slug"):
        suites[policy].append(suite)
    return tuple(policy_row(policy, suites=tuple(suites[policy.slug])) for policy in newest)


def endpoint_row(endpoint: EndpointRecord) -> contract.Endpoint:
    return contract.Endpoint(**endpoint_fields(endpoint))


def endpoint_fields(endpoint: EndpointRecord) -> dict[str, Any]:
    """Return the fields of `EndpointRecord`, which a longer answer has too."""
    is_remote = endpoint.is_remote
    is_of_hub = endpoint.engine == EndpointRecord.Engine.VLLM and (
        bool(endpoint.model_repo) or contract.is_in_repo(endpoint.model_adapter)
    )
    reference, bypass = endpoint.reference, endpoint.bypass
    rests_until = endpoint.rests_until
    rests = rests_until is not None and rests_until > timezone.now()
    return {
        "slug": endpoint.slug,
        "engine": endpoint.engine,
        "model": _model(endpoint),
        "dtype": endpoint.dtype,
        "quantization": endpoint.quantization,
        "line": endpoint.line,
        "max_model_len": endpoint.max_model_len,
        **{name: None if is_remote else getattr(endpoint, name) for name in SIZES},
        "pool": endpoint.pool,
        "base_url": endpoint.base_url if is_remote else None,
        "api": endpoint.api if is_remote else None,
        "auth": endpoint.auth if is_remote or is_of_hub else None,
        "headers": {name: _header(value) for name, value in endpoint.headers.items()} if is_remote else None,
        "extra_body": endpoint.extra_body if is_remote else None,
        "endings": endpoint.endings,
        "concurrency": endpoint.concurrency if is_remote else None,
        "calls_per_minute": endpoint.calls_per_minute if is_remote else None,
        "price": price_of(endpoint.price),
        "reference": reference.slug if reference else None,
        "bypass": bypass.slug if bypass else None,
        "rescores": endpoint.rescores if is_remote else None,
        "daily_check": endpoint.daily_check if is_remote else None,
        "ignores_fingerprint": endpoint.ignores_fingerprint if is_remote else None,
        "rests_until": rests_until if rests else None,
        "rest_reason": endpoint.rest_reason if rests else None,
        "n_failures": endpoint.n_failures if rests else None,
    }


def price_of(stored: Mapping[str, str]) -> contract.Price | None:
    return contract.Price.from_stored(stored) if stored else None


def _header(value: str | dict[str, str]) -> str | contract.HeaderFromVariable:
    return value if isinstance(value, str) else contract.HeaderFromVariable(env=value["env"])


def _model(endpoint: EndpointRecord) -> contract.ModelAtPath | contract.ModelInRepo | contract.ModelByName:
    if endpoint.is_remote:
        return contract.ModelByName(name=endpoint.model_repo)
    adapter = endpoint.model_adapter or None
    if endpoint.model_revision:
        return contract.ModelInRepo(repo=endpoint.model_repo, revision=endpoint.model_revision, adapter=adapter)
    return contract.ModelAtPath(path=endpoint.model_repo or endpoint.model_path, adapter=adapter)


def profile_row(profile: ProfileRecord) -> contract.Profile:
    return contract.Profile.from_record(profile)


def policy_row(policy: PolicyRecord, *, suites: tuple[str, ...] = ()) -> contract.Policy:
    return contract.Policy.from_record(
        policy,
        suites=suites,
        created_by=policy.created_by.get_username() if policy.created_by else None,
    )


def read_newest_check(endpoint_id: int, *, before: datetime | None = None) -> dict[str, SettingCheck]:
    """Return the states by parameter; none where no check has ended with a finding.

    before: it ended by then.
    """
    check, rows = _read(endpoint_id, before)
    if check is None or check.finished_at is None:
        return {}
    return {
        row["parameter"]: SettingCheck(state=row["state"], probe=str(check.pk), at=check.finished_at) for row in rows
    }


def honours_logprobs(endpoint_id: int, *, before: datetime | None = None) -> bool:
    """Tell whether the newest check, or the newest that ended `before`, saw logprobs honoured."""
    check = read_newest_check(endpoint_id, before=before).get("logprobs")
    return check is not None and check.state == "honoured"


def finds_call_names(endpoint_id: int) -> bool:
    """Tell whether the newest check saw another fingerprint with each answer."""
    details = [row["detail"] for row in _read(endpoint_id)[1] if row["parameter"] == "system_fingerprint"]
    return any(names_calls(detail.get("n_distinct", 0), detail.get("n", 0)) for detail in details)


def read_check_rows(endpoint_id: int) -> list[dict[str, Any]]:
    """Return what the newest check with a finding saw of each parameter; none without one."""
    return _read(endpoint_id)[1]


def _read(endpoint_id: int, before: datetime | None = None) -> tuple[ProbeRecord | None, list[dict[str, Any]]]:
    """Return the newest check that ended with a finding, and its rows. before: it ended by then."""
    checks = ProbeRecord.objects.filter(
        endpoint=endpoint_id, kind=ProbeRecord.Kind.CAPABILITY, status=ProbeRecord.Status.FINISHED
    )
    if before is not None:
        checks = checks.filter(finished_at__lte=before)
    check = checks.order_by("-id").first()
    if check is None or check.finding is None:
        return None, []
    return check, check.finding["numbers"].get("rows", [])
