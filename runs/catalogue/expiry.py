"""Decide whether a gate's baseline had expired when its candidate ran, for verdicts and pages."""

from collections.abc import Sequence

from runs.catalogue import rotations as rules
from runs.models import BaselineRecord, GateRecord, Rotation


def expired(gates: Sequence[GateRecord]) -> dict[int, Rotation]:
    """Return gate id → the rotation that ended its baseline, for gates that have one. Two queries.

    Only a rotation of before the candidate was asked for counts: a later one says nothing about either run. A run
    that was never made a baseline expires alike, so that naming it by hand is no way round; one that a person has
    made the baseline again, after the stack came back, holds again. Reads the gates' runs, their profiles and buckets.
    """
    by_gate: dict[int, Rotation] = {}
    baselines = BaselineRecord.objects.filter(run__in={gate.baseline_run_id for gate in gates}).order_by("id")
    newest = {(run, suite): ended_by for run, suite, ended_by in baselines.values_list("run", "suite", "rotation")}
    endpoints = {gate.baseline_run.endpoint_id for gate in gates}
    rotations = list(Rotation.objects.filter(endpoint__in=endpoints).select_related("endpoint").order_by("-id"))
    by_id = {rotation.pk: rotation for rotation in rotations}  # that of a baseline is on its run's endpoint
    for gate in gates:
        ended_by = newest.get((gate.baseline_run_id, gate.suite_id))
        if ended_by is not None and _counts(by_id[ended_by], gate):
            by_gate[gate.pk] = by_id[ended_by]
        elif (rotation := _rotated_away(gate, rotations)) is not None:
            by_gate[gate.pk] = rotation
    return by_gate


def _rotated_away(gate: GateRecord, rotations: Sequence[Rotation]) -> Rotation | None:
    """Return the newest rotation before the candidate if it led to a stack other than the baseline's."""
    run = gate.baseline_run
    here = (
        rotation
        for rotation in rotations
        if rules.is_of(rotation, endpoint_id=run.endpoint_id, profile_slug=run.profile.slug) and _counts(rotation, gate)
    )
    newest = next(here, None)
    if newest is None or run.bucket is None or newest.after_id == run.bucket.fingerprint_id:
        return None
    return newest


def _counts(rotation: Rotation, gate: GateRecord) -> bool:
    return rotation.at < gate.candidate_run.created_at
