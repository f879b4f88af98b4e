"""Find which differing fields of two setups change the answers: plan decodings and judge them.

A **step** decodes the chosen cases with some fields at the candidate's values, and all others at the baseline's: it is
named by those fields. A set of fields *explains* a case where it alone, turned from the baseline, gives the
candidate's answer, and turned back in the candidate, gives the baseline's. Nothing is blamed on less. Where one setup
may answer otherwise by chance, each step is decoded several times: an answer counts where all decodings give it, and
one case alone convicts nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from evalboard.contract.lab import FieldFinding
from evalboard.contract.lab_kinds import FieldState, StepAnswer
from evalboard.core import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFigures:
    """One step, case by case in the plan's order.

    shown: which side's answer came, up to where the two part. scores: under the baseline's scorer, from 0 to 1, None
    where missing. n_beside, n_beside_moved: of the cases beside them, which did not differ between the two runs, how
    many came, and how many of these with another text. seconds: of engines, without their starts.
    """

    shown: tuple[StepAnswer, ...]
    scores: tuple[float | None, ...]
    n_beside: int = 0
    n_beside_moved: int = 0
    n_tokens: int = 0
    seconds: float = 0.0
    n_starts: int = 0

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "StepFigures":
        """Return what `dataclasses.asdict` made, after it was JSON."""
        return cls(**{**stored, "shown": tuple(map(StepAnswer, stored["shown"])), "scores": tuple(stored["scores"])})


def digest_head(answer: Sequence[int] | str, at: int) -> str:
    """Return the digest of an answer up to and with position `at`, in tokens or characters.

    Of one that ends before it, it is that of the whole answer, which no longer one has.
    """
    return digest.digest_json(answer[: at + 1] if isinstance(answer, str) else [int(each) for each in answer[: at + 1]])


def find_parting(ours: Sequence[int] | str, theirs: Sequence[int] | str) -> int | None:
    """Return the first position, in tokens or characters, where two answers differ; None if equal."""
    for at, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return at
    return None if len(ours) == len(theirs) else min(len(ours), len(theirs))


MAX_PAIRS = 15  # tried where no smaller evidence points to one: all of six fields
UNSTEADY_DECODINGS, UNSTEADY_CASES = 3, 2  # of each step, and that convict, where an answer may come by chance

Step = frozenset[str]
Answers = Mapping[Step, Sequence[StepAnswer]]
Decodings = Mapping[Step, Sequence[Sequence[StepAnswer]]]


@dataclass(frozen=True, slots=True)
class Blamed:
    """A minimal set of fields that explains cases. is_either: any one of its fields explains them."""

    fields: Step
    cases: tuple[int, ...]
    is_either: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisected:
    """The result of the steps so far.

    reproduced: cases where both original sides answered as before; None before that is known. unexplained: reproduced
    cases that no set of fields explains.
    """

    reproduced: tuple[int, ...] | None = None
    blamed: tuple[Blamed, ...] = ()
    fields: tuple[FieldFinding, ...] = field(default=())
    unexplained: tuple[int, ...] = ()


def plan_steps(fields: Iterable[str]) -> tuple[Step, ...]:
    """Return the steps of every bisect: both sides unchanged, then each field turned, and each undone.

    With two fields, turning one is undoing the other, and each step is listed once.
    """
    every = frozenset(fields)
    alone = [frozenset({name}) for name in sorted(every)]
    return tuple(dict.fromkeys([frozenset(), every, *alone, *(every - one for one in alone)]))


def take_common(decodings: Decodings) -> Answers:
    """Return the answer to each case that all decodings of a step gave, MISSING where they disagree.

    A step without a decoding is there without answers.
    """
    return {
        step: tuple(own[0] if len(set(own)) == 1 else StepAnswer.MISSING for own in zip(*given, strict=True))
        for step, given in decodings.items()
    }


def find_chance(fields: Iterable[str], decodings: Decodings) -> tuple[int, ...]:
    """Return the cases where repeated decodings of one unchanged side gave different answers."""
    ends = (zip(*decodings.get(end, ()), strict=True) for end in (frozenset[str](), frozenset(fields)))
    several = (case for end in ends for case, own in enumerate(end) if len({*own} - {StepAnswer.MISSING}) > 1)
    return tuple(sorted(set(several)))


def plan_more_steps(fields: Iterable[str], answers: Answers, *, min_cases: int = 1) -> tuple[Step, ...]:
    """Return further steps for cases that no single field explains; empty if nothing is left to try.

    answers: what each step that was decoded gave, case by case; a step that failed is there without answers. First come
    the fields whose undoing removes a flip, together, and those that make it alone, together; then pairs. min_cases: as
    `judge_steps` takes it.
    """
    every, bisected = frozenset(fields), judge_steps(fields, answers, min_cases=min_cases)
    if len(bisected.unexplained) < min_cases or len(every) < 3:
        return ()
    hints: Counter[Step] = Counter()
    pairs: Counter[Step] = Counter()
    for case in bisected.unexplained:
        needed, enough = _needed(every, answers, case), _enough(every, answers, case)
        hints.update(each for each in {needed, enough} if len(each) > 1)
        for pair in map(frozenset, combinations(sorted(every), 2)):
            pairs[pair] += 1 + len(every) * len(pair & (needed | enough))
    if new := _both_ways(every, _largest(hints), answers):
        return new
    return _both_ways(every, _largest(pairs)[:MAX_PAIRS], answers)


def judge_steps(fields: Iterable[str], answers: Answers, *, min_cases: int = 1) -> Bisected:
    """Judge the steps so far. answers: as in `plan_more_steps`.

    min_cases: how many cases a field must explain to be blamed.
    """
    every = frozenset(fields)
    if not answers.get(frozenset()) or not answers.get(every):
        return Bisected(fields=tuple(_judge_field(name, every, answers, (), ()) for name in sorted(every)))
    reproduced = tuple(
        case
        for case, (ours, theirs) in enumerate(zip(answers[frozenset()], answers[every], strict=True))
        if ours is StepAnswer.BASELINE and theirs is StepAnswer.CANDIDATE
    )
    blamed = tuple(each for each in _find_blamed(every, answers, reproduced) if len(each.cases) >= min_cases)
    explained = {case for each in blamed for case in each.cases}
    return Bisected(
        reproduced=reproduced,
        blamed=blamed,
        fields=tuple(_judge_field(name, every, answers, reproduced, blamed) for name in sorted(every)),
        unexplained=tuple(case for case in reproduced if case not in explained),
    )


def _find_blamed(every: Step, answers: Answers, cases: Sequence[int]) -> tuple[Blamed, ...]:
    """Return the smallest sets that explain each case, those of the most cases first."""
    explained: dict[tuple[Step, bool], list[int]] = {}
    tried = sorted((step for step in answers if step), key=lambda step: (len(step), sorted(step)))
    for case in cases:
        needed, enough = _needed(every, answers, case), _enough(every, answers, case)
        smallest: list[Step] = []
        for step in tried:
            if any(each <= step for each in smallest) or not (len(step) <= 2 or step <= needed or step <= enough):
                continue  # a larger set may hold fields that do nothing
            if len(step) > 1 and not all(_is_tried(name, every, answers) for name in step):
                continue  # one of them might have done it alone
            is_made = _shown(answers, step, case) is StepAnswer.CANDIDATE
            if is_made and _shown(answers, every - step, case) is StepAnswer.BASELINE:
                smallest.append(step)
                explained.setdefault((step, len(step) > 1 and step <= enough), []).append(case)
    rows = [Blamed(step, tuple(of), is_either) for (step, is_either), of in explained.items()]
    return tuple(sorted(rows, key=lambda row: (-len(row.cases), len(row.fields), sorted(row.fields))))


def _judge_field(
    name: str, every: Step, answers: Answers, cases: Sequence[int], blamed: Sequence[Blamed]
) -> FieldFinding:
    alone, without = frozenset({name}), every - {name}
    n_made = _count(answers, alone, cases, StepAnswer.CANDIDATE)
    n_undone = _count(answers, without, cases, StepAnswer.BASELINE)
    own = next((each for each in blamed if each.fields == alone), None)
    shared = [each for each in blamed if name in each.fields]
    if own is not None:
        state = FieldState.CAUSE if len(own.cases) == len(cases) else FieldState.PART
    elif shared:
        state = FieldState.EITHER if all(each.is_either for each in shared) else FieldState.TOGETHER
    elif n_made is None or n_undone is None or not cases:
        state = FieldState.NOT_TRIED
    else:
        explained = {case for each in blamed for case in each.cases}
        moved = {case for case in cases if _shown(answers, alone, case) is not StepAnswer.BASELINE}
        moved |= {case for case in cases if _shown(answers, without, case) is not StepAnswer.CANDIDATE}
        state = FieldState.CLEARED if moved <= explained else FieldState.OPEN
    return FieldFinding(name=name, state=state, n_made=n_made, n_undone=n_undone)


def _is_tried(name: str, every: Step, answers: Answers) -> bool:
    """Tell whether a field has been both turned and undone as the only one."""
    return bool(answers.get(frozenset({name})) and answers.get(every - {name}))


def _needed(every: Step, answers: Answers, case: int) -> Step:
    """Return the fields without which the candidate's answer does not come."""
    away = (StepAnswer.BASELINE, StepAnswer.OTHER)
    return frozenset(name for name in every if _shown(answers, every - {name}, case) in away)


def _enough(every: Step, answers: Answers, case: int) -> Step:
    """Return the fields that each give the candidate's answer when turned as the only one."""
    return frozenset(name for name in every if _shown(answers, frozenset({name}), case) is StepAnswer.CANDIDATE)


def _both_ways(every: Step, sets: Iterable[Step], answers: Answers) -> tuple[Step, ...]:
    """Return the steps that turn and undo these sets of fields, without those that were tried."""
    steps = dict.fromkeys(step for each in sets for step in (each, every - each))
    return tuple(step for step in steps if step not in answers)


def _largest(counted: Counter[Step]) -> list[Step]:
    return sorted(counted, key=lambda step: (-counted[step], sorted(step)))


def _shown(answers: Answers, step: Step, case: int) -> StepAnswer | None:
    gave = answers.get(step)
    return gave[case] if gave else None


def _count(answers: Answers, step: Step, cases: Sequence[int], shown: StepAnswer) -> int | None:
    gave = answers.get(step)
    return None if not gave else sum(gave[case] is shown for case in cases)
