"""One run in full, out of its facts."""

from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from evalboard.core import columns, seats
from runs import pair_facts
from runs.models import Bucket, EngineProcess, Run, Shard
from runs.selectors import run_facts
from runs.selectors.run import (
    BucketRepeat,
    BucketReport,
    EventLine,
    Noise,
    Pin,
    ProcessLine,
    Progress,
    RepeatLine,
    RunReport,
    ScoreLine,
    ShardCell,
)
from runs.selectors.run_facts import RepeatFacts, RunFacts
from runs.selectors.run_list import row_of
from runs.selectors.run_noise import noise_of
from runs.selectors.run_scores import Range, drawn_points, points_in_bucket, run_range
from runs.selectors.run_state import RunState
from runs.selectors.run_warnings import waiting, warnings_of


def run_report(run_id: int, *, state: RunState | None = None) -> RunReport:
    """Raises NotFound. state: as `run_facts.read` takes it."""
    facts = run_facts.read(run_id, state=state)
    run, version = facts.run, facts.run.suite_version
    pins = _pins(facts.processes)
    points = tuple(_points(facts, repeat) for repeat in facts.repeats)
    row = row_of(
        run,
        n_done=facts.n_in,
        points=points,
        left_out=tuple(repeat.n_left_out for repeat in facts.repeats),
        bucket_ids=set(facts.buckets),
        pins_held=all(pin.held for pin in pins) if facts.processes and run.source_id is None else None,
    )
    errors = facts.errors
    manifest = facts.processes[-1].manifest if facts.processes else {}
    buckets = tuple(_bucket_report(facts, bucket) for bucket in facts.buckets.values())
    return RunReport(
        row=row,
        suite_title=version.title,
        suite_digest=version.digest,
        n_cases=version.n_cases,
        n_cases_unscored=_n_cases_unscored(facts),
        points_per_case=100 / version.n_cases,
        progress=_progress(facts),
        repeats=tuple(_repeat_line(facts, repeat) for repeat in facts.repeats),
        buckets=buckets,
        noise=buckets[0].noise if len(buckets) == 1 else Noise(),
        pins=pins,
        warnings=warnings_of(facts, pins),
        n_errors=errors.total(),
        errors_by_code=dict(errors.most_common()),
        last_error=run.failure or next((event.text for event in reversed(facts.events) if event.level == "error"), ""),
        processes=tuple(_process_line(facts, process) for process in facts.processes),
        events=tuple(EventLine(event.at, event.level, event.code, event.text) for event in facts.events),
        scores=_score_lines(facts, n_buckets=row.n_buckets),
        twin=facts.twin,
        sampling=_sampling(run),
        engine_settings=manifest.get("engine", {}),
        manifest=manifest,
        stored_bytes=facts.stored_bytes,
        created_by=run.created_by.get_username() if run.created_by else "",
        started_at=run.started_at,
        asked=_asked(run, n_repeats=len(facts.repeats)),
        workers_waiting=waiting(facts),
        is_cancel_wanted=run.is_cancel_wanted,
    )


def _sampling(run: Run) -> dict[str, Any]:
    """What the profile says and the suite limits; the seed is the run's where it draws by one of its own."""
    seeded = run.seed is not None and pair_facts.draws_of(run).is_sampled
    own = {"seed": run.seed} if seeded else {}
    return {**run.profile.settings["sampling"], **own, **pair_facts.limits_of(run)}


def _asked(run: Run, *, n_repeats: int) -> dict[str, Any]:
    version = run.suite_version
    asked: dict[str, Any] = {"suite": version.suite.slug, "suite_version": version.number}
    asked |= {"endpoint": run.endpoint.slug, "profile": run.profile.slug, "repeats": n_repeats}
    if run.seed is not None and pair_facts.draws_of(run).is_sampled:
        asked["seed"] = run.seed
    if run.model_override:
        asked["model"] = run.model_override
    if run.labels:
        asked["labels"] = run.labels
    return asked


def _n_cases_unscored(facts: RunFacts) -> int:
    is_unscored = np.ones(facts.n_cases, dtype=bool)
    for score in facts.own_scores.values():
        if not score.n_missing:
            return 0
        is_unscored &= np.isnan(columns.unpack_scores(bytes(score.scores)))
    return int(np.count_nonzero(is_unscored))


def _points(facts: RunFacts, repeat: RepeatFacts) -> float | None:
    score = facts.own_scores.get(repeat.index)
    return score.points if score else None


def _progress(facts: RunFacts) -> Progress:
    """Speed since work last began: adding repeats to a finished run begins it anew."""
    run = facts.run
    if run.started_at is None:
        return Progress(facts.n_in, facts.n_total, None, None)
    began = _last_start(facts, run.started_at)
    before = sum(repeat.n_done for repeat in facts.repeats if repeat.finished_at and repeat.finished_at <= began)
    seconds = ((run.finished_at or facts.now) - began).total_seconds()
    n_done = facts.n_done - before
    rate = n_done / seconds if n_done > 0 and seconds > 0 else None
    left = facts.n_total - facts.n_done
    eta = left / rate if rate and not run.is_terminal else None
    return Progress(facts.n_in, facts.n_total, rate, eta)


def _last_start(facts: RunFacts, started_at: datetime) -> datetime:
    return max([started_at, *(event.at for event in facts.events if event.code == "repeats_added")])


def _repeat_line(facts: RunFacts, repeat: RepeatFacts) -> RepeatLine:
    score = facts.own_scores.get(repeat.index)
    return RepeatLine(
        index=repeat.index,
        status=repeat.status,
        points=score.points if score else None,
        n_missing=score.n_missing if score else _n_missing(facts, repeat),
        n_left_out=repeat.n_left_out,
        shards=tuple(_shard_cell(facts, shard) for shard in repeat.shards),
        process_ids=repeat.process_ids,
    )


