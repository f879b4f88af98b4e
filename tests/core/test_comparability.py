"""Whether two sides may be compared as one change, and what is said where they may not."""

from dataclasses import replace
from typing import Any

import pytest

from evalboard.core import comparability
from evalboard.core.comparability import GRAVEST_FIRST, STACK, WARNINGS, Asked, Block
from tests.core.questions import ASKED, NEWER, SERVED, served

OTHER_MODEL = {"weights_digest": "0" * 64, "model_name": "paint-2b"}


def found(candidate: Asked, treatment: str = comparability.MODEL, baseline: Asked = ASKED) -> tuple[Block, ...]:
    return comparability.find_blocks(baseline, candidate, treatment)


def codes(blocks: tuple[Block, ...]) -> list[str]:
    return [block.code for block in blocks]


@pytest.mark.parametrize(
    ("candidate", "expected", "fields"),
    [
        (ASKED, [], []),
        (replace(ASKED, suite_version="colours v2", suite_digest="0"), ["suite_changed"], ["suite_version"]),
        (replace(ASKED, scorer_digest="0"), ["scorer_changed"], ["scorer"]),
        (replace(ASKED, max_tokens=8, stop=("\n",)), ["params_changed"], ["max_tokens", "stop"]),
        (replace(ASKED, sampling={"temperature": 1, "seed": 42}), ["params_changed"], ["sampling.temperature"]),
        (served(template_digest="0"), ["params_changed"], ["chat_template"]),
        (served(**NEWER), ["rebaseline"], ["versions.vllm"]),
        (served(**OTHER_MODEL), [], ["model"]),
        (served(**OTHER_MODEL, **NEWER), ["stack_changed"], ["model", "versions.vllm"]),
        (served(batch_class="mixed"), ["batch_class"], ["batch_class"]),
        (served(**NEWER, batch_class="mixed"), ["rebaseline", "batch_class"], ["batch_class", "versions.vllm"]),
        (served(fingerprint=""), ["unknown_stack"], []),
        (served(weights_digest=""), ["unknown_stack"], ["model"]),
        (replace(ASKED, served=[SERVED, SERVED]), ["mixed_fingerprint"], []),
        (replace(ASKED, served=[]), [], []),
    ],
)
def test_what_keeps_two_sides_from_being_compared(candidate: Asked, expected: list[str], fields: list[str]) -> None:
    blocks = found(candidate)
    assert codes(blocks) == expected
    assert [moved.field for moved in comparability.find_moved(ASKED, candidate)] == fields
    assert comparability.is_comparable(blocks) == (not expected)


@pytest.mark.parametrize("candidate", [served(fingerprint=""), served(weights_digest="")])
def test_unknown_on_both_sides_is_not_the_same(candidate: Asked) -> None:
    assert codes(found(candidate, baseline=candidate)) == ["unknown_stack"]
    assert codes(found(candidate, STACK, baseline=candidate)) == ["unknown_stack"]


REPORTED = {
    "weights_digest": "",
    "named": "paint-1b",
    "manifest": {"source": {"system_fingerprint": "vllm-0.32.0-ac25"}},
}


def test_another_name_on_one_reported_stack_is_another_model_and_no_other_stack() -> None:
    ours, theirs = served(**REPORTED), served(**REPORTED | {"named": "paint-2b", "model_name": "paint-2b"})
    blocks = found(theirs, baseline=ours)
    assert codes(blocks) == ["stack_reported"]
    assert "vllm-0.32.0-ac25" in blocks[0].text
    assert comparability.is_comparable(blocks)
    assert [moved.field for moved in comparability.find_moved(ours, theirs)] == ["model"]
    (block,) = found(theirs, STACK, baseline=ours)
    assert block.code == "model_changed"
    assert "two names of one" in block.text


