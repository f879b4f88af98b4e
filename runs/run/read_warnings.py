"""What nobody may miss about a run: codes and facts. evalboard/wording/run.py has their sentences."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from evalboard.contract.base import Note
from evalboard.contract.run import Pin
from evalboard.core.profile import is_serving_known
from evalboard.wording import run as wording
from runs.models import Run
from runs.run.read_facts import RunFacts, is_waiting
from runs.store import imported
from runs.work import run_left_alone

# Below this a single case moves the score by less than what people round away.
POINTS_WORTH_A_WARNING = 1.0

Facts = dict[str, Any]


def warnings_of(facts: RunFacts, broken: tuple[Pin, ...]) -> tuple[Note, ...]:
    """Return the warnings, worst first: what makes the numbers void, then what limits what they mean."""
    return tuple(Note(code=code, text=wording.warning(code, known)) for code, known in _warnings(facts, broken))


def waiting(facts: RunFacts) -> str:
    """Return why nobody works at a run that is neither ended nor being decoded; "" where nothing needs saying."""
    why = _waiting(facts)
    return "" if why is None else wording.waiting(*why)


def _warnings(facts: RunFacts, broken: tuple[Pin, ...]) -> Iterator[tuple[str, Facts]]:
    run, source = facts.run, facts.run.source
    if broken:
        yield "pins_broken", {"pins": [(pin.name, pin.wanted, pin.found) for pin in broken]}
    yield from _ended_badly(facts)
    if len(facts.buckets) > 1:
        yield "several_buckets", {"n": len(facts.buckets)}
    if facts.n_unvouched:
        yield "unvouched", {"n": facts.n_unvouched}
    if facts.n_truncated:
        yield "truncated", {"n": facts.n_truncated, "is_log": source is not None}
    for strays in run.strays or ():
        yield "two_computations", strays
    for bucket in run.unsteady or ():
        yield "unsteady", bucket
    if facts.uncertified:
        yield "uncertified", _uncertified(facts)
    if _self_checks_differ(facts):
        yield "self_check_differs", {}
    if run.is_reported:
        if any(not is_serving_known(bucket.fingerprint.manifest) for bucket in facts.buckets.values()):
            yield "unknown_stack", {"is_remote": source is None}
        if source is None:
            yield "reported", {}
        newest = {event.code: event.text for event in facts.events if event.code in imported.WARNED_OF}
        yield from ((code, {"text": text}) for code, text in newest.items())
    if source is not None and run.is_log:
        yield "imported", {"tool": source.tool}
    if not run.is_terminal and (rest := find_pause(facts)) is not None:
        yield "endpoint_rests", rest
    why = _waiting(facts)
    if why is not None and _is_deserted(facts):
        yield "no_matching_worker", {"why": why[0], **why[1]}
    if facts.doorbell_problem:
        yield "queue_delayed", {"why": facts.doorbell_problem}
    if run.profile.settings.get("batch_class") == "mixed" and not run.is_reported:  # of others it is said above
        yield "rough_profile", {"profile": run.profile.slug}
    if _shares_one_process(facts):
        yield "one_process", {"n": len(facts.repeats)}
    if 100 / facts.n_cases > POINTS_WORTH_A_WARNING:
        yield "coarse_suite", {"n_cases": facts.n_cases}


def _ended_badly(facts: RunFacts) -> Iterator[tuple[str, Facts]]:
    run, errors = facts.run, facts.all_errors
    if run.status == Run.Status.FAILED:
        yield "failed", {"failure": run.failure}
    elif run.status == Run.Status.CANCELLED:
        yield "cancelled", {"n_done": facts.n_decoded - errors.total(), "n_total": facts.n_total}
    elif run.status == Run.Status.INCOMPLETE:
        n_never, is_log = facts.n_total - facts.n_decoded, run.source_id is not None
        if n_never or errors.total():
            yield "incomplete", {"by_code": errors, "n_never": n_never, "n_total": facts.n_total, "is_log": is_log}
        else:
            n_no_draws = sum(repeat.n_left_out for repeat in facts.every)
            yield "few_draws", {"n": n_no_draws, "n_total": facts.n_total}


def _uncertified(facts: RunFacts) -> Facts:
    return {"hosts": facts.uncertified, "endpoint": facts.run.endpoint.slug, "profile": facts.run.profile.slug}


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
    """Nobody is there who would take the run if it were told of it."""
    if not (facts.run.endpoint.is_remote or any(worker.has_engine for worker in facts.alive)):
        return is_waiting(facts.run, facts.every)
    free = len(facts.alive) - _reasons(facts).total() - len(_resting(facts))
    return is_waiting(facts.run, facts.every) and free == 0


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
