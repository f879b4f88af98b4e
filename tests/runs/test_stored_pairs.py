"""A comparison's summary reads one row of each group of alike pairs, and says what all of them say."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalboard.core.compare import TracedText, distance_tables
from runs.compare import compare
from runs.models import ComparisonRecord, DivergenceRecord, SuiteVersionRecord
from runs.pairs import WORDS, measure_pair_noise, pair_noise
from runs.store import stored_columns
from tests import build
from tests.casts import cast
from tests.runs.test_comparisons import Answer, answers, flipped, moved, near, recorded, stored

pytestmark = pytest.mark.django_db
N_CASES = 12


@cast
def version() -> SuiteVersionRecord:
    return build.suite(case_ids=[f"case-{number:02}" for number in range(N_CASES)])


@cast
def made(version: SuiteVersionRecord) -> ComparisonRecord:
    """Of three repeats against three in two buckets: some pairs alike, some not, one missing, one served elsewhere."""
    by, other = (build.process(build.bucket(dtype, batch_class="mixed")) for dtype in ("float32", "bfloat16"))
    ours = [Answer(near(recorded(case), 5)) for case in range(N_CASES)]
    first: list[Answer | None] = [Answer(flipped(each.trace, 5), text="red") for each in ours]
    second = [None, *(Answer(moved(each.trace, 0.01, onset=2)) for each in ours[1:])]
    third = [*first[:4], *(replace(each, text="blue too") for each in ours[4:])]  # as the first, with another between
    base = stored(version, ours, ours, ours, by=by)
    return compare(baseline=base.pk, candidate=stored(version, first, second, third, by=other).pk)


def rows_of(made: ComparisonRecord) -> Any:
    return DivergenceRecord.objects.filter(comparison=made).order_by(
        "case_index", "repeat_baseline", "repeat_candidate"
    )


@pytest.mark.nightly
def test_the_summary_counts_every_stored_pair(made: ComparisonRecord) -> None:
    rows, summary = list(rows_of(made)), made.summary
    assert len(rows) > made.n_pairs > 12  # some are alike, and of some cases not all
    counted = {count["cause"]: count["n_pairs"] for count in summary["causes"]}
    assert counted == Counter(row.cause for row in rows)
    assert summary["flips"]["n"] == sum(row.flip_position is not None for row in rows) > 12
    assert summary["onsets"]["n"] == sum(row.drift_onset is not None for row in rows)
    there = [row.evidence["buckets"] for row in rows if row.cause != "error"]
    assert summary["backends"] == sorted(map(list, set(map(tuple, there))))


def test_the_sample_of_flips_are_rows_in_their_order(made: ComparisonRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    flips = [row for row in rows_of(made) if row.flip_position is not None]
    named = ("case_index", "repeat_baseline", "repeat_candidate", "cause", "flip_position", "margin_baseline")
    wanted = [
        {name: getattr(row, name) for name in (*named, "gap_at_onset")}
        | {"evidence__movement": row.evidence["movement"]}
        for row in flips
    ]
    assert made.summary["sample"] == wanted
    monkeypatch.setattr("evalboard.core.compare.pipeline.POINTS_KEPT", 4)
    baseline, candidate = made.baseline_id, made.candidate_id
    made.delete()
    again = compare(baseline=baseline, candidate=candidate)
    assert again.summary["sample"] == wanted[:: -(-len(wanted) // 4)]


def test_noise_reads_no_columns_that_are_in_memory(
    version: SuiteVersionRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = build.process(build.bucket(batch_class="mixed"))
    others = [Answer(moved(recorded(case), 0.001)) for case in range(N_CASES)]
    run, other = stored(version, answers(N_CASES), others, by=by), stored(version, answers(N_CASES), by=by)
    wanted = measure_pair_noise(run, other).between(by.bucket_id, by.bucket_id)
    columns = list(stored_columns.stream(list(run.repeats.values_list("pk", flat=True))))
    pair_noise._measure.cache_clear()
    read: list[int] = []
    stream = stored_columns.stream
    monkeypatch.setattr(stored_columns, "stream", lambda ids: (read.extend(ids), stream(ids))[1])
    assert measure_pair_noise(run, other, columns).between(by.bucket_id, by.bucket_id) == wanted
    assert read == list(other.repeats.values_list("pk", flat=True))


def test_distances_are_the_same_however_many_cases_are_measured_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [recorded(case) for case in range(N_CASES)]
    cases = [
        [TracedText("", each, 1, is_logged=False) for each in (one, moved(one, 0.01), one, flipped(one, 5))]
        for one in traces
    ]
    cases.append([TracedText("", None, 1, is_logged=False), cases[0][0]])
    alone = [distance_tables([case], WORDS)[0] for case in cases]
    for at_once in (1 << 15, 100, 1):
        monkeypatch.setattr("evalboard.core.compare.traced_text.MEASURED_AT_ONCE", at_once)
        for table, by_itself in zip(distance_tables(cases, WORDS)[:-1], alone, strict=False):
            assert np.array_equal(table.nats, by_itself.nats)
            assert np.array_equal(table.are_alike, by_itself.are_alike)
    assert np.isnan(distance_tables(cases, WORDS)[-1].nats[0, 1])
    assert all(table.nats[0, 2] == 0 < table.nats[0, 1] == table.nats[2, 1] for table in alone[:-1])
    assert all(table.are_alike.sum() == len(table.nats) + 2 for table in alone[:-1])
