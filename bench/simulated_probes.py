"""Calls of probes, simulated, and what the probes say of them: the error rates of docs/probes.md.

Answers are token ids; by characters, as a server of others gives them, texts of words of 2 to 9 letters. A *quiet*
engine leaves a text after 500 tokens on average, a *noisy* one after 50, a *loud* one after 10. Canaries list the five
most likely of 50 tokens; from run to run each logit moves by 0.03 nats.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from bench.simulated import Promise
from evalboard.core.probes import (
    CANARY_CHANGES,
    ProbeExchange,
    ProbeResult,
    compare_batch_probes,
    judge_canary_probe,
    judge_capability_probe,
    judge_seed_probe,
)
from tests.capability import EVERYTHING, answer_calls

SEED = 20261121
N_TOKENS = 64
QUIET, NOISY, LOUD = 0.002, 0.02, 0.1  # chance to leave a text, per token
OPEN, NARROW = 0.45, 0.9  # chance of the likeliest token: other seeds part at once, or after five tokens
BETWEEN_RUNS = 0.03  # nats


def seed_calls(
    rng: np.random.Generator, *, noise: float = 0.0, dropped: float = 0.0, likely: float = OPEN, n_prompts: int = 5
) -> list[ProbeExchange]:
    """Five calls with one seed and five with others a prompt. dropped: the share of requests that lose their seed."""
    calls = []
    for prompt in range(n_prompts):
        seeded = _text(rng, likely)
        for index in range(5):
            is_seeded = rng.random() >= dropped
            own = _text(rng, likely)
            left = np.argmax(np.append(rng.random(N_TOKENS) < noise, True)) if is_seeded else 0
            same = np.where(np.arange(N_TOKENS) < left, seeded, own)
            calls.append(ProbeExchange(prompt=prompt, group="same", seed=7, token_ids=tuple(same.tolist())))
            other = _text(rng, likely)
            calls.append(
                ProbeExchange(prompt=prompt, group="different", seed=100 + index, token_ids=tuple(other.tolist()))
            )
    return calls


def by_character(calls: list[ProbeExchange]) -> list[ProbeExchange]:
    """The same answers as texts, without ids: two answers can share letters of words that differ."""
    return [
        replace(call, token_ids=(), text=" ".join(_word(token) for token in call.token_ids), is_remote=True)
        for call in calls
    ]


@cache
def _word(token: int) -> str:
    letters = hashlib.sha256(str(token).encode()).hexdigest()
    return letters[: 2 + token % 8]


def capability_calls(rng: np.random.Generator, *, noise: float, dropped: float, likely: float) -> list[ProbeExchange]:
    """A capability check of 24 tokens, whose calls at a temperature of 1 are drawn as those of a seed probe."""
    drawn = by_character(seed_calls(rng, noise=noise, dropped=dropped, likely=likely, n_prompts=1))
    texts = {group: [call.text for call in drawn if call.group == group] for group in ("same", "different")}

    def change(call: ProbeExchange) -> ProbeExchange:
        if call.group not in texts:
            return call
        return replace(call, text=" ".join(texts[call.group].pop().split()[:24]))

    return answer_calls(honours=EVERYTHING - {"token_ids"}, change=change)


def batch_calls(
    rng: np.random.Generator, *, share: float, by_round: float = 0.0, moved: int = 0, n_prompts: int = 5
) -> list[ProbeExchange]:
    """50 copies a prompt in rounds of six. share: of copies with another text, by_round: of rounds where all have one.

    moved: of so many prompts every text is another one.
    """
    order = rng.permutation(np.repeat(np.arange(n_prompts), 50)).tolist()
    is_other_round = rng.random(len(order)) < by_round
    calls = []
    for place, prompt in enumerate(order):
        text = [prompt] * 20
        if prompt < moved:
            text[2] = 77
        if rng.random() < share or is_other_round[place // 6]:
            text[5 if rng.random() < 0.7 else 9] = 100 + int(rng.integers(2))
        calls.append(ProbeExchange(prompt=prompt, group="copy", round=place // 6, token_ids=tuple(text), batch_max=14))
    return calls


def canary_runs(
    rng: np.random.Generator,
    *,
    n_runs: int = 32,
    n_prompts: int = 20,
    noise: float = BETWEEN_RUNS,
    shift: float = 0.0,
    share: float = 1.0,
    n_prompts_moved: int | None = None,
    n_new: int = 4,
) -> list[list[ProbeExchange]]:
    """Runs, oldest first, of which the last n_new have their logits shifted (standard deviation, in nats).

    share: of the requests that are answered so; n_prompts_moved: of the first prompts only.
    """
    size = (n_runs, n_prompts, 50)
    logits = np.broadcast_to(rng.normal(0.0, 2.0, size[1:]), size) + rng.normal(0.0, noise, size)
    is_moved = (np.arange(n_runs)[:, None] >= n_runs - n_new) & (rng.random(size[:2]) < share)
    if n_prompts_moved is not None:
        is_moved &= np.arange(n_prompts) < n_prompts_moved
    logits = logits + np.where(is_moved[..., None], rng.normal(0.0, shift, size[1:]), 0.0)
    logprobs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    listed = np.argsort(-logprobs, axis=-1)[..., :5]
    values = np.take_along_axis(logprobs, listed, axis=-1)
    return [
        [
            ProbeExchange(prompt=prompt, group="ask", token_ids=(ids[0],), top=tuple(zip(ids, those, strict=True)))
            for prompt, (ids, those) in enumerate(zip(run_ids, run_values, strict=True))
        ]
        for run_ids, run_values in zip(listed.tolist(), values.tolist(), strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Promise):
    """An error rate that docs/probes.md promises: how many such probes find one of some states."""

    states: frozenset[str]
    finding: Callable[[np.random.Generator, int], ProbeResult]

    def measure(self, n: int) -> float:
        """The share of n simulated probes that find one of the states."""
        return sum(state in self.states for state in _found(self.finding, n)) / n


@cache
def _found(finding: Callable[[np.random.Generator, int], ProbeResult], n: int) -> tuple[str, ...]:
    """States; kept, because several claims are about the same probes."""
    rng = np.random.default_rng(SEED)
    return tuple(finding(rng, index).state for index in range(n))


def _seed(*, n_prompts: int = 5, **how: Any) -> Callable[[np.random.Generator, int], ProbeResult]:
    return lambda rng, index: judge_seed_probe(seed_calls(rng, n_prompts=n_prompts, **how), random_seed=index)


def _seed_by_character(**how: Any) -> Callable[[np.random.Generator, int], ProbeResult]:
    return lambda rng, index: judge_seed_probe(by_character(seed_calls(rng, **how)), random_seed=index)


def _capability(
    *, noise: float = 0.0, dropped: float = 0.0, likely: float = OPEN
) -> Callable[[np.random.Generator, int], ProbeResult]:
    """The state of the row of the seed stands for the finding's."""

    def finding(rng: np.random.Generator, index: int) -> ProbeResult:
        calls = capability_calls(rng, noise=noise, dropped=dropped, likely=likely)
        rows = judge_capability_probe(calls).numbers["rows"]
        return ProbeResult(next(row["state"] for row in rows if row["parameter"] == "seed"))

    return finding


