"""Whether two sides may be compared as one change, and what is said where they may not."""

import json
from dataclasses import replace
from typing import Any

import pytest

from evalboard.contract.treatments import MODEL_TREATMENT, SERVICE_TREATMENT, STACK_TREATMENT
from evalboard.core.compare import comparability
from evalboard.core.compare.comparability import (
    BLOCK_ORDER,
    BLOCK_WARNINGS,
    Block,
    ScorerShift,
    SideSetup,
)
from evalboard.wording.comparability import BLOCKS, explain_block
from tests.core.questions import ASKED, NEWER, PATCHED, SERVED, SHIPPED, judged, served

OTHER_MODEL = {"weights_digest": "0" * 64, "model_name": "paint-2b"}


def found(
    candidate: SideSetup, treatment: str = comparability.MODEL_TREATMENT, baseline: SideSetup = ASKED
) -> tuple[Block, ...]:
    return comparability.find_blocks(baseline, candidate, treatment)


def words_of(block: Block) -> str:
    return explain_block(block.code, block.facts)


def codes(blocks: tuple[Block, ...]) -> list[str]:
    return [block.code for block in blocks]


@pytest.mark.parametrize(
    ("candidate", "expected", "fields"),
    [
        (ASKED, [], []),
        (replace(ASKED, suite_version="colours v2", suite_digest="0"), ["suite_changed"], ["suite_version"]),
        (replace(ASKED, unknown_prompts="7"), ["prompts_unknown"], []),
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
def test_what_keeps_two_sides_from_being_compared(candidate: SideSetup, expected: list[str], fields: list[str]) -> None:
    blocks = found(candidate)
    assert codes(blocks) == expected
    assert [moved.field for moved in comparability.find_moved_setup(ASKED, candidate)] == fields
    assert comparability.allows_comparing(blocks) == (not expected)


REPORTED_JUDGE = {"is_reported": True}
OTHER_JUDGE = {"identity": ("7" * 64,), "served": ("referee-8b, newer",)}
NO_ANCHORS = {"anchors_digest": "", "anchor_scores": None}
MOVED = {"anchor_scores": ((1.0,) * 10, (0.0,) * 10) * 22 + ((1.0,) * 10,) * 6}  # three of 50 anchors now pass


@pytest.mark.parametrize(
    ("baseline", "candidate", "expected"),
    [
        ({}, {}, []),
        (NO_ANCHORS, NO_ANCHORS, []),  # our own workers attest it
        ({}, MOVED, ["judge_changed"]),
        ({}, OTHER_JUDGE, ["judge_changed"]),  # known to be another, whatever the anchors say
        (NO_ANCHORS, NO_ANCHORS | OTHER_JUDGE, ["judge_changed"]),
        (REPORTED_JUDGE, REPORTED_JUDGE, []),
        (REPORTED_JUDGE, REPORTED_JUDGE | OTHER_JUDGE, ["judge_rebuilt"]),
        (REPORTED_JUDGE, REPORTED_JUDGE | OTHER_JUDGE | MOVED, ["judge_changed"]),
        (REPORTED_JUDGE, REPORTED_JUDGE | OTHER_JUDGE | {"models": ("another",)}, ["judge_changed"]),
        (REPORTED_JUDGE, REPORTED_JUDGE | OTHER_JUDGE | NO_ANCHORS, ["judge_changed"]),
        (REPORTED_JUDGE, REPORTED_JUDGE | OTHER_JUDGE | {"anchors_digest": "0"}, ["judge_changed"]),
        (REPORTED_JUDGE, OTHER_JUDGE, ["judge_changed"]),
        (REPORTED_JUDGE, REPORTED_JUDGE | NO_ANCHORS, ["judge_unchecked"]),
        (REPORTED_JUDGE, REPORTED_JUDGE | {"anchors_digest": "0"}, ["judge_unchecked"]),
        ({"identity": ("1", "2")} | NO_ANCHORS, {"identity": ("1", "2")} | NO_ANCHORS, ["judge_unchecked"]),
    ],
)
def test_another_judge_is_another_scorer_and_its_anchors_tell_what_reports_do_not(
    baseline: dict[str, Any], candidate: dict[str, Any], expected: list[str]
) -> None:
    blocks = found(judged(**candidate), baseline=judged(**baseline))
    assert codes(blocks) == expected
    assert codes(found(judged(**baseline), baseline=judged(**candidate))) == expected
    assert comparability.allows_comparing(blocks) == (expected != ["judge_changed"])


def test_a_judge_that_moved_has_the_points_of_its_anchors() -> None:
    [block] = found(judged(**MOVED), baseline=judged())
    assert (block.facts["points"], block.facts["n_anchors"]) == (pytest.approx(6.0), 50)
    assert block.facts["p"] <= 0.01
    assert json.loads(json.dumps(block.facts)) == block.facts
    assert "changed by +6.0 points" in words_of(block)


def test_a_judge_of_both_sides_is_checked_where_it_judges_the_baseline_in_place_of_its_scorer() -> None:
    shift = ScorerShift("0" * 64, 2.5, 4)
    blocks = found(judged(**MOVED), baseline=replace(judged(), scorer_shift=shift))
    assert codes(blocks) == ["judge_changed", "scorer_shared"]
    named = replace(shift, own_code="folded 3f2a9c10")
    theirs = replace(judged(), scorer_code="folded 52766643")
    (block,) = found(theirs, baseline=replace(judged(), scorer_shift=named))
    assert "changed (scorer folded 3f2a9c10 → folded 52766643)" in words_of(block)
    assert codes(found(judged(), baseline=replace(judged(), scorer_shift=shift))) == ["scorer_shared"]


def test_a_side_with_a_judge_and_one_without_have_another_scorer_alone() -> None:
    assert codes(found(replace(judged(), scorer_digest="0"))) == ["scorer_changed"]
    assert codes(found(replace(judged(**MOVED), scorer_digest="0"), baseline=judged())) == ["scorer_changed"]


def test_without_the_same_anchors_nothing_claims_that_the_judge_is_the_same() -> None:
    for block in (
        *found(judged(**OTHER_JUDGE), baseline=judged(**NO_ANCHORS)),
        *found(judged(**REPORTED_JUDGE), baseline=judged(**REPORTED_JUDGE, **NO_ANCHORS)),
    ):
        assert "points" not in block.facts
        assert "fixed answers" in words_of(block)


@pytest.mark.parametrize(
    ("changes", "treatment", "expected"),
    [
        (PATCHED, MODEL_TREATMENT, ["rebaseline"]),
        (PATCHED | OTHER_MODEL, MODEL_TREATMENT, ["stack_changed"]),
        (PATCHED, STACK_TREATMENT, ["stack_judged"]),
        ({}, MODEL_TREATMENT, ["params_changed"]),
        ({**PATCHED, "weights_digest": ""}, MODEL_TREATMENT, ["params_changed", "unknown_stack"]),
        ({**PATCHED, "weights_digest": "", "named": "other"}, MODEL_TREATMENT, ["params_changed", "stack_changed"]),
    ],
)
def test_an_engine_whose_build_ignores_temperature_0_is_another_stack(
    changes: dict[str, Any], treatment: str, expected: list[str]
) -> None:
    """The answers say that they are not greedy, so that their temperature is not known."""
    patched = replace(served(**changes), sampling={"seed": 42})
    assert codes(found(patched, treatment, served(**(SHIPPED if changes else {})))) == expected
    hot = replace(served(**changes), sampling={"seed": 42, "temperature": 1.0})
    assert "params_changed" in codes(found(hot, treatment, served(**(SHIPPED if changes else {}))))


@pytest.mark.parametrize("candidate", [served(fingerprint=""), served(weights_digest="")])
def test_unknown_on_both_sides_is_not_the_same(candidate: SideSetup) -> None:
    assert codes(found(candidate, baseline=candidate)) == ["unknown_stack"]
    assert codes(found(candidate, STACK_TREATMENT, baseline=candidate)) == ["unknown_stack"]


REPORTED = {
    "weights_digest": "",
    "named": "paint-1b",
    "manifest": {"source": {"system_fingerprint": "vllm-0.32.0-ac25"}},
}


def test_a_side_that_another_model_answered_is_named_and_still_compared() -> None:
    other = REPORTED | {"model_name": "paint-mini", "named": "paint-mini", "asked_name": "paint-1b", "n_answers": 7}
    blocks = found(served(**other), baseline=served(**REPORTED, n_answers=7))
    assert codes(blocks) == ["other_model", "stack_reported"]
    assert words_of(blocks[0]) == "The candidate requested paint-1b, but paint-mini answered 7 of 7."
    assert comparability.allows_comparing(blocks)


def test_another_name_on_one_reported_stack_is_another_model_and_no_other_stack() -> None:
    ours, theirs = served(**REPORTED), served(**REPORTED | {"named": "paint-2b", "model_name": "paint-2b"})
    blocks = found(theirs, baseline=ours)
    assert codes(blocks) == ["stack_reported"]
    assert "vllm-0.32.0-ac25" in words_of(blocks[0])
    assert comparability.allows_comparing(blocks)
    assert [moved.field for moved in comparability.find_moved_setup(ours, theirs)] == ["model"]
    (block,) = found(theirs, STACK_TREATMENT, baseline=ours)
    assert block.code == "model_changed"
    assert "both names are one model" in words_of(block)


def test_a_thinking_switch_that_one_side_has_is_named_with_both_values() -> None:
    switched = {**ASKED.sampling, "chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "low"}
    (block,) = found(replace(ASKED, sampling=switched))
    assert block.code == "params_changed"
    assert "chat template switches not set → enable_thinking off, reasoning effort not set → low" in words_of(block)


def test_a_template_that_comes_with_other_weights_is_only_a_warning() -> None:
    blocks = found(served(weights_digest="0", template_digest="0"))
    assert codes(blocks) == ["template_changed"]
    assert comparability.allows_comparing(blocks)


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        pytest.param(served(**NEWER), ["stack_judged"], id="an-engine-upgrade"),
        pytest.param(served(**NEWER, batch_class="invariant"), ["stack_judged"], id="and-another-batching"),
        pytest.param(served(batch_class="invariant"), ["stack_judged"], id="another-batching-alone"),
        pytest.param(ASKED, ["stack_unchanged"], id="nothing-moved"),
        pytest.param(served(**NEWER, **OTHER_MODEL), ["model_changed"], id="another-model"),
        pytest.param(served(**NEWER, batch_class="mixed"), ["batch_class", "stack_judged"], id="batched-as-cases-came"),
        pytest.param(served(**NEWER, template_digest="0"), ["params_changed", "stack_judged"], id="another-template"),
        pytest.param(served(fingerprint=""), ["unknown_stack"], id="unknown"),
        pytest.param(replace(ASKED, served=[SERVED] * 2), ["mixed_fingerprint", "stack_unchanged"], id="two-buckets"),
        pytest.param(replace(ASKED, suite_digest="0"), ["suite_changed", "stack_unchanged"], id="another-suite"),
    ],
)
def test_a_release_that_judges_the_stack_takes_it_for_what_is_judged(candidate: SideSetup, expected: list[str]) -> None:
    blocks = found(candidate, STACK_TREATMENT)
    assert codes(blocks) == expected
    assert comparability.allows_comparing(blocks) == BLOCK_WARNINGS.issuperset(expected)


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        pytest.param(served(**NEWER, **OTHER_MODEL), ["service_judged"], id="another-model-on-another-stack"),
        pytest.param(served(**NEWER), ["service_judged"], id="another-stack"),
        pytest.param(served(**OTHER_MODEL), ["service_judged"], id="another-model"),
        pytest.param(served(template_digest="0", **NEWER), ["service_judged"], id="another-template"),
        pytest.param(ASKED, ["service_unchanged"], id="nothing-moved"),
        pytest.param(served(fingerprint=""), ["unknown_stack"], id="unknown"),
        pytest.param(replace(ASKED, suite_digest="0"), ["suite_changed", "service_unchanged"], id="another-suite"),
    ],
)
def test_a_release_that_judges_the_service_takes_model_and_stack_together(
    candidate: SideSetup, expected: list[str]
) -> None:
    blocks = found(candidate, SERVICE_TREATMENT)
    assert codes(blocks) == expected
    assert comparability.allows_comparing(blocks) == BLOCK_WARNINGS.issuperset(expected)


