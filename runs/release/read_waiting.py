"""Read the releases that wait for a decision, worst first, with reason and next step."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import connection
from django.db.models import Func, JSONField
from django.db.models.expressions import RawSQL

from evalboard.contract.release import NextStep, ReleaseRow, SettlePlan
from evalboard.core.scoring import failure_kind
from runs.models import GateRecord, ReleaseRecord, RunRecord
from runs.release.read_list import rows_of
from runs.release.settling import NO_PLANS, SETTLING_STEPS, SettlePlans, make_plans
from runs.release.verdict_inputs import read_release_gates

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
    "step": "$.next[0]",
    "needed": "$.gates[*].repeats_needed",
    "ks": "$.gates[*].k_baseline",
    "ks_too": "$.gates[*].k_candidate",
    "buckets": '$.warnings[*] ? (@.code == "several_buckets").facts.buckets',
}
# Of releases whose headline gate has broken cases: the tag that most of them have and not all cases of the suite, and
# the candidate's reasons once the comparison has them of each.
BROKEN = """
SELECT release.id,
       (SELECT jsonb_build_array(known.tag, known.n)
          FROM (SELECT tag, count(*) AS n
                  FROM jsonb_array_elements_text(headline.gate -> 'changed' -> 'broken') AS broken (case_id)
                  JOIN runs_case AS known USING (case_id), jsonb_array_elements_text(known.tags) AS tag
                 WHERE known.suite_version_id = run.suite_version_id
                 GROUP BY tag ORDER BY n DESC, tag LIMIT 3) AS known
         WHERE EXISTS (SELECT FROM runs_case AS other
                        WHERE other.suite_version_id = run.suite_version_id AND NOT other.tags ? known.tag)
         ORDER BY known.n DESC, known.tag LIMIT 1),
       (SELECT jsonb_path_query_array(list.told, '$.pairs[*][8]')
          FROM runs_comparison AS comparison,
               LATERAL (SELECT coalesce(comparison.outcomes -> ('first ' || (headline.gate ->> 'look')),
                                        comparison.outcomes -> 'all') -> 'told' -> 'broken' AS told) AS list
         WHERE comparison.baseline_id = gate.baseline_run_id AND comparison.candidate_id = gate.candidate_run_id
           AND comparison.baseline_repeat IS NULL AND comparison.pair_by = release.pair_by
           AND (comparison.treatment = 'prompt') = (release.treatment = 'prompt')
           AND jsonb_array_length(list.told -> 'pairs') = (headline.gate -> 'changed' -> 'n_broken')::int
         ORDER BY comparison.id DESC LIMIT 1)
  FROM runs_release AS release
  JOIN runs_verdict AS verdict ON verdict.id = release.verdict_id
  JOIN runs_gate AS gate
    ON gate.release_id = release.id AND gate.position = (verdict.document -> 'headline_gate')::int
  JOIN runs_run AS run ON run.id = gate.baseline_run_id,
       LATERAL (SELECT verdict.document -> 'gates' -> gate.position AS gate) AS headline
 WHERE release.id = ANY(%s::bigint[])
