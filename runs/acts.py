"""Decide each act on a record by one rule, for the offers of pages and the refusals of REST.

A rule is here, or in the slice whose records it reads, under `@rule`.
Services refuse by `require`, and pages ask `can`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Count, F, Model, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from evalboard.core.errors import Conflict
from evalboard.logged.runs import MAX_REPEATS
from runs.access import ADMIN, READ, RUN, SIGN, may
from runs.models import (
    EndpointRecord,
    GateRecord,
    JudgingRecord,
    ReleaseRecord,
    RepeatRecord,
    ResponseRecord,
    RunRecord,
    ScheduleRecord,
    ScoringRecord,
    Shard,
    Suite,
    WebhookRecord,
)
from runs.store import database_now, require_row


@dataclass(frozen=True, slots=True)
class No:
    """Why an act is not to be done. is_shown: a page shows the act disabled, with this reason.

    is_done: it is so already. Pages leave it out, and asking for it again changes nothing.
    """

    reason: str
    is_shown: bool = True
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class ActOffer:
    """Whether this person may do an act now; `reason`: why not, "" where they may."""

    act: str
    reason: str = ""
    is_shown: bool = True

    def __bool__(self) -> bool:
        return not self.reason


Rule = Callable[[Any], No | None]
RELATED: dict[type[Model], tuple[str, ...]] = {
    RunRecord: ("suite_version__suite", "endpoint", "profile", "bucket__fingerprint", "source")
}
NOTHING_KNOWN: Mapping[str, No | None] = {}
RULES: dict[tuple[str, type], tuple[str, Rule]] = {}  # (act, kind of subject) -> the right that it needs, its rule


def rule(act: str, kind: type, right: str) -> Callable[[Rule], Rule]:
    """State the rule of an act on a kind of record, and the right that it needs."""

    def decorate(function: Rule) -> Rule:
        RULES[act, kind] = right, function
        return function

    return decorate


def can(act: str, subject: Any, viewer: Any) -> ActOffer:
    """Return whether a person may do an act to a record now, or why not."""
    return _offer(act, subject, viewer, RULES[act, type(subject)][1])


def _offer(act: str, subject: Any, viewer: Any, find: Rule) -> ActOffer:
    return offer(act, type(subject), lambda: find(subject), viewer)


def offer(act: str, kind: type, find: Callable[[], No | None], viewer: Any) -> ActOffer:
    """Return whether a person may do an act on a record of a kind.

    find: what its rule says, of facts that were read before.
    """
    right, _ = RULES[act, kind]
    if not may(viewer, right):
        return ActOffer(act, f"This needs the {right} right.", is_shown=False)
    no = find()
    return ActOffer(act) if no is None else ActOffer(act, no.reason, no.is_shown and not no.is_done)


def offers_on(kind: type[Model], subject_id: int | str, viewer: Any, *, by: str = "pk") -> dict[str, ActOffer]:
    """Return the offers of every act on one record, by act, for its page. Raises NotFound."""
    return offers_of(load_subject(kind, subject_id, by=by), viewer)


def load_subject(kind: type[Model], subject_id: int | str, *, by: str = "pk") -> Any:
    """Return a record with what the rules of its acts read. Raises NotFound."""
    stored = kind._default_manager.select_related(*RELATED.get(kind, ())).filter(**{by: subject_id})
    return require_row(stored, f"There is no {kind.__name__.removesuffix('Record').lower()} {subject_id}.")


def offers_of(subject: Any, viewer: Any, known: Mapping[str, No | None] = NOTHING_KNOWN) -> dict[str, ActOffer]:
    """Return the offers of every act on a loaded record.

    known: by act, what its rule would return.
    """

    def find(act: str, rule: Rule) -> Rule:
        return (lambda _: known[act]) if act in known else rule

    if isinstance(subject, RunRecord):
        [subject] = with_surroundings([subject])
    rules = {act: find(act, rule) for (act, kind), (_, rule) in RULES.items() if kind is type(subject)}
    return {act: _offer(act, subject, viewer, rule) for act, rule in rules.items()}


def can_on_runs(act: str, run_ids: Iterable[int], viewer: Any) -> ActOffer:
    """Return whether a person may do an act that needs all of these runs."""
    return can_on_all(act, with_surroundings(RunRecord.objects.filter(pk__in=run_ids)), viewer)


def can_on_all(act: str, runs: Iterable[RunRecord], viewer: Any) -> ActOffer:
    """Return whether a person may do an act that needs all of these runs.

    That is the first no by id, else the last yes.
    """
    given = [can(act, run, viewer) for run in sorted(runs, key=lambda run: run.pk)]
    return next((answer for answer in given if not answer), given[-1])


def find_open(act: str, run_ids: Iterable[int], viewer: Any) -> frozenset[str]:
    """Return which of these runs a person may do an act to now, by id."""
    runs = with_surroundings(RunRecord.objects.filter(pk__in=run_ids))
    return frozenset(str(run.pk) for run in runs if can(act, run, viewer))


def refusal(act: str, subject: Any) -> No | None:
    """Return why an act cannot be done to a record now; None if it can."""
    return RULES[act, type(subject)][1](subject)


def require(act: str, subject: Any, known: Mapping[str, No | None] = NOTHING_KNOWN) -> bool:
    """Raise Conflict where an act cannot be done now; return False if it is done already.

    Who asks has been let in by the view, which states the right. known: as in `offers_of`.
    """
    no = known[act] if act in known else refusal(act, subject)
    if no is not None and not no.is_done:
        raise Conflict(no.reason)
    return no is None


# Runs

KEPT = "_evalboard_surroundings"
_SURROUNDINGS = """
SELECT run.id,
    EXISTS (SELECT FROM runs_scoring scoring JOIN runs_repeat repeat ON repeat.id = scoring.repeat_id
            WHERE repeat.run_id = run.id AND scoring.status = ANY(%(open)s)),
    EXISTS (SELECT FROM runs_judging judging WHERE judging.run_id = run.id),
    ARRAY(SELECT judging.judge_run_id FROM runs_judging judging
          WHERE judging.run_id = run.id AND judging.status = %(judging)s ORDER BY judging.id LIMIT 1),
    EXISTS (SELECT FROM runs_label label JOIN runs_suiteversion version ON version.suite_id = label.suite_id
            WHERE version.id = run.suite_version_id),
    (SELECT suite.slug FROM runs_baseline baseline JOIN runs_suite suite ON suite.id = baseline.suite_id
     WHERE baseline.run_id = run.id ORDER BY baseline.id DESC LIMIT 1),
    (SELECT newest.run_id FROM runs_suiteversion version, runs_endpoint endpoint, runs_profile profile, LATERAL (
        SELECT baseline.run_id, baseline.rotation_id FROM runs_baseline baseline
        WHERE baseline.suite_id = version.suite_id AND baseline.line = endpoint.line
          AND baseline.profile_slug = profile.slug ORDER BY baseline.id DESC LIMIT 1) newest
     WHERE version.id = run.suite_version_id AND endpoint.id = run.endpoint_id AND profile.id = run.profile_id
       AND newest.rotation_id IS NULL),
    (SELECT min(gate.release_id) FROM runs_gate gate
     WHERE gate.baseline_run_id = run.id OR gate.candidate_run_id = run.id),
    EXISTS (SELECT FROM runs_rotation rotation WHERE rotation.run_id = run.id),
    (SELECT deletion.case_id FROM runs_deletion deletion WHERE deletion.suite_version_id = run.suite_version_id
     AND deletion.case_id <> '' ORDER BY deletion.id DESC LIMIT 1),
    repeats.n, repeats.n_whole, repeats.has_ended, repeats.has_columns, repeats.has_scored, repeats.has_finished,
    EXISTS (SELECT FROM runs_response response JOIN runs_repeat repeat ON repeat.id = response.repeat_id
            JOIN runs_casecolumns columns ON columns.repeat_id = repeat.id
            WHERE repeat.run_id = run.id AND repeat.cases IS NULL AND response.error_code = ''),
    EXISTS (SELECT FROM runs_response response JOIN runs_repeat repeat ON repeat.id = response.repeat_id
            WHERE repeat.run_id = run.id AND repeat.finished_at IS NOT NULL AND response.error_code = ''),
    ARRAY(SELECT DISTINCT bucket::bigint FROM runs_casecolumns columns JOIN runs_repeat repeat
          ON repeat.id = columns.repeat_id, jsonb_array_elements_text(columns.bucket_ids) bucket
          WHERE repeat.run_id = run.id)
