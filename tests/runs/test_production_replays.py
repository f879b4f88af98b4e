"""Replays under the settings of production: what decodes them, and that no run has anything of them."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from evalboard.core.errors import InvalidInput, NotFound
from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_endpoint, create_profile
from runs.models import EndpointRecord, ReplayRecord, ResponseRecord, RunRecord, WorkerRecord
from runs.replays import (
    cases_to_decode,
    claim_replay,
    create_body_replay,
    create_replay,
    finish_replay,
    newest_replay,
    record_result,
    replay_page,
    replay_work,
)
from runs.replays.read import replay_row, replay_rows, sortable_replays
from runs.run import delete_run, run_report
from tests import outcomes
from tests.runs.test_replays import result

NewWorker = Callable[..., WorkerRecord]
BODY = {
    "model": "paint-prod",
    "messages": [{"role": "user", "content": "Name a colour."}],
    "temperature": 0.7,
    "max_tokens": 16,
    "stop": ["END"],
    "stream": True,
    "response_format": {"type": "json_object"},
}


@pytest.fixture
def warm(db: None) -> str:
    """A profile of production: drawn, with a prefix cache."""
    settings = copy.deepcopy(DEFAULT_PROFILES["pinned"]["settings"])
    settings["sampling"]["temperature"] = 1.0
    settings["engine"]["enable_prefix_caching"] = True
    return create_profile(slug="warm", title="", settings=settings)[0].slug


@pytest.fixture
def on(run: RunRecord) -> str:
    """The slug of an endpoint with room for an answer."""
    EndpointRecord.objects.filter(pk=run.endpoint_id).update(max_model_len=256)
    return run.endpoint.slug


def body_replay(on: str, warm: str, **changes: Any) -> ReplayRecord:
    return create_body_replay(endpoint=on, profile=warm, body={**BODY, **changes})


def decode(worker: WorkerRecord) -> None:
    """Decode the replay that waits as a worker would."""
    lease = claim_replay(worker=worker)
    assert lease is not None
    record_result(lease=lease, result=result({}, has_response=False))
    finish_replay(lease=lease)


def test_a_body_is_decoded_by_its_own_sampling_over_the_profile_s(on: str, warm: str) -> None:
    work = replay_work(body_replay(on, warm).pk)
    assert (work.case, work.run_id, work.variants, work.is_production) == (None, None, ({},), True)
    assert work.chat is not None
    assert work.chat.messages == tuple(BODY["messages"])
    settings = work.serving.profile_settings
    assert (settings["sampling"]["temperature"], settings["sampling"]["seed"]) == (0.7, 42)
    assert settings["engine"]["enable_prefix_caching"] is True
    assert (work.serving.max_tokens, work.serving.stop) == (16, ("END",))


def test_without_a_limit_the_answer_may_fill_the_context(on: str, warm: str) -> None:
    assert replay_work(body_replay(on, warm, max_tokens=None).pk).serving.max_tokens == 255


def test_a_case_under_another_profile_is_decoded_on_the_endpoint_of_its_run(run: RunRecord, warm: str) -> None:
    work = replay_work(create_replay(run_id=run.pk, case_id="case-14", profile=warm).pk)
    assert work.is_production
    assert work.case is not None
    assert work.serving.endpoint == run.endpoint
    assert work.serving.profile_settings["sampling"]["temperature"] == 1.0
    RunRecord.objects.filter(pk=run.pk).update(seed=7)
    other, own = (create_replay(run_id=run.pk, case_id="case-3", profile=name) for name in (warm, None))
    assert not replay_work(own.pk).is_production
    assert [case.seed for case in cases_to_decode(own.pk, [3, 4])] == [42, 42]
    assert len({42, *(case.seed for case in cases_to_decode(other.pk, [3, 4]))}) == 3  # each draws by its own


def test_what_cannot_be_done_is_refused_by_name(on: str, warm: str, run: RunRecord) -> None:
    for name in ("endpoint", "profile"):
        with pytest.raises(NotFound, match="nowhere"):
            create_body_replay(**{"endpoint": on, "profile": warm, "body": BODY, name: "nowhere"})
    with pytest.raises(NotFound, match="nowhere"):
        create_replay(run_id=run.pk, case_id="case-3", profile="nowhere")
    with pytest.raises(InvalidInput) as refused:
        body_replay(on, warm, max_tokens=256)
    assert refused.value.fields == {
        "body.max_tokens": "Answers of 256 tokens leave no room for a prompt in the endpoint's context of 256."
    }
    create_endpoint(slug="theirs", engine="openai", base_url="https://api.example.com/v1", model_name="gpt", line="gpt")
    with pytest.raises(InvalidInput) as refused:
        body_replay("theirs", warm)
    assert list(refused.value.fields) == ["endpoint"]
    assert not ReplayRecord.objects.exists()


def test_it_is_claimed_by_the_pool_of_its_endpoint(on: str, warm: str, new_worker: NewWorker) -> None:
    replay = body_replay(on, warm)
    assert claim_replay(worker=new_worker("far", pool="gpu")) is None
    assert claim_replay(worker=new_worker("picky"), left_replays=frozenset({replay.pk})) is None
    assert claim_replay(worker=new_worker("near")) is not None


def test_a_run_that_is_left_alone_keeps_no_case_from_another_profile(
    run: RunRecord, warm: str, worker: WorkerRecord
) -> None:
    left = frozenset({run.pk})
    create_replay(run_id=run.pk, case_id="case-3")
    assert claim_replay(worker=worker, left_alone=left) is None
    other = create_replay(run_id=run.pk, case_id="case-3", profile=warm)
    lease = claim_replay(worker=worker, left_alone=left)
    assert lease is not None
    assert lease.id == other.pk


def test_what_came_out_is_told_with_the_settings_that_it_had(on: str, warm: str, worker: WorkerRecord) -> None:
    replay = body_replay(on, warm)
    decode(worker)
    row = replay_row(replay.pk)
    assert (row.run, row.repeat, row.case, row.status) == (None, None, None, "finished")
    assert row.reading == (
        "Decoded once under warm: 2 tokens, ended by stop.",
        "Not sent, although the answer may depend on it: response_format. Production may have answered differently.",
        "The request asks for a stream; it was answered in one piece, with the same tokens.",
        "Taken from the profile, as the request lacks it: top_p, top_k, min_p, seed, repetition_penalty, "
        "presence_penalty, frequency_penalty, min_tokens, ignore_eos and skip_special_tokens.",
        "Sampled at temperature 0.7 without a seed: production used another one, so a different answer shows nothing.",
    )
    production = row.production
    assert production is not None
    assert (production.endpoint, production.profile, production.model) == (on, "warm", "paint-prod")
    assert production.answer is not None
    assert production.answer.text == outcomes.decoded(3).text
    assert production.answer.trace is not None
    assert production.answer.trace.length == len(outcomes.decoded(3).trace)
    assert all(len(position.alternatives) >= 2 for position in production.answer.trace.positions)
    [listed] = sortable_replays().rows(limit=5)
    assert listed.production is not None
    assert listed.production.answer is not None
    assert listed.production.answer.trace is None
    page = replay_page(replay.pk, at=1)
    assert page.window is not None
    assert (page.window.selected.position, page.messages) == (1, tuple(BODY["messages"]))


def test_no_run_has_anything_of_it(run: RunRecord, on: str, warm: str, worker: WorkerRecord) -> None:
    before = run_report(run.pk)
    create_replay(run_id=run.pk, case_id="case-3", profile=warm)
    decode(worker)
    body_replay(on, warm)
    decode(worker)
    after = run_report(run.pk)
    assert (after.status, after.progress, after.buckets, after.warnings) == (
        before.status,
        before.progress,
        before.buckets,
        before.warnings,
    )
    assert not ResponseRecord.objects.exists()
    assert newest_replay(run.pk, "case-3") is None  # what a pair's page says of a case
    own = create_replay(run_id=run.pk, case_id="case-3")
    assert newest_replay(run.pk, "case-3") == replay_row(own.pk)
    rows = replay_rows(run.pk, limit=5)
    assert [row.production is not None for row in rows] == [False, True]
    assert rows[1].reading[-1] == "Decoded under warm instead of the run’s pinned: it counts toward no score."
    assert len(sortable_replays().rows(limit=5)) == 2


def test_a_run_takes_its_own_replays_with_it_and_no_others(run: RunRecord, on: str, warm: str) -> None:
    create_replay(run_id=run.pk, case_id="case-3", profile=warm)
    kept = body_replay(on, warm)
    RunRecord.objects.filter(pk=run.pk).update(status="cancelled")
    delete_run(run_id=run.pk)
    assert [replay.pk for replay in ReplayRecord.objects.all()] == [kept.pk]


def test_tokens_that_only_the_run_had_are_gone_with_them(run: RunRecord, warm: str, new_worker: NewWorker) -> None:
    replay = create_replay(run_id=run.pk, case_id="case-3", profile=warm)
    lease = claim_replay(worker=new_worker())
    assert lease is not None
    record_result(lease=lease, result=result({}))
    ResponseRecord.objects.filter(repeat__run=run).update(trace_block=None, trace_slot=None)
    page = replay_page(replay.pk)
    assert page.result is not None
    assert (page.result["outcome"], page.window) == ("identical", None)
