"""`evalboard rollouts`: series and steps, and an exit code by limits."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

from tests.frontend.test_rollout_pages import logged

Call = Callable[..., "CompletedProcess[str]"]


def test_steps_are_shown_and_a_step_over_its_limit_is_1(evalboard: Call) -> None:
    assert evalboard("rollouts").stdout == "No training run has logged a step.\n"
    logged(5, over=3)
    bad = evalboard("rollouts", "grpo")
    assert (bad.returncode, bad.stderr) == (1, "")
    assert "Step 3: The KL (k3) is 0.5 nats per token, above the limit of 0.001 nats." in bad.stdout
    assert evalboard("rollouts", "grpo", "--last", "1").returncode == 0
    assert evalboard("rollouts", "grpo", "--max-kl", "0.9").returncode == 0
    shown = evalboard("rollouts", "grpo", "--last", "2", "--json")
    assert [row["step"] for row in json.loads(shown.stdout)] == [4, 3]
    assert "largest 0.5 nats at step 3" in evalboard("rollouts").stdout
    assert evalboard("rollouts", "none").returncode == 64
