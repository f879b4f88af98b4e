"""What is exported is what is stored, to the bit and of one moment, and costs no memory whatever its size."""

import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone

from evalboard.contract.compare import Comparison
from evalboard.core import digest
from evalboard.core.archive import RunArchive
from evalboard.core.errors import Conflict, NotFound
from evalboard.core.trace import (
    encode_block,
    pack_buckets,
    pack_digests,
    pack_reasons,
    pack_scores,
    read_trace,
    unpack_reasons,
)
from runs import exports
from runs.compare import compare, divergence_rows
from runs.compare.read_divergences import DivergenceFilter
from runs.models import (
    CaseColumns,
    ComparisonRecord,
    RepeatRecord,
    RepeatScore,
    ResponseRecord,
    RunRecord,
    Shard,
    TraceBlock,
)
from runs.run import cancel_run, delete_run
from runs.run.api import ONLY
from runs.run.read_cases import case_indexes
from runs.store import bulk
from runs.suites import rescore_run
from tests import build, make
from tests.build import case_rows, comparison_report
from tests.frontend import stage, two_runs
from tests.nightly import few

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 1 << 20
ROOT = Path(__file__).resolve().parents[2]


def exported(run: RunRecord) -> RunArchive:
    return RunArchive(io.BytesIO(b"".join(exports.run_archive(run.pk))))


def responses(run: RunRecord) -> list[ResponseRecord]:
    return list(
        ResponseRecord.objects.filter(repeat__run=run).select_related("repeat").order_by("repeat", "case_index")
    )


def elsewhere(work: Callable[[], Any]) -> None:
    """Do something in a transaction of another connection, as another process would, and wait until it is done."""
    failed: list[BaseException] = []

    def call() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # told in the test's own thread
            failed.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(timeout=60)
    assert not thread.is_alive(), "the export holds it up"
    assert not failed, failed[0]


# --- the archive


def test_every_response_is_read_back_as_it_is_stored() -> None:
    run = build.finished_run(("blue", "red", None), ("blue", "=2+2", "red"))
    archive = exported(run)
    archive.check()
    found = list(archive.responses())
    stored = responses(run)
    assert [(each.repeat, each.case_index) for each in found] == [(row.repeat.index, row.case_index) for row in stored]
    for each, row in zip(found, stored, strict=True):
        assert (each.text, each.row["finish_reason"]) == (row.text, row.finish_reason or None)
        trace = archive.trace(each)
        if row.trace_block is None:
            assert (trace, each.row["error"]["code"]) == (None, "prompt_too_long")
            continue
        assert trace is not None
        kept = read_trace(bytes(row.trace_block.data), row.trace_slot or 0)
        for name in ("token_ids", "logprobs", "alternative_ids", "alternative_logprobs"):
            assert getattr(trace, name).tobytes() == getattr(kept, name).tobytes()
        assert each.row["provenance"]["seed_sent"] == row.seed_sent
        words = archive.vocabulary(each)
        assert words is not None
        assert words.token_bytes(1) == b"blue"


def test_scores_and_reasons_come_back_to_the_bit_under_every_scorer() -> None:
    run = build.finished_run(("blue", "red", None))
    scorer = rescore_run(run_id=run.pk, scorer={"kind": "contains"})
    third = np.array([1 / 3, 0.1 + 0.2, np.nan])
    RepeatScore.objects.filter(scorer=scorer).update(scores=pack_scores(third))
    archive = exported(run)
    found = list(archive.responses())
    own = RepeatScore.objects.get(repeat__run=run, scorer=run.suite_version.scorer)
    assert np.array([np.nan if each.score is None else each.score for each in found]).tobytes() == bytes(own.scores)
    assert [each.row["reason"] for each in found] == unpack_reasons(bytes(own.reasons))
    again = [each.row["other_scores"][scorer.digest]["score"] for each in found]
    assert again == [1 / 3, 0.1 + 0.2, None]
    assert {each["digest"]: each["is_own"] for each in archive.manifest["scorers"]} == {
        run.suite_version.scorer.digest: True,
        scorer.digest: False,
    }


