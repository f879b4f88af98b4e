"""Tokens of others: ids by their bytes, traces, and the vocabulary that draws them."""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from evalboard.core.answer import split_parts
from evalboard.core.digest import digest_json
from evalboard.core.trace import NO_TOKEN, TokenTrace, Vocabulary, pack_vocabulary
from evalboard.importers.records import LoggedPositions, LoggedResponse
from runs.models import ComparisonRecord, EngineProcess, Model, VocabularyRecord


class Words:
    """Ids for tokens by their bytes, in the order in which logs and servers of one model were seen to hold them.

    Neither a log nor a server of others has the tokenizer's own ids for certain, and never those of its alternatives.
    The ids that a model has are kept and new ones come after them, so that all its runs are compared token by token.
    """

    def __init__(self, tokens: Sequence[bytes] = (), end_ids: frozenset[int] = frozenset()) -> None:
        self._tokens = list(tokens)
        self._ids = {token: number for number, token in enumerate(self._tokens)}
        self._end_ids = set(end_ids)
        self.row_id: int | None = None  # of the stored vocabulary that holds all of them

    @classmethod
    def locked(cls, model: Model, *, known: "Words | None" = None) -> "Words":
        """Return the words of a model, its row locked until the transaction ends: who extends them takes turns.

        known: words of this model that were read before, which are returned where nobody has added any since.
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

    def has_all(self, response: LoggedResponse) -> bool:
        """Tell whether a response's trace adds nothing to them."""
        positions = response.positions
        if not positions:
            return True
        if _ends_answer(response.text, positions) and self._ids.get(positions.last_token) not in self._end_ids:
            return False
        return all(token in self._ids for token in positions.tokens)

    def trace(self, response: LoggedResponse) -> TokenTrace | None:
        """Return the response's trace, None where the log has no tokens of it.

        Prompt ids are the tokenizer's own, of which these words know nothing: the response's prompt digest has them.
        """
        if not response.positions:
            return None
        positions = response.positions
        ids = np.array([self._id(token) for token in positions.tokens], dtype=np.int32)
        self._note_end(response.text, positions)
        other_ids, other_logprobs = _by_rank(positions, ids)
        return TokenTrace(ids[positions.chosen], positions.logprobs.astype(np.float32), other_ids, other_logprobs)

    def store(self) -> VocabularyRecord | None:
        """Store the vocabulary of all tokens so far, the first time; return it, None where there are none."""
        if not self._tokens:
            return None
        named = {"imported": [token.hex() for token in self._tokens], "ends": sorted(self._end_ids)}
        packed = {"n_tokens": len(self._tokens), "data": pack_vocabulary(self._tokens, self._end_ids)}
        row, _ = VocabularyRecord.objects.get_or_create(digest=digest_json(named), defaults=packed)
        self.row_id = row.pk
        return row

    def _id(self, token: bytes) -> int:
        number = self._ids.setdefault(token, len(self._tokens))
        if number == len(self._tokens):
            self._tokens.append(token)
        return number

    def _note_end(self, text: str, positions: LoggedPositions) -> None:
        if _ends_answer(text, positions):
            self._end_ids.add(self._id(positions.last_token))


def trace_by_ids(response: LoggedResponse) -> TokenTrace | None:
    """Return the trace of a response whose tokenizer's own ids are all that a log has; None where it has no tokens."""
    positions = response.positions
    if not positions:
        return None
    prompt, nothing = response.prompt_token_ids, (len(positions), 0)
    return TokenTrace(
        token_ids=positions.token_ids,
        logprobs=positions.logprobs.astype(np.float32),
        alternative_ids=np.empty(nothing, np.int32),
        alternative_logprobs=np.empty(nothing, np.float32),
        prompt_token_ids=None if prompt is None else np.array(prompt, np.int32),
    )


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


def _ends_answer(text: str, positions: LoggedPositions) -> bool:
    """A last token that is no part of the words ends answers, if it is written as a mark: a stop text is not."""
    last = positions.last_token
    is_mark = last.startswith(b"<") and last.endswith(b">")
    return is_mark and positions.text_before_last == split_parts(text).text.encode("utf-8", "surrogatepass")


def _by_rank(positions: LoggedPositions, ids: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The alternatives' ids and logprobs as a trace has them; `ids` are those of the positions' tokens."""
    counts = positions.n_alternatives
    shape = (len(positions), int(counts.max(initial=0)))
    listed = np.arange(shape[1]) < counts[:, None]
    other_ids, other_logprobs = np.full(shape, NO_TOKEN, np.int32), np.full(shape, np.nan, np.float32)
    other_ids[listed] = ids[positions.others]
    other_logprobs[listed] = positions.other_logprobs
    return other_ids, other_logprobs
