"""Check once, when reading, whether tokens spell their text. Others are shown but never measured."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evalboard.core.answer import split_parts
from evalboard.importers.records import LoggedPositions, LoggedResponse

# Why a trace is not measured. `covers_thinking`: its tokens are those of the thinking alone, and measured as thinking.
TraceReason = Literal[
    "", "spelled_otherwise", "partial", "covers_thinking", "merged", "all_zero", "not_listed", "placeholder_logprobs"
]

UNLISTED = -9999.0  # what servers write where they know no logprob; no token that was chosen is as unlikely
PLACEHOLDER_SHARE = 0.05  # of an answer's tokens, from which a logprob of exactly 0 is no rounding
CERTAIN = -9.2  # nats; the most that another token has beside one whose logprob rounds to 0 at four decimals
MAX_MARKS = 3  # end tokens, or tokens of a stop text, behind the answer
_MARK = re.compile(rb"<[^<>]{1,60}>|\[/?THINK\]")
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def is_measured(response: LoggedResponse) -> bool:
    """Tell whether a response's tokens are what its model wrote, so that their logprobs are compared."""
    return response.trace_reason in ("", "covers_thinking")


@dataclass(frozen=True, slots=True)
class SpelledTokens:
    """Tokens by their bytes. reason: why they are not measured, "" if they are.

    n_reasoning_tokens: of the first tokens, which are the thinking before the answer; None if it is not separate.
    """

    positions: LoggedPositions | None
    reason: TraceReason = ""
    n_reasoning_tokens: int | None = None


def spell_tokens(
    positions: LoggedPositions | None, *, text: str, reasoning: str | None = None, n_counted: int | None = None
) -> SpelledTokens:
    """Check tokens against the answer that came with them.

    text: as `core.answer.join_parts` wrote it. n_counted: the server's own number of these tokens. Known spellings are
    translated to bytes if only that gives the text. Placeholders among the alternatives are dropped.
    """
    if not positions:
        return SpelledTokens(positions)
    parts = split_parts(text)
    listed, n_unlisted = _without_placeholders(positions)
    last: SpelledTokens | None = None
    for candidate in _translations(listed):
        last = _compare(candidate, parts.text, reasoning, has_calls=bool(parts.calls))
        if last.reason in ("", "covers_thinking"):
            break
    else:
        last = _compare(listed, parts.text, reasoning, has_calls=bool(parts.calls))
    reason, logprobs = last.reason, positions.logprobs
    if not reason and not (logprobs.min() > UNLISTED and logprobs.max() < 0):  # some are odd, or NaN
        reason = _judge_numbers(listed, n_unlisted) or _judge_zeros(positions)
    reason = reason or _judge_count(last, n_counted)
    return replace(last, reason=reason)


def _compare(positions: LoggedPositions, answer: str, reasoning: str | None, *, has_calls: bool) -> SpelledTokens:
    pieces = [positions.tokens[place] for place in positions.chosen.tolist()]
    spelled, wanted = b"".join(pieces), _encoded(answer).strip()
    if has_calls and wanted in spelled:  # what a server reads as calls is written by each model in its own way
        return SpelledTokens(positions)
    thinking = None if reasoning is None else _words(_encoded(reasoning))
    for end in _ends(pieces):
        body = (spelled if end == len(pieces) else b"".join(pieces[:end])).strip()
        if body == wanted and wanted:
            return SpelledTokens(positions)
        if thinking and _words(body) == thinking:
            return SpelledTokens(positions, "covers_thinking" if wanted else "", n_reasoning_tokens=len(pieces))
        if thinking and wanted and body.endswith(wanted) and _words(body[: -len(wanted)]) == thinking:
            n = _n_before(pieces[:end], wanted)
            return SpelledTokens(positions, n_reasoning_tokens=n)
    if not wanted and not thinking and all(_MARK.fullmatch(piece.strip()) for piece in pieces if piece.strip()):
        return SpelledTokens(positions)  # of an empty answer, an end token
    body = spelled.strip()
    return SpelledTokens(positions, "partial" if body and body in wanted else "spelled_otherwise")


def _ends(pieces: list[bytes]) -> Iterator[int]:
    """Yield where the answer may end: behind all tokens, else before the last few."""
    yield from range(len(pieces), max(len(pieces) - MAX_MARKS, 0) - 1, -1)


def _n_before(pieces: list[bytes], answer: bytes) -> int:
    """Count the tokens before an answer, which ends with the last of these."""
    left = len(answer) + len(b"".join(pieces)) - len(b"".join(pieces).rstrip())
    n = len(pieces)
    while n and left > 0:
        n -= 1
        left -= len(pieces[n])
    return n


