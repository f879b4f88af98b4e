"""What a replay's results say: every outcome, every kind of sweep, and what limits it."""

from typing import Any

import numpy as np
import pytest

from evalboard.core.compare import replay
from evalboard.core.digest import short_digest
from evalboard.core.trace.provenance import Decoded, Timings
from evalboard.core.trace.trace import TokenTrace
from evalboard.wording import replay as wording
from tests import make

TEXT = "a blue sky over it"


def moved(trace: TokenTrace, position: int, by: float = 2**-10) -> TokenTrace:
    """The trace with the chosen token's logprob moved at one position."""
    logprobs, listed = trace.logprobs.copy(), trace.alternative_logprobs.copy()
    logprobs[position] -= np.float32(by)
    listed[position, 0] = logprobs[position]
    return TokenTrace(trace.token_ids, logprobs, trace.alternative_ids, listed)


def flipped(trace: TokenTrace, position: int) -> TokenTrace:
    """The trace with the second alternative chosen at one position, a near tie, and the same tokens after it."""
    ids, logprobs = trace.token_ids.copy(), trace.logprobs.copy()
    ids[position], logprobs[position] = trace.alternative_ids[position, 1], trace.alternative_logprobs[position, 1]
    return TokenTrace(ids, logprobs, trace.alternative_ids, trace.alternative_logprobs)


RUNS = make.trace(TEXT)
DRIFTED, FLIPPED = moved(RUNS, 3), flipped(RUNS, 7)
SHORTER, LONGER = make.trace(TEXT[:5]), make.trace(TEXT + "!")


def draw(ids: Any) -> list[str]:
    return [chr(token) for token in ids]


def answer(trace: TokenTrace, *, batch: tuple[int, int] = (1, 1)) -> Decoded:
    return Decoded(
        case_index=0,
        text="".join(draw(trace.token_ids)),
        finish_reason="stop",
        trace=trace,
        n_prompt_tokens=3,
        prompt_digest=short_digest(b"prompt"),
        seed_sent=42,
        request_id="r",
        n_cached_tokens=0,
        n_preemptions=0,
        batch_min=batch[0],
        batch_max=batch[1],
        timings=Timings(0.0, 0.0, 0.0),
    )


def replayed(
    *tried: tuple[dict[str, Any], TokenTrace | str], response: TokenTrace | None = RUNS, **beside: Any
) -> list[dict[str, Any]]:
    """The results of these variants in order, as a worker makes them.

    A text in place of a trace is an engine's failure; `beside` is what the worker adds, the same for each.
    """
    results: list[dict[str, Any]] = []
    known = {"same_prompt": True, "same_model": True, "same_fingerprint": True, "n_neighbour_prompt_tokens": 40}
    for variant, gave in tried:
        if isinstance(gave, str):
            found = replay.make_failed_result(variant, code="out_of_memory", detail=gave)
        else:
            size = variant.get("batch_size", 1)
            found = replay.make_decoded_result(
                variant,
                answer(gave, batch=(size, size)),
                response=response,
                earlier=replay.list_result_traces(results, response),
                draw=draw,
            )
        results.append({**found, **known, **beside})
    return results


def sizes(*tried: tuple[int, TokenTrace | str], **more: Any) -> list[dict[str, Any]]:
    return replayed(*(({"batch_size": size, **more}, gave) for size, gave in tried))


@pytest.mark.parametrize(
    ("gave", "outcome", "sentence"),
    [
        (RUNS, "identical", "Identical: every token and logprob equals the run’s response to the bit."),
        (
            DRIFTED,
            "drift",
            "Drifts from position 3 (by 0.00098 nats there), and every token is the same, against the run’s response.",
        ),
        (SHORTER, "shorter", "the replay ends there, where the other goes on (‘e’), against the run’s response."),
        (LONGER, "longer", "the replay goes on there, where the other ends (‘!’), against the run’s response."),
        (FLIPPED, "flip", "Flips at position 7: ‘s’ → ‘t’ (margins "),
        ("killed", "error", "There is no answer: out_of_memory: killed"),
    ],
)
def test_one_case_replayed_says_what_it_gave(gave: TokenTrace | str, outcome: str, sentence: str) -> None:
    [result] = replayed(({}, gave))
    assert result["outcome"] == outcome
    [said] = wording.explain_replay([result])
    assert sentence in said
    assert wording.explain_result(result)


def test_a_flip_has_its_place_its_tokens_and_its_margins() -> None:
    [result] = replayed(({}, FLIPPED))
    assert (result["flip_position"], result["drawn_before"]) == (7, TEXT[:7])
    assert (result["token_baseline"], result["token_candidate"]) == (ord("s"), ord("t"))
    margin = float(RUNS.margins()[7])
    assert (result["margin_baseline"], result["margin_candidate"]) == (pytest.approx(margin), pytest.approx(margin))


def test_of_an_answer_that_ends_earlier_only_the_other_has_a_token() -> None:
    [result] = replayed(({}, SHORTER))
    assert (result["flip_position"], result["token_baseline"], result["token_candidate"]) == (5, ord("e"), None)


