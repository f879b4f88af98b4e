"""One run in full, out of its facts."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from evalboard.contract import run as contract
from evalboard.contract.bucket import Bucket, BucketRepeat, Noise, Strays
from evalboard.contract.figures import BucketFigures
from evalboard.core.compare import name_served
from evalboard.core.profile import is_serving_known, read_seats
from evalboard.wording import run as wording
from evalboard.wording.run import split_code
from evalboard.wording.run_warnings import WarnedRun, list_warnings
from evalboard.wording.scorers import name_scorer
from runs import models
from runs.catalogue import OneNames
from runs.models import EngineProcess, Event, JudgingRecord, Priority, RunRecord
from runs.pairs import pair_facts
from runs.pairs.pair_facts import describe_fingerprint, names_on, read_names
from runs.run import read_facts
from runs.run.estimates import read_costs
from runs.run.read_cases import CaseLists, Pick, case_lists
from runs.run.read_columns import drawn_points, run_range
from runs.run.read_facts import RepeatFacts, RunFacts, ServedFacts, is_waiting
from runs.run.read_list import paused_endpoint, row_of
from runs.run.read_shards import ShardLines, read_lines
from runs.run.read_state import RunState
from runs.run.read_waiting import explain_waiting, is_deserted
from runs.work import give_up_time


def run_report(run_id: int, *, state: RunState | None = None) -> contract.Run:
    """Read a run without its shards. Raises NotFound. state: as in `read_facts.read`."""
    return _run(read_facts.read(run_id, state=state), {})


def live_report(run_id: int) -> contract.Run:
    """Read a run with its shards. Raises NotFound."""
    facts = read_facts.read(run_id)
    return _run(facts, _read_lines(facts))


def run_page(run_id: int, picks: Sequence[Pick]) -> tuple[contract.Run, CaseLists, RunRecord]:
    """Read a run with its shards, several lists of its cases, and its record. Raises NotFound."""
    facts = read_facts.read(run_id)
    return _run(facts, _read_lines(facts)), case_lists(facts, picks), facts.run


def _read_lines(facts: RunFacts) -> Mapping[int, ShardLines]:
    return read_lines(facts.run, [repeat.work for repeat in facts.every], facts.now)


def _run(facts: RunFacts, lines: Mapping[int, ShardLines]) -> contract.Run:
    run = facts.run
    pins = _pins(facts)
    waits_for_score = bool(facts.scorings) or facts.judging is not None
    why = explain_waiting(facts) if waits_for_score or is_waiting(run, facts.every) else None
    waiting = "" if why is None else wording.waiting(*why)
    names = names_on(run.endpoint_id, {*facts.buckets, *({run.bucket_id} if run.bucket_id else ())})
    buckets = tuple(_bucket(facts, bucket, names) for bucket in facts.buckets.values())
    costs = read_costs([run]).get(run.pk)
    row = row_of(
        run,
        n_done=facts.n_in,
        n_targeted=facts.n_targeted,
        indexes=tuple(repeat.index for repeat in facts.repeats),
        points=tuple(_points(facts, repeat) for repeat in facts.repeats),
        left_out=tuple(repeat.n_left_out for repeat in facts.repeats),
        bucket_ids=set(facts.buckets),
        pins_held=pins.held,
        served={int(each.id): [(line.score, line.n_responses) for line in each.repeats] for each in buckets},
        names=names,
        cost=None if costs is None else costs.whole,
        now=facts.now,
    )
    processes = tuple(_process(facts, process) for process in facts.processes)
    own: dict[str, Any] = {
        "suite": _suite(facts),
        "progress": _progress(facts),
        "gives_up_at": _give_up_time(facts),
        "repeats": tuple(_repeat(facts, repeat, lines.get(repeat.id, ShardLines())) for repeat in facts.repeats),
        "targeted": tuple(_targeted(facts, repeat, lines.get(repeat.id, ShardLines())) for repeat in facts.targeted),
        "pins": pins,
        "warnings": _warnings(facts, pins.broken, why, buckets),
        "endings": dict(facts.endings),
        "trouble": _trouble(facts, why),
    }
    return contract.Run(
        **dict(row) | own,
        repeat_costs=() if costs is None else costs.repeats,
        buckets=buckets,
        noise=buckets[0].noise if len(buckets) == 1 else Noise.partly_known(),
        seats=_seats(processes),
        errors=_errors(facts),
        scores=_scores(facts, n_buckets=row.n_buckets),
        ahead=facts.ahead,
        twin=facts.twin,
        stored_bytes=facts.stored_bytes,
        created_by=run.created_by.get_username() if run.created_by else None,
        started_at=run.started_at,
        n_cases_unscored=facts.figures.n_cases_unscored,
        processes=processes,
        events=tuple(_event(event) for event in facts.events),
        sampling=_sampling(run),
        settings=pair_facts.setting_facts(run),
        asked_model=asked_model(run),
        manifest=facts.processes[-1].manifest if facts.processes else {},
        request_body=_request_body(run, n_repeats=len(facts.repeats)),
        waiting=waiting,
        is_cancel_wanted=run.is_cancel_wanted,
        source=_source(run),
        is_shuffled=run.is_shuffled,
        is_restarted=run.is_restarted,
        waits_for=waiting if waits_for_score else None,
        judge_of=_judge_of(run),
    )


def _judge_of(run: RunRecord) -> str | None:
    judged = JudgingRecord.objects.filter(judge_run=run).values_list("run", flat=True).first() if run.is_judge else None
    return None if judged is None else str(judged)


def _give_up_time(facts: RunFacts) -> datetime | None:
    paused = paused_endpoint(facts.run, facts.now)
    n_rests = max((repeat.work.n_rests for repeat in facts.every), default=0)
    return None if paused is None else give_up_time(paused, n_rests)


def _trouble(facts: RunFacts, why: tuple[str, dict[str, Any]] | None) -> contract.Trouble | None:
    """Return what is wrong with a run. why: it waits, where it does."""
    run, first_line = facts.run, next(iter(facts.run.failure.strip().splitlines()), "")
    code, cause = "", ""
    if run.source_id is not None:
        return None
    if run.status == RunRecord.Status.FAILED:
        codes = [event.code for event in facts.events if event.code in wording.FAILURES]
        code, cause = codes[-1] if codes and first_line else "failed", first_line
    elif run.status == RunRecord.Status.CANCELLED and not facts.n_in:
        code = "cancelled"
    elif run.is_terminal and not facts.n_in:
        code, cause = "no_answer", (_newest_error(facts) or "")
    elif (paused := paused_endpoint(run, facts.now)) is not None:
        code, cause = "endpoint_rests", wording.describe_waiting(paused)
    elif why is not None and not run.is_terminal and not facts.scorings and is_deserted(facts):
        code, cause = "no_worker", wording.waiting(*why)
    return wording.describe_trouble(code, cause, endpoint=run.endpoint.slug, pool=run.endpoint.pool) if code else None


def _warnings(
    facts: RunFacts,
    broken: tuple[contract.Pin, ...],
    why: tuple[str, dict[str, Any]] | None,
    buckets: Sequence[Bucket],
) -> tuple[contract.RunWarning, ...]:
    """Return the warnings of a run, worst first. why: it waits, where it does."""
    run, source = facts.run, facts.run.source
    known = (is_serving_known(bucket.fingerprint.manifest) for bucket in facts.buckets.values())
    warned = WarnedRun(
        broken=[(pin.name, pin.wanted, pin.found) for pin in broken],
        status=run.status,
        failure=run.failure,
        endpoint=run.endpoint.slug,
        profile=run.profile.slug,
        is_mixed=run.profile.settings.get("batch_class") == "mixed",
        is_reported=run.is_reported,
        is_logged=source is not None and (run.is_log or not run.is_reported),
        tool=source.tool if source is not None and run.is_log else "",
        n_cases=facts.n_cases,
        n_total=facts.n_total,
        n_decoded=facts.n_decoded,
        n_left_out=sum(repeat.n_left_out for repeat in facts.every),
        asked_model=asked_model(run),
        other_models=_other_models(facts, buckets),
        not_greedy=pair_facts.count_not_greedy(run),
        n_unvouched=facts.n_unvouched,
        n_truncated=facts.n_truncated,
        endings=facts.endings,
        n_buckets=len(facts.buckets),
        n_of_cold_cache=max((len(each.repeats) for each in buckets if each.noise.does_first_differ), default=0),
        n_of_one_process=len(facts.repeats) if _shares_one_process(facts) else 0,
        errors=facts.all_errors,
        strays=run.strays or (),
        unsteady=run.unsteady or (),
        uncertified=facts.uncertified,
        has_unlike_self_checks=_self_checks_differ(facts),
        is_stack_unknown=run.is_reported and not all(known),
        notes={event.code: event.text for event in facts.events} if run.is_reported else {},
        pause=facts.pause,
        deletions=facts.deletions,
        deserted=why if why is not None and is_deserted(facts) else None,
        doorbell_problem=facts.doorbell_problem,
    )
    splits = [split for each in buckets if (split := each.noise.split)]
    codes = [f"split.{split_code(split, is_external=pair_facts.draws_of(run).is_external)}" for split in splits]
    return list_warnings(warned, with_codes=codes)


def asked_model(run: RunRecord) -> str:
    """Return the model by the name that calls ask for; of our own engine by the last part of its path."""
    return (run.is_reported and run.endpoint.model_repo) or run.endpoint.model_name


def _other_models(facts: RunFacts, buckets: Sequence[Bucket]) -> Mapping[str, int]:
    """Count the answers of models with a name other than requested, by name."""
    counted: Counter[str] = Counter()
    names = OneNames()
    for record, bucket in zip(facts.buckets.values(), buckets, strict=True):
        if other := pair_facts.find_other_model(record, names):
            counted[other] += bucket.n_responses
    return counted


def _self_checks_differ(facts: RunFacts) -> bool:
    """Return whether two engine processes of one bucket had different first self-checks."""
    digests: dict[int, set[str]] = defaultdict(set)
    for process in facts.processes:
        digests[process.bucket_id].update(check["digest"] for check in process.self_checks[:1])
    return any(len(different) > 1 for different in digests.values())


def _shares_one_process(facts: RunFacts) -> bool:
    """Return whether one engine process decoded all repeats; False for an external server."""
    decoded = {process for repeat in facts.repeats for process in repeat.process_ids}
    is_finished = facts.run.status == RunRecord.Status.FINISHED and not facts.run.is_reported
    return is_finished and len(facts.repeats) > 1 and len(decoded) == 1


def bucket_reports(run_ids: Collection[int]) -> dict[int, tuple[Bucket, ...]]:
    """Read the buckets of each run, by its id, in a fixed number of queries."""
    served = read_facts.read_served(run_ids)
    names = read_names({(facts.run.endpoint_id, bucket) for facts in served.values() for bucket in facts.buckets})
    return {
        run_id: tuple(
            _bucket(facts, bucket, {pk: names[facts.run.endpoint_id, pk] for pk in facts.buckets})
            for bucket in facts.buckets.values()
        )
        for run_id, facts in served.items()
    }


def event_lines(run_ids: Collection[int], codes: Collection[str]) -> tuple[tuple[int, contract.EventOfRun], ...]:
    """Read what runs' histories have under one of the codes: (run, line), by run, oldest first."""
    events = Event.objects.filter(run__in=run_ids, code__in=codes).order_by("run_id", "id")
    return tuple((event.run_id, _event(event)) for event in events)