def _words(text: bytes) -> bytes:
    """Return a text without the marks around thinking, and without spaces."""
    return b"".join(_MARK.sub(b"", text).split())


def _without_placeholders(positions: LoggedPositions) -> tuple[LoggedPositions, int]:
    """Return the positions without the alternatives that have no logprob, and how many those are."""
    if positions.other_logprobs.min(initial=0) > UNLISTED:  # NaN is not above it
        return positions, 0
    is_listed = positions.other_logprobs > UNLISTED
    is_listed |= np.isneginf(positions.other_logprobs)  # forbidden, which is a fact
    owners = np.repeat(np.arange(len(positions)), positions.n_alternatives)
    counts = np.bincount(owners[is_listed], minlength=len(positions)).astype(np.int32)
    others, logprobs = positions.others[is_listed], positions.other_logprobs[is_listed]
    listed = replace(positions, n_alternatives=counts, others=others, other_logprobs=logprobs)
    return listed, int(np.count_nonzero(~is_listed))


def _judge_numbers(positions: LoggedPositions, n_unlisted: int) -> TraceReason:
    chosen = positions.logprobs
    if (chosen[np.isfinite(chosen)] <= UNLISTED).any():
        return "not_listed"
    if len(chosen) and not chosen.any() and not positions.other_logprobs.any():  # NaN counts as a number
        return "not_listed" if n_unlisted else "all_zero"
    return ""


def _judge_zeros(positions: LoggedPositions) -> TraceReason:
    """Find logprobs of exactly 0 that are none, as servers give for draft tokens that were accepted.

    A token that certain has no other of any weight beside it. So a 0 next to another likely token, or next to none
    where most positions list others, is a placeholder, and then each 0 may be.
    """
    n, is_zero = len(positions), positions.logprobs == 0
    if not is_zero.any() or is_zero.sum() < PLACEHOLDER_SHARE * n:
        return ""
    owners = np.repeat(np.arange(n), positions.n_alternatives)
    is_other = positions.others != positions.chosen[owners]
    is_likely = (positions.other_logprobs > CERTAIN) & (is_other | (positions.other_logprobs != 0))
    n_others = np.bincount(owners[is_other], minlength=n)
    is_listed = not is_zero.all() and np.median(n_others[~is_zero]) >= 1
    is_bare = is_listed and not n_others[is_zero].all()
    return "placeholder_logprobs" if is_bare or is_zero[owners[is_likely]].any() else ""


def _judge_count(spelled: SpelledTokens, n_counted: int | None) -> TraceReason:
    """Recognise several tokens merged into one logprob, by the server's count (with or without end token)."""
    n = 0 if spelled.positions is None else len(spelled.positions)
    return "merged" if n_counted is not None and n_counted > n + MAX_MARKS and n_counted > 1.5 * n else ""


def _translations(positions: LoggedPositions) -> Iterator[LoggedPositions]:
    """Yield the positions as they are, then by each spelling in which tokenizers write bytes."""
    yield positions
    for spell in (_sentencepiece, _byte_level):
        tokens = tuple(map(spell, positions.tokens))
        if tokens != positions.tokens:
            yield _renamed(positions, tokens)


def _renamed(positions: LoggedPositions, tokens: Iterable[bytes]) -> LoggedPositions:
    """Return the positions with other bytes for each different token; two may have become one."""
    places: dict[bytes, int] = {}
    now = np.array([places.setdefault(token, len(places)) for token in tokens], np.int32)
    return replace(positions, tokens=tuple(places), chosen=now[positions.chosen], others=now[positions.others])


def _sentencepiece(token: bytes) -> bytes:
    text = token.decode("utf-8", "surrogateescape")
    if match := _BYTE.fullmatch(text):
        return bytes([int(match[1], 16)])
    return text.replace("▁", " ").encode("utf-8", "surrogateescape")


def _byte_level(token: bytes) -> bytes:
    """Return a token's bytes if it is written in GPT-2's byte characters; others unchanged."""
    try:
        return bytes(_BYTE_OF[char] for char in token.decode())
    except (KeyError, UnicodeDecodeError):
        return token


def _byte_characters() -> dict[str, int]:
    """Return GPT-2's character of each byte: itself where it prints, else one from U+0100 on."""
    prints = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in prints]
    return {chr(byte): byte for byte in prints} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


_BYTE_OF = _byte_characters()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
