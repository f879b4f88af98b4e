"""Delete old traces, texts and runs by rules, and one case on request, leaving a tombstone.

No rule touches a run that a baseline or a signed release depends on, nor one that waits for a comparison after a
rotation. Scores, digests and provenance stay until a rule for whole runs deletes them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Greatest, Now

from evalboard.core.errors import Conflict, InvalidInput
from evalboard.core.trace import TokenTrace, encode_block, pack_reasons, read_block, unpack_reasons
from runs import acts
from runs.models import (
    BaselineRecord,
    Case,
    CaseFrame,
    DeletionRecord,
    ForcedAnswerRecord,
    GateRecord,
    ListedFrame,
    RepeatScore,
    ReplayRecord,
    ResponseRecord,
    RetentionRuleRecord,
    Rotation,
    RunFiguresRecord,
    RunRecord,
    SignOffRecord,
    Suite,
    TraceBlock,
)
from runs.run import delete_judge_run, delete_run, label_problems, locked
from runs.store import (
    changes,
    delete_unused_images,
    history,
    packed_digest,
    require_first,
    require_row,
    stored_digests,
    take_as_long_as_it_takes,
)

What = RetentionRuleRecord.What
ORDER = (What.RUNS, What.TEXTS, What.TRACES)  # what deletes most comes first: the rest is gone with it
RUNS_AT_ONCE = 20  # of one sweep
MAX_DAYS = 36_500
DELETED = "[deleted]"

BYTES = """
SELECT (SELECT coalesce(sum(pg_column_size(data)), 0) FROM runs_traceblock WHERE run_id = run.id),
       coalesce(sum(pg_column_size(answer.text) + coalesce(pg_column_size(answer.reasoning), 0)
                    + coalesce(pg_column_size(answer.unmeasured_trace), 0)), 0),
       count(*)
  FROM runs_run AS run
  JOIN runs_repeat AS repeat ON repeat.run_id = run.id
  JOIN runs_response AS answer ON answer.repeat_id = repeat.id
 WHERE run.id = %s
 GROUP BY run.id
"""
BLANK_TEXTS = """
UPDATE runs_response SET text = '', reasoning = NULL, error_detail = '', unmeasured_trace = NULL
 WHERE repeat_id IN (SELECT id FROM runs_repeat WHERE run_id = %s)
"""
BLANK_TRACES = """
UPDATE runs_response SET trace_block_id = NULL, trace_slot = NULL, unmeasured_trace = NULL
 WHERE repeat_id IN (SELECT id FROM runs_repeat WHERE run_id = %s)
"""
DELETE_BLOCKS = """
DELETE FROM runs_traceblock AS block
 WHERE run_id = %s AND NOT EXISTS (SELECT FROM runs_forcedanswer WHERE trace_block_id = block.id)
