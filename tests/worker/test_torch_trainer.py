"""The trainer of torch against what vLLM once recorded of the same model: the same numbers, but for rounding."""

import json
import subprocess
from pathlib import Path

import pytest

from evalboard.core.forced import OnPolicyCheck, check_on_policy
from evalboard.core.rollouts import join_trainer, parse_rollouts
from tests.recorded import LOGS

pytestmark = [pytest.mark.engine, pytest.mark.nightly]
ROOT = Path(__file__).resolve().parents[2]


def recorded() -> list[str]:
    """The answers of a float32 vLLM as rollouts, and its logprobs."""
    lines = []
    for line in (LOGS / "openai_chat" / "chat_fp32.jsonl").read_text().splitlines():
        body = json.loads(line)["response"]
        choice = body["choices"][0]
        logprobs = [position["logprob"] for position in choice["logprobs"]["content"]]
        prompt = body["prompt_token_ids"]
        row = {"prompt_token_ids": prompt, "token_ids": choice["token_ids"], "logprobs": logprobs, "id": body["id"]}
        lines.append(json.dumps(row))
    return lines


def train(
    python: Path, model: Path | str, dtype: str, lines: list[str], *, rc: int = 0
) -> "subprocess.CompletedProcess[str]":
    command = [python, ROOT / "worker" / "torch_trainer.py", model, dtype]
    ended = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == rc, ended.stderr[-2000:]
    return ended


def checked(python: Path, model: Path, dtype: str) -> OnPolicyCheck:
    lines = recorded()
    scored = train(python, model, dtype, lines).stdout.splitlines()
    rollouts = join_trainer(
        parse_rollouts(lines, field="sampled"), parse_rollouts(scored, field="trained"), field="trained"
    )
    return check_on_policy(rollouts)


def test_float32_is_what_vllm_s_float32_was(vllm_python: Path, sample_model: Path) -> None:
    check = checked(vllm_python, sample_model, "float32")
    assert check.figures.n_compared == check.figures.n_positions == 154
    assert 0 < abs(check.worst[0].log_ratio) < 1e-3


def test_bfloat16_is_near_it_and_farther(vllm_python: Path, sample_model: Path) -> None:
    check = checked(vllm_python, sample_model, "bfloat16")
    assert 0.01 < abs(check.worst[0].log_ratio) < 1


def test_what_is_no_rollout_is_said_without_a_traceback(vllm_python: Path, sample_model: Path) -> None:
    ended = train(vllm_python, sample_model, "float32", ['{"text": "a"}'], rc=1)
    assert ended.stderr.splitlines()[-1] == "torch_trainer: line 1 has no prompt_token_ids and token_ids"
    assert "Traceback" not in ended.stderr
    assert train(vllm_python, "nowhere", "float32", [], rc=2).stderr.startswith("usage: ")