def _event(event: Event) -> contract.EventOfRun:
    return contract.EventOfRun.from_record(
        event,
        what=event.what or event.text,
    )


def _suite(facts: RunFacts) -> contract.SuiteOfRun:
    version = facts.run.suite_version
    return contract.SuiteOfRun(
        slug=version.suite.slug, version=version.number, digest=version.digest, n_cases=version.n_cases
    )


def _seats(processes: tuple[contract.ProcessOfRun, ...]) -> tuple[contract.SeatsOfProcess, ...]:
    return tuple(
        contract.SeatsOfProcess(engine_process=process.id, asked=process.seats.wanted, got=process.seats.got)
        for process in processes
        if process.seats is not None
    )


def _newest_error(facts: RunFacts) -> str | None:
    return next((event.text for event in reversed(facts.events) if event.level == Event.Level.ERROR), None)


def _errors(facts: RunFacts) -> contract.Errors:
    by_code = facts.all_errors
    return contract.Errors(
        n=by_code.total(), by_code=dict(by_code.most_common()), last=facts.run.failure or _newest_error(facts)
    )


def _source(run: RunRecord) -> contract.LogOfRun | None:
    if run.source is None:
        return None
    return contract.LogOfRun(
        id=str(run.source.pk),
        tool=run.source.tool,
        files=tuple(file["name"] for file in run.source.files),
        notes=tuple(run.source.notes),
        created_at=run.source.created_at,
    )


