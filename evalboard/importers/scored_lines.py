"""Read lines with scores: one answer per line, a format that any tool's results can be written in.

docs/imports.md has the fields, of which only `answer` is required, and how to write them from tools that have no reader
here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalboard.core.document import storage_problems
from evalboard.core.errors import InvalidInput
from evalboard.importers import calls
from evalboard.importers.calls import LoggedCall
from evalboard.importers.completions import output_text
from evalboard.importers.field_values import SideFields, label, moment, number, shortened, text, whole
from evalboard.importers.files import LogFile
from evalboard.importers.json_files import OddRows, naming, read_rows
from evalboard.importers.records import LoggedRun, LoggedScore

TOOL = "lines with scores"
SCORE = "score"  # what a score without a name is called
MAX_EXTRAS_NAMED = 10

# Next to fields that are not ours, these say that `answer` is a model's answer and not a data set's right one.
_TELLING = ("suite", "case", "repeat", "score", "scores", "model", "backend", "system_fingerprint", "time", "logprobs")
FIELDS = ("answer", "id", "prompt", "messages", "target", "reason", *_TELLING)


def recognises(files: Sequence[LogFile]) -> bool:
    """Tell whether every file begins with such a line."""
    return bool(files) and all(_is_line(file.first_object) for file in files)


def read(files: Sequence[LogFile]) -> list[LoggedRun]:
    """Return one run for each file, suite and model. Raises InvalidInput naming file and line."""
    return [run for file in files for run in _runs(file)]


def _is_line(line: Mapping[str, Any]) -> bool:
    return "answer" in line and (line.keys() <= set(FIELDS) or not line.keys().isdisjoint(_TELLING))


def _runs(file: LogFile) -> list[LoggedRun]:
    odd = OddRows(file)
    logged: list[LoggedCall] = []
    extras: dict[str, None] = {}
    for place, row in read_rows(file, odd):
        call = odd.read(place, _call, row, place)
        if call is None:
            own = next((row[name] for name in ("case", "id") if row.get(name) is not None), "")
            call = calls.unreadable(place, odd.problems[-1], case_id=own, request=row, suite=label(row.get("suite")))
        if call is not None:
            logged.append(call)
        extras |= dict.fromkeys(name for name in row if name not in FIELDS)
    notes = [*odd.settle(), *_notes(list(extras))]
    with naming(file):
        if not logged:
            raise InvalidInput("holds no answer")
        return calls.suite_runs(logged, tool=TOOL, title=calls.title([file.name]), notes=notes)


def _call(row: Mapping[str, Any], place: str) -> LoggedCall:
    if "answer" not in row:
        raise InvalidInput("answer is missing")
    beside = SideFields()
    scores = beside.read("scores", read_scores, row) or {}
    target = beside.read("target", require_storable, row.get("target"), "target")
    model, backend = (beside.read(name, _label, row, name) or "" for name in ("model", "backend"))
    fingerprint = beside.read("system_fingerprint", _label, row, "system_fingerprint")
    at = beside.read("time", _time, row)
    beside.read("suite", _label, row, "suite")
    logprobs = row.get("logprobs")
    choice = {
        "message": {"content": output_text(row["answer"])},
        "logprobs": {"content": logprobs} if isinstance(logprobs, list) else logprobs,
    }
    body = {"model": model, "system_fingerprint": fingerprint}
    call = calls.read_call(
        place=place,
        request={"messages": _messages(row)},
        body=body if row["answer"] is None else body | {"choices": [choice]},
        case_id=calls.own_id(row, ("case", "id")),
        repeat=beside.read("repeat", _repeat, row),
        headers={"x-evalboard-backend": backend} if backend else {},
        started_at=at,
        finished_at=at,
    )
    [response] = call.responses
    if not response.error:
        response = replace(response, scores=scores, dropped=(*response.dropped, *beside.dropped))
    return replace(call, responses=(response,), target=target, suite=label(row.get("suite")))


def _messages(row: Mapping[str, Any]) -> list[Any] | None:
    """Return the prompt as messages, from a list of them, a text, or any other JSON as text."""
    given = row.get("prompt") if row.get("messages") is None else row["messages"]
    if given is None:
        return None
    if isinstance(given, list) and given and all(isinstance(one, Mapping) and "role" in one for one in given):
        return given
    return [{"role": "user", "content": output_text(given)}]


def read_scores(row: Mapping[str, Any]) -> dict[str, LoggedScore]:
    """Return the scores of a line by name; an object has one for each key."""
    values: dict[str, Any] = {}
    for name in ("score", "scores"):
        if isinstance(row.get(name), Mapping):
            values |= row[name]
        elif isinstance(row.get(name), list):
            raise InvalidInput(f"{name} must be a number, true, false, null, or an object of these by name")
        elif name in row:
            values[SCORE] = row[name]
    reason = row.get("reason")
    return {
        name: _score(value, text(reason.get(name)) if isinstance(reason, Mapping) else text(reason))
        for name, value in values.items()
    }


def _score(value: Any, reason: str) -> LoggedScore:
    if isinstance(value, bool):
        return LoggedScore(float(value), reason)
    known = number(value)
    return LoggedScore(known, reason or (output_text(value) if known is None else ""))


def require_storable(value: Any, name: str) -> Any:
    """Return a value if it can be stored. Raises InvalidInput, which names it."""
    if problem := next(storage_problems(value, name), None):
        raise InvalidInput(f"{problem[0]} {problem[1]}")
    return value


def _label(row: Mapping[str, Any], name: str) -> str:
    words = label(row.get(name))
    if row.get(name) not in (None, "") and not words:
        raise InvalidInput(f"{name} must be a text")
    return words


def _repeat(row: Mapping[str, Any]) -> int | None:
    repeat = whole(row.get("repeat"))
    if row.get("repeat") is not None and repeat is None:
        raise InvalidInput("repeat must be a whole number")
    return repeat


def _time(row: Mapping[str, Any]) -> Any:
    at = moment(row.get("time"))
    if row.get("time") is not None and at is None:
        raise InvalidInput("time must be an ISO text or Unix seconds")
    return at


def _notes(extras: Sequence[str]) -> list[str]:
    if not extras:
        return []
    names = ", ".join(shortened(name, 40) for name in extras[:MAX_EXTRAS_NAMED])
    more = f" and {len(extras) - MAX_EXTRAS_NAMED:,} more" if len(extras) > MAX_EXTRAS_NAMED else ""
    return [f"These fields of its lines are not read: {names}{more}."]