def test_other_alternatives_at_equal_tokens_and_logprobs_are_not_identical() -> None:
    ids = RUNS.alternative_ids.copy()
    ids[4, 1] = 99
    other = TokenTrace(RUNS.token_ids, RUNS.logprobs, ids, RUNS.alternative_logprobs)
    results = replayed(({}, other))
    assert (results[0]["outcome"], results[0]["drift_onset"]) == ("drift", None)
    assert "Drifts in the alternatives that are listed" in wording.explain_replay(results)[0]


def test_without_a_response_there_is_nothing_to_hold_it_against() -> None:
    results = replayed(({}, RUNS), response=None)
    assert results[0]["outcome"] == "decoded"
    assert wording.explain_replay(results) == (
        "Decoded again; there is nothing to compare it with.",
        "The run has no response to this case in this repeat to compare with.",
    )


@pytest.mark.parametrize(
    ("tried", "sentences"),
    [
        (sizes((1, RUNS), (2, RUNS), (16, RUNS)), ["Identical at every batch size from 1 to 16."]),
        (sizes((4, RUNS)), ["Identical at batch size 4."]),
        (
            sizes((4, DRIFTED)),
            ["Drifts at batch size 4, from position 3 (by 0.00098 nats there); no token changes."],
        ),
        (sizes((4, FLIPPED)), ["Flips at batch size 4, position 7: ‘s’ → ‘t’"]),
        (
            sizes((1, RUNS), (2, DRIFTED), (4, DRIFTED)),
            [
                "Drifts first at batch size 2, from position 3 (by 0.00098 nats there); "
                "no token changes at any size up to 4.",
                "Identical at batch size 1.",
            ],
        ),
        (
            sizes((1, RUNS), (2, DRIFTED), (4, FLIPPED), (8, FLIPPED)),
            [
                "Flips first at batch size 4, position 7: ‘s’ → ‘t’",
                "Drifts first at batch size 2, from position 3 (by 0.00098 nats there) (at 2 of 1, 2, 4 and 8).",
                "Identical at batch size 1.",
            ],
        ),
        (
            sizes((1, RUNS), (2, FLIPPED), (4, RUNS), (8, FLIPPED)),
            ["(at 2 and 8 of 1, 2, 4 and 8).", "Identical at batch size 1 and 4."],
        ),
        (
            sizes((1, RUNS), (2, SHORTER)),
            ["Flips first at batch size 2, position 5: the replay ends there", "Identical at batch size 1."],
        ),
        (
            sizes((1, RUNS), (2, "none"), (4, RUNS)),
            [
                "Identical at every batch size from 1 to 4.",
                "There is no answer at batch size 2: out_of_memory: none",
            ],
        ),
        (sizes((1, "none")), ["There is no answer at batch size 1: out_of_memory: none"]),
    ],
)
def test_a_sweep_over_batch_sizes_names_the_first_that_differs(
    tried: list[dict[str, Any]], sentences: list[str]
) -> None:
    said = wording.explain_replay(tried)
    assert len(said) == len(sentences)
    assert all(sentence in heard for sentence, heard in zip(sentences, said, strict=True)), said


def test_a_sweep_without_a_response_is_held_against_its_first_size() -> None:
    tried = [({"batch_size": size}, gave) for size, gave in ((1, RUNS), (2, RUNS), (4, FLIPPED))]
    said = wording.explain_replay(replayed(*tried, response=None))
    assert said[0].startswith("Flips first at batch size 4, position 7")
    assert said[1:] == (
        "Identical at batch size 1 and 2.",
        "Each batch size is compared with 1.",
        "The run has no response to this case in this repeat to compare with.",
    )


def test_a_sweep_over_dtypes_says_each() -> None:
    said = wording.explain_replay(
        replayed(({"dtype": "float32"}, RUNS), ({"dtype": "bfloat16"}, FLIPPED), ({"dtype": "float16"}, "refused"))
    )
    assert said[0].startswith("float32: Identical")
    assert said[1].startswith("bfloat16: Flips at position 7: ‘s’ → ‘t’")
    assert said[2] == "float16: There is no answer: out_of_memory: refused"


def test_sizes_under_another_dtype_are_held_against_each_other() -> None:
    said = wording.explain_replay(sizes((1, FLIPPED), (2, FLIPPED), (4, moved(FLIPPED, 2)), dtype="bfloat16"))
    assert said[0].startswith("bfloat16: At batch size 1: Flips at position 7")
    assert said[1].startswith("bfloat16: Drifts first at batch size 4, from position 2")
    assert said[2] == "bfloat16: Identical at batch size 1 and 2."


def of_neighbours(*gave: TokenTrace, n_tokens: tuple[int | None, ...] = (40, 40, 40)) -> tuple[str, ...]:
    shifts = [{"batch_size": 4, **({"neighbours": 3 * n} if n else {})} for n in range(len(gave))]
    results = replayed(*zip(shifts, gave, strict=True))
    return wording.explain_replay(
        [{**each, "n_neighbour_prompt_tokens": n} for each, n in zip(results, n_tokens, strict=False)]
    )


