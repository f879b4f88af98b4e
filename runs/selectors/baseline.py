"""Baselines and the rotations that make them expire, a fixed number of queries for any number of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, QuerySet

from evalboard.core.errors import NotFound
from runs.models import Baseline, Rotation, Run
from runs.selectors.run import RunRow
from runs.selectors.run_list import rows_of

KEY = ("suite_id", "line", "profile_slug")  # one current baseline for each


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationRow:
    """On one (endpoint, profile), a fingerprint other than the previous run's; `run_id` is the first it served.

    n_expired: the baselines that it made expire.
    """

    id: int
    at: datetime
    endpoint: str
    profile: str
    run_id: int
    before_id: int
    before_digest: str
    before_label: str
    after_id: int
    after_digest: str
    after_label: str
    n_expired: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRow:
    """A baseline with its run. `is_current`: no newer one of its suite, model line and profile.

    `rotation` is the one that made it expire, None while it holds; a current one may have expired too.
    """

    id: int
    suite: str
    line: str
    profile: str
    run: RunRow
    reason: str
    set_by: str
    created_at: datetime
    is_current: bool
    rotation: RotationRow | None

    @property
    def is_expired(self) -> bool:
        return self.rotation is not None


def baseline_rows(
    suite: str = "", *, after: int | None = None, before: int | None = None, limit: int = 200
) -> tuple[BaselineRow, ...]:
    """The baselines of a suite, or of all, newest first: those older than `after`, or the nearest ones newer than
    `before`.
    """
    found = Baseline.objects.filter(suite__slug=suite) if suite else Baseline.objects.all()
    if before is not None:
        return _rows(found.filter(pk__gt=before).order_by("id")[:limit])[::-1]
    return _rows((found if after is None else found.filter(pk__lt=after)).order_by("-id")[:limit])


def baseline_row(baseline_id: int) -> BaselineRow:
    """Raises NotFound."""
    rows = _rows(Baseline.objects.filter(pk=baseline_id))
    if not rows:
        raise NotFound(f"There is no baseline {baseline_id}.")
    return rows[0]


def current_baselines(suite: str = "") -> tuple[BaselineRow, ...]:
    """The current baseline of each (suite, model line, profile), by those; of one suite, or of all."""
    found = Baseline.objects.filter(suite__slug=suite) if suite else Baseline.objects.all()
    newest = found.order_by(*KEY, "-id").distinct(*KEY).values("pk")
    return _rows(Baseline.objects.filter(pk__in=newest).order_by("suite__slug", "line", "profile_slug"))


def rotation_rows(
    *, since: datetime | None = None, endpoints: Iterable[str] | None = None, limit: int = 200
) -> tuple[RotationRow, ...]:
    """Rotations, newest first; from `since` on, and on some endpoints where they are named."""
    found = Rotation.objects.all()
    if since is not None:
        found = found.filter(at__gte=since)
    if endpoints is not None:
        found = found.filter(endpoint__slug__in=set(endpoints))
    related = found.select_related("endpoint", "before", "after").defer("before__manifest", "after__manifest")
    counted = related.annotate(n_expired=Count("expired_baselines"))
    return tuple(_rotation(row, n_expired=row.n_expired) for row in counted.order_by("-id")[:limit])


def _rows(found: "QuerySet[Baseline]") -> tuple[BaselineRow, ...]:
    newer = Baseline.objects.filter(**{name: OuterRef(name) for name in KEY}, pk__gt=OuterRef("pk"))
    baselines = list(found.select_related("suite", "set_by").annotate(is_current=~Exists(newer)))
    runs = {row.id: row for row in rows_of(Run.objects.filter(pk__in={each.run_id for each in baselines}))}
    rotations = _rotations({each.rotation_id for each in baselines if each.rotation_id is not None})
    return tuple(
        BaselineRow(
            id=each.pk,
            suite=each.suite.slug,
            line=each.line,
            profile=each.profile_slug,
            run=runs[each.run_id],
            reason=each.reason,
            set_by=each.set_by.get_username() if each.set_by else "",
            created_at=each.created_at,
            is_current=each.is_current,
            rotation=None if each.rotation_id is None else rotations[each.rotation_id],
        )
        for each in baselines
    )


def _rotations(ids: set[int]) -> dict[int, RotationRow]:
    found = Rotation.objects.filter(pk__in=ids).select_related("endpoint", "before", "after")
    light = found.defer("before__manifest", "after__manifest").annotate(n_expired=Count("expired_baselines"))
    return {row.pk: _rotation(row, n_expired=row.n_expired) for row in light}


def _rotation(row: Rotation, *, n_expired: int) -> RotationRow:
    return RotationRow(
        id=row.pk,
        at=row.at,
        endpoint=row.endpoint.slug,
        profile=row.profile_slug,
        run_id=row.run_id,
        before_id=row.before_id,
        before_digest=row.before.digest,
        before_label=row.before.label,
        after_id=row.after_id,
        after_digest=row.after.digest,
        after_label=row.after.label,
        n_expired=n_expired,
    )
