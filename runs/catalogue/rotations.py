"""Rotations: an (endpoint, profile) begins to be served by another stack than before, and its baselines expire."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC

from django.db.models import F, Q, QuerySet

from evalboard.core.profile import NAMELESS, find_moved_fields, is_serving_known
from evalboard.wording.manifest import render_moved
from runs.models import Baseline, Endpoint, Event, Rotation, Run
from runs.store import history
from runs.webhooks import news


@dataclass(frozen=True, slots=True)
class Stack:
    """What serves an (endpoint, profile) now: a fingerprint's id, and the newest rotation or None."""

    fingerprint_id: int
    rotation: Rotation | None

    def since(self) -> str:
        """Return "since 2026-11-20 14:03 UTC (run 7)", for the middle of a sentence."""
        if self.rotation is None:
            return "since later runs"
        return f"since {self.rotation.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC (run {self.rotation.run_id})"


def note_rotation(*, run: Run) -> Rotation | None:
    """Date it where the bucket that a run was just bound to has another fingerprint than what served before.

    Belongs in the transaction that binds the run, so that no run is served by a new stack while a baseline of the
    old one still holds. Two runs bound at the same moment take turns at their endpoint's row. Where nobody knows what
    served, nothing is said: it is equal to nothing, and other than nothing.
    """
    if run.bucket is None or not is_serving_known(run.bucket.fingerprint.manifest):
        return None
    Endpoint.objects.select_for_update(no_key=True).get(pk=run.endpoint_id)
    before = _serving(run, Run.objects.exclude(pk=run.pk))
    if before is None or before.fingerprint_id == run.bucket.fingerprint_id:
        return None
    rotation = Rotation.objects.create(
        endpoint=run.endpoint,
        profile_slug=run.profile.slug,
        before_id=before.fingerprint_id,
        after=run.bucket.fingerprint,
        run=run,
    )
    touched = Baseline.objects.filter(rotation=None, run__endpoint=run.endpoint_id, profile_slug=run.profile.slug)
    n_expired = touched.exclude(run__bucket__fingerprint=run.bucket.fingerprint_id).update(rotation=rotation)
    history.note(run.pk, "rotation", _words(rotation, n_expired), level=Event.Level.WARNING)
    news.tell_of_rotation(rotation)
    return rotation


def newer_stack(run: Run) -> Stack | None:
    """Return what serves the run's (endpoint, profile) now, where that is no longer what served the run.

    Nobody knows what serves the model of a log now.
    """
    return newer_stacks([run]).get(run.pk)


def newer_stacks(runs: Iterable[Run]) -> dict[int, Stack]:
    """Return what `newer_stack` does, by run, for runs that have one; each (endpoint, profile) is looked up once."""
    serving: dict[tuple[int, str], Stack | None] = {}
    newer: dict[int, Stack] = {}
    for run in runs:
        key = run.endpoint_id, run.profile.slug
        if run.source_id is None and key not in serving:
            serving[key] = _serving(run, Run.objects.all())
        now = serving.get(key) if run.source_id is None else None
        if now is None or run.bucket is None or not is_serving_known(run.bucket.fingerprint.manifest):
            continue
        if now.fingerprint_id != run.bucket.fingerprint_id:
            newer[run.pk] = now
    return newer


def known_serving(fingerprint: str) -> Q:
    """Return the condition that somebody knows what served; fingerprint: the lookup that leads to it."""
    source = f"{fingerprint}__manifest__source"
    return Q(**{f"{source}__isnull": True}) | ~Q(**{f"{source}__has_any_keys": list(NAMELESS)})


def _serving(run: Run, among: "QuerySet[Run]") -> Stack | None:
    """Return what serves the run's (endpoint, profile): what the newest rotation led to.

    Where none was noted, it is what served the last of the runs `among` which to look that is known; None where nothing
    has yet.
    """
    newest = Rotation.objects.filter(endpoint=run.endpoint_id, profile_slug=run.profile.slug).order_by("-id").first()
    if newest is not None:
        return Stack(newest.after_id, newest)
    bound = among.filter(endpoint=run.endpoint_id, profile__slug=run.profile.slug, bucket__isnull=False)
    bound = bound.filter(known_serving("bucket__fingerprint"))
    last = bound.order_by(F("started_at").desc(nulls_last=True), "-id")
    fingerprint = last.values_list("bucket__fingerprint", flat=True).first()
    return None if fingerprint is None else Stack(fingerprint, None)


def _words(rotation: Rotation, n_expired: int) -> str:
    before, after = rotation.before, rotation.after
    place = f"{rotation.endpoint} under {rotation.profile_slug}"
    text = f"Rotation: {place} was served by {before} ({before.label}), from this run on by {after} ({after.label})."
    moved = render_moved(find_moved_fields(before.manifest, after.manifest))
    what = f" What moved: {moved}." if moved else ""
    expired = {0: "", 1: " One baseline expired."}.get(n_expired, f" {n_expired} baselines expired.")
    return f"{text}{what}{expired}"
