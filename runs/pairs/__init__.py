"""Two responses of one case: where they part, by which noise, and what both runs have in common."""

from runs.pairs import pair_facts
from runs.pairs.pair_facts import draws_of
from runs.pairs.pair_noise import PairNoise
from runs.pairs.pair_parting import TracedText, distance_tables, find_parting, stored_words, vocabularies

__all__ = [
    "PairNoise",
    "TracedText",
    "distance_tables",
    "draws_of",
    "find_parting",
    "pair_facts",
    "stored_words",
    "vocabularies",
]
