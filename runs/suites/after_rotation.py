"""After a rotation of a server of others: the reference sets of the baselines that expired run by themselves.

Nobody asked for a rotation, so nobody is there to look what it moved. A reference set says so in little time.
"""

from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from evalboard.core.errors import EvalboardError
from runs.models import Baseline, Endpoint, Event, Rotation, Run
from runs.run import create_run
from runs.store import history
from runs.suites.suites import reference_suite

FIRST_CASES = 200  # stand in for a reference set that nobody has marked
MAX_REPEATS_RUN = 5
WITHIN = timedelta(days=1)  # of an older one, somebody has seen to it or does not want it


def unattended_rotations() -> list[int]:
    """Return the rotations after which reference sets are still to run, by id, oldest first."""
    waiting = Rotation.objects.filter(attended_at=None, at__gt=Now() - WITHIN)
    wanted = waiting.filter(endpoint__engine=Endpoint.Engine.OPENAI, endpoint__rescores=True)
    return list(wanted.order_by("id").values_list("id", flat=True))


def run_reference_sets(rotation_id: int) -> bool:
    """Start a run of the reference set of each baseline that the rotation made expire; once, whoever calls."""
    with transaction.atomic():
        waiting = Rotation.objects.select_for_update(of=("self",), no_key=True).select_related("endpoint")
        rotation = waiting.filter(pk=rotation_id, attended_at=None).first()
        if rotation is None:
            return False
        Rotation.objects.filter(pk=rotation.pk).update(attended_at=Now())
        expired = rotation.expired_baselines.select_related("suite__reference_of__suite", "run__profile", "set_by")
        newest = {baseline.suite_id: baseline for baseline in expired.order_by("id")}
        for baseline in newest.values():
            _run_reference_set(rotation, baseline)
    return True


def _run_reference_set(rotation: Rotation, baseline: Baseline) -> None:
    """Start one, or say in the history of the run that dates the rotation why not.

    It waits among what the person who set the baseline has in the queue, and counts to that person's limit: a server
    that rotates again and again fills nobody's queue.
    """
    suite = baseline.suite
    try:
        with transaction.atomic():
            slug = suite.slug if suite.reference_of else reference_suite(slug=suite.slug, first=FIRST_CASES).suite.slug
            run = create_run(
                suite=slug,
                endpoint=rotation.endpoint.slug,
                profile=rotation.profile_slug,
                repeats=min(baseline.run.repeats.filter(cases=None).count(), MAX_REPEATS_RUN),
                labels={"after rotation": str(rotation.pk)},
                user=baseline.set_by,
            )
    except EvalboardError as problem:
        text = f"The reference set of {suite.slug} could not be run after the rotation: {problem.detail}"
        history.note(rotation.run_id, "rescore_failed", text, level=Event.Level.WARNING)
        return
    rotation.reference_runs.add(run)
    earlier = _earlier_run(run, rotation)
    compare = f" Compare it with run {earlier.pk}, which the earlier stack served." if earlier else ""
    text = f"The baseline of {suite.slug} expired, so its reference set runs by itself, as run {run.pk}.{compare}"
    history.note(rotation.run_id, "rescored", text)


def _earlier_run(run: Run, rotation: Rotation) -> Run | None:
    """The newest run of the same reference set that the stack of before the rotation served."""
    same = Run.objects.filter(suite_version=run.suite_version_id, endpoint=run.endpoint_id, status=Run.Status.FINISHED)
    return same.filter(bucket__fingerprint=rotation.before_id).order_by("-id").first()