FROM runs_run run, LATERAL (
    SELECT count(*) AS n, count(*) FILTER (WHERE repeat.cases IS NULL) AS n_whole,
        coalesce(bool_or(repeat.finished_at IS NOT NULL), false) AS has_ended,
        count(columns.id) > 0 AS has_columns,
        coalesce(bool_or(repeat.cases IS NULL AND repeat.status <> ALL(%(without)s)), false) AS has_scored,
        coalesce(bool_or(repeat.cases IS NULL AND repeat.status = %(finished)s), false) AS has_finished
    FROM runs_repeat repeat LEFT JOIN runs_casecolumns columns ON columns.repeat_id = repeat.id
    WHERE repeat.run_id = run.id) repeats
WHERE run.id = ANY(%(runs)s)
"""


@dataclass(frozen=True, slots=True)
class RunSurroundings:
    """The facts about a run in other tables, on which the rules of its acts depend.

    running_judging: of the first judging at work the id of its judge's run, or None where it has none; empty: no
    judging is at work. baseline_suite: of the newest baseline that the run was set as. current_baseline: the run that
    is the baseline of its suite, model line and profile, unless it has expired. deleted_case: the newest of the
    suite version. n_whole: repeats of all cases. has_scored: a whole repeat that may have a score.
    """

    has_open_scoring: bool
    has_judging: bool
    running_judging: list[int | None]
    has_labels: bool
    baseline_suite: str | None
    current_baseline: int | None
    release: int | None
    has_rotation: bool
    deleted_case: str | None
    n_repeats: int
    n_whole: int
    has_ended: bool
    has_columns: bool
    has_scored: bool
    has_finished: bool
    has_answer: bool
    has_ended_answer: bool
    bucket_ids: list[int]


def _read_surroundings(run_ids: Collection[int]) -> dict[int, RunSurroundings]:
    known: dict[str, Any] = {
        "runs": list(run_ids),
        "open": [str(status) for status in (ScoringRecord.Status.QUEUED, ScoringRecord.Status.RUNNING)],
        "judging": str(JudgingRecord.Status.RUNNING),
        "without": [str(status) for status in RepeatRecord.WITHOUT_SCORE],
        "finished": str(RepeatRecord.Status.FINISHED),
    }
    with connection.cursor() as cursor:
        cursor.execute(_SURROUNDINGS, known)
        return {run_id: RunSurroundings(*row) for run_id, *row in cursor.fetchall()}


def with_surroundings(runs: Iterable[RunRecord]) -> list[RunRecord]:
    """Return copies of runs with their surroundings, read by one statement for all.

    They are for one page: what writes reads them again.
    """
    copies = [copy(run) for run in runs]
    wanted = {run.pk for run in copies if KEPT not in vars(run)}
    read = _read_surroundings(wanted) if wanted else {}
    for run in copies:
        vars(run).setdefault(KEPT, read.get(run.pk))
    return copies


def surroundings(run: RunRecord) -> RunSurroundings:
    """Return the surroundings that a run came with, or read them."""
    loaded: RunSurroundings | None = vars(run).get(KEPT)
    return loaded or _read_surroundings([run.pk])[run.pk]


def _state(run: RunRecord) -> str:
    has = run.status in (RunRecord.Status.FINISHED, RunRecord.Status.FAILED)
    return f"Run {run.pk} {'has' if has else 'is'} {run.status}"


def _refuse_judge(run: RunRecord, rest: str) -> No | None:
    """Refuse what would part a judge's run from the run that it judges."""
    return No(f"Run {run.pk} is a judge's, and {rest}", is_shown=False) if run.is_judge else None