def test_trace_blocks_are_those_of_the_database_byte_for_byte() -> None:
    run = build.finished_run()
    archive = exported(run)
    blocks = TraceBlock.objects.filter(run=run).order_by("pk").values_list("data", flat=True)
    with archive._zip.open("traces.evt") as member:
        assert member.read() == b"".join(map(bytes, blocks))


def test_the_suite_in_it_is_the_stored_version() -> None:
    version = build.suite(case_ids=("sky", "a/b c", "=1+1", "ünïcode 🎨"))
    archive = exported(build.finished_run(("blue",) * 4, version=version))
    found = archive.suite()
    assert (found.digest, [case.id for case in found.cases]) == (version.digest, ["sky", "a/b c", "=1+1", "ünïcode 🎨"])


def test_the_manifest_says_who_answered_what() -> None:
    run = build.finished_run(labels={"branch": "main"})
    [repeat, _] = (manifest := exported(run).manifest)["repeats"]
    assert (manifest["run"]["id"], manifest["run"]["labels"]) == (str(run.pk), {"branch": "main"})
    assert (repeat["status"], repeat["n_responses"], round(repeat["scores"][0]["points"], 1)) == ("finished", 3, 66.7)
    [bucket], [process] = manifest["buckets"], manifest["engine_processes"]
    assert (process["bucket"], bucket["batch_class"]) == (bucket["id"], "alone")
    assert process["pins"][0]["held"] is True
    assert process["self_checks"][0]["same"] is True
    assert manifest["fingerprints"][0]["digest"] == bucket["fingerprint"]
    assert manifest["profile"]["sampling"]["max_tokens"] == 24


def test_an_ended_run_is_exported_as_the_same_bytes() -> None:
    run = build.finished_run()
    assert b"".join(exports.run_archive(run.pk)) == b"".join(exports.run_archive(run.pk))


def test_a_run_at_work_gives_the_repeats_that_have_ended_and_names_the_others() -> None:
    run = build.run(repeats=3)
    build.decode(run, 1, ("blue",) * 3)
    build.decode(run, 2, ("red",) * 2, ends=False)
    archive = exported(run)
    archive.check()
    assert archive.repeats == [1]
    assert [(each["is_exported"], each["n_responses"]) for each in archive.manifest["repeats"]] == [
        (True, 3),
        (False, 0),
        (False, 0),
    ]
    assert archive.manifest["run"]["status"] == "running"
    assert archive.manifest["traces"]["n_blocks"] == 1


def test_a_run_of_which_nothing_has_ended_is_refused() -> None:
    run = build.run()
    with pytest.raises(Conflict, match="no repeat that has ended"):
        next(exports.run_archive(run.pk))
    with pytest.raises(NotFound):
        next(exports.run_archive(999))


def test_a_repeat_that_several_processes_decoded_names_each() -> None:
    first, second = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    run = build.run(repeats=1)
    build.decode(run, 1, ("blue",) * 3, by=[first, second, first])
    archive = exported(run)
    archive.check()
    assert [each.row["provenance"]["bucket"] for each in archive.responses()] == [
        str(process.bucket_id) for process in (first, second, first)
    ]
    assert len(archive.manifest["buckets"]) == 2


# --- one moment


def test_what_changes_while_it_is_sent_is_not_in_it() -> None:
    run = large_run(n_cases=600, repeats=2)
    parts = exports.run_archive(run.pk)
    given = [next(parts)]
    elsewhere(lambda: ResponseRecord.objects.filter(repeat__run=run).update(text="changed"))
    elsewhere(lambda: rescore_run(run_id=run.pk, scorer={"kind": "contains"}))
    given.extend(parts)
    archive = RunArchive(io.BytesIO(b"".join(given)))
    archive.check()
    assert all(each.text != "changed" and not each.row["other_scores"] for each in archive.responses())
    assert len(archive.manifest["scorers"]) == 1


def test_a_run_that_is_deleted_while_it_is_sent_is_sent_whole() -> None:
    run = large_run(n_cases=600, repeats=2)
    parts = exports.run_archive(run.pk)
    given = [next(parts)]
    elsewhere(lambda: delete_run(run_id=run.pk))
    given.extend(parts)
    archive = RunArchive(io.BytesIO(b"".join(given)))
    archive.check()
    assert len(list(archive.responses())) == 1200
    with pytest.raises(NotFound):
        next(exports.run_archive(run.pk))


