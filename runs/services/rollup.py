"""What follows when the last shard of a repeat, or the last repeat of a run, has ended."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models.functions import Now
from numpy.typing import NDArray

from evalboard.core import columns, live_answers, noise, scoring
from evalboard.core.scoring import Score
from runs.models import Case, CaseColumns, Event, Repeat, RepeatScore, Response, Run, Scorer, Shard
from runs.services import flip_chances, history, news, verdicts
from runs.services.packed_digests import packed_digest

SCORED_AT_ONCE = 1000  # cases whose prompts and texts are in memory together


def finish_repeat(*, repeat_id: int) -> bool:
    """End a repeat whose shards have all ended: pack its columns, score it, roll up its run.

    Safe to call at any time and twice; False if there was nothing to end. Whoever ends the last
    shard calls it, and the reconciler calls it again for repeats whose caller died in between.
    """
    if Shard.objects.open().filter(repeat=repeat_id).exists():
        return False  # before any lock: all shards but the last end here
    with transaction.atomic():
        repeat = (
            Repeat.objects.select_for_update(of=("self",), no_key=True)
            .select_related("run__suite_version")
            .get(pk=repeat_id)
        )
        shards = Counter(repeat.shards.values_list("status", flat=True))
        if repeat.finished_at is not None or shards[Shard.Status.QUEUED] or shards[Shard.Status.RUNNING]:
            return False
        n_missing = store_columns(repeat)
        score_repeat(repeat, repeat.run.suite_version.scorer)
        repeat.status = _ended_status(shards, n_missing)
        repeat.finished_at = Now()
        repeat.save(update_fields=["status", "finished_at"])
        _finish_run(repeat.run_id)
    return True


def score_repeat(repeat: Repeat, scorer: Scorer) -> None:
    """Score the stored responses of a repeat under one scorer; nothing is decoded again."""
    n_cases = repeat.run.suite_version.n_cases
    scores = np.full(n_cases, np.nan)
    reasons: list[str | None] = [None] * n_cases
    for first in range(0, n_cases, SCORED_AT_ONCE):
        part = (first, first + SCORED_AT_ONCE - 1)
        texts = dict(repeat.responses.filter(error_code="", case_index__range=part).values_list("case_index", "text"))
        for case in Case.objects.filter(suite_version=repeat.run.suite_version_id, index__in=list(texts)):
            given = score_case(scorer.spec, case, texts[case.index])
            scores[case.index], reasons[case.index] = given.value, given.reason
    store_scores(repeat, scorer, scores, reasons)


def store_scores(repeat: Repeat, scorer: Scorer, scores: NDArray[np.float64], reasons: Sequence[str | None]) -> None:
    """Keep a repeat's scores under one scorer: float64[n_cases] from 0 to 1, NaN where missing.

    Its columns stand already. Where several buckets served it, it has scores of cases and no points.
    """
    served_by = CaseColumns.objects.filter(repeat=repeat).values_list("bucket_ids", flat=True).first()
    n_scored = int(np.count_nonzero(~np.isnan(scores)))
    packed: dict[str, Any] = {"scores": columns.pack_scores(scores), "reasons": columns.pack_reasons(reasons)}
    RepeatScore.objects.update_or_create(
        repeat=repeat,
        scorer=scorer,
        defaults={
            **packed,
            "digest": packed_digest(**packed),
            "n_scored": n_scored,
            "n_missing": len(scores) - n_scored,
            "points": noise.run_points(scores) if len(served_by or ()) <= 1 else None,
        },
    )


def score_case(plan: Mapping[str, Any], case: Case, text: str) -> Score:
    spec = scoring.scorer_for(plan, case.case_id)
    return scoring.score(spec, text=text, target=case.content["target"], tools=case.content.get("tools"))


def store_columns(repeat: Repeat) -> int:
    """Pack a repeat's columns from its responses; how many of them are missing."""
    n_cases = repeat.run.suite_version.n_cases
    rows: list[tuple[int, bytes, bytes, int, int | None, int | None, int]] = list(
        Response.objects.filter(repeat=repeat, error_code="").values_list(
            "case_index",
            "text_digest",
            "trace_digest",
            "engine_process__bucket_id",
            "trace_block_id",
            "trace_slot",
            "marks",
        )  # type: ignore[arg-type]  # the constraint on Response says that these are not null
    )
    bucket_ids = sorted({row[3] for row in rows})
    text_digests: list[bytes | None] = [None] * n_cases
    trace_digests: list[bytes | None] = [None] * n_cases
    buckets: list[int | None] = [None] * n_cases
    marks = np.zeros(n_cases, np.uint8)
    for index, text, trace, bucket, _, _, mark in rows:
        text_digests[index], trace_digests[index] = bytes(text), bytes(trace)
        buckets[index], marks[index] = bucket_ids.index(bucket), mark
    packed: dict[str, Any] = {
        "text_digests": columns.pack_digests(text_digests),
        "trace_digests": columns.pack_digests(trace_digests),
        "buckets": columns.pack_buckets(buckets),
    }
    if packed_marks := columns.pack_marks(marks):  # most have none, and their digest is what it always was
        packed["marks"] = packed_marks
    left_out = live_answers.is_left_out(marks)
    kept: dict[str, Any] = {"bucket_ids": bucket_ids, "digest": packed_digest(**packed, bucket_ids=bucket_ids)}
    kept["n_left_out"] = int(np.count_nonzero(left_out))
    kept["flip_chances"] = flip_chances.predict(
        repeat,
        (
            (index, by, block, slot)
            for index, _, _, by, block, slot, _ in rows
            if block is not None and slot is not None and not left_out[index]
        ),
    )
    CaseColumns.objects.update_or_create(repeat=repeat, defaults={**packed, **kept})
    return n_cases - len(rows)


def _ended_status(shards: Counter[str], n_missing: int) -> str:
    if shards[Shard.Status.CANCELLED]:
        return Repeat.Status.CANCELLED
    if set(shards) == {Shard.Status.FAILED}:
        return Repeat.Status.FAILED
    return Repeat.Status.INCOMPLETE if n_missing else Repeat.Status.FINISHED


def _finish_run(run_id: int) -> None:
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    statuses = Counter(run.repeats.values_list("status", flat=True))
    if run.is_terminal or statuses[Repeat.Status.QUEUED] or statuses[Repeat.Status.RUNNING]:
        return
    if set(statuses) == {Repeat.Status.FINISHED}:
        run.status = Run.Status.FINISHED  # even if cancelling was asked for: it came too late
    elif run.is_cancel_wanted:
        run.status = Run.Status.CANCELLED
    elif set(statuses) == {Repeat.Status.FAILED}:
        run.status = Run.Status.FAILED
    else:
        run.status = Run.Status.INCOMPLETE
    run.finished_at = Now()
    run.save(update_fields=["status", "finished_at"])
    level = Event.Level.INFO if run.status == Run.Status.FINISHED else Event.Level.WARNING
    history.note(run.pk, run.status, f"The run ended: {run.status}.", level=level)
    news.tell_of_end(run.pk)
    verdicts.decide_after_commit(run_id=run.pk)
