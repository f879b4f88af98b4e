"""Read batches of OpenAI, Anthropic and `vllm run-batch`: a file of requests and one of results.

OpenAI puts failed lines into a third file, vLLM leaves them among the results. The files are recognised by their lines,
so they may be given in any order and number.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.importers import anthropic, calls
from evalboard.importers.calls import LoggedCall
from evalboard.importers.completions import error_words
from evalboard.importers.field_values import mapping, moment, number, objects, text, whole
from evalboard.importers.files import LogFile
from evalboard.importers.json_files import OddRows, naming, read_rows
from evalboard.importers.records import LoggedRun
from evalboard.wording.messages import write

OPENAI, VLLM, ANTHROPIC = "OpenAI Batch API", "vllm run-batch", "Anthropic Message Batches"
_REPEAT = re.compile(r"(?P<stem>.+)(?P<mark>[#:])(?P<n>\d{1,4})\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Request:
    place: str
    body: Mapping[str, Any]


def is_line(line: Mapping[str, Any]) -> bool:
    """Return whether an object is a line of a batch's requests or results."""
    return _is_request(line) or _is_result(line)


def recognises(files: Sequence[LogFile]) -> bool:
    """Return whether every file has lines of a batch."""
    return bool(files) and all(is_line(_first_line(file)) for file in files)


def read(files: Sequence[LogFile]) -> list[LoggedRun]:
    """Return the one run that a batch is; several only where its requests name several models.

    Requests alone are a run without responses, for the run of their results that was imported before.

    Repeats are told by the end of their ids, as in `case-7#2` and `case-7:2`. Raises InvalidInput naming file and line.
    """
    asking = [file for file in files if _is_request(_first_line(file))]
    is_anthropic = all(map(_is_anthropic, map(_first_line, files)))
    odd = [OddRows(file) for file in files]
    requests = _read_requests([each for each in odd if each.file in asking])
    answered: list[LoggedCall] = []
    is_vllm = False
    for each in odd:
        for place, row in () if each.file in asking else _lines(each):
            call = each.read(place, _call, row, place, requests)
            if call is None:
                source = requests.get(text(row.get("custom_id")))
                request = None if source is None else source.body
                call = calls.unreadable(place, each.problems[-1], case_id=row.get("custom_id"), request=request)
            answered += [] if call is None else [call]
            is_vllm = is_vllm or text(row.get("id")).startswith("vllm-")
    odd_notes = [note for each in odd for note in each.settle()]
    if asking and len(asking) == len(files):
        return [_requests_alone(asking, requests, odd_notes, tool=ANTHROPIC if is_anthropic else OPENAI)]
    with naming(files[0]):
        answered_calls, notes = _joined(requests, answered)
        title = calls.title([file.name for file in files if file not in asking])
        tool = ANTHROPIC if is_anthropic else VLLM if is_vllm else OPENAI
        return calls.logged_runs(answered_calls, tool=tool, title=title, notes=[*odd_notes, *notes])


def _first_line(file: LogFile) -> Mapping[str, Any]:
    """Return the first line, or the first request of the one object that Anthropic takes requests in."""
    first = file.first_object
    listed = first.get("requests")
    return listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], Mapping) else first


def _is_anthropic(line: Mapping[str, Any]) -> bool:
    return anthropic.is_request(line) or anthropic.is_result(line)


