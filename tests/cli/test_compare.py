"""`evalboard compare`."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import numpy as np
import pytest
from django.db.models.functions import Now

from evalboard.core.trace import pack_selection
from runs.models import RepeatRecord
from tests import build, judged
from tests.judged import N_CASES

Call = Callable[..., "CompletedProcess[str]"]


def test_difference_comparability_and_ledger(evalboard: Call, transactional_db: None) -> None:
    by = build.process()
    baseline, candidate = judged.run(by=by), judged.run(N_CASES // 2, by=by)
    done = evalboard("compare", str(baseline.pk), str(candidate.pk))
    assert (done.returncode, done.stderr) == (0, "")
    first, computation, cases, *ledger, noise, speed = done.stdout.splitlines()
    title = f"Run {candidate.pk} against run {baseline.pk}: −50.0 points (100.0 to 50.0), comparable. http://"
    assert first.startswith(title)
    assert first.endswith(f"/compare/{baseline.pk}/{candidate.pk}/")
    assert computation.endswith("Something changed that no fingerprint shows.")
    assert cases.startswith(
        "Of 8 cases: 4 broke, 0 fixed, 0 unstable, 4 with the same answer. Repeats give the same bits."
    )
    assert sum(float(line.split()[-2].replace("−", "-")) for line in ledger) == -50.0
    assert any(line.split()[1:3] == ["4", "cases"] for line in ledger)
    assert noise.startswith("All repeats were identical")
    assert speed.startswith("An answer: ")
    limits = {
        "points=50,text": (5, "points: the score fell by 50.0"),
        "cause=seed_ignored": (4, "is not known of both"),
    }
    for given, (code, words) in (limits | {"points=51,cause=leak": (0, ""), "kl=1": (64, "evalboard diff")}).items():
        done = evalboard("compare", str(baseline.pk), str(candidate.pk), "--fail-on", given)
        assert (done.returncode, words in done.stderr) == (code, True), given


@pytest.mark.nightly
def test_targeted_repeats_are_said_and_counted_nowhere(evalboard: Call, transactional_db: None) -> None:
    baseline, candidate = judged.run(), judged.run()
    asked = ("compare", str(baseline.pk), str(candidate.pk))
    before = evalboard(*asked).stdout.splitlines()
    for run, selections in ((baseline, [(0, 3), (0, 5)]), (candidate, [(0, 3)])):
        n_whole = run.repeats.count()
        for index, cases in enumerate(selections, start=n_whole + 1):
            chosen = pack_selection(np.isin(np.arange(N_CASES), cases))
            RepeatRecord.objects.create(run=run, index=index, cases=chosen, status="finished", finished_at=Now())
    after = evalboard(*asked).stdout.splitlines()
    assert [line for line in after if line not in before] == [
        "Targeted repeats count only in a release's verdict: 2 repeats of 3 cases on the baseline and 1 repeat of 2 "
        "cases on the candidate."
    ]
    assert [line for line in before if line not in after] == []


@pytest.mark.nightly
def test_what_forbids_to_compare_is_said_and_is_no_failure(evalboard: Call, transactional_db: None) -> None:
    baseline, candidate = judged.run(), judged.run(by=build.process(build.bucket("bfloat16")))
    done = evalboard("compare", str(baseline.pk), str(candidate.pk))
    assert (done.returncode, ", not comparable. http" in done.stdout) == (0, True)
    assert "not comparable: Both sides served the same model" in done.stdout


@pytest.mark.nightly
def test_json_is_the_comparison_and_nothing_else(evalboard: Call, transactional_db: None) -> None:
    baseline, candidate = judged.run(), judged.run()
    body = json.loads(evalboard("compare", str(baseline.pk), str(candidate.pk), "--json").stdout)
    assert (body["baseline"], body["candidate"], body["score"]["difference"]) == (
        str(baseline.pk),
        str(candidate.pk),
        0,
    )


def test_a_run_that_is_not_there_is_64(evalboard: Call, transactional_db: None) -> None:
    done = evalboard("compare", str(judged.run().pk), "999999")
    assert (done.returncode, done.stdout, "There is no run 999999" in done.stderr) == (64, "", True)
