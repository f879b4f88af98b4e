"""Read a bisect for display: its fields with their effect, its steps case by case, its cause."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from evalboard.contract import lab as contract
from evalboard.contract.lab_kinds import FieldReach, FieldState, StepAnswer
from evalboard.contract.parts import BucketNamed, FingerprintNamed, name_version
from evalboard.core.compare import name_served
from evalboard.core.lab import Bisected, StepFigures, find_chance
from evalboard.path_converters import reverse_case
from evalboard.wording import bisect as wording
from runs.lab.bisect import judge, read_decodings
from runs.lab.steps import count_decodings, settable_fields
from runs.models import ExperimentArm, ExperimentRecord, RunRecord

Status = ExperimentArm.Status
ORDER = tuple(FieldState)  # what is blamed comes first, what is not reachable last
Step = frozenset[str]


def read_bisect(experiment: ExperimentRecord, arms: Sequence[ExperimentArm]) -> contract.Bisect:
    """Return the result of a bisect, from its plan and the figures of its steps."""
    plan, names = experiment.plan, settable_fields(experiment)
    bisected = judge(experiment, arms)
    chance = find_chance(names, read_decodings(arms))
    scores = _scores(experiment, arms, chance)
    fields = [_field(each, bisected, scores, plan, experiment.status) for each in plan["fields"]]
    fields.sort(key=lambda field: (ORDER.index(FieldState(field.state)), -(field.n_made or 0)))
    return contract.Bisect(
        baseline=str(plan["runs"][0]),
        candidate=str(plan["runs"][1]),
        sides=tuple(_sides(experiment)),
        points=plan["points"],
        n_flips=plan["n_flips"],
        n_reproduced=None if bisected.reproduced is None else len(bisected.reproduced),
        n_unexplained=len(bisected.unexplained),
        n_beside=len(plan["beside"]),
        blamed=tuple(
            contract.BisectBlamed(fields=tuple(sorted(each.fields)), n_cases=len(each.cases), is_either=each.is_either)
            for each in bisected.blamed
        ),
        fields=tuple(fields),
        cases=tuple(_case(at, each, bisected, plan, chance) for at, each in enumerate(plan["cases"])),
        n_decodings=count_decodings(plan),
        there=tuple(str(run) for run in (experiment.baseline_id, experiment.candidate_id) if run is not None),
        steps=tuple(
            _step(arm, names, bisected, scores, plan) for arm in _from_both_ends(arms, [each.name for each in fields])
        ),
    )


def _sides(experiment: ExperimentRecord) -> Iterator[contract.BisectSide]:
    scores = experiment.plan.get("scores", (None, None))  # earlier plans do not say it
    runs = {"baseline": experiment.baseline, "candidate": experiment.candidate}
    for (side, run), score in zip(runs.items(), scores, strict=True):
        if run is not None:
            yield contract.BisectSide(
                side=side,
                run=str(run.pk),
                endpoint=run.endpoint.slug,
                profile=name_version(run.profile.slug, run.profile.version),
                finished_at=run.finished_at,
                score=score,
                bucket=name_bucket(run),
            )


def name_bucket(run: RunRecord | None) -> BucketNamed | None:
    """Return the bucket that answered most of a run; None before the first answer."""
    if run is None or run.bucket is None:
        return None
    model, fingerprint = run.bucket.model, run.bucket.fingerprint
    return BucketNamed(
        id=str(run.bucket.pk),
        model=name_served(model),
        fingerprint=FingerprintNamed(id=str(fingerprint.pk), digest=fingerprint.digest, label=fingerprint.label),
        batch_class=run.bucket.batch_class,
    )


def _from_both_ends(arms: Sequence[ExperimentArm], fields: Sequence[str]) -> list[ExperimentArm]:
    """Sort steps for display: the baseline and its turned fields, the candidate and its undone fields."""
    n_turned = max((len(arm.turned or ()) for arm in arms), default=0)

    def place(arm: ExperimentArm) -> tuple[bool, int, list[int]]:
        turned = arm.turned or []
        n_undone = n_turned - len(turned)
        is_undoing = len(turned) > n_undone
        return (
            is_undoing,
            n_undone if is_undoing else len(turned),
            [at for at, name in enumerate(fields) if (name in turned) != is_undoing],
        )

    return sorted(arms, key=place)


def step_label(experiment: ExperimentRecord, arm: ExperimentArm) -> str:
    """Return the label of a step."""
    names = settable_fields(experiment)
    return wording.describe_step(sorted(arm.turned or ()), names, _values(experiment.plan), _nth(arm, experiment.plan))


def _nth(arm: ExperimentArm, plan: Mapping[str, Any]) -> tuple[int, int]:
    """Return which decoding of its step a condition is, and of how many."""
    n = count_decodings(plan)
    return arm.position % n + 1, n


def _values(plan: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return field → its value on each side, as text."""
    return {
        each["name"]: (wording.describe_value(each["baseline"]), wording.describe_value(each["candidate"]))
        for each in plan["fields"]
    }


