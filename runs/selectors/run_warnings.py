"""What nobody may miss about a run, each with a stable code and one sentence. docs/api.md lists the codes."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

from evalboard.core import fingerprint
from runs import imported
from runs.models import Run, Shard
from runs.selectors.run import Pin, RunWarning
from runs.selectors.run_facts import RunFacts, is_waiting
from runs.selectors.worker import left_alone

# Below this a single case moves the score by less than what people round away.
POINTS_WORTH_A_WARNING = 1.0
PINS_NAMED = 3


def warnings_of(facts: RunFacts, pins: tuple[Pin, ...]) -> tuple[RunWarning, ...]:
    """Worst first: what makes the numbers void, then what limits what they mean."""
    return tuple(RunWarning(code, text) for code, text in _found(facts, pins))


def several_buckets(n: int) -> RunWarning:
    """Said wherever the score of a run that `n` buckets served would stand."""
    return RunWarning("several_buckets", f"{n} buckets served this run; it is scored per bucket and never as a whole.")


def _found(facts: RunFacts, pins: tuple[Pin, ...]) -> Iterator[tuple[str, str]]:
    yield from _broken_pins(pins)
    yield from _ended_badly(facts)
    if len(facts.buckets) > 1:
        mixed = several_buckets(len(facts.buckets))
        yield mixed.code, mixed.text
    yield from _self_checks(facts)
    yield from _logged(facts)
    if _is_deserted(facts):
        yield "no_matching_worker", waiting(facts)
    if facts.doorbell_problem:
        yield "queue_delayed", f"The queue is delayed. {facts.doorbell_problem}"
    if facts.run.profile.settings.get("batch_class") == "mixed":
        name = facts.run.profile.slug
        yield "rough_profile", f"Profile {name} batches cases as they come: a rough signal, never a release decision."
    yield from _one_process(facts)
    worth = 100 / facts.n_cases
    if worth > POINTS_WORTH_A_WARNING:
        yield "coarse_suite", f"One of {facts.n_cases} cases is worth {worth:.1f} points."


def _broken_pins(pins: tuple[Pin, ...]) -> Iterator[tuple[str, str]]:
    broken = [pin for pin in pins if not pin.held]
    if not broken:
        return
    named = ", ".join(f"{pin.name} (wanted {pin.wanted}, found {pin.found})" for pin in broken[:PINS_NAMED])
    more = f" and {len(broken) - PINS_NAMED} more" if len(broken) > PINS_NAMED else ""
    what = "1 pin is" if len(broken) == 1 else f"{len(broken)} pins are"
    yield "pins_broken", f"{what} broken: {named}{more}. The run was not decoded as its profile says."


def _ended_badly(facts: RunFacts) -> Iterator[tuple[str, str]]:
    run, errors = facts.run, facts.errors
    if run.status == Run.Status.FAILED:
        first_line = next(iter(run.failure.strip().splitlines()), "")  # a traceback may follow; history keeps it
        yield "failed", f"The run failed, so it has no score. {first_line}".strip()
        return
    n_there = facts.n_done - errors.total()
    if run.status == Run.Status.CANCELLED:
        yield "cancelled", f"The run was cancelled with {n_there} of {facts.n_total} responses; it has no score."
    if run.status == Run.Status.INCOMPLETE:
        why = Counter(errors)
        why["never decoded" if run.source_id is None else "not in the log"] = facts.n_total - facts.n_done
        listed = ", ".join(f"{n} {code}" for code, n in why.most_common() if n)
        n_missing = facts.n_total - n_there
        yield "incomplete", f"{n_missing} of {facts.n_total} responses are missing ({listed}); no score is given."


def _self_checks(facts: RunFacts) -> Iterator[tuple[str, str]]:
    if facts.n_unvouched:
        text = (
            f"{facts.n_unvouched} responses are not vouched for: the engine's self-check no longer gave the same bits."
        )
        yield "unvouched", text
    digests: dict[int, set[str]] = defaultdict(set)
    for process in facts.processes:
        digests[process.bucket_id].update(check["digest"] for check in process.self_checks[:1])
    if any(len(found) > 1 for found in digests.values()):
        text = (
            "Engine processes of one bucket gave different self-checks: something moves bits that no fingerprint shows."
        )
        yield "self_check_differs", text


def _logged(facts: RunFacts) -> Iterator[tuple[str, str]]:
    """What a run that was read from another tool's log cannot say."""
    source = facts.run.source
    if source is None:
        return
    if any(not fingerprint.is_known(bucket.fingerprint.manifest) for bucket in facts.buckets.values()):
        text = "The log does not say what served some responses, so they are comparable with no other run."
        yield "unknown_stack", text
    yield from ((event.code, event.text) for event in facts.events if event.code in imported.WARNED_OF)
    yield "imported", f"Read from a log of {source.tool}, which does not say how the responses were batched."


