"""Delete old traces, texts and runs by rules, and one case on request, leaving a tombstone.

No rule touches a run that a baseline or a signed release depends on, nor one that waits for a comparison after a
rotation. Scores, digests and provenance stay until a rule for whole runs deletes them.
"""

import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Greatest, Now

from evalboard.contract.retention import DueDeletion
from evalboard.core.errors import Conflict, InvalidInput
from evalboard.core.trace import TokenTrace, encode_block, pack_reasons, read_block, unpack_reasons
from runs import acts
from runs.models import (
    AnchorSetRecord,
    AnswerSet,
    BaselineRecord,
    Case,
    CaseFrame,
    ComparisonRecord,
    DeletionRecord,
    ExperimentRecord,
    ForcedAnswerRecord,
    ForcedScoringRecord,
    GateRecord,
    JudgingRecord,
    ListedFrame,
    RepeatRecord,
    RepeatScore,
    ReplayRecord,
    ResponseRecord,
    RetentionRuleRecord,
    Rotation,
    RunFiguresRecord,
    RunRecord,
    ScoringRecord,
    SignOffRecord,
    Suite,
    TraceBlock,
)
from runs.run import delete_judge_run, delete_run, hold_version, label_problems, locked
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

logger = logging.getLogger(__name__)
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


def plan_deletions() -> Iterator[tuple[RetentionRuleRecord, DueDeletion]]:
    """Yield what the rules would delete now, whole runs first; a run comes once, measured as it comes."""
    for run_id, what, rule in _plan():
        n_responses, n_bytes = _size(run_id, what)
        size = {"n_responses": n_responses, "n_bytes": n_bytes}
        yield rule, DueDeletion(run=str(run_id), what=what, rule=describe_rule(rule), **size)


def count_due() -> int:
    """Return of how many runs the rules would delete something now, without measuring them."""
    return sum(1 for _ in _plan())


def _plan() -> Iterator[tuple[int, str, RetentionRuleRecord]]:
    seen: set[int] = set()
    for what in ORDER:
        for rule in RetentionRuleRecord.objects.filter(what=what).select_related("suite").order_by("days"):
            for run_id in _due(rule).exclude(pk__in=seen).values_list("pk", flat=True):
                seen.add(run_id)
                yield run_id, what, rule


def apply_rules(*, limit: int = RUNS_AT_ONCE) -> int:
    """Delete what is due, at most of so many runs, each in a transaction of its own. Return how many.

    A run at which that fails is logged, and stops no other.
    """
    n_done = 0
    for rule, due in plan_deletions():
        try:
            n_done += _apply(rule, due)
        except Exception:
            logger.exception("The %s of run %s were not deleted", due.what, due.run)
        if n_done == limit:
            break
    return n_done


