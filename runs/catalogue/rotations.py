"""Rotations: an endpoint begins to be served by another stack than before, and its baselines expire.

One rule, for runs and for probes: the bucket that gave most of the answers says which stack serves. Of an engine of
ours the profile is part of the stack, so each (endpoint, profile) has its own; where others serve, what our profiles
say changes nothing, and the endpoint has one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from evalboard.core.profile import NAMELESS, find_moved_fields, is_serving_known
from evalboard.wording.manifest import render_moved
from runs.models import BaselineRecord, EndpointRecord, Event, ProbeRecord, Rotation, RunRecord
from runs.store import history
from runs.webhooks import news

Place = tuple[int, str]  # an endpoint's id and a profile's slug, "" where the stack is the same under every profile


@dataclass(frozen=True, slots=True)
class CurrentStack:
    """The present stack of an endpoint: its fingerprint's id, and the newest rotation or None."""

    fingerprint_id: int
    rotation: Rotation | None

    def since(self) -> str:
        """Return "since 2026-11-20 14:03 UTC (run 7)", for the middle of a sentence."""
        if self.rotation is None:
            return "since later runs"
        rotation = self.rotation
        shown_by = f"probe {rotation.probe_id}" if rotation.run_id is None else f"run {rotation.run_id}"
        return f"since {rotation.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC ({shown_by})"


def note_rotation(*, shown_by: RunRecord | ProbeRecord) -> Rotation | None:
    """Record a rotation if the bucket of a run or a probe has a fingerprint other than the last one.

    Belongs in the transaction that stores the bucket, so that nothing is served by a new stack while a baseline of the
    old one still holds. Two that are stored at the same moment take turns at their endpoint's row. Where nobody knows
    what served, nothing is said: it is equal to nothing, and other than nothing.
    """
    bucket = shown_by.bucket
    if bucket is None or not is_serving_known(bucket.fingerprint.manifest):
        return None
    endpoint = EndpointRecord.objects.select_for_update(no_key=True).get(pk=shown_by.endpoint_id)
    place = place_of(shown_by)
    before = _serving(place, but_for=shown_by)
    if before is None or before.fingerprint_id == bucket.fingerprint_id or _is_older(shown_by, before):
        return None
    run = shown_by if isinstance(shown_by, RunRecord) else None
    rotation = Rotation.objects.create(
        endpoint=endpoint,
        profile_slug=place[1],
        before_id=before.fingerprint_id,
        after=bucket.fingerprint,
        run=run,
        probe=shown_by if isinstance(shown_by, ProbeRecord) else None,
    )
    touched = BaselineRecord.objects.filter(_under("profile_slug", place), rotation=None, run__endpoint=place[0])
    n_expired = touched.exclude(run__bucket__fingerprint=bucket.fingerprint_id).update(rotation=rotation)
    if run is not None:
        history.note(run.pk, "rotation", _words(rotation, n_expired), level=Event.Level.WARNING)
    news.tell_of_rotation(rotation)
    return rotation


def _is_older(shown_by: RunRecord | ProbeRecord, now: CurrentStack) -> bool:
    """Tell whether an external server's answers began before the newest rotation, which they then precede."""
    began = shown_by.started_at if isinstance(shown_by, RunRecord) else shown_by.created_at
    newest = now.rotation
    return shown_by.endpoint.is_remote and newest is not None and began is not None and began < newest.at


def place_of(work: RunRecord | ProbeRecord) -> Place:
    """Return where the stack that a run or a probe met is looked for."""
    return work.endpoint_id, "" if work.endpoint.is_remote else work.profile.slug


def is_of(rotation: Rotation, *, endpoint_id: int, profile_slug: str) -> bool:
    """Tell whether a rotation concerns an endpoint and a profile."""
    return rotation.endpoint_id == endpoint_id and rotation.profile_slug in ("", profile_slug)


def serving_now(work: RunRecord | ProbeRecord) -> CurrentStack | None:
    """Return the stack behind the work's endpoint and profile, by all other work; None if unknown."""
    return _serving(place_of(work), but_for=work)


def newer_stack(run: RunRecord) -> CurrentStack | None:
    """Return the stack that now serves the run's endpoint and profile, if it is not the run's own.

    None for runs of logs, whose stack is unknown.
    """
    return newer_stacks([run]).get(run.pk)