def test_two_buckets_of_one_service_are_not_pooled() -> None:
    routed = replace(ASKED, served=[SERVED, replace(SERVED, fingerprint="f" * 64)])
    blocks = found(routed, SERVICE_TREATMENT)
    assert codes(blocks)[0] == "mixed_fingerprint"
    assert not comparability.allows_comparing(blocks)


@pytest.mark.parametrize("treatment", [MODEL_TREATMENT, SERVICE_TREATMENT])
def test_what_is_unknown_may_be_assumed_within_a_window_and_that_is_written_down(treatment: str) -> None:
    unknown = served(fingerprint="")
    window = {"hours": 1.5, "canaries": [{"endpoint": "mini", "state": "stable"}]}
    blocks = comparability.find_blocks(unknown, unknown, treatment, window=window)
    assert codes(blocks) == ["identity_assumed"]
    assert comparability.allows_comparing(blocks)
    assert words_of(blocks[0]) == (
        "The stack of the baseline and the candidate is unknown. Both sides alternated within 90 minutes, so we "
        "assume that the same server answered both. Canary probes in that time: mini stable."
    )
    alone = comparability.find_blocks(unknown, unknown, treatment, window={"hours": 7.0, "canaries": []})
    assert words_of(alone[0]).endswith(
        "alternated within 7 hours, so we assume that the same server answered both. No canary probe ran in that time."
    )


