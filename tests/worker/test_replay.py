"""Replays by workers: the case as it was, sweeps that find what was planted, and workers that are lost.

The scripted engine answers as it was recorded for a batch size, because no real one drifts and flips on demand.
"""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from evalboard.contract import replay as contract
from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.models import EngineProcess, ReplayRecord, ResponseRecord, RunRecord
from runs.replays import create_body_replay, create_replay
from runs.replays.read import replay_row
from runs.run import cancel_run
from tests.worker.conftest import Join, Start, Wait, ended, kill_engine, kill_group, stop_after

pytestmark = pytest.mark.django_db
as_processes = pytest.mark.django_db(transaction=True)

NewRun = Callable[..., RunRecord]
COLOURS = ["say blue", "say red", "say green", "say grey", "say pink", "say leaky", "say teal", "say lime"]


@pytest.fixture
def decoded_run(new_run: NewRun, join_worker: Join, work_until: Wait) -> Callable[..., RunRecord]:
    """A run whose worker is gone; workers with other answers can be started after it."""

    def decode(prompts: list[str] = COLOURS, **changes: Any) -> RunRecord:
        run = new_run(prompts, **{"repeats": 1, **changes})
        worker = join_worker()
        work_until(lambda: ended(run), "the run ends")
        worker.leave()
        return run

    return decode


@pytest.fixture
def replayed(work_until: Wait) -> Callable[..., contract.Replay]:
    """Ask for a replay of the first case and have it decoded."""

    def ask(run: RunRecord, **asked: Any) -> contract.Replay:
        replay = create_replay(run_id=run.pk, case_id="case-0", **asked)
        work_until(lambda: replay_row(replay.pk).is_terminal, "the replay has ended")
        return replay_row(replay.pk)

    return ask


def kept(run: RunRecord) -> tuple[Any, ...]:
    """What a replay must leave as it is."""
    run.refresh_from_db()
    processes = {
        repeat.index: set(repeat.engine_processes.values_list("pk", flat=True)) for repeat in run.repeats.all()
    }
    return run.status, run.bucket_id, processes, ResponseRecord.objects.count(), run.events.count()


def test_a_case_is_replayed_to_the_bit_and_the_run_stays_as_it_is(
    decoded_run: Callable[..., RunRecord], replayed: Callable[..., contract.Replay], join_worker: Join
) -> None:
    run = decoded_run()
    before = kept(run)
    join_worker()
    replay = replayed(run)
    assert (replay.status, replay.error) == ("finished", None)
    assert replay.reading == ("Identical: every token and logprob equals the run’s response to the bit.",)
    [line] = replay.results
    assert (line["same_bucket"], line["same_prompt"], line["neighbours"]) == (True, True, [])
    assert kept(run) == before


def test_a_sweep_finds_the_drift_and_the_flip_recorded_for_a_batch_size(
    decoded_run: Callable[..., RunRecord], replayed: Callable[..., contract.Replay], join_worker: Join
) -> None:
    run = decoded_run()
    before = kept(run)
    join_worker(SCRIPTED_RECORDED=json.dumps({"2": {"drift": 1}, "4": {"word": "bled"}, "8": {"word": "bled"}}))
    replay = replayed(run, batch_sizes=[8, 1, 2, 4])
    assert [line["outcome"] for line in replay.results] == ["identical", "drift", "flip", "flip"]
    assert replay.reading == (
        "Flips first at batch size 4, position 2: ‘u’ → ‘e’ (margins 2 and 2 nats).",
        "Drifts first at batch size 2, from position 1 (by 9.5e-07 nats there) (at 2 of 1, 2, 4 and 8).",
        "Identical at batch size 1.",
    )
    facts = list(replay.results)
    assert [(each["batch_min"], each["batch_max"]) for each in facts] == [(1, 1), (2, 2), (4, 4), (8, 8)]
    assert [each["neighbours"] for each in facts] == [[], [1], [1, 2, 3], [1, 2, 3, 4, 5, 6, 7]]
    assert [each["same_bucket"] for each in facts] == [True, False, False, False]
    assert len({each["engine_process"] for each in facts}) == 4
    assert kept(run) == before


