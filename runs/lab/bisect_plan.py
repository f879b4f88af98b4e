"""Plan bisects: the differing fields of two runs, the cases to decode, the steps and their cost."""

import copy
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.db import transaction

from evalboard.contract.lab_kinds import FieldReach
from evalboard.core import scoring
from evalboard.core.compare import is_steady_batch
from evalboard.core.errors import Conflict, InvalidInput
from evalboard.core.lab import (
    NO_COST,
    SCORER,
    UNSTEADY_DECODINGS,
    WORKER,
    Field,
    Setup,
    add_costs,
    find_fields,
    find_unreachable,
    plan_steps,
)
from evalboard.core.profile import SIZES, find_moved_fields
from runs import acts
from runs.compare import ComparisonInputs, inputs
from runs.lab.chosen_cases import ChosenCases, choose_cases
from runs.lab.experiments import budget_problem, default_budget, refuse_if_too_many_plans
from runs.lab.run_figures import whole_passes
from runs.lab.score_texts import read_scored_cases, read_texts, score_texts
from runs.lab.steps import StepPlanner, price_steps, store_steps
from runs.models import EngineProcess, ExperimentRecord, RepeatRecord, RunRecord
from runs.pairs import draws_of
from runs.store import require_row
from runs.work import refuse_if_nobody_can
from runs.work.workers import able

DEFAULT_CASES, MAX_CASES = 20, 100
MAX_FIELDS = 12  # each is two steps
MAX_SCORED = 20_000
STACK = ("versions", "hardware", "env", "engine")


@dataclass(frozen=True, slots=True)
class BisectedRun:
    """One run of a bisect: its first whole pass, its setup, and its serving stack."""

    run: RunRecord
    first: RepeatRecord
    setup: Setup
    manifest: dict[str, Any]


def plan_bisect(
    *, baseline: int, candidate: int, cases: int = DEFAULT_CASES, budget_minutes: float | None = None, user: Any
) -> ExperimentRecord:
    """Store the plan of a bisect of two runs; nothing is decoded before it is started.

    cases: how many that tell are decoded in each step, at most. budget_minutes: None: half as much again as the
    estimate.

    Raises NotFound, InvalidInput with fields, ProfileRefused, and Conflict where a run was not decoded by workers here,
    has no whole pass, or nothing differs.
    """
    fields = {"cases": f"Must be a whole number from 1 to {MAX_CASES}."} if not 1 <= cases <= MAX_CASES else {}
    if problem := budget_problem(budget_minutes):
        fields["budget_minutes"] = problem
    if fields:
        raise InvalidInput("The bisect is not valid.", fields=fields)
    ours, theirs = _side(baseline), _side(candidate)
    if baseline == candidate:
        raise InvalidInput("A run is not bisected with itself.", fields={"candidate": "Must be another run."})
    keys = inputs.find(baseline=baseline, candidate=candidate, repeats=(ours.first.index, theirs.first.index))
    loaded = inputs.load(*keys[:2])
    kind = str(ours.manifest.get("hardware", {}).get("kind") or "cpu")
    moved = _find_moved(ours, theirs, loaded, kind=kind)
    settable = [each for each in moved if each.is_settable]
    chosen = choose_cases(loaded, limit=cases)
    _refuse_if_nothing(moved, settable, chosen)
    setups = _in_living_pool(ours, theirs, is_worker_settable=any(each.name == WORKER for each in settable))
    names = [each.name for each in settable]
    planner = StepPlanner((ours.run, theirs.run), setups, settable=names, kind=kind, plan=chosen.to_json())
    decodings = _choose_decodings(ours.run, theirs.run)
    ordered = planner.order(plan_steps(names)) if names and chosen.cases else []
    steps = [step for step in ordered for _ in range(decodings)]
    costs = price_steps(planner, steps)
    refuse_if_nobody_can(ours.run.endpoint, ours.run.profile)
    refuse_if_too_many_plans()
    before, after = _score(ours), _score(theirs)
    with transaction.atomic():
        experiment = ExperimentRecord.objects.create(
            kind=ExperimentRecord.Kind.BISECT,
            suite_version=ours.run.suite_version,
            endpoint=ours.run.endpoint,
            profile=ours.run.profile,
            n_runs=1,
            baseline=ours.run,
            candidate=theirs.run,
            plan={
                "runs": [baseline, candidate],
                "fields": [{**asdict(each), "facts": dict(each.facts or {})} for each in moved],
                "kind": kind,
                "setups": [asdict(each) for each in setups],
                "decodings": decodings,
                "scores": [before, after],
                "points": None if before is None or after is None else after - before,
                "scorer_points": _score_again(ours, theirs),
                **chosen.to_json(),
            },
            budget_minutes=budget_minutes or default_budget(add_costs(costs) if costs else NO_COST),
            created_by=user,
        )
        store_steps(experiment, planner, steps, costs)
    return experiment


