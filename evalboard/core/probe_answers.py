"""The answers of a probe's calls as they are held against each other, and what became of the calls without one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.core.probe_call import Call, Finding
from evalboard.core.verdict_words import counted

LEAST_ANSWERED = 0.5  # of the calls: with fewer answers, what came back may be just what the failures spared
MAX_ERRORS = 3
MAX_ERROR_CHARS = 300

Answer = tuple[Any, ...]  # token ids, or characters where some answer has no ids


@dataclass(frozen=True, slots=True)
class Answered:
    """A call that has an answer, with that answer."""

    call: Call
    answer: Answer


@dataclass(frozen=True, slots=True)
class Answers:
    """The answered calls, in an order that does not depend on the one they came in.

    unit: "token" or "character". errors: the commonest words of the calls without an answer, with their counts.
    """

    answered: tuple[Answered, ...]
    n_calls: int
    unit: str
    errors: tuple[tuple[str, int], ...]

    @property
    def n_failed(self) -> int:
        return self.n_calls - len(self.answered)

    @property
    def is_enough(self) -> bool:
        return len(self.answered) > 0 and len(self.answered) >= LEAST_ANSWERED * self.n_calls

    @property
    def counts(self) -> dict[str, Any]:
        """The numbers that every finding has."""
        errors = [{"error": error, "n": n} for error, n in self.errors]
        return {"n_calls": self.n_calls, "n_failed": self.n_failed, "errors": errors}


def read(calls: Iterable[Call], *, by_character: bool = False) -> Answers:
    """Take the answers out of calls; those of one prompt stand together, and equal ones beside each other."""
    calls = tuple(calls)
    answered = [call for call in calls if not call.error]
    has_ids = not by_character and all(call.token_ids or not call.text for call in answered)
    found = [Answered(call, call.token_ids if has_ids else tuple(call.text)) for call in answered]
    found.sort(key=lambda each: (each.call.prompt, each.call.group, each.answer, str(each.call)))
    words = Counter(" ".join(call.error.split())[:MAX_ERROR_CHARS] for call in calls if call.error)
    errors = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:MAX_ERRORS]
    return Answers(tuple(found), len(calls), "token" if has_ids else "character", tuple(errors))


def by_prompt(answered: Iterable[Answered]) -> dict[int, list[Answered]]:
    groups: dict[int, list[Answered]] = {}
    for each in answered:
        groups.setdefault(each.call.prompt, []).append(each)
    return groups


def shared(one: Answer, other: Answer) -> int:
    """How many tokens both have alike from the start: the place where they part, or the length of the shorter."""
    if one == other:
        return len(one)
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (ours, theirs) in pairs if ours != theirs), min(len(one), len(other)))


def incomplete(answers: Answers, needed: str) -> Finding:
    """The finding where too little came back; `needed`: what the probe takes, as the rest of "It takes …"."""
    came = (
        f"{len(answers.answered):,} of {answers.n_calls:,} calls came back with an answer, and that is too few to say."
    )
    why = f" Most often: {answers.errors[0][0]}" if answers.errors else ""
    return Finding("incomplete", f"{came} It takes {needed}.{why}", answers.counts)


def failed_words(answers: Sequence[Answers]) -> str:
    """What to add to a finding that some calls do not stand behind; "" where all do."""
    n = sum(each.n_failed for each in answers)
    return f" {counted(n, 'call')} failed and {'is' if n == 1 else 'are'} left out." if n else ""


def chance(p_value: float) -> str:
    """ "p = 0.031", "p < 0.001"."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
