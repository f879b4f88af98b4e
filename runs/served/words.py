"""Store vocabularies of models known only from tokens in logs and external answers."""

from collections.abc import Collection, Sequence

from evalboard.core.trace import Vocabulary
from evalboard.logged.words import LoggedWords
from runs.models import ComparisonRecord, EngineProcess, Model, VocabularyRecord


class Words(LoggedWords):
    """A model's tokens as stored. row_id: of the vocabulary that contains all of them."""

    def __init__(self, tokens: Sequence[bytes] = (), end_ids: frozenset[int] = frozenset()) -> None:
        super().__init__(tokens, end_ids)
        self.row_id: int | None = None

    @classmethod
    def locked(cls, model: Model, *, known: "Words | None" = None) -> "Words":
        """Return a model's tokens, and lock its row until the transaction ends.

        known: tokens read before, which are returned if none were added since.
        """
        Model.objects.select_for_update(no_key=True).get(pk=model.pk)
        theirs = EngineProcess.objects.filter(bucket__model=model).exclude(vocabulary=None)
        newest = theirs.order_by("-vocabulary__n_tokens", "-vocabulary_id").values_list("vocabulary", flat=True).first()
        if newest is None:
            return cls()
        if known is not None and known.row_id == newest:
            return known
        read = Vocabulary.unpack(bytes(VocabularyRecord.objects.values_list("data", flat=True).get(pk=newest)))
        words = cls([read.token_bytes(number) or b"" for number in range(len(read))], read.end_ids)
        words.row_id = newest
        return words

    def store(self) -> VocabularyRecord | None:
        """Store the vocabulary of all tokens so far, once; return it, None without tokens."""
        if not self:
            return None
        row, _ = VocabularyRecord.objects.get_or_create(digest=self.digest, defaults=self.pack())
        self.row_id = row.pk
        return row


def remove_unneeded(vocabulary_ids: Collection[int]) -> None:
    """Delete those of these vocabularies that no engine process and no comparison needs any more.

    Belongs behind the lock of their model, under which alone a process is given one of its vocabularies.
    """
    needed = set(EngineProcess.objects.filter(vocabulary__in=vocabulary_ids).values_list("vocabulary", flat=True))
    for side in ("baseline", "candidate"):
        place = f"summary__sides__{side}__vocabulary"
        shown = ComparisonRecord.objects.filter(**{f"{place}__in": sorted(vocabulary_ids)})
        needed |= set(shown.values_list(place, flat=True))
    VocabularyRecord.objects.filter(pk__in=set(vocabulary_ids) - needed).delete()