def _choose_decodings(*runs: RunRecord) -> int:
    """Return how often to decode each step: several times if a side's answers vary by chance."""
    are_greedy = not any(draws_of(run).may_sample for run in runs)
    classes = [str(run.profile.settings["batch_class"]) for run in runs]
    is_steady = all(is_steady_batch(each, are_batches_equal=are_greedy) for each in classes)
    return 1 if is_steady else UNSTEADY_DECODINGS


def _side(run_id: int) -> BisectedRun:
    related = ("suite_version__suite", "suite_version__scorer", "endpoint", "profile", "bucket__fingerprint")
    run = require_row(RunRecord.objects.select_related(*related).filter(pk=run_id), f"There is no run {run_id}.")
    acts.require("bisect", run)
    assert run.bucket is not None  # noqa: S101  for the type checker: the rule asks for one
    return BisectedRun(run, whole_passes(run)[0], _setup(run), dict(run.bucket.fingerprint.manifest))


def _setup(run: RunRecord) -> Setup:
    endpoint, model = run.endpoint, run.model_override
    serving = {
        **endpoint.checkpoint(model),
        **{name: getattr(endpoint, name) for name in ("dtype", "quantization", "max_model_len", "pool", *SIZES)},
    }
    settings = copy.deepcopy(run.profile.settings)
    if draws_of(run).has_call_seeds:
        settings["sampling"]["seed"] = run.seed
    version = run.suite_version
    limits = {"version": version.pk, "max_tokens": version.max_tokens, "stop": list(version.stop)}
    return Setup(serving, settings, limits)


def _in_living_pool(ours: BisectedRun, theirs: BisectedRun, *, is_worker_settable: bool) -> tuple[Setup, Setup]:
    """Return both setups; in one pool that has a worker alive where nothing can be decoded in both."""
    if is_worker_settable:
        return ours.setup, theirs.setup
    pools = [side.run.endpoint.pool for side in (ours, theirs)]
    pool = next((each for each in pools if able(each).exists()), pools[0])
    first, second = (replace(side.setup, serving={**side.setup.serving, "pool": pool}) for side in (ours, theirs))
    return first, second


def _find_moved(ours: BisectedRun, theirs: BisectedRun, loaded: ComparisonInputs, *, kind: str) -> list[Field]:
    """Return every field that differs: settings, parts of the serving stack, and the scorer."""
    settings = find_fields(ours.setup, theirs.setup, kind=kind)
    fields = [_by_worker(each, ours, theirs) for each in settings if _is_in_effect(each, ours, theirs)]
    served = [side.setup.served[0] for side in (loaded.baseline, loaded.candidate)]
    names = {each.name for each in fields if each.is_settable}
    if "model" not in names:
        for name, digests in (
            ("model", [each.weights_digest for each in served]),
            ("chat_template", [each.template_digest for each in served]),
        ):
            if digests[0] != digests[1]:
                fields.append(Field(name, digests[0][:8], digests[1][:8], FieldReach.NOT_REACHABLE, "same_path"))
    stacks = [{part: side.manifest.get(part, {}) for part in STACK} for side in (ours, theirs)]
    for each in find_unreachable(find_moved_fields(*stacks), [field for field in fields if field.is_settable]):
        fields.append(_without_worker(each, ours))
    scorers = [side.run.suite_version.scorer for side in (ours, theirs)]
    if scorers[0] != scorers[1]:
        code = next((reason for reason in map(_scorer_problem, (ours, theirs)) if reason), "")
        reach = FieldReach.NOT_REACHABLE if code else FieldReach.SCORER
        fields.append(Field(SCORER, scorers[0].digest[:8], scorers[1].digest[:8], reach, code))
    return fields


