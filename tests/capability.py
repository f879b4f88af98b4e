"""A server of others as a capability check sees it, without a server: what it honours is set by the test."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import count
from typing import Any
from zlib import crc32

from evalboard.core.probes import ProbeExchange, choose_sampling, plan_calls, select_needed_calls

PARAMETERS = {"max_tokens": 24}
EVERYTHING = frozenset(
    {"system_fingerprint", "seed", "temperature", "stop", "max_tokens", "logprobs", "token_ids", "usage"}
    | {"top_p", "top_k", "min_p", "min_tokens", "ignore_eos", "chat_template_kwargs"}
    | {"frequency_penalty", "presence_penalty", "repetition_penalty"}
)
# In the order of the alphabet, so that a word is new wherever it stands.
NOUNS = "apple bridge candle desert engine forest garden harbour island jungle kettle ladder meadow needle orchard"


def answer_calls(
    *,
    honours: Collection[str] = EVERYTHING,
    refuses: Mapping[str, str] | None = None,
    largest: int = 20,
    change: Callable[[ProbeExchange], ProbeExchange] = lambda call: call,
    samples: bool = False,
) -> list[ProbeExchange]:
    """Return the calls of a check as a server would answer that honours some parameters and refuses others.

    refuses: words by parameter. largest: how many alternatives it gives; more are refused. change: what becomes of each
    answer in the end. samples: whatever the temperature.
    """
    numbers = count(1000)
    answered: list[ProbeExchange] = []
    rounds: dict[int, list[ProbeExchange]] = {}
    for call in plan_calls("capability", PARAMETERS, ()):
        rounds.setdefault(call.round, []).append(call)
    for calls in rounds.values():
        wanted = select_needed_calls(calls, answered)
        answered += [
            change(_answer(call, answered, frozenset(honours), refuses or {}, largest, next(numbers), samples=samples))
            for call in wanted
        ]
    return answered


def _answer(
    call: ProbeExchange,
    answered: list[ProbeExchange],
    honours: frozenset[str],
    refuses: Mapping[str, str],
    largest: int,
    number: int,
    *,
    samples: bool,
) -> ProbeExchange:
    sampling = choose_sampling("capability", PARAMETERS, call.group, answered)
    if call.seed is not None:
        sampling["seed"] = call.seed
    idle: dict[str, object] = {"stop": []}
    sent = {name for name, value in sampling.items() if value != idle.get(name)}
    call = replace(call, is_remote=True, worker=1)
    if refused := next((words for name, words in refuses.items() if name in sent), None):
        return replace(call, error=f"call_refused: {refused}")
    k = sampling.get("logprobs", 0)
    if k > largest:
        return replace(call, error=f"call_refused: top_logprobs must be at most {largest}.")
    words = _words(call, sampling, honours, number, samples=samples)
    limit = sampling["max_tokens"] if "max_tokens" in honours else 10_000
    reason = "length" if len(words) > limit else "stop"
    words = words[:limit]
    text = " ".join(words)
    for piece in sampling["stop"]:
        if "stop" in honours and piece in text:
            text, reason = text.partition(piece)[0], "stop"
    given = range(k) if "logprobs" in honours else ()
    return replace(
        call,
        text=text,
        finish_reason=reason,
        top=tuple((f"word {place}", -0.5 - place) for place in given),
        token_ids=tuple(crc32(word.encode()) for word in text.split()) if "token_ids" in honours else (),
        system_fingerprint="fp_1" if "system_fingerprint" in honours else "",
        n_tokens=len(text.split()) if "usage" in honours else None,
        n_prompt_tokens=9 + _n_of_switches(sampling, honours) if "usage" in honours else None,
    )


def _n_of_switches(sampling: Mapping[str, Any], honours: frozenset[str]) -> int:
    """How many tokens a template adds that reads its switch: an empty thought where thinking is off."""
    switches = sampling.get("chat_template_kwargs", {})
    return 4 if "chat_template_kwargs" in honours and switches.get("enable_thinking") is False else 0


def _words(
    call: ProbeExchange, sampling: Mapping[str, Any], honours: frozenset[str], number: int, *, samples: bool
) -> list[str]:
    """The words of an answer before it is cut: a short prompt has one, a long one thirty."""
    is_narrowed = any(name in sampling and name in honours for name in ("top_p", "top_k", "min_p"))
    is_warm = samples or (bool(sampling.get("temperature", 1.0)) and "temperature" in honours)
    drawn = (sampling.get("seed", number) if "seed" in honours else number) if is_warm and not is_narrowed else None
    penalties = ("frequency_penalty", "presence_penalty", "repetition_penalty")
    if any(name in sampling and name in honours for name in penalties):
        drawn = -1 if drawn is None else -2 - drawn
    goes_on = any(name in sampling and name in honours for name in ("min_tokens", "ignore_eos"))
    if call.prompt == 1 and not goes_on:
        return ["Tuesday"]
    if call.prompt == 2 and drawn is None:
        return ["tea"] * 30
    words = NOUNS.split()
    return [f"{word}{place // len(words)}" if drawn is None else f"{word}-{drawn}-{place}"
            for place in range(2 * len(words)) for word in [words[place % len(words)]]]  # fmt: skip
