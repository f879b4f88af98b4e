"""Two responses of one case: the noise that they are judged by, and what both runs have in common."""

from runs.pairs import copies, pair_facts
from runs.pairs.pair_facts import WORDS, draws_of, planned_draws, stored_words
from runs.pairs.pair_noise import measure_pair_noise

__all__ = ["WORDS", "copies", "draws_of", "measure_pair_noise", "pair_facts", "planned_draws", "stored_words"]
