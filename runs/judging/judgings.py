"""Send a run's answers to a judge in a run of its own, and store what it says as their scores."""

import logging
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from evalboard.core import scoring
from evalboard.core.digest import digest_json
from evalboard.core.errors import EvalboardError, InvalidInput
from evalboard.core.stats import judge_noise
from evalboard.core.suite import SuiteHead
from evalboard.core.trace import Ending
from evalboard.wording.numbers import counted
from runs.judging.read import as_rows
from runs.models import (
    AnchorSetRecord,
    Case,
    CaseColumns,
    Event,
    JudgingRecord,
    RepeatRecord,
    ResponseRecord,
    RunRecord,
    Suite,
    SuiteVersionRecord,
)
from runs.pairs import planned_draws
from runs.run import decoding_problems, named_endpoint, newest_profile
from runs.run.runs import Order, announce, cancel_run, store_order, store_repeats
from runs.store import bulk, history, may_decide, storable, take_as_long_as_it_takes
from runs.suites import keep_version
from runs.work import open_judgings, read_to_score, rollup
from runs.work.judgings import TWICE, plan_anchors

logger = logging.getLogger(__name__)
MAX_JUDGEMENTS = 100_000  # of one run
CASES_PER_COPY = 2000

Answer = tuple[int, int]  # repeat and case index, both of the judged run
Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JudgementPlan:
    """What a judge is asked: every answer `n_draws` times, those of `twice` more often, and anchors.

    answers: each with its texts' digest. anchor_draws: judgements of each anchor.
    """

    spec: Spec
    answers: Mapping[Answer, bytes]
    twice: frozenset[Answer]
    anchors: AnchorSetRecord | None
    anchor_draws: int

    @property
    def n_judgements(self) -> int:
        n_anchors = 0 if self.anchors is None else len(self.anchors.anchors)
        n_answers = len(self.answers) * self.spec["draws"] + len(self.twice) * TWICE
        return int(n_answers + n_anchors * self.anchor_draws)

    def draws_of(self, answer: Answer) -> int:
        return int(self.spec["draws"]) + (TWICE if answer in self.twice else 0)


@dataclass(slots=True)
class Judgements:
    """The values that a judge's run gave each answer and anchor.

    They are in the order of draws, None where unread. reasons: by answer, why draws have no value. words: by answer,
    what the judge said first.
    """

    answers: dict[Answer, list[float | None]] = field(default_factory=lambda: defaultdict(list))
    anchors: dict[int, list[float | None]] = field(default_factory=lambda: defaultdict(list))
    reasons: dict[Answer, list[str]] = field(default_factory=lambda: defaultdict(list))
    words: dict[Answer, str] = field(default_factory=dict)


def due_judgings() -> list[int]:
    """Return the judgings that can go on.

    They have not begun, are cancelled with their run, or their judge's run has ended.
    """
    is_cancelled = Q(run__is_cancel_wanted=True, judge_run__is_cancel_wanted=False)
    is_cancelled &= ~Q(run__status__in=RunRecord.TERMINAL)
    has_ended = Q(judge_run__status__in=RunRecord.TERMINAL)
    due = open_judgings().filter(is_cancelled | has_ended | Q(judge_run=None))
    return list(due.order_by("pk").values_list("pk", flat=True))


def work_on_judgings() -> bool:
    """Go on with the judgings that can; False if there was none. A fault of one stops no other.

    A process whose database role may not store cases leaves them to the scheduler's sweep.
    """
    n_done = 0
    for judging_id in due_judgings() if may_decide() else ():
        try:
            n_done += advance_judging(judging_id)
        except Exception:  # whatever is wrong with one, the others go on, and the next sweep tries again
            logger.exception("Judging %s was left alone", judging_id)
    return n_done > 0


def advance_judging(judging_id: int) -> bool:
    """Start the judge's run of a judging, or store its scores if that has ended. Safe to call twice."""
    record = JudgingRecord.objects.select_related("run", "judge_run").filter(pk=judging_id).first()
    if record is None:
        return False
    judge_run = record.judge_run
    if judge_run is not None and _is_dropped(record.run) and not judge_run.is_terminal:
        cancel_run(run_id=judge_run.pk)
    with transaction.atomic():
        take_as_long_as_it_takes()
        locked = JudgingRecord.objects.select_for_update(of=("self",), skip_locked=True)
        related = ("run__suite_version__suite", "run__endpoint", "scorer", "anchors", "judge_run__suite_version")
        record = locked.select_related(*related).filter(pk=judging_id, status=JudgingRecord.Status.RUNNING).first()
        if record is None:
            return False
        if record.judge_run is None:
            return _start(record)
        if record.judge_run.is_terminal:
            return _finish(record, record.judge_run)
    return False


