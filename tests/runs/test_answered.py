"""Answers of a server of others, from the worker that heard them to the rows of their run."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from evalboard.calling.calls import Answered
from evalboard.contract.call import CallFacts
from evalboard.core.errors import InvalidInput, LeaseLost
from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.core.stats import make_mark
from evalboard.core.trace import Failed, TokenTrace, Vocabulary
from evalboard.importers.records import ServedBy
from runs.catalogue import create_profile
from runs.models import (
    EndpointRecord,
    EngineProcess,
    Model,
    RepeatRecord,
    ResponseRecord,
    RunRecord,
    Shard,
    VocabularyRecord,
    WorkerRecord,
)
from runs.run.read_response import response_page
from runs.served import LiveServing
from runs.store import stored_traces
from runs.work import Lease, claim_shard, finish_shard, record_outcomes
from tests import build, outcomes
from tests.runs import logs

MODEL = "lab/paint-1b"
BEGUN = datetime(2026, 11, 23, 4, 0, tzinfo=UTC)


def served_by(backend: str, **changes: Any) -> ServedBy:
    parts = {"x-evalboard-backend": backend, "openai-version": "2020-10-01"}
    return ServedBy(key=backend, key_from="x-evalboard-backend", model=MODEL, parts=parts, **changes)


def answered(case: int, *words: str, by: ServedBy | None = None, **changes: Any) -> Answered:
    said = words or ("it", " is", f" blue{case}")
    known: dict[str, Any] = {"served_by": by or served_by("a"), "seed": 7, "request_id": f"chatcmpl-{case}"}
    response = logs.response("", 1, *said, **{**known, **changes})
    call = CallFacts(
        started_at=BEGUN,
        ended_at=BEGUN + timedelta(seconds=1.5),
        n_tries=1,
        status=200,
        response_id=f"chatcmpl-{case}",
        request_id=f"req-{case}",
        seed_echoed=None,
        system_fingerprint="",
        backend="a",
        backend_from="x-evalboard-backend",
        model_reported=MODEL,
        n_tokens=4,
        n_prompt_tokens=7,
        left_out=("top_k",),
        clock_ahead=(2.1, 2.4),
    )
    return Answered(case_index=case, response=replace(response, scores={}), call=call)


@pytest.fixture
def hosted(db: None) -> str:
    return EndpointRecord.objects.create(
        slug="hosted",
        engine=EndpointRecord.Engine.OPENAI,
        model_repo=MODEL,
        base_url="http://127.0.0.1:9/v1",
        dtype="",
        line="paint",
        max_model_len=None,
    ).slug


@pytest.fixture
def run(new_run: Callable[..., RunRecord], hosted: str) -> RunRecord:
    return new_run(endpoint=hosted, repeats=1)


def serve(
    run: RunRecord, worker: WorkerRecord, *, but: Sequence[Answered | Failed] = (), by: ServedBy | None = None
) -> None:
    """Answer all that waits, shard by shard; `but`: in place of what their cases would get."""
    others = {each.case_index: each for each in but}
    serving = LiveServing(worker=worker, run_id=run.pk)
    while lease := claim_shard(worker=worker):
        came = [others.get(case) or answered(case, by=by) for case in cases_of(lease)]
        record_outcomes(lease=lease, process=None, outcomes=came, serving=serving)
        finish_shard(lease=lease)
    run.refresh_from_db()


def cases_of(lease: Lease) -> range:
    shard = Shard.objects.get(pk=lease.id)
    return range(shard.first, shard.last + 1)


def spelt(process: EngineProcess | None, trace: TokenTrace) -> bytes:
    assert process is not None
    words = words_of(process)
    return b"".join(words.token_bytes(token) or b"?" for token in trace.token_ids.tolist())


def words_of(process: EngineProcess) -> Vocabulary:
    assert process.vocabulary is not None
    return Vocabulary.unpack(bytes(process.vocabulary.data))


def test_an_answer_is_stored_with_who_gave_it_and_how_the_call_went(run: RunRecord, worker: WorkerRecord) -> None:
    assert run.is_reported
    serve(run, worker)
    assert run.status == RunRecord.Status.FINISHED
    stored = ResponseRecord.objects.select_related("engine_process__bucket__model").get(repeat__run=run, case_index=3)
    assert stored.text == "it is blue3"
    assert (stored.seed_sent, stored.request_id, stored.decode_seconds) == (7, "chatcmpl-3", 1.5)
    assert stored.call is not None
    assert (stored.call["request_id"], stored.call["left_out"], stored.call["status"]) == ("req-3", ["top_k"], 200)
    assert CallFacts.from_stored(stored.call).started_at == BEGUN
    process = stored.engine_process
    assert process is not None
    assert (process.bucket.batch_class, process.bucket.model.name) == ("observed", MODEL)
    known = {"backend": "a", "backend_from": "x-evalboard-backend", "model_reported": MODEL}
    assert process.bucket.fingerprint.manifest == {"source": known}
    assert process.manifest["source"]["openai-version"] == "2020-10-01"
    trace = stored_traces.read([(stored.trace_block_id, stored.trace_slot)])[0]
    assert spelt(process, trace) == b"it is blue3" + logs.END
    assert run.bucket == process.bucket  # bound when the run ended


@pytest.mark.nightly
def test_logs_and_calls_of_one_model_have_one_row_and_one_vocabulary(run: RunRecord, worker: WorkerRecord) -> None:
    logged = logs.stored(logs.log())
    serve(run, worker)
    assert Model.objects.count() == 1
    assert run.bucket is not None
    assert logged.bucket is not None
    assert run.bucket.model == logged.bucket.model
    (before,) = EngineProcess.objects.filter(repeats__run=logged).distinct()
    (after,) = EngineProcess.objects.filter(repeats__run=run).distinct()
    assert words_of(before).agrees_with(words_of(after))
    assert len(words_of(after)) > len(words_of(before))


def test_vocabularies_that_were_outgrown_are_removed(run: RunRecord, worker: WorkerRecord) -> None:
    serve(run, worker)
    assert VocabularyRecord.objects.count() == 1
    assert EngineProcess.objects.filter(repeats__run=run).distinct().count() == 1


def test_each_backend_is_a_bucket_of_its_own_and_no_number_pools_them(run: RunRecord, worker: WorkerRecord) -> None:
    odd = [answered(case, by=served_by("b")) for case in (4, 17)]
    serve(run, worker, but=odd)
    assert EngineProcess.objects.filter(repeats__run=run).distinct().count() == 2
    assert run.bucket is not None
    assert run.bucket.fingerprint.manifest["source"]["backend"] == "a"
    columns = RepeatRecord.objects.get(run=run).columns
    assert len(columns.bucket_ids) == 2
    assert RepeatRecord.objects.get(run=run).scores.get().points is None


def test_what_not_all_answers_of_a_backend_say_alike_is_no_part_of_its_manifest(
    run: RunRecord, worker: WorkerRecord
) -> None:
    other = served_by("a")
    other = replace(other, parts={**other.parts, "openai-version": "2021-01-01"})
    serve(run, worker, but=[answered(20, by=other)])
    (process,) = EngineProcess.objects.filter(repeats__run=run).distinct()
    assert "openai-version" not in process.manifest["source"]
    assert process.manifest["source"]["x-evalboard-backend"] == "a"


def test_two_runs_whose_servers_say_nothing_are_never_of_one_bucket(
    new_run: Callable[..., RunRecord], hosted: str, worker: WorkerRecord
) -> None:
    first, second = new_run(endpoint=hosted, repeats=1), new_run(endpoint=hosted, repeats=1)
    for run in (first, second):
        serving = LiveServing(worker=worker, run_id=run.pk)
        placed = serving.place([answered(0, by=ServedBy(model=MODEL)).response], repeat_id=run.repeats.get().pk)
        run.bucket = placed[0].process.bucket
    assert first.bucket != second.bucket


def test_without_tokens_the_text_stands_for_the_trace(run: RunRecord, worker: WorkerRecord) -> None:
    serve(run, worker, but=[answered(case, positions=None, n_tokens=3) for case in range(30)])
    assert run.status == RunRecord.Status.FINISHED
    stored = ResponseRecord.objects.get(repeat__run=run, case_index=0)
    assert stored.trace_block is None
    assert stored.n_tokens == 3
    assert stored.trace_digest is not None
    assert bytes(stored.trace_digest) == bytes(stored.text_digest or b"")
    texts = [event.text for event in run.events.filter(code="text_only")]
    assert texts == ["The server has no tokens for 30 of 30 responses, so only texts are compared."]


def test_answers_out_of_a_cache_are_marked_and_make_the_run_incomplete_where_they_are_many(
    run: RunRecord, worker: WorkerRecord
) -> None:
    cached = [answered(case, flags=("cached", "retried")) for case in (2, 3)]
    serve(run, worker, but=cached)
    marks = dict(ResponseRecord.objects.filter(repeat__run=run, marks__gt=0).values_list("case_index", "marks"))
    assert marks == {2: make_mark(("cached", "retried")), 3: make_mark(("cached", "retried"))}
    assert RepeatRecord.objects.get(run=run).columns.n_left_out == 2
    assert run.status == RunRecord.Status.INCOMPLETE  # 28 of 30 are draws
    (text,) = [event.text for event in run.events.filter(code="unclean_responses")]
    assert text.startswith("Of 30 responses, 2 came from a cache, 2 came after a retry.")


def test_an_answer_that_is_none_is_missing_with_the_readers_words(run: RunRecord, worker: WorkerRecord) -> None:
    serve(run, worker, but=[answered(5, error="The log holds no answer to this request."), outcomes.failed(6)])
    assert run.status == RunRecord.Status.INCOMPLETE
    missing = dict(
        ResponseRecord.objects.filter(repeat__run=run).exclude(error_code="").values_list("case_index", "error_code")
    )
    assert missing == {5: "no_answer", 6: outcomes.failed(6).code}


def test_a_late_worker_stores_nothing(run: RunRecord, worker: WorkerRecord) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    Shard.objects.filter(pk=lease.id).update(attempt=lease.attempt + 1)
    serving = LiveServing(worker=worker, run_id=run.pk)
    with pytest.raises(LeaseLost):
        record_outcomes(lease=lease, process=None, outcomes=[answered(0)], serving=serving)
    assert not ResponseRecord.objects.exists()
    assert not EngineProcess.objects.exists()


def test_what_comes_twice_is_stored_once(run: RunRecord, worker: WorkerRecord) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    serving = LiveServing(worker=worker, run_id=run.pk)
    assert record_outcomes(lease=lease, process=None, outcomes=[answered(0)], serving=serving) == 1
    assert record_outcomes(lease=lease, process=None, outcomes=[answered(0), answered(1)], serving=serving) == 1
    assert ResponseRecord.objects.filter(repeat__run=run).count() == 2


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_workers_that_store_at_once_lose_no_token(
    new_run: Callable[..., RunRecord], hosted: str, new_worker: Callable[..., WorkerRecord]
) -> None:
    """Each answer has a word of its own, so that every storing extends the vocabulary under another's hands."""
    run = new_run(endpoint=hosted, repeats=4)
    workers = [new_worker(f"worker-{n}") for n in range(4)]
    problems: list[Exception] = []

    def work(worker: WorkerRecord) -> None:
        try:
            serving = LiveServing(worker=worker, run_id=run.pk)
            while lease := claim_shard(worker=worker):
                for case in cases_of(lease):
                    came = answered(case, "it", f" {worker.name}", f" {lease.id}-{case}")
                    record_outcomes(lease=lease, process=None, outcomes=[came], serving=serving)
                finish_shard(lease=lease)
        except Exception as problem:  # noqa: BLE001  the test itself raises it
            problems.append(problem)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[worker]) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    run.refresh_from_db()
    assert run.status == RunRecord.Status.FINISHED
    rows = list(ResponseRecord.objects.filter(repeat__run=run).select_related("engine_process__vocabulary"))
    assert len(rows) == 120
    traces = stored_traces.read([(row.trace_block_id or 0, row.trace_slot or 0) for row in rows])
    for row, trace in zip(rows, traces, strict=True):
        assert spelt(row.engine_process, trace) == row.text.encode() + logs.END
    processes = EngineProcess.objects.filter(repeats__run=run).distinct()
    assert {process.vocabulary_id for process in processes} == {VocabularyRecord.objects.get().pk}