def _refuse_log(run: RunRecord, rest: str) -> No | None:
    return No(f"Run {run.pk} was read from a log, and {rest}", is_shown=False) if run.source_id is not None else None


@rule("again", RunRecord, RUN)
def _again(run: RunRecord) -> No | None:
    if no := _refuse_log(run, "only the tool that made it can run it again.") or _refuse_judge(
        run, "belongs to the answers that it judges."
    ):
        return no
    if not surroundings(run).n_whole:
        return No(f"Run {run.pk} decoded chosen cases for an experiment; run the experiment again.", is_shown=False)
    return None if run.is_terminal else No(f"{_state(run)}; run it again when it has ended.")


@rule("complete", RunRecord, RUN)
def _complete(run: RunRecord) -> No | None:
    if no := _refuse_log(run, "nothing here decodes it. Import a longer log of it.") or _refuse_judge(
        run, "its judgements are scores already."
    ):
        return no
    if no := _refuse_judged(run, "Run it again instead."):
        return no
    if run.status not in (RunRecord.Status.INCOMPLETE, RunRecord.Status.FAILED, RunRecord.Status.CANCELLED):
        text = f"{_state(run)}; incomplete, failed and cancelled runs can be completed."
        return No(text, is_shown=False)
    if not short_shards(run).exists():
        return No(f"Run {run.pk} misses no response.", is_shown=False)
    return texts_deleted(run) or _case_deleted(run, f"run {run.pk} cannot be completed. Run a version without it.")


