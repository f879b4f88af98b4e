"""Sentences of a capability check for each parameter: its state, what was tried and what was seen."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evalboard.wording.messages import Messages
from evalboard.wording.numbers import counted

Facts = Mapping[str, Any]

LABELS = {
    "system_fingerprint": "fingerprint",
    "seed": "seed",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop",
    "max_tokens": "max_tokens",
    "logprobs": "logprobs",
    "top_logprobs": "2 logprobs",
    "token_ids": "token ids",
    "top_k": "top_k",
    "min_p": "min_p",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "repetition_penalty": "repetition_penalty",
    "min_tokens": "min_tokens",
    "ignore_eos": "ignore_eos",
    "chat_template_kwargs": "chat_template_kwargs",
    "usage": "token counts",
}
STATE_WORDS = {
    "honoured": "honoured",
    "refused": "refused",
    "ignored": "ignored",
    "not_asked": "not tested",
    "unclear": "undecided",
}
# In the order of the sentence. An addition to an answer is "not given" instead of ignored.
NOT_HONOURED = {
    "ignored": "Silently ignored",
    "not_given": "Not given",
    "refused": "Refused",
    "not_asked": "Not tested",
    "unclear": "Undecided",
}
GIVEN_BESIDE = frozenset({"system_fingerprint", "token_ids", "usage"})


def describe_state_of_parameter(row: Facts) -> str:
    """Return a parameter's state in a word; additions to an answer are "given"."""
    beside = {"honoured": "given", "ignored": "not given", "unclear": "given at times"}
    return (
        beside.get(row["state"], "")
        if row["parameter"] in GIVEN_BESIDE and row["state"] in beside
        else (STATE_WORDS[row["state"]])
    )


def describe_parameter(row: Facts) -> str:
    """Describe in a sentence what was seen of one parameter."""
    state, detail = row["state"], row["detail"]
    code = state if state in ("not_asked", "refused") else detail.get("why", row["parameter"])
    return PARAMETERS.write(code, detail, state=state)


def _given(what: str) -> Callable[[Facts], str]:
    return lambda detail: f"{detail['n']} of {counted(detail['n_answers'], 'answer')} came with {what}."


def _fingerprint(detail: Facts) -> str:
    if not detail["n"]:
        return "No answer has a system_fingerprint."
    some = (
        "Every answer has" if detail["state"] == "honoured" else f"{detail['n']} of {detail['n_answers']} answers have"
    )
    if detail["n_distinct"] == 1:
        return f"{some} a system_fingerprint, and it stays the same: {detail['value']}."
    # Here, as it brings pydantic, which no help waits for.
    from evalboard.core.profile import names_calls

    if names_calls(detail["n_distinct"], detail["n"]):
        return f"{some} a different system_fingerprint: they identify calls, not servers."
    return f"{some} a system_fingerprint, {detail['n_distinct']} different ones: several servers answer."


def _seed(detail: Facts) -> str:
    if detail["state"] == "honoured":
        return "Two calls with the same seed gave the same text; another seed gave another."
    return "Two calls with the same seed differ as early as calls with other seeds."


def _temperature(detail: Facts) -> str:
    if detail["state"] == "honoured":
        return f"Temperature 0 repeats its text; {detail['n_other']} of {detail['n']} calls at 1 gave another."
    if "shared" in detail:
        return "Two calls at 0 differ early, but two calls with the same seed are equal: 0 has no effect."
    return "Temperature 1 gave the text of temperature 0."


def _stop(detail: Facts) -> str:
    if detail["state"] == "honoured":
        n, without = detail["n_characters"], detail["n_characters_without"]
        return f"The answer ends before the stop text, after {n} characters; without it after {without}."
    return "The answer goes on beyond the stop text."


def _max_tokens(detail: Facts) -> str:
    if detail["state"] == "honoured":
        return "The answer is cut after it."
    n = detail.get("n_tokens")
    return "The answer is as long as without it." if n is None else f"The answer has {counted(n, 'token')}."


def _logprobs(detail: Facts) -> str:
    k, given = detail["k"], detail["given"]
    if detail["state"] == "ignored":
        return "The answer came without any." if k else "Calls that ask for logprobs are not answered."
    amount = f"Up to {given}" if given == k else f"{given} logprobs where {k} are requested"
    words = f" More are refused: {detail['words']}" if "words" in detail else ""
    return f"{amount}.{words}"


def _top_logprobs(detail: Facts) -> str:
    return "2, as requested." if detail["state"] == "honoured" else f"{detail['given']} logprobs where 2 are requested."


