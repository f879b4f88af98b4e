"""Join streamed answers: chunks of completions, as server-sent events or one per line."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.importers.completions import REASONING_FIELDS, content_text, error_words, read_reasoning
from evalboard.importers.field_values import label, mapping, objects, text, whole
from evalboard.importers.files import MAX_BYTES, LogFile
from evalboard.importers.json_files import MAX_DOCUMENT_BYTES, naming, parse, parse_value

DONE = b"[DONE]"
BROKEN_OFF = "The stream breaks off before the answer ends."

# What a chunk says of the whole answer. Servers send these on the first chunk, the last, or all: the last one counts.
_OF_THE_ANSWER = (
    "id",
    "model",
    "created",
    "provider",
    "system_fingerprint",
    "usage",
    "error",
    "prompt_token_ids",
    "extra_fields",
)


def is_event_stream(head: str) -> bool:
    """Return whether a file with this beginning has server-sent events."""
    return head.startswith(("data:", "event:", "id:", "retry:", ": "))


def is_chunk(line: Mapping[str, Any]) -> bool:
    """Return whether an object is a chunk of a streamed answer."""
    choices = line.get("choices")
    has_delta = isinstance(choices, list) and any(isinstance(one, Mapping) and "delta" in one for one in choices)
    return text(line.get("object")).endswith(".chunk") or has_delta


def read_events(file: LogFile) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield (line number from 1, chunk) for each event with JSON, None for the `[DONE]` at a stream's end.

    Raises InvalidInput naming file and line.
    """
    if file.content_size > MAX_BYTES:
        with naming(file):
            raise InvalidInput(f"is a file of more than {MAX_BYTES >> 20} MiB, the most that is read")
    with file.open() as stream, naming(file):
        for number, value in _data(iter(partial(stream.readline, MAX_DOCUMENT_BYTES), b"")):
            yield number, None if value == DONE else parse(value, where=f"line {number}")


def read_stream(content: bytes, read: Callable[[bytes], Any]) -> dict[str, Any] | None:
    """Return the one answer of a stream of events, whatever ids its chunks have; None without one.

    read: makes a chunk of its JSON. An answer without an end has the error BROKEN_OFF. Raises InvalidInput.
    """
    chunks: list[tuple[int, Mapping[str, Any]]] = []
    for number, value in _data(content.splitlines()):
        chunk = None if value == DONE else read(value)
        if not isinstance(chunk, Mapping):
            continue
        if isinstance(chunk.get("response"), Mapping) and "choices" not in chunk:  # of the Responses API: all so far
            chunks = [(number, chunk["response"])]
        elif is_chunk(chunk) or error_words(chunk):
            chunks.append((number, chunk))
    if len(chunks) == 1 and not is_chunk(chunks[0][1]):
        return dict(chunks[0][1])
    return _body(chunks) if chunks else None


def _data(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, value) of each `data:` that has one."""
    for number, line in enumerate(lines, start=1):
        name, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        if name == b"data" and (value := value.strip()):
            yield number, value


def joined(chunks: Iterable[tuple[int, Mapping[str, Any] | None]]) -> list[tuple[int, dict[str, Any]]]:
    """Return (line of its first chunk, body) for each answer, joining chunks by id up to `[DONE]`.

    An answer without an end, as after a lost connection, has the error that it breaks off. Raises InvalidInput,
    without the file's name, for what is no chunk.
    """
    streams: dict[tuple[int, str], list[tuple[int, Mapping[str, Any]]]] = {}
    n_done = 0
    for number, chunk in chunks:
        if chunk is None:
            n_done += 1
            continue
        key = (n_done, text(chunk.get("id")))
        # An error has no id of its own: it ends the stream that is open.
        if not key[1] and streams and next(reversed(streams))[0] == n_done:
            key = next(reversed(streams))
        streams.setdefault(key, []).append((number, chunk))
    return [(group[0][0], _body(group)) for group in streams.values()]


def _body(chunks: list[tuple[int, Mapping[str, Any]]]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for number, chunk in chunks:
        body |= {name: chunk[name] for name in _OF_THE_ANSWER if chunk.get(name) is not None}
        for part in objects(chunk.get("choices"), f"line {number}: choices"):
            index = whole(part.get("index")) or 0
            _add(choices.setdefault(index, {"index": index}), part, f"line {number}: ")
    body["choices"] = list(choices.values())
    if not body.get("error") and any(choice.get("finish_reason") is None for choice in choices.values()):
        body["error"] = BROKEN_OFF
    return body


def _add(choice: dict[str, Any], part: Mapping[str, Any], place: str) -> None:
    """Append one chunk's part to its choice."""
    if "text" in part:
        choice["text"] = choice.get("text", "") + text(part["text"])
    else:
        _add_delta(choice.setdefault("message", {}), mapping(part.get("delta"), f"{place}delta"), place)
    _add_logprobs(choice, part.get("logprobs"))
    ids = part.get("token_ids")
    if isinstance(ids, list) and isinstance(choice.get("token_ids", []), list):
        choice.setdefault("token_ids", []).extend(ids)
    elif ids is not None and not isinstance(ids, list):
        choice["token_ids"] = ids  # for the reader to report
    for name in ("finish_reason", "native_finish_reason", "error", "prompt_token_ids"):
        if part.get(name) is not None:
            choice[name] = part[name]


