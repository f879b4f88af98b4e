"""Scoring plans: which scorer judges which case, checked, completed and digested."""

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from evalboard.core.answer import split_parts
from evalboard.core.digest import canonical_json, digest_json
from evalboard.core.document import Problems, at, is_too_deep
from evalboard.core.errors import InvalidInput
from evalboard.core.scoring.choice import CHOICE
from evalboard.core.scoring.external import COMMAND, HTTP, PYTHON
from evalboard.core.scoring.json_value import JSON
from evalboard.core.scoring.judge import JUDGE, find_plan_problems
from evalboard.core.scoring.kind import REQUIRED, Option, Score, ScorerKind, Tools, failed, one_of
from evalboard.core.scoring.number import NUMBER
from evalboard.core.scoring.recorded import RECORDED
from evalboard.core.scoring.regex import REGEX
from evalboard.core.scoring.tool_calls import TOOL_CALLS
from evalboard.core.scoring.wording import CONTAINS, EXACT

KINDS: Mapping[str, ScorerKind] = {
    kind.name: kind
    for kind in (EXACT, CONTAINS, REGEX, NUMBER, CHOICE, JSON, TOOL_CALLS, PYTHON, COMMAND, HTTP, JUDGE, RECORDED)
}
MAX_TEXT_CHARS = 1_000_000  # far beyond what 32,768 tokens write; longer texts are not scored
MAX_TARGETS = 1000  # of which any one is right
ANSWER, THINKING, WHOLE = "answer", "thinking", "whole"
READS = {"reads": Option(ANSWER, one_of(ANSWER, THINKING, WHOLE))}  # an option of every kind that reads responses
TRUNCATED = failed("The response was cut inside its thinking, before any answer. Raise max_tokens.")
NO_THINKING = failed("Nothing of the response is kept apart as thinking, which the scorer reads.")

Spec = dict[str, Any]
Plan = Mapping[str, Any]  # {"default", "cases"}, as `plan` makes it


def read_spec(spec: Any, path: str, problems: Problems) -> Spec | None:
    """Return a scorer with every option filled in, or None after adding to the problems.

    Two specs that mean the same come back equal, so they have one digest.
    """
    if not isinstance(spec, Mapping):
        problems.add(path, 'must be an object with "kind"')
        return None
    if not isinstance(spec.get("kind"), str) or spec["kind"] not in KINDS:
        problems.add(at(path, "kind"), f"must be one of {', '.join(KINDS)}")
        return None
    kind = KINDS[spec["kind"]]
    options = {**kind.options, **READS} if kind.scores_here else kind.options
    mistakes = Problems()
    for name in spec:
        if name != "kind" and name not in options:
            mistakes.add(at(path, str(name)), f"is no option of {kind.name}; its options are {', '.join(options)}")
    filled = {"kind": kind.name, **dict(_filled_options(kind, options, spec, path, mistakes))}
    if filled.get("reads") == ANSWER:
        del filled["reads"]  # as in all specs from before there was a choice, whose digests stay what they are
    if filled.get("judging") == 1:
        del filled["judging"]  # likewise
    if not mistakes.fields and (conflict := kind.conflict(filled)):
        mistakes.add(path, conflict)
    for place, text in mistakes.fields.items():
        problems.add(place, text)
    return None if mistakes.fields else filled


def check_spec(spec: Any, *, path: str = "scorer") -> Spec:
    """Return the completed scorer. Raises InvalidInput that names every wrong field under `path`."""
    problems = Problems()
    filled = read_spec(spec, path, problems)
    problems.raise_if_any("The scorer is not valid")
    assert filled is not None  # noqa: S101 - without problems there is a spec
    return filled