@pytest.mark.nightly
def test_where_every_size_gives_the_same_bits_the_answer_is_identical_at_every_size(
    decoded_run: Callable[..., RunRecord], replayed: Callable[..., contract.Replay], join_worker: Join
) -> None:
    run = decoded_run()
    join_worker()
    replay = replayed(run, batch_sizes=[1, 2, 4])
    assert replay.reading == ("Identical at every batch size from 1 to 4.",)


@pytest.mark.nightly
def test_a_leak_between_neighbours_is_found_with_the_size_fixed(
    decoded_run: Callable[..., RunRecord], replayed: Callable[..., contract.Replay], join_worker: Join
) -> None:
    run = decoded_run()
    join_worker(SCRIPTED_LEAK="leaky")
    leaking = replayed(run, batch_sizes=[3], neighbours=3)
    assert [line["neighbours"] for line in leaking.results] == [[1, 2], [3, 4], [5, 6]]
    assert [line["outcome"] for line in leaking.results] == ["identical", "identical", "drift"]
    assert leaking.reading == (
        "Identical at batch size 3.",
        "Possible leakage: at batch size 3, with other neighbours, the same case drifts from position 0 "
        "(by 9.5e-07 nats there).",
    )
    steady = replayed(run, batch_sizes=[3], neighbours=2)
    assert steady.reading[1] == "At batch size 3, other neighbours change no bit (2 sets tried)."


@pytest.mark.nightly
def test_a_dtype_sweep_starts_an_engine_for_each(
    decoded_run: Callable[..., RunRecord], replayed: Callable[..., contract.Replay], join_worker: Join
) -> None:
    run = decoded_run()
    join_worker(SCRIPTED_RECORDED=json.dumps({"bfloat16": {"word": "black"}, "float16": {"drift": 0}}))
    replay = replayed(run, dtypes=["float32", "float16", "bfloat16"])
    assert [said.partition(" ")[0] for said in replay.reading] == ["float32:", "float16:", "bfloat16:"]
    assert [line["outcome"] for line in replay.results] == ["identical", "drift", "flip"]
    dtypes = EngineProcess.objects.order_by("pk").values_list("manifest__engine__dtype", flat=True)
    assert list(dtypes)[-3:] == ["float32", "float16", "bfloat16"]


@pytest.mark.nightly
def test_an_engine_that_dies_is_one_variant_s_result_and_the_others_go_on(
    decoded_run: Callable[..., RunRecord], replayed: Callable[..., contract.Replay], join_worker: Join
) -> None:
    run = decoded_run()
    join_worker(SCRIPTED_RECORDED=json.dumps({"2": {"dies": 1}, "4": {"dies": 1}}))
    replay = replayed(run, batch_sizes=[1, 2, 3])
    assert [line["outcome"] for line in replay.results] == ["identical", "error", "identical"]
    assert replay.status == "finished"
    assert replay.reading[0] == "Identical at every batch size from 1 to 3."
    assert replay.reading[1].startswith("There is no answer at batch size 2: engine_error: ")
    assert "no memory for this batch" in replay.reading[1]
    failed = replayed(run, batch_sizes=[2, 4])
    assert (failed.status, failed.reading) == ("failed", ())
    assert "no memory for this batch" in failed.error


@pytest.mark.nightly
def test_a_warm_engine_that_has_died_meanwhile_costs_the_replay_nothing(
    decoded_run: Callable[..., RunRecord], replayed: Callable[..., contract.Replay], join_worker: Join
) -> None:
    run = decoded_run()
    worker = join_worker()
    first = replayed(run)
    [engine] = worker.engines
    kill_engine(engine)
    second = replayed(run)
    assert [line["outcome"] for line in (*first.results, *second.results)] == ["identical", "identical"]
    assert first.results[0]["engine_process"] != second.results[0]["engine_process"]


