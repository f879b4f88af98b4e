"""Whose text an answer goes on with, held to recorded answers of a real model: 40 of them, as if decoded together."""

from pathlib import Path

import numpy as np
import pytest

from evalboard.core.compare import Beside, Continuation, find_continuation
from evalboard.core.trace.codec import read_block

RECORDED = Path(__file__).parent / "data" / "smollm2-bfloat16.evt"


def beside(*texts: list[int]) -> list[Beside]:
    """Texts of as many cases."""
    return [Beside(case, np.array(ids, np.int32)) for case, ids in enumerate(texts)]


def ids(*tokens: int) -> np.ndarray:
    return np.array(tokens, np.int32)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.nightly)])
def test_what_leaked_from_another_answer_is_found_and_nothing_else_is_taken_for_it(step: int) -> None:
    """Every answer from every token against all others; in the gate each seventh token and each seventh other."""
    traces = read_block(RECORDED.read_bytes())
    texts = [
        Beside(case, text)
        for case, trace in enumerate(traces)
        for text in (trace.token_ids, trace.prompt_token_ids)
        if text is not None
    ]
    n_named = n_tried = 0  # of what starts a third into another answer or prompt
    for case, trace in enumerate(traces):
        others, own = [each for each in texts if each.case != case], [trace.prompt_token_ids]
        for at in range(case % step, len(trace), step):
            assert find_continuation(trace.token_ids[at:], others, own) is None, f"case {case} from token {at}"
        for each in others[case % step :: step]:
            found = find_continuation(each.ids[len(each.ids) // 3 :], others, own)
            assert found is None or others[found.place].case == each.case
            n_named += found is not None
            n_tried += 1
    assert n_tried >= 2 * 40 * 39 // step - 40
    assert n_named > 0.85 * n_tried  # of some prompts all cases have as much


def test_the_longest_run_is_found_where_it_stands() -> None:
    leaked = list(range(50, 60))
    texts = beside([1, 50, 51, 7, *leaked[:9]], [50, 51, 52], [3, 3, *leaked])
    assert find_continuation(ids(*leaked, 99), texts[1:], []) == Continuation(place=1, at=2, n=10)
    assert find_continuation(ids(*leaked, 99), texts, []) is None  # as good as all of it is also another case's
    same_case = [texts[1], texts[2], Beside(2, texts[0].ids)]
    assert find_continuation(ids(*leaked, 99), same_case, []) == Continuation(place=1, at=2, n=10)


def test_what_its_own_case_says_is_no_leak() -> None:
    leaked = list(range(50, 60))
    assert find_continuation(ids(*leaked), beside(leaked), [ids(1, *leaked[:6])]) is None
    assert find_continuation(ids(*leaked), beside(leaked), [ids(1, *leaked[:5])]) is not None


@pytest.mark.parametrize("rest", [[], [1, 2, 3, 4, 5, 6, 7]])
def test_too_little_is_nobodys(rest: list[int]) -> None:
    assert find_continuation(ids(*rest), beside([*rest, 9]), []) is None
    assert find_continuation(ids(1, 2), [], []) is None
