"""Leaving the gate is a decision that a diff shows: tests/nightly.txt lists what `make test` no longer runs."""

import pytest

from tests.conftest import NIGHTLY, ROOT

LISTED = ROOT / "tests" / "nightly.txt"


def test_the_list_names_what_left_the_gate(request: pytest.FixtureRequest) -> None:
    collected = request.config.stash[NIGHTLY]
    files = {str(path.relative_to(ROOT)) for path in collected}
    listed = [line for line in LISTED.read_text().splitlines() if line.partition("::")[0] in files]
    assert listed == sorted(set().union(*collected.values()))


def test_every_file_on_the_list_exists() -> None:
    files = {line.partition("::")[0] for line in LISTED.read_text().splitlines()}
    assert [file for file in sorted(files) if not (ROOT / file).exists()] == []


def test_the_benches_that_nightly_runs_exist() -> None:
    from bench.__main__ import PARTS  # which the core's own environment cannot import
    from tools.test import SMALL_BENCHES

    assert set(SMALL_BENCHES) <= set(PARTS)
