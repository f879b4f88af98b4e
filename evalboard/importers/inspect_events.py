"""Read the model calls of an Inspect sample, with texts that Inspect stores separately.

Texts over 100 characters lie in `attachments`, messages that several calls sent in the pool `events_data.messages`,
or `message_pool`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.importers.field_values import mapping, objects, rows, text

MAX_MESSAGES = 10_000  # of one call
MAX_CHARS = 16 << 20  # put back in one sample: references are short, and one text may be referred to often

_PROTOCOL = "attachment://"


class Attachments:
    """The texts of one sample that are stored separately."""

    def __init__(self, sample: Mapping[str, Any]) -> None:
        self._texts = mapping(sample.get("attachments"), "attachments")
        self._left = MAX_CHARS

    def put_back(self, value: Any) -> Any:
        """Return a JSON value with every reference replaced by its text; one without a text stays as it is."""
        if isinstance(value, str):
            return self._text(value) if value.startswith(_PROTOCOL) else value
        if isinstance(value, list):
            return [self.put_back(item) for item in value]
        if isinstance(value, Mapping):
            return {key: self.put_back(item) for key, item in value.items()}
        return value

    def _text(self, reference: str) -> str:
        attachment = self._texts.get(reference.removeprefix(_PROTOCOL))
        if not isinstance(attachment, str):
            return reference
        self._left -= len(attachment)
        if self._left < 0:
            raise InvalidInput(
                f"attachments come to more than {MAX_CHARS >> 20} million characters, the most for a sample"
            )
        return attachment


@dataclass(frozen=True, slots=True)
class SampleCalls:
    """The calls that led to a sample's output: the first, the one that gave it, and how many there were.

    A grader's calls stand among the same events and are none of these. None and 0 where no call gave the output.
    """

    first: Mapping[str, Any] | None = None
    answer: Mapping[str, Any] | None = None
    n: int = 0


def find_calls(sample: Mapping[str, Any], attachments: Attachments) -> SampleCalls:
    """Return the model calls behind a sample's output. Raises InvalidInput, without the file's name."""
    events = [
        event
        for event in objects(sample.get("events"), "events")
        if event.get("event") == "model" and not event.get("error") and not event.get("pending")
    ]
    output = mapping(sample.get("output"), "output")
    for index in range(len(events) - 1, -1, -1):
        answer = events[index]
        if _gave(mapping(answer.get("output"), f"events: output of model call {index}"), output, attachments):
            same = [event for event in events[: index + 1] if _who(event) == _who(answer)]
            return SampleCalls(first=same[0], answer=answer, n=len(same))
    return SampleCalls()


def final_output(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the output of the last model call that is no grader's, for a sample without one, else {}."""
    for event in reversed(objects(sample.get("events"), "events")):
        output = event.get("output")
        is_call = event.get("event") == "model" and not (
            event.get("error") or event.get("pending") or event.get("role")
        )
        if is_call and isinstance(output, Mapping) and first_choice(output):
            return output
    return {}


def sent_messages(call: Mapping[str, Any], sample: Mapping[str, Any], attachments: Attachments) -> list[Any]:
    """Return the messages of a call in Inspect's form. Raises InvalidInput, without the file's name."""
    listed = rows(call.get("input"), "input of a model call")
    if not listed:
        pool = rows(mapping(sample.get("events_data"), "events_data").get("messages"), "events_data.messages")
        pool = pool or rows(sample.get("message_pool"), "message_pool")  # of 0.3.193 to 0.3.199
        listed = _expanded(rows(call.get("input_refs"), "input_refs"), pool)
    if len(listed) > MAX_MESSAGES:
        raise InvalidInput(f"a model call sends more than {MAX_MESSAGES:,} messages")
    return list(attachments.put_back(listed))


def raw_answer(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer's body as the server sent it, empty where the log keeps no raw call."""
    return mapping(mapping(call.get("call"), "call").get("response"), "call.response")


def first_choice(output: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice of an output, of Inspect's or of a raw body; empty where there is none."""
    choices = output.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}


def text_of(content: Any) -> str:
    """Return the text of a message's content, a text or a list of parts, without reasoning."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
        return "\n".join(text(part.get("text")) for part in parts)
    return text(content)


def _gave(given: Mapping[str, Any], wanted: Mapping[str, Any], attachments: Attachments) -> bool:
    """Tell whether two outputs are the same, by message id, else response id, else text."""
    ours, theirs = (mapping(first_choice(output).get("message"), "message") for output in (given, wanted))
    for one, other in ((ours.get("id"), theirs.get("id")), (given.get("response_id"), wanted.get("response_id"))):
        if text(one) and text(other):
            return bool(one == other)
    if not theirs:
        return False
    return text_of(attachments.put_back(ours.get("content"))) == text_of(attachments.put_back(theirs.get("content")))


def _who(call: Mapping[str, Any]) -> tuple[str, str]:
    return text(call.get("model")), text(call.get("role"))


def _expanded(refs: list[Any], pool: list[Any]) -> list[Any]:
    """Return the messages of ranges [start, end) within the pool."""
    messages: list[Any] = []
    for ref in refs:
        if not (
            isinstance(ref, list) and len(ref) == 2 and all(type(at) is int and 0 <= at <= len(pool) for at in ref)
        ):
            raise InvalidInput("input_refs must be pairs of places in events_data.messages")
        messages.extend(pool[ref[0] : ref[1]])
        if len(messages) > MAX_MESSAGES:
            break
    return messages
