"""Rollouts in the plain form whose trainer agrees to the bit, or lies off at one token."""

import json
from typing import Any

import numpy as np


def rows(n: int = 6, length: int = 30, *, planted: tuple[int, int] | None = None, by: float = -2.5) -> list[Any]:
    """Lines with both sides' logprobs. planted: the rollout and the position where the trainer's lies off by so much.

    Logprobs are multiples of 1/8, so that no arithmetic on them rounds.
    """
    rng = np.random.default_rng(5)
    lines = []
    for number in range(n):
        logprobs = -rng.integers(1, 16, length) / 8
        trainer = logprobs.copy()
        if planted is not None and planted[0] == number:
            trainer[planted[1]] += by
        lines.append(
            {
                "id": f"roll-{number}",
                "prompt_token_ids": [7, 8, number],
                "token_ids": rng.integers(0, 500, length).tolist(),
                "logprobs": logprobs.tolist(),
                "trainer_logprobs": trainer.tolist(),
            }
        )
    return lines


def content(lines: list[Any]) -> bytes:
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()
