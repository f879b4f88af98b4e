"""Judge whether an endpoint honours seeds: calls with one seed against calls with different seeds.

See docs/probes.md. `same` calls of a prompt have one seed, `different` ones each their own, and `greedy` ones
temperature 0. The shared length of two answers is the number of equal tokens from the start; identical answers share
the length of the prompt's longest answer.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.probes.answers import (
    Answer,
    AnsweredCall,
    Answers,
    count_shared,
    group_by_prompt,
    make_incomplete_finding,
    read_answers,
)
from evalboard.core.probes.call import ProbeExchange, ProbeResult
from evalboard.core.stats import N_DEALS, binomial_tail, deal_labels, hypergeometric_tail, permutation_p_value

SEED_SIGNIFICANT = 0.01
LOYAL = 0.6  # of the calls with one seed: with fewer, something drops it some of the time
AS_UNSEEDED = 0.95  # a call that shares more than this quantile of unseeded pairs do follows its seed
NOT_IGNORED = 0.45  # where a seed is ignored both groups part equally fast: the ratio of their hazards is 1
DETERMINISTIC = 0.5  # of the pairs with different seeds are identical: sampling itself does nothing
WIDTH = 1.645  # half of a 90 % interval, in standard errors
ENOUGH_CALLS = 100  # 10 prompts × (5 + 5)
GREEDY = "greedy"  # the group without sampling; probes that were stored before it came have none


@dataclass(frozen=True, slots=True)
class _Prompt:
    """The answers of one prompt, `same` ones first. alike: int64[n, n], shared lengths, 0 on the diagonal."""

    index: int
    calls: tuple[ProbeExchange, ...]
    answers: tuple[Answer, ...]
    n_same: int
    length: int
    alike: NDArray[np.int64]

    @property
    def same(self) -> range:
        return range(self.n_same)

    @property
    def different(self) -> range:
        return range(self.n_same, len(self.answers))


@dataclass(frozen=True, slots=True)
class _Hazard:
    """How fast answers of one group diverge, per token. n_distinct: distinct answers beyond the first."""

    per_token: float
    n_distinct: int


def judge_seed_probe(calls: Iterable[ProbeExchange], *, random_seed: int = 0) -> ProbeResult:
    """Judge the seeds: honoured, partly_honoured, ignored, greedy, deterministic, too_noisy or incomplete."""
    calls = tuple(calls)
    answers = read_answers(call for call in calls if call.group != GREEDY)
    prompts = _prompts(answers.answered)
    if not answers.is_enough or not prompts:
        return make_incomplete_finding(answers)
    numbers = {**_numbers(prompts, answers, random_seed), **_as_greedy(prompts, calls)}
    return ProbeResult(_state(numbers), numbers)


def _prompts(answered: Iterable[AnsweredCall]) -> list[_Prompt]:
    """Return the prompts with at least two answers in each group; others cannot be compared."""
    prompts = []
    for index, group in group_by_prompt(answered).items():
        same = [each for each in group if each.call.group == "same"]
        different = [each for each in group if each.call.group == "different"]
        if min(len(same), len(different)) >= 2:
            prompts.append(_prompt(index, [*same, *different], len(same)))
    return prompts


def _prompt(index: int, group: Sequence[AnsweredCall], n_same: int) -> _Prompt:
    answers = tuple(each.answer for each in group)
    length = max(1, *map(len, answers))
    alike = np.zeros((len(group), len(group)), dtype=np.int64)
    for i, j in combinations(range(len(group)), 2):
        alike[i, j] = alike[j, i] = length if answers[i] == answers[j] else count_shared(answers[i], answers[j])
    return _Prompt(index, tuple(each.call for each in group), answers, n_same, length, alike)


def _numbers(prompts: Sequence[_Prompt], answers: Answers, random_seed: int) -> dict[str, Any]:
    effect, p_value = _effect(prompts, random_seed)
    same, different = (_hazard(prompts, group) for group in ("same", "different"))
    rho = same.per_token / different.per_token
    spread = math.exp(WIDTH * math.sqrt(1 / (same.n_distinct + 0.5) + 1 / (different.n_distinct + 0.5)))
    unseeded = [_pairs(prompt, prompt.different) for prompt in prompts]
    n_pairs = sum(map(len, unseeded))
    n_identical = sum(shares.count(prompt.length) for prompt, shares in zip(prompts, unseeded, strict=True))
    return {
        **answers.counts,
        "compared": answers.unit,
        "n_prompts": len(prompts),
        "effect": effect,
        "p_value": p_value,
        "n_permutations": N_DEALS,
        "hazard_same": same.per_token,
        "hazard_different": different.per_token,
        "rho": rho,
        "rho_low": rho / spread,
        "rho_high": rho * spread,
        **_loyalty(prompts),
        "n_pairs_different": n_pairs,
        "n_identical_different": n_identical,
        "shared_same": fmean(share for prompt in prompts for share in _pairs(prompt, prompt.same)),
        "shared_different": fmean(share for shares in unseeded for share in shares),
        "n_more_calls": max(ENOUGH_CALLS - answers.n_calls, 0),
        "prompts": [_summarise_prompt(prompt) for prompt in prompts],
    }


def _state(numbers: dict[str, Any]) -> str:
    if numbers["n_identical_different"] >= DETERMINISTIC * numbers["n_pairs_different"]:
        is_greedy = 0 < numbers["n_prompts_greedy"] == numbers["n_as_greedy"]
        return "greedy" if is_greedy else "deterministic"
    if numbers["p_value"] <= SEED_SIGNIFICANT:
        is_dropped = min(numbers["p_early"], numbers["p_bucket"]) < SEED_SIGNIFICANT
        return "partly_honoured" if is_dropped or numbers["loyal_share"] < LOYAL else "honoured"
    return "ignored" if numbers["rho_low"] > NOT_IGNORED else "too_noisy"


def _effect(prompts: Sequence[_Prompt], random_seed: int) -> tuple[float, float]:
    """Return how much more calls with one seed share, as a fraction of the length, and its p-value."""
    rng = np.random.default_rng(random_seed)
    observed, drawn = 0.0, np.zeros(N_DEALS)
    for prompt in prompts:
        labels = np.zeros((1, len(prompt.answers)))
        labels[:, : prompt.n_same] = 1
        observed += float(_separation(prompt, labels)[0]) / len(prompts)
        dealt = deal_labels(rng, len(prompt.answers), prompt.n_same)
        drawn += _separation(prompt, dealt) / len(prompts)
    return observed, permutation_p_value(observed, drawn)


def _separation(prompt: _Prompt, labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each label row the mean shared length of ones minus that of zeros, by length."""
    alike = prompt.alike.astype(np.float64)
    means = [((side @ alike) * side).sum(axis=1) / (n * (n - 1)) for side, n in _sides(prompt, labels)]
    difference: NDArray[np.float64] = (means[0] - means[1]) / prompt.length
    return difference