def _n_missing(facts: RunFacts, repeat: RepeatFacts) -> int:
    """Of a repeat without scores: once it has ended, what never came is missing too."""
    n_never = 0 if repeat.finished_at is None else facts.n_cases - repeat.n_done
    return n_never + repeat.errors.total()


def _shard_cell(facts: RunFacts, shard: Shard) -> ShardCell:
    waits = shard.status == Shard.Status.QUEUED and shard.next_at > facts.now
    return ShardCell(
        id=shard.pk,
        first=shard.first,
        last=shard.last,
        status=shard.status,
        attempt=shard.attempt,
        n_done=shard.n_done,
        worker=shard.owner.name if shard.owner else "",
        error=shard.error,
        is_silent=_is_silent(facts, shard),
        n_failures=shard.n_crashes + shard.n_failed_starts,
        waits_until=shard.next_at if waits else None,
    )


def _is_silent(facts: RunFacts, shard: Shard) -> bool:
    if shard.status != Shard.Status.RUNNING or shard.owner is None:
        return False
    return facts.now - shard.owner.seen_at > timedelta(seconds=settings.LEASE_SECONDS)


def _bucket_report(facts: RunFacts, bucket: Bucket) -> BucketReport:
    lines: list[BucketRepeat] = []
    served: list[NDArray[np.bool_]] = []
    for repeat in facts.repeats:
        mine = None if repeat.case_buckets is None else repeat.case_buckets == bucket.pk
        n = _n_responses(facts, repeat, bucket, mine)
        if n == 0:
            continue
        lines.append(BucketRepeat(repeat.index, _bucket_points(facts, repeat, bucket), n))
        if mine is not None and not repeat.n_left_out:
            served.append(mine)
    n_responses = sum(line.n_responses for line in lines)
    n_of_run = facts.n_done - facts.errors.total()
    span = _bucket_range(facts, lines, served)
    return BucketReport(
        id=bucket.pk,
        model_name=bucket.model.name,
        model_digest=bucket.model.digest,
        fingerprint_id=bucket.fingerprint_id,
        fingerprint_digest=bucket.fingerprint.digest,
        fingerprint_label=bucket.fingerprint.label,
        batch_class=bucket.batch_class,
        n_responses=n_responses,
        share=n_responses / n_of_run if n_of_run else 0.0,
        repeats=tuple(lines),
        range=span,
        noise=noise_of(facts, bucket, is_scored=span is not None),
    )


def _n_responses(facts: RunFacts, repeat: RepeatFacts, bucket: Bucket, mine: NDArray[np.bool_] | None) -> int:
    if mine is not None:
        return int(mine.sum())
    # Not packed yet: a run at work keeps to the one bucket that it is bound to.
    return repeat.n_done - repeat.errors.total() if bucket.pk == facts.run.bucket_id else 0


def _bucket_points(facts: RunFacts, repeat: RepeatFacts, bucket: Bucket) -> float | None:
    """The repeat's points over the cases that this bucket served."""
    score = facts.own_scores.get(repeat.index)
    if score is None or repeat.case_buckets is None:
        return None
    if len(repeat.bucket_ids) == 1:
        return score.points
    return points_in_bucket(score.scores, repeat.case_buckets, bucket.pk)


def _bucket_range(facts: RunFacts, lines: list[BucketRepeat], served: list[NDArray[np.bool_]]) -> Range | None:
    """None where the repeats have different cases in this bucket: their points then answer different questions."""
    if not served or any(not np.array_equal(served[0], other) for other in served[1:]):
        return None
    left_out = {repeat.index: repeat.n_left_out for repeat in facts.repeats}
    points = drawn_points([line.points for line in lines], [left_out[line.index] for line in lines])
    return run_range(status=facts.run.status, points=points, n_buckets=1)


def _pins(processes: tuple[EngineProcess, ...]) -> tuple[Pin, ...]:
    """Each pin once, as the first process attested it, unless a later one broke it. Broken ones first."""
    found: dict[str, Pin] = {}
    for process in processes:
        for pin in (Pin(**attested) for attested in process.pins):
            if pin.name not in found or (found[pin.name].held and not pin.held):
                found[pin.name] = pin
    return tuple(sorted(found.values(), key=lambda pin: (pin.held, pin.name)))


def _process_line(facts: RunFacts, process: EngineProcess) -> ProcessLine:
    return ProcessLine(
        id=process.pk,
        worker=process.worker.name,
        host=process.worker.host,
        started_at=process.started_at,
        start_seconds=process.start_seconds,
        repeats=tuple(repeat.index for repeat in facts.repeats if process.pk in repeat.process_ids),
        n_self_checks=len(process.self_checks),
        self_checks_same=all(check["same"] for check in process.self_checks),
        seats=seats.of(process.manifest),
        last_words=process.last_words,
    )


def _score_lines(facts: RunFacts, *, n_buckets: int) -> tuple[ScoreLine, ...]:
    own_id = facts.run.suite_version.scorer_id
    lines = []
    for scorer_id, by_repeat in facts.scores.items():
        points = tuple(
            by_repeat[repeat.index].points if repeat.index in by_repeat else None for repeat in facts.repeats
        )
        lines.append(
            ScoreLine(
                scorer_id=scorer_id,
                scorer_digest=next(iter(by_repeat.values())).scorer.digest,
                is_own=scorer_id == own_id,
                points=points,
                range=run_range(
                    status=facts.run.status,
                    points=drawn_points(points, [repeat.n_left_out for repeat in facts.repeats]),
                    n_buckets=n_buckets,
                ),
            )
        )
    return tuple(sorted(lines, key=lambda line: (not line.is_own, line.scorer_id)))