def test_other_neighbours_that_change_nothing_are_told() -> None:
    assert of_neighbours(RUNS, RUNS, RUNS) == (
        "Identical at batch size 4.",
        "At batch size 4, other neighbours change no bit (3 sets tried).",
    )


@pytest.mark.parametrize(
    ("gave", "words"), [(DRIFTED, "drifts from position 3"), (FLIPPED, "flips at position 7: ‘s’ → ‘t’")]
)
def test_other_neighbours_that_change_the_answer_are_possible_leakage(gave: TokenTrace, words: str) -> None:
    said = of_neighbours(RUNS, RUNS, gave)
    assert len(said) == 2
    assert said[1].startswith(f"Possible leakage: at batch size 4, with other neighbours, the same case {words}")


def test_leakage_says_when_the_shape_of_a_step_differed_too() -> None:
    said = of_neighbours(RUNS, FLIPPED, n_tokens=(1040, 980))
    assert said[1].startswith("Possible leakage: ")
    assert said[2].startswith("But their prompts differ in length (980 and 1,040 tokens)")
    assert len(of_neighbours(RUNS, FLIPPED, n_tokens=(None, 980))) == 2


def test_a_batch_drift_alone_is_no_leakage() -> None:
    assert not any("leakage" in said for said in of_neighbours(FLIPPED, FLIPPED))


def test_a_size_that_was_not_reached_is_told() -> None:
    result = sizes((16, RUNS))[0]
    assert wording.explain_replay([{**result, "batch_min": 12, "batch_max": 12}])[1] == (
        "Batch size 16 was not reached: at most 12 shared a step."
    )
    assert wording.explain_replay([{**result, "batch_min": 5, "batch_max": 16}])[1] == (
        "Batch size 16 was not kept: in some steps only 5 took part."
    )


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        ({"same_prompt": False}, "The prompt's tokens are not those of the run"),
        ({"same_model": False}, "The model is not the run's"),
        ({"same_fingerprint": False}, "Decoded on another serving stack than the run's"),
    ],
)
def test_what_limits_the_finding_is_told(beside: dict[str, bool], words: str) -> None:
    said = wording.explain_replay(replayed(({}, FLIPPED), **beside))
    assert said[0].startswith("Flips")
    assert said[1].startswith(words)
    assert (
        len(wording.explain_replay(replayed(({}, FLIPPED), **dict.fromkeys(beside)))) == 1
    )  # not known is not different


def test_another_dtype_is_no_other_stack_by_accident() -> None:
    assert len(wording.explain_replay(replayed(({"dtype": "bfloat16"}, FLIPPED), same_fingerprint=False))) == 1


def test_no_results_say_nothing() -> None:
    assert wording.explain_replay([]) == ()


def test_a_trace_is_kept_once_and_found_again() -> None:
    tried = [({"batch_size": size}, gave) for size, gave in ((1, RUNS), (2, FLIPPED), (4, FLIPPED), (8, DRIFTED))]
    results = replayed(*tried)
    assert [each["trace"] is not None for each in results] == [False, True, False, True]
    found = replay.list_result_traces(results, RUNS)
    assert [trace.digest for _, trace in found] == [gave.digest for _, gave in tried]
    assert [variant for variant, _ in found] == [variant for variant, _ in tried]


def test_neighbours_are_the_next_cases_wrapped() -> None:
    assert replay.list_neighbours(8, n_cases=10, batch_size=4) == [9, 0, 1]
    assert replay.list_neighbours(8, n_cases=10, batch_size=4, shift=3) == [2, 3, 4]
    assert replay.list_neighbours(8, n_cases=10, batch_size=1) == []
    assert replay.list_neighbours(0, n_cases=3, batch_size=6) == [1, 2, 1, 2, 1]
    assert replay.list_neighbours(0, n_cases=1, batch_size=3) == [0, 0]


@pytest.mark.parametrize("n_cases", range(2, 14))
@pytest.mark.parametrize("batch_size", [2, 3, 4, 8])
@pytest.mark.parametrize("n_choices", [2, 3, 5])
def test_choices_of_neighbours_are_never_the_same_cases(n_cases: int, batch_size: int, n_choices: int) -> None:
    found = replay.choose_shifts(n_choices=n_choices, n_cases=n_cases, batch_size=batch_size)
    if found is None:
        assert n_cases - 1 < max(batch_size, n_choices)
        return
    chosen = [
        frozenset(replay.list_neighbours(0, n_cases=n_cases, batch_size=batch_size, shift=shift)) for shift in found
    ]
    assert len(set(chosen)) == n_choices
    assert all(len(cases) == batch_size - 1 and 0 not in cases for cases in chosen)


def test_a_batch_of_one_has_one_choice_of_neighbours() -> None:
    assert replay.choose_shifts(n_choices=5, n_cases=2, batch_size=1) == [0]