def _scores(experiment: ExperimentRecord, arms: Sequence[ExperimentArm], chance: Container[int]) -> dict[Step, float]:
    """Return step → change in points of the chosen cases' score from the baseline's run.

    The mean over its decodings, without cases that are chance.
    """
    n_cases, before = experiment.suite_version.n_cases, [each["score_baseline"] for each in experiment.plan["cases"]]
    moved: dict[Step, list[float]] = {}
    for arm in arms:
        if arm.figures is None:
            continue
        pairs = enumerate(zip(before, StepFigures.from_json(arm.figures).scores, strict=True))
        known = [own - one for at, (one, own) in pairs if one is not None and own is not None and at not in chance]
        moved.setdefault(frozenset(arm.turned or ()), []).append(100 * sum(known) / n_cases)
    return {step: sum(each) / len(each) for step, each in moved.items()}


def _field(
    planned: Mapping[str, Any],
    bisected: Bisected,
    scores: Mapping[Step, float],
    plan: Mapping[str, Any],
    status: str,
) -> contract.BisectField:
    name, reach = planned["name"], FieldReach(planned["reach"])
    finding = next((each for each in bisected.fields if each.name == name), None)
    state = _state(reach, finding)
    blamed = [each for each in bisected.blamed if name in each.fields]
    own = next((each for each in blamed if len(each.fields) == 1), None)
    others = sorted({other for each in blamed for other in each.fields if other != name})
    points = scores.get(frozenset({name}))
    if reach is FieldReach.SCORER:
        points = plan["scorer_points"]
    n_of = (len(own.cases) if own else 0, len(bisected.reproduced or ()))
    reason = wording.describe_reach(planned["code"], planned["facts"])
    is_open = state is FieldState.NOT_TRIED and status in (
        ExperimentRecord.Status.PLANNED,
        ExperimentRecord.Status.RUNNING,
    )
    turned = {} if finding is None else finding.to_stored()
    return contract.BisectField.from_stored(
        {"name": name, **turned},
        label=wording.describe_field(name),
        baseline=wording.describe_value(planned["baseline"]),
        candidate=wording.describe_value(planned["candidate"]),
        reach=reach,
        state=state,
        finding="not tried yet" if is_open else wording.FINDINGS[state],
        note=wording.describe_state(state, others=others, n_of=n_of, reason=reason),
        points=points,
        n_steps=sum(turned.get(each) is not None for each in ("n_made", "n_undone")),
    )


def _state(reach: FieldReach, finding: contract.FieldFinding | None) -> FieldState:
    if reach is FieldReach.SCORER:
        return FieldState.SCORER_ONLY
    return FieldState.NOT_REACHABLE if finding is None else FieldState(finding.state)


def _case(
    at: int, case: Mapping[str, Any], bisected: Bisected, plan: Mapping[str, Any], chance: Container[int]
) -> contract.BisectCase:
    scores = [case["score_baseline"], case["score_candidate"]]
    tokens = case["tokens"]
    return contract.BisectCase(
        case=case["case"],
        unit=case["unit"],
        position=case["at"],
        token_baseline=tokens[0],
        token_candidate=tokens[1],
        movement=case["movement"],
        score_baseline=None if scores[0] is None else 100 * scores[0],
        score_candidate=None if scores[1] is None else 100 * scores[1],
        is_chance=at in chance,
        is_reproduced=None if bisected.reproduced is None else at in bisected.reproduced,
        url=reverse_case("trace_diff", *plan["runs"], case["case"]),
    )


def _step(
    arm: ExperimentArm,
    names: Sequence[str],
    bisected: Bisected,
    scores: Mapping[Step, float],
    plan: Mapping[str, Any],
) -> contract.BisectStep:
    turned = frozenset(arm.turned or ())
    figures = None if arm.figures is None else StepFigures.from_json(arm.figures)
    cases = bisected.reproduced
    return contract.BisectStep(
        turned=tuple(sorted(turned)),
        label=wording.describe_step(sorted(turned), names, _values(plan), _nth(arm, plan)),
        run=None if arm.run_id is None else str(arm.run_id),
        status=arm.status,
        shown=() if figures is None else figures.shown,
        n_candidate=None
        if figures is None or cases is None
        else sum(figures.shown[case] is StepAnswer.CANDIDATE for case in cases),
        points=scores.get(turned),
        n_beside_moved=None if figures is None else figures.n_beside_moved,
    )