def _is_dropped(run: RunRecord) -> bool:
    """Return whether a run is being cancelled; one that ended so may be judged afterwards."""
    return run.is_cancel_wanted and not run.is_terminal


# Begin


def _start(record: JudgingRecord) -> bool:
    try:
        spec = _spec(record)
        endpoint, profile = named_endpoint(spec["endpoint"]), newest_profile(spec["profile"])
        if problems := decoding_problems(endpoint, profile):
            raise InvalidInput(next(iter(problems.values())))
        if endpoint.max_model_len is not None and spec["max_tokens"] >= endpoint.max_model_len:
            raise InvalidInput(f"Its max_tokens leave no room for a prompt in the context of {endpoint.max_model_len}.")
        plan = _plan(record, spec)
        if plan.n_judgements > MAX_JUDGEMENTS:
            text = f"{plan.n_judgements:,} judgements would be needed, and the most of one run are {MAX_JUDGEMENTS:,}"
            raise InvalidInput(f"{text}. Use fewer cases, repeats or draws.")
    except EvalboardError as problem:
        return _end(record, None, error=f"The judge could not begin: {problem.detail}")
    if not plan.answers:
        return _end(record, {}, error="No answer is there to judge.")
    order = Order(
        version=_store_version(record, plan),
        endpoint=endpoint,
        profile=profile,
        repeats=1,
        seed=planned_draws(profile, endpoint).seed or 0,
        model=None,
        labels={},
        priority=record.run.priority,
        is_shuffled=False,
        is_restarted=False,
    )
    judge_run = store_order(order, user=record.run.created_by)
    judge_run.is_judge = True
    judge_run.save(update_fields=["is_judge"])
    store_repeats(judge_run, [1])
    announce(judge_run)
    record.judge_run, record.anchors = judge_run, plan.anchors
    record.save(update_fields=["judge_run", "anchors"])
    text = f"Run {judge_run.pk} judges its answers: {counted(plan.n_judgements, 'judgement')} by {endpoint.slug}."
    history.note(record.run_id, "judging", text)
    return True


def _spec(record: JudgingRecord) -> Spec:
    spec = scoring.judge_spec(record.scorer.spec)
    assert spec is not None  # noqa: S101  for the type checker: only plans with a judge become judgings
    return spec


def _plan(record: JudgingRecord, spec: Spec) -> JudgementPlan:
    answers, planned = _list_answers(record), plan_anchors(record.run.suite_version, record.scorer)
    anchors = planned.stored
    if anchors is None and planned.n:
        anchors = _keep_anchors(record, _choose(answers, planned.n, record))
    twice = frozenset(_choose(answers, planned.n_twice, record))
    return JudgementPlan(spec, answers, twice, anchors if anchors and anchors.anchors else None, planned.n_draws)


def _list_answers(record: JudgingRecord) -> dict[Answer, bytes]:
    """Return the answers that the judge scores; those that were cut inside their thinking score 0."""
    there = ResponseRecord.objects.filter(repeat__run=record.run_id, error_code="").exclude(ending=Ending.UNKNOWN)
    rows = there.exclude(is_truncated=True).values_list("repeat__index", "case_index", "text_digest")
    plan, version = record.scorer.spec, record.run.suite_version_id
    judged = None
    if plan["cases"]:
        cases = Case.objects.filter(suite_version=version).values_list("index", "case_id")
        judged = {index for index, case in cases if scoring.scorer_for(plan, case)["kind"] == scoring.JUDGE.name}
    ordered = rows.order_by("repeat__index", "case_index").iterator(chunk_size=CASES_PER_COPY)
    return {(repeat, index): bytes(text or b"") for repeat, index, text in ordered if judged is None or index in judged}


