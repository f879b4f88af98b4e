"""A page's main finding: a claim for the first line, and a sentence after it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Headline:
    claim: str
    rest: str = ""
