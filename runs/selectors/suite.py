"""Suites as lists and pages show them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, F, Max, OuterRef

from evalboard.core import scoring
from evalboard.core.errors import NotFound
from evalboard.core.scoring.recorded import RECORDED
from runs.models import Case, Repeat, Run, SuiteVersion
from runs.selectors.run import RunRow
from runs.selectors.run_cases import prompt_of
from runs.selectors.run_list import NEWEST_FIRST, rows_of
from runs.selectors.suite_history import BucketHistory, HistoryPoint, histories

__all__ = ["BucketHistory", "HistoryPoint", "SuiteReport", "SuiteRow", "suite_report", "suite_rows", "suite_to_compare"]


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """A suite in a list. is_recorded: its scores were read from logs, so that no run of it can be scored here."""

    slug: str
    title: str
    version: int
    n_cases: int
    n_runs: int
    last_run: RunRow | None
    is_recorded: bool


@dataclass(frozen=True, slots=True)
class VersionLine:
    number: int
    digest: str
    n_cases: int
    created_at: datetime
    n_runs: int


@dataclass(frozen=True, slots=True)
class CaseLine:
    index: int
    case_id: str
    prompt: str
    target: Any
    scorer_kind: str
    tags: tuple[str, ...]
    is_reference: bool


@dataclass(frozen=True, slots=True)
class SuiteReport:
    slug: str
    title: str
    version: int
    digest: str
    n_cases: int
    points_per_case: float
    max_tokens: int
    scorer: dict[str, Any]
    versions: tuple[VersionLine, ...]
    buckets: tuple[BucketHistory, ...]
    cases: tuple[CaseLine, ...]

    @property
    def is_recorded(self) -> bool:
        """Whether its scores were read from logs, so that no run of it can be scored here."""
        return scoring.is_recorded(self.scorer)


def suite_rows() -> tuple[SuiteRow, ...]:
    """All suites by slug, with their newest version and run."""
    versions = SuiteVersion.objects.order_by("suite__slug", "-number").distinct("suite__slug").select_related("suite")
    # Not the whole plan, which may have a scorer for each of many cases: a log's is one for all.
    versions = versions.annotate(scored_by=F("scorer__spec__default__kind"))
    counted = dict(Run.objects.order_by().values_list("suite_version__suite").annotate(n=Count("id")))
    by_suite = Run.objects.order_by("suite_version__suite_id", *NEWEST_FIRST)
    newest = by_suite.distinct("suite_version__suite_id").values("id")
    last_runs = {row.suite: row for row in rows_of(Run.objects.filter(pk__in=newest))}
    return tuple(
        SuiteRow(
            slug=version.suite.slug,
            title=version.title,
            version=version.number,
            n_cases=version.n_cases,
            n_runs=counted.get(version.suite_id, 0),
            last_run=last_runs.get(version.suite.slug),
            is_recorded=version.scored_by == RECORDED.name,
        )
        for version in versions
    )


def suite_to_compare() -> str:
    """Return the slug of the suite whose newest answered run has another to be compared with, "" where none has."""
    answered = Repeat.objects.filter(run=OuterRef("pk"), status__in=(Run.Status.FINISHED, Run.Status.INCOMPLETE))
    suites = Run.objects.filter(Exists(answered)).order_by().values_list("suite_version__suite__slug")
    found = suites.annotate(n=Count("id"), newest=Max("ran_at")).filter(n__gt=1).order_by("-newest").first()
    return found[0] if found else ""


def suite_report(slug: str, *, version: int | None = None, with_cases: bool = True) -> SuiteReport:
    """The newest version unless one is named; a page that lists no case need not read them. Raises NotFound."""
    shown = suite_version(slug, version=version)
    return SuiteReport(
        slug=slug,
        title=shown.title,
        version=shown.number,
        digest=shown.digest,
        n_cases=shown.n_cases,
        points_per_case=100 / shown.n_cases,
        max_tokens=shown.max_tokens,
        scorer=shown.scorer.spec,
        versions=version_lines(slug),
        buckets=histories(shown),
        cases=tuple(_case_lines(shown)) if with_cases else (),
    )


def suite_version(slug: str, *, version: int | None = None) -> SuiteVersion:
    """The record of a version, the newest unless one is named. Raises NotFound."""
    of_suite = SuiteVersion.objects.filter(suite__slug=slug).select_related("suite", "scorer").order_by("-number")
    found = of_suite.first() if version is None else of_suite.filter(number=version).first()
    if found is not None:
        return found
    if version is None or not of_suite.exists():
        raise NotFound(f"There is no suite {slug}.")
    raise NotFound(f"Suite {slug} has no version {version}.")


def version_lines(slug: str) -> tuple[VersionLine, ...]:
    """The versions of a suite, newest first."""
    versions = SuiteVersion.objects.filter(suite__slug=slug).annotate(n_runs=Count("runs")).order_by("-number")
    return tuple(VersionLine(v.number, v.digest, v.n_cases, v.created_at, v.n_runs) for v in versions)


def _case_lines(version: SuiteVersion) -> Iterator[CaseLine]:
    plan = version.scorer.spec
    for case in Case.objects.filter(suite_version=version).order_by("index"):
        yield CaseLine(
            index=case.index,
            case_id=case.case_id,
            prompt=prompt_of(case),
            target=case.content["target"],
            scorer_kind=scoring.scorer_for(plan, case.case_id)["kind"],
            tags=tuple(case.tags),
            is_reference=case.is_reference,
        )