def _add_logprobs(choice: dict[str, Any], given: Any) -> None:
    """Append a chunk's logprobs. Those of another type replace all, so that readers can report it."""
    if given is None or not isinstance(choice.get("logprobs", {}), dict):
        return
    if not isinstance(given, Mapping):
        choice["logprobs"] = given
        return
    for name, values in given.items():
        if isinstance(values, list):
            choice.setdefault("logprobs", {}).setdefault(name, []).extend(values)


def _add_delta(message: dict[str, Any], delta: Mapping[str, Any], place: str) -> None:
    if isinstance(delta.get("content"), list):  # of parts
        delta = {**delta, "content": content_text(delta["content"]), REASONING_FIELDS[0]: read_reasoning(delta)}
    for name in ("content", "refusal", *REASONING_FIELDS):
        if isinstance(delta.get(name), str):
            message[name] = message.get(name, "") + delta[name]
    for call in objects(delta.get("tool_calls"), f"{place}tool_calls"):
        _add_call(message.setdefault("tool_calls", []), call, f"{place}tool_calls")
    if old := mapping(delta.get("function_call"), f"{place}function_call"):
        _add_call(message.setdefault("tool_calls", []), {"index": 0, "function": old}, f"{place}function_call")


def _add_call(calls: list[dict[str, Any]], part: Mapping[str, Any], place: str) -> None:
    """Append one chunk's part of a tool call to the call that it goes on with, or begin another one."""
    given = mapping(part.get("function"), f"{place}.function")
    name, arguments = text(given.get("name")), given.get("arguments")
    call = _open_call(calls, index=whole(part.get("index")), call_id=label(part.get("id")), name=name)
    function = call["function"]
    if name != function["name"]:  # some servers repeat it in every chunk
        function["name"] += name
    if isinstance(arguments, Mapping):
        arguments = json.dumps(arguments, ensure_ascii=False)
    function["arguments"] += text(arguments)


def _open_call(calls: list[dict[str, Any]], *, index: int | None, call_id: str, name: str) -> dict[str, Any]:
    """Return the call that a part belongs to, appended where it begins one.

    An index counts from anywhere. Another id at a known index is another call, if the part names its function: some
    servers give every chunk an id of its own. Without index and id, a name begins a call once the last one's arguments
    are complete.
    """
    if index is not None:
        same = [call for call in calls if call["index"] == index]
        begins = bool(same and call_id and same[-1]["id"] and call_id != same[-1]["id"] and name)
    elif call_id:
        same, begins = [call for call in calls if call["id"] == call_id], False
        if not same and not name:
            same = calls
    else:
        same = calls
        begins = bool(calls and name) and (calls[-1]["function"]["name"] != name or _is_json(calls[-1]))
    if begins or not same:
        calls.append({"index": index, "id": call_id, "function": {"name": "", "arguments": ""}})
        return calls[-1]
    same[-1]["id"] = same[-1]["id"] or call_id
    return same[-1]


def _is_json(call: Mapping[str, Any]) -> bool:
    try:
        parse_value(call["function"]["arguments"], where="")
    except InvalidInput:
        return False
    return True