def short_shards(run: RunRecord) -> QuerySet[Shard]:
    """Return the shards that miss a case, each with `n_there`; an answer with an error is missing."""
    shards = Shard.objects.filter(repeat__run=run).annotate(n_there=N_THERE)
    return shards.filter(n_there__lt=Coalesce(F("n_chosen"), F("last") - F("first") + 1)).order_by("pk")


_there = ResponseRecord.objects.filter(
    repeat=OuterRef("repeat"), case_index__gte=OuterRef("first"), case_index__lte=OuterRef("last"), error_code=""
)
N_THERE = Coalesce(Subquery(_there.order_by().values("repeat").annotate(n=Count("pk")).values("n")), 0)


@rule("cancel", RunRecord, RUN)
def _cancel(run: RunRecord) -> No | None:
    """Of a run that has ended, its scoring again is cancelled: no worker may have the scorer."""
    if run.is_terminal and surroundings(run).has_open_scoring:
        return None
    if run.status == RunRecord.Status.CANCELLED:
        return No(f"Run {run.pk} is cancelled.", is_done=True)
    if run.is_terminal:
        return No(f"Run {run.pk} has already ended as {run.status}.", is_shown=False)
    return No(f"Run {run.pk} is being cancelled.", is_done=True) if run.is_cancel_wanted else None


def open_scorings_of(run: RunRecord) -> QuerySet[ScoringRecord]:
    """Select what of a run waits to be scored on a worker, or is."""
    is_open = (ScoringRecord.Status.QUEUED, ScoringRecord.Status.RUNNING)
    return ScoringRecord.objects.filter(repeat__run=run, status__in=is_open)


@rule("delete", RunRecord, ADMIN)
def _delete(run: RunRecord) -> No | None:
    if run.is_judge and (of := JudgingRecord.objects.filter(judge_run=run).first()) is not None:
        return No(f"Run {run.pk} holds the judgements of run {of.run_id}; it is deleted with that run.")
    if not run.is_terminal:
        return No(f"{_state(run)}; cancel it first.")
    known = surroundings(run)
    if known.running_judging:
        [judge_run] = known.running_judging
        which = f"cancel run {judge_run} first" if judge_run else "delete it a minute later"
        return No(f"A judge scores run {run.pk}; {which}.")
    judges = RunRecord.objects.filter(judging_of__run=run) if known.has_judging else ()
    return _replace(run) or next((no for judge in judges if (no := _replace(judge)) is not None), None)


@rule("replace", RunRecord, RUN)
def _replace(run: RunRecord) -> No | None:
    """By a fuller log of it: not where history refers to the run."""
    known = surroundings(run)
    if known.baseline_suite is not None:
        return No(f"Run {run.pk} is in the history of suite {known.baseline_suite}'s baselines; it is kept.")
    if known.release is not None:
        return No(f"Release {known.release} uses run {run.pk}; it is kept.")
    if known.has_rotation:
        return No(f"Run {run.pk} is the first that another stack served, and dates that rotation; it is kept.")
    return None


def gates_of(run: RunRecord) -> QuerySet[GateRecord]:
    """Return the gates of releases that a run is a side of."""
    return GateRecord.objects.filter(Q(baseline_run=run) | Q(candidate_run=run))


