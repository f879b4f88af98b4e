"""Border-input canary: search for prompts with evenly split first words, and watch them by texts.

A small change of weights, quantisation or template moves such a split first. No logprobs are needed: an answer is its
first word. Word shares of the newest answers are compared with those before by the energy distance of categories, the
sum of their squared differences, and chance is dealt exactly: within a prompt, any answer is as likely to be one of
the newest.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.probes.answers import make_incomplete_finding, read_answers
from evalboard.core.probes.call import ProbeExchange, ProbeResult

MAX_TOP_SHARE = 0.75  # of a prompt's commonest word, for a prompt to be kept
MIN_KEPT = 2  # prompts
BORDER_WINDOWS = (1, 4, 16)  # newest probes that are compared with those before
MIN_EARLIER = 4  # probes before a window
MAX_EARLIER = 64  # probes that are looked at, the window included
ALARMS_PER_ROUND = 1e-5  # by chance alone: 1 % of series of 1,000 rounds, a round being each prompt asked once
FIRST_DEALS, MAX_DEALS = 200, 20_000  # at once; ten times as many each time
ENOUGH = 5  # deals that reach the distance: no more are dealt
MAX_WORDS = 20  # of a prompt; the rarer ones count as one word, so that time and memory have a limit
MAX_WORD_CHARS = 80

Counts = dict[int, dict[str, int]]  # by prompt, how often each first word came


def plan_border_calls(parameters: Mapping[str, Any], n_prompts: int) -> tuple[ProbeExchange, ...]:
    """Return the calls: each prompt once a round, in an order of its own, so that no load has a favourite."""
    rng = np.random.default_rng(parameters["random_seed"])
    n_rounds = parameters["search_calls" if parameters["search"] else "calls"]
    return tuple(
        ProbeExchange(prompt=int(prompt), group="ask", round=index)
        for index in range(n_rounds)
        for prompt in rng.permutation(n_prompts)
    )


def judge_border_probe(
    calls: Iterable[ProbeExchange], earlier: Sequence[Mapping[str, Any]], *, parameters: Mapping[str, Any]
) -> ProbeResult:
    """Return the result of a search or a watch.

    A search is `found` or `none_found`, a watch `too_few`, `stable` or `changed`, and both may be `incomplete`.

    earlier: the numbers of watches of the same prompts since the last change, oldest first, with the one that found it.
    The answers of the search are no part of them: they were chosen for being even.
    """
    answers = read_answers(calls)
    if not answers.is_enough:
        return make_incomplete_finding(answers)
    counts = _count_words(each.call for each in answers.answered)
    numbers = {**answers.counts, "words": _dump_counts(counts), "n_prompts": len(parameters["prompts"])}
    if parameters["search"]:
        return _judge_search(counts, numbers, parameters["n_prompts"])
    watched = judge_watch([*(_parse_counts(each["words"]) for each in earlier), counts], parameters=parameters)
    return ProbeResult(watched.state, {**numbers, **watched.numbers})


def judge_watch(probes: Sequence[Counts], *, parameters: Mapping[str, Any]) -> ProbeResult:
    """Judge the newest of some watches, which come oldest first, by the word counts of each."""
    probes = probes[-MAX_EARLIER:]
    rng = np.random.default_rng([parameters["random_seed"], len(probes)])
    level = ALARMS_PER_ROUND * parameters["calls"] / len(BORDER_WINDOWS)
    total = _add(probes)
    windows = [
        {"n_probes": n, "n_earlier": len(probes) - n, **_compare(total, _add(probes[-n:]), level, rng)}
        for n in BORDER_WINDOWS
        if len(probes) - n >= MIN_EARLIER
    ]
    numbers: dict[str, Any] = {"n_earlier": len(probes) - 1, "windows": windows, "level": level}
    if not windows:
        return ProbeResult("too_few", numbers | {"n_more": MIN_EARLIER + 1 - len(probes)})
    is_changed = any(each["p_value"] <= level for each in windows)
    return ProbeResult("changed" if is_changed else "stable", numbers)


def read_first_word(text: str) -> str:
    """Return an answer's first word, without the marks around it; "" of an empty one."""
    words = text.split(maxsplit=1)
    return words[0].strip(".,;:!?*\"'`()[]")[:MAX_WORD_CHARS].lower() if words else ""


