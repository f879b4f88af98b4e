"""What follows when the last shard of a repeat, or the last repeat of a run, has ended."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Count, F, Sum
from django.db.models.functions import Now
from numpy.typing import NDArray

from evalboard.core import scoring
from evalboard.core.profile import MIN_NAMED, names_calls
from evalboard.core.scoring import ScorerReply
from evalboard.core.stats import has_enough_draws, is_left_out, list_mark_names, run_points
from evalboard.core.trace import (
    Ending,
    pack_answers,
    pack_buckets,
    pack_digests,
    pack_marks,
    pack_reasons,
    pack_scores,
    unpack_digests,
    unpack_scores,
    unpack_selection,
)
from evalboard.logged.backends import Known
from evalboard.wording import run as wording
from runs.catalogue import finds_call_names, rotations
from runs.models import (
    BucketRecord,
    Case,
    CaseColumns,
    EngineProcess,
    Event,
    JudgingRecord,
    RepeatRecord,
    RepeatScore,
    ResponseRecord,
    RunRecord,
    Scorer,
    ScoringRecord,
    Shard,
)
from runs.pairs.pair_facts import find_names
from runs.served import bucket_of, key_of_run
from runs.store import PROMPT_FILTERED, changes, history, imported, packed_digest
from runs.webhooks import news
from runs.work import flip_chances
from runs.work.claims import Lease
from runs.work.endings import settle_endings
from runs.work.judgings import open_judgings, own_open_judgings, request_judging
from runs.work.replies import ReplyToScore, read_replies
from runs.work.scorings import SCORINGS, open_scorings, own_open_scorings, request_scoring
from runs.work.settings_seen import see_settings
from runs.work.strays import look_through
from runs.work.usage import sum_usage

SCORED_AT_ONCE = 1000  # cases whose targets and texts are in memory together
NOT_JUDGED = (math.nan, "Unscored: the judge was not asked about it.")
TRUNCATED = (scoring.TRUNCATED.value, scoring.TRUNCATED.reason)
Judged = Mapping[int, tuple[float, str]]  # by case index: a score, NaN without one, and its reason
SCORED_BY = ("content__target", "content__tools")  # of a case, what its scorer reads; prompts may be long


def finish_repeat(*, repeat_id: int) -> bool:
    """End a repeat whose shards have all ended: pack its columns, score it, roll up its run.

    Safe to call at any time and twice; False if there was nothing to end. Whoever ends the last
    shard calls it, and the reconciler calls it again for repeats whose caller died in between. Where only a worker can
    run the scorer, the repeat ends with its scores: this queues them first (`finish_scoring`). A judge scores all
    repeats of a run at once, when the last of them has its answers (`finish_judging`).
    """
    if Shard.objects.open().filter(repeat=repeat_id).exists():
        return False  # before any lock: all shards but the last end here
    if open_scorings().filter(repeat=repeat_id, scorer=F("repeat__run__suite_version__scorer")).exists():
        return False
    if open_judgings().filter(run__repeats=repeat_id, scorer=F("run__suite_version__scorer")).exists():
        return False
    with transaction.atomic():
        repeat = (
            RepeatRecord.objects.select_for_update(of=("self",), no_key=True)
            .select_related("run__suite_version__scorer", "run__endpoint")
            .get(pk=repeat_id)
        )
        shards = Counter(repeat.shards.values_list("status", flat=True))
        if repeat.finished_at is not None or shards[Shard.Status.QUEUED] or shards[Shard.Status.RUNNING]:
            return False
        own, is_judged = repeat.run.suite_version.scorer, waits_for_judge(repeat.run)
        is_scored_here = not is_judged and not scoring.is_external(own.spec)
        is_scored = is_scored_here or repeat.scores.filter(scorer=own).exists()
        is_to_wait = not is_scored and not repeat.run.is_cancel_wanted
        if is_to_wait and is_judged and Shard.objects.open().filter(repeat__run=repeat.run_id).exists():
            return False
        settle_endings(repeat.run, is_final=False)
        n_missing = store_columns(repeat)
        if is_to_wait:
            score_repeat(repeat, own)
            return False
        if is_scored_here:
            score_repeat(repeat, own)
        score_by_adopted(repeat)
        repeat.status = _ended_status(shards, n_missing) if is_scored else RepeatRecord.Status.CANCELLED
        repeat.finished_at = Now()
        repeat.save(update_fields=["status", "finished_at"])
        _finish_run(repeat.run_id)
        changes.run_changed(run_id=repeat.run_id)
    return True


def waits_for_judge(run: RunRecord) -> bool:
    """Return whether a judge scores a run, which has no score before."""
    return scoring.is_judged(run.suite_version.scorer.spec) and not run.is_judge


def score_repeat(repeat: RepeatRecord, scorer: Scorer, judged: Judged | None = None) -> None:
    """Score the stored responses of a repeat under one scorer; nothing is decoded again.

    A scorer that only a worker can run gets its scores later: they are queued. A judge too: without `judged`, it is
    asked to score the whole run.
    """
    if scoring.is_external(scorer.spec):
        request_scoring(repeat, scorer)
        return
    if scoring.is_judged(scorer.spec) and judged is None and not repeat.run.is_judge:
        request_judging(repeat.run, scorer)
        return
    n_cases = repeat.run.suite_version.n_cases
    scores = np.full(n_cases, np.nan)
    reasons: list[str | None] = [None] * n_cases
    answers: list[str | None] = [None] * n_cases
    for index, why in _explain_unknown(repeat):
        reasons[index] = why
    for first in range(0, n_cases, SCORED_AT_ONCE):
        part = (first, first + SCORED_AT_ONCE - 1)
        there = repeat.responses.filter(error_code="", case_index__range=part)
        replies = read_replies(there.exclude(ending=Ending.UNKNOWN), scorer.spec)
        cases = Case.objects.filter(suite_version=repeat.run.suite_version_id, index__in=list(replies))
        for index, case_id, target, tools in cases.values_list("index", "case_id", *SCORED_BY):
            spec = scoring.scorer_for(scorer.spec, case_id)
            if spec["kind"] == scoring.JUDGE.name:
                result = _read_judge(spec, replies[index]) if judged is None else judged.get(index, NOT_JUDGED)
                scores[index], reasons[index] = TRUNCATED if replies[index].is_truncated else result
                continue
            given = scoring.score(spec, **replies[index]._asdict(), target=target, tools=tools)
            scores[index], reasons[index], answers[index] = given.value, given.reason, given.answer
    store_scores(repeat, scorer, scores, reasons, answers if scoring.reads_answers(scorer.spec) else None)


def score_by_adopted(repeat: RepeatRecord) -> None:
    """Score a repeat by the scorers of its suite's other versions that have scored its run.

    Comparisons with runs of those versions read their scores.
    """
    version = repeat.run.suite_version
    adopted = Scorer.objects.filter(suite_versions__suite=version.suite_id, repeat_scores__repeat__run=repeat.run_id)
    for scorer in adopted.exclude(pk=version.scorer_id).distinct():
        score_repeat(repeat, scorer)


def store_scores(
    repeat: RepeatRecord,
    scorer: Scorer,
    scores: NDArray[np.float64],
    reasons: Sequence[str | None],
    answers: Sequence[str | None] | None = None,
) -> None:
    """Keep a repeat's scores under one scorer: float64[n_cases] from 0 to 1, NaN where missing.

    answers: what the scorer read of each response, None where it reads none. Its columns stand already. Where several
    buckets served it, it has scores of cases and no points.
    """
    is_there, points = _count_points(repeat, scores)
    n_scored = int(np.count_nonzero(~np.isnan(scores)))
    n_cases = count_cases(repeat, len(scores))
    packed: dict[str, Any] = {"scores": pack_scores(scores), "reasons": pack_reasons(reasons)}
    fields: dict[str, Any] = {
        **packed,
        "digest": packed_digest(**packed),
        "answers": None if answers is None else pack_answers(answers),
        "n_scored": n_scored,
        "n_missing": n_cases - n_scored - int(np.count_nonzero(is_there & np.isnan(scores))),
        "points": points,
    }
    RepeatScore.objects.bulk_create(
        [RepeatScore(repeat=repeat, scorer=scorer, **fields)],
        update_conflicts=True,
        unique_fields=["repeat", "scorer"],
        update_fields=list(fields),
    )


def _count_points(repeat: RepeatRecord, scores: NDArray[np.float64]) -> tuple[NDArray[np.bool_], float | None]:
    """Return bool[n_cases], what was answered, and the points, None where several buckets served."""
    columns = CaseColumns.objects.filter(repeat=repeat).values_list("bucket_ids", "text_digests").first()
    bucket_ids, texts = columns or ((), pack_digests([None] * len(scores)))
    is_there: NDArray[np.bool_] = np.any(unpack_digests(bytes(texts)), axis=1)
    # A prompt that the provider's filter refused has no score, as an answer that its author left without one.
    is_there |= _find_filtered(repeat, len(scores))
    return is_there, run_points(scores, is_there) if len(bucket_ids) <= 1 else None


def finish_scoring(*, lease: Lease, given: Mapping[int, ScorerReply]) -> None:
    """Store what a worker's scorers gave by case index, and end what waited for it.

    Where a scorer gave several scores, each is kept under a scorer of its own, in which it decides. Raises LeaseLost.
    """
    with SCORINGS.locked(lease=lease, related=["repeat__run__suite_version", "scorer"]) as row:
        _store_replies(row.repeat, row.scorer, given)
        SCORINGS.finish(lease=lease, status="finished", error="", n_done=len(given))
        _go_on(row)  # with the scores, or not at all: no sweep looks for a log's run that lacks only its end


def finish_judging(*, record: JudgingRecord, judged: Mapping[int, Judged] | None) -> None:
    """Store what a judge made of a run, by repeat, and end what waited for it.

    record: locked, and no longer open. judged: None where the run is cancelled, and has no scores then.
    """
    repeats = record.run.repeats.select_for_update(of=("self",), no_key=True).order_by("pk")
    open_ones = []
    for repeat in repeats.select_related("run__suite_version__suite", "run__endpoint"):
        if repeat.finished_at is None:
            open_ones.append(repeat.pk)
            store_columns(repeat)
        if judged is not None:
            score_repeat(repeat, record.scorer, judged.get(repeat.index, {}))
    if record.scorer_id == record.run.suite_version.scorer_id:
        for repeat_id in open_ones:
            finish_repeat(repeat_id=repeat_id)
        _finish_run(record.run_id)  # one that was read from a log, or nothing where the run has ended
    changes.run_changed(run_id=record.run_id)


def give_up_scoring(*, scoring_id: int) -> None:
    """Leave a repeat unscored whose scoring failed again and again, so that its run ends."""
    row = ScoringRecord.objects.select_related("repeat__run__suite_version", "scorer").get(pk=scoring_id)
    if row.repeat.scores.filter(scorer=row.scorer).exists():
        return
    with transaction.atomic():
        _store_replies(row.repeat, row.scorer, {}, reason=scoring.capped(f"Unscored: {row.error}"))
        _go_on(row)


def _store_replies(
    repeat: RepeatRecord, scorer: Scorer, given: Mapping[int, ScorerReply], *, reason: str | None = None
) -> None:
    """reason: of the responses without a reply; a missing one has none."""
    n_cases = repeat.run.suite_version.n_cases
    scores = np.full(n_cases, np.nan)
    reasons: list[str | None] = [None] * n_cases
    for index in repeat.responses.filter(error_code="").values_list("case_index", flat=True) if reason else ():
        reasons[index] = reason
    for index, why in _explain_unknown(repeat):
        reasons[index] = why
    answers: list[str | None] = [None] * n_cases
    single: dict[str, NDArray[np.float64]] = {}
    for index, reply in given.items():
        scores[index] = np.nan if reply.value is None else reply.value
        reasons[index], answers[index] = reply.reason, reply.answer
        for name, value in (reply.scores or {}).items():
            single.setdefault(name, np.full(n_cases, np.nan))[index] = value
    has_answers = any(answer is not None for answer in answers)
    store_scores(repeat, scorer, scores, reasons, answers if has_answers else None)
    for name, values in single.items():
        plan = scoring.single_plan(scorer.spec, name)
        under, _ = Scorer.objects.get_or_create(digest=scoring.plan_digest(plan), defaults={"spec": plan})
        if under != scorer:
            store_scores(repeat, under, values, reasons)


def _go_on(row: ScoringRecord) -> None:
    """End what waited for a repeat's scores."""
    if row.repeat.finished_at is None:
        finish_repeat(repeat_id=row.repeat_id)
        return
    _finish_run(row.repeat.run_id)  # one that was read from a log, or nothing where the run has ended
    history.note(row.repeat.run_id, "rescored", f"Scored with scorer {row.scorer.digest[:8]}.")
    changes.run_changed(run_id=row.repeat.run_id)