def _choose(answers: Mapping[Answer, bytes], n: int, record: JudgingRecord) -> list[Answer]:
    """Draw n answers by chance, by a seed that the run and its judge give; an answer to a case once."""
    latest_first = reversed(list(answers.items()))
    different = list({(index, text): (repeat, index) for (repeat, index), text in latest_first}.values())
    seed = int(digest_json([record.run_id, record.scorer.digest])[:16], 16)
    places = np.random.default_rng(seed).permutation(len(different))[:n]
    return sorted(different[place] for place in places)


def _keep_anchors(record: JudgingRecord, chosen: Sequence[Answer]) -> AnchorSetRecord | None:
    """Store the fixed answers that a judge scores with every run of the suite from now on."""
    anchors = [
        {"case": each.case_id, "messages": list(each.messages), "target": each.target, "tags": list(each.tags)}
        | {"text": each.text}
        for _, each in _read(record, set(chosen))
    ]
    if not anchors:
        return None
    made, _ = AnchorSetRecord.objects.get_or_create(
        suite=record.run.suite_version.suite,
        digest=digest_json(anchors),
        defaults={"anchors": anchors, "made_from": record.run},
    )
    return made


def _read(record: JudgingRecord, wanted: Mapping[Answer, bytes] | set[Answer]) -> Iterator[tuple[int, Any]]:
    """Yield the repeat and `runs.work.ToScore` of answers, repeat by repeat in the order of the cases."""
    for repeat in RepeatRecord.objects.filter(run=record.run_id).select_related("run__suite_version").order_by("index"):
        for part in read_to_score(repeat):
            yield from ((repeat.index, each) for each in part if (repeat.index, each.index) in wanted)


def _store_version(record: JudgingRecord, plan: JudgementPlan) -> SuiteVersionRecord:
    """Store what the judge is asked as a version of a suite that no list has."""
    judged = record.run.suite_version.suite
    slug = f"J{judged.pk}-{judged.slug}"[:80]  # no suite that people push begins with a capital
    Suite.objects.get_or_create(slug=slug, defaults={"judged_suite": judged})
    head = SuiteHead(
        slug=slug,
        title=f"Judgements of run {record.run_id}",
        max_tokens=plan.spec["max_tokens"],
        stop=(),
        scorer=dict(plan.spec),
        policy=None,
    )
    content = {"run": record.run_id, "scorer": record.scorer.digest, "n": plan.n_judgements, "judging": record.pk}

    def store_cases(version: SuiteVersionRecord) -> None:
        rows = (_case(version, index, *each) for index, each in enumerate(_ask(record, plan)))
        while part := list(islice(rows, CASES_PER_COPY)):
            bulk.copy_rows(part)

    version, _ = keep_version(
        head,
        digest=digest_json(content),
        plan=scoring.plan(dict(plan.spec), {}),
        n_cases=plan.n_judgements,
        store_cases=store_cases,
        states_policy=False,
    )
    return version