def _sides(prompt: _Prompt, labels: NDArray[np.float64]) -> list[tuple[NDArray[np.float64], int]]:
    return [(labels, prompt.n_same), (1 - labels, len(prompt.answers) - prompt.n_same)]


def _hazard(prompts: Sequence[_Prompt], group: str) -> _Hazard:
    n_parted, n_tokens, n_distinct = 0, 0, 0
    for prompt in prompts:
        members = [prompt.answers[index] for index in (prompt.same if group == "same" else prompt.different)]
        for one, other in combinations(members, 2):
            n_parted += one != other
            n_tokens += min(count_shared(one, other) + 1, max(len(one), len(other)))
        n_distinct += len(set(members)) - 1
    return _Hazard((n_parted + 0.5) / max(n_tokens, 1), n_distinct)


def _loyalty(prompts: Sequence[_Prompt]) -> dict[str, Any]:
    """Count the calls with one seed that follow its text, the one nearest to all others of the prompt.

    A call is loyal that shares more with that text than nearly all unseeded pairs share, or is that text. Noise makes
    some part as early as that, as fast as it makes loyal calls part later; more of them have lost their seed.
    """
    unseeded = [share / prompt.length for prompt in prompts for share in _pairs(prompt, prompt.different)]
    limit = float(np.quantile(unseeded, AS_UNSEEDED))
    parted_at, by_bucket = [], dict[int | str | None, list[bool]]()
    n_later, n_tokens, early = 0, 0, list[int]()
    for prompt in prompts:
        centre = int(np.argmax(prompt.alike[: prompt.n_same, : prompt.n_same].sum(axis=1)))
        for index in prompt.same:
            share, is_centre = int(prompt.alike[centre, index]), prompt.answers[index] == prompt.answers[centre]
            is_loyal = is_centre or share > limit * prompt.length
            parted_at += [] if is_centre else [share]
            by_bucket.setdefault(prompt.calls[index].served_by, []).append(is_loyal)
            if index != centre:  # which is loyal by its choice
                early.append(math.floor(limit * prompt.length) + 1)
                n_later += is_loyal and not is_centre
                n_tokens += max(share - early[-1] + 1, 0) if is_loyal else 0
    n_same = sum(prompt.n_same for prompt in prompts)
    n_loyal = sum(map(sum, by_bucket.values()))
    hazard = min((n_later + 0.5) / max(n_tokens, 1), 1.0)
    return {
        "n_same": n_same,
        "n_loyal": n_loyal,
        "loyal_share": n_loyal / n_same,
        "hazard_loyal": hazard,
        "p_early": binomial_tail(len(early), n_same - n_loyal, fmean(1 - (1 - hazard) ** n for n in early)),
        "is_exact": not parted_at,
        "n_parted": len(parted_at),
        "median_parted_at": median(parted_at) if parted_at else None,
        **_by_bucket(by_bucket),
    }


