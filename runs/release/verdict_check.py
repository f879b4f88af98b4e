"""Whether a stored verdict is what its inputs give: it is taken anew, and the two are held against each other.

A verdict is a row like any other, and whoever holds the database's account can write `ship` into it. So nobody signs,
and no export calls whole, what its inputs do not give.
"""

import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from evalboard.core.digest import canonical_json, digest_json
from evalboard.core.release import FIRST_VERDICT_RULES
from runs import sign_off_chain
from runs.models import ReleaseRecord, SignOffRecord, Verdict
from runs.release import verdict_inputs, verdicts

logger = logging.getLogger(__name__)

# What was tried and signed meanwhile changes a verdict's warnings, and nothing else of it.
MOVES = "warnings"
# Two machines may add the same numbers in another order; whoever changes a number changes more of it than this.
CLOSE = 1e-9


def verdict_change(verdict: Verdict) -> str:
    """Say in a sentence how a stored verdict differs from what its inputs give now, and log it; "" where it does not.

    Where the inputs have moved since, or it was taken by earlier rules, nobody can take it again: then it is held
    against what was signed. Raises Conflict where a run of the release has nothing left to judge.
    """
    release = ReleaseRecord.objects.select_related("policy").get(pk=verdict.release_id)
    inputs = verdict_inputs.find(release, verdict_inputs.read_release_gates(release))
    change = _change_since_signed(verdict)
    if not change and inputs.input_digest == verdict.input_digest:
        change = _policy_change(release, verdict) or _change(verdict, verdicts.judge(inputs))
    if not change:
        return ""
    logger.error("verdict_changed release=%s verdict=%s: %s", release.pk, verdict.pk, change)
    what = f"The stored verdict of release {release.pk} is not what its inputs give: {change}"
    return f"{what} It was changed in the database, and says nothing until it is put right."


def _change_since_signed(verdict: Verdict) -> str:
    signed = SignOffRecord.objects.filter(verdict=verdict, version__gte=2)
    if signed.exclude(verdict_digest=sign_off_chain.verdict_digest(verdict)).exists():
        return "it is not the one that was signed before."
    return ""


def _policy_change(release: ReleaseRecord, verdict: Verdict) -> str:
    policy = release.policy
    if verdict.policy_id != policy.pk:
        return f"it stands under another policy than {policy}."
    if digest_json(policy.settings) != policy.digest:
        return f"the settings of {policy} are not those of its digest."
    return ""


def _change(verdict: Verdict, document: Mapping[str, Any]) -> str:
    given = json.loads(canonical_json(document))
    if verdict.word != given["verdict"]:
        return f"it says {verdict.word}, and taken anew it is {given['verdict']}."
    if place := _first_difference({"rules": FIRST_VERDICT_RULES, **verdict.document}, given, ""):
        return f"{place} is another one when it is taken anew."
    return ""


def _first_difference(stored: Any, given: Any, place: str) -> str:
    """Return the path of the first value that differs, warnings aside; "" where none does."""
    if isinstance(stored, dict) and isinstance(given, dict):
        names = sorted((stored.keys() | given.keys()) - {MOVES})
        inner = ((stored.get(name), given.get(name), f"{place}.{name}" if place else name) for name in names)
    elif isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        inner = ((*pair, f"{place}[{at}]") for at, pair in enumerate(zip(stored, given, strict=True)))
    else:
        return "" if _is_same(stored, given) else place
    return next(filter(None, (_first_difference(*each) for each in inner)), "")


def _is_same(stored: Any, given: Any) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (stored, given)]
    if all(numbers):
        return math.isclose(stored, given, rel_tol=CLOSE, abs_tol=CLOSE)
    return bool(stored == given)