def _batches(one: dict[str, Any], other: dict[str, Any]) -> Callable[[np.random.Generator, int], ProbeResult]:
    def finding(rng: np.random.Generator, index: int) -> ProbeResult:
        return compare_batch_probes(batch_calls(rng, **one), batch_calls(rng, **other), random_seed=index)

    return finding


def _canary(**how: Any) -> Callable[[np.random.Generator, int], ProbeResult]:
    def finding(rng: np.random.Generator, index: int) -> ProbeResult:
        *earlier, now = canary_runs(rng, **how)
        return judge_canary_probe(now, earlier, random_seed=index)

    return finding


def _text(rng: np.random.Generator, likely: float) -> np.ndarray:
    return np.where(rng.random(N_TOKENS) < likely, 0, rng.integers(1, 500, N_TOKENS))


DROPPED, NARROWLY_DROPPED = _seed(dropped=1.0), _seed(dropped=1.0, likely=NARROW)
UNCHANGED = _canary()
HONOURED, PARTLY, IGNORED = (frozenset({state}) for state in ("honoured", "partly_honoured", "ignored"))
ANY_CHANGE = frozenset({"changed", "partly_changed", "drift"})
ALARM = CANARY_CHANGES
NOT_ALIKE = frozenset({"other_noise", "other_texts"})

