"""Check a stored verdict by judging again and comparing the two.

A verdict is a row like any other, and the database's account can write `ship` into it. So a verdict that its inputs do
not give can neither be signed nor exported as valid.
"""

import logging

from evalboard.core.archive import digest_evidence, dump_evidence
from evalboard.core.digest import digest_json
from evalboard.core.release import find_change
from runs import sign_off_chain
from runs.models import ReleaseRecord, SignOffRecord, Verdict
from runs.release import verdict_inputs, verdicts

logger = logging.getLogger(__name__)


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
        given = verdicts.judge(inputs, lambda gate: evidence.append(dump_evidence(gate)))
        change = _policy_change(release, verdict) or find_change(verdict.word, verdict.document, given)
        evidence_digest = digest_evidence(evidence)
    if not change:
        return "", evidence_digest
    logger.error("verdict_changed release=%s verdict=%s: %s", release.pk, verdict.pk, change)
    what = f"The stored verdict of release {release.pk} is not what its inputs give: {change}"
    return f"{what} It was changed in the database and is invalid until it is repaired.", ""


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
