"""Geometry of the charts that the server draws."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.contract.run import Repeat, ShardOfRun
from evalboard.contract.trace import TokenAtPosition
from frontend.runs import charts as run_charts
from frontend.shell.charts import axes, marks
from runs.run import TraceWindow

scores = st.floats(0, 100, allow_nan=False)


@given(st.lists(scores, min_size=1, max_size=20), st.floats(0.01, 40))
def test_every_value_stands_inside_its_scale(values, least):
    scale = axes.scale_for(values, least=least)
    assert all(0 <= scale.x(value) <= 100 for value in values)
    assert all(0 <= tick.x <= 100 for tick in scale.ticks())
    assert len(scale.ticks()) >= 1


def test_a_scale_names_no_points_below_0_or_above_100() -> None:
    assert axes.scale_for([66.7], least=133.3).shown == (0.0, 100.0)
    low, high = axes.scale_for([50.0, 60.0], least=10.0).shown
    assert 0.0 < low < 50.0 < 60.0 < high < 100.0


def test_equal_repeats_stand_one_above_the_other():
    ruler = marks.ruler((58.3, 58.3, 62.5), axes.scale_for((58.3, 62.5), least=4))
    assert [(mark.n, len(mark.ys)) for mark in ruler.marks] == [(2, 2), (1, 1)]
    assert ruler.label == "58.3: repeats 1 and 2; 62.5: repeat 3"
    assert ruler.bar.width == pytest.approx(ruler.marks[1].x - ruler.marks[0].x, abs=0.002)


def test_a_pile_on_a_small_ruler_is_one_mark_and_says_how_many_it_hides():
    ruler = marks.ruler((50.0,) * 5, axes.scale_for((50.0,), least=4), is_small=True)
    assert [(len(mark.ys), mark.n_hidden) for mark in ruler.marks] == [(1, 4)]


def test_a_missing_repeat_keeps_the_numbers_of_the_others():
    ruler = marks.ruler((None, 50.0), axes.scale_for((50.0,), least=4))
    assert ruler.label == "50.0: repeat 2"


def shard(index: int, status: str, *, n_done: int = 0, attempt: int = 1, **more: Any) -> ShardOfRun:
    return ShardOfRun(
        first=index * 10,
        last=index * 10 + 9,
        status=status,
        attempt=attempt,
        n_done=n_done,
        worker="",
        error="",
        n_finished=int(status == "finished"),
        n_retried=int(attempt > 1),
        n_cases=10,
        **more,
    )


def row_of(*shards: ShardOfRun) -> run_charts.ShardRow:
    return run_charts.shard_row(
        Repeat(
            index=2,
            status="running",
            score=None,
            n_missing=0,
            n_left_out=0,
            attempts=1,
            engine_processes=(),
            shards=shards,
        )
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


def test_a_cell_of_several_shards_says_how_many_have_ended():
    many = ShardOfRun(
        first=0,
        last=99,
        n_cases=100,
        status="running",
        attempt=2,
        n_done=75,
        worker="",
        error="",
        n_shards=10,
        n_finished=7,
        n_retried=1,
    )
    row = row_of(many)
    assert row.label == "repeat 2: 7 of 10 shards finished, 1 after another attempt"
    assert row.cells[0].label == "cases 0–99: running, 7 of 10 shards finished, 75 of 100 responses, attempt 2"


@pytest.mark.parametrize(("n", "n_rows"), [(1, 1), (40, 1), (41, 2), (400, 10)])
def test_many_shards_wrap_and_none_leaves_the_plot(n, n_rows):
    row = row_of(*(shard(i, "queued") for i in range(n)))
    assert len({cell.y for cell in row.cells}) == n_rows
    assert max(cell.x + cell.width for cell in row.cells) <= 100.01
    assert max(cell.y for cell in row.cells) < row.height


def window(*margins: float | None) -> TraceWindow:
    selected = TokenAtPosition(position=0, token_id=1, drawn="a", logprob=-0.1, margin=margins[0], alternatives=())
    known = tuple((position, margin) for position, margin in enumerate(margins) if margin is not None)
    return TraceWindow(n=len(margins), tokens=(selected,), selected=selected, narrowest=None, margins=known)


def test_a_true_zero_margin_has_a_line_of_its_own():
    chart = run_charts.margin_chart(window(0.0, 1e-9, 50.0, *[1.0] * 9))
    zero, tiny, huge, *_ = chart.stems
    assert zero.y == chart.floor
    assert tiny.y < chart.floor
    assert huge.y == chart.rows[0][0]


def test_without_margins_or_of_a_few_positions_there_is_no_chart():
    assert run_charts.margin_chart(window(*[None] * 12)) is None
    assert run_charts.margin_chart(window(*[1.0] * 12)) is not None
    assert run_charts.margin_chart(window(*[1.0] * 11)) is None


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30))
def test_parts_of_a_whole_are_side_by_side_and_none_that_is_there_vanishes(parts):
    bars = marks.split(parts, least=4.0, gap=0.0)
    assert [bar.width > 0 for bar in bars] == [part > 0 for part in parts]
    assert bars[-1].end == pytest.approx(100 if any(parts) else 0, abs=0.01)
    assert all(left.end == pytest.approx(right.x, abs=0.01) for left, right in pairwise(bars))


@pytest.mark.parametrize(
    ("reach", "most", "least", "step"), [(100, 8, 0.1, 20), (3.0, 8, 0.1, 0.5), (0.01, 8, 0.1, 0.1), (7, 8, 1, 1)]
)
def test_steps_are_round_and_not_too_many(reach, most, least, step):
    assert axes.step_for(reach, most, least=least) == pytest.approx(step)


@pytest.mark.parametrize(
    ("stretch", "label"),
    [
        (timedelta(minutes=3), "11-29 07:30:05"),
        (timedelta(hours=1), "11-29 07:30"),
        (timedelta(days=9), "11-29"),
    ],
)
def test_times_on_an_axis_are_as_long_as_tells_neighbours_apart(stretch: timedelta, label: str) -> None:
    at = datetime(2026, 11, 29, 7, 30, 5, tzinfo=UTC)
    assert axes.Stretch(at, at + stretch).words(at) == label
