"""Rollouts laid out as each trainer has them, with its padding and what it puts where nothing was sampled.

docs/forced.md names the file of each project that lays them out so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

PAD = 2


@dataclass(frozen=True, kw_only=True)
class Laid:
    """One rollout before any padding. sampled: 1 for each token that the model chose, 0 for a tool's."""

    prompt: list[int]
    tokens: list[int]
    sampled: list[int]
    sampler: list[float]
    trainer: list[float]


def verl(rollouts: Sequence[Laid]) -> list[dict[str, Any]]:
    """A batch: the prompts padded on the left, the responses on the right, one attention mask over both."""
    wide, long = _widths(rollouts)
    rows = []
    for each in rollouts:
        left, right = wide - len(each.prompt), long - len(each.tokens)
        rows.append(
            {
                "prompts": [PAD] * left + each.prompt,
                "responses": each.tokens + [PAD] * right,
                "response_mask": each.sampled + [0] * right,
                "attention_mask": [0] * left + [1] * (len(each.prompt) + len(each.tokens)) + [0] * right,
                "rollout_log_probs": each.sampler + [0.0] * right,
                "old_log_probs": each.trainer + [-11.5] * right,  # the trainer reads the padding as well
            }
        )
    return [_batch(rows)]


def skyrl(rollouts: Sequence[Laid]) -> list[dict[str, Any]]:
    """A training input: whole sequences padded on the left, and what is of responses aligned on the right."""
    total = max(len(each.prompt) + len(each.tokens) for each in rollouts)
    _, long = _widths(rollouts)
    rows = []
    for each in rollouts:
        left, before = total - len(each.prompt) - len(each.tokens), long - len(each.tokens)
        rows.append(
            {
                "sequences": [PAD] * left + each.prompt + each.tokens,
                "attention_mask": [0] * left + [1] * (total - left),
                "response_mask": [0] * before + [1] * len(each.tokens),
                "loss_mask": [0.0] * before + [float(one) for one in each.sampled],
                "rollout_logprobs": [0.0] * before + each.sampler,
                "action_log_probs": [-3.25] * before + each.trainer,  # of a prompt's tokens, or of padding
            }
        )
    return [_batch(rows)]


def skyrl_generator(rollouts: Sequence[Laid]) -> list[dict[str, Any]]:
    """What a generator returns: nothing padded, no trainer yet."""
    rows = [
        {
            "prompt_token_ids": each.prompt,
            "response_ids": each.tokens,
            "loss_masks": each.sampled,
            "rewards": 1.0,
            "stop_reasons": "stop",
            "rollout_logprobs": each.sampler,
        }
        for each in rollouts
    ]
    return [_batch(rows) | {"rollout_metrics": {"generate/avg_num_tokens": 3.0}, "trajectory_ids": None}]


def trl(rollouts: Sequence[Laid]) -> list[dict[str, Any]]:
    """The inputs of the loss: prompts padded on the left, completions on the right, the tool mask padded with 1."""
    wide, long = _widths(rollouts)
    rows = []
    for each in rollouts:
        left, right = wide - len(each.prompt), long - len(each.tokens)
        rows.append(
            {
                "prompt_ids": [PAD] * left + each.prompt,
                "prompt_mask": [0] * left + [1] * len(each.prompt),
                "completion_ids": each.tokens + [PAD] * right,
                "completion_mask": [1] * len(each.tokens) + [0] * right,
                "tool_mask": each.sampled + [1] * right,
                "advantages": 0.5,
                "sampling_per_token_logps": each.sampler + [0.0] * right,
                "old_per_token_logps": each.trainer + [-11.5] * right,
            }
        )
    return [_batch(rows) | {"num_items_in_batch": 9}]


def nemo_rl(rollouts: Sequence[Laid]) -> list[dict[str, Any]]:
    """Its log of a step: a line a rollout, each field a list of one, whole sequences padded on the right."""
    total = max(len(each.prompt) + len(each.tokens) for each in rollouts)
    lines = []
    for index, each in enumerate(rollouts):
        before, right = [0.0] * len(each.prompt), total - len(each.prompt) - len(each.tokens)
        lines.append(
            {
                "content": [["the prompt", "the answer"]],
                "rewards": [1.0],
                "input_lengths": [total - right],
                "token_ids": [each.prompt + each.tokens + [PAD] * right],
                "token_loss_mask": [[0] * len(each.prompt) + each.sampled + [0] * right],
                "sample_loss_mask": [1.0],
                "advantages": [[0.5] * total],
                "generation_logprobs": [before + each.sampler + [0.0] * right],
                "prev_logprobs": [[0.0] + [-7.0] * (len(each.prompt) - 1) + each.trainer + [-11.5] * right],
                "idx": index,
            }
        )
    return lines


Writer = Callable[[Sequence[Laid]], list[dict[str, Any]]]
PADDED: dict[str, Writer] = {
    "verl": verl,
    "skyrl": skyrl,
    "skyrl-generator": skyrl_generator,
    "trl": trl,
    "nemo-rl": nemo_rl,
}

# Lines of what the same trainers write of completions by themselves.
TEXTS: dict[str, dict[str, Any]] = {
    "verl": {"input": "user\nRain?", "output": "Yes.", "gts": "yes", "score": 1.0, "step": 12, "acc": True},
    "skyrl": {
        "input_prompt": "user\nRain?",
        "output_response": "Yes.",
        "score": [0.0, 1.0],
        "stop_reason": "stop",
        "env_class": "gsm8k",
        "env_extras": {"reward_spec": {"ground_truth": "yes"}},
        "data_source": "weather",
    },
    "nemo-rl": {"content": [[{"role": "user", "content": "Rain?"}]], "rewards": [1.0], "idx": 0},
}


def _widths(rollouts: Sequence[Laid]) -> tuple[int, int]:
    """How long the longest prompt is, and the longest response."""
    return max(len(each.prompt) for each in rollouts), max(len(each.tokens) for each in rollouts)


def _batch(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The rows as one object whose fields are lists."""
    return {name: [row[name] for row in rows] for name in rows[0]}
