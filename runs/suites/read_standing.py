"""Read what a suite's runs are compared with: baselines, rotations, noise and releases."""

from dataclasses import dataclass, field

from django.db.models import OuterRef, Subquery

from evalboard.contract.baseline import Baseline, RotationSeen
from evalboard.contract.figures import BucketNoise
from runs.baselines import baseline_rows, rotation_rows
from runs.models import Case, Suite
from runs.run import JudgedLine, judged
from runs.suites.noise import bucket_noises
from runs.suites.read import SuiteReport

BASELINES_READ = 200


@dataclass(frozen=True, slots=True)
class SuiteStanding:
    """The context of a SuiteReport. baselines, rotations: newest first; noise: by bucket; judged: by run.

    `reference_of` names the suite version whose reference set this suite is, `reference_suite` the suite with this
    one's; `n_reference` counts the cases of the newest version that are in the set. "" without one.
    """

    baselines: tuple[Baseline, ...] = ()
    rotations: tuple[RotationSeen, ...] = ()
    noise: dict[int, BucketNoise] = field(default_factory=dict)
    judged: dict[int, tuple[JudgedLine, ...]] = field(default_factory=dict)
    policy: str = ""
    reference_of: str = ""
    reference_of_slug: str = ""
    reference_suite: str = ""
    n_reference: int = 0


def suite_standing(report: SuiteReport) -> SuiteStanding:
    references = Suite.objects.filter(reference_of__suite=OuterRef("pk")).order_by("-id").values("slug")
    suites = Suite.objects.select_related("policy", "reference_of__suite").annotate(reference=Subquery(references[:1]))
    suite = suites.get(slug=report.suite.slug)
    points = [point for bucket in report.buckets for point in bucket.runs]
    return SuiteStanding(
        baselines=baseline_rows(report.suite.slug, limit=BASELINES_READ),
        rotations=_rotations(report),
        noise=bucket_noises(report.buckets, version_id=report.version_id, n_cases=report.suite.n_cases),
        judged=judged(point.run_id for point in points),
        policy=suite.policy.slug if suite.policy else "",
        reference_of=str(suite.reference_of) if suite.reference_of else "",
        reference_of_slug=suite.reference_of.suite.slug if suite.reference_of else "",
        reference_suite=suite.reference or "",
        n_reference=Case.objects.filter(suite_version=report.version_id, is_reference=True).count(),
    )


def _rotations(report: SuiteReport) -> tuple[RotationSeen, ...]:
    """Return rotations on the charted runs' endpoints and profiles since the first of these runs."""
    points = [point for bucket in report.buckets for point in bucket.runs]
    if not points:
        return ()
    places = {(point.endpoint, point.profile) for point in points}
    first, began = min(point.run_id for point in points), min(point.date for point in points)
    rotations = rotation_rows(endpoints={endpoint for endpoint, _ in places})
    return tuple(
        row
        for row in rotations
        if any(row.is_of(endpoint=endpoint, profile=profile) for endpoint, profile in places)
        and (row.at >= began if row.run_id is None else row.run_id >= first)
    )
