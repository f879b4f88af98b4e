"""How much of a stored comparison's difference is noise, by what its repeats scatter; and why that is not known."""

from collections.abc import Sequence

import pytest

from evalboard.contract.compare import NoiseShare
from evalboard.core.stats import make_mark
from runs.compare import compare
from runs.models import CaseColumns, EngineProcess, RunRecord, SuiteVersionRecord
from tests import build
from tests.build import comparison_report
from tests.casts import cast
from tests.nightly import few
from tests.runs.test_comparisons import Answer, flipped, recorded, stored

pytestmark = pytest.mark.django_db
N_CASES = 60


@cast
def version() -> SuiteVersionRecord:
    return build.suite(case_ids=[f"case-{number:02}" for number in range(N_CASES)])


def batched(fingerprint: str = "float32") -> EngineProcess:
    return build.process(build.bucket(fingerprint, batch_class="mixed"))


def answers(*wrong: int) -> list[Answer | None]:
    """Right answers to all cases but these, which part from them."""
    return [
        Answer(flipped(recorded(case), 3), text="no colour") if case in wrong else Answer(recorded(case))
        for case in range(N_CASES)
    ]


def share_of(baseline: RunRecord, candidate: RunRecord) -> NoiseShare:
    share = comparison_report(compare(baseline=baseline.pk, candidate=candidate.pk).pk).noise_share
    assert share is not None
    return share


def flapping(broken: Sequence[int] = ()) -> list[list[Answer | None]]:
    """Five repeats; in each another three cases fail, and the broken ones."""
    return [answers(*broken, *range(3 * repeat, 3 * repeat + 3)) for repeat in range(5)]


@cast
def noisy(version: SuiteVersionRecord) -> RunRecord:
    return stored(version, *flapping(), by=batched())


@pytest.mark.nightly
def test_what_repeats_scatter_is_noise_and_the_rest_is_not(version: SuiteVersionRecord, noisy: RunRecord) -> None:
    by = batched()
    broken = range(30, 60)
    worse = share_of(noisy, stored(version, *flapping(broken), by=by))
    assert worse.up_to is not None
    assert worse.beyond == pytest.approx(-50 + worse.up_to)
    assert worse.text.startswith("Noise moves this score by at most ±")
    assert worse.text.endswith(f" At least −{50 - round(worse.up_to + 0.05, 1):.1f} of −50.0 points is not noise.")
    one_more = share_of(noisy, stored(version, *flapping([59]), by=by))
    assert (one_more.beyond, one_more.text.endswith(" All of −1.7 points may be noise.")) == (0, True)


@pytest.mark.nightly
def test_each_cause_has_the_noise_of_its_own_cases(version: SuiteVersionRecord, noisy: RunRecord) -> None:
    worse = stored(version, *flapping(range(30, 60)), by=batched())
    report = comparison_report(compare(baseline=noisy.pk, candidate=worse.pk).pk)
    assert report.noise_share is not None
    assert [line.n_cases for line in report.ledger] == [30]  # those that flap move by nothing
    [line] = report.ledger
    assert line.noise is not None
    assert 0 < line.noise < (report.noise_share.up_to or 0)
    steady = build.process(build.bucket(batch_class="alone"))
    pinned = [stored(version, *[answers(*wrong)] * 5, by=steady) for wrong in ((40,), (41, 42))]
    lines = comparison_report(compare(baseline=pinned[0].pk, candidate=pinned[1].pk).pk).ledger
    assert [line.noise for line in lines] == [None] * len(lines) != []


@pytest.mark.nightly
def test_a_steady_side_is_one_draw_of_what_moves_the_other(version: SuiteVersionRecord, noisy: RunRecord) -> None:
    steady = build.process(build.bucket(batch_class="alone"))
    pinned = stored(version, *[answers(40)] * 5, by=steady)
    against_noisy = share_of(pinned, noisy).up_to
    between_noisy = share_of(noisy, stored(version, *flapping([50]), by=batched())).up_to
    assert against_noisy is not None
    assert between_noisy is not None
    assert against_noisy > 1.5 * between_noisy
    share = share_of(pinned, stored(version, *[answers(41, 42)] * 5, by=steady))
    assert (share.up_to, share.beyond, share.reason) == (None, None, "one_draw")
    assert share.text.startswith("All repeats were identical, so noise under other batching was not measured.")


@pytest.mark.parametrize(("batch_class", "is_one_draw"), few([("alone", True), ("mixed", False), ("fixed-8", True)], 2))
def test_repeats_of_a_steady_batch_class_are_one_draw_also_where_one_answer_came_otherwise(
    version: SuiteVersionRecord, batch_class: str, *, is_one_draw: bool
) -> None:
    by = build.process(build.bucket(batch_class=batch_class))
    runs = [stored(version, answers(1, failed), answers(1), answers(1), by=by) for failed in (2, 3)]
    assert (share_of(*runs).reason == "one_draw") == is_one_draw


@pytest.mark.nightly
def test_repeats_that_are_the_same_to_the_bit_are_one_draw_however_they_were_batched(
    version: SuiteVersionRecord,
) -> None:
    by = batched()
    share = share_of(stored(version, *[answers(1)] * 3, by=by), stored(version, *[answers(1, 2)] * 3, by=by))
    assert share.reason == "one_draw"


@pytest.mark.nightly
def test_one_repeat_a_side_and_cached_answers_say_nothing_and_why(version: SuiteVersionRecord) -> None:
    by = batched()
    single = stored(version, answers(1), by=by)
    share = share_of(single, stored(version, answers(1, 2), by=by))
    assert (share.reason, share.text.endswith("It takes two repeats on one side.")) == ("one_repeat", True)
    cached = stored(version, *flapping(), by=by)
    marks = bytes([make_mark(["cached"])] * 9 + [0] * (N_CASES - 9))
    CaseColumns.objects.filter(repeat__run=cached, repeat__index=2).update(marks=marks, n_left_out=9)
    assert share_of(stored(version, *flapping([55]), by=by), cached).reason == "left_out"
