"""Trials: one case sent to an endpoint before its suite is stored, by the workers that decode runs."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from evalboard.contract import suite as contract
from evalboard.core import scoring
from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import EXTERNAL, ScorerReply
from evalboard.core.suite import SuiteText
from runs.models import TrialRecord, WorkerRecord
from runs.run import decoding_problems, named_endpoint, newest_profile
from runs.store import keep_images, require_row, storable
from runs.suites.own_scorers import bind_document
from runs.work import Lease, Requests, Serving, refuse_if_nobody_can, requests, serving_of

TRIALS = Requests(TrialRecord, serving="")
KEPT = timedelta(days=7)


def create_trial(
    *, read: SuiteText, endpoint: str, case: str = "", profile: str = "pinned", user: Any = None
) -> TrialRecord:
    """Queue one case of a suite for a worker of the endpoint's pool; the suite is not stored.

    case: its id; "": the first. Raises InvalidInput with fields, NotFound for names that do not exist, and
    ProfileRefused where no worker can honour the profile.
    """
    suite = replace(read, document=bind_document(read.document)).parse()
    chosen = next((each for each in suite.cases if case in ("", each.id)), None)
    target, decoding = named_endpoint(endpoint), newest_profile(profile)
    fields = decoding_problems(target, decoding)
    if chosen is None:
        fields["case"] = f"The suite has no case {case}."
    scorer = None if chosen is None else chosen.scorer or suite.scorer
    if scorer is not None and scorer["kind"] == scoring.RECORDED.name:
        fields["suite"] = "Its scores were read from a log. Choose a scorer that reads answers."
    if scorer is not None and scorer["kind"] == scoring.JUDGE.name:
        fields["suite"] = "A judge scores this case, and judges score runs. Push the suite and run it once."
    if fields or chosen is None:
        raise InvalidInput("The case cannot be tried.", fields=fields)
    refuse_if_nobody_can(target, decoding)
    sent = {"id": chosen.id, "messages": chosen.messages, "tools": chosen.tools, "target": chosen.target}
    sent |= {"scorer": scorer, "max_tokens": suite.max_tokens, "stop": suite.stop}
    TrialRecord.objects.filter(created_at__lt=Now() - KEPT).delete()
    with transaction.atomic():
        keep_images([chosen])
        trial = TrialRecord.objects.create(endpoint=target, profile=decoding, case=sent, created_by=user)
        requests.ring_after_commit(target.pool)
    return trial


def claim_trial(*, worker: WorkerRecord, left_alone: frozenset[int]) -> Lease | None:
    """Claim the oldest trial that this worker can score: one by a team's own scorer needs that scorer."""
    here = [each["digest"] for each in worker.scorers if not each["problem"]]
    others = Q(case__scorer__kind__in=EXTERNAL) & ~Q(case__scorer__digest__in=here)
    return TRIALS.claim(TrialRecord.objects.exclude(others).exclude(pk__in=left_alone), worker=worker)


def trial_work(trial_id: int) -> tuple[Serving, dict[str, Any]]:
    """Return what serves a trial, and its case."""
    trial = TrialRecord.objects.select_related("endpoint", "profile").get(pk=trial_id)
    case = trial.case
    serving = serving_of(trial.endpoint, trial.profile, None, max_tokens=case["max_tokens"], stop=case["stop"])
    return serving, case


def finish_trial(
    *, lease: Lease, text: str, thinking: str | None, finish_reason: str, seconds: float, scored: ScorerReply
) -> None:
    """End a trial with its answer and the score that the suite's scorer gave it. Raises LeaseLost."""
    answer = {"text": storable(text), "thinking": thinking and storable(thinking)}
    score = {"score": scored.value, "reason": storable(scored.reason)}
    how = {"finish_reason": finish_reason, "seconds": round(seconds, 3)}
    TRIALS.finish(lease=lease, status=TrialRecord.Status.FINISHED, answer={**answer, **score, **how}, error="")


def fail_trial(*, lease: Lease, reason: str) -> None:
    """End a trial without an answer. Raises LeaseLost."""
    TRIALS.finish(lease=lease, status=TrialRecord.Status.FAILED, error=storable(reason))


def failing_endpoints() -> frozenset[str]:
    """Return the slugs of endpoints that gave no answer to their newest trial."""
    newest = TrialRecord.objects.order_by("endpoint_id", "-pk").distinct("endpoint_id")
    failed = TrialRecord.Status.FAILED
    return frozenset(slug for slug, status in newest.values_list("endpoint__slug", "status") if status == failed)


def trial_row(trial_id: int) -> contract.Trial:
    """Return a trial, as far as it is. Raises NotFound."""
    trial = require_row(
        TrialRecord.objects.select_related("endpoint", "profile").filter(pk=trial_id),
        f"There is no trial {trial_id}. Trials are kept for {KEPT.days} days.",
    )
    answer = None if trial.answer is None else contract.TrialAnswer(**trial.answer)
    return contract.Trial.from_record(
        trial,
        id=str(trial.pk),
        case=trial.case["id"],
        endpoint=trial.endpoint.slug,
        profile=trial.profile.slug,
        target=trial.case["target"],
        scorer=trial.case["scorer"],
        answer=answer,
        error=trial.error or None,
    )
