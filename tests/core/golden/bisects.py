"""What is said of a bisect: what is blamed, what is cleared, what could not be tried, and where nothing may be said."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from evalboard.contract.lab_kinds import FieldReach, FieldState, StepAnswer
from evalboard.core.lab import Bisected, judge_steps, plan_more_steps, plan_steps
from evalboard.wording.bisect import REASONS, describe_bisect, describe_field, describe_reach
from tests.core.golden.readers import Sentence, Situations

N_CASES = 12
FIELDS = ("dtype", "engine.enforce_eager", "sampling.top_k")
POINTS = -1.5
FACTS = {"pool": "next", "value": "580.65"}
DRIVER: dict[str, Any] = {
    "name": "hardware.driver",
    "label": "hardware.driver",
    "baseline": "580.65",
    "candidate": "580.82",
    "reach": FieldReach.NOT_REACHABLE,
    "state": FieldState.NOT_REACHABLE,
    "finding": "not reachable",
    "note": "no live worker has 580.65",
    "n_made": None,
    "n_undone": None,
    "points": None,
    "n_steps": 0,
}
SCORER = DRIVER | {"label": "scorer", "reach": FieldReach.SCORER, "state": FieldState.SCORER_ONLY, "points": -0.1}

Flips = Callable[[frozenset[str], int], StepAnswer]


def flips_with(*names: str, n: int = N_CASES) -> Flips:
    """Return the answers of a stack on which these fields together flip the first n cases."""
    return lambda step, case: StepAnswer.CANDIDATE if case < n and step >= set(names) else StepAnswer.BASELINE


def read(
    shown: Flips,
    *,
    fields: Iterable[str] = FIELDS,
    beside: tuple[dict[str, Any], ...] = (),
    status: str = "finished",
    n_steps: int | None = None,
    n_missing: int = 0,
    n_moving: int = N_CASES,
    chance: tuple[int, ...] = (),
) -> list[Sentence]:
    """Take the steps that a bisect asks for, the first `n_steps` of them, and read what is said then."""
    names = tuple(fields)
    answers: dict[frozenset[str], list[StepAnswer]] = {}
    steps = plan_steps(names)
    while steps:
        for step in steps:
            if n_steps is None or len(answers) < n_steps:
                answers[step] = [shown(step, case) for case in range(N_CASES)]
        steps = plan_more_steps(names, answers) if n_steps is None else ()
    bisect = _bisect(judge_steps(names, answers), answers, names, beside, n_moving, chance)
    return [Sentence("bisect", "", describe_bisect(bisect, status=status, n_missing=n_missing))]


def _bisect(
    bisected: Bisected,
    answers: dict[frozenset[str], list[StepAnswer]],
    names: tuple[str, ...],
    beside: tuple[dict[str, Any], ...],
    n_moving: int,
    chance: tuple[int, ...],
) -> Any:
    fields = [
        DRIVER
        | {
            "name": each.name,
            "label": describe_field(each.name),
            "reach": FieldReach.HERE,
            "state": each.state,
            "n_made": each.n_made,
            "n_undone": each.n_undone,
            "points": None if each.n_made is None else POINTS * each.n_made / N_CASES,
        }
        for each in bisected.fields
    ]
    return SimpleNamespace(
        points=POINTS,
        n_reproduced=None if bisected.reproduced is None else len(bisected.reproduced),
        n_unexplained=len(bisected.unexplained),
        blamed=tuple(
            SimpleNamespace(fields=tuple(sorted(each.fields)), n_cases=len(each.cases), is_either=each.is_either)
            for each in bisected.blamed
        ),
        fields=[SimpleNamespace(**each) for each in (*fields, *beside)],
        cases=[
            SimpleNamespace(
                case=f"case-{at}",
                score_baseline=100.0,
                score_candidate=0.0 if at < n_moving else 100.0,
                is_reproduced=None if bisected.reproduced is None else at in bisected.reproduced,
                is_chance=at in chance,
            )
            for at in range(N_CASES)
        ],
        n_decodings=3 if chance else 1,
        steps=tuple(SimpleNamespace(turned=tuple(sorted(step)), shown=tuple(shown)) for step, shown in answers.items()),
    )


def either(step: frozenset[str], case: int) -> StepAnswer:
    """Give the candidate's answer where any of two fields is turned."""
    return StepAnswer.CANDIDATE if step & {"dtype", "sampling.top_k"} else StepAnswer.BASELINE


def shared(step: frozenset[str], case: int) -> StepAnswer:
    """Give the candidate's answer to eight cases by one field, to the others by another."""
    return flips_with("dtype" if case < 8 else "sampling.top_k")(step, case)


def lawless(step: frozenset[str], case: int) -> StepAnswer:
    """Give the candidate's answer with all fields, with the first alone, and with all but the first."""
    is_candidate = len(step) == 3 or step in ({"dtype"}, {"engine.enforce_eager", "sampling.top_k"})
    return StepAnswer.CANDIDATE if is_candidate else StepAnswer.OTHER if step else StepAnswer.BASELINE


SITUATIONS: Situations = {
    "One field is the cause": lambda: read(flips_with("dtype")),
    "One field is the cause, and the scorer is another one": lambda: read(flips_with("dtype"), beside=(SCORER,)),
    "The only field that differs": lambda: read(flips_with("dtype"), fields=["dtype"]),
    "Two fields share the flips": lambda: read(shared),
    "Two fields matter only together": lambda: read(flips_with("dtype", "sampling.top_k")),
    "Either of two fields is enough": lambda: read(either),
    "Nothing explains the flips": lambda: read(lawless),
    "Some cases did not reproduce": lambda: read(flips_with("dtype", n=9)),
    "Some cases are chance": lambda: read(flips_with("dtype", n=8), chance=(8, 9, 10, 11)),
    "One case is chance": lambda: read(flips_with("dtype", n=11), chance=(11,)),
    "No case that moved the score came again": lambda: read(
        lambda step, case: flips_with("dtype")(step, case) if case > 2 else StepAnswer.BASELINE, n_moving=3
    ),
    "What made them cannot be set": lambda: read(flips_with("driver"), beside=(DRIVER,)),
    "The baseline is no longer what it was": lambda: read(flips_with()),
    "Both sides are at work": lambda: read(flips_with("dtype"), status="running", n_steps=1),
    "Some steps are left": lambda: read(flips_with("dtype"), status="running", n_steps=2),
    "Stopped by its budget after it was clear": lambda: read(
        flips_with("dtype"), status="stopped", n_steps=7, n_missing=1
    ),
    "A plan of a bisect": lambda: read(flips_with("dtype"), status="planned", n_steps=0),
    "What cannot be reached, and why": lambda: [
        Sentence("not reached", code, describe_reach(code, FACTS)) for code in REASONS
    ],
}
