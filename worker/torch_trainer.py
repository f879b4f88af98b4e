"""Score the tokens of rollouts with torch and transformers, eager: a trainer that runs anywhere.

Run by the engine's interpreter, in which Evalboard is not installed: `python worker/torch_trainer.py MODEL DTYPE
< rollouts.jsonl > trainer.jsonl`. MODEL is a folder, DTYPE float32 or bfloat16. Each line of the plain form
(docs/forced.md) comes back with the trainer's `logprobs` in place of the sampler's. One response at a time,
so that nothing else is in the batch; the log-softmax is float32.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vllm_start import COMMON_ENV  # next to this file: a script's own folder is on its path

os.environ.update({**COMMON_ENV, "HF_HUB_OFFLINE": "1"})

import torch
from transformers import AutoModelForCausalLM

DTYPES = ("float32", "bfloat16")


def main(arguments: list[str]) -> int:
    """Score the lines of stdin; return the exit status."""
    if len(arguments) != 2 or arguments[1] not in DTYPES or not (Path(arguments[0]) / "config.json").is_file():
        print(f"usage: python worker/torch_trainer.py MODEL {'|'.join(DTYPES)} < rollouts.jsonl", file=sys.stderr)
        return 2
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(
        arguments[0], dtype=getattr(torch, arguments[1]), attn_implementation="eager"
    )
    try:
        for row in score(model.eval().to(device), sys.stdin):
            print(json.dumps(row), flush=True)
    except ValueError as problem:
        print(f"torch_trainer: {problem}", file=sys.stderr)
        return 1
    return 0


def score(model: Any, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield each rollout with the model's logprobs of its tokens. Raises ValueError for an invalid line."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = json.loads(line)
        prompt, tokens = row.get("prompt_token_ids"), row.get("token_ids")
        if not prompt or not isinstance(tokens, list):
            raise ValueError(f"line {number} has no prompt_token_ids and token_ids")
        yield {**row, "logprobs": logprobs_of(model, prompt, tokens)}


def logprobs_of(model: Any, prompt: list[int], tokens: list[int]) -> list[float]:
    """Return the logprob of each token after all before it, in nats."""
    if not tokens:
        return []
    ids = torch.tensor([[*prompt, *tokens]], device=model.device)
    with torch.inference_mode():
        # The logits at a position are of the next one's token: one before the answer, and none at its end.
        logits = model(ids, logits_to_keep=len(tokens) + 1).logits[0, :-1]
        chosen = logits.float().log_softmax(-1).gather(1, ids[0, len(prompt) :, None])
    logprobs: list[float] = chosen[:, 0].tolist()
    return logprobs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