def purge_case(
    *, suite: str, case_id: str, reason: str, voids_sign_offs: bool = False, user: Any = None
) -> list[DeletionRecord]:
    """Delete the texts of one case: in every version of a suite, with all answers to it.

    With it go its copy in the suite of its reference set, what judges were asked about it, and its anchors. Its scores
    and digests stay. The reasons of its scores go, which changes the digests that a sign-off covers: voids_sign_offs
    says that this is known. Raises NotFound, InvalidInput without a reason, or Conflict where a run is
    at work, or where a signed release or a baseline uses one and voids_sign_offs is not said.
    """
    if not reason.strip():
        raise InvalidInput("The case is not deleted.", fields={"reason": "Say why; the tombstone shows it."})
    with transaction.atomic():
        take_as_long_as_it_takes()
        named = require_row(
            Suite.objects.select_related("reference_of").filter(slug=suite), f"There is no suite {suite}."
        )
        whole = named.reference_of.suite_id if named.reference_of else named.pk
        suites = Q(suite_version__suite=whole) | Q(suite_version__suite__reference_of__suite=whole)
        stored = Case.objects.filter(suites, case_id=case_id)
        for version_id in stored.order_by("suite_version").values_list("suite_version", flat=True):
            hold_version(version_id, to_delete=True)  # before its row, which who stores a run waits for at its end
        cases = list(
            stored.select_for_update(of=("self", "suite_version")).select_related("suite_version").order_by("pk")
        )
        require_first(tuple(cases), f"There is no case {case_id} in suite {suite}.")
        cases = [case for case in cases if "deleted" not in case.content]
        runs = RunRecord.objects.filter(suite_version__in=[case.suite_version_id for case in cases])
        about = _judgements_about(whole, case_id)
        judge_runs = RunRecord.objects.filter(suite_version__in=about.values("suite_version"))
        concerned = RunRecord.objects.filter(Q(pk__in=runs.values("pk")) | Q(pk__in=judge_runs.values("pk")))
        list(concerned.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk"))
        _refuse_purge(runs, concerned, case_id, voids_sign_offs=voids_sign_offs)
        images = {digest for case in cases for digest in stored_digests(case.content["messages"])}
        gone = [_purge(case, reason.strip(), user) for case in cases]
        _purge_judgements(about, judge_runs)
        _purge_anchors(whole, case_id)
        delete_unused_images(images)
        return gone


def _judgements_about(suite_id: int, case_id: str) -> QuerySet[Case]:
    """Select what judges were asked about answers to a case, anchors among them."""
    judged = Q(suite_version__suite__judged_suite=suite_id)
    judged |= Q(suite_version__suite__judged_suite__reference_of__suite=suite_id)
    return Case.objects.filter(judged, group=case_id)


def _refuse_purge(
    runs: QuerySet[RunRecord], concerned: QuerySet[RunRecord], case_id: str, *, voids_sign_offs: bool
) -> None:
    """concerned: the runs, and those in which judges were asked about the case."""
    if (at_work := concerned.exclude(status__in=RunRecord.TERMINAL).first()) is not None:
        raise Conflict(f"Run {at_work.pk} is at work on case {case_id}. Wait for its end, or cancel it first.")
    if (read := runs.filter(_is_read_now()).order_by("pk").first()) is not None:
        raise Conflict(f"Something reads the answers of run {read.pk} now: see its page. Wait for its end first.")
    if not voids_sign_offs and (signed := runs.filter(_is_relied_on()).order_by("pk").first()) is not None:
        raise Conflict(
            f"Run {signed.pk} is in a signed release or is a baseline. Deleting case {case_id} deletes the reasons of "
            "its scores, so that sign-offs on this run are void. Confirm with voids_sign_offs."
        )


def _purge(case: Case, reason: str, user: Any) -> DeletionRecord:
    """Delete one version's case, and the answers to it."""
    runs = RunRecord.objects.filter(suite_version=case.suite_version_id)
    forced = ForcedAnswerRecord.objects.filter(scoring__run__in=runs, case_index=case.index)
    _blank_slots(forced.exclude(trace_block=None).values_list("trace_block", "trace_slot"))
    forced.delete()
    ReplayRecord.objects.filter(run__in=runs, case_index=case.index).delete()
    n_answers, n_bytes = _blank_answers(ResponseRecord.objects.filter(repeat__run__in=runs, case_index=case.index))
    _blank_reasons(case.suite_version_id, {case.index})
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
    case.content = _tombstone(gone.pk)
    case.save(update_fields=["content"])
    for run_id in runs.values_list("pk", flat=True):
        history.note(run_id, "case_deleted", f"The texts of case {case.case_id} were deleted: {reason}")
        changes.run_changed(run_id=run_id)
    return gone


def _purge_judgements(about: QuerySet[Case], judge_runs: QuerySet[RunRecord]) -> None:
    """Delete the judgements of a case: the questions, with its prompt and an answer, and the replies."""
    places: dict[int, set[int]] = {}
    for version, index in about.values_list("suite_version", "index"):
        places.setdefault(version, set()).add(index)
    for version, indexes in places.items():
        _blank_answers(ResponseRecord.objects.filter(repeat__run__suite_version=version, case_index__in=indexes))
        _blank_reasons(version, indexes)
    _forget_copies(judge_runs)
    about.update(content=_tombstone(None))


def _purge_anchors(suite_id: int, case_id: str) -> None:
    """Delete the anchors of a case; a set that has lost one is not asked again (`runs.work.judgings`)."""
    suites = Q(suite=suite_id) | Q(suite__reference_of__suite=suite_id)
    for anchor_set in AnchorSetRecord.objects.filter(suites, anchors__contains=[{"case": case_id}]):
        anchor_set.anchors = [
            {"case": case_id, **_tombstone(None), "tags": [], "text": ""} if anchor["case"] == case_id else anchor
            for anchor in anchor_set.anchors
        ]
        anchor_set.save(update_fields=["anchors"])


def _tombstone(deletion_id: int | None) -> dict[str, Any]:
    """Return the content of a deleted case."""
    return {"messages": [{"role": "user", "content": DELETED}], "target": None, "deleted": deletion_id}


def _blank_answers(answers: QuerySet[ResponseRecord]) -> tuple[int, int]:
    """Delete the texts and traces of responses; return how many these are, and the bytes of their answers."""
    n_bytes = sum(len(text.encode()) for text in answers.values_list("text", flat=True))
    _blank_slots(answers.exclude(trace_block=None).values_list("trace_block", "trace_slot"))
    n_answers = answers.update(
        text="", reasoning=None, error_detail="", trace_block=None, trace_slot=None, unmeasured_trace=None
    )
    return n_answers, n_bytes


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


def _is_read_now() -> Q:
    """Select runs whose answers something under way reads: it would take empty texts for the answers."""
    run = OuterRef("pk")
    either = Q(baseline=run) | Q(candidate=run)
    waits_or_runs = (ReplayRecord.Status.QUEUED, ReplayRecord.Status.RUNNING)
    at_work = Q(status__in=waits_or_runs)
    return (
        Q(Exists(JudgingRecord.objects.filter(run=run, status=JudgingRecord.Status.RUNNING)))
        | Q(Exists(ScoringRecord.objects.filter(at_work, repeat__run=run)))
        | Q(Exists(ForcedScoringRecord.objects.filter(at_work, run=run)))
        | Q(Exists(ReplayRecord.objects.filter(at_work, run=run)))
        | Q(Exists(AnswerSet.objects.filter(run=run, probe__status__in=waits_or_runs)))
        | Q(Exists(ComparisonRecord.objects.filter(either, status=ComparisonRecord.Status.QUEUED)))
        | Q(Exists(ExperimentRecord.objects.filter(either, status=ExperimentRecord.Status.RUNNING)))
    )


def _due(rule: RetentionRuleRecord) -> QuerySet[RunRecord]:
    """Select the runs from which a rule would delete something now, oldest first."""
    ended = RunRecord.objects.filter(status__in=RunRecord.TERMINAL, judging_of=None)
    ended = ended.annotate(age_from=Greatest("created_at", "finished_at"))  # of a log: when it was imported
    runs = ended.filter(age_from__lt=Now() - timedelta(days=rule.days))
    runs = (
        runs.exclude(_is_relied_on())
        .exclude(_is_read_now())
        .exclude(Exists(Rotation.reference_runs.through.objects.filter(run=OuterRef("pk"))))
    )
    if rule.suite_id is not None:
        runs = runs.filter(suite_version__suite=rule.suite_id)
    if rule.label:
        name, _, value = rule.label.partition("=")
        runs = runs.filter(labels__contains={name: value})
    if rule.what == What.RUNS:
        judge_dates_rotation = Exists(Rotation.objects.filter(run__judging_of__run=OuterRef("pk")))
        runs = runs.filter(gates_as_baseline=None, gates_as_candidate=None, rotation=None)
        return runs.exclude(judge_dates_rotation).order_by("pk")
    there = Q(texts_deleted_at=None) if rule.what == What.TEXTS else Q(traces_deleted_at=None)
    return runs.filter(there).order_by("pk")


def _size(run_id: int, what: str) -> tuple[int, int]:
    """Return the number of responses, and about how many bytes of them go."""
    with connection.cursor() as cursor:
        cursor.execute(BYTES, [run_id])
        traces, texts, n = cursor.fetchone() or (0, 0, 0)
    return int(n), int(traces if what == What.TRACES else traces + texts)


def _apply(rule: RetentionRuleRecord, due: DueDeletion) -> bool:
    """Delete one run's part, unless the run no longer is what the rule is about."""
    with transaction.atomic():
        take_as_long_as_it_takes()
        run_id = int(due.run)
        # Waits for who scores them again, which locks repeats.
        list(RepeatRecord.objects.select_for_update().filter(run=run_id).order_by("pk").values_list("pk"))
        run = locked(run_id)
        if not _due(rule).filter(pk=run.pk).exists():
            return False
        if due.what == What.RUNS:
            if acts.refusal("delete", run) is not None:
                return False
            delete_run(run_id=run.pk)
        else:
            _delete_traces(run)
            if due.what == What.TEXTS:
                _delete_texts(run)
        about = {"what": due.what, "run": run.pk, "why": due.rule, "suite_version_id": run.suite_version_id}
        DeletionRecord.objects.create(n_responses=due.n_responses, n_bytes=due.n_bytes, **about)
        if due.what != What.RUNS:
            history.note(run.pk, f"{due.what}_deleted", f"The {due.what} of its answers were deleted by {due.rule}.")
            changes.run_changed(run_id=run.pk)
    return True


def _delete_traces(run: RunRecord) -> None:
    with connection.cursor() as cursor:
        cursor.execute(BLANK_TRACES, [run.pk])
        cursor.execute(DELETE_BLOCKS, [run.pk])
    RunRecord.objects.filter(pk=run.pk, traces_deleted_at=None).update(traces_deleted_at=Now())


def _delete_texts(run: RunRecord) -> None:
    """Delete the texts, and what quotes them: reasons of scores, replays, forced answers, judges' runs."""
    for judge_run in RunRecord.objects.filter(judging_of__run=run):
        _forget_judge_run(judge_run)
    ForcedAnswerRecord.objects.filter(scoring__run=run).delete()
    ReplayRecord.objects.filter(run=run).delete()
    with connection.cursor() as cursor:
        cursor.execute(BLANK_TEXTS, [run.pk])
        cursor.execute(DELETE_BLOCKS, [run.pk])
    for score in RepeatScore.objects.filter(repeat__run=run).select_related("repeat"):
        _store_reasons(score, [None] * len(unpack_reasons(bytes(score.reasons))))
    _forget_copies(RunRecord.objects.filter(pk=run.pk))
    RunRecord.objects.filter(pk=run.pk).update(texts_deleted_at=Now())


def _blank_reasons(version_id: int, indexes: set[int]) -> None:
    """Delete the reasons of the scores of these cases in all runs of a suite version."""
    for score in RepeatScore.objects.filter(repeat__run__suite_version=version_id).iterator(chunk_size=20):
        reasons = unpack_reasons(bytes(score.reasons))
        rest = [None if index in indexes else reason for index, reason in enumerate(reasons)]
        if rest != list(reasons):
            _store_reasons(score, rest)


def _forget_judge_run(run: RunRecord) -> None:
    """Delete a judge's run; if it dates a rotation, which expires baselines, delete its texts only."""
    if not Rotation.objects.filter(run=run).exists():
        delete_judge_run(run)
        return
    _delete_traces(run)
    _delete_texts(run)
    Case.objects.filter(suite_version=run.suite_version_id).update(content=_tombstone(None))


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
