"""Experiments as they are shown: the plan, the table as far as it is, and the sentence."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.urls import reverse

from evalboard.contract import lab as contract
from evalboard.contract.lab_kinds import CHOICES, Source, SourceFinding, State
from evalboard.contract.parts import Cost, CostEstimate, name_version
from evalboard.contract.run import EXPERIMENT_LABEL, RunCost, SuiteNamed
from evalboard.core.lab import ArmFigures, Figures, add_costs, combine_arms, is_case_alone, judge_rows
from evalboard.core.scoring import is_judged
from evalboard.wording import lab as wording
from evalboard.wording.bisect import describe_bisect
from evalboard.wording.numbers import listed
from runs.lab.read_bisect import name_bucket, read_bisect, step_label
from runs.lab.steps import count_decodings
from runs.models import ExperimentArm, ExperimentRecord, RepeatRecord, RunRecord
from runs.run import add_up, estimate_judge, estimate_money, measure_engine_time, read_costs, sum_estimates
from runs.store import RecordList, require_row
from runs.work import paused_until, read_pause

Status = ExperimentArm.Status
BUCKET = ("bucket__model", "bucket__fingerprint")
NOT_NAMED = ("bucket__model__files", "bucket__fingerprint__manifest")  # of a bucket that is named, and long
SIDES = ("baseline", "candidate")
ASKED = ("endpoint", "profile")
RELATED = ("suite_version__suite", "endpoint", "profile", "created_by")
EXPERIMENT_ORDERS = {"id": "id", "suite": "suite_version__suite__slug", "endpoint": "endpoint__slug", "kind": "kind"}
WITHOUT_SIZE = -1.0  # sorts behind every size


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of the table: its conditions and their figures."""

    source: Source
    arms: tuple[ExperimentArm, ...]
    parts: tuple[ArmFigures, ...]
    figures: Figures | None
    finding: SourceFinding

    @property
    def name(self) -> str:
        return self.arms[0].name if len(self.arms) == 1 else ""


def sortable_experiments() -> RecordList[contract.ExperimentRow]:
    """Return all experiments as a list that can be sorted."""
    return RecordList(_experiments(), _rows, EXPERIMENT_ORDERS)


def experiment_detail(experiment_id: int) -> contract.Experiment:
    """Return an experiment and its results so far. Raises NotFound."""
    experiment = require_row(_experiments().filter(pk=experiment_id), f"There is no experiment {experiment_id}.")
    arms = _arms([experiment])
    rows, bisect = _rows_or_bisect(experiment, arms)
    control = _control_points(arms)
    n_ended = _ended_passes(arms)
    shown = tuple(_arm(experiment, arm, n_ended.get(arm.run_id or 0, 0)) for arm in arms)
    return contract.Experiment(
        **_common_fields(experiment, arms, rows, bisect),
        problem=experiment.problem or None,
        settings=experiment.profile.settings,
        temperature=next((_temperature(arm) for arm in arms if arm.source == Source.SAMPLER), None),
        cost=_cost(add_costs(RunCost(**arm.cost) for arm in arms)),
        spent_minutes=round(sum(arm.spent_minutes for arm in shown), 3),
        expected_costs=() if experiment.finished_at else _expect_costs(experiment, arms),
        spent_costs=_sum_spent(experiment),
        arms=shown,
        rows=tuple(_row(experiment, row, rows) for row in rows),
        not_measured=tuple(_not_measured(left) for left in experiment.left_out),
        control=control,
        bisect=bisect,
        pause=read_pause(experiment.endpoint_id) if experiment.status == ExperimentRecord.Status.RUNNING else None,
        case_points=100 / experiment.suite_version.n_cases,
    )


def experiment_state(experiment_id: int) -> str:
    """Return what `experiment_detail` is made of, in short: equal texts, equal details. Raises NotFound."""
    ended = Count("arms__run__repeats", filter=Q(arms__run__repeats__finished_at__isnull=False))
    rows = ExperimentRecord.objects.filter(pk=experiment_id).annotate(n=ended, paused=paused_until("endpoint"))
    row = require_row(
        rows.values_list("status", "problem", "budget_minutes", "started_at", "finished_at", "n", "paused"),
        f"There is no experiment {experiment_id}.",
    )
    arms = ExperimentArm.objects.filter(experiment=experiment_id).order_by("position").values_list("status", "run")
    return "|".join(map(str, (experiment_id, *row, *arms)))