"""


@dataclass(frozen=True, slots=True)
class Due:
    """What a rule would delete now. n_bytes: about, as stored."""

    run: int
    what: str
    rule: RetentionRuleRecord
    n_responses: int
    n_bytes: int


def create_rule(*, what: str, days: int, suite: str = "", label: str = "", user: Any = None) -> RetentionRuleRecord:
    """Make a rule, which the scheduler follows from its next sweep on. Raises InvalidInput or NotFound."""
    fields: dict[str, str] = {}
    if what not in What.values:
        fields["what"] = f"Must be one of: {', '.join(What.values)}."
    if not 1 <= days <= MAX_DAYS:
        fields["days"] = f"Must be a whole number from 1 to {MAX_DAYS:,}."
    name, is_pair, value = label.partition("=")
    if label and (not is_pair or label_problems({name: value})):
        fields["label"] = "Must be a run's label, as in branch=main."
    if fields:
        raise InvalidInput("The rule is not valid.", fields=fields)
    of = require_row(Suite.objects.filter(slug=suite), f"There is no suite {suite}.") if suite else None
    return RetentionRuleRecord.objects.create(what=what, days=days, suite=of, label=label, created_by=user)


def delete_rule(*, rule_id: int) -> None:
    """Forget a rule; what it deleted stays deleted. Raises NotFound."""
    require_row(RetentionRuleRecord.objects.filter(pk=rule_id), f"There is no retention rule {rule_id}.").delete()


def describe_rule(rule: RetentionRuleRecord) -> str:
    """Return a rule in words: `rule 3: texts of runs of my-suite with branch=main after 90 days`."""
    of = f" of {rule.suite.slug}" if rule.suite else ""
    what = "runs" if rule.what == What.RUNS else f"{rule.what} of runs"
    return f"rule {rule.pk}: {what}{of}{f' with {rule.label}' if rule.label else ''} after {rule.days} days"


def plan_deletions(*, limit: int | None = None) -> Iterator[Due]:
    """Yield what the rules would delete now, whole runs first; a run comes once."""
    seen: set[int] = set()
    for what in ORDER:
        for rule in RetentionRuleRecord.objects.filter(what=what).select_related("suite").order_by("days"):
            for run_id in _due(rule).exclude(pk__in=seen).values_list("pk", flat=True)[:limit]:
                if limit is not None and len(seen) >= limit:
                    return
                seen.add(run_id)
                yield Due(run_id, what, rule, *_size(run_id, what))


def apply_rules(*, limit: int = RUNS_AT_ONCE) -> int:
    """Delete what is due, at most of so many runs, each in a transaction of its own. Return how many."""
    return sum(_apply(due) for due in list(plan_deletions(limit=limit)))


def purge_case(
    *, suite: str, case_id: str, reason: str, voids_sign_offs: bool = False, user: Any = None
) -> list[DeletionRecord]:
    """Delete the texts of one case: in every version of a suite, with all answers to it.

    Its scores and digests stay. The reasons of its scores go, which changes the digests that a sign-off covers:
    voids_sign_offs says that this is known. Raises NotFound, InvalidInput without a reason, or Conflict where a run is
    at work, or where a signed release or a baseline uses one and voids_sign_offs is not said.
    """
    if not reason.strip():
        raise InvalidInput("The case is not deleted.", fields={"reason": "Say why; the tombstone shows it."})
    with transaction.atomic():
        take_as_long_as_it_takes()
        stored = Case.objects.filter(suite_version__suite__slug=suite, case_id=case_id)
        cases = list(stored.select_for_update(of=("self",)).select_related("suite_version").order_by("pk"))
        require_first(tuple(cases), f"There is no case {case_id} in suite {suite}.")
        if any("deleted" in case.content for case in cases):
            cases = [case for case in cases if "deleted" not in case.content]
        runs = RunRecord.objects.filter(suite_version__in=[case.suite_version_id for case in cases])
        list(runs.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk"))
        _refuse_purge(runs, case_id, voids_sign_offs=voids_sign_offs)
        return [_purge(case, reason.strip(), user) for case in cases]


def _refuse_purge(runs: QuerySet[RunRecord], case_id: str, *, voids_sign_offs: bool) -> None:
    if (at_work := runs.exclude(status__in=RunRecord.TERMINAL).first()) is not None:
        raise Conflict(f"Run {at_work.pk} is at work on case {case_id}. Wait for its end, or cancel it first.")
    if not voids_sign_offs and (signed := runs.filter(_is_relied_on()).order_by("pk").first()) is not None:
        raise Conflict(
            f"Run {signed.pk} is in a signed release or is a baseline. Deleting case {case_id} deletes the reasons of "
            "its scores, so that sign-offs on this run are void. Confirm with voids_sign_offs."
        )


def _purge(case: Case, reason: str, user: Any) -> DeletionRecord:
    """Delete one version's case, and the answers to it."""
    runs = RunRecord.objects.filter(suite_version=case.suite_version_id)
    for judge_run in RunRecord.objects.filter(judging_of__run__in=runs):
        delete_judge_run(judge_run)  # its prompts hold the answers
    answers = ResponseRecord.objects.filter(repeat__run__in=runs, case_index=case.index)
    forced = ForcedAnswerRecord.objects.filter(scoring__run__in=runs, case_index=case.index)
    n_bytes = sum(len(text.encode()) for text in answers.values_list("text", flat=True))
    for places in (answers, forced):
        _blank_slots(places.exclude(trace_block=None).values_list("trace_block", "trace_slot"))
    forced.delete()
    ReplayRecord.objects.filter(run__in=runs, case_index=case.index).delete()
    n_answers = answers.update(
        text="", reasoning=None, error_detail="", trace_block=None, trace_slot=None, unmeasured_trace=None
    )
    for score in RepeatScore.objects.filter(repeat__run__in=runs).iterator(chunk_size=20):
        reasons = list(unpack_reasons(bytes(score.reasons)))
        if reasons[case.index] is not None:
            reasons[case.index] = None
            _store_reasons(score, reasons)
    _forget_copies(runs)
    gone = DeletionRecord.objects.create(
        what=DeletionRecord.What.CASE,
        suite_version=case.suite_version,
        case_id=case.case_id,
        why=reason,
        n_responses=n_answers,
        n_bytes=n_bytes + len(str(case.content)),
        by=user,
    )
    images = stored_digests(case.content["messages"])
    case.content = {"messages": [{"role": "user", "content": DELETED}], "target": None, "deleted": gone.pk}
    case.save(update_fields=["content"])
    delete_unused_images(images)
    for run_id in runs.values_list("pk", flat=True):
        history.note(run_id, "case_deleted", f"The texts of case {case.case_id} were deleted: {reason}")
        changes.run_changed(run_id=run_id)
    return gone


def _blank_slots(places: Any) -> None:
    """Put empty traces at these slots; the other traces of their blocks keep their slots."""
    slots: dict[int, set[int]] = {}
    for block_id, slot in places:
        slots.setdefault(block_id, set()).add(slot)
    for block in TraceBlock.objects.filter(pk__in=slots).iterator(chunk_size=20):
        traces = [
            _EMPTY if slot in slots[block.pk] else trace for slot, trace in enumerate(read_block(bytes(block.data)))
        ]
        block.data = encode_block(traces)
        block.save(update_fields=["data"])


