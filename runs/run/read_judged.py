"""Which releases rest on a run, and what they said."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from runs.models import GateRecord


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """One release that a run is part of. `verdict` is "" until it is decided; `suite` is that of the gate."""

    release_id: int
    verdict: str
    is_candidate: bool
    suite: str


def judged(run_ids: Iterable[int]) -> dict[int, tuple[JudgedLine, ...]]:
    """Return lines by run: first those in which it was the candidate, and of each kind the newest release first."""
    wanted = set(run_ids)
    if not wanted:
        return {}
    by_run: dict[int, list[JudgedLine]] = defaultdict(list)
    gates = GateRecord.objects.filter(Q(candidate_run__in=wanted) | Q(baseline_run__in=wanted)).order_by(
        "-release_id", "position"
    )
    rows = gates.values_list("release", "release__verdict__word", "candidate_run", "baseline_run", "suite__slug")
    for release, word, candidate, baseline, suite in rows:
        for run_id, is_candidate in ((candidate, True), (baseline, False)):
            if run_id in wanted:
                by_run[run_id].append(JudgedLine(release, word or "", is_candidate, suite))
    return {run_id: tuple(sorted(lines, key=lambda line: not line.is_candidate)) for run_id, lines in by_run.items()}