def _ask(record: JudgingRecord, plan: JudgementPlan) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield each judgement: its id, the case whose answer it is about, and what the judge is asked."""
    for repeat, each in _read(record, plan.answers):
        messages = scoring.render_judgement(
            plan.spec, messages=each.messages, target=each.target, tags=each.tags, answer=each.text
        )
        for draw in range(1, plan.draws_of((repeat, each.index)) + 1):
            yield f"answer-{repeat}-{each.index}-{draw}", each.case_id, messages
    for place, anchor in enumerate(plan.anchors.anchors if plan.anchors is not None else ()):
        known = {name: anchor[name] for name in ("messages", "target", "tags")}
        messages = scoring.render_judgement(plan.spec, **known, answer=anchor["text"])
        for draw in range(1, plan.anchor_draws + 1):
            yield f"anchor-{place}-{draw}", anchor["case"], messages


def _case(version: SuiteVersionRecord, index: int, case_id: str, group: str, messages: list[dict[str, Any]]) -> Case:
    content = {"messages": messages, "target": None}
    return Case(
        suite_version=version,
        index=index,
        case_id=case_id,
        digest=digest_json(content),
        content=content,
        tags=[],
        group=group,
        is_reference=False,
    )


# End


def _finish(record: JudgingRecord, judge_run: RunRecord) -> bool:
    spec = _spec(record)
    given = _read_judgements(spec, judge_run)
    buckets = CaseColumns.objects.filter(repeat__run=judge_run).values_list("bucket_ids", flat=True)
    record.served = sorted({bucket for ids in buckets for bucket in ids})
    anchors = [given.anchors[place] for place in sorted(given.anchors)]
    is_anchored = any(value is not None for values in anchors for value in values)
    record.anchor_scores = anchors if is_anchored else None  # later runs are compared with the last that has scores
    several = [row for row in (*given.answers.values(), *given.anchors.values()) if len(row) > 1]
    noise = judge_noise(as_rows(several))
    record.noise = None if noise is None else noise.to_json()
    why = judge_run.failure.strip().partition("\n")[0]
    is_read = any(value is not None for values in given.answers.values() for value in values)
    error = ""
    if judge_run.status == RunRecord.Status.CANCELLED and _is_dropped(record.run):
        error = f"The judge was stopped with run {record.run_id}, which was cancelled."
    elif not is_read and judge_run.status == RunRecord.Status.FINISHED:
        reason = next((each for reasons in given.reasons.values() for each in reasons), "")
        error = f"No judgement in run {judge_run.pk} could be read. {reason}".strip()
    elif not is_read:
        error = f"Run {judge_run.pk}, in which the judge scores, ended as {judge_run.status}. {why}".strip()
    judged: dict[int, dict[int, tuple[float, str]]] = defaultdict(dict)
    for (repeat, index), values in given.answers.items():
        judged[repeat][index] = _score(spec, values[: spec["draws"]], (repeat, index), given)
    return _end(record, judged, error=error)


def _read_judgements(spec: Spec, judge_run: RunRecord) -> Judgements:
    given = Judgements()
    cases = Case.objects.filter(suite_version=judge_run.suite_version_id).order_by("index")
    stored = ResponseRecord.objects.filter(repeat__run=judge_run)
    rows = stored.values_list("case_index", "text", "error_code", "error_detail", "is_truncated")
    answers = {index: (text, code, detail, is_cut) for index, text, code, detail, is_cut in rows}
    for index, case_id in cases.values_list("index", "case_id").iterator(chunk_size=CASES_PER_COPY):
        what, *numbers = case_id.split("-")
        text, code, detail, is_cut = answers.get(index, ("", "missing", "", None))
        if code:
            read: float | str = f"The judge gave no answer: {detail or code}."
        else:
            read = "The judge was cut inside its thinking." if is_cut else scoring.read_judgement(spec, text)
        value = None if isinstance(read, str) else read
        if what == "anchor":
            given.anchors[int(numbers[0])].append(value)
            continue
        answer = (int(numbers[0]), int(numbers[1]))
        given.answers[answer].append(value)
        if isinstance(read, str):
            given.reasons[answer].append(read)
        else:
            given.words.setdefault(answer, text)
    return given


def _score(spec: Spec, values: Sequence[float | None], answer: Answer, given: Judgements) -> tuple[float, str]:
    """Return the mean of an answer's judgements, NaN where none could be read, and the reason in words."""
    there = [value for value in values if value is not None]
    if not there:
        return math.nan, scoring.unread_reason(given.reasons[answer])
    value = math.fsum(there) / len(there)
    if spec["pass_at"] is not None:
        value = 1.0 if value >= spec["pass_at"] else 0.0
    listed = ", ".join(f"{each:g}" for each in there)
    draws = f" {counted(len(there), 'judgement')}: {listed}." if len(values) > 1 else ""
    return value, scoring.capped(f"Judged {scoring.shown(given.words[answer])}.{draws}")


def _end(record: JudgingRecord, judged: Mapping[int, Mapping[int, tuple[float, str]]] | None, *, error: str) -> bool:
    """End a judging, and what waited for it. judged: by repeat and case; None where the judge never began."""
    run = record.run
    record.status = JudgingRecord.Status.FAILED if error else JudgingRecord.Status.FINISHED
    record.error, record.finished_at = storable(error), Now()
    record.save()
    if judged is None:
        reason = scoring.capped(f"Unscored: {error}")
        unscored: dict[int, dict[int, tuple[float, str]]] = defaultdict(dict)
        for repeat, index in _list_answers(record):
            unscored[repeat][index] = (math.nan, reason)
        judged = unscored
    is_dropped = _is_dropped(run) and run.source_id is None
    text = error or f"Scored by a judge, with scorer {record.scorer.digest[:8]}."
    level = Event.Level.WARNING if error else Event.Level.INFO
    history.note(run.pk, "judged", text, level=level)
    rollup.finish_judging(record=record, judged=None if is_dropped else judged)
    return True