def _rows(experiments: Iterable[ExperimentRecord]) -> tuple[contract.ExperimentRow, ...]:
    shown = list(experiments)
    by_experiment: dict[int, list[ExperimentArm]] = {each.pk: [] for each in shown}
    for arm in _arms(shown):
        by_experiment[arm.experiment_id].append(arm)
    return tuple(
        contract.ExperimentRow(**_common_fields(each, arms, *_rows_or_bisect(each, arms)))
        for each in shown
        for arms in [by_experiment[each.pk]]
    )


def _arms(experiments: Sequence[ExperimentRecord]) -> list[ExperimentArm]:
    arms: QuerySet[ExperimentArm] = ExperimentArm.objects.filter(experiment__in=experiments)
    arms = arms.select_related("endpoint", "run__profile", *_of(("run",), BUCKET)).defer(*_of(("run",), NOT_NAMED))
    return list(arms.order_by("experiment", "position"))


def _experiments() -> QuerySet[ExperimentRecord]:
    experiments: QuerySet[ExperimentRecord] = ExperimentRecord.objects.select_related(
        *RELATED, *_of(SIDES, (*ASKED, *BUCKET))
    )
    return experiments.defer(*_of(SIDES, NOT_NAMED))


def _of(owners: Iterable[str], fields: Sequence[str]) -> list[str]:
    return [f"{owner}__{field}" for owner in owners for field in fields]


def _rows_or_bisect(
    experiment: ExperimentRecord, arms: Sequence[ExperimentArm]
) -> tuple[list[TableRow], contract.Bisect | None]:
    """Return the result by kind of experiment: the table's rows, or a bisect."""
    if experiment.kind == ExperimentRecord.Kind.BISECT:
        return [], read_bisect(experiment, arms)
    return _table(experiment, arms), None


def _table(experiment: ExperimentRecord, arms: Sequence[ExperimentArm]) -> list[TableRow]:
    """Group conditions into judged rows: the control first, then by size, unmeasured ones last."""
    control, step = _control_points(arms), 100 / experiment.suite_version.n_cases
    groups: dict[tuple[str, str], list[ExperimentArm]] = {}
    for arm in arms:
        groups.setdefault((arm.source, "" if Source(arm.source) in CHOICES else arm.name), []).append(arm)
    measured = []
    for (source, _), members in groups.items():
        parts = [ArmFigures.from_json(arm.figures) for arm in members if arm.figures is not None]
        figures = combine_arms(Source(source), parts, control=control, step=step) if parts else None
        measured.append((Source(source), tuple(members), tuple(parts), figures))
    findings = judge_rows([(source, figures) for source, _, _, figures in measured])
    rows = [TableRow(*each, finding) for each, finding in zip(measured, findings, strict=True)]
    return sorted(rows, key=_place)


def _place(row: TableRow) -> tuple[bool, bool, float]:
    has_none = row.finding.state is State.NOT_MEASURED
    size = WITHOUT_SIZE if row.finding.reach is None else row.finding.reach
    return row.source is not Source.CONTROL, has_none, -size


def _control_points(arms: Sequence[ExperimentArm]) -> float | None:
    """Return the score of the control's first pass, with which all are compared."""
    stored = next((arm.figures for arm in arms if arm.source == Source.CONTROL), None)
    points = ArmFigures.from_json(stored).points if stored is not None else ()
    return points[0] if points else None


def _ended_passes(arms: Sequence[ExperimentArm]) -> dict[int, int]:
    """Return run → number of finished passes."""
    run_ids = [arm.run_id for arm in arms if arm.run_id is not None]
    ended = RepeatRecord.objects.filter(run__in=run_ids, status=RepeatRecord.Status.FINISHED)
    return dict(ended.order_by().values_list("run").annotate(n=Count("pk")))


