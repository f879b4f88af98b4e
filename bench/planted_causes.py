"""Pairs of answers with a planted cause, and what `find_cause` calls them. Only pairs that part are judged.

The stack is that of tests/core/stacks.py: logits of bfloat16, noise of its own for every answer, measured from repeats.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np

from evalboard.core.compare import Divergence, KnownResponse, Pair, find_cause
from evalboard.core.stats import ZERO_NOISE, LogitNoise, choose_larger_noise, median_sd
from evalboard.core.trace import TokenTrace
from evalboard.core.trace.codec import read_block
from tests.core import stacks

SEED = 20261122
PAIRS = 1000
TEMPERATURE = 0.7
SEEDED = {"temperature": TEMPERATURE, "seed": 42, "bucket": 1}
SIDE = KnownResponse(
    text="An answer.",
    score=1.0,
    weights_digest="aa" * 32,
    prompt_digest="99" * 16,
    n_prompt_tokens=31,
    fingerprint="f1" * 32,
    finish_reason="stop",
    max_tokens=256,
    stop=(),
    temperature=0.0,
)
RECORDED = Path(__file__).parents[1] / "tests" / "core" / "data" / "smollm2-bfloat16.evt"
BY_CASES = "one computation or two, over 100 cases (above)"
Traces = Iterator[tuple[TokenTrace, TokenTrace]]
Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Planted:
    """codes: what the pair may be called. also: what decides where one pair cannot.

    base, candidate: what is known of the sides beside SIDE. is_steady: of one steady bucket. is_counted: which of the
    pairs the planted cause parted; noise may have parted others before.
    """

    name: str
    codes: str
    traces: Callable[[], Traces]
    base: Facts = field(default_factory=dict)
    candidate: Facts = field(default_factory=dict)
    also: str = ""
    is_steady: bool = False
    is_counted: Callable[[Divergence], bool] = lambda parting: True

    def named(self, noise: LogitNoise, n_pairs: int | None = None) -> Counter[str]:
        """Count the first n_pairs, or all, by their causes, `unknown` with its reason."""
        baseline = replace(SIDE, **self.base)
        pair = Pair(baseline, replace(baseline, **{"text": "Another answer."} | self.candidate))
        codes: Counter[str] = Counter()
        for parting in stacks.find_partings(islice(self.traces(), n_pairs)):
            if parting.parts_at is None or not self.is_counted(parting):
                continue
            cause = find_cause(pair, parting, ZERO_NOISE if self.is_steady else noise)
            codes[f"unknown: {cause.evidence['reason']}" if cause.code == "unknown" else cause.code] += 1
        return codes


def measure(planted: Sequence[tuple[Planted, LogitNoise]]) -> tuple[list[tuple[str, float, str, str]], list[str]]:
    """Measure planted causes, each by its noise; return rows of the bench and lines of the table."""
    rows, lines = (
        [],
        [
            f"| planted in {PAIRS:,} pairs each | parted | called | in | where one pair cannot decide |",
            "| --- | --- | --- | --- | --- |",
        ],
    )
    for each, known in planted:
        codes, accepted = each.named(known), each.codes.split(", ")
        share = 100 * sum(codes[code] for code in accepted) / codes.total()
        called = ", ".join(f"`{code}` {codes[code]:,}" if len(accepted) > 1 else f"`{code}`" for code in accepted)
        lines.append(f"| {each.name} | {codes.total():,} | {called} | {share:.1f} % | {each.also or '–'} |")
        rows.append((f"planted: {each.name}, called {each.codes}", share, "% of the pairs that parted", "≥ 98 %"))
    return rows, lines


def measure_noise() -> LogitNoise:
    """Return the noise of the simulated bucket, from pairs of its own repeats."""
    sd = median_sd(parting.shift_rms for parting in stacks.find_partings(stacks.pairs(200, seed=SEED)))
    return choose_larger_noise((sd, "bfloat16"), (sd, "bfloat16"), ulp=0.125)


def list_planted(noise: LogitNoise) -> tuple[Planted, ...]:
    """Return every planted cause. A shift is given in the noise of D, which holds two logits."""

    def shifted(times: float, share: float = 1.0) -> Callable[[], Traces]:
        shift = times * noise.sd / np.sqrt(2)
        return lambda: stacks.pairs(PAIRS, seed=SEED, shift=shift, share_shifted=share)

    plain, quantised = shifted(0.0), lambda: stacks.pairs(PAIRS, seed=SEED, shift=0.25)
    return (
        Planted("numeric noise", "near_tie", plain),
        *(
            Planted(f"weights off by {words} the noise", "near_tie, larger_shift", shifted(times), also=BY_CASES)
            for words, times in (("¼ of", 0.25), ("½ of", 0.5), ("all of", 1.0))
        ),
        Planted("weights off by 3 times the noise", "larger_shift", shifted(3.0)),
        Planted("weights off by ¼ of the noise, one steady bucket", "silent_change", shifted(0.25), is_steady=True),
        Planted("quantised weights, 0.25 nats a logit", "larger_shift", quantised),
        Planted("quantised weights, by their digest", "model_changed", quantised, candidate={"weights_digest": "bb"}),
        Planted("another template, by the prompt's ids", "prompt_mismatch", _others, candidate={"prompt_digest": "11"}),
        Planted(
            "another template, no prompt known (recorded answers)",
            "prompt_mismatch, unknown: prompts, unknown: not_listed",
            _recorded,
            base={"prompt_digest": None, "n_prompt_tokens": None},
        ),
        Planted(
            "another token limit",
            "length",
            _cut,
            candidate={"max_tokens": 40, "finish_reason": "length"},
            is_counted=lambda parting: parting.shorter is not None,
        ),
        Planted(
            "a token that was drawn at temperature 0",
            "sampler_fault",
            lambda: stacks.pairs(PAIRS, seed=SEED, is_drawn_once=True),
            is_counted=lambda parting: not parting.are_both_top,
        ),
        Planted("another request's continuation", "leak", _leaked, is_counted=lambda parting: parting.are_disjoint),
        Planted(
            "another temperature",
            "sampling_changed",
            lambda: _drawn(0.03, is_one_seed=False),
            candidate={"temperature": TEMPERATURE},
        ),
        Planted(
            "other seeds",
            "unknown: drawn",
            lambda: _drawn(0.03, is_one_seed=False),
            base=SEEDED,
            candidate={"seed": 7},
            is_counted=lambda parting: not parting.are_both_top,
        ),
        *(
            Planted(
                f"{words} seed, noise of {sd:g} nats",
                code,
                _drawing(sd, is_one_seed=words == "a loyal"),
                base=SEEDED,
                also="" if code == "seed_ignored" else "the seed probe",
            )
            for words, sd, code in (
                ("a dropped", 0.0, "seed_ignored"),
                ("a dropped", 1e-6, "seed_ignored"),
                ("a dropped", 0.03, "unknown: one_seed"),
                ("a loyal", 0.03, "unknown: one_seed"),
            )
        ),
        Planted("routed 6 %: the routed", "larger_shift", lambda: _routed(is_routed=True)),
        Planted("routed 6 %: the others", "near_tie", lambda: _routed(is_routed=False)),
    )


def _recorded() -> Traces:
    """Recorded answers of one model to different prompts, each beside every other."""
    return combinations(read_block(RECORDED.read_bytes()), 2)


def _others() -> Traces:
    """Answers to two prompts."""
    answers = [pair[0] for pair in stacks.pairs(2 * PAIRS, seed=SEED)]
    return zip(answers[::2], answers[1::2], strict=True)


def _cut() -> Traces:
    """The candidate's answer ends after 40 tokens, where noise has not parted the two before."""
    return ((ours, part(theirs, 0, 40)) for ours, theirs in stacks.pairs(PAIRS, seed=SEED))


