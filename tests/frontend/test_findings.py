"""Sentences that a page claims, from reports made by hand."""

from datetime import UTC, datetime
from typing import Any

import pytest

from evalboard.contract.manifest import EngineSeats
from evalboard.contract.stack import Worker
from evalboard.contract.suite import SuiteVersion
from frontend.endpoints import words as endpoint_words
from frontend.runs import words as run_words
from frontend.suites import words
from runs.work import PoolRow


@pytest.mark.parametrize(
    ("plan", "claim"),
    [
        ({"default": {"kind": "exact"}, "cases": {}}, "exact 3"),
        ({"default": {"kind": "exact"}, "cases": {"a": {"kind": "number"}}}, "exact 2 · number 1"),
        ({"default": None, "cases": {"a": {"kind": "json"}, "b": {"kind": "json"}, "c": {"kind": "json"}}}, "json 3"),
    ],
)
def test_a_suite_says_which_scorers_judge_how_many_cases(plan: dict[str, Any], claim: str) -> None:
    suite = SuiteVersion(
        slug="words",
        title="Words",
        version=1,
        digest="0" * 64,
        n_cases=3,
        max_tokens=24,
        stop=(),
        scorer=plan,
        created_at=datetime.now(UTC),
        url="/suites/words/",
    )
    assert words.describe_scorer(suite).claim == claim


def member(state: str, **changes: Any) -> Worker:
    now = datetime.now(UTC)
    row = Worker(
        id="1",
        name="w",
        host="h",
        pool="gpu",
        state=state,
        hardware={},
        versions={},
        fingerprint=None,
        seats=None,
        shard=None,
        note="",
        rests_until=None,
        n_engine_failures=0,
        n_fenced=0,
        self_test=None,
        certificates=(),
        seen_at=now,
        started_at=now,
    )
    return row.model_copy(update=changes)


def pool(*states: str, n_waiting: int = 0) -> PoolRow:
    return PoolRow("gpu", tuple(member(state) for state in states), n_waiting, (7,) if n_waiting else ())


@pytest.mark.parametrize(
    ("states", "claim"),
    [
        ((), "No worker is running."),
        (("working",), "1 worker: 1 at work."),
        (("silent", "resting", "idle", "idle"), "4 workers: 2 idle, 1 silent, 1 paused."),
    ],
)
def test_a_team_is_counted_by_what_its_members_do(states: tuple[str, ...], claim: str) -> None:
    assert endpoint_words.describe_team([pool(*states)]).claim == claim


@pytest.mark.parametrize(
    ("states", "is_deserted"),
    [((), True), (("silent", "resting"), True), (("silent", "idle"), False), (("working",), False)],
)
def test_a_pool_is_deserted_once_nobody_is_left_to_do_its_work(states: tuple[str, ...], is_deserted: bool) -> None:
    assert pool(*states, n_waiting=3).is_deserted is is_deserted
    assert not pool(*states).is_deserted


def test_a_deserted_pool_says_who_is_there_and_does_not_serve() -> None:
    assert (
        endpoint_words.describe_desertion(pool(n_waiting=1)).claim
        == "Pool gpu: 1 shard waits and no worker is running."
    )
    assert endpoint_words.describe_desertion(pool("silent", "resting", n_waiting=12)).claim == (
        "Pool gpu: 12 shards wait and no worker serves it (1 silent and 1 paused)."
    )


@pytest.mark.parametrize(
    ("hardware", "versions", "hardware_label", "engine_label"),
    [
        (
            {"kind": "cpu", "cpu_model": "AMD EPYC", "cpu_isa": "AVX512", "n_cores": 2, "gpus": []},
            {"vllm": "0.32.0", "torch": "2.13.0+cpu", "cuda": None},
            "AMD EPYC · AVX512 · 2 cores",
            "vLLM 0.32.0 · torch 2.13.0+cpu",
        ),
        (
            {"kind": "cuda", "gpus": [{"name": "H200", "capability": 9.0}], "n_cores": 16},
            {"vllm": "0.25.0", "torch": "2.11.0", "cuda": "13.0"},
            "H200 · 16 cores",
            "vLLM 0.25.0 · torch 2.11.0 · CUDA 13.0",
        ),
        ({}, {}, "", ""),
    ],
)
def test_a_worker_is_described_in_one_line(
    hardware: dict[str, Any], versions: dict[str, Any], hardware_label: str, engine_label: str
) -> None:
    row = member("idle", hardware=hardware, versions=versions)
    assert (row.hardware_label, row.engine_label) == (hardware_label, engine_label)


def test_an_engine_that_got_fewer_seats_says_for_how_many_there_is_room() -> None:
    assert run_words.describe_shortage(EngineSeats(64, 9, 8192)) == (
        "9 of 64 seats fit: after the weights, memory has room for 9 of 8,192 tokens at a time."
    )
