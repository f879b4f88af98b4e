"""Decode a case now, on each of our endpoints that ran it."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from evalboard.core.errors import Conflict, NotFound
from runs.models import Case, ReplayRecord, RunRecord
from runs.replays import create_replay


def newest_own_runs(slug: str, case_id: str) -> QuerySet[RunRecord]:
    """Return the newest run that has answers of each of our endpoints that ran the case."""
    versions = Case.objects.filter(suite_version__suite__slug=slug, case_id=case_id).values("suite_version")
    answered = RunRecord.objects.filter(
        suite_version__in=versions,
        source=None,
        is_reported=False,
        status__in=(RunRecord.Status.FINISHED, RunRecord.Status.INCOMPLETE),
    )
    return answered.order_by("endpoint__slug", "-ran_at", "-id").distinct("endpoint__slug")


def decode_case(*, slug: str, case_id: str, user: Any = None) -> tuple[ReplayRecord, ...]:
    """Request a replay of the newest run of each endpoint; all of them, or none.

    Raises NotFound, Conflict if no endpoint of ours ran the case, and what `create_replay` raises.
    """
    if not Case.objects.filter(suite_version__suite__slug=slug, case_id=case_id).exists():
        raise NotFound(f"No version of a suite {slug} has a case {case_id}.")
    runs = list(newest_own_runs(slug, case_id))
    if not runs:
        raise Conflict(f"No endpoint of ours has run the case {case_id}. Start a run of {slug} on one first.")
    with transaction.atomic():
        return tuple(create_replay(run_id=run.pk, case_id=case_id, user=user) for run in runs)
