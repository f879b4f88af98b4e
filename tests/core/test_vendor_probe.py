"""Vendor probes without a server: what is no fault, and how often an honest vendor is accused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalboard.core.probes import ProbeExchange, judge_vendor_facts, judge_vendor_probe
from tests.nightly import few
from tests.vendors import PARAMETERS, vendor_calls

Change = Callable[[ProbeExchange], ProbeExchange]
N_SIMULATED = 60
TOKENS = "abcdefghij"


def facts(change: Change = lambda call: call) -> Any:
    return judge_vendor_probe(vendor_calls(change), parameters=PARAMETERS).numbers["facts"]


def states(change: Change, reference: Change | None = None) -> dict[str, str]:
    rows = judge_vendor_facts(facts(change), None if reference is None else facts(reference))
    return {row["row"]: row["state"] for row in rows}


def noisy(rng: np.random.Generator, *, nats: float, flips: float, bad: float) -> Change:
    """Return an honest vendor: noise in logprobs, flipped near ties, and bad tool calls of the model itself."""

    def answer(call: ProbeExchange) -> ProbeExchange:
        own = np.random.default_rng(call.prompt)  # the model's answer to the prompt, alike for every vendor
        words = [str(word) for word in own.integers(1000, size=32)]
        if call.group in ("text", "again", "stream"):
            first = next((place for place in range(32) if rng.random() < flips), 32)
            text = " ".join([*words[:first], *(f"other{first}" for _ in words[first:])])
            logprobs = own.normal(-3, 2, size=5) + rng.normal(0, nats, size=5)
            return replace(call, text=text, top=tuple(zip(TOKENS, map(float, logprobs), strict=False)))
        if call.group == "tool" and rng.random() < bad:
            return replace(call, tool_calls=(("book_table", "{}"),))
        return call

    return answer


@pytest.mark.parametrize(("nats", "flips", "bad"), few([(0.03, 0.01, 0.05), (0.1, 0.02, 0.3)], 1))
def test_honest_vendors_of_other_hardware_are_not_accused(nats: float, flips: float, bad: float) -> None:
    rng = np.random.default_rng(20261129)
    reference = facts(noisy(rng, nats=nats, flips=flips, bad=bad))
    rows = [
        judge_vendor_facts(facts(noisy(rng, nats=nats, flips=flips, bad=bad)), reference) for _ in range(N_SIMULATED)
    ]
    assert [row for each in rows for row in each if row["state"] == "fault"] == []


def test_a_copy_whose_logprobs_move_is_named_although_its_texts_stay() -> None:
    rng = np.random.default_rng(1)
    honest = noisy(rng, nats=0.03, flips=0.0, bad=0.0)
    assert states(noisy(rng, nats=0.5, flips=0.0, bad=0.0), honest)["answers"] == "fault"
    assert states(noisy(rng, nats=0.03, flips=0.0, bad=0.0), honest)["answers"] == "good"
    moved, steady = noisy(rng, nats=0.5, flips=0.0, bad=0.0), noisy(rng, nats=0.03, flips=0.0, bad=0.0)
    assert states(lambda call: (moved if call.prompt % 3 == 0 else steady)(call), honest)["answers"] == "unclear"


def test_another_model_is_named_by_its_texts_alone() -> None:
    def other(call: ProbeExchange) -> ProbeExchange:
        return replace(call, text=f"another {call.text}")

    assert states(other, lambda call: call)["answers"] == "fault"


@pytest.mark.parametrize(
    ("change", "row", "state"),
    [
        (lambda call: replace(call, n_prompt_tokens=call.n_prompt_tokens + 12), "prompt_tokens", "good"),
        (lambda call: replace(call, n_prompt_tokens=None), "prompt_tokens", "unclear"),
        (lambda call: replace(call, tool_calls=(), finish_reason="stop"), "tools_called", "fault"),
        (lambda call: replace(call, system_fingerprint=str(call)[:200]), "one_build", "unclear"),
        (lambda call: replace(call, system_fingerprint=f"fp-{call.prompt % 2}"), "one_build", "several"),
        (lambda call: replace(call, marks=("cached",)), "stream", "unclear"),
        (lambda call: replace(call, marks=("fallback",)), "one_model", "fault"),
        (lambda call: replace(call, finish_reason="length"), "json_schema", "unclear"),
    ],
)
def test_each_row_says_what_its_answers_show(change: Change, row: str, state: str) -> None:
    assert states(change, lambda call: call)[row] == state


def in_group(*groups: str) -> Callable[[Change], Change]:
    return lambda change: lambda call: change(call) if call.group in groups else call


@pytest.mark.parametrize(
    ("error", "state"),
    [
        ("prompt_too_long: It answered 400: at most 2,048 tokens.", "refused"),
        ("call_failed: It took too long.", "unclear"),
    ],
)
def test_a_long_prompt_that_is_refused_or_fails_is_no_fault(error: str, state: str) -> None:
    assert states(in_group("long")(lambda call: replace(call, error=error)))["context"] == state


def test_a_lost_code_word_is_a_fault_only_where_the_reference_keeps_it() -> None:
    losing = in_group("long")(lambda call: replace(call, text="unknown"))
    assert states(losing)["context"] == "unclear"
    assert states(losing, losing)["context"] == "unclear"
    assert states(losing, lambda call: call)["context"] == "fault"


def test_a_model_that_calls_tools_badly_by_itself_is_no_fault_of_a_vendor() -> None:
    bad = in_group("tool")(lambda call: replace(call, tool_calls=(("book_table", "{}"),)))
    assert states(bad)["tool_arguments"] == "unclear"
    assert states(bad, bad)["tool_arguments"] == "unclear"
    assert states(bad, lambda call: call)["tool_arguments"] == "fault"


def test_a_noisy_server_is_not_blamed_for_its_streams() -> None:
    numbers = iter(range(1000))
    noisy_texts = in_group("text", "again", "stream")(lambda call: replace(call, text=f"text {next(numbers)}"))
    assert states(noisy_texts)["stream"] == "unclear"
