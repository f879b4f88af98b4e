"""Which responses give one answer: what a vote over draws counts."""

from typing import Any

import pytest

from evalboard.core.scoring import failure_kind, plan, reads_answers, score
from evalboard.core.trace import pack_answers, unpack_answers

CALL = '{"name": "find", "arguments": {"q": "Oslo", "n": %s}}'


@pytest.mark.parametrize(
    ("spec", "target", "same", "other"),
    [
        ({"kind": "exact", "normalise": {"case": "fold"}}, "x", ["Oslo", " oslo\n"], "Bergen"),
        ({"kind": "choice"}, "A", ["(B) plum", "The answer is B."], "C"),
        ({"kind": "number", "which": "last"}, 1, ["it is 1,200", "1200.0", "1.2e3"], "1201"),
        ({"kind": "number"}, 1, ["0", "-0.00"], "1"),
        ({"kind": "regex", "pattern": r"answer: (\w+)", "group": 1}, "x", ["answer: 4", "so answer: 4"], "answer: 5"),
        ({"kind": "json"}, {}, ['{"a": 1, "b": [2.0]}', '{"b":[2],"a":1.0}'], '{"a": true, "b": [2]}'),
        ({"kind": "tool_calls"}, {"name": "x"}, [CALL % "1", f"[{CALL % '1.0'}]"], CALL % "2"),
    ],
)
def test_responses_that_say_the_same_give_one_answer_right_or_wrong(
    spec: dict[str, Any], target: Any, same: list[str], other: str
) -> None:
    answers = [score(plan(spec, {})["default"], text=text, target=target).answer for text in [*same, other]]
    assert None not in answers
    assert len(set(answers[:-1])) == 1
    assert answers[-1] != answers[0]
    assert reads_answers(plan(spec, {}))


@pytest.mark.parametrize(
    "spec",
    [{"kind": "contains"}, {"kind": "regex", "pattern": "a"}, {"kind": "recorded", "source": "a tool"}],
)
def test_some_scorers_read_no_answer(spec: dict[str, Any]) -> None:
    assert not reads_answers(plan({"kind": "exact"}, {"one": spec}))


def test_what_cannot_be_read_is_no_answer_and_packs_as_none() -> None:
    none = score({"kind": "number"}, text="no idea", target=1).answer
    keys = unpack_answers(pack_answers([none, "4", "4", "5"]), 4).tolist()
    assert keys[0] == 0 < keys[1] == keys[2] != keys[3]


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ('$.args lacks the key "unit".', "missing key"),
        ('the required argument "is not JSON" is missing', "missing key"),
        ('Call 1: argument "genre" is "jazz", expected "opera".', "wrong value"),
        ('Call 1: it calls "book", expected "move".', "another call"),
        ('Not JSON: Expecting value at character 1, before "Sure! I can".', "not JSON"),
        ('"red" is not "blue"; first difference at character 1.', "another answer"),
        ("Judged by a person.", ""),
    ],
)
def test_a_reason_is_named_by_what_went_wrong_whatever_its_values_say(reason, kind):
    assert failure_kind(reason) == kind
