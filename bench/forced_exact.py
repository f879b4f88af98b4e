"""Sample from one model and hold another beside it, token by token, with the whole distributions of both.

Run by the engine's own interpreter: `python forced_exact.py SAMPLER DTYPE REFERENCE N < texts.json`. Each text is the
user's message; N tokens at most are drawn at a temperature of 1, by torch and transformers, eager, and at each position
N_AGAIN more that nothing follows. Prints JSON: for each text `exact`, KL(sampler ‖ reference) at each position in nats,
and `again`, for each position log r of each of those tokens. The reference is float32.
"""

import json
import os
import sys
from typing import Any

os.environ.update({"HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE"})

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

AT_ONCE = 40
N_AGAIN = 100
SEED = 7


def main(sampler: str, dtype: str, reference: str, n_tokens: int, texts: list[str]) -> list[dict[str, Any]]:
    torch.manual_seed(SEED)
    tokenizer = AutoTokenizer.from_pretrained(reference, padding_side="left")
    models = [load(sampler, getattr(torch, dtype)), load(reference, torch.float32)]
    chats = [[{"role": "user", "content": text}] for text in texts]
    rendered = [tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats]
    ends = torch.tensor([tokenizer.eos_token_id])
    results: list[dict[str, Any]] = []
    with torch.inference_mode():
        for first in range(0, len(rendered), AT_ONCE):
            prompts = tokenizer(rendered[first : first + AT_ONCE], padding=True, return_tensors="pt")
            results += draw(models, prompts["input_ids"], prompts["attention_mask"], n_tokens, ends)
    return results


def load(folder: str, dtype: torch.dtype) -> Any:
    """Return a model for evaluation."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()


def draw(models: list[Any], ids: Tensor, mask: Tensor, n_tokens: int, ends: Tensor) -> list[dict[str, Any]]:
    """Draw an answer to each prompt from the first model, and score it on the second as it grows."""
    caches: list[Any] = [None, None]
    is_open = torch.ones(len(ids), dtype=torch.bool)
    rows: list[dict[str, Any]] = [{"exact": [], "again": []} for _ in ids]
    for _ in range(n_tokens):
        places = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        both = []
        for index, model in enumerate(models):
            output = model(ids, attention_mask=mask, position_ids=places, past_key_values=caches[index], use_cache=True)
            caches[index] = output.past_key_values
            both.append(output.logits[:, -1].double().log_softmax(-1))
        chances = both[0].exp()
        exact = (chances * (both[0] - both[1])).sum(-1)
        drawn = torch.multinomial(chances, 1 + N_AGAIN, replacement=True)
        ratios = (both[1] - both[0]).gather(1, drawn[:, 1:])
        drawn = drawn[:, :1]
        for row in is_open.nonzero()[:, 0].tolist():
            rows[row]["exact"].append(float(exact[row]))
            rows[row]["again"].append([round(each, 8) for each in ratios[row].tolist()])
        is_open &= ~torch.isin(drawn[:, 0], ends)
        if not is_open.any():
            break
        ids, mask = drawn, torch.cat([mask, torch.ones_like(drawn)], 1)
    return rows


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), json.load(sys.stdin))))
