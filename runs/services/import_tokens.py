"""Tokens of a log: ids by their bytes, traces, and the vocabulary that draws them."""

from collections.abc import Sequence

from evalboard.core import vocabulary
from evalboard.core.digest import digest_json
from evalboard.core.trace import Trace, make_trace
from runs import imported
from runs.importers.records import LoggedPosition, LoggedResponse
from runs.models import EngineProcess, Model
from runs.models import Vocabulary as VocabularyRow


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
    def of_model(cls, model: Model) -> "Words":
        """Those of the newest log of the model."""
        theirs = EngineProcess.objects.filter(worker__name=imported.WORKER, bucket__model=model)
        newest = theirs.exclude(vocabulary=None).order_by("-vocabulary__n_tokens", "-id").first()
        if newest is None or newest.vocabulary is None:
            return cls()
        known = vocabulary.Vocabulary.unpack(bytes(newest.vocabulary.data))
        return cls([known.token_bytes(number) or b"" for number in range(len(known))], known.end_ids)

    def trace(self, response: LoggedResponse) -> Trace | None:
        """The response's trace, None where the log has no tokens of it.

        Prompt ids are the tokenizer's own, of which these words know nothing: the response's prompt digest has them.
        """
        if not response.positions:
            return None
        positions = tuple(response.positions)
        chosen = [self._id(each.token) for each in positions]
        alternatives = [[(self._id(token), logprob) for token, logprob in each.alternatives] for each in positions]
        self._note_end(response.text, positions)
        return make_trace(chosen, [each.logprob for each in positions], alternatives)

    def store(self) -> VocabularyRow | None:
        """The vocabulary of all tokens so far, stored the first time; None where no log had any."""
        if not self._tokens:
            return None
        named = {"imported": [token.hex() for token in self._tokens], "ends": sorted(self._end_ids)}
        packed = {"n_tokens": len(self._tokens), "data": vocabulary.pack(self._tokens, self._end_ids)}
        return VocabularyRow.objects.get_or_create(digest=digest_json(named), defaults=packed)[0]

    def _id(self, token: bytes) -> int:
        found = self._ids.setdefault(token, len(self._tokens))
        if found == len(self._tokens):
            self._tokens.append(token)
        return found

    def _note_end(self, text: str, positions: Sequence[LoggedPosition]) -> None:
        """A last token that is no part of the text ends answers, if it is written as a mark: a stop text is not."""
        *before, last = (each.token for each in positions)
        is_mark = last.startswith(b"<") and last.endswith(b">")
        if is_mark and b"".join(before) == text.encode("utf-8", "surrogatepass"):
            self._end_ids.add(self._id(last))
