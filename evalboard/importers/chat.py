"""Read raw answers in lines: chat completions, the Responses API, Anthropic's messages, streams.

A line is a response as it came, or an object with `request`, `response` and what else the caller stored of the call, as
`evalboard trace` writes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.importers import anthropic, batch, calls, scored_lines
from evalboard.importers.backends import read_headers
from evalboard.importers.calls import LoggedCall
from evalboard.importers.completions import error_words
from evalboard.importers.event_streams import is_chunk, is_event_stream, joined, read_events
from evalboard.importers.field_values import SideFields, label, mapping, moment, number, rows, text, whole
from evalboard.importers.files import LogFile
from evalboard.importers.json_files import OddRows, naming, read_rows
from evalboard.importers.litellm_payload import is_payload
from evalboard.importers.records import LoggedRun

# Where a caller keeps its own name of a case. In a bare response `id` is the server's name of the response.
_OWN_IDS = ("custom_id", "case_id", "sample_id", "question_id", "task_id", "data_index", "index")


_STARTS = ("started_at", "last_run_at")
_MILLISECONDS = ("latency_ms", "duration_ms")


def recognises(files: Sequence[LogFile]) -> bool:
    """Return whether every file has raw answers, in lines or as an event stream."""
    return bool(files) and all(_is_chat(file) for file in files)


def read(files: Sequence[LogFile]) -> list[LoggedRun]:
    """Return one run for each file and model; event streams are of one run, as each is one answer.

    Raises InvalidInput naming file and line.
    """
    streams = [file for file in files if is_event_stream(file.start)]
    groups = [[file] for file in files if file not in streams] + ([streams] if streams else [])
    return [run for group in groups for run in _runs(group)]


def _is_chat(file: LogFile) -> bool:
    if is_event_stream(file.start):
        return True
    first = file.first_object
    if batch.is_line(first) or is_payload(first):
        return False
    return _is_body(first) or _is_wrapped(first)


def _is_body(line: Mapping[str, Any]) -> bool:
    is_known = line.get("object") == "response" or anthropic.is_message(line)
    return isinstance(line.get("choices"), list) or is_known or is_chunk(line)


def _is_wrapped(line: Mapping[str, Any]) -> bool:
    """Return whether the response is stored together with the request and the caller's facts."""
    request, response = line.get("request"), line.get("response")
    has_request = isinstance(request, Mapping) and bool({"messages", "prompt", "input"} & set(request))
    if not isinstance(response, Mapping):
        return has_request
    return has_request or "choices" in response or "error" in response or anthropic.is_message(response)


def _runs(files: Sequence[LogFile]) -> list[LoggedRun]:
    odd = [OddRows(file) for file in files]
    logged = [call for file, theirs in zip(files, odd, strict=True) for call in _calls(file, theirs)]
    notes = [note for theirs in odd for note in theirs.settle()]
    with naming(files[0]):
        if not logged:
            raise InvalidInput("holds no answer")
        title = calls.title([file.name for file in files])
        return calls.suite_runs(logged, tool="chat completions", title=title, notes=notes)


def _calls(file: LogFile, odd: OddRows) -> Iterator[LoggedCall]:
    if is_event_stream(file.start):
        yield from _streamed(file, read_events(file))
        return
    chunks: list[tuple[int, Mapping[str, Any]]] = []
    for number_of_row, (place, row) in enumerate(read_rows(file, odd), start=1):
        if is_chunk(row):
            chunks.append((number_of_row, row))
            continue
        call = odd.read(place, _wrapped if _is_wrapped(row) else _bare, row, place)
        if call is None:
            own = next((row[name] for name in (*_OWN_IDS, "id") if name in row), "") if _is_wrapped(row) else ""
            call = calls.unreadable(
                place, odd.problems[-1], case_id=own, request=row.get("request"), suite=label(row.get("suite"))
            )
        if call is not None:
            yield call
    yield from _streamed(file, chunks)