def test_a_reader_that_goes_away_leaves_no_transaction_open() -> None:
    run = large_run(n_cases=600, repeats=2)
    parts = exports.run_archive(run.pk)
    next(parts)
    assert connection.in_atomic_block
    parts.close()  # type: ignore[attr-defined]
    assert not connection.in_atomic_block
    assert RunRecord.objects.count() == 1


def test_cases_of_a_run_that_was_deleted_since_they_were_counted_are_an_error() -> None:
    run = build.finished_run()
    found = exports.case_table(run.pk)
    delete_run(run_id=run.pk)
    with pytest.raises(NotFound):
        list(found.rows())


# --- memory


def large_run(*, n_cases: int, repeats: int, text: str = "blue " * 20) -> RunRecord:
    """A run that has ended, its rows written as fast as they can be: blocks of 32 traces, all repeats' their own."""
    version = build.suite("large", [f"case-{number}" for number in range(n_cases)])
    run = build.run(version, repeats=repeats)
    process = build.process()
    traces = [make.trace("abcdefghij" * 4, seed=seed) for seed in range(32)]
    data = encode_block(traces)
    whole = [f"{number} {text}" for number in range(n_cases)]
    reasons = pack_reasons(["Equal."] * n_cases)
    scores = {"scores": pack_scores(np.full(n_cases, 0.5)), "reasons": reasons}
    for repeat in run.repeats.all():
        blocks = [
            TraceBlock.objects.create(run=run, data=data, n_traces=32, is_packed=True) for _ in range(0, n_cases, 32)
        ]
        bulk.copy_rows(
            [
                ResponseRecord(
                    repeat=repeat,
                    case_index=index,
                    engine_process=process,
                    attempt=1,
                    text=whole[index],
                    finish_reason="stop",
                    trace_block=blocks[index // 32],
                    trace_slot=index % 32,
                    text_digest=digest.text_digest(whole[index]),
                    trace_digest=traces[index % 32].digest,
                )
                for index in range(n_cases)
            ]
        )
        repeat.engine_processes.add(process)
        RepeatScore.objects.create(repeat=repeat, scorer=version.scorer, n_scored=n_cases, n_missing=0, **scores)
        none = pack_digests([None] * n_cases)
        served = pack_buckets([0] * n_cases)
        CaseColumns.objects.create(
            repeat=repeat, text_digests=none, trace_digests=none, buckets=served, bucket_ids=[process.bucket_id]
        )
    Shard.objects.filter(repeat__run=run).update(status=Shard.Status.FINISHED)
    ended = timezone.now() - timedelta(seconds=1)
    RepeatRecord.objects.filter(run=run).update(status="finished", finished_at=ended)
    RunRecord.objects.filter(pk=run.pk).update(status="finished", finished_at=ended)
    return run


MEASURED = """
import resource, sys
import django
django.setup()
from evalboard.core import table
from runs import exports
run, kind = int(sys.argv[1]), sys.argv[2]
def parts():
    if kind == "archive":
        return exports.run_archive(run)
    return table.write(kind, exports.CASE_NAMES, exports.case_table(run).rows())
def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
next(parts())  # imports and caches
before, n_bytes, largest = most(), 0, 0
for part in parts():
    n_bytes, largest = n_bytes + len(part), max(largest, len(part))
print(most() - before, n_bytes, largest)
"""


@pytest.mark.nightly
def test_a_run_of_20_000_responses_takes_the_memory_of_a_few(database_url: str) -> None:
    """In a process of its own, the driver's memory included. Read at once, the rows alone would take 60 MB."""
    run = large_run(n_cases=2000, repeats=10, text="blue sky " * 60)
    environment = {**os.environ, "DATABASE_URL": database_url, "DJANGO_SETTINGS_MODULE": "evalboard.settings"}
    for kind, least in (("archive", 4 * MIB), ("csv", 14 * MIB)):
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, str(run.pk), kind],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        grown, n_bytes, largest = map(int, done.stdout.split())
        assert n_bytes > least
        assert largest < 2 * MIB
        assert grown < 12 * MIB, f"{kind}: {grown / MIB:.1f} MiB more for {n_bytes / MIB:.1f} MiB"