def _read_judge(spec: Mapping[str, Any], reply: ReplyToScore) -> tuple[float, str]:
    """Read the value of a judgement, in the judge's own run."""
    read = scoring.read_judgement(spec, reply.text)
    return (math.nan, read) if isinstance(read, str) else (read, scoring.capped(f"Judged {scoring.shown(reply.text)}."))


def _explain_unknown(repeat: RepeatRecord) -> Iterator[tuple[int, str]]:
    """Yield why no scorer reads a response that ended in a way that is not known, by case index."""
    unknown = repeat.responses.filter(error_code="", ending=Ending.UNKNOWN)
    for index, word in unknown.values_list("case_index", "finish_reason"):
        yield index, f"Unscored: it ended with {word!r}, which is an unknown ending."


def store_columns(repeat: RepeatRecord) -> int:
    """Pack a repeat's columns from its responses; how many of them are missing.

    A prompt that the provider's filter refused is not missing where others were answered: it would be refused again.
    """
    n_cases = repeat.run.suite_version.n_cases
    rows: list[tuple[int, bytes, bytes, int, int | None, int | None, int, int | None]] = list(
        ResponseRecord.objects.filter(repeat=repeat, error_code="").values_list(
            "case_index",
            "text_digest",
            "trace_digest",
            "engine_process__bucket_id",
            "trace_block_id",
            "trace_slot",
            "marks",
            "batch_max",
        )  # type: ignore[arg-type]  # the constraint on Response says that these are not null
    )
    bucket_ids = sorted({row[3] for row in rows})
    find_names(
        [(repeat.run.endpoint_id, bucket) for bucket in bucket_ids]
    )  # a backend gets its name with its first answers
    text_digests: list[bytes | None] = [None] * n_cases
    trace_digests: list[bytes | None] = [None] * n_cases
    buckets: list[int | None] = [None] * n_cases
    marks = np.zeros(n_cases, np.uint8)
    for index, text, trace, bucket, _, _, mark, _ in rows:
        text_digests[index], trace_digests[index] = bytes(text), bytes(trace)
        buckets[index], marks[index] = bucket_ids.index(bucket), mark
    packed: dict[str, Any] = {
        "text_digests": pack_digests(text_digests),
        "trace_digests": pack_digests(trace_digests),
        "buckets": pack_buckets(buckets),
    }
    if packed_marks := pack_marks(marks):  # most have none, and their digest is what it always was
        packed["marks"] = packed_marks
    left_out = is_left_out(marks)
    fields: dict[str, Any] = {"bucket_ids": bucket_ids, "digest": packed_digest(**packed, bucket_ids=bucket_ids)}
    fields["n_left_out"] = int(np.count_nonzero(left_out))
    fields["batch_sizes"] = Counter(row[-1] for row in rows if row[-1] is not None)
    fields["usage"] = sum_usage(repeat)
    fields["flip_chances"] = flip_chances.predict(
        repeat,
        (
            (index, by, bytes(trace), block, slot)
            for index, _, trace, by, block, slot, _, _ in rows
            if block is not None and slot is not None and not left_out[index]
        ),
    )
    fields |= packed
    CaseColumns.objects.bulk_create(
        [CaseColumns(repeat=repeat, **fields)],
        update_conflicts=True,
        unique_fields=["repeat"],
        update_fields=list(fields),
    )
    n_filtered = int(np.count_nonzero(_find_filtered(repeat, n_cases))) if rows else 0
    return count_cases(repeat, n_cases) - len(rows) - n_filtered


