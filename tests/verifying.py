"""Verifications brought to their end: runs and forced scorings as workers would leave them, each a shift away."""

from typing import Any

from django.db.models.functions import Now

from runs.forced.verifying import go_on_verifying
from runs.models import (
    AnswerSet,
    EndpointRecord,
    EngineProcess,
    ForcedScoringRecord,
    ProbeRecord,
    ProfileRecord,
    RunRecord,
    WorkerRecord,
)
from runs.probes import claim_probe, create_probe
from tests import build, forced

N = 12  # cases
SHIFTS = {"endpoint": 0.02, "control": 0.0, "numerics": 0.01, "planted": 0.02}  # nats, each token's


def ask(on: str = "asked", *, user: Any = None, **parameters: Any) -> ProbeRecord:
    """A queued verification whose runs are queued too; endpoints and suite are made where they are not there."""
    for slug, dtype in ((on, "float32"), ("reference", "float32"), ("second", "bfloat16"), ("changed", "float32")):
        path = "/models/8-bits" if slug == "changed" else "/models/paint"
        known = {"dtype": dtype, "model_path": path, "line": "paint", "max_model_len": 1024}
        EndpointRecord.objects.get_or_create(slug=slug, defaults=known)
    build.suite("texts", [f"case-{number:02}" for number in range(N)])
    if not ProfileRecord.objects.exists():
        build.profile("pinned")
    named = {"suite": "texts", "reference": "reference", **parameters}
    return create_probe(endpoint=on, kind="verify", parameters=named, user=user)


def look() -> None:
    """Let a worker look after the oldest verification, as it does every few seconds."""
    ProbeRecord.objects.filter(status="queued").update(next_at=Now())
    lease = claim_probe(worker=WorkerRecord.objects.filter(name="prober").first() or build.worker("prober"))
    assert lease is not None
    go_on_verifying(lease=lease)


def end_runs(probe: ProbeRecord, by: EngineProcess) -> None:
    """End each run that is at work, with one answer everywhere."""
    for each in probe.sets.select_related("run"):
        if each.run is not None and each.run.status == RunRecord.Status.QUEUED:
            build.decode(each.run, 1, ["blue"] * N, by=by)


def end_scorings(by: EngineProcess, **shifts: float) -> None:
    """Score what is asked for, the tokens of each set as much less likely as SHIFTS or `shifts` say."""
    while scoring := ForcedScoringRecord.objects.filter(status="queued").order_by("pk").first():
        role = _role(scoring)
        forced.scored(scoring, by=by, shift={**SHIFTS, **shifts}[role], other_at=None)


def end(probe: ProbeRecord, by: EngineProcess, **shifts: float) -> ProbeRecord:
    """Bring it to its end, whatever that is."""
    for _ in range(6):
        end_runs(probe, by)
        end_scorings(by, **shifts)
        probe.refresh_from_db()
        if probe.status != "queued":
            break
        look()
    probe.refresh_from_db()
    return probe


def _role(scoring: ForcedScoringRecord) -> str:
    return AnswerSet.objects.get(scoring=scoring).role
