"""A vLLM engine that decodes prompts and scores given tokens, run by the engine's own interpreter for bench_forced.

One JSON line on stdin says `model`, `dtype`, `max_tokens`, `prompts` (texts, each the user's message, to be answered
greedily), `scores` (whether to) and `given` (each a prompt and an answer in token ids). One on stdout has `decoded`,
for each prompt its `prompt_ids`, `token_ids` and `logprobs`, and `scored`: for each given pair, then for each of the
engine's own answers, the `logprobs` of the answer's tokens and the largest logprob at each, `tops`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "worker"))
import vllm_start

AT_ONCE = 32


def main() -> None:
    plan = json.loads(sys.stdin.readline())
    os.environ.update({**vllm_start.COMMON_ENV, "HF_HUB_OFFLINE": "1", "TORCHDYNAMO_DISABLE": "1"})
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM writes to stdout
    engine = vllm_start.start_engine(
        Path(plan["model"]),
        {
            "dtype": plan["dtype"],
            "max_model_len": 512,
            "max_num_seqs": AT_ONCE,
            "kv_cache_memory_bytes": "whole_batch",
            "enforce_eager": True,
            "enable_prefix_caching": False,  # prompt logprobs need every position of the prompt computed
            "seed": 0,
        },
    )
    prompts = render(plan["model"], plan["prompts"])
    outputs = run(engine, prompts, logprobs=0, max_tokens=plan["max_tokens"])
    decoded = [_decoded(output, prompt) for output, prompt in zip(outputs, prompts, strict=True)]
    pairs = [*plan["given"], *((each["prompt_ids"], each["token_ids"]) for each in decoded)] if plan["scores"] else []
    outputs = run(engine, [[*prompt, *answer] for prompt, answer in pairs], prompt_logprobs=1, max_tokens=1)
    scored = [_scored(output, *pair) for output, pair in zip(outputs, pairs, strict=True)]
    print(json.dumps({"decoded": decoded, "scored": scored}), file=answers, flush=True)
    os._exit(0)


def render(model: str, texts: list[str]) -> list[list[int]]:
    """Return the ids of each text as the one message of a chat."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    chats = ([{"role": "user", "content": text}] for text in texts)
    return [
        tokenizer.encode(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
        for chat in chats
    ]


def run(engine: Any, prompts: list[list[int]], **sampling: Any) -> list[Any]:
    """Return what the engine gives each prompt, in their order."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    params = SamplingParams(temperature=0, output_kind=RequestOutputKind.FINAL_ONLY, **sampling)
    for index, prompt in enumerate(prompts):
        engine.add_request(str(index), {"prompt_token_ids": prompt}, params)
    outputs = {}
    while engine.has_unfinished_requests():
        for output in engine.step():
            outputs[int(output.request_id)] = output
    return [outputs[index] for index in range(len(prompts))]


def _decoded(output: Any, prompt: list[int]) -> dict[str, Any]:
    completion = output.outputs[0]
    rows = zip(completion.token_ids, completion.logprobs, strict=True)
    return {
        "prompt_ids": prompt,
        "token_ids": list(completion.token_ids),
        "logprobs": [row[token].logprob for token, row in rows],
    }


def _scored(output: Any, prompt: list[int], answer: list[int]) -> dict[str, Any]:
    rows = output.prompt_logprobs[len(prompt) :]
    return {
        "logprobs": [row[token].logprob for token, row in zip(answer, rows, strict=True)],
        "tops": [max(each.logprob for each in row.values()) for row in rows],
    }


if __name__ == "__main__":
    main()
