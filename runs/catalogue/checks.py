"""What the newest capability check of an endpoint says of each parameter."""

from typing import Any

from evalboard.contract.facts import SettingCheck
from evalboard.core.profile import names_calls
from runs.models import ProbeRecord


def read_newest_check(endpoint_id: int) -> dict[str, SettingCheck]:
    """Return the states by parameter; none where no check has ended with a finding."""
    check, rows = _read(endpoint_id)
    if check is None or check.finished_at is None:
        return {}
    return {
        row["parameter"]: SettingCheck(state=row["state"], probe=str(check.pk), at=check.finished_at) for row in rows
    }


def finds_call_names(endpoint_id: int) -> bool:
    """Tell whether the newest check saw another fingerprint with each answer."""
    details = [row["detail"] for row in _read(endpoint_id)[1] if row["parameter"] == "system_fingerprint"]
    return any(names_calls(detail.get("n_distinct", 0), detail.get("n", 0)) for detail in details)


def _read(endpoint_id: int) -> tuple[ProbeRecord | None, list[dict[str, Any]]]:
    """Return the newest check that ended with a finding, and its rows."""
    checks = ProbeRecord.objects.filter(
        endpoint=endpoint_id, kind=ProbeRecord.Kind.CAPABILITY, status=ProbeRecord.Status.FINISHED
    )
    check = checks.order_by("-id").first()
    if check is None or check.finding is None:
        return None, []
    return check, check.finding["numbers"].get("rows", [])
