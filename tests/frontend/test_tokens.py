"""Tokens laid out in lines, margins in four steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.contract.trace import TokenAtPosition
from frontend.shell import tokens


def cells(*texts: str, margins: tuple[float | None, ...] = ()) -> tuple[TokenAtPosition, ...]:
    return tuple(
        TokenAtPosition(
            position=i,
            token_id=i,
            drawn=text,
            logprob=-0.1,
            margin=margins[i] if margins else None,
            breaks_line=text.endswith("⏎"),
            alternatives=(),
        )
        for i, text in enumerate(texts)
    )


@given(st.lists(st.sampled_from(["a", "·word", "⏎", "x" * 90, "日本"]), max_size=60))
def test_lines_keep_every_token_in_order(texts):
    row = cells(*texts)
    laid = tokens.lines(row, width=20)
    assert [cell for line in laid for cell in line.cells] == list(row)
    assert [line.first for line in laid] == [line.cells[0].position for line in laid]


def test_a_line_ends_after_a_newline_and_before_what_would_not_fit():
    laid = tokens.lines(cells("ab", "⏎", "abcd", "ef", "g"), width=6)
    assert [[cell.drawn for cell in line.cells] for line in laid] == [["ab", "⏎"], ["abcd", "ef"], ["g"]]


@pytest.mark.parametrize(
    ("margin", "step"), [(None, 0), (1.0, 0), (0.999, 1), (0.25, 1), (0.249, 2), (0.02, 2), (0.019, 3), (0.0, 3)]
)
def test_a_margin_has_one_of_four_steps(margin, step):
    assert tokens.margin_step(margin) == step


def test_wide_characters_take_two_columns():
    assert tokens.columns("日本a") == 5
