"""What nobody may miss about a run, each with a stable code and one sentence. docs/api.md lists the codes."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from runs.models import Run, Shard
from runs.selectors.run import Pin, RunWarning
from runs.selectors.run_facts import RunFacts

# Below this a single case moves the score by less than what people round away.
POINTS_WORTH_A_WARNING = 1.0
PINS_NAMED = 3


def warnings_of(facts: RunFacts, pins: tuple[Pin, ...]) -> tuple[RunWarning, ...]:
    """Worst first: what makes the numbers void, then what limits what they mean."""
    return tuple(RunWarning(code, text) for code, text in _found(facts, pins))


def _found(facts: RunFacts, pins: tuple[Pin, ...]) -> Iterator[tuple[str, str]]:
    yield from _broken_pins(pins)
    yield from _ended_badly(facts)
    if len(facts.buckets) > 1:
        text = f"{len(facts.buckets)} buckets served this run; it is scored per bucket and never as a whole."
        yield "several_buckets", text
    yield from _self_checks(facts)
    if _is_left_alone(facts):
        yield "no_matching_worker", waiting(facts)
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
        why["never decoded"] = facts.n_total - facts.n_done
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


def _one_process(facts: RunFacts) -> Iterator[tuple[str, str]]:
    """A start is part of what repeats measure, so repeats of one process say less."""
    decoded = {process for repeat in facts.repeats for process in repeat.process_ids}
    if facts.run.status == Run.Status.FINISHED and len(facts.repeats) > 1 and len(decoded) == 1:
        n = len(facts.repeats)
        text = f"All {n} repeats shared one engine process, so the range does not show what a fresh start changes."
        yield "one_process", text


def waiting(facts: RunFacts) -> str:
    """Why nobody works at a run that is neither ended nor being decoded; empty where nothing needs saying."""
    if not _is_idle(facts):
        return ""
    pool = facts.run.endpoint.pool
    if not facts.alive:
        return f"No worker of pool {pool} is there; start the runner, or see the workers page."
    notes = _notes_about(facts)
    if len(notes) == len(facts.alive):
        return f"Every worker of pool {pool} leaves this run alone. {notes[0]}"
    return f"Waits for a worker of pool {pool}; {len(facts.alive)} seen lately."


def _is_idle(facts: RunFacts) -> bool:
    shards = [shard.status for repeat in facts.repeats for shard in repeat.shards]
    return not facts.run.is_terminal and Shard.Status.QUEUED in shards and Shard.Status.RUNNING not in shards


def _is_left_alone(facts: RunFacts) -> bool:
    return _is_idle(facts) and len(_notes_about(facts)) == len(facts.alive)


def _notes_about(facts: RunFacts) -> list[str]:
    """What workers say of leaving this very run alone."""
    sign = f"run {facts.run.pk} alone"
    return [worker.note for worker in facts.alive if sign in worker.note]