def _streamed(file: LogFile, chunks: Any) -> Iterator[LoggedCall]:
    with naming(file):
        bodies = joined(chunks)
    for number_of_line, body in bodies:
        place = f"line {number_of_line}"
        with naming(file, place):
            call = _bare(body, place)
        yield call


def _bare(body: Mapping[str, Any], place: str) -> LoggedCall:
    if not _is_body(body) and not error_words(body):
        raise InvalidInput("is neither a response nor an object with request and response")
    created = _created(body)
    case_id = calls.own_id(body, _OWN_IDS)
    return calls.read_call(place=place, request={}, body=body, case_id=case_id, started_at=created, finished_at=created)


def _wrapped(row: Mapping[str, Any], place: str) -> LoggedCall:
    body, status, headers = _response(row)
    error = "" if body.get("choices") else _error(row, body, status)
    started_at = next((at for name in _STARTS if (at := moment(row.get(name))) is not None), None)
    seconds, finished_at = _times(row, started_at)
    beside = SideFields()
    scores = beside.read("scores", scored_lines.read_scores, row) or {}
    target = beside.read("target", scored_lines.require_storable, row.get("target"), "target")
    call = calls.read_call(
        place=place,
        request=mapping(row.get("request"), "request"),
        body=body,
        case_id=calls.own_id(row, (*_OWN_IDS, "id")),
        repeat=whole(row.get("repeat")),
        error=error,
        headers=headers,
        url=row.get("url") or row.get("base_url"),
        seconds=seconds,
        started_at=started_at or _created(body),
        finished_at=finished_at,
        flags=("retried",) if (whole(row.get("n_tries")) or 0) > 1 else (),
    )
    responses = tuple(
        one if one.error else replace(one, scores=scores, dropped=(*one.dropped, *beside.dropped))
        for one in call.responses
    )
    left_out = tuple(filter(None, map(text, rows(row.get("left_out"), "left_out"))))
    n_cases = whole(row.get("n_cases"))
    return replace(
        call, responses=responses, target=target, suite=label(row.get("suite")), n_cases=n_cases, left_out=left_out
    )


def _created(body: Mapping[str, Any]) -> datetime | None:
    """Return the time in a body: `created`, or `created_at` in the Responses API."""
    return moment(number(body.get("created", body.get("created_at"))))


def _response(row: Mapping[str, Any]) -> tuple[Mapping[str, Any], int | None, dict[str, str]]:
    """Return body, HTTP status and headers, from the row or its response."""
    response = row.get("response")
    if isinstance(response, str):  # what a server that is no such server said, as a proxy's page of HTML
        response = {"error": response}
    response = mapping(response, "response")
    inside = response if "body" in response and "choices" not in response else {}
    body = mapping(inside["body"], "response.body") if inside else response
    headers = row.get("response_headers") or row.get("headers") or inside.get("headers")
    status = whole(row.get("status_code")) or whole(row.get("status")) or whole(inside.get("status_code"))
    return body, status, read_headers(headers)


def _error(row: Mapping[str, Any], body: Mapping[str, Any], status: int | None) -> str:
    words = error_words(body) or error_words(row)
    if status is None or status < 400:
        return words
    return f"HTTP {status}: {words}" if words else f"HTTP {status}"


def _times(row: Mapping[str, Any], started_at: datetime | None) -> tuple[float | None, datetime | None]:
    """Return how long the call took, and when it ended."""
    ended_at = moment(row.get("ended_at")) or moment(row.get("finished_at"))
    seconds = number(row.get("latency_s"))
    milliseconds = next((value for name in _MILLISECONDS if (value := number(row.get(name))) is not None), None)
    if seconds is None and milliseconds is not None:
        seconds = milliseconds / 1000
    if seconds is None and started_at and ended_at:
        seconds = (ended_at - started_at).total_seconds()
    if ended_at is None and started_at and seconds is not None and 0 <= seconds < 1e6:
        ended_at = started_at + timedelta(seconds=seconds)
    return seconds, ended_at
