"""Baselines: a person chooses the run that candidates of a model line are compared with, and why."""

from typing import Any

from django.db import transaction

from evalboard.core.errors import InvalidInput
from runs import acts
from runs.access import SIGN
from runs.catalogue import newer_stack
from runs.models import BaselineRecord, EndpointRecord, RunRecord, Suite
from runs.run import locked
from runs.store import changes, history, require_row

MAX_REASON = 2000


def set_baseline(*, suite: str, run: int, reason: str, user: Any) -> BaselineRecord:
    """Make a run the current baseline of its suite, model line and profile.

    Raises NotFound, InvalidInput with fields, or Conflict where the run has not finished, was served by several
    buckets or by a stack that has been rotated away since, or is the current baseline already.
    """
    stored = require_row(Suite.objects.filter(slug=suite), f"There is no suite {suite}.")
    with transaction.atomic():
        chosen = locked(run)
        if chosen.suite_version.suite_id != stored.pk:
            raise InvalidInput("The baseline is not valid.", fields={"run": f"Must be a run of suite {suite}."})
        if not reason.strip() or len(reason) > MAX_REASON or "\0" in reason:
            fields = {"reason": f"Say why, in at most {MAX_REASON:,} characters."}
            raise InvalidInput("The baseline is not valid.", fields=fields)
        # A rotation that is being noted goes before or after: it locks the same row.
        EndpointRecord.objects.select_for_update(no_key=True).get(pk=chosen.endpoint_id)
        acts.require("baseline", chosen)
        line, profile = chosen.endpoint.line, chosen.profile.slug
        made = BaselineRecord.objects.create(
            suite=stored, line=line, profile_slug=profile, run=chosen, reason=reason.strip(), set_by=user
        )
        place = f"{suite}, model line {line}, profile {profile}"
        history.note(run, "baseline", f"Made the baseline of {place} by {user.get_username()}: {made.reason}")
        changes.run_changed(run_id=run)
    return made


def current_baseline(*, suite: Suite, line: str, profile_slug: str) -> BaselineRecord | None:
    """Return the newest one, whether it has expired or not."""
    baselines = BaselineRecord.objects.filter(suite=suite, line=line, profile_slug=profile_slug)
    return baselines.select_related("run", "rotation").order_by("-id").first()


@acts.rule("baseline", RunRecord, SIGN)
def _baseline(run: RunRecord) -> acts.No | None:
    if run.is_judge:
        return acts.No(f"Run {run.pk} is a judge's, and no baseline.", is_shown=False)
    if run.status != RunRecord.Status.FINISHED:
        return acts.No(f"Run {run.pk} is {run.status}; only a run that has finished can be a baseline.")
    known = acts.surroundings(run)
    if len(known.bucket_ids) != 1 or run.bucket is None:
        text = f"{len(known.bucket_ids)} buckets served run {run.pk}; a baseline keeps to one."
        return acts.No(f"{text} Run the suite again on one backend.")
    if (newer := newer_stack(run)) is not None:
        text = (
            f"Run {run.pk} was served by {run.bucket.fingerprint}; another stack serves endpoint {run.endpoint} under"
        )
        words = f"{text} profile {run.profile.slug} {newer.since()}. Run the suite again and choose that run."
        return acts.No(words)
    is_current = known.current_baseline == run.pk
    return acts.No(f"Run {run.pk} is the current baseline already.", is_shown=False) if is_current else None
