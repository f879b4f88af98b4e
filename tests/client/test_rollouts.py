"""`evalboard.client.rollouts.log` against a server that is really there, as trainers call it."""

import logging
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from evalboard.client import rollouts
from evalboard.client.errors import WrongUse
from evalboard.core.rollout_steps import measure_step
from runs.models import RolloutStepRecord, Token
from tests import build
from tests.core.test_rollout_steps import tensors

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def variables(transactional_db: None, live_server: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    token = build.token(build.user("trainer", "engineer"), "read", "run")
    set_to = {"EVALBOARD_URL": live_server.url, "EVALBOARD_TOKEN": token}
    for name, value in set_to.items():
        monkeypatch.setenv(name, value)
    return set_to


def test_a_step_is_stored_once_and_replaced_when_logged_again(variables: dict[str, str]) -> None:
    figures = rollouts.log(7, tensors("verl"), series="grpo-1")
    assert figures.kl_k3 == measure_step(tensors("verl")).kl_k3
    again = {**tensors("verl"), "old_log_probs": tensors("verl")["rollout_log_probs"]}
    assert rollouts.log(7, again, series="grpo-1").is_identical
    stored = RolloutStepRecord.objects.get()
    assert (stored.series.name, stored.step, stored.kl_k3, stored.n_logged) == ("grpo-1", 7, 0.0, 2)


def test_a_step_over_its_limit_is_stored_and_raises(variables: dict[str, str]) -> None:
    with pytest.raises(rollouts.RolloutMismatch, match=r"Step 8 of grpo: The KL \(k3\) is .* above the limit of 0.001"):
        rollouts.log(8, tensors("trl"), series="grpo", max_kl=0.001)
    with pytest.raises(
        rollouts.RolloutMismatch, match=r"outside the clip range, .* position 2 of response 3"
    ) as raised:
        rollouts.log(9, tensors("trl"), series="grpo", max_clip_share=0.01, max_kl=10.0)
    assert raised.value.figures.worst is not None
    assert list(RolloutStepRecord.objects.order_by("step").values_list("step", "is_over")) == [(8, True), (9, True)]
    with pytest.raises(WrongUse, match="Use small letters"):
        rollouts.log(10, tensors("trl"), series="no name")


def test_a_token_that_expires_ends_no_training(variables: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    rollouts.log(1, tensors("verl"), series="expires")
    Token.objects.all().delete()
    with caplog.at_level(logging.WARNING):
        rollouts.log(2, tensors("verl"), series="expires")
    assert "Step 2 of expires was not stored" in caplog.text
    with pytest.raises(WrongUse):
        rollouts.log(1, tensors("verl"), series="began-later")


def test_training_goes_on_without_the_server_and_limits_are_kept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("EVALBOARD_URL", "http://127.0.0.1:9")  # discard: nothing listens there
    monkeypatch.setenv("EVALBOARD_TOKEN", "none")
    with caplog.at_level(logging.WARNING):
        figures = rollouts.log(1, tensors("skyrl"), series="grpo")
    assert figures == measure_step(tensors("skyrl"))
    assert "Step 1 of grpo was not stored: http://127.0.0.1:9 does not answer" in caplog.text
    with pytest.raises(rollouts.RolloutMismatch):
        rollouts.log(1, tensors("skyrl"), series="grpo", max_kl=0.001)


TORCH = """
import torch
from evalboard.client import rollouts
from tests import trainer_dumps
from tests.core.test_rollout_steps import laid

TRAINED = ("old_log_probs", "action_log_probs", "old_per_token_logps")

def tensor(name, value):
    return torch.tensor(value).requires_grad_(name in TRAINED) if isinstance(value, list) else value

held = {}
for writer in ("verl", "skyrl", "trl"):
    [batch] = trainer_dumps.PADDED[writer](laid())
    held[writer] = {name: tensor(name, value) for name, value in batch.items()}
held["half"] = {name: each.bfloat16() if "log_probs" in name else each for name, each in held["verl"].items()}

def jagged(values):
    return torch.nested.nested_tensor([torch.tensor(each) for each in values], layout=torch.jagged)

rows = laid()
held["verl-v1"] = {
    "responses": jagged([each.tokens for each in rows]),
    "response_mask": jagged([each.sampled for each in rows]),
    "rollout_log_probs": jagged([each.sampler for each in rows]),
    "old_log_probs": jagged([each.trainer for each in rows]),
}
for name, batch in held.items():
    rollouts.log(0, batch, series=name)
"""


@pytest.mark.nightly
def test_torch_tensors_of_each_trainer_say_the_same(variables: dict[str, str], vllm_python: Path) -> None:
    """Of a graph, jagged, and of 16 bits; all logprobs here are multiples of 1/16, which bfloat16 has."""
    path = os.pathsep.join([str(ROOT), sysconfig.get_paths()["purelib"]])
    # The interpreter's own packages come first: ours are there for what it lacks.
    code = f"import sys; sys.path += {path.split(os.pathsep)!r}\n{TORCH}"
    ended = subprocess.run(
        [vllm_python, "-c", code], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    expected = measure_step(tensors("verl")).to_json()
    stored = {each.series.name: each.figures for each in RolloutStepRecord.objects.select_related("series")}
    assert sorted(stored) == ["half", "skyrl", "trl", "verl", "verl-v1"]
    for name, figures in stored.items():
        assert figures == expected, name