def _find_filtered(repeat: RepeatRecord, n_cases: int) -> NDArray[np.bool_]:
    """Return bool[n_cases]: the prompts that the provider's filter refused."""
    is_filtered = np.zeros(n_cases, np.bool_)
    refused = ResponseRecord.objects.filter(repeat=repeat, error_code=PROMPT_FILTERED)
    is_filtered[list(refused.values_list("case_index", flat=True))] = True
    return is_filtered


def count_cases(repeat: RepeatRecord, n_cases: int) -> int:
    """Return how many of n_cases a repeat decodes; others are not missing."""
    return n_cases if repeat.cases is None else int(unpack_selection(bytes(repeat.cases), n_cases).sum())


def _ended_status(shards: Counter[str], n_missing: int) -> str:
    if shards[Shard.Status.CANCELLED]:
        return RepeatRecord.Status.CANCELLED
    if set(shards) == {Shard.Status.FAILED}:
        return RepeatRecord.Status.FAILED
    return RepeatRecord.Status.INCOMPLETE if n_missing else RepeatRecord.Status.FINISHED


def _has_enough_draws(run: RunRecord) -> bool:
    """Return whether enough answers are fresh samples; on our own engine all are."""
    if not run.is_reported:
        return True
    n_left_out = CaseColumns.objects.filter(repeat__run=run).aggregate(n=Sum("n_left_out"))["n"] or 0
    n_answers = ResponseRecord.objects.filter(repeat__run=run, error_code="").count() if n_left_out else 0
    return has_enough_draws(n_left_out, n_answers)