def test_a_template_that_comes_with_other_weights_is_only_a_warning() -> None:
    blocks = found(served(weights_digest="0", template_digest="0"))
    assert codes(blocks) == ["template_changed"]
    assert comparability.is_comparable(blocks)


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        pytest.param(served(**NEWER), ["stack_judged"], id="an-engine-upgrade"),
        pytest.param(served(**NEWER, batch_class="invariant"), ["stack_judged"], id="and-another-batching"),
        pytest.param(served(batch_class="invariant"), ["stack_judged"], id="another-batching-alone"),
        pytest.param(ASKED, ["stack_unchanged"], id="nothing-moved"),
        pytest.param(served(**NEWER, **OTHER_MODEL), ["model_changed"], id="another-model"),
        pytest.param(served(**NEWER, batch_class="mixed"), ["batch_class"], id="batched-as-cases-came"),
        pytest.param(served(**NEWER, template_digest="0"), ["params_changed", "stack_judged"], id="another-template"),
        pytest.param(served(fingerprint=""), ["unknown_stack"], id="unknown"),
        pytest.param(replace(ASKED, served=[SERVED] * 2), ["mixed_fingerprint", "stack_unchanged"], id="two-buckets"),
        pytest.param(replace(ASKED, suite_digest="0"), ["suite_changed", "stack_unchanged"], id="another-suite"),
    ],
)
def test_a_release_that_judges_the_stack_takes_it_for_what_is_judged(candidate: Asked, expected: list[str]) -> None:
    blocks = found(candidate, STACK)
    assert codes(blocks) == expected
    assert comparability.is_comparable(blocks) == WARNINGS.issuperset(expected)


def test_two_sides_batched_as_cases_came_say_nothing_of_the_stack() -> None:
    mixed = served(batch_class="mixed")
    assert codes(found(mixed, STACK, baseline=mixed)) == ["batch_class"]


@pytest.mark.parametrize(
    ("candidate", "values"),
    [
        (replace(ASKED, suite_version="colours v2", suite_digest="0"), ["colours v1", "colours v2"]),
        (replace(ASKED, scorer_digest="0" * 64), ["eeeeeeee", "00000000"]),
        (replace(ASKED, max_tokens=8), ["max tokens 256 → 8"]),
        (replace(ASKED, sampling={"temperature": 1, "seed": 42}), ["temperature 0 → 1"]),
        (served(template_digest="0" * 64), ["bbbbbbbb", "00000000"]),
        (served(**NEWER), ["vLLM 0.31.2 → 0.32.0"]),
        (served(fingerprint="f" * 64), ["cccccccc → ffffffff"]),
        (served(**OTHER_MODEL, **NEWER), ["vLLM 0.31.2 → 0.32.0"]),
        (served(batch_class="mixed"), ["alone", "mixed"]),
    ],
)
def test_a_block_names_what_moved_with_both_values(candidate: Asked, values: list[str]) -> None:
    (block,) = found(candidate)
    for value in values:
        assert value in block.text


def test_a_release_of_a_stack_names_what_it_judges_and_two_models() -> None:
    assert "vLLM 0.31.2 → 0.32.0" in found(served(**NEWER), STACK)[0].text
    assert "paint-1b, aaaaaaaa against paint-2b, 00000000" in found(served(**OTHER_MODEL), STACK)[0].text


def test_two_buckets_on_one_side_are_named_with_their_shares_and_what_differs() -> None:
    mixed = replace(ASKED, served=[replace(SERVED, share=0.94), replace(SERVED, share=0.06, **NEWER)])
    (block,) = found(mixed)
    assert "94 % by cccccccc (alone), 6 % by ffffffff (alone)" in block.text
    assert "vLLM 0.31.2 → 0.32.0" in block.text
    assert [moved.field for moved in block.moved] == ["versions.vllm"]


def worst(**changes: Any) -> Asked:
    serving = replace(SERVED, batch_class="mixed", **NEWER)
    return replace(ASKED, suite_digest="0", scorer_digest="0", max_tokens=1, served=[serving, SERVED], **changes)


def test_every_block_says_what_happened_in_sentences_the_gravest_first() -> None:
    blocks = found(worst())
    assert len(blocks) == 6
    assert codes(blocks) == sorted(codes(blocks), key=GRAVEST_FIRST.index)
    for block in blocks:
        assert block.text.endswith(".")
        assert len(block.text) > 30
