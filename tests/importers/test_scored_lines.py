"""Lines with scores: every field but the answer may be missing, and nothing that came is lost without a word."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from evalboard.importers.records import LoggedRun, LoggedScore

Written = Callable[[str, bytes], LogFile]
SKY = "Which colour has the sky?"


@pytest.fixture
def read(written: Written) -> Callable[..., list[LoggedRun]]:
    def read_rows(*rows: dict[str, Any], scale: str = "") -> list[LoggedRun]:
        content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
        return read_logs([written("rows.jsonl", content)], format="scores", scale=scale)[1]

    return read_rows


Read = Callable[..., list[LoggedRun]]


def test_a_line_with_every_field(read: Read) -> None:
    entry = {"token": "Blue", "logprob": -0.5, "bytes": [66, 108, 117, 101], "top_logprobs": []}
    [run] = read(
        {
            **{"suite": "Colours of things", "case": "sky", "repeat": 1, "prompt": SKY, "answer": "Blue"},
            **{"target": "blue", "score": True, "reason": "named it", "model": "openai/gpt-4o", "backend": "pool-a"},
            **{"system_fingerprint": "fp_1", "time": "2026-11-20T10:00:00Z", "logprobs": [entry]},
        }
    )
    [case], [response] = run.cases, run.responses
    assert (run.slug, run.title, run.model, run.tool) == (
        *("colours-of-things", "Colours of things", "gpt-4o", "lines with scores"),
    )
    assert (case.id, case.target, case.messages) == ("sky", "blue", ({"role": "user", "content": SKY},))
    assert (response.text, response.repeat, response.scores) == ("Blue", 1, {"score": LoggedScore(1.0, "named it")})
    assert (response.served_by.key, response.served_by.key_from) == ("pool-a", "x-evalboard-backend")
    assert response.served_by.system_fingerprint == "fp_1"
    assert response.answered_at == run.started_at == datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert (response.positions or [])[0].logprob == -0.5
    assert (run.detail, run.scorers, run.status, response.dropped) == ("tokens", ("score",), "finished", ())


def test_an_answer_alone_is_a_line(read: Read) -> None:
    [run] = read({"answer": "Blue"}, {"answer": "Green"})
    assert [(case.id, case.messages) for case in run.cases] == [("line-1", ()), ("line-2", ())]
    assert (run.scorers, run.status, run.model) == ((), "finished", "")


def test_repeats_are_numbered_or_counted(read: Read) -> None:
    [numbered] = read({"case": "a", "repeat": 2, "answer": "y"}, {"case": "a", "repeat": 1, "answer": "x"})
    assert [(each.repeat, each.text) for each in numbered.responses] == [(1, "x"), (2, "y")]
    [counted] = read({"prompt": SKY, "answer": "x"}, {"prompt": SKY, "answer": "y"})
    assert [(each.repeat, each.text) for each in counted.responses] == [(1, "x"), (2, "y")]
    assert len(counted.cases) == 1


def test_each_suite_and_each_model_is_a_run(read: Read) -> None:
    rows = [{"suite": suite, "case": "a", "answer": "x", "model": model} for suite in "ab" for model in ("m", "n")]
    assert [(run.slug, run.model) for run in read(*rows)] == [("a", "m"), ("a", "n"), ("b", "m"), ("b", "n")]


def test_several_scores_are_one_for_each_key(read: Read) -> None:
    given = {"right": True, "close": 0.25, "kind": "formal", "unknown": None}
    [run] = read({"case": "a", "answer": "x", "score": 0.5, "scores": given, "reason": {"close": "nearly"}})
    assert run.responses[0].scores == {
        "score": LoggedScore(0.5),
        "right": LoggedScore(1.0),
        "close": LoggedScore(0.25, "nearly"),
        "kind": LoggedScore(None, "formal"),
        "unknown": LoggedScore(None),
    }
    assert run.scorers == ("score", *given)


def test_nan_and_null_are_unscored(written: Written) -> None:
    lines = b'{"case": 1, "answer": "x", "score": NaN}\n{"case": 2, "answer": "x", "score": null}\n'
    _, [run] = read_logs([written("rows.jsonl", lines + b'{"case": 3, "answer": "x", "score": 1}\n')])
    assert [each.scores["score"].value for each in run.responses] == [None, None, 1.0]
    assert any("2 answers of 3 unscored by score" in note for note in run.notes)


def test_a_value_beyond_1_is_on_a_scale(read: Read) -> None:
    rows = [{"case": n, "answer": "x", "score": n} for n in (0, 5, 10)]
    assert [each.scores["score"].value for each in read(*rows)[0].responses] == [None, None, None]
    assert [each.scores["score"].value for each in read(*rows, scale="0..10")[0].responses] == [0, 0.5, 1]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"b": 1, "a": [2]}, '{"a":[2],"b":1}'),
        (7, "7"),
        ([{"function": {"name": "f", "arguments": "{}"}}], '[{"arguments":"{}","name":"f"}]'),
    ],
)
def test_an_answer_that_is_no_text_is_its_json(read: Read, answer: Any, text: str) -> None:
    assert read({"answer": answer})[0].responses[0].text == text


def test_a_prompt_may_be_messages_or_any_json(read: Read) -> None:
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": SKY}]
    [run] = read(
        {"messages": chat, "answer": "x"}, {"prompt": chat, "answer": "y"}, {"prompt": {"q": 1}, "answer": "z"}
    )
    assert [case.messages for case in run.cases] == [tuple(chat), ({"role": "user", "content": '{"q":1}'},)]


def test_a_null_answer_is_missing_and_its_score_counts_for_nothing(read: Read) -> None:
    [run] = read({"case": "a", "answer": None, "score": 0}, {"case": "b", "answer": "", "score": 0})
    assert [(bool(each.error), bool(each.scores)) for each in run.responses] == [(True, False), (False, True)]
    assert run.status == "incomplete"


def test_fields_that_are_not_ours_are_named_and_left_out(read: Read) -> None:
    [run] = read({"answer": "x", "user": 7, "cost": 0.1}, {"answer": "y", "tags": []})
    assert "These fields of its lines are not read: user, cost, tags." in run.notes


@pytest.mark.parametrize(
    "field", ["scores", "model", "backend", "system_fingerprint", "time", "logprobs", "suite", "repeat", "target"]
)
def test_a_field_that_cannot_be_read_costs_itself_alone(read: Read, field: str) -> None:
    odd = {"target": "half \ud800", "scores": [1]}.get(field, ["odd"])
    [run] = read({"case": "a", "answer": "x", field: odd})
    assert (run.responses[0].text, run.responses[0].dropped) == ("x", (field,))


def test_a_line_without_an_answer_is_named(read: Read) -> None:
    with pytest.raises(InvalidInput) as refused:
        read({"case": "a", "score": 1})
    assert refused.value.fields == {"rows.jsonl": "line 1: answer is missing"}
    rows = [{"case": n, "answer": "x"} for n in range(150)]
    [run] = read(*rows, {"case": "odd", "score": 1})
    assert run.responses[-1].error == "It cannot be read (line 151: answer is missing)."


def test_more_scores_than_a_run_can_have_are_refused(read: Read) -> None:
    with pytest.raises(InvalidInput, match="holds 101 kinds of scores"):
        read({"answer": "x", "scores": {f"s{n}": 1 for n in range(101)}})
