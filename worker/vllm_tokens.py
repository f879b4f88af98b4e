"""Messages to token ids, token ids to bytes, logprobs to base64. Part of `vllm_host.py`."""

import base64
import bisect
import json
import re
import struct
from collections.abc import Iterable
from typing import Any

Tags = dict[str, str]  # "start" and "end": the texts between which a model thinks

PROMPT_END = 64  # tokens of a prompt's end in which a start tag is looked for
NO_TEMPLATE = (
    "The model has no chat template, so messages cannot be made a prompt. It is a base model, which continues texts: "
    "give the suite's cases `completion` in place of `prompt` or `messages`."
)
HAS_IMAGE = "The case has an image, which only an external endpoint takes: our engine is given text alone."
BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


class RequestRefused(Exception):
    """One request cannot be decoded; `code`: of core.trace.provenance.ERROR_CODES. The engine continues."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def render(tokenizer: Any, messages: list[Any], tools: list[Any] | None, switches: dict[str, Any]) -> list[int]:
    """Return the token ids of the messages under the model's own chat template, or of a completion's text.

    A lone message of the role `completion` is a text to continue. The tokenizer adds what it adds to any text, such as
    a first token, as vLLM's `/v1/completions` does; no template, tool or switch applies.

    switches: the template's own variables, such as enable_thinking; one that it does not read changes nothing.

    Raises RequestRefused: prompt_empty where no message says anything, for a template would wrap even that in
    tokens of its own and the model would answer nothing; template_error where there is no template, or where it
    refuses the messages.
    """
    if all(_says_nothing(message) for message in messages):
        raise RequestRefused("prompt_empty", "The prompt is empty: no message says anything.")
    if any(isinstance(message.get("content"), list) for message in messages):
        raise RequestRefused("template_error", HAS_IMAGE)
    if messages[0]["role"] == "completion":
        return list(tokenizer.encode(messages[0]["content"], add_special_tokens=True))
    if not getattr(tokenizer, "chat_template", None):
        raise RequestRefused("template_error", NO_TEMPLATE)
    try:
        ids = tokenizer.apply_chat_template(
            messages, tools=tools, add_generation_prompt=True, tokenize=True, return_dict=False, **switches
        )
    except Exception as problem:  # a template is the model's own code and may raise anything
        raise RequestRefused("template_error", f"{type(problem).__name__}: {problem}") from problem
    return list(ids)


def _says_nothing(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, str) and not content.strip() and not message.get("tool_calls")


def trace(answer: Any) -> dict[str, Any]:
    """Return token ids and logprobs of one answer as base64 of little-endian int32 and float32.

    token_ids[n], logprobs[n], alternative_ids[n, k], alternative_logprobs[n, k]. vLLM lists at each
    position the chosen token first and then its top k, the chosen one among them or not.
    """
    flat, n = answer.logprobs, len(answer.token_ids)
    width = len(flat.token_ids) // n if n else 1
    if len(flat) != n or len(flat.token_ids) != n * width or list(flat.token_ids[::width]) != list(answer.token_ids):
        raise RuntimeError("vLLM's logprobs do not line up with its tokens")
    rest = [index for index in range(n * width) if index % width]
    return {
        "k": width - 1,
        "token_ids": ints(answer.token_ids),
        "logprobs": floats(flat.logprobs[::width]),
        "alternative_ids": ints(flat.token_ids[index] for index in rest),
        "alternative_logprobs": floats(flat.logprobs[index] for index in rest),
    }


def split_reasoning(tokenizer: Any, tags: Tags | None, output: Any) -> dict[str, Any]:
    """Split a finished request into {"text", "reasoning", "n_reasoning_tokens"}.

    A model thinks where the prompt ends with the start tag or its response begins with it, up to the first end tag;
    without one all of the response is thinking. n_reasoning_tokens counts the tags as well. Where it does not think, or
    no tags are given, the last two are None. Tags may be special tokens, which the text leaves out.
    """
    answer = output.outputs[0]
    whole = {"text": answer.text, "reasoning": None, "n_reasoning_tokens": None}
    if tags is None:
        return whole
    start, end, ids = tags["start"], tags["end"], list(answer.token_ids)
    spelt = tokenizer.decode(ids, skip_special_tokens=False)
    is_started = spelt.lstrip().startswith(start)
    prompt_end = tokenizer.decode(list(output.prompt_token_ids)[-PROMPT_END:], skip_special_tokens=False)
    if not (is_started or prompt_end.rstrip().endswith(start)):
        return whole
    first = spelt.index(start) + len(start) if is_started else 0

    def has_ended(n: int) -> bool:
        return end in tokenizer.decode(ids[:n], skip_special_tokens=False)[first:]

    n = bisect.bisect_left(range(len(ids)), True, key=has_ended)  # without an end tag all of them
    text = answer.text
    if text.lstrip().startswith(start):
        text = text.lstrip().removeprefix(start)
    thought, tag, rest = text.partition(end)
    if not tag and has_ended(n):  # the end tag is a special token: what it ends is counted on the plain texts
        rest = answer.text[len(tokenizer.decode(ids[:n], skip_special_tokens=True)) :]
        thought = text.removesuffix(rest)
    return {"text": rest, "reasoning": thought, "n_reasoning_tokens": n}


def ints(values: Iterable[int]) -> str:
    numbers = list(values)
    return base64.b64encode(struct.pack(f"<{len(numbers)}i", *numbers)).decode()


def floats(values: Iterable[float]) -> str:
    """Every value came out of a float32, so that packing loses nothing."""
    numbers = list(values)
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def token_bytes(tokenizer: Any) -> list[bytes | None]:
    """Return the bytes of every token id, None for an unused id.

    Byte-level vocabularies spell each byte as one printable character; SentencePiece ones spell a
    space as U+2581 and a byte without a character as <0xE2>. Added tokens are spelt as they are.
    """
    added = {index: str(token) for index, token in tokenizer.added_tokens_decoder.items()}
    ids = {index: text for text, index in tokenizer.get_vocab().items()}
    spelling = BYTE_OF_CHARACTER if is_byte_level(tokenizer) else None
    return [
        added[index].encode() if index in added else spelt_bytes(ids.get(index), spelling)
        for index in range(max(ids, default=-1) + 1)
    ]


def is_byte_level(tokenizer: Any) -> bool:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:  # a tokenizer in plain Python; GPT-2's kind keeps its table of bytes
        return hasattr(tokenizer, "byte_decoder")
    parts = json.loads(backend.to_str())
    return '"ByteLevel"' in json.dumps([parts["decoder"], parts["pre_tokenizer"]])


def spelt_bytes(text: str | None, spelling: dict[str, int] | None) -> bytes | None:
    """Return the bytes of a token's spelling in the vocabulary."""
    if text is None:
        return None
    if spelling is not None:
        return b"".join(bytes([spelling[c]]) if c in spelling else c.encode() for c in text)
    byte = BYTE_TOKEN.fullmatch(text)
    return bytes([int(byte.group(1), 16)]) if byte else text.replace("\u2581", " ").encode()


def byte_of_character() -> dict[str, int]:
    """Return character -> byte of byte-level vocabularies.

    Bytes that print in Latin-1 stand for themselves; the others follow in order from U+0100.
    """
    printing = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printing]
    shown = {chr(byte): byte for byte in printing}
    return shown | {chr(0x100 + index): byte for index, byte in enumerate(others)}


BYTE_OF_CHARACTER = byte_of_character()


def end_ids(engine: Any, tokenizer: Any) -> list[int]:
    """Return the ids that end an answer, by the tokenizer and by the model's own generation settings."""
    config = engine.vllm_config.model_config
    listed = [getattr(tokenizer, "eos_token_id", None)]
    for source in (config.try_get_generation_config(), config.hf_text_config.to_dict()):
        value = source.get("eos_token_id")
        listed += value if isinstance(value, list) else [value]
    return sorted({index for index in listed if isinstance(index, int)})