@rule("add_repeats", RunRecord, RUN)
def _add_repeats(run: RunRecord) -> No | None:
    if no := _refuse_log(run, "nothing here decodes it; it has the log's repeats.") or _refuse_judge(
        run, "has one repeat; a judgement is drawn again by the option draws."
    ):
        return no
    if no := (
        _refuse_judged(run, "Start a new run with more repeats.")
        or texts_deleted(run)
        or _case_deleted(run, f"run {run.pk} can have no more repeats. Run a version without it.")
    ):
        return no
    if run.is_one_draw:
        # Of before runs had seeds.
        text = f"Every repeat of run {run.pk} is sent the profile's seed, so more repeats add no sample"
        return No(f"{text}; start a new run.", is_shown=False)
    if run.status in (RunRecord.Status.CANCELLED, RunRecord.Status.FAILED) or run.is_cancel_wanted:
        state = _state(run) if run.is_terminal else f"Run {run.pk} is being cancelled"
        return No(f"{state}; run it again instead.")
    full = surroundings(run).n_repeats >= MAX_REPEATS
    return No(f"Run {run.pk} has {MAX_REPEATS} repeats, and no run has more.") if full else None


def _refuse_judged(run: RunRecord, instead: str) -> No | None:
    """Refuse to add answers to a run that a judge has scored, since it scores all of them at once."""
    if not run.is_judged or not run.judgings.filter(scorer=run.suite_version.scorer_id).exists():
        return None
    return No(f"A judge has scored the answers of run {run.pk}, and more would have no score. {instead}")


def texts_deleted(run: RunRecord) -> No | None:
    """Return that the texts of a run's answers were deleted, so that nothing new can be read from them."""
    if run.texts_deleted_at is None:
        return None
    return No(f"The texts of run {run.pk} were deleted on {run.texts_deleted_at:%Y-%m-%d}, by a rule of retention.")


def _case_deleted(run: RunRecord, so_that: str) -> No | None:
    """Refuse what would read or ask the prompt of a deleted case of the run's suite version."""
    case_id = surroundings(run).deleted_case
    return None if case_id is None else No(f"The texts of case {case_id} were deleted, so that {so_that}")


def traces_deleted(run: RunRecord) -> No | None:
    """Return that the traces of a run's answers were deleted."""
    if run.traces_deleted_at is None:
        return None
    return No(f"The traces of run {run.pk} were deleted on {run.traces_deleted_at:%Y-%m-%d}, by a rule of retention.")


@rule("rescore", RunRecord, RUN)
def _rescore(run: RunRecord) -> No | None:
    if no := _refuse_judge(run, "its answers are scores.") or texts_deleted(run):
        return no
    if no := _case_deleted(run, f"run {run.pk} cannot be scored again."):
        return no
    return (
        None
        if surroundings(run).has_ended
        else No(f"Run {run.pk} has no repeat that has ended yet; score it again later.")
    )


@rule("label", RunRecord, RUN)
def _label(run: RunRecord) -> No | None:
    if run.suite_version.suite.judged_suite_id is not None:
        return No(f"Run {run.pk} has a judge's answers; label those of the run that it judged.", is_shown=False)
    if run.source is not None and run.source.tool == "rollouts":
        return No(f"The log of run {run.pk} has token ids alone, and no answer to read.", is_shown=False)
    if not run.is_terminal:
        return No(f"{_state(run)}; label its answers when it has ended.")
    if no := texts_deleted(run):
        return no
    has_answer = surroundings(run).has_answer
    return None if has_answer else No(f"Run {run.pk} has no answer to label.", is_shown=False)


@rule("compare", RunRecord, READ)
def _compare(run: RunRecord) -> No | None:
    return None if surroundings(run).has_columns else nothing_to_compare(run)


def nothing_to_compare(run: RunRecord) -> No:
    return No(f"Run {run.pk} has no repeat that has ended yet; compare it when one has.")


@rule("force", RunRecord, RUN)
def _force(run: RunRecord) -> No | None:
    if no := texts_deleted(run):
        return no
    text = f"Run {run.pk} has no answer to score: no repeat of it has ended, or nothing came back."
    return None if surroundings(run).has_ended_answer else No(text)


@rule("judge", RunRecord, RUN)
def _judge(run: RunRecord) -> No | None:
    if no := _refuse_judge(run, "no release judges it."):
        return no
    if not run.is_terminal:
        return No(f"{_state(run)}; a release judges runs that have ended.")
    known = surroundings(run)
    if run.is_judged and known.running_judging:
        return No(f"A judge scores run {run.pk} again; judge it as a release when that has ended.")
    if known.has_scored:
        return None
    return No(f"{_state(run)} and has no repeat that could be judged.", is_shown=False)


