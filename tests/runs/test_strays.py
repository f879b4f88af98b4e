"""Responses that another computation gave are found when a run ends, and listed, and steady repeats that are not the
same are warned of; noise of repeats is not accused.
"""

import random
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

from runs.board import board
from runs.models import EngineProcess, Run, SuiteVersion, TraceBlock
from runs.pairs import PairNoise
from runs.run import run_report
from runs.work import look_through, work_on_strays
from tests import build
from tests.runs.test_comparisons import Answer, moved, recorded, stored

pytestmark = pytest.mark.django_db
N_CASES = 50
ROUTED = {(3, 1), (9, 4), (17, 2), (17, 5), (30, 1), (41, 3)}  # (case, repeat)


@pytest.fixture
def version(db: None) -> SuiteVersion:
    return build.suite(case_ids=[f"case-{number:02}" for number in range(N_CASES)])


def run_of(
    version: SuiteVersion,
    process: EngineProcess,
    *,
    noise: float,
    routed: set[tuple[int, int]],
    noisy: Collection[int] = range(1, 6),
    n_cases: int = N_CASES,
) -> Run:
    """Five repeats, some with noise of their own; the routed answers come from another copy of the weights."""
    repeats: list[list[Answer | None]] = []
    for repeat in range(1, 6):
        answers: list[Answer | None] = []
        for case in range(n_cases):
            trace = recorded(case)
            if (case, repeat) in routed:
                trace = moved(trace, 0.3, seed=9000 + case)
            answers.append(
                Answer(moved(trace, noise, seed=10_000 * repeat + case) if noise and repeat in noisy else trace)
            )
        repeats.append(answers)
    return stored(version, *repeats, by=process)


@pytest.mark.parametrize(("batch_class", "noise"), [("mixed", 0.0), ("mixed", 0.0002), ("alone", 0.0)])
def test_answers_that_were_routed_without_a_word_are_listed(
    version: SuiteVersion, batch_class: str, noise: float
) -> None:
    process = build.process(build.bucket(batch_class=batch_class))
    run = run_of(version, process, noise=noise, routed=ROUTED)
    [strays] = run.strays
    assert strays["responses"] == [[f"case-{case:02}", repeat] for case, repeat in sorted(ROUTED)]
    assert (strays["bucket"], strays["is_steady"]) == (process.bucket_id, batch_class == "alone")
    assert strays["distance"] == pytest.approx(0.3, rel=0.25)
    report = run_report(run.pk)
    [text] = [warning.text for warning in report.warnings if warning.code == "two_computations"]
    assert text.startswith("Two computations answered: 97.6 % of the responses agree with most others of their case, ")
    assert "and 2.4 % (6 responses in 5 cases) lie 0." in text
    assert run.unsteady == []  # said already
    [row] = board().attention
    assert (row.id, [note.text for note in row.warnings]) == (str(run.pk), [text])
    assert report.buckets[0].strays is not None
    assert len(report.buckets[0].strays.responses) == len(ROUTED)
    assert (report.buckets[0].strays.n_responses, report.buckets[0].strays.n_agreeing) == (250, 244)


def test_the_share_that_agrees_to_the_bit_is_said_beside_the_noise_of_the_others(version: SuiteVersion) -> None:
    process = build.process(build.bucket(batch_class="mixed"))
    run = run_of(version, process, noise=0.0002, routed=ROUTED, noisy=(4, 5))
    [strays] = run.strays
    # Of repeats 1 to 3 all but those that were routed.
    assert (strays["n_responses"], strays["n_agreeing"], strays["n_identical"]) == (250, 244, 146)
    [text] = [warning.text for warning in run_report(run.pk).warnings if warning.code == "two_computations"]
    assert "which agree within 0.00015 nats, 58.4 % of all to the bit. Look" in text


@pytest.mark.parametrize("batch_class", ["mixed", "alone"])
def test_what_another_computation_gave_is_no_noise(version: SuiteVersion, batch_class: str) -> None:
    """Apart from the routed answers all repeats are the same: what is left is no noise, or the floor for none seen."""
    process = build.process(build.bucket(batch_class=batch_class))
    run = run_of(version, process, noise=0.0, routed=ROUTED)
    noise = PairNoise(run, run).between(process.bucket_id, process.bucket_id)
    assert (noise.is_zero, noise.is_assumed) == (batch_class == "alone", batch_class == "mixed")


def test_of_a_larger_run_every_rerouted_answer_is_listed_and_no_other() -> None:
    names = [f"case-{number:03}" for number in range(600)]
    version, process = build.suite(case_ids=names), build.process(build.bucket(batch_class="mixed"))
    answers = [(case, repeat) for case in range(600) for repeat in range(1, 6)]
    routed = set(random.Random(3).sample(answers, k=180))
    run = run_of(version, process, noise=0.0002, routed=routed, n_cases=600)
    [found] = run.strays
    assert found["responses"] == [[names[case], repeat] for case, repeat in sorted(routed)]
    assert (found["n_cases"], found["n_unread"], run.strays_so_far) == (600, 0, None)
    assert not work_on_strays()


