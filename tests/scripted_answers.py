"""What a server that speaks OpenAI's protocol answers when all goes well: made-up tokens that heed the parameters.

Equal requests get equal answers: at temperature 0, and with a seed that is honoured.
"""

import hashlib
import itertools
import json
import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WORDS = ("red", "green", "blue", "warm", "cold", "slow", "quick", "north", "south", "stone", "river", "paper")
EVERYTHING = frozenset({"seed", "stop", "max_tokens", "logprobs", "temperature"})
N_TOKENS = 8  # of an answer that nothing cuts


@dataclass
class Answerer:
    """Makes good answers.

    honours: which of EVERYTHING it heeds; the others it ignores without a word.
    is_vllm: gives token ids where they are wanted, and calls itself vLLM in its list of models.
    known: what it says to the prompts that it knows, by the text that is asked last; to others it makes something up.
    n_thinking: tokens that it thinks before each answer, which count to its limit and are not shown; in its usage.
    openings: words of which one comes before an answer that it knows, so that no two repeats are one text.
    """

    honours: Collection[str] = EVERYTHING
    is_vllm: bool = False
    fingerprint: str | None = "fp-a"
    n_tokens: int = N_TOKENS
    known: Mapping[str, str] = field(default_factory=dict)
    n_thinking: int = 0
    openings: Sequence[str] = ()
    _serial: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def answer(self, path: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a good answer to a request at one of the three addresses."""
        serial = next(self._serial)
        tokens, reason = self._tokens(path, request, serial)
        if path.endswith("/responses"):
            return self._responses(request, tokens, reason, serial)
        is_chat = path.endswith("/chat/completions")
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
        text = "".join(token + " " for token in tokens)
        if is_chat:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        k = self._n_alternatives(request)
        choice["logprobs"] = None
        if k is not None:
            entries = [_entry(token, k) for token in tokens]
            choice["logprobs"] = {"content": entries} if is_chat else _arrays(entries)
        if self.is_vllm and request.get("return_token_ids"):
            choice["token_ids"] = [_token_id(token) for token in tokens]
        body = {
            "id": f"{'chatcmpl' if is_chat else 'cmpl'}-{serial}",
            "object": "chat.completion" if is_chat else "text_completion",
            "created": 1_760_000_000,
            "model": request.get("model", ""),
            "system_fingerprint": self.fingerprint,
            "choices": [choice],
            "usage": {"prompt_tokens": 5, "completion_tokens": len(tokens), "total_tokens": 5 + len(tokens)},
        }
        if self.n_thinking:
            body["usage"] = self._thoughtful_usage(request, len(tokens))
        if self.is_vllm and request.get("return_token_ids"):
            body["prompt_token_ids"] = [1, 2, 3, 4, 5]
        return body

    def _thoughtful_usage(self, request: Mapping[str, Any], n_tokens: int) -> dict[str, Any]:
        """Return a usage as OpenAI's reasoning models give it: a token for every four characters of the prompt."""
        n_prompt = 7 + sum(len(message["content"]) for message in request["messages"]) // 4
        limit = next((request[name] for name in _LIMITS if request.get(name) is not None), None)
        n_thinking = self.n_thinking if limit is None else min(self.n_thinking, limit)
        n_answer = n_thinking + n_tokens
        return {
            "prompt_tokens": n_prompt,
            "completion_tokens": n_answer,
            "total_tokens": n_prompt + n_answer,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": n_thinking},
        }

    def models(self, model: str) -> dict[str, Any]:
        """Return the body of the list of models."""
        owner = "vllm" if self.is_vllm else "somebody"
        return {"object": "list", "data": [{"id": model, "object": "model", "owned_by": owner}]}

    def _tokens(self, path: str, request: Mapping[str, Any], serial: int) -> tuple[list[str], str]:
        prompt = json.dumps(request.get("messages") or request.get("prompt") or request.get("input"), sort_keys=True)
        is_sampled = "temperature" in self.honours and bool(request.get("temperature", 1))
        drawn_by: Any = ""
        if is_sampled:
            has_seed = "seed" in self.honours and request.get("seed") is not None
            drawn_by = request["seed"] if has_seed else f"call {serial}"
        draws = random.Random(hashlib.sha256(f"{prompt}|{drawn_by}".encode()).digest())
        tokens = [draws.choice(WORDS) for _ in range(self.n_tokens)]
        messages = request.get("messages")
        if messages and (said := self.known.get(messages[-1]["content"])) is not None:
            tokens = [*([draws.choice(self.openings)] if self.openings else []), *said.split()]
        limit = next((request[name] for name in _LIMITS if request.get(name) is not None), None)
        stops = request.get("stop") or []
        stops = [stops] if isinstance(stops, str) else stops
        if "stop" in self.honours:
            for place, token in enumerate(tokens):
                if any(stop and stop in token + " " for stop in stops):
                    return tokens[:place], "stop"
        room = None if limit is None else max(limit - self.n_thinking, 0)
        if "max_tokens" in self.honours and room is not None and room < len(tokens):
            return tokens[:room], "length"
        return tokens, "stop"

    def _n_alternatives(self, request: Mapping[str, Any]) -> int | None:
        """How many alternatives are wanted and given; None: no logprobs at all."""
        if "logprobs" not in self.honours:
            return None
        if request.get("logprobs") is True:
            return int(request.get("top_logprobs") or 0)
        wanted = request.get("logprobs")
        if wanted is None or wanted is False:
            return request.get("top_logprobs")
        return int(wanted)

    def _responses(self, request: Mapping[str, Any], tokens: list[str], reason: str, serial: int) -> dict[str, Any]:
        part: dict[str, Any] = {"type": "output_text", "text": "".join(token + " " for token in tokens)}
        k = self._n_alternatives(request)
        if k is not None:
            part["logprobs"] = [_entry(token, k) for token in tokens]
        is_cut = reason == "length"
        return {
            "id": f"resp_{serial}",
            "object": "response",
            "status": "incomplete" if is_cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "error": None,
            "model": request.get("model", ""),
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "It thought."}]},
                {"type": "message", "role": "assistant", "status": "completed", "content": [part]},
            ],
            "usage": {"input_tokens": 5, "output_tokens": len(tokens), "total_tokens": 5 + len(tokens)},
        }


_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def _entry(token: str, k: int) -> dict[str, Any]:
    """Return a token with its logprob and k alternatives, itself the first of them."""
    others = [word for word in WORDS if word != token]
    ranked = [token, *others][:k]
    listed = [_plain(word, math.log(0.7) - place) for place, word in enumerate(ranked)]
    return {**_plain(token, math.log(0.7)), "top_logprobs": listed}


def _plain(word: str, logprob: float) -> dict[str, Any]:
    return {"token": word + " ", "bytes": list(f"{word} ".encode()), "logprob": round(logprob, 6)}


def _arrays(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return logprobs as the old completions have them."""
    return {
        "tokens": [entry["token"] for entry in entries],
        "token_logprobs": [entry["logprob"] for entry in entries],
        "top_logprobs": [{other["token"]: other["logprob"] for other in entry["top_logprobs"]} for entry in entries],
        "text_offset": [0 for _ in entries],
    }


def _token_id(token: str) -> int:
    return WORDS.index(token) + 100
