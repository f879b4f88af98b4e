"""The vocabularies that are stored."""

from evalboard.core.compare import WordsById
from evalboard.core.trace import Vocabulary
from runs.models import Vocabulary as VocabularyRow


def _read(pk: int) -> Vocabulary:
    return Vocabulary.unpack(bytes(VocabularyRow.objects.values_list("data", flat=True).get(pk=pk)))


WORDS = WordsById(_read)
stored_words = WORDS.read
