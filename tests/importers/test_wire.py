"""Records pass from process to process as lines of JSON, exactly; nothing in a log makes a line of another kind."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers import wire
from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from evalboard.importers.records import (
    LoggedCase,
    LoggedPosition,
    LoggedPositions,
    LoggedResponse,
    LoggedRun,
    LoggedScore,
    ServedBy,
)

ODD = "half a pair \ud83d, a line\nbreak, \x00 and é"
# What would be a record of another kind, if the content of a log could be one.
FORGED = {"role": ["end"], "content": ["refused", "no", {"a": "b"}], "n": [[["case", []]]]}


def run(*responses: LoggedResponse, **changes: object) -> LoggedRun:
    known = LoggedRun(
        slug="s",
        title="t",
        tool="tool 1",
        model="m",
        detail="tokens",
        status="finished",
        cases=(LoggedCase(id="sky", messages=(FORGED,), target=["red", None, 10**299], tools=(FORGED,)),),
        responses=responses,
        sampling={"temperature": 0.1 + 0.2, "seed": 2**62, "stop": ["\n"]},
        scorers=("match",),
        labels={"commit": "é"},
        started_at=datetime(2026, 3, 1, 12, 30, 1, 5, tzinfo=UTC),
    )
    return replace(known, **changes)  # type: ignore[arg-type]


def passed(*runs: LoggedRun) -> list[LoggedRun]:
    """The same runs on the other side."""
    name, found = wire.read_lines(wire.lines("chat", runs))
    assert name == "chat"
    return found


def positions(*rows: LoggedPosition) -> LoggedPositions:
    return LoggedPositions.from_positions(rows)


def test_every_value_arrives_as_it_was() -> None:
    position = LoggedPosition(bytes(range(256)), -0.1 - 0.2, ((b"", -9999.0), (b"\xf0\x9f", 5e-324)), 2**31 - 1)
    responses = (
        LoggedResponse(
            case_id="sky",
            repeat=1,
            text=ODD,
            positions=positions(position, position),
            prompt_token_ids=(1, 2),
            seed=-(2**62),
            seconds=1e-7,
            served_by=ServedBy(key="k", parts={"a": "b"}),
            scores={"match": LoggedScore(1 / 3, "why"), "other": LoggedScore(None)},
            flags=("cached",),
        ),
        LoggedResponse(case_id="sky", repeat=2, positions=positions()),
        LoggedResponse(case_id="sky", repeat=3, error="lost"),
    )
    runs = [run(*responses), run(title="without responses"), run(LoggedResponse(case_id="sky", repeat=1))]
    assert passed(*runs) == runs


def test_a_logprob_that_a_log_leaves_out_stays_no_number() -> None:
    response = LoggedResponse(
        case_id="sky", repeat=1, positions=positions(LoggedPosition(b"a", math.nan, ((b"b", -1.0),)))
    )
    [found] = passed(run(response))
    [position] = found.responses[0].positions or ()
    assert math.isnan(position.logprob)
    assert position.alternatives == ((b"b", -1.0),)


def test_positions_can_be_gone_through_again_and_picked() -> None:
    rows = tuple(LoggedPosition(b"%d" % n, -1.0, ((b"%d" % n, -1.0), (b"0", -2.0))[:n]) for n in range(5))
    [found] = passed(run(LoggedResponse(case_id="sky", repeat=1, positions=positions(*rows))))
    arrived: Sequence[LoggedPosition] | None = found.responses[0].positions
    assert arrived is not None
    assert (len(arrived), tuple(arrived), tuple(arrived), arrived[-1], arrived[1:3]) == (
        5,
        rows,
        rows,
        rows[-1],
        rows[1:3],
    )


def test_a_refusal_is_the_same_refusal() -> None:
    with pytest.raises(InvalidInput) as refused:
        wire.read_lines([wire.refusal(InvalidInput("no log", fields={"a.json": ODD}))])
    assert (refused.value.detail, refused.value.fields) == ("no log", {"a.json": ODD})


@pytest.mark.parametrize("n_lines", [0, 1, 2, 3, 4, 5])
def test_what_breaks_off_is_no_log(n_lines: int) -> None:
    response = LoggedResponse(case_id="sky", repeat=1, positions=positions(LoggedPosition(b"a", -1.0)))
    lines = list(wire.lines("chat", [run(response)]))
    assert len(lines) == 6
    with pytest.raises(wire.BrokenOff):
        wire.read_lines(lines[:n_lines])


@pytest.mark.parametrize(
    "path",
    [
        "inspect/fp32_baseline.eval",
        "promptfoo/out_fp32.json",
        "litellm/proxy.jsonl",
        "openai_chat/chat_fp32.jsonl",
    ],
)
def test_real_logs_arrive_as_they_were_read(real: Callable[[str], LogFile], path: str) -> None:
    _, runs = read_logs([real(path)])
    assert passed(*runs) == runs
