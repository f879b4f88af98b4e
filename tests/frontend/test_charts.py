"""Geometry of the charts that the server draws."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend import charts
from runs.selectors.response import TokenCell
from runs.selectors.run import RepeatLine, ShardCell

scores = st.floats(0, 100, allow_nan=False)


@given(st.lists(scores, min_size=1, max_size=20), st.floats(0.01, 40))
def test_every_value_stands_inside_its_scale(values, least):
    scale = charts.scale_for(values, least=least)
    assert all(0 <= scale.x(value) <= 100 for value in values)
    assert all(0 <= tick.x <= 100 for tick in scale.ticks())
    assert len(scale.ticks()) >= 1


def test_equal_repeats_stand_one_above_the_other():
    ruler = charts.ruler((58.3, 58.3, 62.5), charts.scale_for((58.3, 62.5), least=4))
    assert [(mark.n, len(mark.ys)) for mark in ruler.marks] == [(2, 2), (1, 1)]
    assert ruler.label == "58.3: repeats 1 and 2; 62.5: repeat 3"
    assert ruler.bar_width == pytest.approx(ruler.marks[1].x - ruler.marks[0].x, abs=0.002)


def test_a_pile_on_a_small_ruler_is_one_mark_and_says_how_many_it_hides():
    ruler = charts.ruler((50.0,) * 5, charts.scale_for((50.0,), least=4), is_small=True)
    assert [(len(mark.ys), mark.n_hidden) for mark in ruler.marks] == [(1, 4)]


def test_a_missing_repeat_keeps_the_numbers_of_the_others():
    ruler = charts.ruler((None, 50.0), charts.scale_for((50.0,), least=4))
    assert ruler.label == "50.0: repeat 2"


def shard(index: int, status: str, *, n_done: int = 0, attempt: int = 1, **more: Any) -> ShardCell:
    return ShardCell(
        id=index,
        first=index * 10,
        last=index * 10 + 9,
        status=status,
        attempt=attempt,
        n_done=n_done,
        worker="",
        error="",
        **more,
    )


def row_of(*shards: ShardCell) -> charts.ShardRow:
    return charts.shard_row(
        RepeatLine(index=2, status="running", points=None, n_missing=0, n_left_out=0, shards=shards, process_ids=())
    )


def test_a_running_shard_is_filled_by_its_responses():
    row = row_of(shard(0, "finished", n_done=10), shard(1, "running", n_done=5, attempt=2))
    assert row.cells[1].part == pytest.approx(row.cells[1].width / 2, abs=0.001)
    assert row.label == "repeat 2: 1 of 2 shards finished, 1 after another attempt"
    assert row.cells[1].label == "cases 10–19: running, 5 of 10 responses, attempt 2"


def test_a_cell_says_how_often_it_failed_and_until_when_it_waits():
    until = datetime(2026, 11, 21, 7, 31, 20, tzinfo=UTC)
    row = row_of(shard(0, "queued", attempt=2, n_failures=2, waits_until=until), shard(1, "queued", n_failures=1))
    assert row.cells[0].label == (
        "cases 0–9: queued, 0 of 10 responses, attempt 2, failed 2 times, waits until 07:31:20 UTC"
    )
    assert row.cells[1].label.endswith("failed once")


@pytest.mark.parametrize(("n", "n_rows"), [(1, 1), (40, 1), (41, 2), (400, 10)])
def test_many_shards_wrap_and_none_leaves_the_plot(n, n_rows):
    row = row_of(*(shard(i, "queued") for i in range(n)))
    assert len({cell.y for cell in row.cells}) == n_rows
    assert max(cell.x + cell.width for cell in row.cells) <= 100.01
    assert max(cell.y for cell in row.cells) < row.height


def cell(position: int, margin: float | None) -> TokenCell:
    return TokenCell(
        position=position, token_id=1, token="a", logprob=-0.1, margin=margin, breaks_line=False, alternatives=()
    )


def test_a_true_zero_margin_has_a_line_of_its_own():
    chart = charts.margin_chart([cell(0, 0.0), cell(1, 1e-9), cell(2, 50.0)], at=1)
    zero, tiny, huge = chart.stems
    assert zero.y == chart.floor
    assert tiny.y < chart.floor
    assert huge.y == chart.rows[0][0]


def test_without_margins_there_is_no_chart():
    assert charts.margin_chart([cell(0, None)], at=0) is None
