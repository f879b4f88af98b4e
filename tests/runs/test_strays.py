"""Responses that another computation gave are found when a run ends, and listed, and steady repeats that are not the
same are warned of; noise of repeats is not accused.
"""

import random
import threading
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from evalboard.core.compare import stray_search
from runs.board import board
from runs.models import EngineProcess, ResponseRecord, RunRecord, Stray, SuiteVersionRecord, TraceBlock
from runs.pairs import measure_pair_noise
from runs.run import run_report
from runs.run.read_state import run_state
from runs.work import look_through, work_on_strays
from runs.work import strays as strays_work
from tests import build
from tests.api.conftest import SCOPES, Api
from tests.casts import cast
from tests.nightly import nightly
from tests.runs.test_comparisons import Answer, moved, recorded, stored
from tests.runs.test_pair_causes import drawn_otherwise

pytestmark = pytest.mark.django_db
N_CASES = 50
ROUTED = {(3, 1), (9, 4), (17, 2), (17, 5), (30, 1), (41, 3)}  # (case, repeat)


@cast
def version() -> SuiteVersionRecord:
    return build.suite(case_ids=[f"case-{number:02}" for number in range(N_CASES)])


def run_of(
    version: SuiteVersionRecord,
    process: EngineProcess,
    *,
    noise: float,
    routed: set[tuple[int, int]],
    noisy: Collection[int] = range(1, 6),
    n_cases: int = N_CASES,
) -> RunRecord:
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


@pytest.mark.parametrize(("batch_class", "noise"), [("mixed", 0.0002), *nightly([("mixed", 0.0), ("alone", 0.0)])])
def test_answers_that_were_routed_without_a_word_are_listed(
    version: SuiteVersionRecord, batch_class: str, noise: float
) -> None:
    process = build.process(build.bucket(batch_class=batch_class))
    run = run_of(version, process, noise=noise, routed=ROUTED)
    [strays] = run.strays
    assert _listed(run) == sorted(ROUTED)
    assert (strays["n_strays"], strays["n_stray_cases"]) == (6, 5)
    assert (strays["bucket"], strays["is_steady"]) == (process.bucket_id, batch_class == "alone")
    assert strays["distance"] == pytest.approx(0.3, rel=0.25)
    report = run_report(run.pk)
    [text] = [warning.text for warning in report.warnings if warning.code == "two_computations"]
    assert text.startswith("6 outlier responses (2.4 %) in 5 cases: 0.")
    assert run.unsteady == []  # said already
    [row] = board().attention
    assert (row.id, [note.text for note in row.warnings]) == (str(run.pk), [text])
    assert report.buckets[0].strays is not None
    assert [(each.case, each.repeat) for each in report.buckets[0].strays.responses] == [
        (f"case-{case:02}", repeat) for case, repeat in sorted(ROUTED)
    ]
    assert (report.buckets[0].strays.n_responses, report.buckets[0].strays.n_agreeing) == (250, 244)


def test_the_share_that_agrees_to_the_bit_is_said_beside_the_noise_of_the_others(version: SuiteVersionRecord) -> None:
    process = build.process(build.bucket(batch_class="mixed"))
    run = run_of(version, process, noise=0.0002, routed=ROUTED, noisy=(4, 5))
    [strays] = run.strays
    # Of repeats 1 to 3 all but those that were routed.
    assert (strays["n_responses"], strays["n_agreeing"], strays["n_identical"]) == (250, 244, 146)
    [text] = [warning.text for warning in run_report(run.pk).warnings if warning.code == "two_computations"]
    assert "agree within 0.00015 nats (58.4 % of all to the bit)." in text


@pytest.mark.parametrize("batch_class", ["alone", *nightly(["mixed"])])
def test_what_another_computation_gave_is_no_noise(version: SuiteVersionRecord, batch_class: str) -> None:
    """Apart from the routed answers all repeats are the same: what is left is no noise, or the floor for none seen."""
    process = build.process(build.bucket(batch_class=batch_class))
    run = run_of(version, process, noise=0.0, routed=ROUTED)
    noise = measure_pair_noise(run, run).between(process.bucket_id, process.bucket_id)
    assert (noise.is_zero, noise.is_assumed) == (batch_class == "alone", batch_class == "mixed")


