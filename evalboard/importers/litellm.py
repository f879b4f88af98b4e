"""Read calls of a LiteLLM gateway: its own logs, or answers saved with its response headers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.importers import calls, chat
from evalboard.importers.backends import read_headers
from evalboard.importers.calls import LoggedCall
from evalboard.importers.field_values import text
from evalboard.importers.files import LogFile
from evalboard.importers.json_files import OddRows, naming, read_rows
from evalboard.importers.litellm_payload import is_payload, payload_of, read_payload
from evalboard.importers.records import LoggedRun

TOOL = "LiteLLM"
_VERSION = "x-litellm-version"
_COMPLETIONS = ("completion", "acompletion", "text_completion", "atext_completion", "")


def recognises(files: Sequence[LogFile]) -> bool:
    """Return whether every file has LiteLLM's logs of calls, or answers with its headers."""
    return bool(files) and all(_is_litellm(file.first_object) for file in files)


def read(files: Sequence[LogFile]) -> list[LoggedRun]:
    """Return a run per model group of the gateway's logs, and per file and model of saved answers.

    Raises InvalidInput naming file and place.
    """
    logs = [file for file in files if is_payload(file.first_object)]
    saved = [file for file in files if file not in logs]
    runs = _read_request_logs(logs) if logs else []
    return runs + [replace(run, tool=_tool(run)) for run in (chat.read(saved) if saved else [])]


def _is_litellm(line: Mapping[str, Any]) -> bool:
    if is_payload(line):
        return True
    headers = read_headers(line.get("response_headers") or line.get("headers"))
    return any(name.startswith("x-litellm-") for name in headers)


def _read_request_logs(files: Sequence[LogFile]) -> list[LoggedRun]:
    logged: list[tuple[str, LoggedCall]] = []
    n_others = 0
    odd = [OddRows(file) for file in files]
    for each in odd:
        for place, row in read_rows(each.file, each):
            payload = each.read(place, payload_of, row)
            if payload is None:
                continue
            if text(payload.get("call_type")) not in _COMPLETIONS:
                n_others += 1  # embeddings, moderation and so on
                continue
            call = each.read(place, read_payload, payload, place)
            if call is None:
                call = calls.unreadable(place, each.problems[-1], request={"messages": payload.get("messages")})
            if call is not None:
                logged.append((text(payload.get("trace_id")), call))
    notes = [note for each in odd for note in each.settle()]
    newest, n_superseded = _without_superseded(logged)
    with naming(files[0]):
        if not newest:
            raise InvalidInput("holds no completion")
        title = calls.title([file.name for file in files])
        return calls.logged_runs(newest, tool=TOOL, title=title, notes=[*notes, *_notes(n_others, n_superseded)])


def _tool(run: LoggedRun) -> str:
    versions = {response.served_by.parts.get(_VERSION, "") for response in run.responses if not response.error}
    return f"{TOOL} {versions.pop()}".strip() if len(versions) == 1 else TOOL


def _without_superseded(logged: Sequence[tuple[str, LoggedCall]]) -> tuple[list[LoggedCall], int]:
    """Drop failed attempts that a later call of the same request answered, marking it "retried".

    The gateway logs each attempt separately. Attempts share their `trace_id`, which a caller may also give to several
    requests, so the prompt must be the same, and one answer replaces only failures between it and the answer before.
    """
    newest: list[LoggedCall] = []
    pending: dict[tuple[str, str], list[int]] = {}
    superseded: set[int] = set()
    for n, (trace_id, call) in enumerate(logged):
        attempts = pending.setdefault((trace_id, call.case_id), []) if trace_id and call.case_id else []
        if not call.is_answered:
            attempts.append(n)
        elif attempts:
            superseded.update(attempts)
            attempts.clear()
            call = _retried(call)
        newest.append(call)
    return [call for n, call in enumerate(newest) if n not in superseded], len(superseded)


def _retried(call: LoggedCall) -> LoggedCall:
    return replace(
        call,
        responses=tuple(
            replace(response, flags=tuple(dict.fromkeys((*response.flags, "retried")))) for response in call.responses
        ),
    )


def _notes(n_others: int, n_superseded: int) -> list[str]:
    notes = []
    if n_others:
        notes.append(f"{n_others} calls of other kinds, such as embeddings, were left out.")
    if n_superseded:
        notes.append(f"{n_superseded} failed attempts were tried again by the gateway and answered; those are kept.")
    return notes