# --- cases


def test_there_is_a_row_for_every_case_and_repeat_missing_ones_too() -> None:
    run = build.run(repeats=3)
    build.decode(run, 1, ("blue", "red", None))
    build.decode(run, 2, ("blue",), ends=False)
    ResponseRecord.objects.filter(repeat__index=2).update(text="=1+1")
    Shard.objects.filter(repeat__index=2).update(status=Shard.Status.CANCELLED)
    cancel_run(run_id=run.pk)
    found = exports.case_table(run.pk)
    rows = list(found.rows())
    assert len(rows) == found.n_rows
    assert [(row["repeat"], row["case"], row["score"], row["is_missing"], row["error_code"]) for row in rows[:3]] == [
        (1, "sky", 1.0, False, None),
        (1, "sea", 0.0, False, None),
        (1, "a/b c", None, True, "prompt_too_long"),
    ]
    second = [row for row in rows if row["repeat"] == 2]
    assert [(row["text"], row["is_missing"], row["n_tokens"]) for row in second] == [
        ("=1+1", False, 2),
        (None, True, None),
        (None, True, None),
    ]
    assert all(set(row) == set(exports.CASE_NAMES) for row in rows)


@pytest.mark.nightly
def test_the_filters_are_those_of_the_run_page() -> None:
    run = build.finished_run(("blue", "blue", None), ("blue", "red", "red"))
    for query, only in product(("", "SEA", "tag-2", "a/b"), ("", *ONLY)):
        shown = [row.case_index for row in case_rows(run.pk, query=query, only=only)]
        assert case_indexes(run, query=query, only=only) == shown, (query, only)
        rows = list(exports.case_table(run.pk, query=query, only=only).rows())
        assert [row["case_index"] for row in rows] == sorted(shown) * 2, (query, only)


def test_a_row_says_who_served_it_and_what_was_asked() -> None:
    run = build.finished_run()
    row = next(exports.case_table(run.pk).rows())
    bucket = build.bucket()
    assert (row["bucket"], row["model"], row["fingerprint"]) == (str(bucket.pk), "paint-1b", bucket.fingerprint.digest)
    assert (row["prompt"], row["target"], row["tags"]) == ("Which colour has sky?", "blue", ["tag-0"])
    assert row["reason"]


# --- pairs


def two() -> tuple[RunRecord, RunRecord]:
    near_ties = {case: two_runs.near_tie(case) for case in (2, 4)}
    ours, theirs = ({case: pair[side] for case, pair in near_ties.items()} for side in (0, 1))
    return two_runs.make(ours, theirs, repeats=2)


def compared(settings: Any) -> Comparison:
    stage.stage(model_root=settings.MODEL_ROOTS[0], n_cases=6)
    baseline, candidate = two()
    made = compare(baseline=baseline.pk, candidate=candidate.pk)
    return comparison_report(made.pk)


@pytest.mark.nightly
def test_all_pairs_come_in_the_order_of_the_list(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report = compared(settings)
    whole = divergence_rows(report.id, DivergenceFilter(), limit=1000)
    monkeypatch.setattr("runs.exports.cases.AT_ONCE", 3)
    found = exports.pair_table(report, DivergenceFilter())
    assert found.n_rows == len(whole) > 3
    assert tuple(found.rows()) == whole


@pytest.mark.nightly
def test_pairs_are_filtered_as_in_the_list(settings: Any) -> None:
    report = compared(settings)
    wanted = DivergenceFilter(query="case-004")
    found = exports.pair_table(report, wanted)
    rows = list(found.rows())
    assert {row.case for row in rows} == {"case-004"}
    assert found.n_rows == len(rows)


@pytest.mark.parametrize(
    ("status", "said"), few([("queued", "still at work: 0 of 9 pairs"), ("failed", "failed.*Broken")], 1)
)
def test_pairs_of_a_comparison_that_is_not_finished_are_refused(settings: Any, status: str, said: str) -> None:
    report = compared(settings)
    ComparisonRecord.objects.filter(pk=report.id).update(status=status, n_pairs=9, n_done=0, error="Broken.")
    with pytest.raises(Conflict, match=said):
        exports.pair_table(comparison_report(report.id), DivergenceFilter())
