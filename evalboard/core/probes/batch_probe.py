"""Judge whether batching changes greedy answers to copies of a prompt (docs/probes.md).

Counts and shares are of texts: copies whose tokens are all alike gave one text. Where there are several prompts,
numbers are pooled over them, and texts of different prompts are never compared.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any

from evalboard.core.probes.answers import (
    Answer,
    Answers,
    certify,
    count_shared,
    group_by_prompt,
    make_incomplete_finding,
    read_answers,
)
from evalboard.core.probes.call import ProbeExchange, ProbeResult

NEARLY = 0.95  # of the copies have their prompt's commonest text
RAREFIED = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
MAX_PLACES = 50  # of first divergence, the most frequent ones


@dataclass(frozen=True, slots=True)
class Copies:
    """How often each text was the answer to one prompt, the most common first. rounds: of these copies.

    rounds: those that the copies were decoded in.
    """

    prompt: int
    texts: tuple[tuple[Answer, int], ...]
    rounds: frozenset[int]

    @property
    def counts(self) -> list[int]:
        return [count for _, count in self.texts]

    @property
    def n(self) -> int:
        return sum(self.counts)


def judge_batch_probe(calls: Iterable[ProbeExchange]) -> ProbeResult:
    """Judge the batching by its copies: invariant, nearly, variant or incomplete."""
    answers = read_answers(call for call in calls if call.group == "copy")
    prompts = group_copies(answers)
    if not answers.is_enough or not prompts:
        return make_incomplete_finding(answers)
    numbers = {
        **answers.counts,
        "compared": answers.unit,
        **({"is_remote": True} if any(each.call.is_remote for each in answers.answered) else {}),
        "n_prompts": len(prompts),
        **summarise_copies(prompts),
        "batch_max": _company(answers),
        "first_divergences": _places(prompts, has_ids=answers.unit == "token"),
        "prompts": [{"prompt": each.prompt, **summarise_copies([each])} for each in prompts],
    }
    return ProbeResult(_state(numbers), numbers)


def group_copies(answers: Answers) -> list[Copies]:
    """Return the texts of each prompt that has at least two copies."""
    copies = []
    for prompt, group in group_by_prompt(answers.answered).items():
        counts = Counter(each.answer for each in group)
        if counts.total() >= 2:
            texts = tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
            copies.append(Copies(prompt, texts, frozenset(each.call.round for each in group)))
    return copies


def agreement(prompts: Sequence[Copies]) -> float:
    """Return A, the unbiased probability that two copies of one prompt have the same text."""
    alike = sum(count * (count - 1) for each in prompts for count in each.counts)
    return alike / sum(each.n * (each.n - 1) for each in prompts)


def rarefied(counts: Sequence[int], m: int) -> float:
    """Return the expected number of distinct texts among m copies, to compare U at equal m."""
    n = sum(counts)
    return float(sum(1 - Fraction(math.comb(n - count, m), math.comb(n, m)) for count in counts))


def summarise_copies(prompts: Sequence[Copies]) -> dict[str, Any]:
    """Return the figures of one prompt, or of several pooled: U and rarefied values are summed.

    `certificate` is the share of rounds with another text than the commonest that so many rounds without one rule out;
    None where there was one. Copies of one round share their steps, so that they are one witness and not many.
    `entropy_bits` is biased low where copies are few.
    """
    n = sum(each.n for each in prompts)
    n_modal = sum(each.counts[0] for each in prompts)
    least = min(each.n for each in prompts)
    n_rounds = len(frozenset[int]().union(*(each.rounds for each in prompts)))
    entropies = [each.n * _entropy_bits(each.counts) for each in prompts]
    return {
        "n_copies": n,
        "n_rounds": n_rounds,
        "n_unique": sum(len(each.texts) for each in prompts),
        "n_modal": n_modal,
        "modal_share": n_modal / n,
        "agreement": agreement(prompts),
        "entropy_bits": math.fsum(entropies) / n,
        "certificate": certify(n_rounds) if n_modal == n else None,
        "rarefied": [
            {"m": m, "n_unique": math.fsum(rarefied(each.counts, m) for each in prompts)}
            for m in RAREFIED
            if m <= least
        ],
    }


def _state(numbers: Mapping[str, Any]) -> str:
    if numbers["n_unique"] == numbers["n_prompts"]:
        return "invariant"
    return "nearly" if numbers["modal_share"] >= NEARLY else "variant"


def _entropy_bits(counts: Sequence[int]) -> float:
    n = sum(counts)
    return math.fsum(count / n * math.log2(n / count) for count in counts)


def _company(answers: Answers) -> dict[str, Any] | None:
    """Summarise the largest batch of each copy: min, median, max, how many at size 1; None if unknown."""
    sizes = [each.call.batch_max for each in answers.answered if each.call.batch_max is not None]
    if not sizes:
        return None
    return {"min": min(sizes), "median": median(sizes), "max": max(sizes), "n_alone": sizes.count(1)}


def _places(prompts: Sequence[Copies], *, has_ids: bool) -> list[dict[str, Any]]:
    """List where texts leave their prompt's commonest one, the most frequent places first.

    token_modal, token_other: ids, None where that text has ended, and where only characters are known.
    """
    tallies: Counter[tuple[int, int, Any, Any]] = Counter()
    for each in prompts:
        modal = each.texts[0][0]
        for text, count in each.texts[1:]:
            place = count_shared(modal, text)
            tallies[each.prompt, place, _token(modal, place, has_ids), _token(text, place, has_ids)] += count
    rows = sorted(tallies.items(), key=lambda item: (-item[1], item[0][:2], str(item[0])))
    names = ("prompt", "position", "token_modal", "token_other")
    return [{**dict(zip(names, key, strict=True)), "n": count} for key, count in rows[:MAX_PLACES]]


def _token(text: Answer, place: int, has_ids: bool) -> int | None:
    return text[place] if has_ids and place < len(text) else None
