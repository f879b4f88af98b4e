"""The sample suite that a fresh installation starts with."""

import json
from pathlib import Path

import pytest

from evalboard.core.scoring import KINDS, score
from evalboard.core.suite.suite import parse_suite, read_suite_json

SAMPLE = Path(__file__).resolve().parents[2] / "runs" / "samples" / "sample.json"


@pytest.fixture(scope="module")
def sample():
    return parse_suite(read_suite_json(SAMPLE.read_text()))


def test_it_is_small_enough_for_a_processor_and_large_enough_to_move(sample):
    assert sample.slug == "sample"
    assert sample.max_tokens == 24
    assert 24 <= len(sample.cases) <= 30
    assert max(sum(len(message["content"]) for message in case.messages) for case in sample.cases) < 400


def test_it_has_calls_numbers_and_words_and_a_reference_set(sample):
    by_family = {case.id.split("-")[0] for case in sample.cases}
    assert by_family == {"word", "number", "json", "choice"}
    assert all(case.tags for case in sample.cases)
    assert 4 <= sum(case.is_reference for case in sample.cases) < len(sample.cases)


def written_target(kind, target):
    target = target[0] if isinstance(target, list) else target
    if kind == "tool_calls":
        return json.dumps({**target, "arguments": {name: values[0] for name, values in target["arguments"].items()}})
    return json.dumps(target) if kind == "json" else str(target)


def test_every_target_scores_1_and_the_question_itself_0(sample):
    for case in sample.cases:
        spec = case.scorer or sample.scorer
        right = written_target(spec["kind"], case.target)
        assert spec["kind"] in KINDS
        assert score(spec, text=right, target=case.target).value == 1, case.id
        assert score(spec, text=case.messages[-1]["content"], target=case.target).value == 0, case.id
