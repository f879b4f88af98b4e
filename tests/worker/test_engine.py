"""More of the real vLLM on the real small model than the gate has (test_real_engine.py)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalboard.calling.calls import DecodeRequest
from evalboard.core.profile import attest_pins
from evalboard.core.trace import Failed, Outcome
from tests.worker.engine_cases import (
    QUESTIONS,
    Running,
    by_index,
    decoded,
    endless,
    forced,
    make_plan,
    request,
    requests,
    short,
)
from worker.engines.base import ForceRequest
from worker.engines.process import LineProcess

pytestmark = [pytest.mark.engine, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def mixed(vllm_python: Path, sample_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """An engine of four sequences a step, on a model without a chat template, with pins that a CPU cannot hold."""
    bare = tmp_path_factory.mktemp("bare-model")
    for file in sample_model.iterdir():
        if file.name != "chat_template.jinja":
            (bare / file.name).symlink_to(file)
    changes = {"max_num_seqs": 4, "attention_backend": "TRITON_ATTN", "async_scheduling": True}
    running = Running(vllm_python, bare, make_plan("fast", changes), response_seconds=60.0)
    yield running
    running.engine.stop()


@pytest.fixture(scope="module")
def answers(pinned: Running) -> dict[int, Outcome]:
    return by_index(pinned.engine.decode(requests(pinned.plan)))


def test_responses_come_as_they_finish(pinned: Running) -> None:
    """One that is short comes while one without an end is decoded, which is then called off."""
    came = []
    for outcome in pinned.engine.decode([short(pinned.plan, 0), endless(pinned.plan, 1)]):
        came.append(outcome.case_index)
        pinned.engine.abort()
    assert came == [0]


def test_a_long_response_shows_that_its_tokens_come(pinned: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    receive, signs = LineProcess.receive, list[int]()

    def look(process: LineProcess, *, deadline: float) -> dict[str, Any]:
        event = receive(process, deadline=deadline)
        if event["event"] == "alive":
            signs.append(event["n_tokens"])
            if len(signs) == 2:
                pinned.engine.abort()
        return event

    monkeypatch.setattr(LineProcess, "receive", look)
    assert list(pinned.engine.decode([endless(pinned.plan, 0)])) == []
    assert signs[0] < signs[1]


def test_a_stop_string_ends_an_answer_where_it_would_have_stood(pinned: Running, answers: dict[int, Outcome]) -> None:
    whole = decoded(answers[3]).text
    stop = whole[5:9]
    found = decoded(
        next(iter(pinned.engine.decode([request(3, QUESTIONS[3], dict(pinned.plan.sampling, stop=[stop]))])))
    )
    assert found.finish_reason == "stop"
    assert found.text == whole[: whole.index(stop)]
    assert decoded(answers[3]).trace.token_ids.tolist()[: len(found.trace)] == found.trace.token_ids.tolist()


def test_an_answer_that_is_cut_says_so(pinned: Running) -> None:
    cut = dict(pinned.plan.sampling, max_tokens=3, ignore_eos=True)
    found = decoded(next(iter(pinned.engine.decode([request(0, "Count to ten", cut)]))))
    assert (found.finish_reason, len(found.trace)) == ("length", 3)


def test_a_prompt_given_as_ids_is_the_same_prompt(pinned: Running, answers: dict[int, Outcome]) -> None:
    first = decoded(answers[0])
    assert first.trace.prompt_token_ids is not None
    ids = first.trace.prompt_token_ids.tolist()
    again = DecodeRequest(case_index=0, messages=(), sampling=pinned.plan.sampling, prompt_token_ids=ids)
    found = decoded(next(iter(pinned.engine.decode([again]))))
    assert (found.trace.digest, found.prompt_digest) == (first.trace.digest, first.prompt_digest)


def test_pins_that_the_hardware_cannot_hold_are_reported_as_broken(mixed: Running) -> None:
    attested = attest_pins(mixed.plan.pins, mixed.started.manifest["engine"])
    broken = {pin["name"]: pin["found"] for pin in attested if not pin["held"]}
    assert broken == {"attention_backend": "CPU_ATTN", "async_scheduling": False}


def test_requests_in_one_batch_say_with_how_many_they_shared_it(mixed: Running) -> None:
    asked = [
        DecodeRequest(
            case_index=index,
            messages=(),
            sampling=dict(mixed.plan.sampling, max_tokens=4 * (index + 1), ignore_eos=True),
            prompt_token_ids=[1, 42, 43, 44],
        )
        for index in range(4)
    ]
    found = by_index(mixed.engine.decode(asked))
    ranges = [(decoded(found[index]).batch_min, decoded(found[index]).batch_max) for index in range(4)]
    assert ranges == [(4, 4), (3, 4), (2, 4), (1, 4)]


def test_messages_without_a_chat_template_are_a_clear_error(mixed: Running) -> None:
    outcome = next(iter(mixed.engine.decode([request(0, "Hello", mixed.plan.sampling)])))
    assert isinstance(outcome, Failed)
    assert outcome.code == "template_error"
    assert "no chat template" in outcome.detail


def test_a_completion_is_decoded_without_a_template_and_scored_as_it_was_decoded(mixed: Running) -> None:
    messages = ({"role": "completion", "content": "The capital of France is"},)
    asked = DecodeRequest(case_index=0, messages=messages, sampling=dict(mixed.plan.sampling, max_tokens=4))
    answer = decoded(next(iter(mixed.engine.decode([asked]))))
    assert answer.trace.prompt_token_ids is not None
    words = mixed.engine.vocabulary().tokens
    assert b"".join(words[token] or b"" for token in answer.trace.prompt_token_ids) == b"The capital of France is"
    scored = forced(
        mixed, [ForceRequest(0, messages, mixed.plan.sampling, answer_token_ids=answer.trace.token_ids.tolist())]
    )
    assert scored[0].trace.prompt_token_ids.tolist() == answer.trace.prompt_token_ids.tolist()  # type: ignore[union-attr]
    assert scored[0].trace.token_ids.tolist() == answer.trace.token_ids.tolist()


def test_a_decode_that_nobody_reads_to_the_end_does_not_spill_into_the_next(mixed: Running) -> None:
    outcomes = mixed.engine.decode([short(mixed.plan, 0), endless(mixed.plan, 1)])
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    assert [outcome.case_index for outcome in mixed.engine.decode([short(mixed.plan, 5)])] == [5]


def test_an_abort_between_two_decodes_hits_neither(mixed: Running) -> None:
    mixed.engine.abort()
    assert [outcome.case_index for outcome in mixed.engine.decode([short(mixed.plan, 0)])] == [0]
