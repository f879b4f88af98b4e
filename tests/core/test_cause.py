"""Each planted fault is named, with its numbers; what is not known is never blamed; error rates hold as stated."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import measured_table
from evalboard.core.compare.cause import CAUSE_CODES, CAUSES, Cause, find_cause, find_same_but_for
from evalboard.core.compare.comparison import is_larger
from evalboard.core.compare.divergence import Divergence, find_divergence, find_text_divergence
from evalboard.core.compare.known_pair import KnownResponse, Pair
from evalboard.core.stats.numeric_noise import ZERO_NOISE, LogitNoise, choose_larger_noise, median_sd
from evalboard.core.trace import codec
from evalboard.core.trace.trace import TokenTrace, make_trace
from evalboard.wording.cause import REASONS, explain_cause
from tests.core import stacks

RECORDED = codec.read_block((Path(__file__).parent / "data" / "smollm2-bfloat16.evt").read_bytes())
ASSUMED = choose_larger_noise((None, "bfloat16"), (None, "bfloat16"), ulp=0.0625)
SIDE = KnownResponse(
    text="The cat sat.",
    score=1.0,
    scorer_digest="5c" * 32,
    weights_digest="aa" * 32,
    model_revision="v1",
    model_name="lab/paint-1b",
    template_digest="7e" * 32,
    prompt_digest="99" * 16,
    n_prompt_tokens=31,
    fingerprint="f1" * 32,
    backend="node-1",
    finish_reason="stop",
    ending="complete",
    max_tokens=256,
    stop=(),
    temperature=0.0,
)


def named(
    found: Divergence | None, *, noise: LogitNoise = ASSUMED, base: KnownResponse = SIDE, **candidate: object
) -> Cause:
    """The cause where the candidate differs from the baseline in these facts; its sentence must be sayable."""
    cause = find_cause(Pair(base, replace(base, **candidate)), found, noise)  # type: ignore[arg-type]
    assert json.loads(json.dumps(cause.evidence, allow_nan=False)) is not None
    assert explain_cause(cause).endswith((".", ")."))
    assert "None" not in explain_cause(cause)
    return cause


def decoded(trace: TokenTrace, logprobs: np.ndarray, ranks: np.ndarray) -> TokenTrace:
    """The trace with other logprobs, and by position the alternative that is chosen."""
    rows = np.arange(len(trace))
    return TokenTrace(trace.alternative_ids[rows, ranks], logprobs[rows, ranks], trace.alternative_ids, logprobs)


def drifted(trace: TokenTrace, rng: np.random.Generator, sd: float) -> TokenTrace:
    """The trace from a stack whose logits are off by sd nats each, decoded greedily."""
    moved = trace.alternative_logprobs + rng.normal(0, sd, trace.alternative_logprobs.shape).astype(np.float32)
    return decoded(trace, moved, moved.argmax(axis=1))


def with_choice(trace: TokenTrace, position: int, rank: int) -> TokenTrace:
    ranks = (trace.alternative_ids == trace.token_ids[:, None]).argmax(axis=1)
    ranks[position] = rank
    return decoded(trace, trace.alternative_logprobs, ranks)


def longest() -> TokenTrace:
    return max(RECORDED, key=len)


def cut(trace: TokenTrace, n: int) -> TokenTrace:
    return TokenTrace(
        trace.token_ids[:n], trace.logprobs[:n], trace.alternative_ids[:n], trace.alternative_logprobs[:n]
    )


def test_a_planted_near_tie_is_named_with_its_margins() -> None:
    trace = longest()
    position = int(np.flatnonzero((trace.margins() > 0) & (trace.margins() <= 0.125))[0])
    moved = trace.alternative_logprobs.copy()
    moved[position] = moved[position, ::-1]
    cause = named(find_divergence(trace, decoded(trace, moved, moved.argmax(axis=1))), text="The dog.", score=0.0)
    assert cause.code == "near_tie"
    cut_later = named(find_divergence(trace, decoded(trace, moved, moved.argmax(axis=1))), text="x", ending="cut")
    assert cut_later.code == "near_tie"
    parting = find_divergence(trace, decoded(trace, moved, moved.argmax(axis=1)))
    assert named(parting, text="x", stop=("\n",), max_tokens=128, finish_reason=None).code == "near_tie"
    margin = float(trace.margins()[position])
    assert cause.evidence["flip"] == position
    assert cause.evidence["movement"] == pytest.approx(2 * margin)
    assert cause.evidence["ulps"] == pytest.approx(2 * margin / 0.0625)
    assert cause.evidence["is_assumed"]
    assert cause.evidence["assumed_dtype"] == "bfloat16"
    assert f"A near tie at position {position}" in explain_cause(cause)
    assert "(standard deviation 0.090 nats, assumed for bfloat16)" in explain_cause(cause)


def test_a_planted_sampler_that_does_not_take_the_top_is_named_where_it_happened() -> None:
    trace = longest()
    position = int(np.flatnonzero(trace.margins() > 1.0)[10])
    cause = named(find_divergence(trace, with_choice(trace, position, 1)), text="The dog.")
    assert cause.code == "sampler_fault"
    assert cause.evidence == {"not_greedy_candidate": position, "flip": position}
    assert f"the candidate did not choose its most likely token at position {position}" in explain_cause(cause)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        pytest.param({"temperature": 0.7}, "drawn", id="warm"),
        pytest.param({"temperature": None}, "unknown_temperature", id="not-known"),
        pytest.param({"is_adjusted": True}, "drawn", id="penalties"),
    ],
)
def test_a_token_below_the_top_is_no_fault_where_the_sampler_may_take_it(setting: dict, reason: str) -> None:
    trace = longest()
    position = int(np.flatnonzero(trace.margins() > 1.0)[10])
    cause = named(
        find_divergence(trace, with_choice(trace, position, 1)), text="The dog.", base=replace(SIDE, **setting)
    )
    assert (cause.code, cause.evidence["reason"]) == ("unknown", reason)


@pytest.mark.parametrize("temperature", [0.0, 0.7, None])
def test_without_alternatives_nobody_knows_whether_a_token_was_drawn(temperature: float | None) -> None:
    one, other = (make_trace([1, 1, last], [-0.1, -0.1, -0.7], [[], [], []]) for last in (2, 3))
    cause = named(find_divergence(one, other), text="x", base=replace(SIDE, temperature=temperature))
    assert (cause.code, cause.evidence["reason"]) == ("unknown", "no_alternatives")


SCHEMA = "response_format 1f0c22aa"


@pytest.mark.parametrize("facts", [{}, {"fingerprint": "f2" * 32}])
def test_a_constraint_of_one_side_is_neither_a_shift_nor_a_fault(facts: dict) -> None:
    """Where the engine reads logprobs before the mask, a token below the top; where after it, another top."""
    trace = longest()
    position = int(np.flatnonzero(trace.margins() > 1.0)[10])
    masked = trace.alternative_logprobs.copy()
    masked[position, 0] = -np.inf
    both = replace(SIDE, constraint=SCHEMA)
    for other in (with_choice(trace, position, 1), decoded(trace, masked, masked.argmax(axis=1))):
        parting = find_divergence(trace, other)
        cause = named(parting, text="{}", constraint=SCHEMA, **facts)
        assert (cause.code, cause.numeric) == (("backend_changed", "constrained") if facts else ("constrained", None))
        assert f"on the candidate's side by {SCHEMA}" in explain_cause(cause)
        assert named(parting, base=both, text="{}", constraint=SCHEMA, **facts).code == cause.code
    assert named(find_text_divergence("The cat sat.", "{}"), text="{}", constraint=SCHEMA).code == "constrained"
    shifted = find_divergence(trace, drifted(trace, np.random.default_rng(5), 0.25))
    assert named(shifted, text="x", constraint=SCHEMA).code == "constrained"
    assert named(shifted, base=both, text="x", constraint=SCHEMA).code == "larger_shift"  # each took its top
    assert named(find_divergence(trace, cut(trace, 40)), base=both, text="x", constraint=SCHEMA).code == "unknown"


def test_draws_under_one_schema_are_draws() -> None:
    trace = longest()
    position = int(np.flatnonzero(trace.margins() > 1.0)[10])
    base = replace(SIDE, constraint=SCHEMA, temperature=0.7)
    cause = named(find_divergence(trace, with_choice(trace, position, 1)), base=base, text="{}")
    assert (cause.code, cause.evidence["reason"]) == ("unknown", "drawn")


def test_a_token_that_one_side_lists_as_forbidden_was_masked() -> None:
    shared = [(1, -0.1), (2, -2.5)]
    one = make_trace([1, 1, 1, 1, 3], [-0.1] * 5, [*[shared] * 4, [(3, -0.1), (4, -2.5)]])
    other = make_trace([1, 1, 1, 1, 4], [-0.1] * 4 + [0.0], [*[shared] * 4, [(4, 0.0), (3, -9999.0)]])
    cause = named(find_divergence(one, other), text="x")
    assert cause.code == "constrained"
    assert "A grammar, a schema or a forced tool call" in explain_cause(cause)


def test_a_near_tie_under_a_constraint_stays_one() -> None:
    trace = longest()
    position = int(np.flatnonzero((trace.margins() > 0) & (trace.margins() <= 0.125))[0])
    moved = trace.alternative_logprobs.copy()
    moved[position] = moved[position, ::-1]
    parting = find_divergence(trace, decoded(trace, moved, moved.argmax(axis=1)))
    assert named(parting, text="The dog.", constraint=SCHEMA).code == "near_tie"
    nudged = find_divergence(trace, drifted(trace, np.random.default_rng(1), 1e-4))
    assert nudged.flip_position is not None or named(nudged, constraint=SCHEMA).code == "drift_only"


def moved_further(pairs: Sequence[Divergence], noise: LogitNoise) -> int:
    """How many of the pairs moved further than noise explains, each a case of its own."""
    found = [named(pair, noise=noise, text="x" if pair.flip_position is not None else "The cat.") for pair in pairs]
    numbers = [(each.evidence.get("ratio"), each.evidence.get("threshold")) for each in found]
    return sum(is_larger(each.code, each.numeric, *read) is True for each, read in zip(found, numbers, strict=True))


def test_a_planted_quantised_backend_on_six_percent_of_responses_is_counted() -> None:
    """800 responses of recorded traces, 48 of them decoded by a stack that is off by 0.25 nats a logit."""
    rng = np.random.default_rng(20261121)
    answers = [trace for trace in RECORDED if len(trace) > 20]
    found = stacks.find_partings(
        (trace, drifted(trace, rng, 0.25) if index % 50 in (3, 20, 41) else drifted(trace, rng, 0.02))
        for index, trace in ((index, answers[index % len(answers)]) for index in range(800))
    )
    assert moved_further(found, ASSUMED) == pytest.approx(48, abs=12)
    shifted = [named(pair, text="x").code for index, pair in enumerate(found) if index % 50 in (3, 20, 41)]
    assert Counter(shifted).most_common(1)[0][0] == "larger_shift"


def test_a_planted_chat_template_is_named_by_its_prompt() -> None:
    found = find_divergence(RECORDED[0], RECORDED[1])
    cause = named(found, text="The dog.", prompt_digest="11" * 16, template_digest="22" * 32, n_prompt_tokens=35)
    assert cause.code == "prompt_mismatch"
    assert explain_cause(cause) == "The prompts' token ids differ: 31 → 35 tokens, chat template 7e7e7e7e → 22222222."


def test_a_template_is_not_blamed_where_it_made_the_same_prompt() -> None:
    trace = longest()
    moved = drifted(trace, np.random.default_rng(1), 0.01)
    assert named(find_divergence(cut(trace, 3), cut(moved, 3)), template_digest="22" * 32).code == "drift_only"


@pytest.mark.parametrize(
    ("facts", "is_found"),
    [
        pytest.param({}, True, id="nothing-known"),
        pytest.param({"n_prompt_tokens": 31}, False, id="as-many-tokens"),
        pytest.param({"n_prompt_tokens": 35}, True, id="other-number"),
        pytest.param({"template_digest": "22" * 32}, True, id="other-template"),
    ],
)
def test_another_prompt_shows_in_how_the_answers_start_where_no_ids_are_kept(facts: dict, is_found: bool) -> None:
    one = make_trace([1, 2], [-0.1, -0.1], [[(1, -0.1), (2, -2.5)], [(2, -0.1), (3, -2.5)]])
    other = make_trace([1, 4], [-1.3, -0.1], [[(1, -1.3), (7, -1.4)], [(4, -0.1), (3, -2.5)]])
    known = SIDE if "template_digest" in facts else replace(SIDE, template_digest=None)
    base = replace(known, prompt_digest=None, n_prompt_tokens=31 if "n_prompt_tokens" in facts else None)
    cause = named(find_divergence(one, other), base=base, text="x", **facts)
    assert (cause.code == "prompt_mismatch") == is_found


@pytest.mark.parametrize(("flip", "is_found"), [pytest.param(5, True, id="sixth"), pytest.param(6, False, id="later")])
def test_other_prompts_part_answers_within_the_first_six_tokens(flip: int, is_found: bool) -> None:
    shared = [[(1, -0.1), (2, -2.5)]] * (flip - 1)
    one = make_trace([1] * flip + [2], [-0.1] * (flip + 1), [[(1, -0.1), (2, -2.5)], *shared, [(2, -0.1), (3, -2.5)]])
    logprobs = [-1.3, *[-0.1] * flip]
    other = make_trace([1] * flip + [4], logprobs, [[(1, -1.3), (7, -1.4)], *shared, [(4, -0.1), (3, -2.5)]])
    base = replace(SIDE, prompt_digest=None, n_prompt_tokens=None)
    assert (named(find_divergence(one, other), base=base, text="x").code == "prompt_mismatch") == is_found


NOTHING_KNOWN = replace(SIDE, prompt_digest=None, n_prompt_tokens=None)


@pytest.mark.parametrize(
    ("top", "second", "noise", "is_found"),
    [
        pytest.param(-0.8, 2, ASSUMED, False, id="one-top-two-less-than-a-nat"),
        pytest.param(-0.8, 7, ASSUMED, True, id="other-top-two-beyond-noise"),
        pytest.param(-1.2, 2, ASSUMED, True, id="one-top-two-more-than-a-nat"),
        pytest.param(-1.2, 7, LogitNoise(1.0), True, id="more-than-a-nat-within-large-noise"),
    ],
)
def test_a_start_shows_another_prompt_by_its_top_two_or_by_a_nat(
    top: float, second: int, noise: LogitNoise, is_found: bool
) -> None:
    one = make_trace([1, 2], [-0.1, -0.1], [[(1, -0.1), (2, -3.5)], [(2, -0.1), (3, -2.5)]])
    other = make_trace([1, 4], [top, -0.1], [[(1, top), (second, -3.5)], [(4, -0.1), (3, -2.5)]])
    cause = named(find_divergence(one, other), noise=noise, base=NOTHING_KNOWN, text="x")
    assert (cause.code == "prompt_mismatch") == is_found


@pytest.mark.parametrize(
    ("facts", "code"),
    [({"constraint": "response_format 1f0c22aa"}, "constrained"), ({"weights_digest": "bb" * 32}, "model_changed")],
)
def test_a_start_that_something_else_explains_shows_no_other_prompt(facts: dict, code: str) -> None:
    one = make_trace([1, 2], [-0.1, -0.1], [[(1, -0.1), (2, -3.5)], [(2, -0.1), (3, -2.5)]])
    other = make_trace([1, 4], [-1.3, -0.1], [[(1, -1.3), (7, -1.4)], [(4, -0.1), (3, -2.5)]])
    cause = named(find_divergence(one, other), base=NOTHING_KNOWN, text="x", **facts)
    assert (cause.code, "also_moved" in cause.evidence) == (code, False)


def test_a_changed_second_place_within_noise_is_no_other_prompt() -> None:
    one = make_trace([1, 2], [-0.1, -0.7], [[(1, -0.1), (2, -3.5)], [(2, -0.7), (3, -0.71)]])
    other = make_trace([1, 3], [-0.12, -0.7], [[(1, -0.12), (9, -3.5)], [(3, -0.7), (2, -0.71)]])
    base = replace(SIDE, prompt_digest=None, n_prompt_tokens=None)
    assert named(find_divergence(one, other), base=base, text="x").code == "near_tie"


@pytest.mark.parametrize(
    ("reasons", "limits", "code"),
    [
        pytest.param(("stop", "length"), {}, "length", id="finish-reasons"),
        pytest.param(("length", "length"), {"max_tokens": 128}, "length", id="token-limits"),
        pytest.param(("stop", "stop"), {"stop": ("\n",)}, "length", id="stop-texts"),
        pytest.param(("stop", "stop"), {}, "unknown", id="no-limit-explains-it"),
        pytest.param((None, "length"), {}, "unknown", id="one-ending-is-unknown"),
    ],
)
def test_a_planted_truncation_is_named(reasons: tuple[str | None, str], limits: dict, code: str) -> None:
    trace = longest()
    found = find_divergence(trace, cut(trace, 40))
    base = replace(SIDE, text="A long answer", finish_reason=reasons[0])
    cause = named(found, base=base, text="A long", finish_reason=reasons[1], **limits)
    assert cause.code == code
    if code == "length":
        assert cause.evidence["shorter"] == "candidate"
        assert f"{len(trace)} tokens (baseline), 40 (candidate)" in explain_cause(cause)


@pytest.mark.parametrize(
    ("gap", "code"), [pytest.param(0.05, "near_tie", id="near-tie"), pytest.param(3.0, "length", id="clear")]
)
def test_an_end_token_at_a_near_tie_is_a_near_tie(gap: float, code: str) -> None:
    shared = [(1, -0.1), (2, -2.5)]
    one = make_trace([1, 1, 1, 0], [-0.1] * 4, [shared, shared, shared, [(0, -0.1), (5, -0.1 - gap)]])
    other = make_trace([1, 1, 1, 5, 6], [-0.1] * 5, [shared, shared, shared, [(5, -0.1), (0, -0.15)], shared])
    base = replace(SIDE, text="Yes", finish_reason="stop")
    assert named(find_divergence(one, other), base=base, text="Yes, and", finish_reason="length").code == code
    longer = replace(SIDE, text="Yes, and", finish_reason="length")
    back = named(find_divergence(other, one), base=longer, text="Yes", finish_reason="stop")
    assert (back.code, back.evidence.get("shorter", "candidate")) == (code, "candidate")


@pytest.mark.parametrize(
    ("one", "other", "how"),
    [
        ("a  b\n", "a b", "spacing"),
        ("a b\r\n", "a b", "spacing"),
        ("e\u0301t\u00e9", "\u00e9te\u0301", "spacing"),
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', "json"),
        ('"caf\\u00e9"', '"café"', "json"),
        ("ab", "a b", None),
        ("\ufb01t", "fit", None),  # Unicode's compatibility forms are other characters
        ('{"a": 1}', '{"a": 1.0}', None),
        ('{"a": true}', '{"a": 1}', None),
        ("[" * 5000, "[" * 5001, None),
        ("", " \n", "spacing"),
    ],
)
def test_what_two_texts_are_the_same_but_for(one: str, other: str, how: str | None) -> None:
    assert find_same_but_for(one, other) == find_same_but_for(other, one) == how


def test_a_planted_whitespace_change_that_costs_the_score_points_at_the_scorer() -> None:
    trace = longest()
    found = find_divergence(trace, with_choice(trace, 5, 1))
    cause = named(found, text="The cat  sat.\n", score=0.0)
    assert cause.code == "whitespace"
    assert "Check the scorer." in explain_cause(cause)
    assert "Check" not in explain_cause(named(found, text="The cat  sat.\n"))


def test_beside_another_prompt_the_logprobs_say_nothing() -> None:
    found = find_divergence(longest(), with_choice(longest(), 5, 1))
    numbers = named(found, text="x").evidence
    assert "flip" in numbers
    assert numbers.items() <= named(found, text="x", weights_digest="bb" * 32).evidence.items()
    prompted = named(found, text="x", prompt_digest="11" * 16)
    assert (prompted.code, prompted.numeric) == ("prompt_mismatch", None)
    assert not numbers.keys() & prompted.evidence.keys()


def test_a_prompt_that_is_judged_is_not_named_twice() -> None:
    pair = Pair(SIDE, replace(SIDE, text="x", prompt_digest="11" * 16), has_other_prompt=True)
    cause = find_cause(pair, find_divergence(longest(), with_choice(longest(), 5, 1)), ASSUMED)
    assert (cause.code, "also_moved" in cause.evidence) == ("prompt_changed", False)


@pytest.mark.parametrize(
    ("n_baseline", "n_candidate", "is_inside"),
    [(10, 10, True), (6, 6, True), (10, 3, False), (10, 5, False), (3, 10, False), (5, 10, False)],
)
def test_a_parting_is_inside_the_thinking_only_where_both_still_think(
    n_baseline: int, n_candidate: int, is_inside: bool
) -> None:
    base = replace(SIDE, n_reasoning_tokens=n_baseline)
    found = find_divergence(longest(), with_choice(longest(), 5, 1))
    cause = named(found, base=base, text="x", n_reasoning_tokens=n_candidate)
    assert ("in_reasoning_at" in cause.evidence) == is_inside
    moved = drifted(longest(), np.random.default_rng(1), 0.01)
    drifting = named(find_divergence(cut(longest(), 3), cut(moved, 3)), base=base, n_reasoning_tokens=n_candidate)
    assert (drifting.code, "in_reasoning_at" in drifting.evidence) == ("drift_only", False)


def test_a_planted_scorer_is_named_before_everything_else() -> None:
    cause = named(None, score=0.0, scorer_digest="6d" * 32, weights_digest="bb" * 32)
    assert cause.code == "scorer"
    assert (
        explain_cause(cause)
        == "Same answer, different grade: the score went from 1.0 to 0.0 (scorer 5c5c5c5c → 6d6d6d6d)."
    )
    assert "from 1.0 to 0.0 (one scorer, 5c5c5c5c)." in explain_cause(named(None, score=0.0))


def test_a_score_that_is_not_known_has_not_moved() -> None:
    assert named(None, score=None).code == "identical"
    assert named(None, base=replace(SIDE, score=None), score=0.0).code == "identical"


@pytest.mark.parametrize("sides", [(True, False), (False, True)])
def test_where_a_side_is_scored_by_its_thinking_other_tokens_explain_another_score(sides: tuple[bool, bool]) -> None:
    found = find_divergence(longest(), with_choice(longest(), 5, 1))
    base = replace(SIDE, is_thinking_scored=sides[0])
    assert named(found, base=base, score=0.0, is_thinking_scored=sides[1]).code != "scorer"
    assert (
        named(found, score=0.0).code == named(None, base=base, score=0.0, is_thinking_scored=sides[1]).code == "scorer"
    )


@pytest.mark.parametrize("side", ["baseline", "candidate", "both"])
def test_a_planted_failed_call_is_an_error_and_says_which_side(side: str) -> None:
    failed = KnownResponse(has_response=False, error_code="timeout")
    pair = Pair(failed if side != "candidate" else SIDE, failed if side != "baseline" else SIDE)
    cause = find_cause(pair, None, ASSUMED)
    assert cause.code == "error"
    assert "(timeout)" in explain_cause(cause)
    assert explain_cause(cause).endswith("The case counts as missing.")


@pytest.mark.parametrize(
    ("found", "compared"),
    [(None, "trace"), (find_divergence(RECORDED[0], RECORDED[0]), "trace"), (find_text_divergence("x", "x"), "text")],
)
def test_equal_responses_are_identical_whatever_served_them(found: Divergence | None, compared: str) -> None:
    cause = named(found, weights_digest="bb" * 32, fingerprint="f2" * 32)
    assert (cause.code, cause.evidence) == ("identical", {"compared": compared})


def test_texts_alone_are_unknown_and_say_so() -> None:
    cause = named(find_text_divergence("The cat sat.", "The dog."), text="The dog.")
    assert (cause.code, cause.evidence["text_position"]) == ("unknown", 4)
    assert explain_cause(cause) == REASONS["no_logprobs"].text


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"weights_digest": "bb" * 32}, "model_changed"),
        ({"model_revision": "v2"}, "model_changed"),
        ({"fingerprint": "f2" * 32}, "backend_changed"),
        ({"backend": "node-2"}, "backend_changed"),
        ({"model_name": "lab/paint-2b"}, "model_name_changed"),
    ],
)
@pytest.mark.parametrize(("sd", "numeric"), [(0.0, "near_tie"), (0.25, "larger_shift")])
def test_a_changed_model_or_backend_says_beside_it_what_the_numbers_look_like(
    facts: dict, code: str, sd: float, numeric: str
) -> None:
    rng = np.random.default_rng(5)
    trace = longest()
    position = int(np.flatnonzero((trace.margins() > 0) & (trace.margins() <= 0.125))[0])
    moved = drifted(trace, rng, sd).alternative_logprobs.copy()
    moved[position] = trace.alternative_logprobs[position, ::-1]
    cause = named(find_divergence(trace, decoded(trace, moved, moved.argmax(axis=1))), text="The dog.", **facts)
    assert (cause.code, cause.numeric) == (code, numeric)
    assert ("near tie" in explain_cause(cause)) == (numeric == "near_tie")
    assert "more than noise explains" in explain_cause(cause) or numeric == "near_tie"


def test_drift_alone_leaves_numeric_empty_unless_it_is_larger_than_noise() -> None:
    trace = cut(longest(), 3)
    nudged = replace(trace, alternative_logprobs=trace.alternative_logprobs - np.float32([0, 0.01]))
    moved = replace(trace, alternative_logprobs=trace.alternative_logprobs - np.float32([0, 0.9]))
    for other, numeric in ((nudged, None), (moved, "larger_shift")):
        cause = named(find_divergence(trace, other), fingerprint="f2" * 32)
        assert (cause.code, cause.numeric) == ("backend_changed", numeric)
    assert named(find_divergence(trace, moved)).code == "drift_only"


@pytest.mark.parametrize(
    ("noise", "code"),
    [
        pytest.param(choose_larger_noise((None, "float32"), (None, "float32")), "larger_shift", id="float32"),
        pytest.param(choose_larger_noise((None, "float16"), (None, "float16")), "larger_shift", id="float16"),
        pytest.param(choose_larger_noise((None, "float32"), (None, "bfloat16")), "near_tie", id="coarser-side-counts"),
        pytest.param(choose_larger_noise((None, None), (None, None)), "near_tie", id="dtype-not-known"),
        pytest.param(choose_larger_noise((0.01, "bfloat16"), (0.02, "bfloat16")), "larger_shift", id="measured"),
        pytest.param(choose_larger_noise((0.01, "bfloat16"), (0.02, "bfloat16"), ulp=0.125), "near_tie", id="two-ulps"),
    ],
)
def test_a_tie_is_near_or_not_by_the_noise_never_by_a_fixed_number(noise: LogitNoise, code: str) -> None:
    shared = [(1, -0.1), (2, -2.5)]
    one = make_trace([1, 1, 1, 3], [-0.1] * 3 + [-0.6], [shared, shared, shared, [(3, -0.6), (5, -0.7)]])
    other = make_trace([1, 1, 1, 5], [-0.1] * 3 + [-0.6], [shared, shared, shared, [(5, -0.6), (3, -0.7)]])
    assert named(find_divergence(one, other), noise=noise, text="x").code == code


def test_a_short_prefix_is_judged_by_its_flip_alone_and_says_so() -> None:
    one = make_trace([1], [-0.6], [[(1, -0.6), (2, -0.7)]])
    other = make_trace([2], [-0.6], [[(2, -0.6), (1, -0.7)]])
    cause = named(find_divergence(one, other), text="x")
    assert (cause.code, cause.evidence["is_low_confidence"], cause.evidence["ratio"]) == ("near_tie", True, None)
    assert "Low confidence" in explain_cause(cause)


def test_a_rival_that_is_not_listed_proves_no_tie() -> None:
    one = make_trace([1], [-1.0], [[(1, -1.0), (2, -1.0)]])
    other = make_trace([3], [-1.0], [[(3, -1.0), (1, -1.0)]])
    cause = named(find_divergence(one, other), text="x")
    assert (cause.code, cause.evidence["reason"]) == ("unknown", "not_listed")


def test_same_tokens_with_another_text_are_not_called_identical() -> None:
    assert named(None, text="The cat sat. And").evidence["reason"] == "text"
    assert named(None, text="The cat sat. And", stop=(" And",)).code == "length"
    assert named(None, text="The cat sat. And", constraint=SCHEMA).code == "unknown"


def test_other_limits_cut_no_answer_of_equal_text() -> None:
    moved = drifted(longest(), np.random.default_rng(1), 0.01)
    found = find_divergence(cut(longest(), 3), cut(moved, 3))
    assert named(found, stop=("\n",), max_tokens=128, finish_reason="length").code == "drift_only"


def test_an_ending_that_one_log_does_not_tell_is_no_cause() -> None:
    assert named(None, text="x", ending=None).code == "unknown"
    assert named(None, text="x", ending="refused").code == "refused"
    for ending in ("cut", None):  # both cut, or nobody knows
        assert named(None, base=replace(SIDE, ending="cut"), text="x", ending=ending).code == "unknown"


def test_the_list_of_causes_is_closed_and_in_the_order_of_the_tests() -> None:
    listed = (
        "error identical scorer prompt_changed model_changed prompt_mismatch sampling_changed backend_changed "
        "model_name_changed leak silent_change seed_ignored whitespace length filtered refused empty cut constrained "
        "sampler_fault drift_only near_tie larger_shift unknown"
    )
    assert " ".join(CAUSES) == listed
    assert [CAUSE_CODES[cause] for cause in CAUSES] == list(range(24))


@pytest.mark.parametrize(
    ("order", "facts"),
    [
        ("scorer", {"score": 0.0, "weights_digest": "b"}),
        ("model_changed", {"weights_digest": "b", "prompt_digest": "b", "text": "x"}),
        ("prompt_mismatch", {"prompt_digest": "b", "fingerprint": "b", "text": "x"}),
        ("sampling_changed", {"temperature": 0.5, "fingerprint": "b", "text": "The  cat sat."}),
        ("backend_changed", {"fingerprint": "b", "model_name": "b", "text": "The  cat sat."}),
        ("model_name_changed", {"model_name": "b", "text": "The  cat sat."}),
        ("whitespace", {"text": "The  cat sat.", "finish_reason": "length"}),
        ("length", {"text": "The cat sat. And", "finish_reason": "length"}),
        ("filtered", {"text": "x", "ending": "filtered", "finish_reason": "safety"}),
        ("cut", {"text": "x", "ending": "cut", "finish_reason": "max_tokens"}),
        ("sampler_fault", {"text": "x"}),
    ],
)
def test_the_first_test_that_holds_decides(order: str, facts: dict) -> None:
    trace = cut(longest(), 12)
    found = find_divergence(trace, cut(with_choice(longest(), 11, 1), 12))
    assert found.flip_position == 11
    assert named(found, **facts).code == order


@pytest.mark.parametrize("fact", ["weights_digest", "prompt_digest", "template_digest", "fingerprint", "backend"])
def test_what_is_not_known_is_never_taken_to_differ(fact: str) -> None:
    trace = cut(longest(), 3)
    nudged = replace(trace, alternative_logprobs=trace.alternative_logprobs - np.float32([0, 0.01]))
    assert named(find_divergence(trace, nudged), **{fact: None}).code == "drift_only"


SAMPLED = replace(SIDE, temperature=0.7, seed=42, bucket=1, sampling={"top_p": 0.9, "presence_penalty": 0.0})


@pytest.mark.parametrize(
    ("sampling", "temperature", "is_changed"),
    [
        pytest.param({"top_p": 0.9, "presence_penalty": 0.0}, 0.2, True, id="temperature"),
        pytest.param({"top_p": 0.8, "presence_penalty": 0.0}, 0.7, True, id="top-p"),
        pytest.param({"top_p": 0.9, "presence_penalty": 0.5}, 0.0, True, id="penalty-at-zero"),
        pytest.param({"top_p": 0.8, "presence_penalty": 0.0}, 0.0, False, id="top-p-at-zero"),
        pytest.param({}, 0.7, False, id="not-known"),
    ],
)
def test_other_sampling_is_named_where_it_chooses_tokens(sampling: dict, temperature: float, is_changed: bool) -> None:
    base = SAMPLED if temperature else replace(SAMPLED, temperature=0.0)
    cause = named(
        find_divergence(longest(), with_choice(longest(), 11, 1)),
        base=base,
        text="x",
        temperature=temperature,
        sampling=sampling,
    )
    assert (cause.code == "sampling_changed") == is_changed
    if is_changed:
        assert " → " in explain_cause(cause)


@pytest.mark.parametrize(
    ("drift", "facts", "code"),
    [
        pytest.param(0.0, {}, "seed_ignored", id="same-bits"),
        pytest.param(1e-6, {}, "seed_ignored", id="next-to-no-noise"),
        pytest.param(1.5e-5, {}, "seed_ignored", id="nine-times-in-10000"),
        pytest.param(1.8e-5, {}, "unknown", id="eleven-times-in-10000"),
        pytest.param(0.02, {}, "unknown", id="noise-may-have-done-it"),
        pytest.param(0.0, {"seed": 43}, "unknown", id="another-seed"),
        pytest.param(0.0, {"seed": None}, "unknown", id="no-seed-known"),
        pytest.param(0.0, {"bucket": 2}, "unknown", id="another-bucket"),
        pytest.param(0.0, {"fingerprint": None}, "unknown", id="nobody-knows-what-served"),
    ],
)
def test_a_dropped_seed_is_named_where_noise_cannot_have_changed_the_draw(drift: float, facts: dict, code: str) -> None:
    trace = cut(longest(), 30)
    drawn = with_choice(trace, 20, 1)
    moved = replace(drawn, alternative_logprobs=drawn.alternative_logprobs - np.float32([0, drift]))
    cause = named(find_divergence(trace, moved), base=SAMPLED, text="x", **facts)
    assert cause.code == code
    if code == "unknown":
        assert cause.evidence["reason"] == ("drawn" if facts else "one_seed")
    else:
        assert (cause.evidence["seed"], cause.evidence["flip"]) == (42, 20)
        assert "The seed was ignored" in explain_cause(cause)


def test_noise_that_parts_draws_of_one_seed_is_not_blamed_on_the_seed() -> None:
    """Both sides share the Gumbel noise, as one seed gives it: what parts them is noise of the logits."""
    rng = np.random.default_rng(20261122)
    for noise in (1e-5, 0.03):
        found = [stacks.drawn_pair(rng, noise=noise, temperature=0.7, is_one_seed=True) for _ in range(400)]
        codes = [named(parting, base=SAMPLED, text="x").code for parting in stacks.find_partings(found)]
        assert codes.count("seed_ignored") <= 1


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("by", [1e-5, 0.3])
def test_any_bit_is_a_silent_change_where_noise_is_zero(by: float, temperature: float) -> None:
    trace = cut(longest(), 12)
    logprobs = trace.alternative_logprobs.copy()
    logprobs[4, 1] -= np.float32(by)
    cause = named(
        find_divergence(trace, replace(trace, alternative_logprobs=logprobs)),
        noise=ZERO_NOISE,
        base=replace(SIDE, temperature=temperature),
        text="x",
    )
    assert (cause.code, cause.evidence["drift_onset"]) == ("silent_change", 4)
    assert explain_cause(cause).endswith("Something changed that no fingerprint shows.")
    assert is_larger(cause.code, cause.numeric, None, None) is True


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        pytest.param({}, "sampler_fault", id="the-sampler-alone"),
        pytest.param({"temperature": 0.7}, "unknown", id="another-draw"),
        pytest.param({"weights_digest": "bb" * 32}, "model_changed", id="a-change-that-shows"),
    ],
)
def test_equal_bits_are_no_silent_change(facts: dict, code: str) -> None:
    trace = cut(longest(), 12)
    base = replace(SIDE, temperature=facts.get("temperature", 0.0))
    assert (
        named(find_divergence(trace, with_choice(trace, 11, 1)), noise=ZERO_NOISE, base=base, text="x", **facts).code
        == code
    )


def test_another_requests_continuation_is_suspected_with_the_command_that_decodes_it_again() -> None:
    shared = [(1, -0.1), (2, -2.5)]
    one = make_trace([1] * 6 + [3], [-0.1] * 7, [*[shared] * 6, [(3, -0.1), (5, -2.5)]])
    other = make_trace([1] * 6 + [7], [-0.1] * 7, [*[shared] * 6, [(7, -0.1), (9, -2.5)]])
    cause = named(find_divergence(one, other), text="x")
    assert (cause.code, cause.evidence["flip"]) == ("leak", 6)
    assert is_larger(cause.code, cause.numeric, None, None) is True
    said = explain_cause(cause, replay="evalboard replay 12 sum --repeat 1")
    assert said.endswith(
        "the continuation of another request. To see whether it happens again: evalboard replay 12 sum --repeat 1"
    )
    assert "evalboard" not in explain_cause(named(find_divergence(one, make_trace([2], [-0.1], [shared])), text="x"))


@pytest.mark.parametrize(
    ("first", "second", "facts"),
    [
        pytest.param([(3, -0.1), (5, -2.5)], [(7, -0.1), (5, -2.5)], {}, id="one-alternative-in-common"),
        pytest.param([(3, -1.39), (5, -1.4)], [(7, -1.39), (9, -1.4)], {}, id="four-tokens-alike-within-noise"),
        pytest.param([(3, -0.1), (5, -2.5)], [(7, -0.1), (9, -2.5)], {"prompt_digest": None}, id="other-prompts-maybe"),
    ],
)
def test_a_leak_is_not_suspected_where_logits_or_prompts_explain_it(first: list, second: list, facts: dict) -> None:
    found = find_divergence(*(make_trace([row[0][0]], [row[0][1]], [row]) for row in (first, second)))
    assert named(found, text="x", **facts).code != "leak"


def test_tokens_as_likely_as_each_other_within_noise_are_no_leak() -> None:
    shared, ours, theirs = [(1, -0.1), (2, -2.5)], [(3, -1.39), (5, -1.4)], [(7, -1.39), (9, -1.4)]
    one, other = (
        make_trace([1] * 6 + [row[0][0]], [-0.1] * 6 + [-1.39], [*[shared] * 6, row]) for row in (ours, theirs)
    )
    assert named(find_divergence(one, other), text="x").code != "leak"


def test_logits_that_moved_before_the_parting_are_no_leak() -> None:
    one = make_trace([1] * 6 + [3], [-0.1] * 7, [*[[(1, -0.1), (2, -2.5)]] * 6, [(3, -0.1), (5, -2.5)]])
    other = make_trace([1] * 6 + [7], [-0.1] * 7, [*[[(1, -0.1), (2, -4.5)]] * 6, [(7, -0.1), (9, -2.5)]])
    assert named(find_divergence(one, other), text="x").code == "larger_shift"


@pytest.mark.parametrize(("n_shared", "is_leak"), [(2, False), (3, True)])
def test_beside_a_drift_a_leak_takes_three_positions_that_agree(n_shared: int, is_leak: bool) -> None:
    one, other = (
        make_trace(
            [1] * n_shared + [last],
            [-0.1] * (n_shared + 1),
            [*[[(1, -0.1), (2, second)]] * n_shared, [(last, -0.1), (rival, -2.5)]],
        )
        for last, rival, second in ((3, 5, -2.5), (7, 9, -2.51))
    )
    assert (named(find_divergence(one, other), text="x").code == "leak") == is_leak


@pytest.mark.parametrize(
    ("facts", "code", "others", "names"),
    [
        pytest.param(
            {"weights_digest": "bb" * 32, "prompt_digest": "11" * 16, "max_tokens": 128, "finish_reason": "length"},
            "model_changed",
            ["prompt_mismatch", "length"],
            "prompts and token limits",
            id="weights-prompt-and-limit",
        ),
        pytest.param(
            {"weights_digest": "bb" * 32, "max_tokens": 128, "finish_reason": None},
            "model_changed",
            ["length"],
            "token limits",
            id="a-limit-that-may-have-been-reached",
        ),
        pytest.param(
            {"prompt_digest": "11" * 16, "fingerprint": "f2" * 32},
            "prompt_mismatch",
            ["backend_changed"],
            "backends",
            id="prompt-and-backend",
        ),
        pytest.param(
            {"backend": "node-2", "model_name": "lab/paint-2b", "stop": ("\n",)},
            "backend_changed",
            ["model_name_changed", "length"],
            "model names and stop texts",
            id="backend-name-and-stop",
        ),
    ],
)
def test_what_else_differs_is_named_beside_the_first_cause(facts: dict, code: str, others: list, names: str) -> None:
    found = find_divergence(longest(), with_choice(longest(), 11, 1))
    cause = named(found, text="x", **facts)
    assert (cause.code, cause.evidence["also_moved"]) == (code, others)
    assert f"Confounded: {names} differ too" in explain_cause(cause)
    one_more = {name: value for name, value in facts.items() if name not in ("finish_reason", "text")}
    assert all(f"{name}_candidate" in cause.evidence for name in one_more)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"weights_digest": "bb" * 32}, id="one-thing-alone"),
        pytest.param({"weights_digest": "bb" * 32, "max_tokens": 128}, id="a-limit-that-neither-reached"),
        pytest.param({"model_revision": "v2", "model_name": "lab/paint-2b"}, id="another-name-of-another-model"),
        pytest.param({"weights_digest": "bb" * 32, "template_digest": "22" * 32}, id="another-template-same-prompt"),
    ],
)
def test_a_pair_is_not_confounded_by_what_is_no_second_cause(facts: dict) -> None:
    cause = named(find_divergence(longest(), with_choice(longest(), 11, 1)), text="x", **facts)
    assert cause.code == "model_changed"
    assert "also_moved" not in cause.evidence
    assert "onfounded" not in explain_cause(cause)


def test_every_planted_cause_of_the_measured_table_is_called_by_its_name() -> None:
    page = (measured_table.DOCS / "divergence.md").read_text(encoding="utf-8")
    table = measured_table.table_of(page, name="measured planted")
    rows = [line.split(" | ") for line in table.splitlines() if "`" in line]
    assert len(rows) > 20
    for name, _, called, share, _ in rows:
        assert float(share.removesuffix(" %")) >= 98, name
        assert set(re.findall(r"`(\w+)", called)) <= set(CAUSES)


def shares(codes: Sequence[str]) -> dict[str, float]:
    return {code: n / len(codes) for code, n in Counter(codes).items()}


@pytest.fixture(scope="module")
def measured() -> LogitNoise:
    """The noise of the simulated bucket, from pairs of its own repeats."""
    sd = median_sd(pair.shift_rms for pair in stacks.find_partings(stacks.pairs(200, seed=1)))
    return choose_larger_noise((sd, "bfloat16"), (sd, "bfloat16"), ulp=0.125)


def causes(measured: LogitNoise, **stack: float) -> dict[str, float]:
    found = stacks.find_partings(stacks.pairs(400, seed=7, **stack))  # type: ignore[arg-type]
    return shares([named(pair, noise=measured, text="x").code for pair in found if pair.flip_position is not None])


def test_error_rates_numeric_noise_is_called_a_near_tie(measured: LogitNoise) -> None:
    assert 0.05 < measured.sd < 0.12
    assert causes(measured)["near_tie"] >= 0.97


def test_error_rates_a_shift_of_three_sds_is_called_larger(measured: LogitNoise) -> None:
    assert causes(measured, shift=0.25)["larger_shift"] >= 0.95


def test_error_rates_a_shift_below_the_noise_is_mostly_not(measured: LogitNoise) -> None:
    assert causes(measured, shift=0.03).get("larger_shift", 0.0) <= 0.05


def test_error_rates_a_token_drawn_once_is_called_a_sampler_fault(measured: LogitNoise) -> None:
    """Where the draw is what parted them: pairs that numeric noise parted first are near ties, rightly."""
    found = stacks.find_partings(stacks.pairs(400, seed=9, is_drawn_once=True))
    drawn = [pair for pair in found if not pair.are_both_top]
    assert len(drawn) > 200
    assert shares([named(pair, noise=measured, text="x").code for pair in drawn])["sampler_fault"] >= 0.95


def test_error_rates_noise_alone_moves_at_most_one_case_in_a_hundred_further(measured: LogitNoise) -> None:
    found = stacks.find_partings(stacks.pairs(800, seed=11))
    assert moved_further(found, measured) <= 8


def test_error_rates_six_percent_rerouted_are_counted_as_about_six(measured: LogitNoise) -> None:
    found = stacks.find_partings(stacks.pairs(800, seed=13, shift=0.25, share_shifted=0.06))
    assert moved_further(found, measured) == pytest.approx(48, abs=8)


def test_a_text_that_begins_the_other_by_other_tokens_is_no_truncation() -> None:
    trace = longest()
    other = with_choice(trace, 40, 1)
    base = replace(SIDE, text="A long answer", finish_reason="stop")
    [parted, ended] = [
        named(find_divergence(trace, cut(each, n)), base=base, text="A long", finish_reason="length")
        for each, n in ((other, 60), (trace, 40))
    ]
    assert ended.code == "length"
    assert parted.code != "length"