"""
MAX_KINDS = 2  # of what went wrong


@dataclass(frozen=True, slots=True)
class Broken:
    """What broken cases have in common.

    tag: with how many of them have it. kinds: what went wrong, and how often.
    """

    tag: tuple[str, int] | None = None
    kinds: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingRelease:
    """A release without a valid sign-off. earlier: those it replaces, newest first.

    gates: the verdicts of those that decide. reason: code of the headline gate's first reason, "" without one. step:
    its first one. runs: of the gate that the step is of, by side. plan: of the repeats that would settle it. n_more:
    repeats per side that would decide it, with that chance. buckets: [share, name, batch class, points or None] of each
    that served a side of several.
    """

    row: ReleaseRow
    earlier: tuple[ReleaseRow, ...]
    gates: tuple[str, ...]
    headline_gate: int
    suite: str
    reason: str
    step: NextStep | None
    n_broken: int
    n_cases: int
    look: int | None
    n_more: int | None
    chance: float | None
    buckets: tuple[tuple[Any, ...], ...] = ()
    broken: Broken = Broken()
    runs: Mapping[str, RunRecord] = field(default_factory=dict)
    plan: SettlePlan | None = None


def waiting_releases(releases: Any) -> tuple[WaitingRelease, ...]:
    """Return the waiting releases of a queryset that came `with_outcome`: worst first, then oldest.

    A newer one of the same candidate, suites and policy, or of the same two runs, supersedes an older one, which then
    stands with it. As many statements for many as for one.
    """
    rows = rows_of(releases)
    facts = _read_facts([int(row.id) for row in rows])
    newest: dict[tuple[Any, ...], list[ReleaseRow]] = {}
    for row in sorted(rows, key=lambda row: -int(row.id)):
        group = next((key for key in _names(row) if key in newest), _names(row)[0])
        newest.setdefault(group, []).append(row)
    broken = _read_broken([int(group[0].id) for group in newest.values() if group[0].verdict == "no_ship"])
    waiting = [
        _waiting(group, facts.get(int(group[0].id), {}), broken.get(int(group[0].id), Broken()))
        for group in newest.values()
    ]
    waiting = _with_acts(waiting, facts)
    return tuple(sorted(waiting, key=lambda each: (WORST_FIRST.index(each.row.verdict), int(each.row.id))))


def _with_acts(waiting: list[WaitingRelease], facts: Mapping[int, dict[str, list[Any]]]) -> list[WaitingRelease]:
    """Add the runs and the plan by which the act of each release's first step is offered."""
    acting = [each for each in waiting if each.step and (each.step.code in SETTLING_STEPS or each.step.sides)]
    gates: dict[int, list[GateRecord]] = defaultdict(list)
    for gate in read_release_gates(*(int(each.row.id) for each in acting)) if acting else ():
        gates[gate.release_id].append(gate)
    names = {"verdict": "gate_words", "repeats_needed": "needed", "k_baseline": "ks", "k_candidate": "ks_too"}
    documents = (
        [dict(zip(names, row, strict=True)) for row in zip(*(facts[pk][name] for name in names.values()), strict=True)]
        for pk in gates
    )
    plans = dict(zip(gates, make_plans(list(zip(gates.values(), documents, strict=True))), strict=True))
    return [_with_act(each, gates.get(int(each.row.id)), plans.get(int(each.row.id), NO_PLANS)) for each in waiting]


def _with_act(each: WaitingRelease, gates: Sequence[GateRecord] | None, plans: SettlePlans) -> WaitingRelease:
    if gates is None or each.step is None:
        return each
    gate = gates[each.step.gate or 0]
    return replace(each, runs={"baseline": gate.baseline_run, "candidate": gate.candidate_run}, plan=plans.whole)


def _names(row: ReleaseRow) -> tuple[tuple[Any, ...], ...]:
    """Return the keys by which a newer row replaces this one; unjudged rows replace no judged ones."""
    policy, is_judged = row.policy.partition(" ")[0], row.verdict != "not_comparable"
    return (row.candidate.model, row.suites, policy, row.treatment, is_judged), (row.candidate.run, row.baseline.run)


def _waiting(group: list[ReleaseRow], facts: dict[str, Any], broken: Broken) -> WaitingRelease:
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
        step=NextStep.from_stored({"sides": (), **step}) if (step := known.get("step")) else None,
        n_broken=known.get("n_broken") or 0,
        n_cases=known.get("n_cases") or 0,
        look=known.get("look"),
        n_more=known.get("n_more"),
        chance=known.get("chance"),
        buckets=tuple((share, f"backend {backend}", *rest) for share, backend, *rest in known.get("buckets") or ()),
        broken=broken,
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


def _read_broken(release_ids: list[int]) -> dict[int, Broken]:
    """Return by release what its broken cases have in common."""
    if not release_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(BROKEN, [release_ids])
        return {pk: _broken(*(json.loads(text) if text else [] for text in lists)) for pk, *lists in cursor.fetchall()}


def _broken(tag: list[Any], reasons: list[str]) -> Broken:
    kinds = Counter(kind for reason in reasons if (kind := failure_kind(reason)))
    return Broken((tag[0], tag[1]) if tag else None, tuple(kinds.most_common(MAX_KINDS)))
