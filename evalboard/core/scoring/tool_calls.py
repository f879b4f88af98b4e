"""The `tool_calls` scorer: the calls in a response against the accepted ones.

A target is one call or `{"calls": [call, …]}`; a call is `{"name", "arguments": {argument: [accepted
value, …]}}`, where the name may be a list of accepted names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.core.answer import split_parts
from evalboard.core.document import is_too_deep
from evalboard.core.scoring.arguments import argument_problem, tool_parameters
from evalboard.core.scoring.json_value import one_form
from evalboard.core.scoring.kind import Option, Options, Score, ScorerKind, Tools, failed, flag, one_of, passed
from evalboard.core.scoring.normalise import VERBATIM, normalise_option
from evalboard.core.scoring.reasons import shown, shown_any
from evalboard.core.scoring.response_json import UnreadableJson, fenced, parse_response_json, tagged

MAX_CALLS = 64  # in one target; matching in free order takes time cubic in it


@dataclass(frozen=True, slots=True)
class ToolCall:
    name: str
    arguments: Mapping[str, Any]


def _score(options: Options, text: str, targets: list[Any], tools: Tools) -> Score:
    try:
        calls = _read_calls(text, options["extract"])
    except UnreadableJson as unreadable:
        return failed(str(unreadable))
    problems = []
    answer = _one_form(calls, options)
    for target in targets:
        problem = _target_difference(calls, _wanted_calls(target), options, tools)
        if problem is None:
            names = ", ".join(shown(call.name) for call in calls)
            return passed(f"The {_counted(len(calls))} as accepted: {names}.", answer)
        problems.append(problem)
    others = f" ({len(problems) - 1} other accepted answers differ too)" if len(problems) > 1 else ""
    return failed(f"{problems[0]}{others}.", answer)


def _one_form(calls: list[ToolCall], options: Options) -> str:
    """Return the one text of all lists of the same calls, in whatever order where that is free."""
    each = [one_form([call.name, dict(call.arguments)], options["normalise"]) for call in calls]
    return "\n".join(sorted(each) if options["order"] == "free" else each)


def _read_calls(text: str, extract: str) -> list[ToolCall]:
    """Return the calls of a response in order. Raises UnreadableJson where it is not JSON of calls.

    A call is `{"name", "arguments"}` or holds that under "function"; its arguments may be the JSON
    text of an object. One call, a list of calls, and `{"tool_calls": [...]}` are all understood. Calls that an API
    gave apart from the text are read whatever `extract` says.
    """
    if calls := split_parts(text).calls:
        return [_call(call) for call in calls]
    if extract == "tags":
        return [call for piece in tagged(text) for call in _calls_in(parse_response_json(piece))]
    return _calls_in(parse_response_json(fenced(text) if extract == "fence" else text))


def _calls_in(value: Any) -> list[ToolCall]:
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    items = value if isinstance(value, list) else [value]
    return [_call(item) for item in items]


def _call(item: Any) -> ToolCall:
    if isinstance(item, dict) and isinstance(item.get("function"), dict):
        item = item["function"]
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise UnreadableJson(f'The JSON is not a call with a "name": {shown(item)}.')
    arguments = item.get("arguments", {})
    if isinstance(arguments, str):
        arguments = parse_response_json(arguments)
    if not isinstance(arguments, dict):
        raise UnreadableJson(f"The arguments of {shown(item['name'])} are not an object: {shown(arguments)}.")
    return ToolCall(item["name"], arguments)


def _counted(n: int) -> str:
    return "one call is" if n == 1 else f"{n} calls are"


def _wanted_calls(target: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(target["calls"]) if "calls" in target else [target]


def _target_difference(
    calls: list[ToolCall], wanted: list[Mapping[str, Any]], options: Options, tools: Tools
) -> str | None:
    """Say where the calls leave one target, or None where they are all accepted."""
    too_many = len(calls) > len(wanted) and options["extra_calls"] == "refuse"
    if too_many or len(calls) < len(wanted):
        return f"There are {len(calls)} calls, expected {len(wanted)}"
    if len(calls) > MAX_CALLS:
        return f"There are {len(calls)} calls, more than the {MAX_CALLS} that are compared"
    if not wanted:
        return None
    problems = [[call_problem(call, want, options, tools) for call in calls] for want in wanted]
    unmatched = _first_unmatched(problems) if options["order"] == "free" else _first_out_of_step(problems)
    if unmatched is None:
        return None
    if options["order"] == "strict" and len(calls) == len(wanted):
        return next(f"Call {at + 1}: {row[at]}" for at, row in enumerate(problems) if row[at])
    nearest = _nearest(calls, wanted[unmatched], problems[unmatched], unmatched)
    where = "Call" if len(wanted) == 1 else f"No call matches expected call {unmatched + 1}; nearest is call"
    return f"{where} {nearest + 1}: {problems[unmatched][nearest] or 'it already matches another expected call'}"


def call_problem(call: ToolCall, wanted: Mapping[str, Any], options: Options, tools: Tools) -> str | None:
    """Say why one call is not the wanted one, or None where it is."""
    names = wanted["name"] if isinstance(wanted["name"], list) else [wanted["name"]]
    if call.name not in names:
        return f"it calls {shown(call.name)}, expected {shown_any(names)}"
    parameters = tool_parameters(call.name, tools) if options["tools"] == "check" else None
    return argument_problem(call.arguments, wanted.get("arguments", {}), parameters, options)


def _first_out_of_step(problems: list[list[str | None]]) -> int | None:
    """Return the first wanted call that no call fits in order, or None where all are found in order."""
    position = 0
    for index, row in enumerate(problems):
        while position < len(row) and row[position] is not None:
            position += 1
        if position == len(row):
            return index
        position += 1
    return None


def _first_unmatched(problems: list[list[str | None]]) -> int | None:
    """Pair wanted calls and given ones, each at most once; return the first wanted one left over.

    Augmenting paths, not first come first served: a call that fits two wanted ones must not block the
    only one that fits elsewhere.
    """
    taken_by: dict[int, int] = {}

    def place(index: int, tried: set[int]) -> bool:
        for position, problem in enumerate(problems[index]):
            if problem is not None or position in tried:
                continue
            tried.add(position)
            if position not in taken_by or place(taken_by[position], tried):
                taken_by[position] = index
                return True
        return False

    return next((index for index in range(len(problems)) if not place(index, set())), None)


def _nearest(calls: list[ToolCall], wanted: Mapping[str, Any], row: list[str | None], index: int) -> int:
    """Return the call to explain: one that fails with the right name, else the one in the same place."""
    names = wanted["name"] if isinstance(wanted["name"], list) else [wanted["name"]]
    order = sorted(range(len(calls)), key=lambda position: abs(position - index))
    failing = [position for position in order if calls[position].name in names and row[position] is not None]
    return failing[0] if failing else order[0]


def _target_problem(_options: Options, target: Any) -> str | None:
    if is_too_deep(target):
        return "is nested too deep"
    if not isinstance(target, Mapping):
        return 'must be a call {"name", "arguments"}, or {"calls": […]}, or a list of these of which any one is right'
    if "calls" not in target:
        return _call_shape_problem(target)
    if target.keys() != {"calls"}:
        return 'must have no field other than "calls"'
    if not isinstance(target["calls"], list) or len(target["calls"]) > MAX_CALLS:
        return f'"calls" must be a list of at most {MAX_CALLS} calls'
    problems = (_call_shape_problem(call) for call in target["calls"])
    return next((f"calls[{index}] {problem}" for index, problem in enumerate(problems) if problem), None)


def _call_shape_problem(call: Any) -> str | None:
    if not isinstance(call, Mapping) or not {"name"} <= call.keys() <= {"name", "arguments"}:
        return 'must be an object with "name" and "arguments"'
    names = call["name"] if isinstance(call["name"], list) else [call["name"]]
    if not names or not all(isinstance(name, str) and name for name in names):
        return '"name" must be a name or a list of accepted names'
    arguments = call.get("arguments", {})
    if not isinstance(arguments, Mapping):
        return '"arguments" must be an object'
    for key, accepted in arguments.items():
        if not isinstance(key, str) or not isinstance(accepted, list) or not accepted:
            return f"argument {shown(key)} must be a list of accepted values, as [value]"
    return None


TOOL_CALLS = ScorerKind(
    name="tool_calls",
    version=1,
    options={
        "order": Option("free", one_of("free", "strict")),
        "extra_calls": Option("refuse", one_of("refuse", "allow")),
        "unknown_arguments": Option("refuse", one_of("refuse", "allow")),
        "missing_arguments": Option("refuse", one_of("refuse", "allow")),
        "empty_text_is_optional": Option(False, flag),
        "nested": Option("values", one_of("values", "accepted")),
        "numbers": Option("value", one_of("value", "written")),
        "tools": Option("check", one_of("check", "ignore")),
        "extract": Option("none", one_of("none", "fence", "tags")),
        "normalise": normalise_option(**VERBATIM),
    },
    target_problem=_target_problem,
    score=_score,
    reads_calls=True,
)
