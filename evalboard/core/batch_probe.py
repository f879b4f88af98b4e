"""Whether what else is decoded moves an answer: copies of a prompt amid other requests, greedily (docs/probes.md).

Counts and shares are of texts: copies whose tokens are all alike gave one text. Where there are several prompts,
numbers are pooled over them, and nothing is held across prompts.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any

from evalboard.core.probe_answers import Answer, Answers, by_prompt, failed_words, incomplete, read, shared
from evalboard.core.probe_call import Call, Finding
from evalboard.core.verdict_words import counted

NEARLY = 0.95  # of the copies have their prompt's commonest text
UNSEEN = 0.05  # a share that is higher would have shown itself in so many rounds, 95 times in 100
RAREFIED = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
MAX_PLACES = 50  # of first divergence, the most frequent ones


@dataclass(frozen=True, slots=True)
class Copies:
    """How often each text came of one prompt, the commonest first; texts as they are compared (probe_answers).

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


def find(calls: Iterable[Call]) -> Finding:
    """What the copies say of batching: invariant, nearly, variant or incomplete."""
    answers = read(call for call in calls if call.group == "copy")
    prompts = copies(answers)
    if not answers.is_enough or not prompts:
        return incomplete(answers, "half of the copies, and two of some prompt")
    numbers = {
        **answers.counts,
        "compared": answers.unit,
        "n_prompts": len(prompts),
        **summary(prompts),
        "batch_max": _company(answers),
        "first_divergences": _places(prompts, has_ids=answers.unit == "token"),
        "prompts": [{"prompt": each.prompt, **summary([each])} for each in prompts],
    }
    state = _state(numbers)
    return Finding(state, _sentence(state, numbers) + failed_words([answers]), numbers)


def copies(answers: Answers) -> list[Copies]:
    """The texts of each prompt that has at least two copies: of one alone nothing can be said."""
    found = []
    for prompt, group in by_prompt(answers.answered).items():
        counts = Counter(each.answer for each in group)
        if counts.total() >= 2:
            texts = tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
            found.append(Copies(prompt, texts, frozenset(each.call.round for each in group)))
    return found


def agreement(prompts: Sequence[Copies]) -> float:
    """A, the chance that two copies of one prompt have the same text: of the pairs of copies, without bias."""
    alike = sum(count * (count - 1) for each in prompts for count in each.counts)
    return alike / sum(each.n * (each.n - 1) for each in prompts)


def rarefied(counts: Sequence[int], m: int) -> float:
    """How many texts m of the copies have on average: U grows with the copies, and is compared at equal m only."""
    n = sum(counts)
    return float(sum(1 - Fraction(math.comb(n - count, m), math.comb(n, m)) for count in counts))


def summary(prompts: Sequence[Copies]) -> dict[str, Any]:
    """The numbers of one prompt, or of several pooled: U and its rarefied values are sums over the prompts.

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
        "certificate": 1 - UNSEEN ** (1 / n_rounds) if n_modal == n else None,
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
    """The most requests that shared a step with a copy, over the copies; None where no engine said so."""
    sizes = [each.call.batch_max for each in answers.answered if each.call.batch_max is not None]
    if not sizes:
        return None
    return {"min": min(sizes), "median": median(sizes), "max": max(sizes), "n_alone": sizes.count(1)}


def _places(prompts: Sequence[Copies], *, has_ids: bool) -> list[dict[str, Any]]:
    """Where texts leave their prompt's commonest one, the most frequent places first.

    token_modal, token_other: ids, None where that text has ended, and where only characters are known.
    """
    found: Counter[tuple[int, int, Any, Any]] = Counter()
    for each in prompts:
        modal = each.texts[0][0]
        for text, count in each.texts[1:]:
            place = shared(modal, text)
            found[each.prompt, place, _token(modal, place, has_ids), _token(text, place, has_ids)] += count
    rows = sorted(found.items(), key=lambda item: (-item[1], item[0][:2], str(item[0])))
    names = ("prompt", "position", "token_modal", "token_other")
    return [{**dict(zip(names, key, strict=True)), "n": count} for key, count in rows[:MAX_PLACES]]


def _token(text: Answer, place: int, has_ids: bool) -> int | None:
    return text[place] if has_ids and place < len(text) else None


def _sentence(state: str, numbers: Mapping[str, Any]) -> str:
    n, n_unique = numbers["n_copies"], numbers["n_unique"]
    of_prompts = counted(numbers["n_prompts"], "prompt")
    if state == "invariant":
        same = "came out the same" if numbers["n_prompts"] == 1 else "came out like the others of their prompt"
        share = f"{100 * numbers['certificate']:.2g} %"
        limit = f"{counted(numbers['n_rounds'], 'round')} rule out that more than {share} come out otherwise, 95 % sure"
        said = f"All {n:,} copies of {of_prompts} {same}: {limit}."
    else:
        other = n - numbers["n_modal"]
        share = f"{other:,} of {n:,} copies ({100 * other / n:.1f} %) did not have their prompt's commonest text"
        start = "Nearly invariant" if state == "nearly" else "What else is decoded changes answers"
        agree = f"two copies agree {100 * numbers['agreement']:.1f} % of the time"
        texts = f"{of_prompts} gave {n_unique:,} texts, and {agree}"
        said = f"{start}: {share}; {texts}.{_where(numbers['first_divergences'], other)}"
    return said + _alone(numbers["batch_max"], n)


def _where(places: Sequence[Mapping[str, Any]], n_other: int) -> str:
    first = places[0]
    where = f"at position {first['position']} of prompt {first['prompt'] + 1}"
    return f" {first['n']:,} of the {n_other:,} leave it {where}."


def _alone(company: Mapping[str, Any] | None, n: int) -> str:
    """What takes the finding's meaning away: copies that shared no step with anything."""
    if company is None or not company["n_alone"]:
        return ""
    if company["max"] == 1:
        return " Each was decoded alone, though, so this says that answers repeat, and nothing of batches."
    return f" {company['n_alone']:,} of the {n:,} were decoded alone."
