"""Since when a case passes or fails: the last change that has lasted."""

import pytest

from evalboard.core.stats import find_lasting_change

PASS, FAIL = True, False


def test_a_case_that_broke_changed_at_its_first_run_of_failures_alone():
    runs = [[PASS] * 2] * 4 + [[PASS] * 5, [PASS, FAIL, PASS, PASS, PASS]] + [[FAIL] * 5] * 2
    change = find_lasting_change(runs)
    assert change is not None
    assert (change.at, change.is_pass) == (6, False)
    assert change.chance == pytest.approx(((1 + 1) / (18 + 2)) ** 2)


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param([], id="no run"),
        pytest.param([[PASS], [PASS, PASS]], id="passed always"),
        pytest.param([[PASS], [FAIL], [PASS, FAIL]], id="the newest run is mixed"),
    ],
)
def test_no_change_has_lasted(runs):
    assert find_lasting_change(runs) is None


def test_repeats_of_one_run_are_no_more_evidence_than_one():
    once = find_lasting_change([[PASS, FAIL], [PASS]])
    often = find_lasting_change([[PASS, FAIL], [PASS] * 5])
    assert once is not None
    assert often is not None
    assert once.chance == often.chance == 0.5
    assert often.is_pass