def _by_bucket(by_bucket: dict[int | str | None, list[bool]]) -> dict[str, Any]:
    """Count loyal answers by bucket, with the p-value of the most extreme bucket.

    p_bucket: Bonferroni-corrected by the number of buckets; 1 for a single one. For an external server a bucket is its
    backend.
    """
    rows = [
        {"bucket": bucket, "n_same": len(loyal), "n_loyal": sum(loyal)}
        for bucket, loyal in sorted(by_bucket.items(), key=lambda item: (item[0] is None, str(item[0]).zfill(20)))
    ]
    n_same = sum(len(loyal) for loyal in by_bucket.values())
    n_lost = n_same - sum(map(sum, by_bucket.values()))
    chances = {
        bucket: hypergeometric_tail(n_same, n_lost, len(loyal), len(loyal) - sum(loyal))
        for bucket, loyal in by_bucket.items()
    }
    worst = min(chances, key=chances.__getitem__)
    p_value = min(len(chances) * chances[worst], 1.0)
    return {
        "loyal_by_bucket": rows,
        "p_bucket": p_value,
        "dropping_bucket": worst if p_value < SEED_SIGNIFICANT else None,
    }


def _as_greedy(prompts: Sequence[_Prompt], calls: Sequence[ProbeExchange]) -> dict[str, Any]:
    """Count the prompts whose greedy text is also a `different` one; a dropped temperature gives only it.

    Prompts count if both groups have answers; a probe without the greedy group counts none.
    """
    greedy = group_by_prompt(read_answers(call for call in calls if call.group == GREEDY).answered)
    known = {prompt: {(each.call.token_ids, each.call.text) for each in group} for prompt, group in greedy.items()}
    matches = [
        {(prompt.calls[index].token_ids, prompt.calls[index].text) for index in prompt.different} & known[prompt.index]
        for prompt in prompts
        if prompt.index in known
    ]
    return {"n_prompts_greedy": len(matches), "n_as_greedy": sum(map(bool, matches))}


def _pairs(prompt: _Prompt, members: range) -> list[int]:
    return [int(prompt.alike[i, j]) for i, j in combinations(members, 2)]


def _summarise_prompt(prompt: _Prompt) -> dict[str, Any]:
    same, different = _pairs(prompt, prompt.same), _pairs(prompt, prompt.different)
    return {
        "prompt": prompt.index,
        "length": prompt.length,
        "n_same": prompt.n_same,
        "n_different": len(prompt.different),
        "n_distinct_same": len({prompt.answers[index] for index in prompt.same}),
        "n_distinct_different": len({prompt.answers[index] for index in prompt.different}),
        "shared_same": fmean(same),
        "shared_different": fmean(different),
        "pairs_same": same,
        "pairs_different": different,
    }
