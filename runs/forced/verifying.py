"""Advance a probe of kind `verify`: it only requests runs, and forced scorings of their answers.

It waits in the queue while these run, and checks them each time a worker claims it.
"""

from datetime import timedelta

from django.db.models.functions import Now

from evalboard.core.errors import Conflict, EvalboardError, LeaseLost
from runs.forced.known_answers import KNOWN, ask_run, begin_verification, name_known_answers
from runs.forced.scorings import create_forced
from runs.forced.verification import verify_scoring
from runs.models import AnswerSet, ForcedScoringRecord, ProbeRecord, RunRecord
from runs.probes import PROBES, ProbeCourse
from runs.store import storable
from runs.work import Lease

LOOKS_AGAIN = timedelta(seconds=5)
Role = AnswerSet.Role
Sets = dict[str, AnswerSet]  # by role


def go_on_verifying(*, lease: Lease) -> None:
    """Request what is missing, or end the probe if all is scored. Raises LeaseLost.

    A run or a scoring that failed fails the probe.
    """
    try:
        with PROBES.locked(lease=lease) as probe:
            sets = {each.role: each for each in probe.sets.select_related("run", "scoring")}
            if not _are_scored(probe, sets):
                waits = {"status": ProbeRecord.Status.QUEUED, "owner": None, "lease_until": None, "error": ""}
                PROBES.write(lease=lease, **waits, next_at=Now() + LOOKS_AGAIN)
                return
        ids = {role: each.scoring_id for role, each in sets.items() if each.scoring_id is not None}
        own = ids.pop(Role.ENDPOINT)
        judged = verify_scoring(
            own, control=ids[Role.CONTROL], numerics=[ids[Role.NUMERICS]], planted=ids.get(Role.PLANTED)
        )
    except LeaseLost:
        raise
    except EvalboardError as problem:
        words = " ".join([problem.detail, *problem.fields.values()])
        PROBES.finish(lease=lease, status=ProbeRecord.Status.FAILED, error=storable(words))
        return
    numbers = judged.model_dump(mode="json", exclude={"state", "sentence", "numerics_place"})
    finding = {"state": judged.state, "sentence": judged.sentence, "numbers": numbers}
    PROBES.finish(lease=lease, status=ProbeRecord.Status.FINISHED, finding=finding, error="")


def _are_scored(probe: ProbeRecord, sets: Sets) -> bool:
    """Ask for the next that each set of answers needs; True where nothing is left to ask or to wait for.

    The endpoint's answers are scored first: what that is bound to is the stack that all are to be scored on.
    """
    own = sets[Role.ENDPOINT]
    for each in sets.values():
        _refuse_ended_badly(each)
    if not _has_run(own):
        return False
    if own.scoring is None:
        _score(probe, own)
    if own.scoring is None or own.scoring.status != ForcedScoringRecord.Status.FINISHED:
        return False
    for role in KNOWN:
        if role in sets:
            _score_known(probe, sets[role], own.scoring)
    scorings = [each.scoring for each in sets.values()]
    return all(each is not None and each.status == ForcedScoringRecord.Status.FINISHED for each in scorings)


def _score_known(probe: ProbeRecord, known: AnswerSet, own: ForcedScoringRecord) -> None:
    run = known.run
    if run is None or not _has_run(known) or known.scoring is not None:
        return
    if known.role == Role.CONTROL and run.bucket_id != own.bucket_id and run.created_at < probe.created_at:
        known.run = ask_run(probe, probe.parameters["reference"])  # its stack is another one since
        known.save(update_fields=["run"])
        return
    scored = ForcedScoringRecord.objects.filter(run=run, cases=None, status=ForcedScoringRecord.Status.FINISHED)
    same = scored.filter(bucket=own.bucket_id, endpoint=own.endpoint_id, profile=own.profile_id)
    known.scoring = same.order_by("-pk").first()
    if known.scoring is None:
        _score(probe, known)
    else:
        known.save(update_fields=["scoring"])


def _score(probe: ProbeRecord, answers: AnswerSet) -> None:
    reference, profile = probe.parameters["reference"], probe.profile.slug
    answers.scoring = create_forced(
        run_id=answers.run_id or 0, endpoint=reference, profile=profile, user=probe.created_by
    )
    answers.save(update_fields=["scoring"])


def _has_run(answers: AnswerSet) -> bool:
    return answers.run is not None and answers.run.is_terminal


def _refuse_ended_badly(answers: AnswerSet) -> None:
    """Raises Conflict where a set's run or scoring came to nothing, or was deleted."""
    run, scoring = answers.run, answers.scoring
    if run is None:
        raise Conflict(f"The run of its {answers.role} was deleted.")
    if run.status in (RunRecord.Status.FAILED, RunRecord.Status.CANCELLED):
        raise Conflict(f"Run {run.pk}, of its {answers.role}, is {run.status}. {run.failure}".strip())
    if scoring is not None and scoring.status == ForcedScoringRecord.Status.FAILED:
        raise Conflict(f"Forced scoring {scoring.pk}, of its {answers.role}, has failed. {scoring.error}".strip())


COURSE = ProbeCourse(complete=name_known_answers, begin=begin_verification, go_on=go_on_verifying)