def _common_fields(
    experiment: ExperimentRecord,
    arms: Sequence[ExperimentArm],
    rows: Sequence[TableRow],
    bisect: contract.Bisect | None,
) -> dict[str, Any]:
    """Return the fields of `ExperimentRow`."""
    version = experiment.suite_version
    n_missing = sum(arm.status in (Status.MISSING, Status.CUT) for arm in arms)
    state: dict[str, Any] = {"status": experiment.status, "n_missing": n_missing, "problem": experiment.problem}
    if bisect is None:
        sentence = wording.describe_experiment([_sentence_row(row) for row in rows], **state)
    else:
        sentence = describe_bisect(bisect, **state)
    if experiment.status == ExperimentRecord.Status.PLANNED:
        estimate = add_costs(RunCost(**arm.cost) for arm in arms)
        sentence += wording.describe_budget(estimate.minutes, experiment.budget_minutes)
    return {
        "id": str(experiment.pk),
        "kind": experiment.kind,
        "suite": SuiteNamed(slug=version.suite.slug, version=version.number),
        "endpoint": experiment.endpoint.slug,
        "profile": experiment.profile.slug,
        "profile_version": experiment.profile.version,
        "runs": experiment.n_runs,
        "status": experiment.status,
        "sentence": sentence,
        "budget_minutes": experiment.budget_minutes,
        "created_by": experiment.created_by.get_username() if experiment.created_by else None,
        "created_at": experiment.created_at,
        "started_at": experiment.started_at,
        "finished_at": experiment.finished_at,
        "url": reverse("experiment", args=[experiment.pk]),
    }


def _sentence_row(row: TableRow) -> wording.SentenceRow:
    figures = row.figures
    return wording.SentenceRow(
        source=row.source,
        name=row.name,
        finding=row.finding,
        n_runs=figures.n_runs if figures else 0,
        n_same=figures.n_same if figures else None,
        n_flipped=figures.n_flipped if figures else 0,
        n_responses=figures.n_responses if figures else 0,
    )


def _arm(experiment: ExperimentRecord, arm: ExperimentArm, n_ended: int) -> contract.LabArm:
    at_work = arm.status == Status.RUNNING and arm.run is not None
    spent = arm.spent_minutes + (measure_engine_time(arm.run).minutes if at_work and arm.run is not None else 0.0)
    return contract.LabArm(
        source=arm.source,
        name=arm.name if arm.turned is None else step_label(experiment, arm),
        endpoint=arm.endpoint.slug,
        status=arm.status,
        run=None if arm.run_id is None else str(arm.run_id),
        n_done=n_ended,
        cost=_cost(RunCost(**arm.cost)),
        spent_minutes=round(spent, 3),
        problem=arm.problem or None,
        profile=None if arm.run is None else name_version(arm.run.profile.slug, arm.run.profile.version),
        bucket=name_bucket(arm.run),
    )


def _cost(cost: RunCost) -> contract.LabCost:
    return contract.LabCost.from_record(
        cost,
        tokens=None if cost.tokens is None else round(cost.tokens),
        minutes=None if cost.minutes is None else round(cost.minutes, 2),
    )


def _expect_costs(experiment: ExperimentRecord, arms: Sequence[ExperimentArm]) -> tuple[CostEstimate, ...]:
    """Return the cost of all conditions on priced endpoints and of their judges, for each currency."""
    costs: list[CostEstimate | None] = []
    known: defaultdict[str, list[CostEstimate]] = defaultdict(list)
    for arm in arms:
        if not arm.n_runs:
            continue
        version = arm.suite_version or experiment.suite_version
        n_calls = arm.n_runs * _count_cases(experiment, arm, version.n_cases)
        if arm.endpoint.price:
            costs.append(estimate_money(version, arm.endpoint, experiment.profile, n_calls=n_calls))
        if is_judged(version.scorer.spec):
            costs.append(estimate_judge(version, arm.n_runs).cost)
    for cost in costs:
        if cost is not None:
            known[cost.currency].append(cost)
    return tuple(sum_estimates(parts, "experiment") for _, parts in sorted(known.items()))


def _count_cases(experiment: ExperimentRecord, arm: ExperimentArm, n_cases: int) -> int:
    """Return the number of answers of one run; a bisect's step decodes the chosen cases if it can."""
    if arm.turned is None or experiment.baseline is None:
        return n_cases
    plan = experiment.plan
    is_alone = is_case_alone(arm.settings or {}, kind=plan["kind"])
    return count_decodings(plan) * (len(plan["cases"]) + len(plan["beside"]) if is_alone else n_cases)


