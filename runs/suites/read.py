"""Suites as lists and pages show them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, F, Max, OuterRef, Subquery
from django.urls import reverse

from evalboard.contract import suite as contract
from evalboard.core import scoring
from evalboard.core.errors import NotFound
from evalboard.core.scoring import RECORDED, is_recorded
from runs.models import Case, RepeatRecord, RunRecord, SuiteVersionRecord
from runs.run import NEWEST_FIRST, prompt_of, rows_of, search_cases
from runs.suites.read_history import histories


@dataclass(frozen=True, slots=True)
class SuiteCaseLine:
    index: int
    case_id: str
    prompt: str
    target: Any
    scorer_kind: str
    tags: tuple[str, ...]
    is_reference: bool


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """One version of a suite with what its page shows: all versions, and the runs by bucket."""

    suite: contract.SuiteVersion
    version_id: int
    versions: tuple[contract.SuiteVersionRow, ...]
    buckets: tuple[contract.BucketHistory, ...]


@dataclass(frozen=True, slots=True)
class CasesReport:
    """A stretch of a suite version's cases, by index, and how many there are with the same words."""

    suite: contract.SuiteVersion
    cases: tuple[SuiteCaseLine, ...]
    n_cases: int


SUITE_ORDERS = {name: name for name in ("slug", "title", "n_cases", "n_runs")}


def suite_rows() -> tuple[contract.SuiteRow, ...]:
    """List all suites by slug, with their newest version and run."""
    last_runs = {row.suite.slug: row for row in rows_of(RunRecord.objects.filter(pk__in=_newest_runs()))}
    counted: Counter[int] = Counter()
    versions = {}
    n_runs = RunRecord.objects.filter(suite_version=OuterRef("pk")).order_by().values("suite_version")
    every = (
        SuiteVersionRecord.objects.filter(suite__judged_suite=None)
        .select_related("suite")
        .annotate(
            n=Subquery(n_runs.annotate(n=Count("*")).values("n")),
            # Not the whole plan, which may have a scorer for each of many cases: a log's is one for all.
            scored_by=F("scorer__spec__default__kind"),
        )
    )
    for version in every.order_by("number"):
        counted[version.suite_id] += version.n or 0
        versions[version.suite.slug] = version
    return tuple(
        contract.SuiteRow(
            slug=slug,
            title=version.title,
            version=version.number,
            n_cases=version.n_cases,
            n_runs=counted[version.suite_id],
            last_run=run.id if (run := last_runs.get(slug)) else None,
            url=reverse("suite", args=[slug]),
            newest_run=run,
            is_recorded=version.scored_by == RECORDED.name,
        )
        for slug, version in sorted(versions.items())
    )


def suite_slugs() -> list[str]:
    """Return the slugs of all suites, sorted."""
    versions = SuiteVersionRecord.objects.filter(suite__judged_suite=None).order_by()
    return sorted(versions.values_list("suite__slug", flat=True).distinct())


def _newest_runs() -> list[int]:
    """Return the newest run of each suite: of each version the last of its index, and the newest of those."""
    last = RunRecord.objects.filter(suite_version=OuterRef("pk")).order_by(*NEWEST_FIRST)
    versions = SuiteVersionRecord.objects.filter(suite__judged_suite=None).annotate(
        newest=Subquery(last.values("pk")[:1]), newest_at=Subquery(last.values("ran_at")[:1])
    )
    known = versions.exclude(newest=None).order_by("newest_at", "newest").values_list("suite", "newest")
    return list(dict(known).values())


def suite_to_compare() -> str:
    """Return the suite whose newest answered run has another to compare with, "" without one."""
    answered = RepeatRecord.objects.filter(
        run=OuterRef("pk"), status__in=(RunRecord.Status.FINISHED, RunRecord.Status.INCOMPLETE)
    )
    suites = (
        RunRecord.objects.filter(Exists(answered), is_judge=False).order_by().values_list("suite_version__suite__slug")
    )
    busiest = suites.annotate(n=Count("id"), newest=Max("ran_at")).filter(n__gt=1).order_by("-newest").first()
    return busiest[0] if busiest else ""


def suite_report(slug: str, *, version: int | None = None) -> SuiteReport:
    """Read a suite's newest version, or the one named, and its history. Raises NotFound."""
    shown = suite_version(slug, version=version)
    return SuiteReport(
        suite=version_answer(shown),
        version_id=shown.pk,
        versions=version_lines(slug),
        buckets=histories(shown),
    )


def suite_version(slug: str, *, version: int | None = None) -> SuiteVersionRecord:
    """Return the record of a version, the newest unless one is named. Raises NotFound."""
    same_slug = SuiteVersionRecord.objects.filter(suite__slug=slug, suite__judged_suite=None)
    versions = same_slug.select_related("suite", "scorer").order_by("-number")
    record = versions.first() if version is None else versions.filter(number=version).first()
    if record is not None:
        return record
    if version is None or not versions.exists():
        raise NotFound(f"There is no suite {slug}.")
    raise NotFound(f"Suite {slug} has no version {version}.")


def version_lines(slug: str) -> tuple[contract.SuiteVersionRow, ...]:
    """List the versions of a suite, newest first."""
    versions = SuiteVersionRecord.objects.filter(suite__slug=slug).annotate(n_runs=Count("runs")).order_by("-number")
    return tuple(
        contract.SuiteVersionRow.from_record(
            version,
            version=version.number,
        )
        for version in versions
    )


def version_answer(version: SuiteVersionRecord) -> contract.SuiteVersion:
    """Return a version without its cases."""
    slug = version.suite.slug
    return contract.SuiteVersion.from_record(
        version,
        slug=slug,
        version=version.number,
        stop=tuple(version.stop),
        scorer={"digest": version.scorer.digest, **version.scorer.spec},
        url=reverse("suite_version", args=[slug, version.number]),
        is_recorded=is_recorded(version.scorer.spec),
    )


def cases_report(slug: str, *, version: int, query: str = "", offset: int = 0, limit: int = 100) -> CasesReport:
    """Read `limit` cases of a version from `offset` on that match `query`. Raises NotFound."""
    shown = suite_version(slug, version=version)
    cases = Case.objects.filter(suite_version=shown)
    if query:
        matches = list(search_cases(cases, query).order_by("index").values_list("index", flat=True))
        n_cases, cases = len(matches), cases.filter(index__in=matches[offset : offset + limit])
    else:  # indexes have no gaps, so none is counted or passed over
        n_cases, cases = shown.n_cases, cases.filter(index__gte=offset, index__lt=offset + limit)
    lines = tuple(_case_line(case, shown.scorer.spec) for case in cases.order_by("index"))
    return CasesReport(version_answer(shown), lines, n_cases)


def _case_line(case: Case, plan: Mapping[str, Any]) -> SuiteCaseLine:
    return SuiteCaseLine(
        index=case.index,
        case_id=case.case_id,
        prompt=prompt_of(case),
        target=case.content["target"],
        scorer_kind=scoring.scorer_for(plan, case.case_id)["kind"],
        tags=tuple(case.tags),
        is_reference=case.is_reference,
    )
