"""Steps of a bisect: which setup each has, what it costs, its run, and what that gave."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from evalboard.contract.lab_kinds import STEP, FieldReach, StepAnswer
from evalboard.contract.run import RunCost
from evalboard.core import digest
from evalboard.core.compare import TracedText
from evalboard.core.errors import Conflict
from evalboard.core.lab import (
    Setup,
    StepFigures,
    combine_setups,
    digest_head,
    is_case_alone,
    needs_engine,
)
from runs.catalogue import create_endpoint, create_profile
from runs.lab.chosen_cases import read_answers
from runs.lab.run_figures import whole_passes
from runs.lab.score_texts import read_scored_cases, read_texts, score_texts
from runs.models import (
    EndpointRecord,
    ExperimentArm,
    ExperimentRecord,
    ProfileRecord,
    ResponseRecord,
    RunRecord,
    SuiteVersionRecord,
)
from runs.run import measure_engine_time, newest_profile, read_pace

Step = frozenset[str]


class StepPlanner:
    """Plans steps between the two runs of a bisect, with their cost.

    settable: the fields that steps turn. plan: with the chosen cases and the control cases, as in
    `ChosenCases.to_json`.
    """

    def __init__(
        self,
        runs: tuple[RunRecord, RunRecord],
        setups: tuple[Setup, Setup],
        *,
        settable: Iterable[str],
        kind: str,
        plan: Mapping[str, Any],
    ) -> None:
        self._runs, self._setups, self._kind = runs, setups, kind
        self._every = frozenset(settable)
        self._chosen = [*plan["cases"], *plan["beside"]]
        self._known: dict[int, tuple[float, float, float]] = {}

    def setup(self, step: Step) -> Setup:
        """Return the setup of a step. For the candidate itself it is the original, not a combination."""
        between = combine_setups(*self._setups, step)
        if not step or step != self._every:
            return between
        return Setup(self._setups[1].serving, self._setups[1].settings, between.limits)

    def order(self, steps: Iterable[Step]) -> list[Step]:
        """Sort steps: both unchanged sides first, then those that share an engine next to each other."""
        first, last = frozenset[str](), self._every
        rest = sorted(
            (step for step in steps if step not in (first, last)),
            key=lambda step: (_engine(step) != _engine(last), sorted(_engine(step)), len(step), sorted(step)),
        )
        return [first, last, *rest]

    def estimate(self, step: Step, before: Step | None) -> RunCost:
        """Estimate a step from what the nearer run took; before: the step whose engine may still be warm."""
        is_candidate = len(_engine(step)) * 2 > len(_engine(self._every)) and bool(_engine(step))
        seconds, tokens, start = self._pace(int(is_candidate), is_whole=not self.is_case_alone(step))
        n_starts = int(before is None or _engine(step) != _engine(before))
        return RunCost(n_runs=1, n_starts=n_starts, tokens=tokens, minutes=(seconds + n_starts * start) / 60)

    def is_case_alone(self, step: Step) -> bool:
        """Tell whether the chosen cases may be decoded without the others."""
        return is_case_alone(self.setup(step).settings, kind=self._kind)

    def _pace(self, side: int, *, is_whole: bool) -> tuple[float, float, float]:
        """Return (seconds, tokens) of the chosen cases or a whole pass, and seconds of an engine start."""
        run = self._runs[side]
        if side not in self._known:
            time, n_passes = measure_engine_time(run), max(len(whole_passes(run)), 1)
            pace = read_pace(run.suite_version, run.endpoint, batch_class=run.profile.settings["batch_class"])
            self._known[side] = (time.seconds / n_passes, time.n_tokens / n_passes, pace.start_seconds or 0.0)
        seconds, tokens, start = self._known[side]
        first = next(iter(whole_passes(run)), None)
        if is_whole or first is None:
            return seconds, tokens, start
        rows = [each["index_candidate" if side else "index"] for each in self._chosen]
        counted = ResponseRecord.objects.filter(repeat=first, case_index__in=rows).values_list("n_tokens", flat=True)
        n_own = float(sum(each or 0 for each in counted))
        return seconds * n_own / tokens if tokens else 0.0, n_own, start


def _engine(step: Step) -> Step:
    return frozenset(name for name in step if needs_engine(name))


def count_decodings(plan: Mapping[str, Any]) -> int:
    """Return how often each step is decoded; older plans have no number, which means once."""
    return int(plan.get("decodings", 1))


def price_steps(planner: StepPlanner, steps: Sequence[Step], before: Step | None = None) -> list[RunCost]:
    """Estimate steps that follow each other. before: the step whose engine may still be warm."""
    return [planner.estimate(step, last) for last, step in zip([before, *steps], steps, strict=False)]


def store_steps(
    experiment: ExperimentRecord, planner: StepPlanner, steps: Sequence[Step], costs: Sequence[RunCost]
) -> None:
    """Store steps as waiting conditions after the existing ones."""
    n_arms = experiment.arms.count()
    ExperimentArm.objects.bulk_create(
        ExperimentArm(
            experiment=experiment,
            position=n_arms + at,
            source=STEP,
            turned=sorted(step),
            endpoint=experiment.endpoint,
            settings=dict(planner.setup(step).settings),
            serving=dict(planner.setup(step).serving),
            suite_version_id=planner.setup(step).limits["version"],
            n_runs=1,
            cost=cost.to_stored(),
        )
        for at, (step, cost) in enumerate(zip(steps, costs, strict=True))
    )


def planner_of(experiment: ExperimentRecord) -> StepPlanner:
    """Return the planner of a bisect that was stored. Raises Conflict where one of its runs was deleted."""
    if experiment.baseline is None or experiment.candidate is None:
        raise Conflict("One of the two runs was deleted, so no further step can be planned.")
    plan = experiment.plan
    ours, theirs = (Setup(**each) for each in plan["setups"])
    runs = experiment.baseline, experiment.candidate
    return StepPlanner(runs, (ours, theirs), settable=settable_fields(experiment), kind=plan["kind"], plan=plan)


def settable_fields(experiment: ExperimentRecord) -> tuple[str, ...]:
    """Return the names of a bisect's fields that can be set."""
    names = (FieldReach.HERE, FieldReach.WORKER)
    return tuple(each["name"] for each in experiment.plan["fields"] if each["reach"] in names)


