"""Plan the calls of a capability check of an external server, and drop those no longer needed.

Each call tests one parameter, so that a refusal is due to that one. Greedy calls of one prompt are each other's
control; the first that requests logprobs and succeeds is the control of all.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from evalboard.core.probes.call import ProbeExchange

# Prompts: an answer that goes on until it is cut, one that ends by itself, and one that repeats a word.
LONG, SHORT, REPEATED = 0, 1, 2
# In this order until one is answered: the largest number of alternatives that the server gives.
LOGPROBS = (20, 5, 2, 1)
# A control's further parameters, in the order in which a server may refuse them.
AMBIENT = ("temperature", "seed")
CONTROLS = (*(f"logprobs_{k}" for k in LOGPROBS), "plain")
THINKING_TOKENS = 4096  # room for a model whose answer was cut before a word of it
REFUSED = "call_refused: "  # how the error of a call begins that the server refused
TOP_LOGPROBS = 2
STOP_CHARS = 4
ONE_SEED, OTHER_SEED = 20261123, 7
TEMPERATURE = 1.0
PENALTY = 2.0
TOP_P = 0.001  # leaves the likeliest token alone
# What templates call their switch for thinking.
TEMPLATE_SWITCHES = ("enable_thinking", "thinking")
AFTER_CONTROLS = (
    "top_logprobs",
    "stop",
    "max_tokens",
    "same",
    "same",
    "different",
    "top_p",
    "top_k",
    "min_p",
    "repeated",
    "frequency_penalty",
    "presence_penalty",
    "presence_penalty_below",
    "repetition_penalty",
    "min_tokens",
    "ignore_eos",
    "template_off",
    "template_on",
)
_PROMPTS = dict.fromkeys(("top_logprobs", "min_tokens", "ignore_eos"), SHORT)
_PROMPTS |= dict.fromkeys(("repeated", "frequency_penalty"), REPEATED)
_SEEDS = {"same": ONE_SEED, "different": OTHER_SEED}


def plan_capability_calls() -> tuple[ProbeExchange, ...]:
    """Return all calls in the order to send them; the controls come one by one, the others together."""
    groups = (*[CONTROLS[0]] * len(AMBIENT), *CONTROLS, CONTROLS[-1])
    controls = [ProbeExchange(prompt=LONG, group=group, round=place) for place, group in enumerate(groups)]
    others = [
        ProbeExchange(prompt=_PROMPTS.get(group, LONG), group=group, round=len(groups), seed=_SEEDS.get(group))
        for group in AFTER_CONTROLS
    ]
    return (*controls, *others)


def choose_capability_sampling(
    parameters: Mapping[str, Any], group: str, answered: Iterable[ProbeExchange] = ()
) -> dict[str, Any]:
    """Return the sampling of a group's calls; nothing of the profile's is sent.

    answered: the calls of the rounds before. The text to stop at is taken from their control. A temperature for which
    they were refused is left out, and all calls have one seed in its place: where it is honoured, answers repeat.
    """
    n_tokens, answered = parameters["max_tokens"], list(answered)
    n_tokens += THINKING_TOKENS if any(map(_is_starved, answered)) else 0
    refused = list_refused_controls(answered)
    greedy: dict[str, Any] = {"temperature": 0.0, "max_tokens": n_tokens, "stop": []}
    warm = {**greedy, "temperature": TEMPERATURE}
    if "temperature" in refused:
        del greedy["temperature"], warm["temperature"]
        greedy |= {} if "seed" in refused else {"seed": ONE_SEED}
    if group in CONTROLS and group != "plain":
        return {**greedy, "logprobs": int(group.removeprefix("logprobs_"))}
    asks: dict[str, dict[str, Any]] = {
        "top_logprobs": {**greedy, "logprobs": TOP_LOGPROBS},
        "stop": {**greedy, "stop": [*filter(None, [choose_stop(find_control(answered))])]},
        "max_tokens": {**greedy, "max_tokens": 1},
        "same": warm,
        "different": warm,
        "top_p": {**warm, "top_p": TOP_P},
        "top_k": {**warm, "top_k": 1},
        "min_p": {**warm, "min_p": 1.0},
        "frequency_penalty": {**greedy, "frequency_penalty": PENALTY},
        "presence_penalty": {**greedy, "presence_penalty": PENALTY},
        "presence_penalty_below": {**greedy, "presence_penalty": -PENALTY},
        "repetition_penalty": {**greedy, "repetition_penalty": PENALTY},
        "min_tokens": {**greedy, "min_tokens": n_tokens},
        "ignore_eos": {**greedy, "ignore_eos": True},
        "template_off": {**greedy, "chat_template_kwargs": dict.fromkeys(TEMPLATE_SWITCHES, False)},
        "template_on": {**greedy, "chat_template_kwargs": dict.fromkeys(TEMPLATE_SWITCHES, True)},
    }
    return asks.get(group, greedy)


def choose_stop(control: ProbeExchange | None) -> str:
    """Return a stop text from the second half of the control's answer, "" if none is unique there.

    A greedy call that stops there repeats the control up to it. A word, or where none is new there a few characters.
    """
    text = control.text if control is not None else ""
    middle = (len(text) + 1) // 2
    words = (word for word in text[middle:].split()[1:] if len(word) >= STOP_CHARS)
    pieces = (text[start : start + STOP_CHARS] for start in range(middle, len(text) - STOP_CHARS + 1))
    choices = (piece for piece in chain(words, pieces) if piece == piece.strip() and text.find(piece) >= middle)
    return next(choices, "")


def select_needed_calls(calls: Iterable[ProbeExchange], answered: Iterable[ProbeExchange]) -> list[ProbeExchange]:
    """Return the calls of a round that are still informative after the earlier rounds.

    One control is enough; one that was refused is asked again where it was for something beside its question. Where no
    logprobs are given for any number of them, two are not asked for once more.
    """
    done = list(answered)
    control = find_control(done)
    is_asked = {call.group for call in done if not list_refused_controls([call]) and not _is_starved(call)}
    return [
        call
        for call in calls
        if not (call.group in CONTROLS and (control is not None or call.group in is_asked))
        and not (call.group == "top_logprobs" and control is not None and not control.top)
    ]


def list_refused_controls(calls: Iterable[ProbeExchange]) -> list[str]:
    """Return which of AMBIENT the words name that refused a control."""
    words = " ".join(call.error.lower() for call in calls if call.group in CONTROLS and call.error.startswith(REFUSED))
    return [name for name in AMBIENT if re.search(rf"\b{name}\b", words)]


def find_control(calls: Iterable[ProbeExchange]) -> ProbeExchange | None:
    """Return the greedy call that the others are compared with, None if none was answered.

    One that was cut inside its thinking is none: it is asked again with room for that.
    """
    answered = (call for call in calls if call.group in CONTROLS and not call.error and not _is_starved(call))
    return next(answered, None)


def _is_starved(call: ProbeExchange) -> bool:
    """Tell whether a control was cut before it said anything, as a model's is that thinks first."""
    return call.group in CONTROLS and call.finish_reason == "length" and not (call.text or call.error)
