"""Compare two batch probes of one endpoint: idle and loaded, before and after (docs/probes.md).

Copies of one round share their steps, so that a round, not a copy, is what chance deals.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.probes.answers import (
    Answer,
    AnsweredCall,
    Answers,
    make_incomplete_finding,
    read_answers,
)
from evalboard.core.probes.batch_probe import group_copies
from evalboard.core.probes.call import ProbeExchange, ProbeResult
from evalboard.core.stats import deal_labels, permutation_p_value

SIGNIFICANT = 0.01
BOTH_TESTS = SIGNIFICANT / 2  # of each of two tests, so that together they alarm no more often than one

Counts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Rounds:
    """The rounds of both probes, the first probe's first.

    counts: [rounds, texts], how often a round gave a text; prompt_at: where each prompt's texts begin.
    """

    counts: Counts
    n_first: int
    prompt_at: NDArray[np.int64]

    def deal(self, labels: Counts) -> tuple[Counts, Counts]:
        """Return how often each side gave each text, [deals, texts]; label 1 is the first side."""
        return labels @ self.counts, (1 - labels) @ self.counts

    def by_prompt(self, side: Counts) -> Counts:
        sums: Counts = np.add.reduceat(side, self.prompt_at, axis=-1)
        return sums


def compare_batch_probes(
    one: Iterable[ProbeExchange], other: Iterable[ProbeExchange], *, random_seed: int = 0
) -> ProbeResult:
    """Judge two batch probes with the same prompts: alike, other_noise, other_texts or incomplete.

    Two conditions can be equally noisy around different texts, so there are two tests: of how often two copies agree
    (|A1 − A2|), and of the texts themselves (MMD with the identity kernel). Where one side's copies never differ,
    Fisher's exact test on the rounds that leave its texts takes the place of both.
    """
    sides = [[call for call in calls if call.group == "copy"] for calls in (one, other)]
    answers = [read_answers(calls) for calls in sides]
    if len({each.unit for each in answers}) > 1:
        answers = [read_answers(calls, by_character=True) for calls in sides]
    rounds = _rounds(answers)
    short = next((each for each in answers if not each.is_enough), None)
    if short is not None or rounds is None:
        return make_incomplete_finding(short or answers[0])
    numbers = {"compared": answers[0].unit, "sides": [each.counts for each in answers], **_numbers(rounds, random_seed)}
    return ProbeResult(_state(numbers), numbers)


def _rounds(answers: Sequence[Answers]) -> _Rounds | None:
    """Over the prompts that have two copies in both probes; None where there is none."""
    prompts = set.intersection(*({each.prompt for each in group_copies(side)} for side in answers))
    if not prompts:
        return None
    used = [[each for each in side.answered if each.call.prompt in prompts] for side in answers]
    texts = sorted({(each.call.prompt, each.answer) for side in used for each in side})
    columns = {text: column for column, text in enumerate(texts)}
    counts = [_counts(side, columns) for side in used]
    prompt_of = [prompt for prompt, _ in texts]
    prompt_at = np.array([prompt_of.index(prompt) for prompt in sorted(prompts)], dtype=np.int64)
    return _Rounds(np.vstack(counts), len(counts[0]), prompt_at)


def _counts(side: Sequence[AnsweredCall], columns: Mapping[tuple[int, Answer], int]) -> Counts:
    rows = {index: row for row, index in enumerate(sorted({each.call.round for each in side}))}
    counts = np.zeros((len(rows), len(columns)))
    for each in side:
        counts[rows[each.call.round], columns[each.call.prompt, each.answer]] += 1
    return counts


def _numbers(rounds: _Rounds, random_seed: int) -> dict[str, Any]:
    labels = (np.arange(len(rounds.counts)) < rounds.n_first).astype(np.float64)
    sides = rounds.deal(labels)
    noise, mmd = _statistics(rounds, labels)
    modal = [_modal(rounds, side) for side in sides]
    numbers = {
        "n_prompts": len(rounds.prompt_at),
        "n_copies": [int(side.sum()) for side in sides],
        "n_rounds": [rounds.n_first, len(labels) - rounds.n_first],
        "agreement": [float(_within(rounds, side)) for side in sides],
        "mmd": float(mmd),
        "n_other_modal": int(np.count_nonzero(modal[0] != modal[1])),
    }
    still = next((place for place, side in enumerate(sides) if np.count_nonzero(side) == len(rounds.prompt_at)), None)
    if still is not None:
        p_value = _fisher(rounds, sides[still] > 0, first_is_still=still == 0)
        return {**numbers, "test": "fisher", "p_value": p_value, "p_noise": None, "p_texts": None}
    drawn = _statistics(rounds, deal_labels(np.random.default_rng(random_seed), len(labels), rounds.n_first))
    p_noise = permutation_p_value(float(noise), drawn[0])
    p_texts = permutation_p_value(float(mmd), drawn[1])
    return {**numbers, "test": "permutation", "p_value": None, "p_noise": p_noise, "p_texts": p_texts}


def _statistics(rounds: _Rounds, labels: Counts) -> tuple[Counts, Counts]:
    """Return |A1 − A2| and A1 + A2 − 2 · A12, for labels [rounds] or [draws, rounds]."""
    ours, theirs = rounds.deal(labels)
    a_ours, a_theirs = _within(rounds, ours), _within(rounds, theirs)
    pairs = (rounds.by_prompt(ours) * rounds.by_prompt(theirs)).sum(axis=-1)
    across = (ours * theirs).sum(axis=-1) / np.maximum(pairs, 1)
    return np.abs(a_ours - a_theirs), a_ours + a_theirs - 2 * across


def _within(rounds: _Rounds, side: Counts) -> Counts:
    """Return the share of pairs of one prompt's copies that agree, over a side."""
    n = rounds.by_prompt(side)
    rates: Counts = (side * (side - 1)).sum(axis=-1) / np.maximum((n * (n - 1)).sum(axis=-1), 1)
    return rates


