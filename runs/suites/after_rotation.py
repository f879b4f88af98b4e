"""After a rotation of a server of others: the reference sets of the baselines that expired run by themselves.

Nobody asked for a rotation, so nobody is there to look what it moved. A reference set says so in little time. It costs
calls, so it is done where the endpoint says so.
"""

from django.db import transaction
from django.db.models.functions import Now

from evalboard.core.errors import EvalboardError
from runs.baselines import held_against
from runs.models import Baseline, Event, Rotation
from runs.run import create_run
from runs.store import history
from runs.suites.suites import reference_suite

FIRST_CASES = 200  # stand in for a reference set that nobody has marked
MAX_REPEATS_RUN = 5


def run_reference_sets(rotation_id: int) -> bool:
    """Start a run of the reference set of each baseline that the rotation made expire; once, whoever calls."""
    with transaction.atomic():
        waiting = Rotation.objects.select_for_update(of=("self",), no_key=True).select_related("endpoint")
        rotation = waiting.filter(pk=rotation_id, attended_at=None).first()
        if rotation is None:
            return False
        Rotation.objects.filter(pk=rotation.pk).update(attended_at=Now())
        expired = rotation.expired_baselines.select_related("suite__reference_of__suite", "run__profile", "set_by")
        newest = {(each.suite_id, each.profile_slug): each for each in expired.order_by("id")}
        for baseline in newest.values():
            _run_reference_set(rotation, baseline)
    return True


def _run_reference_set(rotation: Rotation, baseline: Baseline) -> None:
    """Start one under the baseline's profile, or keep with the rotation why not.

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
                profile=baseline.profile_slug,
                repeats=min(baseline.run.repeats.filter(cases=None).count(), MAX_REPEATS_RUN),
                labels={"after rotation": str(rotation.pk)},
                user=baseline.set_by,
            )
    except EvalboardError as problem:
        text = f"The reference set of {suite.slug} could not be run after the rotation: {problem.detail}"
        rotation.problem = "\n".join(filter(None, (rotation.problem, text)))
        rotation.save(update_fields=["problem"])
        _note(rotation, "rescore_failed", text, level=Event.Level.WARNING)
        return
    rotation.reference_runs.add(run)
    earlier = held_against(rotation, run)
    compare = f" It is held against run {earlier}, which the earlier stack served." if earlier else ""
    text = f"The baseline of {suite.slug} expired, so its reference set runs by itself, as run {run.pk}.{compare}"
    _note(rotation, "rescored", text)


def _note(rotation: Rotation, code: str, text: str, *, level: str = Event.Level.INFO) -> None:
    """Tell the history of the run that dates the rotation; a probe has none, and its rotation's row says it all."""
    if rotation.run_id is not None:
        history.note(rotation.run_id, code, text, level=level)
