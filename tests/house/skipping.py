"""Tests that are skipped, for test_skips.py to run. Collected only by its name."""

import os

import pytest

if os.environ.get("SKIPS_THE_FILE"):
    pytest.skip("No file of this kind.", allow_module_level=True)


@pytest.fixture
def part() -> None:
    pytest.skip("No such part.")


@pytest.mark.skipif(True, reason="Not on this machine.")
def test_marked() -> None: ...


def test_of_a_part(part: None) -> None: ...


def test_that_ends_itself() -> None:
    pytest.skip("No time.")


@pytest.mark.xfail(strict=True, reason="Known, and to be mended.")
def test_expected_to_fail() -> None:
    raise AssertionError
