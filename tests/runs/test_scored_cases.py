"""What a scorer said of one response is read alone, however many cases there are, and as earlier versions stored it."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from evalboard.core.trace.reasons import FRAME
from runs.models import RepeatRecord, RepeatScore, RunRecord
from runs.store import read_scored, scored_cases
from runs.work import rollup

N_CASES = 6 * FRAME + 3
REASONS = ["x" * (index % 977) + f" {index}" if index % 5 else None for index in range(N_CASES)]
SCORES = np.array([math.nan if index % 7 == 0 else index / N_CASES for index in range(N_CASES)])
CASES = (0, 5, FRAME - 1, FRAME, 3 * FRAME + 14, N_CASES - 1)


@pytest.fixture
def repeat(new_run: Callable[..., RunRecord]) -> RepeatRecord:
    repeat = new_run(repeats=1).repeats.get()
    rollup.store_scores(repeat, repeat.run.suite_version.scorer, SCORES, REASONS)
    return repeat


@pytest.mark.parametrize("start_bytes", [0, scored_cases.START_BYTES, 1 << 20])
def test_each_case_has_its_score_and_its_reason(
    repeat: RepeatRecord, start_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scored_cases, "START_BYTES", start_bytes)
    assert _said(repeat) == _expected()


def test_one_takes_two_statements_and_few_bytes(repeat: RepeatRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[bytes] = []
    unpack = scored_cases.unpack_frame_of_reasons
    monkeypatch.setattr(scored_cases, "unpack_frame_of_reasons", lambda frame: unpacked.append(frame) or unpack(frame))
    asked = _count_statements(monkeypatch)
    read_scored([(repeat.pk, 3 * FRAME + 14)], n_cases=N_CASES)
    packed = RepeatScore.objects.values_list("reasons", flat=True).get()
    assert len(asked) == 2
    assert [len(frame) < len(packed) / 4 for frame in unpacked] == [True]


def test_of_a_small_suite_one_statement_reads_all(
    new_run: Callable[..., RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    repeat = new_run(repeats=1).repeats.get()
    rollup.store_scores(repeat, repeat.run.suite_version.scorer, np.ones(30), ["Equal."] * 30)
    asked = _count_statements(monkeypatch)
    said = read_scored([(repeat.pk, index) for index in range(30)], n_cases=30)
    assert len(asked) == 1
    assert {(row.score, row.reason) for rows in said.values() for row in rows} == {(1.0, "Equal.")}


def test_what_is_not_scored_has_no_entry(repeat: RepeatRecord) -> None:
    RepeatScore.objects.all().delete()
    assert read_scored([(repeat.pk, 0)], n_cases=N_CASES) == {}
    assert read_scored([], n_cases=N_CASES) == {}


def _said(repeat: RepeatRecord) -> dict[int, tuple[float | None, str]]:
    said = read_scored([(repeat.pk, case) for case in CASES], n_cases=N_CASES)
    return {case: (row.score, row.reason) for (_, case), [row] in said.items()}


def _expected() -> dict[int, tuple[float | None, str]]:
    return {case: (None if case % 7 == 0 else case / N_CASES, REASONS[case] or "") for case in CASES}


def _count_statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by each statement of the binary protocol, which Django's own capture does not see."""
    asked: list[str] = []
    stream = scored_cases.bulk.stream_binary

    def counted(statement, parameters, **options):
        asked.append(statement)
        return stream(statement, parameters, **options)

    monkeypatch.setattr(scored_cases.bulk, "stream_binary", counted)
    return asked
