"""Two responses of one case: the noise that they are judged by, and what both runs have in common."""

from runs.pairs import pair_facts
from runs.pairs.pair_facts import draws_of
from runs.pairs.pair_noise import measure_pair_noise
from runs.pairs.words import WORDS, stored_words

__all__ = ["WORDS", "draws_of", "measure_pair_noise", "pair_facts", "stored_words"]