def _bind_largest(run: RunRecord) -> None:
    """Bind an external run to the bucket that answered most of it, even one new to the endpoint."""
    bucket = largest_bucket(run)
    if bucket is None or bucket.pk == run.bucket_id:
        return
    run.bucket = bucket
    run.save(update_fields=["bucket"])
    rotations.note_rotation(shown_by=run)


def note_what_was_served(run: RunRecord) -> None:
    """Tell the run's history which answers are no draws, and which came without tokens."""
    there = ResponseRecord.objects.filter(repeat__run=run, error_code="")
    marks = there.filter(marks__gt=0).order_by().values_list("marks").annotate(n=Count("pk"))
    marked: Counter[str] = Counter()
    for mark, n in marks:
        marked.update(dict.fromkeys(list_mark_names(mark), n))
    n_without, n_there = there.filter(trace_block=None, unmeasured_trace=None).count(), there.count()
    reasons = there.exclude(trace_reason="").order_by().values_list("trace_reason").annotate(n=Count("pk"))
    if text := wording.without_tokens("The server", n_without, n_there, dict(reasons)):
        history.note_once(run.pk, imported.TEXT_ONLY, text, level=Event.Level.WARNING)
    with_odd = there.filter(call__dropped__0__isnull=False).values_list("call__dropped", flat=True)
    if dropped := Counter(name for names in with_odd for name in names):
        history.note_once(run.pk, imported.DROPPED, wording.dropped_fields(dropped), level=Event.Level.WARNING)
    if marked:
        text = wording.unclean_responses(marked, n_there)
        history.note_once(run.pk, imported.UNCLEAN, text, level=Event.Level.WARNING)