def _sampling(run: RunRecord) -> dict[str, Any]:
    """Return the profile's sampling with the suite's limits; the seed is the run's if its calls use it."""
    own = {"seed": run.seed} if pair_facts.draws_of(run).has_call_seeds else {}
    return {**run.profile.settings["sampling"], **own, **pair_facts.limits_of(run)}


def _request_body(run: RunRecord, *, n_repeats: int) -> dict[str, Any]:
    version = run.suite_version
    body: dict[str, Any] = {"suite": version.suite.slug, "suite_version": version.number}
    body |= {"endpoint": run.endpoint.slug, "profile": run.profile.slug, "repeats": n_repeats}
    if pair_facts.draws_of(run).has_call_seeds:
        body["seed"] = run.seed
    if run.model_override:
        body["model"] = run.model_override
    if run.labels:
        body["labels"] = run.labels
    if run.priority == Priority.BULK:  # that of a release follows from what asks for the run
        body["priority"] = run.priority
    body |= {name: True for name in ("is_shuffled", "is_restarted") if getattr(run, name)}
    return body


def _points(facts: RunFacts, repeat: RepeatFacts) -> float | None:
    score = facts.own_scores.get(repeat.index)
    return score.points if score else None


def _progress(facts: RunFacts) -> contract.Progress:
    """Return the progress, with the speed since work last began: adding repeats begins again."""
    run = facts.run
    rate = eta = None
    if run.started_at is not None:
        began = max([run.started_at, *(event.at for event in facts.events if event.code == "repeats_added")])
        before = sum(repeat.n_done for repeat in facts.every if repeat.finished_at and repeat.finished_at <= began)
        seconds = ((run.finished_at or facts.now) - began).total_seconds()
        n_done = facts.n_decoded - before
        rate = n_done / seconds if n_done > 0 and seconds > 0 else None
        eta = None if run.is_terminal else _eta_seconds(facts, rate)
    return contract.Progress(n_done=facts.n_in, n_total=facts.n_total, rate_per_second=rate, eta_seconds=eta)


