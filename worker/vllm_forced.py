"""Forced re-scoring: given tokens read in one pass in place of being decoded. Part of `vllm_host.py`.

vLLM lists the logprobs of a prompt's tokens in the mode that the engine decodes with. Sampling has no part in them:
under `raw_logprobs` they stand for what decoding the same tokens would have given, at any temperature. A prompt whose
logprobs are wanted is never read out of the prefix cache, and where it is cut into steps all of them are listed.
"""

import math
from typing import Any

import vllm_tokens
from vllm_tokens import RequestRefused

K_MIN = 2  # the first choice and the one after it


def answer_ids(tokenizer: Any, request: dict[str, Any], prompt_ids: list[int]) -> list[int]:
    """Return the answer to score: its own tokens, or those of its text, to which no end token is added.

    Raises RequestRefused where there are none, or no prompt that they follow.
    """
    if not prompt_ids:
        raise RequestRefused("prompt_empty", "The prompt is empty: its first token would have no logprob.")
    ids = request["answer_token_ids"]
    if ids is None:
        ids = tokenizer.encode(request["answer_text"], add_special_tokens=False)
    if not ids:
        raise RequestRefused("not_rebuilt", "The answer has no token.")
    return list(ids)


def sampling(request: dict[str, Any]) -> dict[str, Any]:
    """Return the sampling of a prefill that scores an answer; the token after it is ignored."""
    k = max(K_MIN, request["sampling"].get("logprobs") or 0)
    return {"temperature": 0.0, "max_tokens": 1, "prompt_logprobs": k, "detokenize": False}


def trace(output: Any, n_answer: int) -> dict[str, Any]:
    """Return the trace of the last `n_answer` tokens of a prompt, in the form of `vllm_tokens.trace`.

    vLLM lists at each position the given token first and then its top k; of a prompt's first token it lists nothing.
    """
    flat, ids = output.prompt_logprobs, list(output.prompt_token_ids)
    n = len(ids)
    width = len(flat.token_ids) // (n - 1)
    if len(flat) != n or len(flat.token_ids) != (n - 1) * width or list(flat.token_ids[::width]) != ids[1:]:
        raise RuntimeError("vLLM's logprobs do not line up with the prompt's tokens")
    begin = (n - 1 - n_answer) * width
    listed, values = flat.token_ids[begin:], flat.logprobs[begin:]
    rest = [index for index in range(n_answer * width) if index % width]
    return {
        "k": width - 1,
        "token_ids": vllm_tokens.ints(listed[::width]),
        "logprobs": vllm_tokens.floats(values[::width]),
        "alternative_ids": vllm_tokens.ints(listed[index] for index in rest),
        "alternative_logprobs": vllm_tokens.floats(values[index] for index in rest),
        "is_corrupted": any(map(math.isnan, values)),
        "prompt_token_ids": vllm_tokens.ints(ids[: n - n_answer]),
    }
