"""What the newest capability check of an endpoint says of each parameter."""

from evalboard.contract.facts import SettingCheck
from runs.models import ProbeRecord


def read_newest_check(endpoint_id: int) -> dict[str, SettingCheck]:
    """Return the states by parameter; none where no check has ended with a finding."""
    checks = ProbeRecord.objects.filter(
        endpoint=endpoint_id, kind=ProbeRecord.Kind.CAPABILITY, status=ProbeRecord.Status.FINISHED
    )
    check = checks.order_by("-id").first()
    if check is None or check.finding is None or check.finished_at is None:
        return {}
    return {
        row["parameter"]: SettingCheck(state=row["state"], probe=str(check.pk), at=check.finished_at)
        for row in check.finding["numbers"].get("rows", ())
    }
