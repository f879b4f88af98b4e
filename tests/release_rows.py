"""Releases written as rows, with verdicts that the rules need not have said: for tests of what is read from them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from evalboard.core.digest import digest_json
from evalboard.core.release import VERDICT_RULES
from evalboard.core.suite import DEFAULT_POLICIES
from runs import sign_off_chain
from runs.models import (
    BaselineRecord,
    FingerprintRecord,
    GateRecord,
    PolicyRecord,
    ReleaseRecord,
    Rotation,
    RunRecord,
    SignOffRecord,
    Suite,
    Verdict,
)
from tests import build


def policy(slug: str = "strict", *, version: int = 1) -> PolicyRecord:
    known = DEFAULT_POLICIES.get(slug, DEFAULT_POLICIES["paired"])
    made, _ = PolicyRecord.objects.get_or_create(
        slug=slug,
        version=version,
        defaults={"title": slug.title(), "settings": known["settings"], "digest": digest_json(known["settings"])},
    )
    return made


def baseline(run: RunRecord, *, by: Any = None, reason: str = "The first good one.", **changes: Any) -> BaselineRecord:
    known = {"suite": run.suite_version.suite, "line": run.endpoint.line, "profile_slug": run.profile.slug}
    return BaselineRecord.objects.create(**{**known, "run": run, "reason": reason, "set_by": by, **changes})


def rotation(run: RunRecord, *, before: FingerprintRecord, expires: Sequence[BaselineRecord] = ()) -> Rotation:
    """`run` is the first that its own bucket's fingerprint served."""
    assert run.bucket is not None
    made = Rotation.objects.create(
        endpoint=run.endpoint, profile_slug=run.profile.slug, before=before, after=run.bucket.fingerprint, run=run
    )
    BaselineRecord.objects.filter(pk__in=[each.pk for each in expires]).update(rotation=made)
    return made


def gate(verdict: str = "ship", **changes: Any) -> dict[str, Any]:
    """One gate of a verdict's document."""
    side = {
        "sd_points": 0.2,
        "disagreement_rate": 0.01,
        "n_unstable": 1,
        "range5_points": 0.5,
        "is_overdispersed": False,
    }
    known = {
        "tier": "critical",
        "verdict": verdict,
        "reasons": [{"code": "within_tolerance", "text": "The drop is within the tolerance."}],
        "warnings": [],
        "n_cases": 3,
        "n_cases_judged": 3,
        "points_per_case": 100 / 3,
        "difference": -0.25,
        "low": -0.75,
        "high": 0.25,
        "level": 0.94,
        "reach": {
            "low": -3.0,
            "high": 2.5,
            "level": 0.9,
            "n_groups": None,
            "design_effect": None,
            "is_concentrated": False,
        },
        "score_baseline": 80.5,
        "score_candidate": 80.25,
        "points_baseline": [80.0, 81.0],
        "points_candidate": [80.0, 80.5],
        "range_baseline": [80.0, 81.0],
        "range_candidate": [80.0, 80.5],
        "interval_baseline": [80.1, 80.9],
        "interval_candidate": None,
        "noise": {"baseline": side, "candidate": side},
        "resolution_points": 0.5,
        "resolution_elsewhere_points": None,
        "look": 5,
        "method": "flips",
        "repeats_needed": None,
        "expected": {"repeats": 10, "low": -0.5, "high": 0.0},
        "leaning": None,
        "cases_needed": {"5": 93, "10": 57},
        "missing": {"n_baseline": 0, "n_candidate": 0, "share": 0.0, "low": None, "high": None},
        "changed": {"n_fixed": 1, "n_broken": 2, "n_unstable": 1, "fixed": ["sky"], "broken": ["a/b c", "sea"]},
        "tolerance_points": 1.0,
        "guard_points": 1.0,
        "is_worth_a_look": False,
    }
    return {**known, **changes}


def document(*gates: Mapping[str, Any], verdict: str = "ship", **changes: Any) -> dict[str, Any]:
    known = {
        "version": 1,
        "rules": VERDICT_RULES,
        "verdict": verdict,
        "summary": f"It is {verdict}.",
        "headline_gate": 0,
        "reasons": [{"code": "within_tolerance", "text": "The drop is within the tolerance.", "gate": 0}],
        "warnings": [{"code": "coarse_suite", "text": "One case is worth 33.3 points.", "gate": 0}],
        "next": [{"code": "sign", "text": "Sign it off.", "gate": None}],
        "gates": list(gates) or [gate(verdict)],
    }
    return {**known, **changes}


def release(
    candidate: RunRecord,
    baseline_run: RunRecord,
    *,
    verdict: str = "ship",
    by: Any = None,
    of: PolicyRecord | None = None,
    **changes: Any,
) -> ReleaseRecord:
    """A release of one gate, decided unless `verdict` is "". `changes` go to its document."""
    made = ReleaseRecord.objects.create(policy=of or policy(), created_by=by, labels={"commit": "1f3a"})
    add_gate(made, candidate, baseline_run)
    if verdict:
        decide(made, document(verdict=verdict, **changes))
    return made


def add_gate(
    to: ReleaseRecord,
    candidate: RunRecord,
    baseline_run: RunRecord,
    *,
    tier: str = "critical",
    suite: Suite | None = None,
) -> GateRecord:
    return GateRecord.objects.create(
        release=to,
        position=to.gates.count(),
        suite=suite or candidate.suite_version.suite,
        tier=tier,
        candidate_run=candidate,
        baseline_run=baseline_run,
    )


def decide(of: ReleaseRecord, said: dict[str, Any], *, inputs: str = "first") -> Verdict:
    """The verdict on inputs that are called `inputs`."""
    made = Verdict.objects.create(
        release=of, word=said["verdict"], policy=of.policy, document=said, input_digest=digest_json(inputs)
    )
    of.verdict = made
    of.save(update_fields=["verdict"])
    return made


def sign(
    of: ReleaseRecord,
    decision: str = "approve",
    *,
    by: Any = None,
    note: str = "",
    expires_at: datetime | None = None,
    created_at: datetime | None = None,
) -> SignOffRecord:
    """A link of the chain, on the release's present verdict."""
    assert of.verdict is not None
    person = by or build.user(f"signer-{SignOffRecord.objects.count()}", "release manager")
    before = SignOffRecord.objects.order_by("-id").first()
    row = SignOffRecord(
        release=of,
        verdict=of.verdict,
        person=person,
        person_name=person.get_username(),
        decision=decision,
        note=note,
        expires_at=expires_at,
        input_digest=of.verdict.input_digest,
        created_at=created_at or timezone.now(),
        previous_digest=before.digest if before else "",
    )
    row.digest = sign_off_chain.digest_of(row)
    row.save()
    return row