def _leaked() -> Traces:
    """The candidate's answer goes on, from its tenth token, with tokens that the baseline does not list."""
    for ours, theirs in stacks.pairs(PAIRS, seed=SEED):
        yield ours, joined(part(theirs, 0, 10), part(theirs, 10, None), 10**6)


def part(trace: TokenTrace, start: int, end: int | None) -> TokenTrace:
    at = slice(start, end)
    return TokenTrace(
        trace.token_ids[at], trace.logprobs[at], trace.alternative_ids[at], trace.alternative_logprobs[at]
    )


def joined(first: TokenTrace, rest: TokenTrace, further: int) -> TokenTrace:
    """One trace of two, the second's token ids by so many further on."""
    return TokenTrace(
        np.concatenate([first.token_ids, rest.token_ids + np.int32(further)]),
        np.concatenate([first.logprobs, rest.logprobs]),
        np.concatenate([first.alternative_ids, rest.alternative_ids + np.int32(further)]),
        np.concatenate([first.alternative_logprobs, rest.alternative_logprobs]),
    )


def _drawing(noise: float, *, is_one_seed: bool) -> Callable[[], Traces]:
    return lambda: _drawn(noise, is_one_seed=is_one_seed)


def _drawn(noise: float, *, is_one_seed: bool) -> Traces:
    rng = np.random.default_rng(SEED)
    for _ in range(PAIRS):
        yield stacks.drawn_pair(rng, noise=noise, temperature=TEMPERATURE, is_one_seed=is_one_seed)


def _routed(*, is_routed: bool) -> Traces:
    """Pairs of which 6 % have a candidate from another build, off by 0.25 nats a logit: those, or the others."""
    share = 0.06
    for index, pair in enumerate(stacks.pairs(PAIRS, seed=SEED, shift=0.25, share_shifted=share)):
        if (int((index + 1) * share) > int(index * share)) == is_routed:
            yield pair
