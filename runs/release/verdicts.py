"""The verdict of a release: stored with the digest of its inputs, and judged again when that changes.

Pages and the API judge on reading, and a run's end judges the releases that use it, so an outdated verdict is never
shown. If nothing has changed, that costs a few small queries and writes nothing.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from evalboard.core.errors import Conflict, EvalboardError
from evalboard.core.release import FIRST_VERDICT_RULES
from runs import sign_off_chain
from runs.compare import comparisons
from runs.models import ComparisonRecord, GateRecord, ReleaseRecord, RunRecord, SignOffRecord, Verdict
from runs.release import verdict_inputs
from runs.release.verdict_check import judge, require_unchanged
from runs.release.verdict_inputs import GateInputs, ReleaseInputs
from runs.store import require_row
from runs.webhooks import news

logger = logging.getLogger(__name__)

TRIES = 3  # to decide while the inputs keep changing
LOOKED_BACK = timedelta(hours=1)  # how long the sweep looks for runs whose end was not followed by a decision


@dataclass(frozen=True, slots=True)
class Decided:
    """A release's present verdict and its gates. inputs: None while a run is in progress."""

    release: ReleaseRecord
    verdict: Verdict
    gates: Sequence[GateRecord]
    inputs: ReleaseInputs | None


def compare_gate(decided: Decided, position: int) -> ComparisonRecord:
    """Return a gate's comparison, making it if needed. Raises InvalidInput or Conflict."""
    if decided.inputs is None:
        gate = decided.gates[position]
        treatment, pair_by = gate.release.terms
        return comparisons.compare(
            baseline=gate.baseline_run_id, candidate=gate.candidate_run_id, treatment=treatment, pair_by=pair_by
        )
    each = decided.inputs.gates[position]
    return _compare(each, decided.inputs.release)


def _compare(each: GateInputs, release: ReleaseRecord) -> ComparisonRecord:
    sides = each.baseline.key, each.candidate.key, each.comparison_digest
    return comparisons.compare_sides(*sides, terms=release.terms, judged_before=release.created_at)


def decide_release(*, release_id: int) -> Verdict:
    """Return the verdict on the release's present inputs, taken now where they have changed.

    While a run that it rests on is at work, the verdict is what it was: it rests on what has ended. Raises NotFound,
    or Conflict where the inputs change faster than they can be judged.
    """
    return decide(release_id=release_id).verdict


def decide(*, release_id: int) -> Decided:
    """Judge like `decide_release`, and also return what was read for it."""
    for _ in range(TRIES):
        release = _release(release_id)
        gates = verdict_inputs.read_release_gates(release)
        if release.verdict is not None and not all(_have_ended(gate) for gate in gates):
            require_unchanged(release.verdict)
            return Decided(release, release.verdict, gates, None)
        inputs = verdict_inputs.find(release, gates)
        if release.verdict is not None and _holds(release.verdict, inputs):
            require_unchanged(release.verdict)
            return Decided(release, release.verdict, gates, inputs)
        document = judge(inputs)
        with transaction.atomic():
            locked = _locked(release_id)
            if present_digest(locked) == inputs.input_digest:  # else it moved while it was judged
                taken = _store(locked, inputs, document)
                transaction.on_commit(partial(_ask_for_ledgers, inputs), robust=True)
                return Decided(locked, taken, gates, inputs)
    raise Conflict(f"What release {release_id} depends on keeps changing; try again in a moment.")


def undecided() -> list[int]:
    """Return releases whose run ended recently after their verdict, because of a crash in between."""
    lately = Q(finished_at__gt=Now() - LOOKED_BACK)
    ended = RunRecord.objects.filter(lately, status__in=RunRecord.TERMINAL).values("pk")
    decided_at = F("release__verdict__decided_at")
    missed = Q(baseline_run__in=ended, baseline_run__finished_at__gt=decided_at)
    missed |= Q(candidate_run__in=ended, candidate_run__finished_at__gt=decided_at)
    return list(GateRecord.objects.filter(missed).order_by("release_id").values_list("release", flat=True).distinct())


def present_digest(release: ReleaseRecord) -> str:
    """Return the digest of a release's verdict inputs as they are now."""
    inputs = verdict_inputs.find(release, verdict_inputs.read_release_gates(release))
    verdict = release.verdict
    return verdict.input_digest if verdict is not None and _holds(verdict, inputs) else inputs.input_digest


def _holds(verdict: Verdict, inputs: ReleaseInputs) -> bool:
    """Tell whether a verdict is that of these inputs. A signed one is valid under older rules too."""
    if verdict.input_digest == inputs.input_digest:
        return True
    rules = verdict.document.get("rules", FIRST_VERDICT_RULES)
    return verdict.input_digest == inputs.digest_by(rules) and _is_signed(verdict)


def _is_signed(verdict: Verdict) -> bool:
    ended = Q(expires_at__lte=Now())
    return SignOffRecord.objects.filter(verdict=verdict, input_digest=verdict.input_digest).exclude(ended).exists()


def _release(release_id: int) -> ReleaseRecord:
    rows = ReleaseRecord.objects.select_related("policy", "verdict__policy").defer("verdict__document")
    return require_row(rows.filter(pk=release_id), f"There is no release {release_id}.")


def _have_ended(gate: GateRecord) -> bool:
    return gate.baseline_run.is_terminal and gate.candidate_run.is_terminal


def _locked(release_id: int) -> ReleaseRecord:
    """Return the release, its row locked until the transaction ends."""
    rows = ReleaseRecord.objects.select_for_update(no_key=True, of=("self",)).select_related("policy", "verdict")
    return rows.get(pk=release_id)


def _store(release: ReleaseRecord, inputs: ReleaseInputs, document: dict[str, Any]) -> Verdict:
    """Store the verdict as the locked release's present one, or return the existing one of these inputs."""
    if release.verdict is not None and release.verdict.input_digest == inputs.input_digest:
        return release.verdict  # another process was faster
    new = {"word": document["verdict"], "policy": release.policy, "document": document}
    sealed = sign_off_chain.seal_verdict(Verdict(release=release, input_digest=inputs.input_digest, **new))
    taken, is_new = Verdict.objects.get_or_create(
        release=release, input_digest=inputs.input_digest, defaults={**new, **sealed}
    )
    if not is_new:  # the inputs are those of a verdict before
        require_unchanged(taken)
    ReleaseRecord.objects.filter(pk=release.pk).update(verdict=taken)
    news.tell_of_verdict(release, taken)
    return taken


def decide_resting_on(run_id: int) -> None:
    """Judge the releases that use a run, each independently."""
    gates = GateRecord.objects.filter(Q(baseline_run=run_id) | Q(candidate_run=run_id))
    for release_id in gates.order_by("release_id").values_list("release", flat=True).distinct():
        try:
            decide_release(release_id=release_id)
        except Exception:  # whatever is wrong with one release, the others are decided, and the run has ended
            logger.exception("Release %s was not decided again", release_id)


def _ask_for_ledgers(inputs: ReleaseInputs) -> None:
    """Start the comparison of each gate for the page; the verdict does not wait for it."""
    for each in inputs.gates:
        gate = each.gate
        try:
            _compare(each, inputs.release)
        except EvalboardError as problem:
            logger.warning("Release %s has no ledger of gate %s: %s", gate.release_id, gate.position, problem.detail)
