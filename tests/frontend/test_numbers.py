"""One filter for each kind of number."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from frontend.templatetags import numbers, releases

NB = "\u00a0"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(80.64, "80.6"), (0.0, "0.0"), (-0.6, "−0.6"), (None, "–"), (float("nan"), "–")],
)
def test_points_have_one_decimal_and_missing_is_never_zero(value, shown):
    assert numbers.points(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [((80.6, 80.9), "80.6–80.9"), ((58.33, 58.34), "58.3"), (None, "–"), ((-1.1, -0.1), "−1.1–−0.1")],
)
def test_a_range_takes_an_en_dash_and_equal_ends_are_written_once(value, shown):
    assert numbers.span(value) == shown


def test_there_is_no_mean_while_a_repeat_is_missing():
    assert numbers.mean((80.0, None, 82.0)) is None
    assert numbers.mean((80.0, 82.0)) == 81.0
    assert numbers.mean(()) is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, f"0{NB}%"),
        (0.001, f"under{NB}1{NB}%"),
        (0.62, f"62{NB}%"),
        (0.825, f"83{NB}%"),  # halves as everywhere
        (0.9999, f"over{NB}99{NB}%"),
        (1.0, f"100{NB}%"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_nothing(value, shown):
    assert numbers.share(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0123, f"12{NB}ms"),
        (2.713, f"2.7{NB}s"),
        (59.4, f"59{NB}s"),
        (63.2, f"1{NB}min 3{NB}s"),
        (488, f"8{NB}min 8{NB}s"),
        (3600, f"1{NB}h"),
        (5400, f"1{NB}h 30{NB}min"),
        (None, "–"),
    ],
)
def test_seconds_show_the_units_that_matter(value, shown):
    assert numbers.seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(7, f"10{NB}s"), (44, f"40{NB}s"), (488, f"8{NB}min"), (4000, f"1{NB}h 7{NB}min")]
)
def test_an_estimate_is_no_finer_than_it_can_be_known(value, shown):
    assert numbers.roughly(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (999, f"999{NB}B"),
        (1000, f"1.0{NB}kB"),
        (18_400_000, f"18.4{NB}MB"),
        (999_960, f"1.0{NB}MB"),
        (5 * 10**15, f"5000{NB}TB"),
    ],
)
def test_bytes_are_in_decimal_units(value, shown):
    assert numbers.size(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-0.6931, "−0.693"), (0.0, "0.000"), (float("-inf"), "−∞"), (float("nan"), "not a number"), (None, "–")],
)
def test_logprobs_keep_three_decimals_and_say_what_is_not_finite(value, shown):
    assert numbers.nats(value) == shown


@pytest.mark.parametrize(
    ("logprob", "shown"),
    [
        (0.0, f"100.0{NB}%"),
        (-0.6931, f"50.0{NB}%"),
        (-8.931, f"0.013{NB}%"),
        (-20.0, f"under{NB}0.001{NB}%"),
        (float("-inf"), f"0{NB}%"),
    ],
)
def test_a_probability_has_the_decimals_that_say_something(logprob, shown):
    assert numbers.probability(logprob) == shown


def test_times_are_in_utc_and_exact_in_the_attribute():
    at = datetime(2026, 11, 21, 6, 5, 7, tzinfo=timezone(timedelta(hours=2)))
    assert numbers.instant(at) == numbers.instant(at.astimezone(UTC))
    assert 'datetime="2026-11-21T04:05:07.000Z"' in numbers.instant(at)
    assert 'title="2026-11-21 04:05:07 UTC">2026-11-21 04:05 UTC<' in numbers.instant(at)


def test_a_time_in_a_sentence_is_shown_as_all_others_are():
    shown = releases.numbers_whole("Expired since 2026-11-21 04:05 UTC.")
    assert shown == f"<bdi>Expired since {numbers.instant(datetime(2026, 11, 21, 4, 5, tzinfo=UTC))}.</bdi>"
    now = datetime.now(UTC).replace(microsecond=0)
    soon = now + timedelta(hours=11)
    shown = releases.numbers_whole(f"Next try {soon:%H:%M:%S} UTC, not 2026-02-31 10:00 UTC or 29:00 UTC.")
    assert shown == f"<bdi>Next try {numbers.clock(soon)}, not 2026-02-31 10:00 UTC or 29:00 UTC.</bdi>"


def test_a_digest_is_short_on_screen_and_whole_in_its_title():
    shown = numbers.digest("a81c" * 16, 8)
    assert ">a81ca81c<" in shown
    assert f'title="{"a81c" * 16}"' in shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (0.4, "just now"),
        (4.9, f"4{NB}s{NB}ago"),
        (59.9, f"59{NB}s{NB}ago"),
        (60, f"1{NB}min{NB}ago"),
        (7200, f"2{NB}h{NB}ago"),
        (172_799, f"47{NB}h{NB}ago"),
        (172_800, f"2{NB}days{NB}ago"),
    ],
)
def test_an_age_has_one_unit(seconds, shown):
    assert numbers.ago(seconds) == shown
