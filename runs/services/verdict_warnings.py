"""What a verdict warns of that only stored rows can say: how the runs were served, and what was tried before.

Codes are listed in docs/releases.md. Nothing here changes a verdict.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any

import numpy as np

from evalboard.core import policy as policies
from evalboard.core.verdict_names import verdict_name
from runs.models import Gate, Release, SignOff, Verdict
from runs.services import comparison_inputs
from runs.services.comparison_inputs import Inputs, Side
from runs.services.verdict_inputs import Found, GateFound, SideFound

MIXED = "mixed"
PINS_NAMED = 3
RUNS_NAMED = 5
POLICIES_NAMED = 3

Warned = dict[str, Any]  # {"code", "text", "gate"}


def of_serving(found: GateFound, inputs: Inputs) -> list[Warned]:
    """How one gate's two runs were decoded, the gravest first."""
    sides = (
        ("baseline", found.baseline, inputs.baseline),
        ("candidate", found.candidate, inputs.candidate),
    )
    warned = [
        {"code": code, "text": f"{text[:1].upper()}{text[1:]}"}
        for name, side, columns in sides
        for code, text in _of_side(f"run {side.run.pk}, the {name},", side, columns, inputs)
    ]
    return [{**each, "gate": found.gate.position} for each in warned]


def of_history(found: Found) -> list[Warned]:
    """What was judged before on the same runs, at the moment of deciding; a fixed number of queries."""
    baselines = {each.gate.baseline_run_id for each in found.gates}
    earlier = Gate.objects.filter(baseline_run__in=baselines, release__lt=found.release.pk)
    rows = list(earlier.order_by("release_id").values_list("baseline_run", "candidate_run", "release"))
    tried: dict[int, set[int]] = defaultdict(set)
    pairs: dict[tuple[int, int], set[int]] = defaultdict(set)
    for baseline, candidate, release in rows:
        tried[baseline].add(candidate)
        pairs[baseline, candidate].add(release)
    others = _judged_otherwise(found, {release for _, _, release in rows})
    waived = _waived(baselines)
    warned: list[Warned] = []
    for each in found.gates:
        gate = each.gate
        known = tried[gate.baseline_run_id] | {gate.candidate_run_id}
        lines = [
            _tried(sorted(known), gate),
            _tolerance_changed(found.release, [others[other] for other in pairs[_pair(gate)] if other in others]),
            waived.get(gate.baseline_run_id),
        ]
        warned += [{**line, "gate": gate.position} for line in lines if line is not None]
    return warned


def _of_side(who: str, side: SideFound, columns: Side, inputs: Inputs) -> Iterator[tuple[str, str]]:
    if side.broken_pins:
        named = ", ".join(side.broken_pins[:PINS_NAMED])
        more = f" and {len(side.broken_pins) - PINS_NAMED} more" if len(side.broken_pins) > PINS_NAMED else ""
        yield "pins_broken", f"{who} was not decoded as its profile says; broken pins: {named}{more}."
    served = comparison_inputs.shares(columns.buckets)
    if len(served) > 1:
        parts = ", ".join(_bucket_words(bucket, share, columns, inputs) for bucket, _, share in served)
        yield "several_buckets", f"{who} was served by {len(served)} buckets, which are never pooled: {parts}."
    if side.n_unvouched:
        text = f"{who} has {side.n_unvouched:,} responses that are not vouched for"
        yield "unvouched", f"{text}: the engine's self-check no longer gave the same bits."
    if side.run.source_id is not None:
        yield "imported", f"{who} was read from another tool's log, which does not say how it was batched."
    if any(inputs.buckets[bucket].batch_class == MIXED for bucket, _, _ in served):
        yield "rough_profile", f"{who} was batched as cases came: a rough signal, and no repeat is like another."
    if side.n_left_out:
        n = "one repeat" if side.n_left_out == 1 else f"{side.n_left_out} repeats"
        yield "repeats_left_out", f"{who} has {n} that were cancelled or failed; they are left out of the verdict."
    if side.n_repeats < 2:
        yield "noise_unmeasured", f"{who} has a single repeat, so its own noise is not measured."
    elif side.n_processes == 1 and side.run.source_id is None:
        text = f"{who} has {side.n_repeats} repeats by one engine process"
        yield "one_process", f"{text}, so its noise does not show what a fresh start changes."


def _bucket_words(bucket_id: int, share: float, columns: Side, inputs: Inputs) -> str:
    """ "60 % by ab12 (alone), 81.4 points"."""
    bucket = inputs.buckets[bucket_id]
    known = columns.scores[(columns.buckets == bucket_id) & ~np.isnan(columns.scores)]
    points = f", {100 * known.mean():.1f} points" if len(known) else ""
    return f"{100 * share:.0f} % by {bucket.fingerprint} ({bucket.batch_class}){points}"


def _pair(gate: Gate) -> tuple[int, int]:
    return gate.baseline_run_id, gate.candidate_run_id


def _tried(candidates: Sequence[int], gate: Gate) -> Warned | None:
    if len(candidates) < 2:
        return None
    named = ", ".join(f"run {run}" for run in candidates[-RUNS_NAMED:])
    more = f"the last {RUNS_NAMED}: " if len(candidates) > RUNS_NAMED else ""
    text = f"{len(candidates)} candidates were judged against run {gate.baseline_run_id} so far ({more}{named})"
    return {"code": "candidates_tried", "text": f"{text}. Of many that are no better, one will look so by chance."}


def _judged_otherwise(found: Found, releases: set[int]) -> dict[int, Verdict]:
    """The first verdict of each of these releases, where it was taken under other settings than this one."""
    taken = Verdict.objects.filter(release__in=releases).exclude(policy__digest=found.release.policy.digest)
    rows = taken.select_related("policy").defer("document").order_by("-id")
    return {row.release_id: row for row in rows}


def _tolerance_changed(release: Release, before: Sequence[Verdict]) -> Warned | None:
    """Said to whoever reads: the thresholds were chosen after it was known what others had said of these two runs."""
    now = policies.parse(release.policy.settings)
    if not before:
        return None
    ordered = sorted(before, key=lambda row: row.pk)[-POLICIES_NAMED:]
    said = "; ".join(
        f"release {row.release_id} under {row.policy}, tolerance "
        f"{policies.parse(row.policy.settings).tolerance_points:g} points: {verdict_name(row.word)}"
        for row in ordered
    )
    text = f"The same two runs were judged before under another policy ({said})."
    return {"code": "policy_changed", "text": f"{text} This release's tolerance is {now.tolerance_points:g} points."}


def _waived(run_ids: set[int]) -> dict[int, Warned]:
    """Runs that were let through by a waiver when they were candidates, and until when."""
    signed = SignOff.objects.filter(release__gates__candidate_run__in=run_ids)
    rows = signed.order_by("id").values_list(
        "release__gates__candidate_run", "decision", "release", "person_name", "expires_at"
    )
    newest = {row[0]: row for row in rows if row[0] in run_ids}
    found: dict[int, Warned] = {}
    for run, decision, release, person, expires_at in newest.values():
        if decision == SignOff.Decision.WAIVE and expires_at is not None:
            until = f"{expires_at.astimezone(UTC):%Y-%m-%d}"
            text = f"Run {run}, the baseline, was itself let through by a waiver of {person} until {until}"
            found[run] = {"code": "waived_baseline", "text": f"{text} (release {release})."}
    return found
