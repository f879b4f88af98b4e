"""Leans before the second repeat: from which earlier runs their noise comes, and that they change no verdict."""

import numpy as np
import pytest

from evalboard.core.trace import pack_chances
from evalboard.wording.release_names import verdict_name
from runs.models import CaseColumns, EngineProcess, ReleaseRecord, RunRecord, SuiteVersionRecord
from runs.release import decide_release, release_report
from tests import build
from tests.nightly import few
from tests.runs import judged

pytestmark = pytest.mark.django_db
N_CASES = 100
POLICY = {"slug": "sample", "rule": "paired", "tolerance_points": 5.0}
FLIPS = {case: (case + 1,) for case in range(10)}  # ten cases, each wrong in a repeat of its own


@pytest.fixture
def version() -> SuiteVersionRecord:
    return judged.suite(n_cases=N_CASES, policy=POLICY)


@pytest.fixture
def process() -> EngineProcess:
    return build.process(build.bucket(batch_class="mixed"))


def candidate(version: SuiteVersionRecord, process: EngineProcess, *, repeats: int = 1) -> RunRecord:
    """A model with other weights on the same stack, whose margins foretell what the baseline's do."""
    other = build.bucket(weights="e" * 64, batch_class=process.bucket.batch_class)
    return judged.run(version, {3: (1,)}, repeats=repeats, by=build.process(other))


def compare(baseline: RunRecord, other: RunRecord, *, has_margins: bool = True) -> ReleaseRecord:
    if has_margins:
        chances = pack_chances(np.full(N_CASES, 0.1, np.float32))
        CaseColumns.objects.filter(repeat__run__in=(baseline, other), repeat__index=1).update(flip_chances=chances)
    return judged.release(baseline, other)


def test_earlier_runs_of_the_bucket_and_margins_give_a_lean(
    version: SuiteVersionRecord, process: EngineProcess
) -> None:
    judged.run(version, FLIPS, repeats=10, by=process)
    release = compare(judged.run(version, repeats=1, by=process), candidate(version, process))
    [gate] = release_report(release_id=release.pk).gates
    assert gate.verdict == "inconclusive"
    assert gate.early_lean is not None
    assert gate.early_lean.leaning == "ship"
    assert gate.low is not None
    assert gate.low < gate.early_lean.low < -1 < gate.early_lean.high < 5
    text = gate.reasons[0].text
    assert text.endswith(f"(90 % interval). Tendency: {verdict_name('ship')}. Not a verdict.")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "what", few(["no earlier run", "too few repeats", "later", "copies", "no margins", "full look"], 1)
)
def test_there_is_no_lean_where_nothing_foretells_the_noise(
    what: str, version: SuiteVersionRecord, process: EngineProcess
) -> None:
    if what in ("too few repeats", "no margins", "full look", "copies"):
        flips = {} if what == "copies" else FLIPS
        judged.run(version, flips, repeats=9 if what == "too few repeats" else 10, by=process)
    n_repeats = 5 if what == "full look" else 1
    baseline = judged.run(version, repeats=n_repeats, by=process)
    other = candidate(version, process, repeats=n_repeats)
    if what == "later":
        judged.run(version, FLIPS, repeats=10, by=process)
    release = compare(baseline, other, has_margins=what != "no margins")
    [gate] = release_report(release_id=release.pk).gates
    assert gate.early_lean is None


@pytest.mark.nightly
def test_a_later_run_of_the_bucket_leaves_the_verdict_as_it_was_taken(
    version: SuiteVersionRecord, process: EngineProcess
) -> None:
    judged.run(version, FLIPS, repeats=10, by=process)
    release = compare(judged.run(version, repeats=1, by=process), candidate(version, process))
    before = decide_release(release_id=release.pk)
    judged.run(version, FLIPS, repeats=10, by=process)
    assert decide_release(release_id=release.pk).pk == before.pk
