"""How far a server's clock is from ours is told by whole seconds, narrower with each answer."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from evalboard.core.trace import combine_clocks, measure_clock
from evalboard.wording.clock import describe_clock

AT = datetime(2026, 11, 23, 12, 0, 0, 700_000, tzinfo=UTC)


def seen(ahead: float, *, after: float = 0.0, took: float = 0.2) -> tuple[float, float]:
    """What a call says that began `after` seconds and whose server wrote its Date in the middle of it."""
    began = AT + timedelta(seconds=after)
    wrote = began + timedelta(seconds=took / 2 + ahead)
    known = measure_clock(format_datetime(wrote, usegmt=True), began, began + timedelta(seconds=took))
    assert known is not None
    return known


@pytest.mark.parametrize("ahead", [0.0, 0.4, 7.25, -3.5])
def test_one_answer_bounds_it_within_a_second_and_the_call_and_many_more_narrowly(ahead: float) -> None:
    low, high = seen(ahead)
    assert low <= ahead <= high
    assert high - low == pytest.approx(1.2)
    both = combine_clocks(seen(ahead, after=place * 0.37) for place in range(40))
    assert both is not None
    assert both[0] <= ahead <= both[1]
    assert both[1] - both[0] < 0.3


@pytest.mark.parametrize(
    "date", ["", "yesterday", "Mon, 99 Nov 2026 12:00:00 GMT", "Mon, 23 Nov 2026 12:00:00 +9999999"]
)
def test_a_date_that_cannot_be_read_says_nothing(date: str) -> None:
    assert measure_clock(date, AT, AT) is None
    assert combine_clocks([None, None]) is None


def test_the_sentence_says_which_way_and_that_no_one_distance_fits() -> None:
    assert describe_clock((-0.25, 0.5)) == "The server's clock agrees with ours within 0.5 s."
    assert describe_clock((2.1, 2.4)) == "The server's clock is 2.1 to 2.4 s ahead of ours."
    assert describe_clock((-3.2, -2.9)) == "The server's clock is 2.9 to 3.2 s behind ours."
    several = combine_clocks([seen(0.0), seen(60.0)])
    assert several is not None
    assert describe_clock(several).startswith("The server has several clocks, or one that was set: from ")