def _is_in_effect(field: Field, ours: BisectedRun, theirs: BisectedRun) -> bool:
    """Tell whether a setting differs in an engine's report; a written-out default does not."""
    section, _, leaf = field.name.partition(".")
    if section not in ("engine", "env"):
        return True
    one, other = (side.manifest.get(section, {}).get(leaf) for side in (ours, theirs))
    return one is None or one != other


def _by_worker(field: Field, ours: BisectedRun, theirs: BisectedRun) -> Field:
    """Return the pools' field, marked unreachable unless each pool has a live worker with its run's stack."""
    if field.name != WORKER:
        return field
    for side in (ours, theirs):
        living = living_stacks(side.run.endpoint.pool)
        wanted = {part: side.manifest.get(part) for part in ("versions", "hardware")}
        if not living or not any({part: each.get(part) for part in wanted} == wanted for each in living):
            facts = {"pool": side.run.endpoint.pool}
            return Field(field.name, field.baseline, field.candidate, FieldReach.NOT_REACHABLE, "no_worker", facts)
    return field


def _without_worker(field: Field, ours: BisectedRun) -> Field:
    """Say of a field of the stack which of its values no living worker has."""
    living = living_stacks(ours.run.endpoint.pool)
    lacking = [
        value
        for at, value in enumerate((field.baseline, field.candidate))
        if not any(_has_value(manifest, field, at) for manifest in living)
    ]
    if not lacking:
        return field
    return Field(
        field.name, field.baseline, field.candidate, FieldReach.NOT_REACHABLE, "no_worker_has", {"value": lacking[0]}
    )


def _has_value(manifest: dict[str, Any], field: Field, at: int) -> bool:
    """Tell whether a live worker's manifest has side `at`'s value of a field (0: the baseline's)."""
    value: Any = manifest
    for name in field.name.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return bool(value == (field.baseline, field.candidate)[at])


def living_stacks(pool: str) -> list[dict[str, Any]]:
    """Return the manifests that the live workers of a pool last served with."""
    processes = EngineProcess.objects.filter(worker__in=able(pool), bucket__isnull=False)
    newest = processes.order_by("worker_id", "-id").distinct("worker_id").select_related("bucket__fingerprint")
    return [each.bucket.fingerprint.manifest for each in newest if each.bucket is not None]


def _refuse_if_nothing(moved: list[Field], settable: list[Field], chosen: ChosenCases) -> None:
    if not moved:
        raise Conflict("No known setting of these two runs differs, so there is nothing to bisect.")
    if not chosen.cases and not any(each.reach is FieldReach.SCORER for each in moved):
        raise Conflict("Every answer of the two runs is the same, so there is nothing to bisect.")
    if len(settable) > MAX_FIELDS:
        raise Conflict(
            f"These runs differ in {len(settable)} settings, and a bisect tries up to {MAX_FIELDS}. Run the suite "
            "under a profile between the two, and bisect each half."
        )


def _score(side: BisectedRun) -> float | None:
    """Return what the pass scored, in points; None where it has no score."""
    scored = side.first.scores.filter(scorer=side.run.suite_version.scorer)
    return scored.values_list("points", flat=True).first()


def _scorer_problem(side: BisectedRun) -> str:
    version = side.run.suite_version
    if not scoring.scores_here(version.scorer.spec):
        return "recorded"
    return "too_large" if version.n_cases > MAX_SCORED else ""


def _score_again(ours: BisectedRun, theirs: BisectedRun) -> float | None:
    """Return the points by which the candidate's scorer changes the baseline's score; None if it does not."""
    version, other = ours.run.suite_version, theirs.run.suite_version
    if version.scorer_id == other.scorer_id or any(map(_scorer_problem, (ours, theirs))):
        return None
    cases, first, n = read_scored_cases(version), ours.first, version.n_cases
    scorers = (version.scorer, other.scorer)
    before, after = (score_texts(scorer, cases, read_texts(first, scorer), n_cases=n) for scorer in scorers)
    moved = after - before
    return float(100 * moved[moved == moved].sum() / version.n_cases)