@pytest.mark.parametrize(
    "change", [{"model": {"repo": "lab/other", "revision": "0" * 40}}, {"profile": "invariant"}, {"profile": "fixed"}]
)
def test_what_nobody_can_promise_of_a_server_of_others_is_refused(
    change: dict[str, Any], new_run: Callable[..., RunRecord], hosted: str
) -> None:
    slug = change.get("profile")
    if slug:
        create_profile(slug=slug, title="", settings=DEFAULT_PROFILES[slug]["settings"])
    with pytest.raises(InvalidInput) as refused:
        new_run(endpoint=hosted, **change)
    assert set(refused.value.fields) == {"model" if "model" in change else "profile"}


def test_an_answer_may_be_longer_than_any_context_that_is_known(new_run: Callable[..., RunRecord], hosted: str) -> None:
    assert new_run(endpoint=hosted).endpoint.max_model_len is None


def test_a_response_shows_how_its_call_went_and_others_do_not_speak_of_calls(
    run: RunRecord, worker: WorkerRecord
) -> None:
    serve(run, worker)
    case_id = run.suite_version.cases.get(index=0).case_id
    shown = response_page(run.pk, repeat=1, case_id=case_id).response.provenance
    assert (shown["called_at"], shown["answered_at"]) == ("2026-11-23T04:00:00Z", "2026-11-23T04:00:01.500000Z")
    assert (shown["backend"], shown["backend_named_by"]) == ("a", "x-evalboard-backend")
    assert (shown["seed_sent"], shown["seed_echoed"], shown["http_status"], shown["tries"]) == (7, None, 200, 1)
    assert (shown["model_reported"], shown["settings_not_sent"]) == (MODEL, "top_k")
    assert shown["server_clock"] == "The server's clock is 2.1 to 2.4 s ahead of ours."
    assert (shown["request_id"], shown["request_id_in_header"]) == ("chatcmpl-0", "req-0")
    ours = build.finished_run(["blue"] * run.suite_version.n_cases)
    assert "called_at" not in response_page(ours.pk, repeat=1, case_id=case_id).response.provenance
