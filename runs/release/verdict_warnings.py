"""What a verdict warns of that only stored rows can say: how the runs were served, and what was tried before.

`evalboard.wording.release_warnings` has the row of each code. Nothing here changes a verdict.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any

import numpy as np

from evalboard.core.suite import parse_policy
from runs.compare import Inputs, StoredSide
from runs.models import Gate, Policy, Release, SignOff, Verdict
from runs.release.verdict_inputs import GateInputs, ReleaseInputs, SideInputs

MIXED = "mixed"
POLICIES_NAMED = 3
RUNS_NAMED = 5

Facts = dict[str, Any]
Warned = tuple[str, Facts]  # a code, and what its sentence gives


def list_serving_warnings(gate: GateInputs, inputs: Inputs) -> list[Warned]:
    """Return how one gate's two runs were decoded, the gravest first; each is about one `run`, a `side` of the gate."""
    sides = (("baseline", gate.baseline, inputs.baseline), ("candidate", gate.candidate, inputs.candidate))
    return [
        (code, {"run": side.run.pk, "side": name, **facts})
        for name, side, columns in sides
        for code, facts in _warn_of_side(side, columns, inputs)
    ]


def list_history_warnings(release: ReleaseInputs) -> list[list[Warned]]:
    """Return by gate what was judged before on the same runs, as things are now; a fixed number of queries."""
    baselines = {each.gate.baseline_run_id for each in release.gates}
    earlier = Gate.objects.filter(baseline_run__in=baselines, release__lt=release.release.pk)
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
        by_gate.append([(code, facts) for code, facts in warnings.items() if facts is not None])
    return by_gate


def _warn_of_side(side: SideInputs, columns: StoredSide, inputs: Inputs) -> Iterator[Warned]:
    if side.broken_pins:
        yield "pins_broken", {"pins": list(side.broken_pins)}
    if len(columns.shares) > 1:
        buckets = [_bucket(bucket, share, columns, inputs) for bucket, _, share in columns.shares]
        yield "several_buckets", {"buckets": buckets}
    if side.n_unvouched:
        yield "unvouched", {"n": side.n_unvouched}
    if side.n_truncated:
        yield "truncated", {"n": side.n_truncated, "is_log": side.run.source_id is not None}
    for strays in side.run.strays or ():
        yield "two_computations", {"n": strays["n_strays"], "distance": strays["distance"]}
    for bucket in side.run.unsteady or ():
        yield "unsteady", {name: bucket[name] for name in ("batch_class", "n_cases", "n_apart")}
    if side.uncertified:
        yield "uncertified", {"hosts": list(side.uncertified)}
    if side.run.is_log:
        yield "imported", {}
    elif side.run.is_reported:
        yield "reported", {}
    if any(inputs.buckets[bucket].batch_class == MIXED for bucket, _, _ in columns.shares):
        yield "rough_profile", {}
    if side.n_left_out:
        yield "repeats_left_out", {"n": side.n_left_out}
    if side.n_repeats < 2:
        yield "noise_unmeasured", {}
    elif side.n_processes == 1 and not side.run.is_reported:
        yield "one_process", {"n_repeats": side.n_repeats}


def _bucket(bucket_id: int, share: float, columns: StoredSide, inputs: Inputs) -> list[Any]:
    """Return [share, fingerprint, batch class, points]; points None where it has no score."""
    bucket = inputs.buckets[bucket_id]
    scores = columns.scores[(columns.buckets == bucket_id) & ~np.isnan(columns.scores)]
    points = 100 * float(scores.mean()) if len(scores) else None
    return [float(share), str(bucket.fingerprint), bucket.batch_class, points]


def _tried(candidates: Sequence[int], gate: Gate) -> Facts | None:
    n = len(candidates)
    return {"run": gate.baseline_run_id, "n": n, "candidates": [*candidates[-RUNS_NAMED:]]} if n > 1 else None


def _judged_otherwise(release: ReleaseInputs, releases: set[int]) -> dict[int, Verdict]:
    """Return the first verdict of each of these releases, where it was taken under other settings than this one."""
    taken = Verdict.objects.filter(release__in=releases).exclude(policy__digest=release.release.policy.digest)
    rows = taken.select_related("policy").defer("document").order_by("-id")
    return {row.release_id: row for row in rows}


def _policies(release: Release, before: Sequence[Verdict]) -> Facts | None:
    """Tell whoever reads that the thresholds were chosen after it was known what others had said of these two runs."""
    if not before:
        return None
    ordered = sorted(before, key=lambda row: row.pk)[-POLICIES_NAMED:]
    return {
        "before": [[row.release_id, str(row.policy), _tolerance(row.policy), row.word] for row in ordered],
        "tolerance": _tolerance(release.policy),
    }


def _tolerance(policy: Policy) -> float:
    return parse_policy(policy.settings).tolerance_points


def _waivers(run_ids: set[int]) -> dict[int, Facts]:
    """Return the runs that were let through by a waiver when they were candidates, and until when."""
    signed = SignOff.objects.filter(release__gates__candidate_run__in=run_ids)
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
        if decision == SignOff.Decision.WAIVE and expires_at is not None
    }