def test_a_window_is_no_word_where_what_served_is_known() -> None:
    assert codes(comparability.find_blocks(ASKED, served(**NEWER), window={"hours": 1.0, "canaries": []})) == [
        "rebaseline"
    ]


def test_two_sides_batched_as_cases_came_say_nothing_of_the_stack() -> None:
    mixed = served(batch_class="mixed")
    assert codes(found(mixed, STACK_TREATMENT, baseline=mixed)) == ["batch_class", "stack_unchanged"]


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
        (served(batch_class="mixed"), ["at batch size 1", "in batches as cases came"]),
    ],
)
def test_a_block_names_what_moved_with_both_values(candidate: SideSetup, values: list[str]) -> None:
    (block,) = found(candidate)
    for value in values:
        assert value in words_of(block)


def test_a_release_of_a_stack_names_what_it_judges_and_two_models() -> None:
    assert "vLLM 0.31.2 → 0.32.0" in words_of(found(served(**NEWER), STACK_TREATMENT)[0])
    assert "paint-1b, aaaaaaaa → paint-2b, 00000000" in words_of(found(served(**OTHER_MODEL), STACK_TREATMENT)[0])


def test_two_buckets_on_one_side_are_named_with_their_shares_and_what_differs() -> None:
    served_by = [replace(SERVED, backend="A", share=0.94), replace(SERVED, backend="pool-b", share=0.06, **NEWER)]
    mixed = replace(ASKED, served=served_by)
    (block,) = found(mixed)
    assert "backend A (batch size 1) 94 % and backend pool-b (batch size 1) 6 %" in words_of(block)
    assert "vLLM 0.31.2 → 0.32.0" in words_of(block)
    assert [moved["field"] for moved in block.facts["moved"]] == ["versions.vllm"]