@pytest.mark.nightly
def test_a_replay_under_fixed_has_the_group_of_the_run(
    decoded_run: Callable[..., RunRecord], replayed: Callable[..., contract.Replay], join_worker: Join
) -> None:
    create_profile(slug="threes", title="", settings={**DEFAULT_PROFILES["fixed"]["settings"], "group_size": 3})
    run = decoded_run(under="threes")
    join_worker()
    replay = replayed(run)
    [line] = replay.results
    assert (line["outcome"], line["neighbours"], line["batch_max"]) == ("identical", [1, 2], 3)
    assert line["same_bucket"] is True


def test_a_replay_of_a_case_without_a_response_says_so_and_binds_no_run(
    new_run: NewRun, replayed: Callable[..., contract.Replay], join_worker: Join
) -> None:
    run = new_run(COLOURS, repeats=1)
    cancel_run(run_id=run.pk)
    join_worker()
    replay = replayed(run, batch_sizes=[1, 2])
    assert replay.reading == (
        "Identical at every batch size from 1 to 2.",
        "Each batch size is compared with 1.",
        "The run has no response to this case in this repeat to compare with.",
    )
    assert [line["outcome"] for line in replay.results] == ["decoded", "decoded"]
    run.refresh_from_db()
    assert (run.bucket_id, run.repeats.get().engine_processes.count()) == (None, 0)


def test_a_profile_that_no_worker_can_honour_is_refused_in_words(
    new_run: NewRun, join_worker: Join, work_until: Wait
) -> None:
    run = new_run(COLOURS, repeats=1, under="invariant")
    replay = create_replay(run_id=run.pk, case_id="case-0")
    join_worker()
    work_until(lambda: replay_row(replay.pk).is_terminal, "the replay has ended")
    row = replay_row(replay.pk)
    assert (row.status, row.results) == ("failed", ())
    assert row.error.startswith("No worker can honour the profile invariant. vLLM has batch-invariant kernels only on")


def test_a_replay_comes_before_the_shards_that_wait(
    new_run: NewRun, replayed: Callable[..., contract.Replay], join_worker: Join
) -> None:
    run = new_run(COLOURS * 6, repeats=1)
    replay = create_replay(run_id=run.pk, case_id="case-0")
    join_worker(SCRIPTED_SECONDS="0.2")
    assert replayed(run).status == "finished"
    assert replay_row(replay.pk).status == "finished"
    assert ResponseRecord.objects.count() < 48


@pytest.mark.nightly
@as_processes
def test_a_worker_killed_in_a_replay_is_followed_by_one_that_goes_on(
    decoded_run: Callable[..., RunRecord],
    start_worker: Start,
    wait_until: Wait,
    join_worker: Join,
    work_until: Wait,
    tmp_path: Path,
) -> None:
    run = decoded_run()
    replay = create_replay(run_id=run.pk, case_id="case-0", batch_sizes=[1, 2, 3, 4])
    environment = {"SCRIPTED_RECORDED": json.dumps({"2": {"word": "bled"}, "4": {"word": "bled"}})}
    first = start_worker(SCRIPTED_SECONDS="1", **environment)
    wait_until(lambda: len(replay_row(replay.pk).results) == 2, "two variants are recorded")
    kill_group(first)
    join_worker(**environment)
    work_until(lambda: replay_row(replay.pk).is_terminal, "the replay has ended")
    row = replay_row(replay.pk)
    assert [line["variant"]["batch_size"] for line in row.results] == [1, 2, 3, 4]
    assert [line["outcome"] for line in row.results] == ["identical", "flip", "identical", "flip"]
    assert row.results[3]["against_first"]["outcome"] == "flip"  # held against what the first worker stored
    assert ReplayRecord.objects.get(pk=replay.pk).attempt == 2