def _eta_seconds(facts: RunFacts, rate: float | None) -> float | None:
    """Estimate the remaining seconds; None while nothing runs.

    Uses the pace of the active workers once a shard of the run has ended; if a pace is not known, `rate`, which
    includes the time in which nothing ran.
    """
    at_work = [repeat.work for repeat in facts.every if repeat.work.n_running]
    paces = [work.pace for work in at_work]
    if any(repeat.work.n_finished for repeat in facts.every) and None not in paces:
        rate = sum(pace for pace in paces if pace)
    return (facts.n_total - facts.n_decoded) / rate if at_work and rate else None


def _repeat(facts: RunFacts, repeat: RepeatFacts, lines: ShardLines) -> contract.Repeat:
    score = facts.own_scores.get(repeat.index)
    return contract.Repeat(
        index=repeat.index,
        status=repeat.status,
        score=score.points if score else None,
        n_missing=score.n_missing if score else _n_missing(facts, repeat),
        n_left_out=repeat.n_left_out,
        attempts=repeat.work.attempts,
        engine_processes=tuple(str(process) for process in repeat.process_ids),
        shards=lines.drawn,
        open_shards=lines.open,
    )


def _targeted(facts: RunFacts, repeat: RepeatFacts, lines: ShardLines) -> contract.TargetedRepeat:
    return contract.TargetedRepeat(
        index=repeat.index,
        status=repeat.status,
        n_cases=repeat.n_chosen or 0,
        n_done=repeat.n_done,
        n_missing=_n_missing(facts, repeat),
        shards=lines.drawn,
        open_shards=lines.open,
    )


def _n_missing(facts: RunFacts, repeat: RepeatFacts) -> int:
    """Return the missing responses of a repeat without scores, including undecoded ones once it ended."""
    n_cases = facts.n_cases if repeat.n_chosen is None else repeat.n_chosen
    n_never = 0 if repeat.finished_at is None else n_cases - repeat.n_done
    return n_never + repeat.errors.total()


