"""Tokens of external servers: ids by their bytes, traces, and their vocabulary."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.answer import split_parts
from evalboard.core.digest import digest_json
from evalboard.core.trace import NO_TOKEN, TokenTrace, pack_vocabulary
from evalboard.importers.records import LoggedPositions, LoggedResponse


class LoggedWords:
    """Ids for tokens by their bytes, in order of first appearance in a model's logs and answers.

    Neither a log nor an external server has the tokenizer's own ids for certain, and never those of its alternatives.
    The ids of a model never change and new ones come after them, so that all its runs are compared token by token.
    """

    def __init__(self, tokens: Sequence[bytes] = (), end_ids: frozenset[int] = frozenset()) -> None:
        self._tokens = list(tokens)
        self._ids = {token: number for number, token in enumerate(self._tokens)}
        self._end_ids = set(end_ids)

    def __len__(self) -> int:
        return len(self._tokens)

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

    @property
    def digest(self) -> str:
        """Return the digest of all tokens so far, in order."""
        return digest_json({"imported": [token.hex() for token in self._tokens], "ends": sorted(self._end_ids)})

    def pack(self) -> dict[str, Any]:
        """Return {"n_tokens", "data"}: the packed vocabulary of all tokens so far."""
        return {"n_tokens": len(self._tokens), "data": pack_vocabulary(self._tokens, self._end_ids)}

    def _id(self, token: bytes) -> int:
        number = self._ids.setdefault(token, len(self._tokens))
        if number == len(self._tokens):
            self._tokens.append(token)
        return number

    def _note_end(self, text: str, positions: LoggedPositions) -> None:
        if _ends_answer(text, positions):
            self._end_ids.add(self._id(positions.last_token))


def trace_by_ids(response: LoggedResponse) -> TokenTrace | None:
    """Return the trace of a response with only the tokenizer's ids; None without tokens."""
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


def _ends_answer(text: str, positions: LoggedPositions) -> bool:
    """Return whether the last token marks an answer's end: not part of the text, and written as a mark."""
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
