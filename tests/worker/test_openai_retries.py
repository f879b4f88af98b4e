"""When calls are tried again and when an endpoint rests: rules alone, with their clock and chance given."""

import random
from datetime import UTC, datetime

import pytest

from evalboard.calling.retries import Circuit, backoff_seconds, rest_seconds, wished_seconds

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def test_the_waits_grow_and_are_drawn_over_their_whole_length():
    draws = random.Random(1)
    for n_failed, most in ((1, 1.0), (2, 2.0), (3, 4.0), (30, 30.0)):
        waits = [backoff_seconds(n_failed, draws) for _ in range(400)]
        assert 0 <= min(waits) < most * 0.1
        assert most * 0.9 < max(waits) <= most


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "3600"}, 3600),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1),
        ({"retry-after": "9999999"}, 86_400),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:20 GMT"}, 20),
        ({"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "Sun, 01 Mar 2026 13:00:20 GMT", "date": "Sun, 01 Mar 2026 13:00:00 GMT"}, 20),
        ({"retry-after": "Sun, 01 Mar 2026 11:00:20 GMT", "date": "Sun, 01 Mar 2026 11:00:00 GMT"}, 20),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:20 GMT", "date": "soon"}, 20),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "1e400"}, None),
        ({"x-ratelimit-reset-requests": "1m30.5s"}, 90.5),
        ({"x-ratelimit-reset-requests": "12ms", "x-ratelimit-reset-tokens": "6s"}, 6),
        (
            {
                "x-ratelimit-reset-requests": "2s",
                "x-ratelimit-reset-tokens": "50s",
                "x-ratelimit-remaining-tokens": "9",
            },
            2,
        ),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 9)}, 9),
        ({"x-ratelimit-reset": str((int(NOW.timestamp()) + 9) * 1000)}, 9),
        ({"x-ratelimit-reset-requests": "5 apples"}, None),
        ({"retry-after": "1", "x-ratelimit-reset-requests": "30s"}, 1),
    ],
)
def test_what_a_server_wishes_is_read_and_has_a_bound(headers: dict[str, str], seconds: float | None):
    assert wished_seconds(headers, NOW) == (None if seconds is None else pytest.approx(seconds))


def test_rests_double_from_half_a_minute_to_ten():
    assert [rest_seconds(n) for n in (5, 6, 7, 8, 9, 10, 4_000)] == [30, 60, 120, 240, 480, 600, 600]


def test_five_failures_in_a_row_open_the_circuit_and_one_answer_closes_it():
    circuit = Circuit(0)
    for n in range(1, 6):
        assert not circuit.is_open
        circuit.fail(circuit.begin())
        assert circuit.n_failures == n
    assert circuit.is_open
    circuit.succeed()
    assert (circuit.n_failures, circuit.is_open) == (0, False)


def test_tries_that_one_hiccup_ends_are_one_failure():
    circuit = Circuit(0)
    begun = [circuit.begin() for _ in range(8)]
    for each in begun:
        circuit.fail(each)
    assert circuit.n_failures == 1
    circuit.fail(circuit.begin())
    assert circuit.n_failures == 2


def test_a_circuit_goes_on_where_the_endpoints_last_worker_stopped():
    circuit = Circuit(5)
    assert circuit.is_open
    circuit.fail(circuit.begin())
    assert rest_seconds(circuit.n_failures) == 60
