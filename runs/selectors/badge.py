"""What a suite's badge says: the verdict of its newest release, or else how its newest run went."""

from dataclasses import dataclass

from evalboard.core.errors import NotFound
from runs.models import Gate, Run, Suite
from runs.selectors.run import RunRow
from runs.selectors.run_list import NEWEST_FIRST, rows_of


@dataclass(frozen=True, slots=True)
class SuiteBadge:
    """`verdict` is that of the suite's own gate, "" where no release judged it; then `run` is the newest or None."""

    suite: str
    verdict: str
    run: RunRow | None


def suite_badge(slug: str) -> SuiteBadge:
    """Raises NotFound for a suite that is not there."""
    suite = Suite.objects.filter(slug=slug).first()
    if suite is None:
        raise NotFound(f"There is no suite {slug}.")
    judged = Gate.objects.filter(suite=suite, release__verdict__isnull=False).select_related("release__verdict")
    gate = judged.order_by("-release_id", "position").first()
    if gate is not None and gate.release.verdict is not None:
        return SuiteBadge(slug, str(gate.release.verdict.document["gates"][gate.position]["verdict"]), None)
    newest = rows_of(Run.objects.filter(suite_version__suite=suite).order_by(*NEWEST_FIRST)[:1])
    return SuiteBadge(slug, "", newest[0] if newest else None)
