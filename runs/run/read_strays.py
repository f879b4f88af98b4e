"""Read a run's responses from other builds: the first of each bucket, and all in pages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evalboard.contract.bucket import StrayResponse
from evalboard.contract.run import RunWarning
from evalboard.wording.run_warnings import WarnedRun, list_warnings
from runs.models import BucketRecord, Case, RunRecord, Stray
from runs.store import require_row

STRAYS_SHOWN = 100  # of a bucket, with the run

FirstStrays = Mapping[tuple[int, int], tuple[StrayResponse, ...]]  # by run and bucket


@dataclass(frozen=True, slots=True)
class StrayPage:
    """A page of responses from other builds. n_strays: of all. fingerprints: bucket id → digest."""

    warnings: tuple[RunWarning, ...]
    n_strays: int
    rows: tuple[StrayResponse, ...]
    fingerprints: Mapping[str, str]


def first_strays(runs: Iterable[RunRecord]) -> FirstStrays:
    """Read the first responses from other builds of each bucket, in two statements for all runs."""
    suites = {(run.pk, strays["bucket"]): run.suite_version_id for run in runs for strays in run.strays or ()}
    if not suites:
        return {}
    each = [Stray.objects.filter(run=run, bucket=bucket).listed()[:STRAYS_SHOWN] for run, bucket in suites]
    rows = list(each[0].union(*each[1:], all=True)) if len(each) > 1 else list(each[0])
    return {
        place: _named(suite, sorted((row for row in rows if (row.run_id, row.bucket_id) == place), key=_by_id))
        for place, suite in suites.items()
    }


def stray_rows(
    run_id: int,
    *,
    bucket: int | None = None,
    after: int | None = None,
    before: int | None = None,
    limit: int = 50,
) -> tuple[StrayResponse, ...]:
    """Read a run's responses from other builds by bucket, case and repeat: after or just before a place.

    bucket: only of this one. Raises NotFound if the run does not exist.
    """
    run = _run(run_id)
    strays = Stray.objects.filter(run=run).listed()
    if bucket is not None:
        strays = strays.filter(bucket=bucket)
    if before is not None:
        return _named(run.suite_version_id, strays.filter(pk__lt=before).reverse()[:limit])[::-1]
    return _named(run.suite_version_id, (strays if after is None else strays.filter(pk__gt=after))[:limit])


def stray_page(run_id: int, *, offset: int, limit: int) -> StrayPage:
    """Read `limit` of a run's responses from other builds from `offset` on. Raises NotFound."""
    run = _run(run_id)
    ids = [strays["bucket"] for strays in run.strays or ()]
    served = BucketRecord.objects.filter(pk__in=ids).values_list("pk", "fingerprint__digest")
    return StrayPage(
        warnings=list_warnings(WarnedRun(strays=run.strays or ())),
        n_strays=sum(strays["n_strays"] for strays in run.strays or ()),
        rows=_named(run.suite_version_id, Stray.objects.filter(run=run).listed()[offset : offset + limit]),
        fingerprints={str(bucket): digest for bucket, digest in served},
    )


def _run(run_id: int) -> RunRecord:
    return require_row(RunRecord.objects.filter(pk=run_id), f"There is no run {run_id}.")


def _named(suite_version_id: int, strays: Iterable[Stray]) -> tuple[StrayResponse, ...]:
    rows = list(strays)
    cases = Case.objects.filter(suite_version=suite_version_id, index__in={row.case_index for row in rows})
    ids = dict(cases.values_list("index", "case_id"))
    return tuple(
        StrayResponse(case=ids[row.case_index], repeat=row.repeat, bucket=str(row.bucket_id), place=row.pk)
        for row in rows
    )


def _by_id(row: Stray) -> int:
    return row.pk
