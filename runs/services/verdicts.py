"""The verdict of a release: kept with the digest of what it rests on, and taken anew when that moves.

Pages and the API decide on reading, and a run's end decides the releases that rest on it, so nobody sees a verdict on
what was. Deciding where nothing has changed costs a few small queries and writes nothing.
"""

import logging
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from evalboard.core import policy, verdict
from evalboard.core.errors import Conflict, EvalboardError, NotFound
from evalboard.core.gate_document import FIRST_RULES
from evalboard.core.verdict import GateInput
from runs.models import Gate, Release, Run, SignOff, Verdict
from runs.services import comparisons, news, verdict_inputs, verdict_warnings
from runs.services.verdict_inputs import Found

logger = logging.getLogger(__name__)

TRIES = 3  # to decide while the inputs keep changing
LOOKED_BACK = timedelta(hours=1)  # how long the sweep looks for runs whose end was not followed by a decision


def decide_release(*, release_id: int) -> Verdict:
    """The verdict on the release's present inputs, taken now where they have changed.

    While a run that it rests on is at work, the verdict is what it was: it rests on what has ended. Raises NotFound,
    or Conflict where the inputs change faster than they can be judged.
    """
    for _ in range(TRIES):
        release = _release(release_id)
        gates = verdict_inputs.gates_of(release)
        if release.verdict is not None and not all(_have_ended(gate) for gate in gates):
            return release.verdict
        found = verdict_inputs.find(release, gates)
        if release.verdict is not None and _holds(release.verdict, found):
            return release.verdict
        document = judge(found)
        with transaction.atomic():
            locked = _locked(release_id)
            if present_digest(locked) == found.input_digest:  # else it moved while it was judged
                taken = _keep(locked, found, document)
                transaction.on_commit(partial(_ask_for_ledgers, found), robust=True)
                return taken
    raise Conflict(f"What release {release_id} rests on keeps changing; look again in a moment.")


def judge(found: Found) -> dict[str, Any]:
    """The document of docs/verdict.md on a release's inputs, with the warnings that only stored rows can give."""
    release = found.release
    settings = policy.parse(release.policy.settings)
    judged, warned = [], []
    for each in found.gates:  # one gate's columns in memory at a time
        question, inputs = verdict_inputs.load(each, release.treatment)
        judged.append(GateInput(each.gate.tier, each.gate.suite.slug, verdict.judge(question, settings)))
        warned += verdict_warnings.of_serving(each, inputs)
    document = verdict.decide(judged)
    suites = [each.gate.suite.slug for each in found.gates]
    _add_warnings(document, [*warned, *verdict_warnings.of_history(found)], suites)
    return document


def decide_after_commit(*, run_id: int) -> None:
    """Decide the releases that rest on a run once this transaction is done; whatever happens then never fails it."""
    transaction.on_commit(partial(_decide_those_of, run_id), robust=True)


def undecided() -> list[int]:
    """Releases with a run that ended lately, after the verdict was taken: whoever was to decide them has died."""
    lately = Q(finished_at__gt=Now() - LOOKED_BACK)
    ended = Run.objects.filter(lately, status__in=Run.TERMINAL).values("pk")
    decided_at = F("release__verdict__decided_at")
    missed = Q(baseline_run__in=ended, baseline_run__finished_at__gt=decided_at)
    missed |= Q(candidate_run__in=ended, candidate_run__finished_at__gt=decided_at)
    return list(Gate.objects.filter(missed).order_by("release_id").values_list("release", flat=True).distinct())


def present_digest(release: Release) -> str:
    """The digest of what the release's verdict rests on as things are now."""
    found = verdict_inputs.find(release, verdict_inputs.gates_of(release))
    kept = release.verdict
    return kept.input_digest if kept is not None and _holds(kept, found) else found.input_digest


def _holds(kept: Verdict, found: Found) -> bool:
    """Whether a verdict is that of these inputs. One that was signed stays as it was signed when only rules changed."""
    if kept.input_digest == found.input_digest:
        return True
    rules = kept.document.get("rules", FIRST_RULES)
    return kept.input_digest == found.digest_by(rules) and _is_signed(kept)


def _is_signed(kept: Verdict) -> bool:
    ended = Q(expires_at__lte=Now())
    return SignOff.objects.filter(verdict=kept, input_digest=kept.input_digest).exclude(ended).exists()


def _release(release_id: int) -> Release:
    related = ("policy", "verdict__policy")
    found = Release.objects.select_related(*related).filter(pk=release_id).first()
    if found is None:
        raise NotFound(f"There is no release {release_id}.")
    return found


def _have_ended(gate: Gate) -> bool:
    return gate.baseline_run.is_terminal and gate.candidate_run.is_terminal


def _locked(release_id: int) -> Release:
    """The release, its row locked until the transaction ends."""
    rows = Release.objects.select_for_update(no_key=True, of=("self",)).select_related("policy", "verdict")
    return rows.get(pk=release_id)


def _keep(release: Release, found: Found, document: dict[str, Any]) -> Verdict:
    """Store the verdict as the locked release's present one; one taken on these very inputs is found again."""
    if release.verdict is not None and release.verdict.input_digest == found.input_digest:
        return release.verdict  # somebody else was faster
    taken, _ = Verdict.objects.get_or_create(
        release=release,
        input_digest=found.input_digest,
        defaults={"word": document["verdict"], "policy": release.policy, "document": document},
    )
    Release.objects.filter(pk=release.pk).update(verdict=taken)
    news.tell_of_verdict(release, taken)
    return taken


def _add_warnings(document: dict[str, Any], warned: list[dict[str, Any]], suites: list[str]) -> None:
    """Each beside its gate and in the release's own list, which names the suite where there are several."""
    gates = document["gates"]
    for each in warned:
        code, text, place = each["code"], each["text"], each["gate"]
        gates[place]["warnings"] = [*gates[place]["warnings"], {"code": code, "text": text}]
        named = f"{suites[place]}: {text}" if len(suites) > 1 else text
        document["warnings"] = [*document["warnings"], {"code": code, "text": named, "gate": place}]


def _decide_those_of(run_id: int) -> None:
    of_run = Gate.objects.filter(Q(baseline_run=run_id) | Q(candidate_run=run_id))
    for release_id in of_run.order_by("release_id").values_list("release", flat=True).distinct():
        try:
            decide_release(release_id=release_id)
        except Exception:  # whatever is wrong with one release, the others are decided, and the run has ended
            logger.exception("Release %s was not decided anew", release_id)


def _ask_for_ledgers(found: Found) -> None:
    """So that the page finds the ledger of each gate made, or being made; a verdict does not wait for it."""
    for each in found.gates:
        gate = each.gate
        try:
            comparisons.compare(baseline=gate.baseline_run_id, candidate=gate.candidate_run_id)
        except EvalboardError as problem:
            logger.warning("Release %s has no ledger of gate %s: %s", gate.release_id, gate.position, problem.detail)