def _lines(odd: OddRows) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the lines with their places, or the requests of one object."""
    for place, row in read_rows(odd.file, odd):
        listed = row.get("requests")
        if "custom_id" in row or not isinstance(listed, list):
            yield place, row
            continue
        odd.n_rows = len(listed)
        for n, request in enumerate(listed):
            each = odd.read(f"requests[{n}]", mapping, request, "it")
            if each is not None:
                yield f"requests[{n}]", each


def _is_request(line: Mapping[str, Any]) -> bool:
    if "response" in line or "result" in line:
        return False
    return anthropic.is_request(line) or ("custom_id" in line and isinstance(line.get("body"), Mapping))


def _is_result(line: Mapping[str, Any]) -> bool:
    if anthropic.is_result(line):
        return True
    if "custom_id" not in line or "response" not in line or "request" in line:
        return False
    response = line["response"]
    if isinstance(response, Mapping):
        return "body" in response or "request_id" in response
    return response is None and "error" in line


def _read_requests(odd: Sequence[OddRows]) -> dict[str, _Request]:
    requests: dict[str, _Request] = {}
    for each in odd:
        for place, row in _lines(each):
            each.read(place, _add_request, requests, row, f"{each.file.name}, {place}")
    return requests


def _add_request(requests: dict[str, _Request], row: Mapping[str, Any], place: str) -> None:
    if not _is_request(row):
        raise InvalidInput("is no request of a batch")
    custom_id = _custom_id(row)
    if custom_id in requests:
        raise InvalidInput(f"custom_id {custom_id!r} is that of {requests[custom_id].place} too")
    body = anthropic.as_request(row["params"]) if anthropic.is_request(row) else row["body"]
    requests[custom_id] = _Request(place, body)


def _joined(requests: Mapping[str, _Request], answered: Sequence[LoggedCall]) -> tuple[list[LoggedCall], list[str]]:
    """Return all calls in the order of the requests, including unanswered ones, and notes."""
    if not answered:
        raise InvalidInput("holds no result of a batch")
    ids = {call.case_id for call in answered}
    if requests and not ids & requests.keys():
        raise InvalidInput("no custom_id is in both the requests and the results: they are of two batches")
    order = {custom_id: n for n, custom_id in enumerate(requests)}
    in_order = sorted(answered, key=lambda call: order.get(call.case_id, len(order)))
    in_order += [_unanswered(custom_id, request) for custom_id, request in requests.items() if custom_id not in ids]
    notes = _notes(requests, n_unknown=len(ids - requests.keys()))
    numbered = _with_repeats(in_order)
    if numbered != in_order:
        notes.append("Ids that end in #n or :n were read as the n-th repeat of one case.")
    return numbered, notes


def _custom_id(row: Mapping[str, Any]) -> str:
    custom_id = calls.own_id(row, ("custom_id",))
    if not custom_id:
        raise InvalidInput("custom_id must be a text")
    return custom_id


def _call(row: Mapping[str, Any], place: str, requests: Mapping[str, _Request]) -> LoggedCall:
    if not _is_result(row):
        raise InvalidInput("is no result of a batch")
    custom_id = _custom_id(row)
    row = anthropic.as_result(row) if anthropic.is_result(row) else row
    response = mapping(row.get("response"), "response")
    body = mapping(response.get("body"), "response.body")
    created = moment(number(body.get("created", body.get("created_at"))))
    return calls.read_call(
        place=place,
        request=requests[custom_id].body if custom_id in requests else {},
        body=body,
        case_id=custom_id,
        error=_error(row, response, body),
        started_at=created,
        finished_at=created,
    )


def _error(row: Mapping[str, Any], response: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    status = whole(response.get("status_code"))
    words = error_words(row) or error_words(body)
    if status is None or status < 400:
        return words
    return f"HTTP {status}: {words}" if words else f"HTTP {status}"


def _unanswered(custom_id: str, request: _Request) -> LoggedCall:
    """Return a request without a result, as of a batch that expired: it has a case, and no response."""
    messages, tools = calls.prompt(request.body), tuple(objects(request.body.get("tools"), "tools"))
    model = text(request.body.get("model"))
    sampling = calls.read_sampling(request.body)
    place = request.place
    return LoggedCall(
        place=place, responses=(), case_id=custom_id, model=model, messages=messages, tools=tools, sampling=sampling
    )


def _requests_alone(
    files: Sequence[LogFile], requests: Mapping[str, _Request], notes: Sequence[str], *, tool: str
) -> LoggedRun:
    """Return requests without results as cases, by the ids that their results will have."""
    with naming(files[0]):
        if not requests:
            raise InvalidInput("holds no request")
        asked_calls = [_unanswered(custom_id, request) for custom_id, request in requests.items()]
        numbered = _with_repeats(asked_calls)
        stems = {call.case_id for call in numbered}
        if any(f"{stem}:" in call.case_id for stem in stems for call in asked_calls if stem not in requests):
            numbered = asked_calls
        title = calls.title([file.name for file in files])
        [run] = calls.logged_runs(numbered, tool=tool, title=title, notes=notes)
        return replace(run, status="incomplete")


def _notes(requests: Mapping[str, _Request], *, n_unknown: int) -> list[str]:
    if not requests:
        return ["The file of the requests is missing: prompts and sampling settings are unknown."]
    if n_unknown:
        text = (
            "{n:result} {n:has|have} no request in the file of requests: {n:its prompt is|their prompts are} unknown."
        )
        return [write(text, n=n_unknown)]
    return []


def _with_repeats(answered: list[LoggedCall]) -> list[LoggedCall]:
    """Return the calls, reading `case-7#2` as repeat 2 of case-7 if the ids mean that.

    They do not if one stem has several prompts, as in `math:1` and `math:2`. If prompts are known, a stem's numbers
    must be consecutive too; if they are not, only `#` is read, because a colon is often part of an id.
    """
    matches = [_REPEAT.match(call.case_id) for call in answered]
    if not any(matches):
        return answered
    is_known = all(call.messages for call in answered)
    if not is_known and any(match and match["mark"] == ":" for match in matches):
        return answered
    split = [
        replace(call, case_id=match["stem"], repeat=int(match["n"])) if match else replace(call, repeat=1)
        for call, match in zip(answered, matches, strict=True)
    ]
    stems: dict[str, list[LoggedCall]] = {}
    for call in split:
        stems.setdefault(call.case_id, []).append(call)
    return split if not is_known or all(_is_one_case(group) for group in stems.values()) else answered


def _is_one_case(group: Sequence[LoggedCall]) -> bool:
    numbers = sorted(call.repeat or 0 for call in group)
    is_row = numbers[0] <= 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return is_row and all(call.messages == group[0].messages for call in group)