def newer_stacks(runs: Iterable[RunRecord]) -> dict[int, CurrentStack]:
    """Return what `newer_stack` does, by run, for runs that have one; in two statements for all."""
    known = [run for run in runs if run.source_id is None and run.bucket is not None]
    own = {run.pk: run.bucket.fingerprint for run in known if run.bucket is not None}
    own = {pk: fingerprint for pk, fingerprint in own.items() if is_serving_known(fingerprint.manifest)}
    here = {"endpoint": OuterRef("endpoint")}
    is_under = Q(endpoint__engine=EndpointRecord.Engine.OPENAI) | Q(profile__slug=OuterRef("profile__slug"))
    turned = Rotation.objects.filter(**here, profile_slug__in=["", OuterRef("profile__slug")]).order_by("-id")
    ran = RunRecord.objects.filter(is_under, known_serving("bucket__fingerprint"), **here, bucket__isnull=False)
    last = ran.order_by(F("started_at").desc(nulls_last=True), "-id").values("bucket__fingerprint")
    serving = RunRecord.objects.filter(pk__in=own).annotate(
        turned=Subquery(turned.values("pk")[:1]), after=Subquery(turned.values("after")[:1]), last=Subquery(last[:1])
    )
    now = {
        pk: (after or last, turned) for pk, after, last, turned in serving.values_list("pk", "after", "last", "turned")
    }
    newer = {pk: each for pk, each in now.items() if each[0] not in (None, own[pk].pk)}
    rotations = Rotation.objects.in_bulk({turned for _, turned in newer.values() if turned}) if newer else {}
    return {pk: CurrentStack(fingerprint, rotations.get(turned)) for pk, (fingerprint, turned) in newer.items()}


def known_serving(fingerprint: str) -> Q:
    """Return the condition that the stack is known. fingerprint: the lookup path to it."""
    source = f"{fingerprint}__manifest__source"
    return Q(**{f"{source}__isnull": True}) | ~Q(**{f"{source}__has_any_keys": list(NAMELESS)})


def _serving(place: Place, *, but_for: RunRecord | ProbeRecord | None = None) -> CurrentStack | None:
    """Return what serves a place: what the newest rotation led to.

    Where none was noted, it is what gave the answers of the last run or probe of which that is known, `but_for` one;
    None where nothing has yet.
    """
    newest = Rotation.objects.filter(_under("profile_slug", place), endpoint=place[0]).order_by("-id").first()
    if newest is not None:
        return CurrentStack(newest.after_id, newest)
    runs, probes = RunRecord.objects.all(), ProbeRecord.objects.all()
    if isinstance(but_for, RunRecord):
        runs = runs.exclude(pk=but_for.pk)
    elif but_for is not None:
        probes = probes.exclude(pk=but_for.pk)
    last = [*_last(runs, place, at="started_at"), *_last(probes, place, at="finished_at")]
    if not last:
        return None
    return CurrentStack(max(last, key=lambda each: (each[0] is not None, each[0]))[1], None)


def _last(
    among: "QuerySet[RunRecord] | QuerySet[ProbeRecord]", place: Place, *, at: str
) -> list[tuple[datetime | None, int]]:
    """Return when the last of them that is known met its stack, and the fingerprint's id; one row or none."""
    bound = among.filter(_under("profile__slug", place), endpoint=place[0], bucket__isnull=False)
    bound = bound.filter(known_serving("bucket__fingerprint")).order_by(F(at).desc(nulls_last=True), "-id")
    return list(bound.values_list(at, "bucket__fingerprint")[:1])


def _under(name: str, place: Place) -> Q:
    """Return the condition that a profile is the place's; `name` is the lookup of its slug."""
    return Q(**{name: place[1]}) if place[1] else Q()


def _words(rotation: Rotation, n_expired: int) -> str:
    before, after = rotation.before, rotation.after
    under = f" under {rotation.profile_slug}" if rotation.profile_slug else ""
    text = f"Rotation: {rotation.endpoint}{under} was served by {before} ({before.label}),"
    text = f"{text} from this run on by {after} ({after.label})."
    moved = render_moved(find_moved_fields(before.manifest, after.manifest))
    what = f" What moved: {moved}." if moved else ""
    expired = {0: "", 1: " One baseline expired."}.get(n_expired, f" {n_expired} baselines expired.")
    return f"{text}{what}{expired}"
