"""Read the releases that wait for a decision, worst first, with reason and next step."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Func, JSONField
from django.db.models.expressions import RawSQL

from evalboard.contract.release import ReleaseRow
from runs.models import ReleaseRecord
from runs.release.read_list import rows_of

WORST_FIRST = ("no_ship", "inconclusive", "not_comparable", "ship", None)
HEADLINE = "$.gates[$.headline_gate]"
# What a row's clause and its button are made of, by the path in a verdict's document; its long lists are left there.
FACTS = {
    "gate_words": "$.gates[*].verdict",
    "gate_tiers": "$.gates[*].tier",
    "headline_gate": "$.headline_gate",
    "suite": f"{HEADLINE}.suite",
    "reason": f"{HEADLINE}.reasons[0].code",
    "n_broken": f"{HEADLINE}.changed.n_broken",
    "n_cases": f"{HEADLINE}.n_cases",
    "look": f"{HEADLINE}.look",
    "n_more": f"{HEADLINE}.repeats_needed",
    "chance": f"{HEADLINE}.settling_chance",
    "step": "$.next[0].code",
}


@dataclass(frozen=True, slots=True)
class WaitingRelease:
    """A release without a valid sign-off. earlier: those it replaces, newest first.

    gates: the verdicts of those that decide. reason, step: codes of the headline gate's first reason and first step, ""
    without one. n_more: repeats per side that would decide it, with that chance.
    """

    row: ReleaseRow
    earlier: tuple[ReleaseRow, ...]
    gates: tuple[str, ...]
    headline_gate: int
    suite: str
    reason: str
    step: str
    n_broken: int
    n_cases: int
    look: int | None
    n_more: int | None
    chance: float | None


def waiting_releases(releases: Any) -> tuple[WaitingRelease, ...]:
    """Return the waiting releases of a queryset that came `with_outcome`: worst first, then oldest.

    A newer one of the same candidate, suites and policy, or of the same two runs, supersedes an older one, which then
    stands with it. Two statements more than the rows take.
    """
    rows = rows_of(releases)
    facts = _read_facts([int(row.id) for row in rows])
    newest: dict[tuple[Any, ...], list[ReleaseRow]] = {}
    for row in sorted(rows, key=lambda row: -int(row.id)):
        group = next((key for key in _names(row) if key in newest), _names(row)[0])
        newest.setdefault(group, []).append(row)
    waiting = [_waiting(group, facts.get(int(group[0].id), {})) for group in newest.values()]
    return tuple(sorted(waiting, key=lambda each: (WORST_FIRST.index(each.row.verdict), int(each.row.id))))


def _names(row: ReleaseRow) -> tuple[tuple[Any, ...], ...]:
    """Return the keys by which a newer row replaces this one; unjudged rows replace no judged ones."""
    policy, is_judged = row.policy.partition(" ")[0], row.verdict != "not_comparable"
    return (row.candidate.model, row.suites, policy, row.treatment, is_judged), (row.candidate.run, row.baseline.run)


def _waiting(group: list[ReleaseRow], facts: dict[str, Any]) -> WaitingRelease:
    first, *earlier = group
    known = {name: values[0] if values else None for name, values in facts.items()}
    gates = zip(facts.get("gate_words", ()), facts.get("gate_tiers", ()), strict=True)
    return WaitingRelease(
        row=first,
        earlier=tuple(earlier),
        gates=tuple(verdict for verdict, tier in gates if tier == "critical"),
        headline_gate=known.get("headline_gate") or 0,
        suite=known.get("suite") or first.suites[0],
        reason=known.get("reason") or "",
        step=known.get("step") or "",
        n_broken=known.get("n_broken") or 0,
        n_cases=known.get("n_cases") or 0,
        look=known.get("look"),
        n_more=known.get("n_more"),
        chance=known.get("chance"),
    )


class _Values(Func):
    """All values at a path of a verdict's document, as a list."""

    template = "jsonb_path_query_array(%(expressions)s)"
    output_field = JSONField()

    def __init__(self, path: str) -> None:
        super().__init__("verdict__document", RawSQL("%s::jsonpath", [path]))  # a constant of FACTS


def _read_facts(release_ids: list[int]) -> dict[int, dict[str, list[Any]]]:
    """Return by release the values at each of FACTS, for releases with a verdict."""
    paths = {name: _Values(path) for name, path in FACTS.items()}
    rows = ReleaseRecord.objects.filter(pk__in=release_ids, verdict__isnull=False).order_by()
    names = list(paths)
    return {pk: dict(zip(names, values, strict=True)) for pk, *values in rows.values_list("pk", *paths.values())}