def largest_bucket(run: RunRecord) -> BucketRecord | None:
    """Return the bucket that answered most of a run; None without answers."""
    by_bucket = ResponseRecord.objects.filter(repeat__run=run, engine_process__isnull=False, error_code="")
    counted = by_bucket.order_by().values_list("engine_process__bucket").annotate(n=Count("pk"))
    largest = counted.order_by("-n", "engine_process__bucket").first()
    return None if largest is None else BucketRecord.objects.get(pk=largest[0])


def _finish_run(run_id: int) -> None:
    run = (
        RunRecord.objects.select_for_update(no_key=True, of=("self",))
        .select_related("endpoint", "profile", "suite_version")
        .get(pk=run_id)
    )
    statuses = Counter(run.repeats.values_list("status", flat=True))
    is_waiting = statuses[RepeatRecord.Status.QUEUED] or statuses[RepeatRecord.Status.RUNNING]
    if run.is_terminal or is_waiting or own_open_scorings(run).exists() or own_open_judgings(run).exists():
        return
    if set(statuses) == {RepeatRecord.Status.FINISHED}:
        # Even if cancelling was asked for: it came too late.
        run.status = RunRecord.Status.FINISHED if _has_enough_draws(run) else RunRecord.Status.INCOMPLETE
    elif run.is_cancel_wanted:
        run.status = RunRecord.Status.CANCELLED
    elif set(statuses) == {RepeatRecord.Status.FAILED} or run.failure:  # whatever was stored before
        run.status = RunRecord.Status.FAILED
    else:
        run.status = RunRecord.Status.INCOMPLETE
    logged_end = run.repeats.values_list("finished_at", flat=True).first() if run.is_log else None
    run.finished_at = logged_end or Now()
    changed = settle_endings(run, is_final=True)
    for repeat in () if waits_for_judge(run) else run.repeats.filter(pk__in=changed):
        score_repeat(repeat, run.suite_version.scorer)  # others of its repeats say more of a word
        score_by_adopted(repeat)
    if run.is_reported and not run.is_log:  # a log's import has done so
        if settle_fingerprints(run):
            for repeat in run.repeats.filter(columns__isnull=False):
                store_columns(repeat)
                _point_again(repeat)
        _bind_largest(run)
        note_what_was_served(run)
    run.settings_seen = see_settings(run).to_json()
    look_through(run)
    run.save(update_fields=["status", "finished_at", "settings_seen", "strays", "strays_so_far", "unsteady"])
    level = Event.Level.INFO if run.status == RunRecord.Status.FINISHED else Event.Level.WARNING
    history.note(run.pk, run.status, f"The run ended: {run.status}.", level=level)
    news.tell_of_end(run.pk)