def _narrowed(detail: Facts) -> str:
    if detail["state"] == "honoured":
        return "With it, a call at temperature 1 gave the likeliest text, as it should."
    return "With it, a call at temperature 1 leaves the likeliest text as early as without it."


def _penalty(detail: Facts) -> str:
    return "It changes the text." if detail["state"] == "honoured" else "The text is the same as without it."


def _template(detail: Facts) -> str:
    if "n_prompt_tokens" not in detail:
        return "It changes the text."
    n, without = counted(detail["n_prompt_tokens"], "token"), detail["n_prompt_tokens_without"]
    return f"With it the prompt has {n}, without it {without}."


def _lasting(detail: Facts) -> str:
    n = detail.get("n_tokens")
    after = "" if n is None else f" after {counted(n, 'token')}"
    if detail["state"] == "honoured":
        return f"The answer continues until it is cut{after}; without it, one ended on its own."
    return f"The answer ended on its own{after}."


PARAMETERS = Messages(
    "parameter",
    {
        ("parameter", "unknown"): {
            "not_asked": "The settings of the endpoint do not send it.",
            "no_answer": "No call with it was answered.",
            "failed": "Its call failed: {words}",
            "refused_for_another": "Its call was refused for {another}: {words}",
            "one_text": "Another seed gave the same text, so these calls do not test it.",
            "parted_late": "The answers differ, but too late for so few calls to decide.",
            "not_repeated": "Equal calls already give different answers, so these calls do not test it.",
            "no_effect": "It is accepted, but the text does not change: these calls do not show an effect.",
            "no_variety": "Temperature 1 gave the text of temperature 0, so these calls do not test it.",
            "no_control": "No call without it was answered, so there is nothing to compare it with.",
            "ended_early": "The answer ended, but not by this limit.",
            "ended_late": "The answer is longer than without it, but still ended on its own.",
            "none_is_short": "No answer ended on its own, so these calls do not test it.",
        },
        ("parameter", "asserts"): {
            "refused": "The server says: {words}",
            "system_fingerprint": _fingerprint,
            "seed": _seed,
            "temperature": _temperature,
            "stop": _stop,
            "max_tokens": _max_tokens,
            "logprobs": _logprobs,
            "top_logprobs": _top_logprobs,
            "token_ids": _given("token ids"),
            "top_p": _narrowed,
            "top_k": _narrowed,
            "min_p": _narrowed,
            "frequency_penalty": _penalty,
            "presence_penalty": _penalty,
            "repetition_penalty": _penalty,
            "min_tokens": _lasting,
            "ignore_eos": _lasting,
            "chat_template_kwargs": _template,
            "usage": _given("counts of tokens"),
        },
    },
)


FIT = Messages(
    "fit",
    {
        ("profile", "advises"): {
            "hosted": "It does not take {names:list}: use --profile hosted, which asks for none. Repeats are samples.",
            "fast": "Use --profile fast: the server takes what it asks for.",
            "fast_without": "Use --profile fast: the server takes what it asks for, except that it ignores logprobs.",
        },
        ("evidence", "asserts"): {
            "tokens": "Answers are compared token by token.",
            "texts": "Without logprobs, answers are compared by text, ending, token counts and seconds.",
        },
    },
)


def suggest_profile(rows: Iterable[Facts]) -> str:
    """Return the built-in profile that fits what a check saw, by its rows."""
    return "hosted" if _not_taken(rows) else "fast"


def describe_fit(rows: Iterable[Facts]) -> str:
    """Say which profile fits what a check saw, and by what answers are compared."""
    rows = list(rows)
    states = {row["parameter"]: row["state"] for row in rows}
    names = _not_taken(rows)
    advice = suggest_profile(rows)
    if advice == "fast" and states.get("logprobs") == "ignored":
        advice = "fast_without"
    evidence = "tokens" if states.get("logprobs") == "honoured" else "texts"
    return f"{FIT.write(advice, names=names)} {FIT.write(evidence)}"


def _not_taken(rows: Iterable[Facts]) -> list[str]:
    """Return what a run under another profile than `hosted` would ask for in vain."""
    states = {row["parameter"]: row["state"] for row in rows}
    is_lost = {"temperature": ("refused", "ignored"), "logprobs": ("refused",)}
    return [name for name, lost in is_lost.items() if states.get(name) in lost]


def describe_row(row: Facts) -> str:
    """Return a parameter's state and what was seen, as one line."""
    return f"{describe_state_of_parameter(row)}. {describe_parameter(row)}"
