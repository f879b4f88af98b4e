"""What a seed probe says of one bucket and of temperatures that never arrive, and how often a certificate is wrong.

The calls are those of simulated_probes. A certificate rules out a share, 95 % sure: where another answer has just that
share, at most one probe in twenty may go without seeing it.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bench.simulated_probes import NOISY, QUIET, Claim, batch_calls, seed_calls
from evalboard.core.probes import ProbeExchange, ProbeResult, judge_batch_probe, judge_routing_probe, judge_seed_probe

N_ROUNDS = 41  # of a batch probe by default
FOUND = frozenset({"found"})


def _by_bucket(rng: np.random.Generator, *, noise: float, dropped: float) -> list[ProbeExchange]:
    """Two calls of five come from bucket 2, which drops the seed of a share of them."""
    kept, dropping = seed_calls(rng, noise=noise), iter(seed_calls(rng, noise=noise, dropped=dropped))
    lost = [next(dropping) for _ in kept]
    calls = []
    for index, (call, other) in enumerate(zip(kept, lost, strict=True)):
        is_other = index // 2 % 5 in (0, 2)  # groups alternate
        calls.append(replace(other if is_other and dropped else call, bucket=2 if is_other else 1))
    return calls


def _named(*, noise: float, dropped: float) -> Callable[[np.random.Generator, int], ProbeResult]:
    def finding(rng: np.random.Generator, index: int) -> ProbeResult:
        numbers = judge_seed_probe(_by_bucket(rng, noise=noise, dropped=dropped), random_seed=index).numbers
        return _found(numbers["dropping_bucket"] == 2 if dropped else numbers["dropping_bucket"] is not None)

    return finding


def _temperature(*, noise: float, is_dropped: bool) -> Callable[[np.random.Generator, int], ProbeResult]:
    """All calls of a prompt give one text: the greedy one where the temperature is dropped, else some other."""

    def finding(rng: np.random.Generator, index: int) -> ProbeResult:
        calls = [replace(call, group="different") for call in seed_calls(rng, noise=noise) if call.group == "same"]
        calls += [replace(call, group="same") for call in calls]
        greedy = seed_calls(rng, noise=noise)
        for prompt in range(5):
            text = next(call for call in (calls if is_dropped else greedy) if call.prompt == prompt).token_ids
            calls.append(ProbeExchange(prompt=prompt, group="greedy", token_ids=text))
        found = judge_seed_probe(calls, random_seed=index)
        return _found(found.state == "greedy")

    return finding


def _routed(n: int, share: float) -> Callable[[np.random.Generator, int], ProbeResult]:
    def finding(rng: np.random.Generator, index: int) -> ProbeResult:
        stacks = np.where(rng.random(n) < share, "b", "a").tolist()
        calls = [ProbeExchange(prompt=0, group="ask", worker=1, token_ids=(1,), fingerprint=stack) for stack in stacks]
        return judge_routing_probe(calls)

    return finding


def _batched(share: float) -> Callable[[np.random.Generator, int], ProbeResult]:
    """Whole rounds come out otherwise, for that share of them."""

    def finding(rng: np.random.Generator, index: int) -> ProbeResult:
        calls = [call for call in batch_calls(rng, share=0.0, by_round=share) if call.round < N_ROUNDS]
        return judge_batch_probe(calls)

    return finding


def _found(is_found: bool) -> ProbeResult:
    return ProbeResult("found" if is_found else "other")


ONE, INVARIANT = frozenset({"one"}), frozenset({"invariant"})
SEED_CLAIMS = (
    Claim(situation="seed, dropped by one bucket on two calls of five", says="that bucket drops it", states=FOUND,
          finding=_named(noise=QUIET, dropped=1.0), n=300, at_least=0.95),
    Claim(situation="seed, honoured by two buckets", says="a bucket drops it", states=FOUND,
          finding=_named(noise=QUIET, dropped=0.0), n=300, at_most=0.01),
    Claim(situation="seed, honoured by two noisy buckets", says="a bucket drops it", states=FOUND,
          finding=_named(noise=NOISY, dropped=0.0), n=300, at_most=0.01),
    Claim(situation="seed and temperature dropped", says="the temperature is dropped", states=FOUND,
          finding=_temperature(noise=0.0, is_dropped=True), n=300, at_least=0.99),
    Claim(situation="seed and temperature dropped, a quiet engine", says="the temperature is dropped", states=FOUND,
          finding=_temperature(noise=QUIET, is_dropped=True), n=300, n_in_tests=0),
    Claim(situation="one seed in place of all, the temperature arrives", says="the temperature is dropped",
          states=FOUND, finding=_temperature(noise=0.0, is_dropped=False), n=300, at_most=0.01),
)  # fmt: skip
CERTIFICATE_CLAIMS = (
    Claim(situation="routing, 8 answers, another stack takes 32 %", says="one", states=ONE,
          finding=_routed(8, 0.32), n=10_000, n_in_tests=400, at_most=0.05),
    Claim(situation="routing, 60 answers, another stack takes 5 %", says="one", states=ONE,
          finding=_routed(60, 0.05), n=10_000, n_in_tests=0, at_most=0.05),
    Claim(situation="routing, 60 answers, another stack takes 15 %", says="several",
          states=frozenset({"several"}), finding=_routed(60, 0.15), n_in_tests=200, at_least=0.99),
    Claim(situation="batch, 41 rounds, 7.5 % of them come out otherwise", says="invariant", states=INVARIANT,
          finding=_batched(0.075), n_in_tests=200, at_most=0.05),
    Claim(situation="batch, 41 rounds, 20 % of them come out otherwise", says="invariant", states=INVARIANT,
          finding=_batched(0.2), n_in_tests=60, at_most=0.01),
)  # fmt: skip
CLAIMS = (*SEED_CLAIMS, *CERTIFICATE_CLAIMS)
