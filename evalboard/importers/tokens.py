"""Read the token logprobs of OpenAI-compatible servers, in chat form or as arrays of completions."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from evalboard.core.errors import InvalidInput
from evalboard.importers.field_values import mapping, rows
from evalboard.importers.records import NO_ID, LoggedPosition, LoggedPositions

MAX_TOKEN_ID = 2**31 - 1  # a trace holds int32
MAX_LOGPROB = 3.4e38  # a trace holds float32

# vLLM's `return_tokens_as_token_ids` writes the id in place of the text.
_ID_MARK = "token_id:"
_AS_ID = re.compile(_ID_MARK + r"(\d{1,10})\Z")


class ListedToken(msgspec.Struct, gc=False):
    """One token of `top_logprobs` as servers mostly write it."""

    token: str
    logprob: float | None = None
    bytes: list[int] | None = None


class TokenEntry(ListedToken, gc=False):
    """One entry of `logprobs.content` as servers mostly write it; a reader's shape may name it."""

    top_logprobs: list[ListedToken] | None = None


def positions(logprobs: Mapping[str, Any] | None, token_ids: Sequence[int] | None = None) -> LoggedPositions | None:
    """Return one position per token, with the end token if logged; None without tokens.

    `logprobs` is a choice's: `{"content": [...]}`, or the parallel arrays of `/v1/completions`. `token_ids` are the
    engine's, one for each token; ids of another number are left aside, because nothing says which are whose.
    Alternatives keep the log's order, which need not be the best first. A logprob that the log leaves out is NaN.

    Raises InvalidInput, without the file's name, for what is no such list.
    """
    if logprobs is None:
        return None
    logprobs = mapping(logprobs, "logprobs")
    content = rows(logprobs.get("content"), "logprobs.content")
    read = _plain_positions(content) or LoggedPositions.from_positions(
        _chat_positions(content) or _completion_positions(logprobs)
    )
    if not read:
        return None
    if token_ids is None or len(token_ids) != len(read):
        return read
    return replace(read, token_ids=np.array(token_ids, dtype=np.int32))


def read_ids(value: Any, what: str = "token_ids") -> tuple[int, ...] | None:
    """Return a list of token ids, None if there is none. Raises InvalidInput for anything else."""
    if value is None:
        return None
    ids = rows(value, what)
    if ids and not (set(map(type, ids)) == {int} and min(ids) >= 0 and max(ids) <= MAX_TOKEN_ID):
        raise InvalidInput(f"{what} must be a list of token ids from 0 to {MAX_TOKEN_ID}")
    return tuple(ids)


def _plain_positions(entries: list[Any]) -> LoggedPositions | None:
    """Return what `_chat_positions` does, but column by column; None if any entry is unusual."""
    try:
        plain = msgspec.convert(entries, list[TokenEntry])
        listed = [entry.top_logprobs or () for entry in plain]
        # Of alternatives the text matters only beside a chosen token that is written as its id: see `_chat_positions`.
        if _ID_MARK in "\n".join([entry.token for entry in plain]):
            return None
        both = [*plain, *chain.from_iterable(listed)]
        raw = [_encoded(one.token) if one.bytes is None else one.bytes for one in both]
        tokens = list(map(bytes, raw))
        logprobs = np.array([one.logprob for one in both], dtype=np.float64)  # None is NaN
    except (msgspec.ValidationError, ValueError, OverflowError):
        return None
    n = len(plain)
    is_odd = ~(np.abs(logprobs) <= MAX_LOGPROB)
    is_odd[:n] &= ~np.isnan(logprobs[:n])
    if is_odd.any():
        return None
    places = {token: at for at, token in enumerate(dict.fromkeys(tokens))}
    at = np.fromiter(map(places.__getitem__, tokens), np.int32, len(tokens))
    return LoggedPositions(
        tokens=tuple(places),
        chosen=at[:n],
        logprobs=logprobs[:n],
        n_alternatives=np.fromiter(map(len, listed), np.int32, n),
        others=at[n:],
        other_logprobs=logprobs[n:],
        token_ids=np.full(n, NO_ID, np.int32),
    )


def _chat_positions(entries: list[Any]) -> list[LoggedPosition]:
    entries = msgspec.to_builtins(entries)
    chosen = [_entry(entry, f"logprobs.content[{n}]") for n, entry in enumerate(entries)]
    # Beside `token_id:504` only the chosen token has its own bytes; an alternative's spell the words "token_id:504".
    known = {token: raw for token, raw, _ in chosen if _AS_ID.match(token)}
    positions_read = []
    for n, (entry, (token, raw, logprob)) in enumerate(zip(entries, chosen, strict=True)):
        place = f"logprobs.content[{n}].top_logprobs"
        listed = (_entry(other, f"{place}[{m}]") for m, other in enumerate(rows(entry.get("top_logprobs"), place)))
        alternatives = tuple((known.get(name, other), value) for name, other, value in listed if not math.isnan(value))
        positions_read.append(LoggedPosition(raw, logprob, alternatives, _written_id(token)))
    return positions_read


def _completion_positions(logprobs: Mapping[str, Any]) -> list[LoggedPosition]:
    """Read the arrays `tokens`, `token_logprobs` and `top_logprobs` (one object per position).

    Two alternatives of one spelling have become one there.
    """
    tokens = rows(logprobs.get("tokens"), "logprobs.tokens")
    values = rows(logprobs.get("token_logprobs"), "logprobs.token_logprobs") or [None] * len(tokens)
    others = rows(logprobs.get("top_logprobs"), "logprobs.top_logprobs") or [None] * len(tokens)
    if not len(tokens) == len(values) == len(others):
        raise InvalidInput("logprobs.tokens, token_logprobs and top_logprobs must have one length")
    positions_read = []
    for n, (token, value, row) in enumerate(zip(tokens, values, others, strict=True)):
        if not isinstance(token, str):
            raise InvalidInput(f"logprobs.tokens[{n}] must be a text")
        alternatives = tuple(_row(row, f"logprobs.top_logprobs[{n}]"))
        logprob = _logprob(value, f"logprobs.token_logprobs[{n}]")
        positions_read.append(LoggedPosition(_encoded(token), logprob, alternatives, _written_id(token)))
    return positions_read


def _row(row: Any, place: str) -> Iterator[tuple[bytes, float]]:
    for token, value in mapping(row, place).items():
        logprob = _logprob(value, f"{place}.{token[:40]}")
        if not math.isnan(logprob):
            yield _encoded(token), logprob


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