SEED_CLAIMS = (
    Claim(situation="seed, honoured by a quiet engine", says="honoured", states=HONOURED,
          finding=_seed(noise=QUIET), n_in_tests=120, at_least=0.99),
    Claim(situation="seed, honoured by a noisy engine", says="honoured", states=HONOURED,
          finding=_seed(noise=NOISY), at_least=0.99),
    Claim(situation="seed, honoured by a loud engine", says="ignored", states=IGNORED,
          finding=_seed(noise=LOUD), at_most=0.01),
    Claim(situation="seed, ignored", says="ignored", states=IGNORED, finding=DROPPED, at_least=0.9),
    Claim(situation="seed, ignored", says="honoured", states=HONOURED, finding=DROPPED, at_most=0.01),
    Claim(situation="seed, ignored, narrow answers", says="ignored", states=IGNORED,
          finding=NARROWLY_DROPPED, at_least=0.8),
    Claim(situation="seed, ignored, narrow answers", says="honoured", states=HONOURED,
          finding=NARROWLY_DROPPED, at_most=0.01),
    Claim(situation="seed, ignored, narrow answers, 10 prompts", says="ignored", states=IGNORED,
          finding=_seed(dropped=1.0, likely=NARROW, n_prompts=10), n_in_tests=30, at_least=0.97),
    Claim(situation="seed, honoured with noise of 5 % a token", says="partly honoured", states=PARTLY,
          finding=_seed(noise=0.05), at_most=0.01),
    Claim(situation="seed, dropped on 10 % of the calls", says="partly honoured", states=PARTLY,
          finding=_seed(dropped=0.1), at_least=0.6),
    Claim(situation="seed, dropped on 20 % of the calls", says="partly honoured", states=PARTLY,
          finding=_seed(dropped=0.2), at_least=0.9),
    Claim(situation="seed, dropped on 30 % of the calls", says="partly honoured", states=PARTLY,
          finding=_seed(dropped=0.3), at_least=0.95),
    Claim(situation="seed, dropped on 20 % of the calls by a noisy engine, 10 prompts", says="partly honoured",
          states=PARTLY, finding=_seed(noise=NOISY, dropped=0.2, n_prompts=10), n_in_tests=0),
    Claim(situation="seed, dropped half of the time", says="partly honoured", states=PARTLY,
          finding=_seed(noise=QUIET, dropped=0.5), n_in_tests=0),
    Claim(situation="seed, dropped half of the time, 10 prompts", says="partly honoured", states=PARTLY,
          finding=_seed(noise=QUIET, dropped=0.5, n_prompts=10), n_in_tests=0),
)  # fmt: skip
CHARACTER_DROPPED, CAPABILITY_DROPPED = _seed_by_character(dropped=1.0), _capability(dropped=1.0)
CHARACTER_CLAIMS = (
    Claim(situation="seed by characters, honoured by a quiet engine", says="honoured", states=HONOURED,
          finding=_seed_by_character(noise=QUIET), at_least=0.99),
    Claim(situation="seed by characters, honoured by a noisy engine", says="honoured", states=HONOURED,
          finding=_seed_by_character(noise=NOISY), n_in_tests=30, at_least=0.98),
    Claim(situation="seed by characters, honoured by a loud engine", says="ignored", states=IGNORED,
          finding=_seed_by_character(noise=LOUD), n_in_tests=30, at_most=0.01),
    Claim(situation="seed by characters, ignored", says="ignored", states=IGNORED, finding=CHARACTER_DROPPED,
          at_least=0.8),
    Claim(situation="seed by characters, ignored", says="honoured", states=HONOURED, finding=CHARACTER_DROPPED,
          at_most=0.01),
    Claim(situation="seed by characters, ignored, 10 prompts", says="ignored", states=IGNORED,
          finding=_seed_by_character(dropped=1.0, n_prompts=10), n_in_tests=0, at_least=0.95),
    Claim(situation="seed by characters, ignored, narrow answers", says="ignored", states=IGNORED,
          finding=_seed_by_character(dropped=1.0, likely=NARROW), n_in_tests=0, at_least=0.75),
    Claim(situation="seed by characters, dropped on 20 % of the calls", says="partly honoured", states=PARTLY,
          finding=_seed_by_character(dropped=0.2), n_in_tests=30, at_least=0.9),
    Claim(situation="capability's three calls, seed honoured by a noisy engine", says="ignored", states=IGNORED,
          finding=_capability(noise=NOISY), n_in_tests=0),
    Claim(situation="capability's three calls, seed ignored", says="ignored", states=IGNORED,
          finding=CAPABILITY_DROPPED, n_in_tests=0),
    Claim(situation="capability's three calls, seed ignored", says="honoured", states=HONOURED,
          finding=CAPABILITY_DROPPED, n_in_tests=60, at_most=0.01),
)  # fmt: skip
BATCH_CLAIMS = (
    Claim(situation="two batch probes, 10 % other texts in both", says="not alike", states=NOT_ALIKE,
          finding=_batches({"share": 0.1}, {"share": 0.1}), n_in_tests=0, at_most=0.02),
    Claim(situation="two batch probes, 20 % of whole rounds other in both", says="not alike", states=NOT_ALIKE,
          finding=_batches({"share": 0.0, "by_round": 0.2}, {"share": 0.0, "by_round": 0.2}), n_in_tests=0,
          at_most=0.02),
    Claim(situation="two batch probes, 0 % against 5 %", says="other noise", states=frozenset({"other_noise"}),
          finding=_batches({"share": 0.0}, {"share": 0.05}), n_in_tests=40, at_least=0.85),
    Claim(situation="two batch probes, 10 % against 25 %", says="other noise", states=frozenset({"other_noise"}),
          finding=_batches({"share": 0.1}, {"share": 0.25}), n_in_tests=10, at_least=0.85),
    Claim(situation="two batch probes, one prompt of five with another text", says="other texts",
          states=frozenset({"other_texts"}), finding=_batches({"share": 0.1}, {"share": 0.1, "moved": 1}),
          n_in_tests=10, at_least=0.99),
)  # fmt: skip
CANARY_CLAIMS = (
    Claim(situation="canary, no change", says="changed", states=ALARM, finding=UNCHANGED, n=500, n_in_tests=15,
          at_most=0.01),
    Claim(situation="canary, no change", says="drift", states=frozenset({"drift"}), finding=UNCHANGED, n=500,
          n_in_tests=0, at_most=0.01),
    Claim(situation="canary, no change, 8 + 4 runs", says="changed", states=ALARM, finding=_canary(n_runs=12), n=500,
          n_in_tests=40, at_most=0.01),
    Claim(situation="canary, no change, 200 prompts", says="changed", states=ALARM, finding=_canary(n_prompts=200),
          n=100, n_in_tests=0, at_most=0.01),
    Claim(situation="canary, another load: all logits moved by half the noise", says="changed", states=ALARM,
          finding=_canary(shift=BETWEEN_RUNS / 2), n=500, n_in_tests=10, at_most=0.05),
    Claim(situation="canary, all logits moved by the noise", says="changed or drift", states=ANY_CHANGE,
          finding=_canary(shift=BETWEEN_RUNS), n=500, n_in_tests=10, at_least=0.99),
    Claim(situation="canary, all logits moved by twice the noise", says="changed", states=ALARM,
          finding=_canary(shift=2 * BETWEEN_RUNS), n=500, n_in_tests=10, at_least=0.99),
    Claim(situation="canary, 0.1 nats on 6 % of the traffic", says="changed or drift", states=ANY_CHANGE,
          finding=_canary(shift=0.1, share=0.06), n=500, n_in_tests=0),
    Claim(situation="canary, 0.1 nats on 6 % of the traffic, 200 prompts", says="changed or drift", states=ANY_CHANGE,
          finding=_canary(shift=0.1, share=0.06, n_prompts=200), n=100, n_in_tests=3, at_least=0.99),
    Claim(situation="canary, pinned, no change", says="changed or drift", states=ANY_CHANGE,
          finding=_canary(noise=0.0), n=100, n_in_tests=5, at_most=0.0),
    Claim(situation="canary, pinned, one prompt moved by 0.001 nats in the newest run", says="changed",
          states=frozenset({"changed"}), finding=_canary(noise=0.0, shift=0.001, n_prompts_moved=1, n_new=1), n=100,
          n_in_tests=5, at_least=1.0),
)  # fmt: skip
CLAIMS = (*SEED_CLAIMS, *CHARACTER_CLAIMS, *BATCH_CLAIMS, *CANARY_CLAIMS)