_EMPTY = TokenTrace(
    np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros((0, 1), np.int32), np.zeros((0, 1), np.float32)
)


def _is_relied_on() -> Q:
    """Select runs that a baseline or a signed release depends on."""
    signed = GateRecord.objects.filter(Exists(SignOffRecord.objects.filter(release=OuterRef("release"))))
    return (
        Q(Exists(BaselineRecord.objects.filter(run=OuterRef("pk"))))
        | Q(Exists(signed.filter(baseline_run=OuterRef("pk"))))
        | Q(Exists(signed.filter(candidate_run=OuterRef("pk"))))
    )


def _due(rule: RetentionRuleRecord) -> QuerySet[RunRecord]:
    """Select the runs from which a rule would delete something now, oldest first."""
    ended = RunRecord.objects.filter(status__in=RunRecord.TERMINAL, judging_of=None)
    ended = ended.annotate(age_from=Greatest("created_at", "finished_at"))  # of a log: when it was imported
    runs = ended.filter(age_from__lt=Now() - timedelta(days=rule.days))
    runs = runs.exclude(_is_relied_on()).exclude(
        Exists(Rotation.reference_runs.through.objects.filter(run=OuterRef("pk")))
    )
    if rule.suite_id is not None:
        runs = runs.filter(suite_version__suite=rule.suite_id)
    if rule.label:
        name, _, value = rule.label.partition("=")
        runs = runs.filter(labels__contains={name: value})
    if rule.what == What.RUNS:
        return runs.filter(gates_as_baseline=None, gates_as_candidate=None, rotation=None).order_by("pk")
    there = Q(texts_deleted_at=None) if rule.what == What.TEXTS else Q(traces_deleted_at=None)
    return runs.filter(there).order_by("pk")


def _size(run_id: int, what: str) -> tuple[int, int]:
    """Return the number of responses, and about how many bytes of them go."""
    with connection.cursor() as cursor:
        cursor.execute(BYTES, [run_id])
        traces, texts, n = cursor.fetchone() or (0, 0, 0)
    return int(n), int(traces if what == What.TRACES else traces + texts)


def _apply(due: Due) -> bool:
    """Delete one run's part, unless the run no longer is what the rule is about."""
    with transaction.atomic():
        take_as_long_as_it_takes()
        run = locked(due.run)
        if not _due(due.rule).filter(pk=run.pk).exists():
            return False
        if due.what == What.RUNS:
            if acts.refusal("delete", run) is not None:
                return False
            delete_run(run_id=run.pk)
        else:
            _delete_traces(run)
            if due.what == What.TEXTS:
                _delete_texts(run)
        why = describe_rule(due.rule)
        about = {"what": due.what, "run": due.run, "why": why, "suite_version_id": run.suite_version_id}
        DeletionRecord.objects.create(n_responses=due.n_responses, n_bytes=due.n_bytes, **about)
        if due.what != What.RUNS:
            history.note(due.run, f"{due.what}_deleted", f"The {due.what} of its answers were deleted by {why}.")
            changes.run_changed(run_id=due.run)
    return True


def _delete_traces(run: RunRecord) -> None:
    with connection.cursor() as cursor:
        cursor.execute(BLANK_TRACES, [run.pk])
        cursor.execute(DELETE_BLOCKS, [run.pk])
    RunRecord.objects.filter(pk=run.pk, traces_deleted_at=None).update(traces_deleted_at=Now())


def _delete_texts(run: RunRecord) -> None:
    """Delete the texts, and what quotes them: reasons of scores, replays, forced answers, judges' runs."""
    for judge_run in RunRecord.objects.filter(judging_of__run=run):
        delete_judge_run(judge_run)
    ForcedAnswerRecord.objects.filter(scoring__run=run).delete()
    ReplayRecord.objects.filter(run=run).delete()
    with connection.cursor() as cursor:
        cursor.execute(BLANK_TEXTS, [run.pk])
        cursor.execute(DELETE_BLOCKS, [run.pk])
    for score in RepeatScore.objects.filter(repeat__run=run).select_related("repeat"):
        _store_reasons(score, [None] * len(unpack_reasons(bytes(score.reasons))))
    _forget_copies(RunRecord.objects.filter(pk=run.pk))
    RunRecord.objects.filter(pk=run.pk).update(texts_deleted_at=Now())


def _store_reasons(score: RepeatScore, reasons: Sequence[str | None]) -> None:
    score.reasons = pack_reasons(reasons)
    score.digest = packed_digest(scores=bytes(score.scores), reasons=bytes(score.reasons))
    score.save(update_fields=["reasons", "digest"])


def _forget_copies(runs: QuerySet[RunRecord]) -> None:
    """Delete what lists of cases keep of answers; it is made again from what is left."""
    CaseFrame.objects.filter(run__in=runs).delete()
    RunFiguresRecord.objects.filter(run__in=runs).delete()
    either = Q(comparison__baseline__in=runs) | Q(comparison__candidate__in=runs)
    ListedFrame.objects.filter(either).delete()
