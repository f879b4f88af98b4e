"""Run the reference sets of an endpoint's baselines, automatically after a rotation or on request.

A rotation is unexpected, and a reference set shows quickly what it changed. It costs calls, so the endpoint decides.
"""

from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from evalboard.core.errors import Conflict, EvalboardError
from runs.baselines import current_baselines, held_against
from runs.models import BaselineRecord, Event, Rotation, RunRecord
from runs.run import create_run
from runs.store import history
from runs.suites.suites import reference_suite

FIRST_CASES = 200  # used if no reference set is marked
MAX_REPEATS_RUN = 5


def run_reference_sets(rotation_id: int) -> bool:
    """Start the reference set of each baseline that a rotation ended, once. Return False if done."""
    with transaction.atomic():
        waiting = Rotation.objects.select_for_update(of=("self",), no_key=True).select_related("endpoint")
        rotation = waiting.filter(pk=rotation_id, attended_at=None).first()
        if rotation is None:
            return False
        Rotation.objects.filter(pk=rotation.pk).update(attended_at=Now())
        expired = rotation.expired_baselines.select_related("suite__reference_of__suite", "run__endpoint", "set_by")
        newest = {(each.suite_id, each.profile_slug): each for each in expired.order_by("id")}
        for baseline in newest.values():
            _run_reference_set(rotation, baseline)
    return True


def _run_reference_set(rotation: Rotation, baseline: BaselineRecord) -> None:
    """Start one under the baseline's profile, or keep with the rotation why not.

    It waits among what the person who set the baseline has in the queue, and counts to that person's limit: a server
    that rotates again and again fills nobody's queue.
    """
    suite = baseline.suite
    try:
        with transaction.atomic():
            run = _ask_for_reference_set(baseline, labels={"after rotation": str(rotation.pk)}, user=baseline.set_by)
    except EvalboardError as problem:
        text = f"The reference set of {suite.slug} could not be run after the rotation: {problem.detail}"
        rotation.problem = "\n".join(filter(None, (rotation.problem, text)))
        rotation.save(update_fields=["problem"])
        _note(rotation, "rescore_failed", text, level=Event.Level.WARNING)
        return
    rotation.reference_runs.add(run)
    earlier = held_against(rotation, run)
    compare = f" It is compared with run {earlier}, which the earlier stack served." if earlier else ""
    text = f"The baseline of {suite.slug} expired, so its reference set runs automatically, as run {run.pk}.{compare}"
    _note(rotation, "rescored", text)


def _note(rotation: Rotation, code: str, text: str, *, level: str = Event.Level.INFO) -> None:
    """Note it in the history of the run that shows the rotation; for a probe there is none."""
    if rotation.run_id is not None:
        history.note(rotation.run_id, code, text, level=level)


def run_reference_sets_on(*, endpoint: str, user: Any) -> tuple[RunRecord, ...]:
    """Start the reference set of each current baseline on an endpoint: all of them or none.

    Raises Conflict if there is no such baseline, and what `create_run` raises.
    """
    current = [int(row.id) for row in current_baselines() if row.run.endpoint == endpoint]
    if not current:
        raise Conflict(f"No baseline uses endpoint {endpoint}: nothing says which suite to run.")
    baselines = BaselineRecord.objects.filter(pk__in=current).select_related("suite__reference_of", "run__endpoint")
    with transaction.atomic():
        return tuple(_ask_for_reference_set(each, labels={}, user=user) for each in baselines.order_by("id"))


def _ask_for_reference_set(baseline: BaselineRecord, *, labels: dict[str, str], user: Any) -> RunRecord:
    """Start a reference set like the baseline ran. Raises as `reference_suite` and `create_run`."""
    suite = baseline.suite
    slug = suite.slug if suite.reference_of else reference_suite(slug=suite.slug, first=FIRST_CASES).suite.slug
    return create_run(
        suite=slug,
        endpoint=baseline.run.endpoint.slug,
        profile=baseline.profile_slug,
        repeats=min(baseline.run.repeats.filter(cases=None).count(), MAX_REPEATS_RUN),
        labels=labels,
        user=user,
    )
