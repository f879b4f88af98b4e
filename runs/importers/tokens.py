"""Token logprobs as OpenAI-compatible servers give them, in chat form or in the arrays of old completions."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalboard.core.errors import InvalidInput
from runs.importers.field_values import mapping, rows
from runs.importers.records import LoggedPosition

MAX_TOKEN_ID = 2**31 - 1  # a trace holds int32
MAX_LOGPROB = 3.4e38  # a trace holds float32

# vLLM's `return_tokens_as_token_ids` writes the id in place of the text.
_AS_ID = re.compile(r"token_id:(\d{1,10})\Z")


def positions(
    logprobs: Mapping[str, Any] | None, token_ids: Sequence[int] | None = None
) -> tuple[LoggedPosition, ...] | None:
    """Return one position for each token, the end token included where the log has it; None where it has no tokens.

    `logprobs` is a choice's: `{"content": [...]}`, or the parallel arrays of `/v1/completions`. `token_ids` are the
    engine's, one for each token; ids of another number are left aside, because nothing says which are whose.
    Alternatives keep the log's order, which need not be the best first. A logprob that the log leaves out is NaN.

    Raises InvalidInput, without the file's name, for what is no such list.
    """
    if logprobs is None:
        return None
    logprobs = mapping(logprobs, "logprobs")
    found = _of_chat(rows(logprobs.get("content"), "logprobs.content")) or _of_completion(logprobs)
    return _with_ids(found, token_ids) if found else None


def read_ids(value: Any, what: str = "token_ids") -> tuple[int, ...] | None:
    """Return a list of token ids out of a log, None where there is none. Raises InvalidInput for anything else."""
    if value is None:
        return None
    ids = rows(value, what)
    if not all(type(one) is int and 0 <= one <= MAX_TOKEN_ID for one in ids):
        raise InvalidInput(f"{what} must be a list of token ids from 0 to {MAX_TOKEN_ID}")
    return tuple(ids)


def _of_chat(entries: list[Any]) -> list[LoggedPosition]:
    chosen = [_entry(entry, f"logprobs.content[{n}]") for n, entry in enumerate(entries)]
    # Beside `token_id:504` only the chosen token has its own bytes; an alternative's spell the words "token_id:504".
    known = {token: raw for token, raw, _ in chosen if _AS_ID.match(token)}
    found = []
    for n, (entry, (token, raw, logprob)) in enumerate(zip(entries, chosen, strict=True)):
        place = f"logprobs.content[{n}].top_logprobs"
        listed = (_entry(other, f"{place}[{m}]") for m, other in enumerate(rows(entry.get("top_logprobs"), place)))
        alternatives = tuple((known.get(name, other), value) for name, other, value in listed if not math.isnan(value))
        found.append(LoggedPosition(raw, logprob, alternatives, _written_id(token)))
    return found


def _of_completion(logprobs: Mapping[str, Any]) -> list[LoggedPosition]:
    """Read the arrays `tokens`, `token_logprobs` and `top_logprobs`, of which the last is one object a position.

    Two alternatives of one spelling have become one there.
    """
    tokens = rows(logprobs.get("tokens"), "logprobs.tokens")
    values = rows(logprobs.get("token_logprobs"), "logprobs.token_logprobs") or [None] * len(tokens)
    others = rows(logprobs.get("top_logprobs"), "logprobs.top_logprobs") or [None] * len(tokens)
    if not len(tokens) == len(values) == len(others):
        raise InvalidInput("logprobs.tokens, token_logprobs and top_logprobs must have one length")
    found = []
    for n, (token, value, row) in enumerate(zip(tokens, values, others, strict=True)):
        if not isinstance(token, str):
            raise InvalidInput(f"logprobs.tokens[{n}] must be a text")
        alternatives = tuple(_row(row, f"logprobs.top_logprobs[{n}]"))
        logprob = _logprob(value, f"logprobs.token_logprobs[{n}]")
        found.append(LoggedPosition(_encoded(token), logprob, alternatives, _written_id(token)))
    return found


def _row(row: Any, place: str) -> Iterator[tuple[bytes, float]]:
    for token, value in mapping(row, place).items():
        logprob = _logprob(value, f"{place}.{token[:40]}")
        if not math.isnan(logprob):
            yield _encoded(token), logprob


def _with_ids(found: list[LoggedPosition], ids: Sequence[int] | None) -> tuple[LoggedPosition, ...]:
    if ids is None or len(ids) != len(found):
        return tuple(found)
    return tuple(
        LoggedPosition(one.token, one.logprob, one.alternatives, token_id)
        for one, token_id in zip(found, ids, strict=True)
    )


def _entry(entry: Any, place: str) -> tuple[str, bytes, float]:
    """Return a token's text, bytes and logprob. Half a character has the text "" and no bytes."""
    entry = mapping(entry, place)
    token, raw = entry.get("token"), entry.get("bytes")
    if not isinstance(token, str):
        raise InvalidInput(f"{place}.token must be a text")
    logprob = _logprob(entry.get("logprob"), f"{place}.logprob")
    if raw is None:
        return token, _encoded(token), logprob
    try:
        return token, bytes(rows(raw, f"{place}.bytes")), logprob
    except (TypeError, ValueError):
        raise InvalidInput(f"{place}.bytes must be a list of numbers from 0 to 255") from None


def _logprob(value: Any, place: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_LOGPROB:
        raise InvalidInput(f"{place} must be a logprob in nats")
    return float(value)


def _written_id(token: str) -> int | None:
    written = _AS_ID.match(token)
    if written is None or int(written[1]) > MAX_TOKEN_ID:
        return None
    return int(written[1])


def _encoded(token: str) -> bytes:
    return token.encode("utf-8", "surrogatepass")