def _one_process(facts: RunFacts) -> Iterator[tuple[str, str]]:
    """A start is part of what repeats measure, so repeats of one process say less."""
    decoded = {process for repeat in facts.repeats for process in repeat.process_ids}
    if facts.run.source is not None:
        return  # nobody knows how many there were
    if facts.run.status == Run.Status.FINISHED and len(facts.repeats) > 1 and len(decoded) == 1:
        n = len(facts.repeats)
        text = f"All {n} repeats shared one engine process, so the range does not show what a fresh start changes."
        yield "one_process", text


def waiting(facts: RunFacts) -> str:
    """Why nobody works at a run that is neither ended nor being decoded; empty where nothing needs saying."""
    if not is_waiting(facts.run, facts.repeats):
        return ""
    pool, alive = facts.run.endpoint.pool, facts.alive
    if not alive:
        return f"No worker of pool {pool} is there; start one with `evalboard worker --pool {pool}`."
    reasons = _reasons(facts)
    resting = _resting(facts)
    if reasons.total() == len(alive):
        return f"Every worker of pool {pool} leaves this run alone. {_listed(reasons)}"
    if reasons.total() + len(resting) == len(alive):
        alone = f"; the others leave this run alone. {_listed(reasons)}" if reasons else "."
        return f"{_resting_until(pool, resting)}{alone}"
    if pause := _pause(facts):
        return pause
    others = [worker for worker in alive if worker.pk in facts.busy_ids]
    at_work = ", all at work on other runs" if len(others) == len(alive) else ""
    return f"Waits for a worker of pool {pool}; {len(alive)} seen lately{at_work}."


def _is_deserted(facts: RunFacts) -> bool:
    """Nobody is there who would take the run if it were told of it."""
    free = len(facts.alive) - _reasons(facts).total() - len(_resting(facts))
    return is_waiting(facts.run, facts.repeats) and free == 0


def _reasons(facts: RunFacts) -> Counter[str]:
    """Why workers leave this very run alone, and how many of them."""
    said = (left_alone(worker.note) for worker in facts.alive)
    return Counter(alone.why for alone in said if alone and alone.run_id == facts.run.pk)


def _resting(facts: RunFacts) -> list[datetime]:
    """When each worker that rests looks again; one that says why it leaves the run alone is not counted twice."""
    return [
        worker.rests_until
        for worker in facts.alive
        if worker.rests_until and worker.rests_until > facts.now and not left_alone(worker.note)
    ]


def _resting_until(pool: str, resting: list[datetime]) -> str:
    who = f"The worker of pool {pool} rests" if len(resting) == 1 else f"{len(resting)} workers of pool {pool} rest"
    return f"{who} after failures of the engine, until {_clock(min(resting))}"


def _pause(facts: RunFacts) -> str:
    """That the whole run pauses after an engine did not start."""
    queued = [shard for repeat in facts.repeats for shard in repeat.shards if shard.status == Shard.Status.QUEUED]
    first = min(shard.next_at for shard in queued)
    if first <= facts.now:
        return ""
    return f"The engine did not start; it is tried again at {_clock(first)}."


def _listed(reasons: Counter[str]) -> str:
    """ "It keeps to another serving stack than this worker's. 2 × No GPU is there."."""
    said = (f"{n} × {why}" if n > 1 else f"{why[:1].upper()}{why[1:]}" for why, n in reasons.most_common())
    return " ".join(said)


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%H:%M:%S} UTC"