def worst(**changes: Any) -> SideSetup:
    serving = replace(SERVED, batch_class="mixed", **NEWER)
    return replace(ASKED, suite_digest="0", scorer_digest="0", max_tokens=1, served=[serving, SERVED], **changes)


def test_every_block_says_what_happened_in_sentences_the_gravest_first() -> None:
    blocks = found(worst())
    assert len(blocks) == 6
    assert codes(blocks) == sorted(codes(blocks), key=BLOCK_ORDER.index)
    for block in blocks:
        assert words_of(block).endswith(".")
        assert len(words_of(block)) > 30


def test_every_code_has_a_sentence_and_facts_that_json_holds() -> None:
    assert set(BLOCKS) == set(BLOCK_ORDER)
    for block in found(worst()):
        assert json.loads(json.dumps(block.facts)) == block.facts


@pytest.mark.parametrize("logged", [(True, True), (True, False), (False, True)])
def test_another_suite_is_one_of_logs_only_where_both_sides_are_logs(logged: tuple[bool, bool]) -> None:
    ours, theirs = (replace(ASKED, is_logged=each) for each in logged)
    [block] = comparability.find_blocks(ours, replace(theirs, suite_digest="0" * 64, suite_version="colours v2"))
    assert (block.code, block.facts.get("are_logged", False)) == ("suite_changed", all(logged))