@rule("replay", RunRecord, RUN)
def _replay(run: RunRecord) -> No | None:
    return _decoded_elsewhere(run, "replay a run of an own endpoint", is_shown=False) or traces_deleted(run)


@rule("bisect", RunRecord, RUN)
def _bisect(run: RunRecord) -> No | None:
    if no := (
        _decoded_elsewhere(run, "bisect runs of own endpoints")
        or _refuse_judge(run, "is not bisected.")
        or traces_deleted(run)
    ):
        return no
    if surroundings(run).has_finished and run.bucket_id is not None:
        return None
    return No(f"Run {run.pk} has no whole pass over its suite yet; bisect it when one has ended.")


def _decoded_elsewhere(run: RunRecord, instead: str, *, is_shown: bool = True) -> No | None:
    if not run.is_of_elsewhere:
        return None
    who = "was read from a log" if run.source_id is not None else "was served by an external server"
    return No(f"Run {run.pk} {who}, and no engine here decodes it again; {instead}.", is_shown)


# Suites, schedules, webhooks, endpoints


@rule("adopt", Suite, RUN)
def _adopt(suite: Suite) -> No | None:
    """A scorer, in place of the one that scores the cases without their own."""
    if suite.judged_suite_id is not None:
        return No(f"Suite {suite.slug} holds what a judge was asked.", is_shown=False)
    if suite.reference_of_id is not None:
        return No(f"Suite {suite.slug} is a reference set, and has the scorer of its suite.", is_shown=False)
    newest = suite.versions.select_related("scorer").order_by("-number").first()
    if newest is not None and newest.scorer.spec["default"] is None:
        return No(f"Every case of suite {suite.slug} has a scorer of its own; push the suite with another.")
    return None


@rule("pause", ScheduleRecord, RUN)
def _pause(schedule: ScheduleRecord) -> No | None:
    return No(f"Schedule {schedule.slug} is paused.", is_done=True) if schedule.next_at is None else None


@rule("resume", ScheduleRecord, RUN)
def _resume_schedule(schedule: ScheduleRecord) -> No | None:
    return No(f"Schedule {schedule.slug} is not paused.", is_done=True) if schedule.next_at is not None else None


@rule("test", WebhookRecord, ADMIN)
def _test(webhook: WebhookRecord) -> No | None:
    return None if webhook.is_active else No(f"Webhook {webhook.pk} is switched off; switch it on first.")


@rule("run", EndpointRecord, RUN)
@rule("probe", EndpointRecord, RUN)
def _call(endpoint: EndpointRecord) -> No | None:
    if endpoint.engine != EndpointRecord.Engine.IMPORTED:
        return None
    return No("It only records what answered according to logs; nothing here can decode with it.", is_shown=False)


@rule("check", EndpointRecord, RUN)
def _check(endpoint: EndpointRecord) -> No | None:
    text = "It checks external servers; the settings of this endpoint's engine are known."
    return None if endpoint.is_remote else _call(endpoint) or No(text, is_shown=False)


@rule("try_now", EndpointRecord, RUN)
def _try_now(endpoint: EndpointRecord) -> No | None:
    rests = endpoint.rests_until is not None and endpoint.rests_until > database_now()
    return None if rests else No(f"Endpoint {endpoint.slug} is not paused.", is_done=True)


# Releases


@rule("sign", ReleaseRecord, SIGN)
def _sign(release: ReleaseRecord) -> No | None:
    sides = Q(gates_as_baseline__release=release) | Q(gates_as_candidate__release=release)
    return refuse_signing(release, RunRecord.objects.filter(sides).distinct())


def refuse_signing(release: ReleaseRecord, runs: Iterable[RunRecord]) -> No | None:
    """Return why a release cannot be signed now, None if it can. runs: of its gates, as just read."""
    at_work = min((run for run in runs if not run.is_terminal), key=lambda run: run.pk, default=None)
    if at_work is not None:
        return No(f"{_state(at_work)}; sign after it has ended.")
    return No(f"Release {release.pk} is not judged yet.") if release.verdict_id is None else None
