"""Find the tour's runs and releases, and the token where a broken case diverges."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists

from evalboard.contract.compare import Comparison
from evalboard.contract.excerpt import ShownCase
from evalboard.contract.release import ReleaseRow
from runs.compare import compare, report_of, worst_cases
from runs.models import ReleaseRecord, TourEnd
from runs.release import rows_of, with_outcome
from runs.tour.tour import LABELS, SUITE

TOLD = "no_ship"


@dataclass(frozen=True, slots=True)
class Tour:
    """The tour's pages: a release, the comparison of its runs, and the worst broken case.

    others: the sample's other releases, in the order in which they were made.
    """

    release: ReleaseRow
    comparison: Comparison
    case: ShownCase
    others: tuple[ReleaseRow, ...]


def tour_of(user: Any) -> Tour | None:
    """Return the tour for a person; None if they ended it, or if its sample is incomplete."""
    wanted = ReleaseRecord.objects.filter(gates__suite__slug=SUITE, labels__contains=LABELS)
    has_ended = Exists(TourEnd.objects.filter(user=user))
    releases = list(wanted.exclude(has_ended).order_by("pk").values_list("pk", flat=True))
    if not releases:
        return None
    rows = rows_of(with_outcome(ReleaseRecord.objects.filter(pk__in=releases)).order_by("pk"))
    release = next((row for row in rows if row.verdict == TOLD), None)
    if release is None:
        return None
    runs = (int(release.baseline.run), int(release.candidate.run))
    comparison = compare(baseline=runs[0], candidate=runs[1])
    worst = worst_cases(comparison.pk, runs, outcome="broken", n=1)
    if not worst or worst[0].outcome.pair is None:
        return None
    others = tuple(row for row in rows if row.id != release.id)
    return Tour(release, report_of(comparison), worst[0], others)
