"""Prepare the answers of a probe's calls for comparing, and count the calls without one."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evalboard.core.probes.call import ProbeExchange, ProbeResult

MIN_ANSWERED = 0.5  # of the calls: with fewer answers, what came back may be just what the failures spared
MAX_ERRORS = 3
MAX_ERROR_CHARS = 300
UNSEEN = 0.05  # a share that is higher would have shown itself in so many trials, 95 times in 100

Answer = tuple[Any, ...]  # token ids, or characters where some answer has no ids


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A call that has an answer, with that answer."""

    call: ProbeExchange
    answer: Answer


@dataclass(frozen=True, slots=True)
class Answers:
    """The answered calls, in an order that does not depend on the one they came in.

    unit: "token" or "character". errors: the commonest words of the calls without an answer, with their counts.
    n_marked: answers that are no clean samples, for they came of a cache, of a fallback or of a retry; left out.
    """

    answered: tuple[AnsweredCall, ...]
    n_calls: int
    unit: str
    errors: tuple[tuple[str, int], ...]
    n_marked: int = 0

    @property
    def n_failed(self) -> int:
        return self.n_calls - self.n_marked - len(self.answered)

    @property
    def is_enough(self) -> bool:
        return len(self.answered) > 0 and len(self.answered) >= MIN_ANSWERED * self.n_calls

    @property
    def counts(self) -> dict[str, Any]:
        """Return the numbers that every finding has; `n_marked` only where there are any."""
        errors = [{"error": error, "n": n} for error, n in self.errors]
        marked = {"n_marked": self.n_marked} if self.n_marked else {}
        return {"n_calls": self.n_calls, "n_failed": self.n_failed, "errors": errors, **marked}


def read_answers(calls: Iterable[ProbeExchange], *, by_character: bool = False) -> Answers:
    """Return the answers of calls, sorted by prompt, group and answer, with counts of errors and marks."""
    calls = tuple(calls)
    answered = [call for call in calls if not call.error and not call.marks]
    n_marked = sum(bool(call.marks) and not call.error for call in calls)
    has_ids = not by_character and all(call.token_ids or not call.text for call in answered)
    entries = [AnsweredCall(call, call.token_ids if has_ids else tuple(call.text)) for call in answered]
    entries.sort(key=lambda each: (each.call.prompt, each.call.group, each.answer, str(each.call)))
    words = Counter(" ".join(call.error.split())[:MAX_ERROR_CHARS] for call in calls if call.error)
    errors = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:MAX_ERRORS]
    return Answers(tuple(entries), len(calls), "token" if has_ids else "character", tuple(errors), n_marked)


def group_by_prompt(answered: Iterable[AnsweredCall]) -> dict[int, list[AnsweredCall]]:
    groups: dict[int, list[AnsweredCall]] = {}
    for each in answered:
        groups.setdefault(each.call.prompt, []).append(each)
    return groups


def count_shared(one: Answer, other: Answer) -> int:
    """Count the tokens that both have alike from the start: where they part, or the length of the shorter."""
    if one == other:
        return len(one)
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (ours, theirs) in pairs if ours != theirs), min(len(one), len(other)))


def certify(n: int) -> float:
    """Return the share of other answers that n trials without one rule out, 95 % sure."""
    return 1 - math.pow(UNSEEN, 1 / n)


def make_incomplete_finding(answers: Answers) -> ProbeResult:
    """Return the finding where too little came back."""
    return ProbeResult("incomplete", answers.counts)
