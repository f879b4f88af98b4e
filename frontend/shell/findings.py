"""What a page found, in words: a claim for the first line and the rest of the sentence after it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Headline:
    claim: str
    rest: str = ""
