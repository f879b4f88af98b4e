"""Why a run waits, out of its facts."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Sum

from evalboard.core import scoring
from runs.models import JudgingRecord, ScoringRecord, Shard
from runs.run.read_facts import RunFacts
from runs.work import living_workers, read_pause, run_left_alone

Facts = dict[str, Any]


def explain_waiting(facts: RunFacts) -> tuple[str, Facts]:
    """Return the code of why a run waits, and the facts of its sentence."""
    pool, alive = facts.run.endpoint.pool, facts.alive
    if facts.scorings:
        return explain_scoring(facts.scorings, n_cases=facts.n_cases)
    if facts.judging is not None:
        return "judging", explain_judging(facts.judging)
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
    if (rest := facts.pause) is not None:
        return "endpoint_rests", rest
    if (first := _paused_until(facts)) is not None:
        return "paused", {"until": first}
    are_busy = all(each.pk in facts.busy_ids for each in alive)
    return "queued", {"pool": pool, "n_alive": len(alive), "are_busy": are_busy, "ahead": facts.ahead}


def explain_scoring(scorings: Sequence[ScoringRecord], *, n_cases: int) -> tuple[str, Facts]:
    """Return the code of why repeats wait for their scores, and the facts of its sentence.

    scorings: open ones, each with its scorer. A worker of any pool may take them.
    """
    specs = {spec["digest"]: spec for each in scorings for spec in scoring.external_specs(each.scorer.spec)}
    names = sorted({spec["name"] for spec in specs.values()})
    workers = living_workers()
    here = [{each["digest"] for each in worker.scorers if not each["problem"]} for worker in workers]
    for needs in (set(each.needs) for each in scorings if each.status == ScoringRecord.Status.QUEUED):
        if not any(needs <= digests for digests in here):
            lacking = needs.difference(*here) or needs  # each may be on a worker, and no worker has all
            meant = {(specs[each]["kind"], specs[each]["name"]) for each in lacking}
            instead = {
                f"{each['name']} ({each['problem'] or each['digest'][:8]})"
                for worker in workers
                for each in worker.scorers
                if (each["kind"], each["name"]) in meant
            }
            names = sorted(f"{specs[each]['name']} ({each[:8]})" for each in lacking)
            return "no_scorer", {"names": names, "instead": sorted(instead)}
    return "scoring", {"names": names, "n_done": sum(each.n_done for each in scorings), "n": n_cases * len(scorings)}


def explain_judging(record: JudgingRecord) -> Facts:
    """Return the facts of the sentence that a run waits for its judge.

    record: with its scorer and judge's run.
    """
    spec, judge_run = scoring.judge_spec(record.scorer.spec), record.judge_run
    known: Facts = {"endpoint": spec and spec["endpoint"], "judge_run": judge_run and judge_run.pk}
    if judge_run is None:
        return known
    n_done = Shard.objects.filter(repeat__run=judge_run).aggregate(n=Sum("n_done"))["n"] or 0
    pause = read_pause(judge_run.endpoint_id)
    known |= {"pause": pause.model_dump()} if pause is not None else {}
    return known | {"n_done": n_done, "n": judge_run.suite_version.n_cases}


def is_deserted(facts: RunFacts) -> bool:
    """Return whether no live worker would take a waiting run, or score it."""
    if facts.judging is not None:
        return False  # the judge's run says so
    if facts.scorings:
        return explain_waiting(facts)[0] != "scoring"
    if not (facts.run.endpoint.is_remote or any(worker.has_engine for worker in facts.alive)):
        return True
    return len(facts.alive) == _reasons(facts).total() + len(_resting(facts))


def _reasons(facts: RunFacts) -> Counter[str]:
    """Count workers that do not claim this run, by reason."""
    left = (run_left_alone(worker) for worker in facts.alive)
    return Counter(alone.why for alone in left if alone and alone.run == str(facts.run.pk))


def _resting(facts: RunFacts) -> list[datetime]:
    """Return when each paused worker tries again, without those that skip the run for a reason."""
    return [
        worker.rests_until
        for worker in facts.alive
        if worker.rests_until and worker.rests_until > facts.now and not run_left_alone(worker)
    ]


def _paused_until(facts: RunFacts) -> datetime | None:
    """Return until when the run is paused after an engine did not start."""
    first = min(repeat.work.next_at for repeat in facts.every if repeat.work.next_at is not None)
    return first if first > facts.now else None
