"""Export a release as one file: verdict, evidence, sign-offs, and the answers of its worst cases."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from evalboard.core.archive import dump_evidence, write_bundle
from evalboard.core.errors import Conflict, EvalboardError
from runs import release, sign_off_chain
from runs.compare import trace_pair, worst_cases
from runs.models import ComparisonRecord, ReleaseRecord, SignOffRecord, Verdict
from runs.release import Decided
from runs.store import instant, require_row

SHOWN_OUTCOMES = ("broken", "fixed")


def release_bundle(release_id: int) -> Iterator[bytes]:
    """Return the bundle's bytes in parts. Raises NotFound, or Conflict while a run of it is at work.

    Whatever may be refused is read before the first part, and the traces of the worst cases while it is sent.
    """
    rows = ReleaseRecord.objects.select_related("policy").filter(pk=release_id)
    stored = require_row(rows, f"There is no release {release_id}.")
    decided = release.decide(release_id=release_id)
    if decided.inputs is None:
        raise Conflict(f"A run of release {release_id} is at work; export it when all have ended.")
    release.require_document(decided.verdict)
    evidence: list[bytes] = []
    release.judge(decided.inputs, lambda gate: evidence.append(dump_evidence(gate)))
    cases = [_worst(decided, at) for at in range(len(decided.gates))]
    return write_bundle(_release(stored, decided), evidence, cases)


def _release(stored: ReleaseRecord, decided: Decided) -> dict[str, Any]:
    verdict, policy = decided.verdict, stored.policy
    return {
        "release": str(stored.pk),
        "treatment": stored.treatment,
        "pair_by": stored.pair_by,
        "labels": stored.labels,
        "created_at": instant(stored.created_at),
        "verdict": {
            "id": str(verdict.pk),
            "word": verdict.word,
            "input_digest": verdict.input_digest,
            "decided_at": instant(verdict.decided_at),
            "document": verdict.document,
        },
        "policy": {"slug": policy.slug, "version": policy.version, "settings": policy.settings},
        "gates": [
            {
                "suite": gate.suite.slug,
                "tier": gate.tier,
                "baseline": str(gate.baseline_run_id),
                "candidate": str(gate.candidate_run_id),
            }
            for gate in decided.gates
        ],
        "sign_offs": [
            {"digest": row.digest, "covers": sign_off_chain.covered_by(row)}
            for row in SignOffRecord.objects.filter(release=stored).order_by("id")
        ],
        "chain": list(SignOffRecord.objects.order_by("id").values_list("digest", flat=True)),
    }


def _worst(decided: Decided, at: int) -> Iterator[dict[str, Any]]:
    """Yield the worst cases of a gate, each with both answers around the token at which they parted."""
    try:
        compared = release.compare_gate(decided, at)
        if compared.status != ComparisonRecord.Status.FINISHED:
            raise Conflict("The runs are still being compared; export the release again when that has ended.")
    except EvalboardError as problem:  # the verdict does not rest on it
        yield {"problem": problem.detail}
        return
    runs = compared.baseline_id, compared.candidate_id
    for outcome in SHOWN_OUTCOMES:
        for shown in worst_cases(compared.pk, runs, outcome=outcome, terms=compared.terms):
            row = {"outcome": outcome, **shown.outcome.to_json()}
            if pair := shown.outcome.pair:
                repeats = pair.repeat_baseline, pair.repeat_candidate
                terms = compared.terms
                row["pair"] = trace_pair(*runs, case_id=shown.outcome.case, repeats=repeats, terms=terms).to_json()
            yield row


def sign_off_lines() -> Iterator[str]:
    """Yield a strict JSON object per line, with the names of docs/api-reference.md.

    Each verdict is judged once.
    """
    for line in release.sign_off_lines(lru_cache(maxsize=None)(_change)):
        yield json.dumps(line.to_json(), ensure_ascii=False, allow_nan=False) + "\n"


def _change(verdict_id: int) -> str:
    """Return how the stored verdict differs from judging again; "" if equal, or if it cannot be judged."""
    verdict = Verdict.objects.select_related("policy").get(pk=verdict_id)
    try:
        return release.verdict_change(verdict)
    except EvalboardError as problem:  # what it rested on can no longer be judged
        return f"Its verdict cannot be recomputed: {problem.detail}"