def _bucket(facts: ServedFacts, bucket: models.BucketRecord, names: Mapping[int, str]) -> Bucket:
    known = next((each for each in facts.figures.buckets if each.bucket == bucket.pk), None)
    lines = _bucket_repeats(facts, bucket, known)
    n_responses = sum(line.n_responses for line in lines)
    n_of_run = facts.n_done - facts.errors.total()
    left_out = {repeat.index: repeat.n_left_out for repeat in facts.repeats}
    points = drawn_points([line.score for line in lines], [left_out[line.index] for line in lines])
    # Repeats with different cases in this bucket answer different questions.
    span = run_range(status=facts.run.status, points=points, n_buckets=1) if known and known.is_alike else None
    noise = known.noise if known else Noise.partly_known()
    is_final = facts.run.status == RunRecord.Status.FINISHED
    fingerprint = bucket.fingerprint
    return Bucket(
        id=str(bucket.pk),
        backend=names[bucket.pk],
        model=name_served(bucket.model),
        fingerprint=describe_fingerprint(fingerprint, names[bucket.pk]),
        batch_class=bucket.batch_class,
        model_reported=fingerprint.manifest.get("source", {}).get("model_reported"),
        n_responses=n_responses,
        share=n_responses / n_of_run if n_of_run else 0.0,
        repeats=lines,
        range=span if is_final else None,
        noise=noise if is_final else noise.without_place(),
        metrics=known.metrics if known else None,
        metrics_left_out=known.metrics_left_out if known else None,
        strays=_strays(facts, bucket),
        range_so_far=span,
        noise_so_far=noise,
    )


def _bucket_repeats(
    facts: ServedFacts, bucket: models.BucketRecord, known: BucketFigures | None
) -> tuple[BucketRepeat, ...]:
    """Return a bucket's part of each repeat; a running repeat belongs to the run's one bucket."""
    packed = {line.index: line for line in known.repeats} if known else {}
    lines = []
    for repeat in facts.repeats:
        if (line := packed.get(repeat.index)) is not None:
            lines.append(BucketRepeat(index=line.index, score=line.points, n_responses=line.n_responses))
        elif repeat.packed_as is None and bucket.pk == facts.run.bucket_id:
            n = repeat.n_done - repeat.errors.total()
            lines += [BucketRepeat(index=repeat.index, score=None, n_responses=n)] if n else []
    return tuple(lines)


def _strays(facts: ServedFacts, bucket: models.BucketRecord) -> Strays | None:
    for known in facts.run.strays or ():
        if known["bucket"] == bucket.pk:
            return Strays.from_stored(known, responses=facts.strays[facts.run.pk, bucket.pk])
    return None


def _pins(facts: RunFacts) -> contract.Pins:
    """Each pin once, as the first process attested it, unless a later one broke it. Broken ones first."""
    pins: dict[str, contract.Pin] = {}
    for process in facts.processes:
        for pin in (contract.Pin(**attested) for attested in process.pins):
            if pin.name not in pins or (pins[pin.name].held and not pin.held):
                pins[pin.name] = pin
    every = tuple(sorted(pins.values(), key=lambda pin: (pin.held, pin.name)))
    broken = tuple(pin for pin in every if not pin.held)
    is_attested = bool(facts.processes) and not facts.run.is_reported
    return contract.Pins(held=not broken if is_attested else None, broken=broken, every=every)


def _process(facts: RunFacts, process: EngineProcess) -> contract.ProcessOfRun:
    return contract.ProcessOfRun(
        id=str(process.pk),
        worker=process.worker.name,
        started_at=process.started_at,
        start_seconds=process.start_seconds,
        repeats=tuple(repeat.index for repeat in facts.every if process.pk in repeat.process_ids),
        n_self_checks=len(process.self_checks),
        self_checks_same=all(check["same"] for check in process.self_checks),
        seats=read_seats(process.manifest),
        last_words=process.last_words,
    )


def _scores(facts: RunFacts, *, n_buckets: int) -> tuple[contract.ScoresUnderScorer, ...]:
    """The points under each scorer, the suite's own first."""
    own_id, status = facts.run.suite_version.scorer_id, facts.run.status
    n_left_out = [repeat.n_left_out for repeat in facts.repeats]
    lines = []
    for scorer_id, rows in sorted(facts.scores.items(), key=lambda item: (item[0] != own_id, item[0])):
        points = tuple(rows[repeat.index].points if repeat.index in rows else None for repeat in facts.repeats)
        span = run_range(status=status, points=drawn_points(points, n_left_out), n_buckets=n_buckets)
        scorer = next(iter(rows.values())).scorer
        lines.append(
            contract.ScoresUnderScorer(
                scorer=contract.ScorerOfRun(
                    id=str(scorer_id), digest=scorer.digest, name=name_scorer(scorer.spec), is_own=scorer_id == own_id
                ),
                repeats=points,
                range=span if status == RunRecord.Status.FINISHED else None,
                range_so_far=span,
            )
        )
    return tuple(lines)