def _count_words(calls: Iterable[ProbeExchange]) -> Counts:
    counts: dict[int, Counter[str]] = {}
    for call in calls:
        counts.setdefault(call.prompt, Counter())[read_first_word(call.text)] += 1
    return {prompt: dict(sorted(words.items())) for prompt, words in sorted(counts.items())}


def _judge_search(counts: Counts, numbers: dict[str, Any], n_wanted: int) -> ProbeResult:
    """Keep the prompts whose commonest word has the smallest share, where at least two words came."""
    tops = {prompt: max(words.values()) / sum(words.values()) for prompt, words in counts.items()}
    split = sorted(
        (prompt for prompt in tops if tops[prompt] <= MAX_TOP_SHARE), key=lambda prompt: (tops[prompt], prompt)
    )
    chosen = split[:n_wanted]
    numbers |= {"kept": chosen, "top_shares": [tops[prompt] for prompt in chosen]}
    return ProbeResult("found" if len(chosen) >= MIN_KEPT else "none_found", numbers)


def _compare(total: Counts, window: Counts, level: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return the distance of the window from what was before, its p-value and the prompts with most of it.

    total: of the window and all before it. Prompts that were not answered on both sides are left out.
    """
    prompts = [prompt for prompt, words in window.items() if sum(words.values()) < sum(total[prompt].values())]
    tables = [_table(total[prompt], window[prompt]) for prompt in prompts]
    parts = [float(_distances(table[0], table[None, 1])[0]) for table in tables]
    distance = float(sum(parts))
    order = sorted(range(len(prompts)), key=lambda place: -parts[place])
    return {
        "distance": distance,
        "p_value": _find_p(distance, tables, level, rng),
        "n_calls": int(sum(table[1].sum() for table in tables)),
        "most_moved": [prompts[place] for place in order[:3] if parts[place] > 0],
    }


def _find_p(distance: float, tables: Sequence[NDArray[np.int64]], level: float, rng: np.random.Generator) -> float:
    """Return the p-value: the share of deals that reach the distance, from few deals where it is large.

    It ends once ENOUGH of them reach the distance, which makes no alarm more likely: an alarm, early or late, has at
    most level · (1 + n) − 1 such deals among the first n, n being the first size at which an early end can be one.
    """
    n_reached = n_dealt = 0
    n_most = sum(FIRST_DEALS * 10**power for power in range(3)) + round(4 / level)
    while n_reached < ENOUGH and n_dealt < n_most:
        n = min(max(10 * n_dealt, FIRST_DEALS), MAX_DEALS, n_most - n_dealt)
        dealt = np.zeros(n)
        for table in tables:
            dealt += _distances(table[0], rng.multivariate_hypergeometric(table[0], int(table[1].sum()), size=n))
        n_reached += int(np.count_nonzero(dealt >= distance - 1e-9))
        n_dealt += n
    return (1 + n_reached) / (1 + n_dealt)


def _distances(totals: NDArray[np.int64], dealt: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the energy distance of each deal times n1 n2 / (n1 + n2), float64[n].

    dealt: int64[n, words].
    """
    n_all, n_now = int(totals.sum()), int(dealt[0].sum())
    n_before = n_all - n_now
    gaps = dealt / n_now - (totals - dealt) / n_before
    return np.asarray((gaps**2).sum(axis=1) * n_now * n_before / n_all)


def _table(total: Mapping[str, int], now: Mapping[str, int]) -> NDArray[np.int64]:
    """Return int64[2, words]: the counts of each word, in all and in the window, rare words as one.

    Which words are rare depends on all answers alone, so a deal of them is as likely as before.
    """
    order = sorted(total, key=lambda word: (-total[word], word))
    counts = np.array([[total[word] for word in order], [now.get(word, 0) for word in order]], np.int64)
    if len(order) <= MAX_WORDS:
        return counts
    return np.column_stack([counts[:, : MAX_WORDS - 1], counts[:, MAX_WORDS - 1 :].sum(axis=1)])


def _add(probes: Sequence[Counts]) -> Counts:
    sums: Counts = {}
    for counts in probes:
        for prompt, words in counts.items():
            own = sums.setdefault(prompt, {})
            for word, n in words.items():
                own[word] = own.get(word, 0) + n
    return sums


def _dump_counts(counts: Counts) -> list[dict[str, Any]]:
    return [{"prompt": prompt, "counts": words} for prompt, words in counts.items()]


def _parse_counts(stored: Iterable[Mapping[str, Any]]) -> Counts:
    return {row["prompt"]: dict(row["counts"]) for row in stored}
