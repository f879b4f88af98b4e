"""Labels and sentences of a vendor card's rows: what was seen of an endpoint that claims a model."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evalboard.wording.messages import Messages
from evalboard.wording.numbers import counted, fixed

if TYPE_CHECKING:
    from evalboard.contract.vendors import VendorCard

Facts = Mapping[str, Any]

LABELS = {
    "tools_called": "tools called",
    "tool_arguments": "tool arguments",
    "tool_choice": "tool_choice",
    "json_schema": "response_format: json_schema",
    "prompt_tokens": "prompt tokens",
    "stream": "streamed text",
    "endings": "endings",
    "context": "context",
    "answers": "answers",
    "one_model": "model name",
    "one_build": "build",
    "latency": "latency",
    "price": "price",
    "verify": "verify",
}
STATE_WORDS = {
    "good": "as it should be",
    "fault": "fault",
    "refused": "refused",
    "unclear": "undecided",
    "measured": "measured",
    "not_measured": "not measured",
    "ignored": "ignored",
    "several": "several",
}
# What each share counts: all of them, and how a bad one is called.
_COUNTED = {
    "tools_called": ("request", "call no tool"),
    "tool_arguments": ("tool call", "have arguments that break the schema"),
    "tool_choice": ("call", "do not follow tool_choice"),
    "json_schema": ("answer", "break the schema of response_format"),
    "endings": ("answer", "end with a wrong or unknown reason"),
}
_FINE = {
    "tools_called": "All {n} requests call the tool.",
    "tool_arguments": "All {n} tool calls have arguments that fit the schema.",
    "tool_choice": "All {n} calls follow tool_choice.",
    "json_schema": "All {n} answers fit the schema.",
    "endings": "All {n} answers end with a known reason that fits.",
}


# Where a fault of a row would not be seen.
_UNMEASURED = {
    "tools_called": "long prompts",
    "tool_arguments": "long prompts",
    "tool_choice": "long prompts",
    "json_schema": "long prompts",
    "prompt_tokens": "long prompts and prompts with tools",
    "stream": "long prompts and tool calls",
    "context": "prompts with tools",
    "answers": "long prompts and tool calls",
}


def _unmeasured(name: str) -> str:
    return f" Not measured: {_UNMEASURED[name]}." if name in _UNMEASURED else ""


def describe_vendor_row(row: Facts) -> str:
    """Describe in a sentence what was seen in a row of a card."""
    name, state, detail = row["row"], row["state"], row["detail"]
    code = f"{name}_{state}" if f"{name}_{state}" in ROWS else detail.get("why", state)
    return ROWS.write(code if code in ROWS else state, detail, row=name, label=LABELS[name])


def _share(name: str) -> Callable[[Facts], str]:
    noun, bad = _COUNTED[name]

    def write(detail: Facts) -> str:
        start = f"{detail['n_bad']} of {counted(detail['n'], noun)} {bad}"
        if detail["n_reference"] is not None:
            start += f"; of the reference's, {detail['n_bad_reference']} of {detail['n_reference']}"
        return f"{start}. For example, {detail['example']}."

    return write


def _few(detail: Facts) -> str:
    if detail["row"] == "stream":
        return f"{_stream_counts(detail)} That does not show that streaming changes the text."
    if detail["row"] == "context":
        return f"{_code_words(detail)} That does not show that the prompt was cut."
    return f"{_share(detail['row'])(detail)} This may be the model's own."


def _stream_counts(detail: Facts) -> str:
    again = f"{detail['n_again_other']} of {detail['n_again']} repeats without it"
    return f"{detail['n_stream_other']} of {counted(detail['n_stream'], 'text')} differ with streaming, and {again}."


def _code_words(detail: Facts) -> str:
    return (
        f"The code word at the start is in {detail['n_long_right']} of {detail['n_long']} answers to long prompts, "
        f"and in {detail['n_short_right']} of {detail['n_short']} to short ones."
    )


def _context_tokens(detail: Facts) -> str:
    if detail["expected"] is None or detail["tokens_long"] is None:
        return ""
    n, expected = fixed(detail["tokens_long"], 0), fixed(detail["expected"], 0)
    return f" By its own count, the long prompt has {n} of {expected} tokens."


def _answers(detail: Facts) -> str:
    parts = []
    if detail["nats"] is not None:
        prompts = counted(detail["n_logprobs"], "prompt")
        parts.append(f"First tokens' logprobs are {fixed(detail['nats'], 2)} nats from the reference's ({prompts}).")
    if detail["n_early"] is not None:
        parts.append(f"{detail['n_early']} of {counted(detail['n'], 'text')} differ within 60 characters.")
    return " ".join(parts)


def _names(detail: Facts) -> str:
    names = detail["names"]
    named = names[0][0] if len(names) == 1 else ", ".join(f"{name} ({n})" for name, n in names)
    fallback = f" The gateway says that {detail['n_fallback']} are a fallback." if detail.get("n_fallback") else ""
    return f"{counted(detail['n'], 'answer')} came from {named}.{fallback}"


def _token_counts(detail: Facts) -> str:
    added = f", each with {counted(detail['added'], 'token')} more" if detail["added"] > 0 else ""
    added = f", each with {counted(-detail['added'], 'token')} fewer" if detail["added"] < 0 else added
    return f"The counts of {counted(detail['n'], 'prompt')} are the reference's{added}."


def _latency(detail: Facts) -> str:
    rate = detail["tokens_per_second"]
    speed = "" if rate is None else f", {fixed(rate, 0)} tokens per second"
    median, slow = fixed(detail["median"], 2), fixed(detail["slow"], 2)
    return f"Median {median} s, 90 % within {slow} s ({counted(detail['n'], 'call')}{speed})."


ROWS = Messages(
    "vendor_row",
    {
        ("vendor", "unknown"): {
            "not_measured": "Not measured.",
            "unclear": "Cannot tell.",
            "no_answer": "Cannot tell: every call that tests it failed.",
            "no_reference": "Not compared: no reference was measured.",
            "is_reference": "It is the reference.",
            "no_counts": "Cannot tell: too few answers have a count of prompt tokens.",
            "no_names": "Cannot tell: the answers do not name it, or each names another.",
            "not_repeated": "Cannot tell: repeats of one prompt already differ, and there are too few logprobs.",
            "as_reference": "Cannot tell: the reference loses the code word too.",
            "some_far": lambda detail: (
                f"Cannot tell: {detail['n_far']} of {counted(detail['n_logprobs'], 'prompt')} have first tokens whose "
                "logprobs are far from the reference's. Some calls may reach other weights: measure again, and verify."
            ),
            "few": _few,
        },
        ("vendor", "asserts"): {
            "refused": "The server refuses it.",
            **{f"{name}_good": f"{text}{_unmeasured(name)}" for name, text in _FINE.items()},
            "stream_good": lambda detail: f"{_stream_counts(detail)}{_unmeasured('stream')}",
            "context_good": lambda detail: f"{_code_words(detail)}{_context_tokens(detail)}{_unmeasured('context')}",
            "prompt_tokens_good": lambda detail: f"{_token_counts(detail)}{_unmeasured('prompt_tokens')}",
            "answers_good": lambda detail: f"{_answers(detail)}{_unmeasured('answers')}",
            "one_model_good": _names,
            "one_build_good": _names,
            "one_build_several": lambda detail: (
                f"{detail['n_names']} builds answer. {_names(detail)} Ask whether each serves the same model."
            ),
            "latency_measured": _latency,
            "latency_unclear": "Cannot tell: no call was timed.",
        },
        ("vendor", "denies"): {
            **{f"{name}_fault": _share(name) for name in _COUNTED},
            "stream_fault": _stream_counts,
            "context_fault": lambda detail: f"The prompt is cut. {_code_words(detail)}{_context_tokens(detail)}",
            "prompt_tokens_fault": lambda detail: (
                f"{detail['n_other']} of {counted(detail['n'], 'prompt')} have another count than the reference's: "
                "another tokenizer, or counts that are estimates."
            ),
            "answers_fault": lambda detail: (
                f"{_answers(detail)} Other kernels do less: ask for its weights and precision, and verify."
            ),
            "one_model_fault": lambda detail: f"Several models answer. {_names(detail)}",
        },
    },
)

# Why several vendors may answer behind an endpoint.
MIXES = Messages(
    "vendor_mix",
    {
        ("vendor", "advises"): {
            "openrouter": "OpenRouter chooses a provider for each call. Add an endpoint for each provider.",
            "litellm": "Several backends answered behind LiteLLM. Give each a tag there, and add an endpoint for each "
            "tag.",
            "azure": "Several models or builds answered. Deploy each version separately, and add an endpoint for each "
            "deployment.",
        },
    },
)
CELL_NAMES = ("row", "endpoint", "state", "sentence", "n", "at", "probe")


def list_cells(card: "VendorCard") -> Iterator[dict[str, Any]]:
    """Yield the cells of a card as rows of a table, by the names of CELL_NAMES."""
    for row in card.to_json()["rows"]:
        for column, cell in zip(card.endpoints, row["cells"], strict=True):
            yield {"row": row["row"], "endpoint": column.endpoint, **cell}