def _point_again(repeat: RepeatRecord) -> None:
    """Count a repeat's points again: its scores are the same, and its buckets are others."""
    for row in repeat.scores.all():
        _, row.points = _count_points(repeat, unpack_scores(bytes(row.scores)))
        row.save(update_fields=["points"])


def settle_fingerprints(run: RunRecord) -> bool:
    """Merge the buckets of an external run whose server gives each answer a new fingerprint.

    Where there are too few answers to tell, the newest check of the endpoint does. Return whether they were merged;
    columns and scores are then for the caller to make again. The run's history says so, and where more than half of the
    answers have one of their own.
    """
    answers = ResponseRecord.objects.filter(repeat__run=run, error_code="", engine_process__isnull=False).order_by()
    n_each = dict(answers.values_list("engine_process").annotate(n=Count("pk")))
    related = ("bucket__model", "bucket__fingerprint")
    processes = list(EngineProcess.objects.filter(pk__in=n_each).select_related(*related).order_by("pk"))
    prints: Counter[str] = Counter()
    for process in processes:
        if name := process.bucket.fingerprint.manifest.get("source", {}).get("system_fingerprint"):
            prints[name] += n_each[process.pk]
    is_checked = len(prints) == prints.total() > 1 and finds_call_names(run.endpoint_id)
    if not is_checked and (prints.total() < MIN_NAMED or 2 * len(prints) <= prints.total()):
        return False
    text = wording.fingerprints_of_calls(len(prints), prints.total(), endpoint=run.endpoint.slug)
    history.note_once(run.pk, imported.CALL_FINGERPRINTS, text, level=Event.Level.WARNING)
    if not is_checked and not names_calls(len(prints), prints.total()):
        return False
    alike: dict[Known, list[EngineProcess]] = defaultdict(list)
    for process in processes:
        source = process.bucket.fingerprint.manifest["source"]
        names = ("backend", "backend_from", "model_reported")
        alike[tuple((name, source[name]) for name in names if name in source)].append(process)
    for known, theirs in alike.items():
        _merge(run, known, theirs)
    return True


def _merge(run: RunRecord, known: Known, processes: list[EngineProcess]) -> None:
    """Let the first of these processes have all their answers."""
    joined, *others = processes
    joined.bucket = bucket_of(joined.bucket.model, known, run=key_of_run(run))
    joined.manifest = {"source": {k: v for k, v in joined.manifest["source"].items() if k != "system_fingerprint"}}
    joined.save(update_fields=["bucket", "manifest"])
    ResponseRecord.objects.filter(repeat__run=run, engine_process__in=others).update(engine_process=joined)
    for repeat in RepeatRecord.objects.filter(run=run, engine_processes__in=processes).distinct():
        repeat.engine_processes.add(joined)
    EngineProcess.objects.filter(pk__in=[each.pk for each in others]).delete()
