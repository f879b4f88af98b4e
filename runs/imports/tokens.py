"""Tokens of a log: ids by their bytes, traces, and the vocabulary that draws them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evalboard.core.digest import digest_json
from evalboard.core.trace import NO_TOKEN, Trace, Vocabulary, pack_vocabulary
from runs.importers.records import LoggedPositions, LoggedResponse
from runs.models import EngineProcess, Model
from runs.models import Vocabulary as VocabularyRow
from runs.store import imported


class Words:
    """Ids for tokens by their bytes, in the order in which logs of one model were seen to hold them.

    A log rarely has the tokenizer's own ids, and never those of its alternatives. The ids of an earlier log of the
    model are kept and new ones come after them, so that logs of one model are compared token by token.
    """

    def __init__(self, tokens: Sequence[bytes] = (), end_ids: frozenset[int] = frozenset()) -> None:
        self._tokens = list(tokens)
        self._ids = {token: number for number, token in enumerate(self._tokens)}
        self._end_ids = set(end_ids)

    @classmethod
    def from_logs_of(cls, model: Model) -> "Words":
        """Return those of the newest log of the model."""
        theirs = EngineProcess.objects.filter(worker__name=imported.WORKER, bucket__model=model)
        newest = theirs.exclude(vocabulary=None).order_by("-vocabulary__n_tokens", "-id").first()
        if newest is None or newest.vocabulary is None:
            return cls()
        known = Vocabulary.unpack(bytes(newest.vocabulary.data))
        return cls([known.token_bytes(number) or b"" for number in range(len(known))], known.end_ids)

    def trace(self, response: LoggedResponse) -> Trace | None:
        """Return the response's trace, None where the log has no tokens of it.

        Prompt ids are the tokenizer's own, of which these words know nothing: the response's prompt digest has them.
        """
        if not response.positions:
            return None
        positions = response.positions
        ids = np.array([self._id(token) for token in positions.tokens], dtype=np.int32)
        self._note_end(response.text, positions)
        other_ids, other_logprobs = _by_rank(positions, ids)
        return Trace(ids[positions.chosen], positions.logprobs.astype(np.float32), other_ids, other_logprobs)

    def store(self) -> VocabularyRow | None:
        """Store the vocabulary of all tokens so far, the first time; return it, None where no log had any."""
        if not self._tokens:
            return None
        named = {"imported": [token.hex() for token in self._tokens], "ends": sorted(self._end_ids)}
        packed = {"n_tokens": len(self._tokens), "data": pack_vocabulary(self._tokens, self._end_ids)}
        return VocabularyRow.objects.get_or_create(digest=digest_json(named), defaults=packed)[0]

    def _id(self, token: bytes) -> int:
        number = self._ids.setdefault(token, len(self._tokens))
        if number == len(self._tokens):
            self._tokens.append(token)
        return number

    def _note_end(self, text: str, positions: LoggedPositions) -> None:
        """A last token that is no part of the text ends answers, if it is written as a mark: a stop text is not."""
        last = positions.last_token
        is_mark = last.startswith(b"<") and last.endswith(b">")
        if is_mark and positions.text_before_last == text.encode("utf-8", "surrogatepass"):
            self._end_ids.add(self._id(last))


def _by_rank(positions: LoggedPositions, ids: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The alternatives' ids and logprobs as a trace has them; `ids` are those of the positions' tokens."""
    counts = positions.n_alternatives
    shape = (len(positions), int(counts.max(initial=0)))
    listed = np.arange(shape[1]) < counts[:, None]
    other_ids, other_logprobs = np.full(shape, NO_TOKEN, np.int32), np.full(shape, np.nan, np.float32)
    other_ids[listed] = ids[positions.others]
    other_logprobs[listed] = positions.other_logprobs
    return other_ids, other_logprobs