def order_step(experiment: ExperimentRecord, arm: ExperimentArm, *, left_out: Container[int] = ()) -> dict[str, Any]:
    """Return the arguments of `create_run` for a step, and store its endpoint and profile.

    left_out: indexes of chosen cases that are not decoded again, if they can be left out. Raises what `create_endpoint`
    and `create_profile` raise.
    """
    version = arm.suite_version or experiment.suite_version
    arm.endpoint = _endpoint(experiment, arm.serving or {})
    settings = arm.settings or {}
    cases = None
    if is_case_alone(settings, kind=experiment.plan["kind"]):
        own = _index_name(experiment, version)
        chosen = [each for at, each in enumerate(experiment.plan["cases"]) if at not in left_out]
        cases = [each[own] for each in (*chosen, *experiment.plan["beside"])]
    return {
        "suite": version.suite.slug,
        "suite_version": version.number,
        "endpoint": arm.endpoint.slug,
        "profile": _profile(experiment, settings).slug,
        "repeats": 1,
        "cases": cases,
    }


def measure_step(experiment: ExperimentRecord, run: RunRecord) -> StepFigures:
    """Return the answers of a step's run to the chosen cases and the control cases."""
    plan, version = experiment.plan, run.suite_version
    own = _index_name(experiment, version)
    repeat = run.repeats.get(index=1)
    indexes = [each[own] for each in (*plan["cases"], *plan["beside"])]
    answers = read_answers(repeat, indexes)
    scores = score_texts(
        experiment.suite_version.scorer,
        read_scored_cases(version, indexes),
        read_texts(repeat, experiment.suite_version.scorer, indexes),
        n_cases=version.n_cases,
    )
    came = [each for each in plan["beside"] if each[own] in answers]
    moved = [each for each in came if digest.text_digest(answers[each[own]].text).hex() != each["text"]]
    time = measure_engine_time(run)
    return StepFigures(
        shown=tuple(_compare(answers.get(each[own]), each) for each in plan["cases"]),
        scores=tuple(float(scores[each[own]]) if each[own] in answers else None for each in plan["cases"]),
        n_beside=len(came),
        n_beside_moved=len(moved),
        n_tokens=time.n_tokens,
        seconds=time.seconds,
        n_starts=time.n_starts,
    )


def _compare(answer: TracedText | None, case: dict[str, Any]) -> StepAnswer:
    """Tell which side's answer this is, up to where the two part."""
    if answer is None or (case["unit"] == "token" and answer.trace is None):
        return StepAnswer.MISSING
    is_token = case["unit"] == "token" and answer.trace is not None
    whole = answer.trace.token_ids.tolist() if is_token and answer.trace is not None else answer.text
    head = digest_head(whole, case["at"])
    sides = {case["baseline"]: StepAnswer.BASELINE, case["candidate"]: StepAnswer.CANDIDATE}
    return sides.get(head, StepAnswer.OTHER)


def _index_name(experiment: ExperimentRecord, version: SuiteVersionRecord) -> str:
    """Return which of a chosen case's indexes is that in a version: the baseline's, or the candidate's."""
    return "index" if version.pk == experiment.suite_version_id else "index_candidate"


def _endpoint(experiment: ExperimentRecord, serving: dict[str, Any]) -> EndpointRecord:
    """Return the endpoint that serves so: one of the two runs', another that is there, or a new one."""
    like = EndpointRecord.objects.filter(engine=EndpointRecord.Engine.VLLM, **serving)
    own = [run.endpoint_id for run in (experiment.baseline, experiment.candidate) if run is not None]
    known = like.filter(pk__in=own).first() or like.order_by("pk").first()
    if known is not None:
        return known
    name = f"{experiment.endpoint.slug[:60]}.{digest.digest_json(serving)[:8]}"
    return create_endpoint(slug=name, line=experiment.endpoint.line, **serving)


def _profile(experiment: ExperimentRecord, settings: dict[str, Any]) -> ProfileRecord:
    """Return the profile with these settings: one of the two runs', or a new one."""
    content = digest.digest_json(settings)
    for run in (experiment.baseline, experiment.candidate):
        if run is not None and run.profile.digest == content and newest_profile(run.profile.slug) == run.profile:
            return run.profile
    name = f"{experiment.profile.slug[:60]}.bisect-{content[:8]}"
    return create_profile(slug=name, title=f"The lab: between the profiles of {experiment}", settings=settings)[0]