@pytest.mark.nightly
def test_of_a_larger_run_every_rerouted_answer_is_listed_and_no_other() -> None:
    names = [f"case-{number:03}" for number in range(600)]
    version, process = build.suite(case_ids=names), build.process(build.bucket(batch_class="mixed"))
    answers = [(case, repeat) for case in range(600) for repeat in range(1, 6)]
    routed = set(random.Random(3).sample(answers, k=180))
    run = run_of(version, process, noise=0.0002, routed=routed, n_cases=600)
    [found] = run.strays
    assert _listed(run) == sorted(routed)
    assert found["n_strays"] == len(routed)
    assert (found["n_cases"], found["n_unread"], run.strays_so_far) == (600, 0, None)
    assert not work_on_strays()


def test_what_is_left_unread_at_the_end_is_read_by_workers_and_comes_to_the_same(
    version: SuiteVersionRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = build.process(build.bucket(batch_class="mixed"))
    whole = _listed(run_of(version, process, noise=0.0002, routed=ROUTED, noisy=(4, 5)))
    monkeypatch.setattr(stray_search, "PAIRS", 0)
    monkeypatch.setattr(stray_search, "MIN_CASES", 17)  # of 50 those that are read at once: 0, 2, 4, …
    run = run_of(version, process, noise=0.0002, routed=ROUTED | {(6, 1), (8, 1), (10, 1)}, noisy=(4, 5))
    [at_end] = run.strays
    assert (at_end["n_cases"], at_end["n_unread"], at_end["n_strays"]) == (17, 33, 4)
    assert at_end["n_responses"] == 85
    listed = _listed(run)
    seen = [(_read_on(run), _listed(run)) for _ in range(2)]
    assert seen == [([at_end], listed)] * 2  # nothing that rests on it is made anew for a part
    [found] = _read_on(run)
    assert (found["n_cases"], found["n_unread"], found["n_strays"]) == (50, 0, 9)
    listed = _listed(run)
    assert set(listed) >= set(whole)
    assert run.stray_responses.count() == 9
    monkeypatch.undo()
    look_through(run)
    assert _listed(run) == listed
    assert run.strays_so_far is None
    assert {**found, "distance": 0, "noise": 0} == {**run.strays[0], "distance": 0, "noise": 0}
    assert [found[name] for name in ("distance", "noise")] == pytest.approx(
        [run.strays[0][name] for name in ("distance", "noise")]
    )
    assert not work_on_strays()


def test_a_run_that_went_on_while_it_was_read_stays_as_it_is(
    version: SuiteVersionRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _half_read(version, monkeypatch)
    at_end, read = run.strays, strays_work.StoredRepeats.read

    def add_repeats_meanwhile(*args: Any) -> Any:
        RunRecord.objects.filter(pk=run.pk).update(status=RunRecord.Status.QUEUED)
        return read(*args)

    monkeypatch.setattr(strays_work.StoredRepeats, "read", add_repeats_meanwhile)
    assert work_on_strays()
    run.refresh_from_db()
    assert (run.strays, run.stray_responses.filter(is_listed=False).count()) == (at_end, 0)
    assert not work_on_strays()  # until it has ended again


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    version = build.suite(case_ids=[f"case-{number:02}" for number in range(N_CASES)])
    run, read, others = _half_read(version, monkeypatch), strays_work.StoredRepeats.read, []

    def look_meanwhile() -> None:
        with transaction.atomic():
            others.append(RunRecord.objects.select_for_update(nowait=True).get(pk=run.pk).pk)
        others.append(work_on_strays())  # another worker has nothing to read
        connection.close()

    def read_beside_another(*args: Any) -> Any:
        thread = threading.Thread(target=look_meanwhile)
        thread.start()
        thread.join()
        return read(*args)

    monkeypatch.setattr(strays_work.StoredRepeats, "read", read_beside_another)
    assert work_on_strays()
    assert others == [run.pk, False]
    run.refresh_from_db()
    assert (run.strays[0]["n_unread"], run.strays_so_far) == (0, None)


def _half_read(version: SuiteVersionRecord, monkeypatch: pytest.MonkeyPatch) -> RunRecord:
    """A run of which workers are to read half of the cases that differ, in one call."""
    monkeypatch.setattr(stray_search, "PAIRS", 0)
    monkeypatch.setattr(stray_search, "MIN_CASES", 25)
    process = build.process(build.bucket(batch_class="mixed"))
    run = run_of(version, process, noise=0.0002, routed={(case, 2) for case in range(0, 50, 4)})
    monkeypatch.setattr(stray_search, "MIN_CASES", 50)
    assert run.strays_so_far == []
    return run


@pytest.mark.nightly
def test_a_run_of_many_strays_is_answered_as_fast_as_one_of_few() -> None:
    reader, sizes = Api(build.token(build.user("root", "admin"), *SCOPES)), []
    for n in (120, 150, 3000):  # the first one pays for what is read once
        run = build.run(build.suite(f"of-{n}", case_ids=[f"case-{number:04}" for number in range(3000)]))
        build.strays(run, n=n)
        with CaptureQueriesContext(connection) as context:
            answer = reader.get(f"/runs/{run.pk}/").json()
        sizes.append((len(context), len(answer["buckets"][0]["strays"]["responses"])))
        assert answer["buckets"][0]["strays"]["n_strays"] == n
    assert sizes[1] == sizes[2]
    first = reader.get(f"/runs/{run.pk}/strays/?page_size=200").json()
    second = reader.get(first["next"].partition("/api/v1")[2]).json()
    assert [each["case"] for each in (*first["results"], *second["results"])] == [
        f"case-{number:04}" for number in range(400)
    ]
    assert reader.get(second["previous"].partition("/api/v1")[2]).json()["results"] == first["results"]
    assert first["results"][0] == {"case": "case-0000", "repeat": 2, "bucket": answer["bucket"]}
    assert reader.get(f"/runs/{run.pk}/strays/?bucket=0").json()["results"] == []
    assert reader.get("/runs/999999/strays/").status_code == 404


def test_who_polls_a_run_is_told_when_its_strays_are_read(
    version: SuiteVersionRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _half_read(version, monkeypatch)
    before = run_state(run.pk)
    assert work_on_strays()
    assert run_state(run.pk).settled != before.settled


def _listed(run: RunRecord) -> list[tuple[int, int]]:
    return list(Stray.objects.filter(run=run).listed().values_list("case_index", "repeat"))


def _read_on(run: RunRecord) -> list[dict[str, Any]]:
    assert work_on_strays()
    run.refresh_from_db()
    return list(run.strays)


def test_what_cannot_be_read_later_leaves_what_was_found(
    version: SuiteVersionRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stray_search, "PAIRS", 0)
    monkeypatch.setattr(stray_search, "MIN_CASES", 25)
    process = build.process(build.bucket(batch_class="mixed"))
    run = run_of(version, process, noise=0.0002, routed={(case, 2) for case in range(0, 50, 4)})
    [at_end] = run.strays
    _damage(run)
    assert work_on_strays()
    run.refresh_from_db()
    assert (run.strays, run.strays_so_far) == ([at_end], None)
    assert at_end["n_unread"] == 25
    assert not work_on_strays()


@pytest.mark.nightly
def test_noise_alone_is_nothing(version: SuiteVersionRecord) -> None:
    process = build.process(build.bucket(batch_class="mixed"))
    assert run_of(version, process, noise=0.0002, routed=set()).strays == []
    assert run_of(version, process, noise=0.0, routed=set()).strays == []


RAN = {"alone": "At batch size 1", "invariant": "With batch-invariant kernels", "fixed-8": "In fixed batches of 8"}


@pytest.mark.parametrize("batch_class", ["alone", *nightly(["invariant", "fixed-8"])])
def test_steady_repeats_that_differ_in_two_cases_are_warned_of(version: SuiteVersionRecord, batch_class: str) -> None:
    process = build.process(build.bucket(batch_class=batch_class))
    run = run_of(version, process, noise=0.0, routed={(9, 4), (17, 2)})
    assert run.strays == []
    report = run_report(run.pk)
    [text] = [warning.text for warning in report.warnings if warning.code == "unsteady"]
    assert text.startswith(
        f"Repeats have different bits in 2 of 50 cases (case-09, case-17). {RAN[batch_class]}, repeats should"
    )
    [row] = board().attention
    assert (row.id, [note.text for note in row.warnings]) == (str(run.pk), [text])


@pytest.mark.parametrize(("batch_class", "is_warned_of"), [("alone", True), ("mixed", False)])
def test_of_two_repeats_nobody_knows_which_is_off(
    version: SuiteVersionRecord, batch_class: str, *, is_warned_of: bool
) -> None:
    process = build.process(build.bucket(batch_class=batch_class))
    ours: list[Answer | None] = [Answer(recorded(case)) for case in range(N_CASES)]
    theirs: list[Answer | None] = [Answer(moved(recorded(case), 0.3)) for case in range(N_CASES)]
    run = stored(version, ours, theirs, by=process)
    assert run.strays == []
    assert [(each["n_apart"], each["cases"]) for each in run.unsteady] == (
        [(N_CASES, ["case-00", "case-01", "case-02"])] if is_warned_of else []
    )


def test_draws_in_fixed_groups_need_not_be_the_same(version: SuiteVersionRecord) -> None:
    process = build.process(build.bucket(batch_class="fixed-8"))
    ours: list[Answer | None] = [Answer(recorded(case)) for case in range(N_CASES)]
    theirs: list[Answer | None] = [Answer(moved(recorded(case), 0.3)) for case in range(N_CASES)]
    assert stored(version, ours, theirs, by=process, under="sampled").unsteady == []


@pytest.mark.parametrize("seeds", [(41, 42, 43), (None, None, None)], ids=["a seed each", "none"])
def test_draws_that_were_sent_other_seeds_need_not_be_the_same(
    version: SuiteVersionRecord, seeds: tuple[int | None, ...]
) -> None:
    run = drawn(version, seeds)
    assert (run.strays, run.unsteady) == ([], [])
    assert "unsteady" not in {warning.code for warning in run_report(run.pk).warnings}


@pytest.mark.nightly
def test_of_draws_only_those_of_one_seed_are_compared(version: SuiteVersionRecord) -> None:
    [entry] = drawn(version, (41, 42, 42)).unsteady
    assert (entry["n_apart"], entry["n_cases"]) == (N_CASES, N_CASES)
    run = drawn(version, (41, 42, 42))
    ResponseRecord.objects.filter(repeat__run=run, case_index__gt=1).update(seed_sent=None)
    look_through(run)
    assert [(each["n_apart"], each["n_cases"]) for each in run.unsteady] == [(2, 2)]
    ResponseRecord.objects.filter(repeat__run=run, repeat__index=2, case_index=0).update(seed_sent=41)
    look_through(run)
    assert [(each["n_apart"], each["n_cases"]) for each in run.unsteady] == [(1, 2)]  # 1 and 2 of case 0 are the same


def drawn(version: SuiteVersionRecord, seeds: tuple[int | None, ...]) -> RunRecord:
    """A sampled run at batch size 1 whose last repeat alone has other tokens, as if these seeds had been sent."""
    alike: list[Answer | None] = [Answer(recorded(case)) for case in range(N_CASES)]
    other: list[Answer | None] = [Answer(drawn_otherwise(recorded(case), 6)) for case in range(N_CASES)]
    answers = [*[alike] * (len(seeds) - 1), other]
    run = stored(version, *answers, by=build.process(build.bucket(batch_class="alone")), under="sampled")
    for repeat, seed in enumerate(seeds, start=1):
        ResponseRecord.objects.filter(repeat__run=run, repeat__index=repeat).update(seed_sent=seed)
    Stray.objects.filter(run=run).delete()
    look_through(run)
    return run


def test_a_trace_that_cannot_be_read_keeps_no_run_from_ending(version: SuiteVersionRecord) -> None:
    process = build.process(build.bucket(batch_class="mixed"))
    run = run_of(version, process, noise=0.0, routed=ROUTED)
    _damage(run)
    look_through(run)
    assert (run.strays, run.unsteady) == ([], [])


def _damage(run: RunRecord) -> None:
    block = TraceBlock.objects.filter(run=run).first()
    assert block is not None
    damaged = np.frombuffer(bytes(block.data), np.uint8).copy()
    damaged[40:] ^= 0xFF
    TraceBlock.objects.filter(pk=block.pk).update(data=damaged.tobytes())