def test_what_is_left_unread_at_the_end_is_read_by_workers_and_comes_to_the_same(
    version: SuiteVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = build.process(build.bucket(batch_class="mixed"))
    [whole] = run_of(version, process, noise=0.0002, routed=ROUTED, noisy=(4, 5)).strays
    monkeypatch.setattr("runs.work.strays.PAIRS", 0)
    monkeypatch.setattr("runs.work.strays.MIN_CASES", 17)  # of 50 those that are read at once: 0, 2, 4, …
    run = run_of(version, process, noise=0.0002, routed=ROUTED | {(6, 1), (8, 1), (10, 1)}, noisy=(4, 5))
    [at_end] = run.strays
    assert (at_end["n_cases"], at_end["n_unread"], len(at_end["responses"])) == (17, 33, 4)
    assert at_end["n_responses"] == 85
    seen = [_read_on(run) for _ in range(2)]
    assert seen == [[at_end], [at_end]]  # nothing that rests on it is made anew for a part
    [found] = _read_on(run)
    assert (found["n_cases"], found["n_unread"], len(found["responses"])) == (50, 0, 9)
    assert set(map(tuple, found["responses"])) >= set(map(tuple, whole["responses"]))
    monkeypatch.undo()
    look_through(run)
    assert run.strays_so_far is None
    assert {**found, "distance": 0, "noise": 0} == {**run.strays[0], "distance": 0, "noise": 0}
    assert [found[name] for name in ("distance", "noise")] == pytest.approx(
        [run.strays[0][name] for name in ("distance", "noise")]
    )
    assert not work_on_strays()


def _read_on(run: Run) -> list[dict[str, Any]]:
    assert work_on_strays()
    run.refresh_from_db()
    return list(run.strays)


def test_what_cannot_be_read_later_leaves_what_was_found(
    version: SuiteVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.work.strays.PAIRS", 0)
    monkeypatch.setattr("runs.work.strays.MIN_CASES", 25)
    process = build.process(build.bucket(batch_class="mixed"))
    run = run_of(version, process, noise=0.0002, routed={(case, 2) for case in range(0, 50, 4)})
    [at_end] = run.strays
    _damage(run)
    assert work_on_strays()
    run.refresh_from_db()
    assert (run.strays, run.strays_so_far) == ([at_end], None)
    assert at_end["n_unread"] == 25
    assert not work_on_strays()


def test_noise_alone_is_nothing(version: SuiteVersion) -> None:
    process = build.process(build.bucket(batch_class="mixed"))
    assert run_of(version, process, noise=0.0002, routed=set()).strays == []
    assert run_of(version, process, noise=0.0, routed=set()).strays == []


@pytest.mark.parametrize("batch_class", ["alone", "invariant", "fixed-8"])
def test_steady_repeats_that_differ_in_two_cases_are_warned_of(version: SuiteVersion, batch_class: str) -> None:
    process = build.process(build.bucket(batch_class=batch_class))
    run = run_of(version, process, noise=0.0, routed={(9, 4), (17, 2)})
    assert run.strays == []
    report = run_report(run.pk)
    [text] = [warning.text for warning in report.warnings if warning.code == "unsteady"]
    assert text.startswith(
        "Repeats are not the same to the bit in 2 of 50 cases (case-09, case-17), and under batch class "
        f"{batch_class} they must be"
    )
    [row] = board().attention
    assert (row.id, [note.text for note in row.warnings]) == (str(run.pk), [text])


@pytest.mark.parametrize(("batch_class", "is_warned_of"), [("alone", True), ("mixed", False)])
def test_of_two_repeats_nobody_knows_which_is_off(
    version: SuiteVersion, batch_class: str, *, is_warned_of: bool
) -> None:
    process = build.process(build.bucket(batch_class=batch_class))
    ours: list[Answer | None] = [Answer(recorded(case)) for case in range(N_CASES)]
    theirs: list[Answer | None] = [Answer(moved(recorded(case), 0.3)) for case in range(N_CASES)]
    run = stored(version, ours, theirs, by=process)
    assert run.strays == []
    assert [(each["n_apart"], each["cases"]) for each in run.unsteady] == (
        [(N_CASES, ["case-00", "case-01", "case-02"])] if is_warned_of else []
    )


def test_draws_in_fixed_groups_need_not_be_the_same(version: SuiteVersion) -> None:
    process = build.process(build.bucket(batch_class="fixed-8"))
    ours: list[Answer | None] = [Answer(recorded(case)) for case in range(N_CASES)]
    theirs: list[Answer | None] = [Answer(moved(recorded(case), 0.3)) for case in range(N_CASES)]
    assert stored(version, ours, theirs, by=process, under="sampled").unsteady == []


def test_a_trace_that_cannot_be_read_keeps_no_run_from_ending(version: SuiteVersion) -> None:
    process = build.process(build.bucket(batch_class="mixed"))
    run = run_of(version, process, noise=0.0, routed=ROUTED)
    _damage(run)
    look_through(run)
    assert (run.strays, run.unsteady) == ([], [])


def _damage(run: Run) -> None:
    block = TraceBlock.objects.filter(run=run).first()
    assert block is not None
    damaged = np.frombuffer(bytes(block.data), np.uint8).copy()
    damaged[40:] ^= 0xFF
    TraceBlock.objects.filter(pk=block.pk).update(data=damaged.tobytes())