def _modal(rounds: _Rounds, side: Counts) -> NDArray[np.int64]:
    """Return the column of each prompt's commonest text."""
    ends = [*rounds.prompt_at[1:].tolist(), len(side)]
    starts = rounds.prompt_at.tolist()
    return np.array([at + int(np.argmax(side[at:end])) for at, end in zip(starts, ends, strict=True)], dtype=np.int64)


def _fisher(rounds: _Rounds, is_still: NDArray[np.bool_], *, first_is_still: bool) -> float:
    """Return the chance of so many rounds that leave the still side's texts all being the other side's."""
    leaves = rounds.counts[:, ~is_still].sum(axis=1) > 0
    n_still = rounds.n_first if first_is_still else len(leaves) - rounds.n_first
    return _fisher_exact(int(leaves.sum()), n_still, len(leaves))


def _fisher_exact(n_leaving: int, n_still: int, n: int) -> float:
    """Two-sided: of n rounds n_leaving leave, and none of the still side's n_still do."""
    ways = [
        math.comb(n_still, k) * math.comb(n - n_still, n_leaving - k)
        for k in range(max(0, n_leaving - (n - n_still)), min(n_still, n_leaving) + 1)
    ]
    return sum(way for way in ways if way <= ways[0]) / math.comb(n, n_leaving)


def _state(numbers: Mapping[str, Any]) -> str:
    if numbers["test"] == "fisher":
        is_noise = is_texts = numbers["p_value"] <= SIGNIFICANT
    else:
        is_noise, is_texts = numbers["p_noise"] <= BOTH_TESTS, numbers["p_texts"] <= BOTH_TESTS
    # More noise around the same texts moves both statistics.
    if is_texts and (numbers["n_other_modal"] or not is_noise):
        return "other_texts"
    return "other_noise" if is_noise else "alike"
