"""Judge a release, and check a stored verdict by its seal, else by judging again.

A verdict is a row like any other, and the database's account can write `ship` into it. So a verdict that its inputs do
not give is neither shown, signed nor exported as valid.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any

from evalboard.core.archive import digest_evidence, dump_evidence
from evalboard.core.digest import digest_json
from evalboard.core.errors import Conflict
from evalboard.core.release import GateEvidence, find_change, judge_release
from evalboard.core.suite import parse_policy
from evalboard.wording.release import write_verdict
from runs import sign_off_chain
from runs.models import ReleaseRecord, SignOffRecord, Verdict
from runs.release import verdict_inputs
from runs.release.verdict_history import list_history_warnings
from runs.release.verdict_inputs import ReleaseInputs

logger = logging.getLogger(__name__)


def judge(inputs: ReleaseInputs, note: Callable[[GateEvidence], None] | None = None) -> dict[str, Any]:
    """Return the document of docs/verdict.md on these inputs. One gate's columns are in memory at a time.

    note: is called with what each gate is judged by.
    """
    release = inputs.release

    def evidence() -> Iterator[GateEvidence]:
        for gate, history in zip(inputs.gates, list_history_warnings(inputs), strict=True):
            loaded = verdict_inputs.load(gate, release, history)
            if note is not None:
                note(loaded)
            yield loaded

    runs = [{"baseline": gate.baseline.run.pk, "candidate": gate.candidate.run.pk} for gate in inputs.gates]
    return write_verdict(judge_release(evidence(), parse_policy(release.policy.settings)), runs)


def require_unchanged(verdict: Verdict) -> None:
    """Judge a verdict without a right seal again, and seal it if the result is the same.

    Raises Conflict where it is another one. So a key that is not known here costs one judgement. Where the inputs have
    moved since, what was signed decides.
    """
    if sign_off_chain.is_sealed(verdict):
        return
    change, evidence_digest = judge_again(verdict)
    if not change and not evidence_digest and not _is_as_signed(verdict):
        change = (
            f"The verdict of release {verdict.release_id} has no seal that is known here (EVALBOARD_VERDICT_KEY), and "
            "its inputs have moved. It is judged again as soon as its runs have ended."
        )
    if change:
        raise Conflict(change)
    Verdict.objects.filter(pk=verdict.pk).update(**sign_off_chain.seal_verdict(verdict))


def require_document(verdict: Verdict) -> None:
    """Raise Conflict where a verdict's document is not the one that was sealed with it."""
    if not sign_off_chain.has_sealed_document(verdict):
        raise Conflict(_refuse(verdict, "its reasons or numbers are not those that were sealed."))


def verdict_change(verdict: Verdict) -> str:
    """Say how a stored verdict differs from judging again, and log it; "" if equal.

    Raises Conflict if a run of the release has nothing left to judge.
    """
    return judge_again(verdict)[0]


def judge_again(verdict: Verdict) -> tuple[str, str]:
    """Return the same, and the digest of the evidence that it was judged by again; "" where it was not.

    Where the inputs have moved since, or it was taken by earlier rules, nobody can take it again: then it is held
    against what was signed. Raises Conflict where a run of the release has nothing left to judge.
    """
    release = ReleaseRecord.objects.select_related("policy").get(pk=verdict.release_id)
    inputs = verdict_inputs.find(release, verdict_inputs.read_release_gates(release))
    change, evidence_digest = _change_since_signed(verdict), ""
    if not change and inputs.input_digest == verdict.input_digest:
        evidence: list[bytes] = []
        given = judge(inputs, lambda gate: evidence.append(dump_evidence(gate)))
        change = _policy_change(release, verdict) or find_change(verdict.word, verdict.document, given)
        evidence_digest = digest_evidence(evidence)
    if not change:
        return "", evidence_digest
    return _refuse(verdict, change), ""


def _refuse(verdict: Verdict, change: str) -> str:
    """Log a changed verdict, and return the sentence that people read."""
    logger.error("verdict_changed release=%s verdict=%s: %s", verdict.release_id, verdict.pk, change)
    what = f"The stored verdict of release {verdict.release_id} is not what its inputs give: {change}"
    return f"{what} It was changed in the database and is invalid until it is repaired."


def _is_as_signed(verdict: Verdict) -> bool:
    rows = SignOffRecord.objects.filter(verdict=verdict, verdict_digest=sign_off_chain.verdict_digest(verdict))
    return any(not sign_off_chain.seal_problem(row) for row in rows)


def _change_since_signed(verdict: Verdict) -> str:
    signed = SignOffRecord.objects.filter(verdict=verdict, version__gte=2)
    if signed.exclude(verdict_digest=sign_off_chain.verdict_digest(verdict)).exists():
        return "it is not the one that was signed before."
    return ""


def _policy_change(release: ReleaseRecord, verdict: Verdict) -> str:
    policy = release.policy
    if verdict.policy_id != policy.pk:
        return f"it has another policy than {policy}."
    if digest_json(policy.settings) != policy.digest:
        return f"the settings of {policy} are not those of its digest."
    return ""