@pytest.mark.nightly
@as_processes
def test_a_worker_that_slept_through_its_lease_records_nothing_afterwards(
    decoded_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, join_worker: Join, work_until: Wait
) -> None:
    run = decoded_run()
    replay = create_replay(run_id=run.pk, case_id="case-0", batch_sizes=[1, 2, 3])
    zombie = start_worker(SCRIPTED_SECONDS="1")
    wait_until(lambda: len(replay_row(replay.pk).results) == 1, "one variant is recorded")
    zombie.send_signal(signal.SIGSTOP)
    ReplayRecord.objects.filter(pk=replay.pk).update(lease_until=Now())
    join_worker()
    work_until(lambda: replay_row(replay.pk).is_terminal, "the replay has ended")
    before = ReplayRecord.objects.values().get(pk=replay.pk)
    zombie.send_signal(signal.SIGCONT)
    zombie.send_signal(signal.SIGTERM)
    zombie.wait()
    assert ReplayRecord.objects.values().get(pk=replay.pk) == before
    assert (len(before["results"]), before["attempt"]) == (3, 2)


@pytest.mark.nightly
def test_a_worker_that_is_told_to_stop_gives_its_replay_back(
    decoded_run: Callable[..., RunRecord], join_worker: Join
) -> None:
    run = decoded_run()
    replay = create_replay(run_id=run.pk, case_id="case-0", batch_sizes=[1, 2, 3, 4, 5, 6, 7, 8])
    join_worker(on_answer=stop_after(5)).work()
    row = ReplayRecord.objects.get(pk=replay.pk)
    assert (row.status, row.owner_id, row.error) == ("queued", None, "The worker was stopped.")
    assert 1 <= len(row.results) < 8
    assert not any(result["error"] for result in row.results)


@pytest.mark.nightly
def test_a_request_of_production_is_decoded_by_its_own_sampling(
    decoded_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    run = decoded_run()
    before = kept(run)
    join_worker()

    def decode(**changes: Any) -> contract.ProductionAnswer:
        body = {"messages": [{"role": "user", "content": "draw abcdefgh"}], "max_tokens": 4, "temperature": 1.0}
        asked = create_body_replay(endpoint="scripted", profile="pinned", body={**body, **changes})
        work_until(lambda: replay_row(asked.pk).is_terminal, "the replay has ended")
        row = replay_row(asked.pk)
        assert row.status == "finished", row.error
        assert row.production is not None
        assert row.production.answer is not None
        return row.production.answer

    first, same, other = decode(seed=1), decode(seed=1), decode(seed=5)
    assert first.text == same.text != other.text
    assert first.trace is not None
    assert first.trace.length == 4
    assert (first.sampling["seed"], first.sampling["max_tokens"], first.sampling["temperature"]) == (1, 4, 1.0)
    assert first.engine["dtype"] == "float32"
    assert kept(run) == before


def test_a_case_under_another_profile_is_held_against_the_run_and_left_out_of_it(
    decoded_run: Callable[..., RunRecord], replayed: Callable[..., contract.Replay], join_worker: Join
) -> None:
    create_profile(slug="threes", title="", settings={**DEFAULT_PROFILES["fixed"]["settings"], "group_size": 3})
    run = decoded_run()
    before = kept(run)
    join_worker(SCRIPTED_RECORDED=json.dumps({"3": {"word": "bled"}}))
    replay = replayed(run, profile="threes")
    [line] = replay.results
    assert (line["outcome"], line["flip_position"], line["neighbours"], line["batch_max"]) == ("flip", 2, [1, 2], 3)
    assert replay.reading[0].startswith("Flips at position 2: ‘u’ → ‘e’")
    assert replay.reading[-1] == "Decoded under threes instead of the run’s pinned: it counts toward no score."
    assert replayed(run).results[0]["outcome"] == "identical"
    assert kept(run) == before


def test_a_profile_of_production_that_this_worker_cannot_honour_leaves_the_run_to_it(
    new_run: NewRun, join_worker: Join, work_until: Wait
) -> None:
    create_profile(slug="invariant", title="", settings=DEFAULT_PROFILES["invariant"]["settings"])
    run = new_run(COLOURS, repeats=1)
    replay = create_replay(run_id=run.pk, case_id="case-0", profile="invariant")
    join_worker()
    work_until(lambda: replay_row(replay.pk).is_terminal and ended(run), "both have ended")
    assert replay_row(replay.pk).status == "failed"
    assert run.status == "finished"
