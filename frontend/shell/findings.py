"""A page's main finding (a claim for the first line, a sentence after it), and a row of numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Headline:
    claim: str
    rest: str = ""


def split_claim(sentence: str) -> Headline:
    """Part a sentence after its first clause, the claim: numbers follow a colon or a full stop."""
    ends = [end for end in (sentence.find(": "), sentence.find(". ")) if end >= 0]
    if not ends:
        return Headline(sentence)
    return Headline(sentence[: min(ends) + 1], sentence[min(ends) + 2 :])


@dataclass(frozen=True, slots=True)
class NumberRow:
    """A number as text. means: what it says, in words."""

    label: str
    value: str
    means: str = ""
