"""Each planted fault is named, with its numbers; what is not known is never blamed; error rates hold as stated."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evalboard.core import codec
from evalboard.core.cause import CAUSES, CODES, Cause, Pair, Side, decide, same_but_for
from evalboard.core.cause_words import REASONS, words
from evalboard.core.divergence import Divergence, find_divergence, find_text_divergence
from evalboard.core.larger_shifts import is_larger
from evalboard.core.numeric_noise import NumericNoise, noise_between, pooled_sd
from evalboard.core.trace import Trace, make_trace
from tests.core import stacks

RECORDED = codec.read_block((Path(__file__).parent / "data" / "smollm2-bfloat16.evt").read_bytes())
ASSUMED = noise_between((None, "bfloat16"), (None, "bfloat16"), ulp=0.0625)
SIDE = Side(
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
    max_tokens=256,
    stop=(),
    temperature=0.0,
)


def named(found: Divergence | None, *, noise: NumericNoise = ASSUMED, base: Side = SIDE, **candidate: object) -> Cause:
    """The cause where the candidate differs from the baseline in these facts; its sentence must be sayable."""
    cause = decide(Pair(base, replace(base, **candidate)), found, noise)  # type: ignore[arg-type]
    assert json.loads(json.dumps(cause.evidence, allow_nan=False)) is not None
    assert words(cause).endswith((".", ")."))
    assert "None" not in words(cause)
    return cause


def decoded(trace: Trace, logprobs: np.ndarray, ranks: np.ndarray) -> Trace:
    """The trace with other logprobs, and by position the alternative that is chosen."""
    rows = np.arange(len(trace))
    return Trace(trace.alternative_ids[rows, ranks], logprobs[rows, ranks], trace.alternative_ids, logprobs)


def drifted(trace: Trace, rng: np.random.Generator, sd: float) -> Trace:
    """The trace from a stack whose logits are off by sd nats each, decoded greedily."""
    moved = trace.alternative_logprobs + rng.normal(0, sd, trace.alternative_logprobs.shape).astype(np.float32)
    return decoded(trace, moved, moved.argmax(axis=1))


def with_choice(trace: Trace, position: int, rank: int) -> Trace:
    ranks = (trace.alternative_ids == trace.token_ids[:, None]).argmax(axis=1)
    ranks[position] = rank
    return decoded(trace, trace.alternative_logprobs, ranks)


def longest() -> Trace:
    return max(RECORDED, key=len)


def cut(trace: Trace, n: int) -> Trace:
    return Trace(trace.token_ids[:n], trace.logprobs[:n], trace.alternative_ids[:n], trace.alternative_logprobs[:n])


def test_a_planted_near_tie_is_named_with_its_margins() -> None:
    trace = longest()
    position = int(np.flatnonzero((trace.margins() > 0) & (trace.margins() <= 0.125))[0])
    moved = trace.alternative_logprobs.copy()
    moved[position] = moved[position, ::-1]
    cause = named(find_divergence(trace, decoded(trace, moved, moved.argmax(axis=1))), text="The dog.", score=0.0)
    assert cause.code == "near_tie"
    margin = float(trace.margins()[position])
    assert cause.evidence["flip"] == position
    assert cause.evidence["movement"] == pytest.approx(2 * margin)
    assert cause.evidence["ulps"] == pytest.approx(2 * margin / 0.0625)
    assert cause.evidence["is_assumed"]
    assert cause.evidence["assumed_dtype"] == "bfloat16"
    assert f"A near tie at position {position}" in words(cause)
    assert "noise 0.090 nats, assumed for bfloat16" in words(cause)


def test_a_planted_sampler_that_does_not_take_the_top_is_named_where_it_happened() -> None:
    trace = longest()
    position = int(np.flatnonzero(trace.margins() > 1.0)[10])
    cause = named(find_divergence(trace, with_choice(trace, position, 1)), text="The dog.")
    assert cause.code == "sampler_fault"
    assert cause.evidence == {"not_greedy_candidate": position, "flip": position}
    assert f"the candidate did not take the most likely token at position {position}" in words(cause)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        pytest.param({"temperature": 0.7}, "drawn", id="warm"),
        pytest.param({"temperature": None}, "drawn", id="not-known"),
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


def moved_further(pairs: Sequence[Divergence], noise: NumericNoise) -> int:
    """How many of the pairs moved further than noise explains, each a case of its own."""
    found = [named(pair, noise=noise, text="x" if pair.flip is not None else "The cat.") for pair in pairs]
    numbers = [(each.evidence.get("ratio"), each.evidence.get("threshold")) for each in found]
    return sum(is_larger(each.code, each.numeric, *read) is True for each, read in zip(found, numbers, strict=True))


def test_a_planted_quantised_backend_on_six_percent_of_responses_is_counted() -> None:
    """800 responses of recorded traces, 48 of them decoded by a stack that is off by 0.25 nats a logit."""
    rng = np.random.default_rng(20261121)
    answers = [trace for trace in RECORDED if len(trace) > 20]
    found = [
        find_divergence(trace, drifted(trace, rng, 0.25) if index % 50 in (3, 20, 41) else drifted(trace, rng, 0.02))
        for index, trace in ((index, answers[index % len(answers)]) for index in range(800))
    ]
    assert moved_further(found, ASSUMED) == pytest.approx(48, abs=12)
    shifted = [named(pair, text="x").code for index, pair in enumerate(found) if index % 50 in (3, 20, 41)]
    assert Counter(shifted).most_common(1)[0][0] == "larger_shift"


def test_a_planted_chat_template_is_named_by_its_prompt() -> None:
    found = find_divergence(RECORDED[0], RECORDED[1])
    cause = named(found, text="The dog.", prompt_digest="11" * 16, template_digest="22" * 32, n_prompt_tokens=35)
    assert cause.code == "prompt_mismatch"
    assert (
        words(cause) == "The prompts' token ids differ: 31 tokens against 35, chat template 7e7e7e7e against 22222222."
    )


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
    ],
)
def test_a_planted_truncation_is_named(reasons: tuple[str, str], limits: dict, code: str) -> None:
    trace = longest()
    found = find_divergence(trace, cut(trace, 40))
    base = replace(SIDE, text="A long answer", finish_reason=reasons[0])
    cause = named(found, base=base, text="A long", finish_reason=reasons[1], **limits)
    assert cause.code == code
    if code == "length":
        assert cause.evidence["shorter"] == "candidate"
        assert f"{len(trace)} tokens against 40" in words(cause)


@pytest.mark.parametrize(
    ("gap", "code"), [pytest.param(0.05, "near_tie", id="near-tie"), pytest.param(3.0, "length", id="clear")]
)
def test_an_end_token_at_a_near_tie_is_a_near_tie(gap: float, code: str) -> None:
    shared = [(1, -0.1), (2, -2.5)]
    one = make_trace([1, 1, 1, 0], [-0.1] * 4, [shared, shared, shared, [(0, -0.1), (5, -0.1 - gap)]])
    other = make_trace([1, 1, 1, 5, 6], [-0.1] * 5, [shared, shared, shared, [(5, -0.1), (0, -0.15)], shared])
    base = replace(SIDE, text="Yes", finish_reason="stop")
    assert named(find_divergence(one, other), base=base, text="Yes, and", finish_reason="length").code == code


@pytest.mark.parametrize(
    ("one", "other", "how"),
    [
        ("a  b\n", "a b", "spacing"),
        ("a b\r\n", "a b", "spacing"),
        ("e\u0301t\u00e9", "\u00e9te\u0301", "spacing"),
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', "json"),
        ('"caf\\u00e9"', '"café"', "json"),
        ("ab", "a b", None),
        ('{"a": 1}', '{"a": 1.0}', None),
        ('{"a": true}', '{"a": 1}', None),
        ("[" * 5000, "[" * 5001, None),
        ("", " \n", "spacing"),
    ],
)
def test_what_two_texts_are_the_same_but_for(one: str, other: str, how: str | None) -> None:
    assert same_but_for(one, other) == same_but_for(other, one) == how


def test_a_planted_whitespace_change_that_costs_the_score_blames_the_scorers_strictness() -> None:
    trace = longest()
    found = find_divergence(trace, with_choice(trace, 5, 1))
    cause = named(found, text="The cat  sat.\n", score=0.0)
    assert cause.code == "whitespace"
    assert "the scorer is too strict" in words(cause)
    assert "too strict" not in words(named(found, text="The cat  sat.\n"))


def test_a_planted_scorer_is_named_before_everything_else() -> None:
    cause = named(None, score=0.0, scorer_digest="6d" * 32, weights_digest="bb" * 32)
    assert cause.code == "scorer"
    assert (
        words(cause)
        == "Same answer, different grade: the score went from 1.0 to 0.0 (scorer 5c5c5c5c against 6d6d6d6d)."
    )


@pytest.mark.parametrize("side", ["baseline", "candidate", "both"])
def test_a_planted_failed_call_is_an_error_and_says_which_side(side: str) -> None:
    failed = Side(has_response=False, error_code="timeout")
    pair = Pair(failed if side != "candidate" else SIDE, failed if side != "baseline" else SIDE)
    cause = decide(pair, None, ASSUMED)
    assert cause.code == "error"
    assert "(timeout)" in words(cause)
    assert words(cause).endswith("It counts as missing.")


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
    assert words(cause) == REASONS["no_logprobs"]


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
    assert ("near tie" in words(cause)) == (numeric == "near_tie")
    assert "further than noise explains" in words(cause) or numeric == "near_tie"


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
        pytest.param(noise_between((None, "float32"), (None, "float32")), "larger_shift", id="float32"),
        pytest.param(noise_between((None, "float16"), (None, "float16")), "larger_shift", id="float16"),
        pytest.param(noise_between((None, "float32"), (None, "bfloat16")), "near_tie", id="coarser-side-counts"),
        pytest.param(noise_between((None, None), (None, None)), "near_tie", id="dtype-not-known"),
        pytest.param(noise_between((0.01, "bfloat16"), (0.02, "bfloat16")), "larger_shift", id="measured"),
        pytest.param(noise_between((0.01, "bfloat16"), (0.02, "bfloat16"), ulp=0.125), "near_tie", id="two-ulps"),
    ],
)
def test_a_tie_is_near_or_not_by_the_noise_never_by_a_fixed_number(noise: NumericNoise, code: str) -> None:
    shared = [(1, -0.1), (2, -2.5)]
    one = make_trace([1, 1, 1, 3], [-0.1] * 3 + [-0.6], [shared, shared, shared, [(3, -0.6), (5, -0.7)]])
    other = make_trace([1, 1, 1, 5], [-0.1] * 3 + [-0.6], [shared, shared, shared, [(5, -0.6), (3, -0.7)]])
    assert named(find_divergence(one, other), noise=noise, text="x").code == code


def test_a_short_prefix_is_judged_by_its_flip_alone_and_says_so() -> None:
    one = make_trace([1], [-0.6], [[(1, -0.6), (2, -0.7)]])
    other = make_trace([2], [-0.6], [[(2, -0.6), (1, -0.7)]])
    cause = named(find_divergence(one, other), text="x")
    assert (cause.code, cause.evidence["is_low_confidence"], cause.evidence["ratio"]) == ("near_tie", True, None)
    assert "low confidence" in words(cause)


def test_a_rival_that_is_not_listed_proves_no_tie() -> None:
    one = make_trace([1], [-1.0], [[(1, -1.0), (2, -1.0)]])
    other = make_trace([3], [-1.0], [[(3, -1.0), (1, -1.0)]])
    cause = named(find_divergence(one, other), text="x")
    assert (cause.code, cause.evidence["reason"]) == ("unknown", "not_listed")


def test_same_tokens_with_another_text_are_not_called_identical() -> None:
    assert named(None, text="The cat sat. And").evidence["reason"] == "text"
    assert named(None, text="The cat sat. And", stop=(" And",)).code == "length"


def test_the_list_of_causes_is_closed_and_in_the_order_of_the_tests() -> None:
    listed = (
        "error identical scorer model_changed prompt_mismatch backend_changed model_name_changed whitespace length "
        "sampler_fault drift_only near_tie larger_shift unknown"
    )
    assert " ".join(CAUSES) == listed
    assert [CODES[cause] for cause in CAUSES] == list(range(14))


@pytest.mark.parametrize(
    ("order", "facts"),
    [
        ("scorer", {"score": 0.0, "weights_digest": "b"}),
        ("model_changed", {"weights_digest": "b", "prompt_digest": "b", "text": "x"}),
        ("prompt_mismatch", {"prompt_digest": "b", "fingerprint": "b", "text": "x"}),
        ("backend_changed", {"fingerprint": "b", "model_name": "b", "text": "The  cat sat."}),
        ("model_name_changed", {"model_name": "b", "text": "The  cat sat."}),
        ("whitespace", {"text": "The  cat sat.", "finish_reason": "length"}),
        ("length", {"text": "The cat sat. And", "finish_reason": "length"}),
        ("sampler_fault", {"text": "x"}),
    ],
)
def test_the_first_test_that_holds_decides(order: str, facts: dict) -> None:
    trace = cut(longest(), 12)
    found = find_divergence(trace, cut(with_choice(longest(), 11, 1), 12))
    assert found.flip == 11
    assert named(found, **facts).code == order


@pytest.mark.parametrize("fact", ["weights_digest", "prompt_digest", "template_digest", "fingerprint", "backend"])
def test_what_is_not_known_is_never_taken_to_differ(fact: str) -> None:
    trace = cut(longest(), 3)
    nudged = replace(trace, alternative_logprobs=trace.alternative_logprobs - np.float32([0, 0.01]))
    assert named(find_divergence(trace, nudged), **{fact: None}).code == "drift_only"


def shares(codes: Sequence[str]) -> dict[str, float]:
    return {code: n / len(codes) for code, n in Counter(codes).items()}


@pytest.fixture(scope="module")
def measured() -> NumericNoise:
    """The noise of the simulated bucket, from pairs of its own repeats."""
    found = [find_divergence(*pair) for pair in stacks.pairs(200, seed=1)]
    sd = pooled_sd((pair.n_usable, pair.shift_rms) for pair in found)
    return noise_between((sd, "bfloat16"), (sd, "bfloat16"), ulp=0.125)


def causes(measured: NumericNoise, **stack: float) -> dict[str, float]:
    found = [find_divergence(*pair) for pair in stacks.pairs(400, seed=7, **stack)]  # type: ignore[arg-type]
    return shares([named(pair, noise=measured, text="x").code for pair in found if pair.flip is not None])


def test_error_rates_numeric_noise_is_called_a_near_tie(measured: NumericNoise) -> None:
    assert 0.05 < measured.sd < 0.12
    assert causes(measured)["near_tie"] >= 0.97


def test_error_rates_a_shift_of_three_sds_is_called_larger(measured: NumericNoise) -> None:
    assert causes(measured, shift=0.25)["larger_shift"] >= 0.95


def test_error_rates_a_shift_below_the_noise_is_mostly_not(measured: NumericNoise) -> None:
    assert causes(measured, shift=0.03).get("larger_shift", 0.0) <= 0.05


def test_error_rates_a_token_drawn_once_is_called_a_sampler_fault(measured: NumericNoise) -> None:
    """Where the draw is what parted them: pairs that numeric noise parted first are near ties, rightly."""
    found = [find_divergence(*pair) for pair in stacks.pairs(400, seed=9, is_drawn_once=True)]
    drawn = [pair for pair in found if not pair.are_both_top]
    assert len(drawn) > 200
    assert shares([named(pair, noise=measured, text="x").code for pair in drawn])["sampler_fault"] >= 0.95


def test_error_rates_noise_alone_moves_at_most_one_case_in_a_hundred_further(measured: NumericNoise) -> None:
    found = [find_divergence(*pair) for pair in stacks.pairs(800, seed=11)]
    assert moved_further(found, measured) <= 8


def test_error_rates_six_percent_rerouted_are_counted_as_about_six(measured: NumericNoise) -> None:
    found = [find_divergence(*pair) for pair in stacks.pairs(800, seed=13, shift=0.25, share_shifted=0.06)]
    assert moved_further(found, measured) == pytest.approx(48, abs=8)
