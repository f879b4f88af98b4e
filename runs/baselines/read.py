"""Baselines and the rotations that make them expire, a fixed number of queries for any number of them."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, QuerySet

from evalboard.contract import baseline as contract
from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.run import RunRow
from evalboard.core.errors import NotFound
from runs.models import Baseline, Endpoint, Fingerprint, Rotation, Run
from runs.run import rows_of
from runs.store import newest_page

KEY = ("suite_id", "line", "profile_slug")  # one current baseline for each


def baseline_rows(
    suite: str = "", *, after: int | None = None, before: int | None = None, limit: int = 200
) -> tuple[contract.Baseline, ...]:
    """Return the baselines of a suite, or of all, newest first.

    Those older than `after`, or the nearest ones newer than `before`.
    """
    return newest_page(_baselines(suite), _rows, after=after, before=before, limit=limit)


def baselines_with(run: RunRow) -> tuple[contract.Baseline, ...]:
    """Return the baselines that a run was set as, newest first."""
    return _rows(Baseline.objects.filter(run=int(run.id)).order_by("-id"), runs={int(run.id): run})


def baseline_of(run: RunRow) -> contract.Baseline | None:
    """Return the current baseline that a run stands against, None where there is none or it is the run itself."""
    endpoint = Endpoint.objects.filter(slug=run.endpoint)
    alike = Baseline.objects.filter(
        suite__slug=run.suite.slug, profile_slug=run.profile, line__in=endpoint.values("line")
    )
    rows = _rows(Baseline.objects.filter(pk__in=alike.order_by("-id").values("pk")[:1]))
    return next((row for row in rows if row.run.id != run.id), None)


def baselines_on(endpoint: str, *, limit: int) -> tuple[contract.Baseline, ...]:
    """Return the newest baselines whose runs an endpoint served."""
    newest = Baseline.objects.filter(run__endpoint__slug=endpoint).order_by("-id").values("pk")[:limit]
    return _rows(Baseline.objects.filter(pk__in=newest).order_by("-id"))


def baseline_row(baseline_id: int) -> contract.Baseline:
    """Return one baseline. Raises NotFound."""
    rows = _rows(Baseline.objects.filter(pk=baseline_id))
    if not rows:
        raise NotFound(f"There is no baseline {baseline_id}.")
    return rows[0]


def current_baselines(suite: str = "") -> tuple[contract.Baseline, ...]:
    """Return the current baseline of each (suite, model line, profile), by those; of one suite, or of all."""
    newest = _baselines(suite).order_by(*KEY, "-id").distinct(*KEY).values("pk")
    return _rows(Baseline.objects.filter(pk__in=newest).order_by("suite__slug", "line", "profile_slug"))


def baseline_runs(suite: str, profile: str) -> tuple[int, ...]:
    """Return the runs of the current baselines of a suite under a profile that have not expired."""
    baselines = _baselines(suite).filter(profile_slug=profile)
    newest = baselines.order_by(*KEY, "-id").distinct(*KEY).values_list("run", "rotation")
    return tuple(run for run, rotation in newest if rotation is None)


def rotation_rows(
    *, since: datetime | None = None, endpoints: Iterable[str] | None = None, limit: int = 200
) -> tuple[contract.RotationSeen, ...]:
    """Return rotations, newest first; from `since` on, and on some endpoints where they are named."""
    rotations = Rotation.objects.all()
    if since is not None:
        rotations = rotations.filter(at__gte=since)
    if endpoints is not None:
        rotations = rotations.filter(endpoint__slug__in=set(endpoints))
    return tuple(_rotation(row) for row in _counted(rotations).order_by("-id")[:limit])


def _baselines(suite: str) -> "QuerySet[Baseline]":
    """Return the baselines of a suite; of all where it is ""."""
    return Baseline.objects.filter(suite__slug=suite) if suite else Baseline.objects.all()


def _rows(
    baselines: "QuerySet[Baseline]", *, runs: Mapping[int, RunRow] | None = None
) -> tuple[contract.Baseline, ...]:
    """Return a row for each, in their order. `runs`: their rows where they are at hand."""
    newer = Baseline.objects.filter(**{name: OuterRef(name) for name in KEY}, pk__gt=OuterRef("pk"))
    stored = list(baselines.select_related("suite", "set_by").annotate(is_current=~Exists(newer)))
    if runs is None:
        runs = {int(row.id): row for row in rows_of(Run.objects.filter(pk__in={each.run_id for each in stored}))}
    ids = {each.rotation_id for each in stored if each.rotation_id is not None}
    rotations = {row.pk: _rotation(row) for row in _counted(Rotation.objects.filter(pk__in=ids))}
    return tuple(
        contract.Baseline(
            id=str(each.pk),
            suite=each.suite.slug,
            line=each.line,
            profile=each.profile_slug,
            run=runs[each.run_id],
            reason=each.reason,
            set_by=each.set_by.get_username() if each.set_by else None,
            created_at=each.created_at,
            is_current=each.is_current,
            expired=None if each.rotation_id is None else rotations[each.rotation_id],
        )
        for each in stored
    )


def _counted(rotations: "QuerySet[Rotation]") -> "QuerySet[Rotation]":
    """Return them with what they name, and with how many baselines each made expire."""
    light = rotations.select_related("endpoint", "before", "after").defer("before__manifest", "after__manifest")
    return light.annotate(n_expired=Count("expired_baselines"))


def _rotation(row: Rotation) -> contract.RotationSeen:
    return contract.RotationSeen(
        at=row.at,
        endpoint=row.endpoint.slug,
        profile=row.profile_slug,
        run=str(row.run_id),
        before=_name(row.before),
        after=_name(row.after),
        id=row.pk,
        n_expired=row.n_expired,  # type: ignore[attr-defined]  # _counted
    )


def _name(row: Fingerprint) -> FingerprintNamed:
    return FingerprintNamed(id=str(row.pk), digest=row.digest, label=row.label)
