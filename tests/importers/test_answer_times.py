"""When each answer came, where a log says so."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from tests.importers import batch_log, inspect_log
from tests.importers.test_litellm import START, payload
from tests.importers.test_promptfoo import output, result

Written = Callable[[str, bytes], LogFile]
AT = datetime(2026, 11, 21, 2, 6, 35, tzinfo=UTC)
EVENT = inspect_log.model_event()
CHAT: dict[str, Any] = {
    "request": {"messages": [{"role": "user", "content": "Rain?"}]},
    "response": {"created": AT.timestamp() + 9, "choices": [{"message": {"content": "Rain."}}]},
}


def fetched(date: str, **changes: Any) -> dict[str, Any]:
    http = {"headers": {"Date": date}}
    return output(result(0, response={"output": "Paris.", "metadata": {"http": http}, **changes}))


def of_sample(event: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return inspect_log.log(inspect_log.sample(events=[event], **facts))


@pytest.mark.parametrize(
    ("document", "at"),
    [
        (
            of_sample(EVENT | {"timestamp": AT.isoformat(), "completed": "2026-11-21T02:06:37Z"}),
            AT + timedelta(seconds=2),
        ),
        (of_sample(EVENT | {"timestamp": AT.isoformat()}), AT),
        (of_sample(EVENT, completed_at=AT.isoformat()), AT),
        (of_sample(EVENT), None),
        (fetched("Sat, 21 Nov 2026 02:06:35 GMT"), AT),
        (fetched("Sat, 21 Nov 2026 02:06:35 GMT", cached=True), None),
        (fetched("yesterday"), None),
        (payload(), datetime.fromtimestamp(START + 1.5, UTC)),
        (CHAT | {"started_at": AT.isoformat(), "latency_s": 1.5}, AT + timedelta(seconds=1.5)),
        (CHAT | {"ended_at": AT.isoformat()}, AT),
        (CHAT | {"started_at": AT.isoformat()}, AT),
        (CHAT, AT + timedelta(seconds=9)),
        (json.loads(batch_log.output({"sky": "blue"})), datetime.fromtimestamp(batch_log.CREATED, UTC)),
    ],
)
def test_an_answer_has_the_time_that_its_log_says(written: Written, document: dict[str, Any], at: datetime) -> None:
    _, [run] = read_logs([written("log.json", json.dumps(document).encode())])
    assert [response.answered_at for response in run.responses] == [at]
