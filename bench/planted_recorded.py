"""Planted causes on recorded answers: the traces of a real model in bfloat16, each logprob with noise of its own.

What is planted moves the recorded logprobs of the two leading tokens of each position; where it makes the second one
the likelier it is chosen, and nothing is read beyond. 40 answers are recorded, and each is planted PAIRS / 40 times.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np

from bench.planted_causes import BY_CASES, PAIRS, RECORDED, SEED, SEEDED, Planted, Traces, joined, part
from evalboard.core.stats import LogitNoise, choose_larger_noise, median_sd
from evalboard.core.trace import TokenTrace
from evalboard.core.trace.codec import read_block
from tests.core import stacks
from tests.core.stacks import NOISE

ROUTED = 0.06
WORDS, OTHER_WORDS = "The sky is blue.", "The sky  is\nblue."


def measure_recorded_noise(n_pairs: int | None = None) -> LogitNoise:
    """Return the noise of the recorded answers' repeats, of n_pairs or all of them."""
    sd = median_sd(parting.shift_rms for parting in stacks.find_partings(islice(_pairs(0.0), n_pairs)))
    return choose_larger_noise((sd, "bfloat16"), (sd, "bfloat16"))


def list_recorded(noise: LogitNoise) -> tuple[Planted, ...]:
    """Return every cause that is planted on recorded answers. A shift is given in the noise of D, of two logits."""

    def shifted(times: float) -> Callable[[], Traces]:
        return lambda: _pairs(times * noise.sd / np.sqrt(2))

    plain, quantised = shifted(0.0), lambda: _pairs(0.25)
    return (
        Planted("recorded: numeric noise", "near_tie", plain),
        Planted("recorded: weights off by all of the noise", "near_tie, larger_shift", shifted(1.0), also=BY_CASES),
        Planted("recorded: weights off by 3 times the noise", "near_tie, larger_shift", shifted(3.0), also=BY_CASES),
        Planted(
            "recorded: weights off by ¼ of the noise, one steady bucket",
            "silent_change",
            lambda: _pairs(0.25 * noise.sd / np.sqrt(2), noise=0.0),
            is_steady=True,
        ),
        Planted("recorded: quantised weights, 0.25 nats a logit", "near_tie, larger_shift", quantised, also=BY_CASES),
        Planted(
            "recorded: quantised weights, by their digest",
            "model_changed",
            quantised,
            candidate={"weights_digest": "bb"},
        ),
        Planted(
            "recorded: another build, by its fingerprint", "backend_changed", plain, candidate={"fingerprint": "f2"}
        ),
        Planted(
            "recorded: other white space at a near tie",
            "whitespace",
            plain,
            base={"text": WORDS},
            candidate={"text": OTHER_WORDS},
        ),
        Planted(
            "recorded: another token limit",
            "length",
            _cut,
            candidate={"max_tokens": 10, "finish_reason": "length"},
            is_counted=lambda parting: parting.shorter is not None,
        ),
        Planted(
            "recorded: a token that was drawn at temperature 0",
            "sampler_fault",
            _drawn_once,
            is_counted=lambda parting: not parting.are_both_top,
        ),
        Planted(
            "recorded: another request's continuation",
            "leak, unknown: not_listed",
            _leaked,
            is_counted=lambda parting: parting.are_disjoint,
        ),
        Planted("recorded: a dropped seed, noise of 0 nats", "seed_ignored", lambda: _drawn_once(0.0), base=SEEDED),
        Planted("recorded: routed 6 %: the routed", "larger_shift", lambda: _routed(is_routed=True)),
        Planted("recorded: routed 6 %: the others", "near_tie", lambda: _routed(is_routed=False)),
    )


@cache
def _answers() -> tuple[TokenTrace, ...]:
    return tuple(read_block(RECORDED.read_bytes()))


def _pairs(shift: float, *, noise: float = NOISE, share: float = 1.0) -> Traces:
    """PAIRS pairs of one recorded answer each. shift: as `stacks.pairs` has it, in that share of the pairs."""
    rng = np.random.default_rng(SEED)
    for index in range(PAIRS):
        answer = _answers()[index % len(_answers())]
        size = answer.alternative_logprobs.shape
        is_shifted = int((index + 1) * share) > int(index * share)
        moved = rng.normal(0, shift, size) if shift and is_shifted else np.zeros(size)
        yield _moved(answer, rng.normal(0, noise, size)), _moved(answer, moved + rng.normal(0, noise, size))


def _moved(answer: TokenTrace, by: np.ndarray) -> TokenTrace:
    """The answer with its listed logprobs moved, the likeliest token chosen at each position."""
    logprobs = (answer.alternative_logprobs + by).astype(np.float32)
    order = np.argsort(-logprobs, axis=1, kind="stable")
    ids = np.take_along_axis(answer.alternative_ids, order, axis=1)
    logprobs = np.take_along_axis(logprobs, order, axis=1)
    return TokenTrace(ids[:, 0].copy(), logprobs[:, 0].copy(), ids, logprobs)


def _cut() -> Traces:
    """The candidate's answer ends after 10 tokens, where noise has not parted the two before."""
    return ((ours, part(theirs, 0, 10)) for ours, theirs in _pairs(0.0) if len(ours) > 10)


def _drawn_once(noise: float = NOISE) -> Traces:
    """The candidate takes the second token at one position."""
    rng = np.random.default_rng(SEED + 1)
    for ours, theirs in _pairs(0.0, noise=noise):
        at = int(rng.integers(len(theirs)))
        tokens, logprobs = theirs.token_ids.copy(), theirs.logprobs.copy()
        tokens[at], logprobs[at] = theirs.alternative_ids[at, 1], theirs.alternative_logprobs[at, 1]
        yield ours, replace(theirs, token_ids=tokens, logprobs=logprobs)


def _leaked() -> Traces:
    """The candidate's answer goes on, from its tenth token, with another recorded answer's beginning."""
    answers = _answers()
    for index, (ours, theirs) in enumerate(_pairs(0.0)):
        other = answers[(index + 1 + index // len(answers)) % len(answers)]
        if len(ours) > 10 and other is not answers[index % len(answers)]:
            yield ours, joined(part(theirs, 0, 10), other, 0)


def _routed(*, is_routed: bool) -> Iterator[tuple[TokenTrace, TokenTrace]]:
    """Pairs of which 6 % have a candidate from another build, off by 0.25 nats a logit: those, or the others."""
    for index, pair in enumerate(_pairs(0.25, share=ROUTED)):
        if (int((index + 1) * ROUTED) > int(index * ROUTED)) == is_routed:
            yield pair
