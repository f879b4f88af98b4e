"""Read baselines with the rotation that ended each, in a fixed number of queries."""

from collections.abc import Mapping

from django.db.models import Exists, OuterRef, QuerySet

from evalboard.contract import baseline as contract
from evalboard.contract.run import RunRow
from evalboard.core.errors import NotFound
from runs.baselines.read_rotations import rotations_by_id
from runs.models import BaselineRecord, EndpointRecord, RunRecord, SuiteVersionRecord
from runs.run import rows_of
from runs.store import newest_page, require_first

KEY = ("suite_id", "line", "profile_slug")  # one current baseline for each


def require_suite(slug: str) -> None:
    """Raise NotFound where no version of a suite is stored."""
    if not SuiteVersionRecord.objects.filter(suite__slug=slug).exists():
        raise NotFound(f"There is no suite {slug}.")


def baseline_rows(
    suite: str = "", *, after: int | None = None, before: int | None = None, limit: int = 200
) -> tuple[contract.Baseline, ...]:
    """Return the baselines of a suite, or of all, newest first.

    Those older than `after`, or the nearest ones newer than `before`.
    """
    return newest_page(_baselines(suite), _rows, after=after, before=before, limit=limit)


def baselines_with(run: RunRow) -> tuple[contract.Baseline, ...]:
    """Return the baselines that a run was set as, newest first."""
    return _rows(BaselineRecord.objects.filter(run=int(run.id)).order_by("-id"), runs={int(run.id): run})


def baseline_of(run: RunRow) -> contract.Baseline | None:
    """Return the current baseline that a run is compared with; None without one, or if it is the run."""
    endpoint = EndpointRecord.objects.filter(slug=run.endpoint)
    alike = BaselineRecord.objects.filter(
        suite__slug=run.suite.slug, profile_slug=run.profile, line__in=endpoint.values("line")
    )
    rows = _rows(BaselineRecord.objects.filter(pk__in=alike.order_by("-id").values("pk")[:1]))
    return next((row for row in rows if row.run.id != run.id), None)


def baselines_on(endpoint: str, *, limit: int) -> tuple[contract.Baseline, ...]:
    """Return the newest baselines whose runs were on an endpoint."""
    newest = BaselineRecord.objects.filter(run__endpoint__slug=endpoint).order_by("-id").values("pk")[:limit]
    return _rows(BaselineRecord.objects.filter(pk__in=newest).order_by("-id"))


def baseline_row(baseline_id: int) -> contract.Baseline:
    """Return one baseline. Raises NotFound."""
    return require_first(_rows(BaselineRecord.objects.filter(pk=baseline_id)), f"There is no baseline {baseline_id}.")


def current_baselines(suite: str = "") -> tuple[contract.Baseline, ...]:
    """Return the current baseline per suite, model line and profile, of one suite or all."""
    newest = _baselines(suite).order_by(*KEY, "-id").distinct(*KEY).values("pk")
    return _rows(BaselineRecord.objects.filter(pk__in=newest).order_by("suite__slug", "line", "profile_slug"))


def baseline_runs(suite: str, profile: str) -> tuple[int, ...]:
    """Return the runs of the current baselines of a suite under a profile that have not expired."""
    baselines = _baselines(suite).filter(profile_slug=profile)
    newest = baselines.order_by(*KEY, "-id").distinct(*KEY).values_list("run", "rotation")
    return tuple(run for run, rotation in newest if rotation is None)


def _baselines(suite: str) -> "QuerySet[BaselineRecord]":
    """Return the baselines of a suite; of all where it is ""."""
    return BaselineRecord.objects.filter(suite__slug=suite) if suite else BaselineRecord.objects.all()


def _rows(
    baselines: "QuerySet[BaselineRecord]", *, runs: Mapping[int, RunRow] | None = None
) -> tuple[contract.Baseline, ...]:
    """Return a row for each, in their order. `runs`: their rows where they are at hand."""
    newer = BaselineRecord.objects.filter(**{name: OuterRef(name) for name in KEY}, pk__gt=OuterRef("pk"))
    stored = list(baselines.select_related("suite", "set_by").annotate(is_current=~Exists(newer)))
    if runs is None:
        runs = {int(row.id): row for row in rows_of(RunRecord.objects.filter(pk__in={each.run_id for each in stored}))}
    ids = {each.rotation_id for each in stored if each.rotation_id is not None}
    rotations = rotations_by_id(ids)
    return tuple(
        contract.Baseline.from_record(
            each,
            id=str(each.pk),
            suite=each.suite.slug,
            profile=each.profile_slug,
            run=runs[each.run_id],
            set_by=each.set_by.get_username() if each.set_by else None,
            expired=None if each.rotation_id is None else rotations[each.rotation_id],
        )
        for each in stored
    )
