"""Read earlier verdicts on a release's runs, for `evalboard.wording.release_warnings`."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC
from typing import Any

from evalboard.core.release import VerdictLine
from evalboard.core.suite import parse_policy
from runs.models import GateRecord, PolicyRecord, ReleaseRecord, SignOffRecord, Verdict
from runs.release.verdict_inputs import ReleaseInputs

POLICIES_NAMED = 3
RUNS_NAMED = 5

Facts = dict[str, Any]


def list_history_warnings(release: ReleaseInputs) -> list[tuple[VerdictLine, ...]]:
    """Return earlier verdicts on the same runs by gate, in a fixed number of queries."""
    baselines = {each.gate.baseline_run_id for each in release.gates}
    earlier = GateRecord.objects.filter(baseline_run__in=baselines, release__lt=release.release.pk)
    rows = list(earlier.order_by("release_id").values_list("baseline_run", "candidate_run", "release"))
    tried: dict[int, set[int]] = defaultdict(set)
    pairs: dict[tuple[int, int], set[int]] = defaultdict(set)
    for baseline, candidate, earlier_release in rows:
        tried[baseline].add(candidate)
        pairs[baseline, candidate].add(earlier_release)
    others = _judged_otherwise(release, {earlier_release for _, _, earlier_release in rows})
    waivers = _waivers(baselines)
    by_gate = []
    for gate in (each.gate for each in release.gates):
        candidates = tried[gate.baseline_run_id] | {gate.candidate_run_id}
        before = [others[each] for each in pairs[gate.baseline_run_id, gate.candidate_run_id] if each in others]
        warnings = {
            "candidates_tried": _tried(sorted(candidates), gate),
            "policy_changed": _policies(release.release, before),
            "waived_baseline": waivers.get(gate.baseline_run_id),
        }
        by_gate.append(tuple(VerdictLine(code, facts) for code, facts in warnings.items() if facts is not None))
    return by_gate


def _tried(candidates: Sequence[int], gate: GateRecord) -> Facts | None:
    n = len(candidates)
    return {"run": gate.baseline_run_id, "n": n, "candidates": [*candidates[-RUNS_NAMED:]]} if n > 1 else None


def _judged_otherwise(release: ReleaseInputs, releases: set[int]) -> dict[int, Verdict]:
    """Return the first verdict of each of these releases that used other settings."""
    taken = Verdict.objects.filter(release__in=releases).exclude(policy__digest=release.release.policy.digest)
    rows = taken.select_related("policy").defer("document").order_by("-id")
    return {row.release_id: row for row in rows}


def _policies(release: ReleaseRecord, before: Sequence[Verdict]) -> Facts | None:
    """Return the facts of earlier verdicts with other thresholds on the same runs.

    They warn that these thresholds were chosen after a verdict was known.
    """
    if not before:
        return None
    ordered = sorted(before, key=lambda row: row.pk)[-POLICIES_NAMED:]
    return {
        "before": [[row.release_id, str(row.policy), _tolerance(row.policy), row.word] for row in ordered],
        "tolerance": _tolerance(release.policy),
    }


def _tolerance(policy: PolicyRecord) -> float:
    return parse_policy(policy.settings).tolerance_points


def _waivers(run_ids: set[int]) -> dict[int, Facts]:
    """Return the runs that shipped under a waiver as candidates, and until when."""
    signed = SignOffRecord.objects.filter(release__gates__candidate_run__in=run_ids)
    rows = signed.order_by("id").values_list(
        "release__gates__candidate_run", "decision", "release", "person_name", "expires_at"
    )
    newest = {row[0]: row for row in rows if row[0] in run_ids}
    return {
        run: {
            "run": run,
            "person": person,
            "until": f"{expires_at.astimezone(UTC):%Y-%m-%d}",
            "release": release,
        }
        for run, decision, release, person, expires_at in newest.values()
        if decision == SignOffRecord.Decision.WAIVE and expires_at is not None
    }
