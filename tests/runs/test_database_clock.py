"""The time by the database's clock, where a machine's own is off, is set, or says nothing yet."""

import time
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from runs.store import DatabaseClock, database_now

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


def test_it_goes_on_by_the_monotonic_clock_whatever_the_wall_clock_is_set_to() -> None:
    clock, now = DatabaseClock(), time.monotonic()
    clock.hear(NOON.timestamp(), sent=now - 0.02, answered=now)
    before = clock.now()
    with time_machine.travel(NOON + timedelta(days=3), tick=True):
        after = clock.now()
        ahead = clock.machine_ahead()
    assert NOON <= before <= after < NOON + timedelta(seconds=60)
    assert ahead == pytest.approx(timedelta(days=3).total_seconds(), abs=60)


def test_the_surest_word_stands_until_it_is_a_minute_old() -> None:
    clock, now = DatabaseClock(), time.monotonic()
    clock.hear(NOON.timestamp(), sent=now - 0.002, answered=now)
    clock.hear(NOON.timestamp() + 7, sent=now - 1.0, answered=now)  # an answer that took a second may be half of it off
    assert clock.now() < NOON + timedelta(seconds=5)
    clock.hear(NOON.timestamp() + 1007, sent=now + 61, answered=now + 62)
    assert clock.now() == pytest.approx(NOON + timedelta(seconds=1007 - 61.5), abs=timedelta(seconds=5))


def test_until_the_database_was_heard_the_wall_clock_has_to_do() -> None:
    clock = DatabaseClock()
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert clock.machine_ahead() is None


@pytest.mark.nightly
@pytest.mark.django_db
def test_the_databases_clock_is_asked_whatever_ours_says() -> None:
    right = datetime.now(UTC)
    with time_machine.travel(right - timedelta(hours=5), tick=True):
        assert abs(database_now() - right) < timedelta(seconds=60)