def target_problems(spec: Spec, target: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path, problem) where a target does not suit a completed scorer. A list means any of them."""
    kind = KINDS[spec["kind"]]
    if not kind.needs_target(spec):
        return
    if target is None and kind is not JSON:
        yield path, f"is missing; the scorer {kind.name} compares with it"
        return
    if not isinstance(target, list):
        target, places = [target], [path]
    else:
        places = [f"{path}[{index}]" for index in range(len(target))]
    if not 1 <= len(target) <= MAX_TARGETS:
        yield path, f"must be one target, or a list of 1 to {MAX_TARGETS} of which any one is right"
        return
    for place, item in zip(places, target, strict=True):
        if problem := kind.target_problem(spec, item):
            yield place, problem


def plan(default: Spec | None, cases: Mapping[str, Spec]) -> dict[str, Any]:
    """Return {"default", "cases"}: the completed default and the scorers of the cases that have their own.

    Raises InvalidInput where a spec is wrong, or one cannot be beside a judge.
    """
    filled = None if default is None else check_spec(default)
    own = {case_id: check_spec(spec, path=f"scorer of {case_id}") for case_id, spec in cases.items()}
    made = {"default": filled, "cases": {case_id: spec for case_id, spec in own.items() if spec != filled}}
    problems = Problems()
    for place, text in find_plan_problems(made).items():
        problems.add(place, text)
    problems.raise_if_any("The scorer is not valid")
    return made


def plan_digest(scoring_plan: Plan) -> str:
    """Return the digest of a plan and of the code version of every kind in it."""
    versions = {spec["kind"]: KINDS[spec["kind"]].version for spec in _specs(scoring_plan)}
    return digest_json({"plan": scoring_plan, "versions": versions})


def reads_answers(scoring_plan: Plan) -> bool:
    """Tell whether every scorer of a plan names the answer that it read, so that answers can be compared."""
    return all(KINDS[spec["kind"]].reads_answers(spec) for spec in _specs(scoring_plan))


def reads_thinking(scoring_plan: Plan) -> bool:
    """Tell whether a scorer of a plan reads what the model thought, with its answer or without."""
    kinds = ((KINDS[spec["kind"]], spec) for spec in _specs(scoring_plan))
    return any(kind.is_external or (kind.scores_here and "reads" in spec) for kind, spec in kinds)


def scores_here(scoring_plan: Plan) -> bool:
    """Return whether every scorer of a plan scores here, without a log, a worker or a judge."""
    return all(KINDS[spec["kind"]].scores_here for spec in _specs(scoring_plan))


def scorer_for(scoring_plan: Plan, case_id: str) -> Spec:
    """Return the scorer of a case. Raises InvalidInput where the plan has none for it."""
    spec = scoring_plan["cases"].get(case_id, scoring_plan["default"])
    if spec is None:
        raise InvalidInput(f"The plan has no scorer for the case {case_id!r}.")
    return dict(spec)


def score(
    spec: Mapping[str, Any],
    *,
    text: str,
    target: Any,
    tools: Tools = None,
    thinking: str | None = None,
    is_truncated: bool | None = None,
) -> Score:
    """Score one response: from 0 to 1, with a reason in words.

    text: the answer; a kind reads its words, or the calls that an API gave apart from them. thinking: what was thought
    before it, None where nothing is apart. is_truncated: it was cut before any answer. Never raises for any text or
    target; a spec that is not valid raises InvalidInput, and so does one of a kind that has no rule to score by.
    """
    filled = _completed(canonical_json(dict(spec)))
    kind = KINDS[filled["kind"]]
    reads = filled.get("reads", ANSWER) if kind.scores_here else ANSWER
    if reads == ANSWER and is_truncated:
        return TRUNCATED  # no scorer is asked: an empty answer may be a right one, and here there is none
    if reads == THINKING and thinking is None:
        return NO_THINKING
    parts = split_parts(text)
    has_calls = kind.reads_calls and bool(parts.calls)
    if not has_calls:
        text = parts.text or text  # a kind that reads words sees calls alone as their JSON
    if thinking is not None and (reads == THINKING or (reads == WHOLE and not has_calls)):
        text = thinking if reads == THINKING else f"{thinking}\n\n{text}"
    if len(text) > MAX_TEXT_CHARS:
        return failed(f"The answer has {len(text)} characters; more than {MAX_TEXT_CHARS} are not scored.")
    if is_too_deep(target):
        return failed("The target is nested too deep to compare with.")
    for place, problem in target_problems(filled, target, "target"):
        return failed(f"The scorer cannot use this case's target: {place} {problem}.")
    targets = target if isinstance(target, list) else [target]
    # Half of a surrogate pair is no character; the regex engine would refuse the whole text for it.
    whole = text.encode("utf-8", "replace").decode() if not text.isascii() else text
    return kind.score(filled, whole, targets, tools)


@functools.lru_cache(maxsize=4096)
def _completed(spec: bytes) -> Spec:
    return check_spec(json.loads(spec))


def _specs(scoring_plan: Plan) -> list[Spec]:
    return [spec for spec in (scoring_plan["default"], *scoring_plan["cases"].values()) if spec is not None]


def _filled_options(
    kind: ScorerKind, options: Mapping[str, Option], spec: Mapping[str, Any], path: str, problems: Problems
) -> Iterator[tuple[str, Any]]:
    for name, option in options.items():
        place = at(path, name)
        if name in spec:
            yield name, option.read(spec[name], place, problems)
        elif option.default is REQUIRED:
            problems.add(place, f"is missing; {kind.name} needs it")
        else:
            yield name, option.default