def _sum_spent(experiment: ExperimentRecord) -> tuple[Cost, ...]:
    """Return what the experiment's runs and their judges cost so far, those too that were started again."""
    if experiment.started_at is None:
        return ()
    own = RunRecord.objects.filter(labels__contains={EXPERIMENT_LABEL: str(experiment.pk)})
    # Labels are user input: others may name this experiment too.
    own = own.filter(created_by=experiment.created_by_id, created_at__gte=experiment.created_at)
    known: defaultdict[str, list[Cost]] = defaultdict(list)
    judges = RunRecord.objects.filter(judging_of__run__in=own.values("pk"))
    paid = [run for runs in (own, judges) for run in runs.select_related("endpoint")]
    for costs in read_costs(paid).values():
        known[costs.whole.currency].append(costs.whole)
    return tuple(add_up(parts) for _, parts in sorted(known.items()))


def _row(experiment: ExperimentRecord, row: TableRow, rows: Sequence[TableRow]) -> contract.LabRow:
    figures, finding = row.figures, row.finding
    words = _words(experiment, row)
    spread = figures.spread if figures else None
    return contract.LabRow(
        source=row.source,
        name=row.name,
        label=words.label,
        condition=words.condition,
        fixed_by=wording.describe_fix(words, finding.state),
        state=finding.state,
        finding=wording.describe_finding(finding) if figures else wording.describe_unmeasured(row.arms[0].status),
        n_runs=figures.n_runs if figures else 0,
        points=tuple(_points(row)),
        reach=finding.reach,
        at_most=finding.at_most,
        range=(spread.low, spread.high) if spread else None,
        range_interval=spread.range_interval if spread else None,
        sd=spread.sd if spread else None,
        sd_interval=spread.sd_interval if spread else None,
        is_sd_open=spread is not None and spread.is_open,
        shift=figures.shift if figures and figures.is_sampled else None,
        n_same=figures.n_same if figures else None,
        n_responses=figures.n_responses if figures else 0,
        n_flipped=figures.n_flipped if figures else 0,
        first_flip=figures.first_flip if figures else None,
        speed=_speed(row, rows),
    )


def _words(experiment: ExperimentRecord, row: TableRow) -> wording.SourceWords:
    temperature = _temperature(row.arms[0]) if row.source is Source.SAMPLER else None
    name = listed([arm.name for arm in row.arms]) if row.source is Source.DTYPE else row.name
    is_remote = experiment.endpoint.is_remote
    return wording.describe_source(row.source, name, is_remote=is_remote, temperature=temperature)


def _temperature(arm: ExperimentArm) -> float | None:
    return None if arm.settings is None else float(arm.settings["sampling"]["temperature"])


def _points(row: TableRow) -> Iterable[contract.LabPoint]:
    """Yield the points of a row: passes of runs, or ways to score; those without a score are left out."""
    measured = [arm for arm in row.arms if arm.figures is not None]
    for arm, part in zip(measured, row.parts, strict=True):
        for at, score in enumerate(part.points):
            if score is None:
                continue
            name = wording.describe_spacing(part.names[at]) if part.names else arm.name
            yield contract.LabPoint(
                score=score,
                run=str(arm.run_id) if part.repeats and arm.run_id is not None else None,
                repeat=part.repeats[at] if part.repeats else None,
                name=name,
            )


def _speed(row: TableRow, rows: Sequence[TableRow]) -> float | None:
    """Return tokens per second relative to the control; None for several endpoints together."""
    control = next((each.figures for each in rows if each.source is Source.CONTROL), None)
    if row.figures is None or control is None or len(row.arms) > 1:
        return None
    own, theirs = row.figures.tokens_per_second, control.tokens_per_second
    return own / theirs if own is not None and theirs else None


def _not_measured(left: dict[str, Any]) -> contract.NotMeasured:
    words = wording.describe_source(left["source"])
    return contract.NotMeasured(
        source=left["source"],
        label=words.label,
        code=left["code"],
        reason=wording.describe_reason(left["code"], left["facts"]),
    )
