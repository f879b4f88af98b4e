"""Where two stored responses part, and whose words their tokens are: the same for one pair and for a comparison."""

import functools
from dataclasses import dataclass

from evalboard.core.divergence import Divergence, find_divergence, find_text_divergence
from evalboard.core.trace import Trace
from evalboard.core.vocabulary import Vocabulary
from runs.models import Vocabulary as VocabularyRow


@dataclass(frozen=True, slots=True)
class Told:
    """What shows where a response parts from another. trace, vocabulary_id: None where nobody stored one.

    is_logged: read from another tool's log, whose numbers are decimals.
    """

    text: str
    trace: Trace | None
    vocabulary_id: int | None
    is_logged: bool


def find_parting(baseline: Told, candidate: Told) -> Divergence | None:
    """How two responses part; None where their traces are the same to the bit. Without both traces by their texts."""
    if baseline.trace is None or candidate.trace is None:
        return find_text_divergence(baseline.text, candidate.text)
    words = vocabularies(baseline, candidate)
    if words is None and baseline.trace.digest == candidate.trace.digest:
        return None
    is_decimal = baseline.is_logged or candidate.is_logged
    return find_divergence(baseline.trace, candidate.trace, vocabularies=words, is_decimal=is_decimal)


def vocabularies(baseline: Told, candidate: Told) -> tuple[Vocabulary, Vocabulary] | None:
    """Both sides' words where they are not the same ones: then only bytes can be compared. Else ids are compared.

    The words of logs of one model go on from one import to the next, so that their ids are the same ones.
    """
    ours, theirs = baseline.vocabulary_id, candidate.vocabulary_id
    if ours is None or theirs is None or ours == theirs:
        return None
    if baseline.is_logged and candidate.is_logged and _is_continued(ours, theirs):
        return None
    return stored_words(ours), stored_words(theirs)


@functools.lru_cache(maxsize=4)
def stored_words(pk: int) -> Vocabulary:
    """Kept in memory: a stored vocabulary never changes, and unpacking one takes longer than the rest of a page."""
    return Vocabulary.unpack(bytes(VocabularyRow.objects.values_list("data", flat=True).get(pk=pk)))


@functools.lru_cache(maxsize=4)  # asked for every pair
def _is_continued(vocabulary_id: int, other_id: int) -> bool:
    return stored_words(vocabulary_id).agrees_with(stored_words(other_id))
