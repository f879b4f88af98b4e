"""What the warnings of a run are made of, and why nobody works at it."""

from collections import Counter, defaultdict
from datetime import datetime
from typing import Any

from evalboard.contract.run import Pin, RunWarning
from evalboard.core.profile import is_serving_known
from evalboard.wording import run as wording
from evalboard.wording.run_warnings import WarnedRun, list_warnings
from runs.models import Run
from runs.run.read_facts import RunFacts, is_waiting
from runs.work import run_left_alone

Facts = dict[str, Any]


def warnings_of(facts: RunFacts, broken: tuple[Pin, ...]) -> tuple[RunWarning, ...]:
    """Return the warnings of a run, worst first."""
    run, source, why = facts.run, facts.run.source, _waiting(facts)
    known = (is_serving_known(bucket.fingerprint.manifest) for bucket in facts.buckets.values())
    warned = WarnedRun(
        broken=[(pin.name, pin.wanted, pin.found) for pin in broken],
        status=run.status,
        failure=run.failure,
        endpoint=run.endpoint.slug,
        profile=run.profile.slug,
        is_mixed=run.profile.settings.get("batch_class") == "mixed",
        is_reported=run.is_reported,
        is_logged=source is not None,
        tool=source.tool if source is not None and run.is_log else "",
        n_cases=facts.n_cases,
        n_total=facts.n_total,
        n_decoded=facts.n_decoded,
        n_left_out=sum(repeat.n_left_out for repeat in facts.every),
        n_unvouched=facts.n_unvouched,
        n_truncated=facts.n_truncated,
        n_buckets=len(facts.buckets),
        n_of_one_process=len(facts.repeats) if _shares_one_process(facts) else 0,
        errors=facts.all_errors,
        strays=run.strays or (),
        unsteady=run.unsteady or (),
        uncertified=facts.uncertified,
        has_unlike_self_checks=_self_checks_differ(facts),
        is_stack_unknown=run.is_reported and not all(known),
        notes={event.code: event.text for event in facts.events} if run.is_reported else {},
        pause=None if run.is_terminal else find_pause(facts),
        deserted=why if why is not None and _is_deserted(facts) else None,
        doorbell_problem=facts.doorbell_problem,
    )
    return list_warnings(warned)


def waiting(facts: RunFacts) -> str:
    """Return why nobody works at a run that is neither ended nor being decoded; "" where nothing needs saying."""
    why = _waiting(facts)
    return "" if why is None else wording.waiting(*why)


def _self_checks_differ(facts: RunFacts) -> bool:
    """Whether two engine processes of one bucket began with other bits."""
    digests: dict[int, set[str]] = defaultdict(set)
    for process in facts.processes:
        digests[process.bucket_id].update(check["digest"] for check in process.self_checks[:1])
    return any(len(different) > 1 for different in digests.values())


def _shares_one_process(facts: RunFacts) -> bool:
    """A start is part of what repeats measure, so repeats of one process say less. Of other servers nobody knows."""
    decoded = {process for repeat in facts.repeats for process in repeat.process_ids}
    is_finished = facts.run.status == Run.Status.FINISHED and not facts.run.is_reported
    return is_finished and len(facts.repeats) > 1 and len(decoded) == 1


def _waiting(facts: RunFacts) -> tuple[str, Facts] | None:
    """Return the code of why nobody works at the run, and its facts."""
    if not is_waiting(facts.run, facts.every):
        return None
    pool, alive = facts.run.endpoint.pool, facts.alive
    if not alive:
        return "nobody", {"pool": pool}
    if not (facts.run.endpoint.is_remote or any(worker.has_engine for worker in alive)):
        return "no_engine", {"pool": pool}
    reasons, resting = _reasons(facts), _resting(facts)
    known = {"pool": pool, "reasons": reasons.most_common()}
    if reasons.total() == len(alive):
        return "left_alone", known
    if reasons.total() + len(resting) == len(alive):
        return "resting", {**known, "n_resting": len(resting), "until": min(resting)}
    if (rest := find_pause(facts)) is not None:
        return "endpoint_rests", rest
    if (first := _paused_until(facts)) is not None:
        return "paused", {"until": first}
    are_busy = all(each.pk in facts.busy_ids for each in alive)
    return "queued", {"pool": pool, "n_alive": len(alive), "are_busy": are_busy, "ahead": facts.ahead}


def find_pause(facts: RunFacts) -> Facts | None:
    """Return why the endpoint of a run is not called, and until when, as `contract.parts.Pause` has it."""
    endpoint = facts.run.endpoint
    if endpoint.rests_until is None or endpoint.rests_until <= facts.now:
        return None
    return {"until": endpoint.rests_until, "reason": endpoint.rest_reason, "n_failures": endpoint.n_failures}


def _is_deserted(facts: RunFacts) -> bool:
    """Nobody is there who would take a run that waits if it were told of it."""
    if not (facts.run.endpoint.is_remote or any(worker.has_engine for worker in facts.alive)):
        return True
    return len(facts.alive) == _reasons(facts).total() + len(_resting(facts))


def _reasons(facts: RunFacts) -> Counter[str]:
    """Why workers leave this very run alone, and how many of them."""
    left = (run_left_alone(worker) for worker in facts.alive)
    return Counter(alone.why for alone in left if alone and alone.run == str(facts.run.pk))


def _resting(facts: RunFacts) -> list[datetime]:
    """When each worker that rests looks again; one that says why it leaves the run alone is not counted twice."""
    return [
        worker.rests_until
        for worker in facts.alive
        if worker.rests_until and worker.rests_until > facts.now and not run_left_alone(worker)
    ]


def _paused_until(facts: RunFacts) -> datetime | None:
    """Until when the whole run pauses after an engine did not start."""
    first = min(repeat.work.next_at for repeat in facts.every if repeat.work.next_at is not None)
    return first if first > facts.now else None
