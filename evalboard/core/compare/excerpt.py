"""Cut a window out of an answer, around the token or the character where it parts from another."""

import re

import numpy as np

from evalboard.contract.excerpt import AnswerExcerpt
from evalboard.core.compare.divergence import find_text_divergence
from evalboard.core.trace import END, TokenTrace, Vocabulary

BEFORE = 30  # characters: so much of what both answers say
AFTER = 120  # more than a line has room for; the page fades it out
TOKENS_AROUND = 60  # tokens that are read to either side; a window of single bytes is cut shorter
TOKENS_BEFORE, TOKENS_AFTER = 12, 36  # that nearly always hold as many characters as are shown
WORD = 16  # characters outlined where there are texts and no tokens

LINE_END = "⏎"


def cut_tokens(trace: TokenTrace, words: Vocabulary, at: int) -> AnswerExcerpt:
    """Cut around the token at a position; a position past the last one is the answer's end."""
    first, last = max(at - TOKENS_AROUND, 0), at + 1 + TOKENS_AROUND
    end = min(at, len(trace))
    before = _join(trace, words, range(max(end - TOKENS_BEFORE, first), end))
    if len(before) <= BEFORE:
        before = _join(trace, words, range(first, end))
    token = words.draw([int(trace.token_ids[at])])[0] if at < len(trace) else END
    after = _join(trace, words, range(at + 1, min(at + 1 + TOKENS_AFTER, len(trace))))
    if len(after) <= AFTER:
        after = _join(trace, words, range(at + 1, min(last, len(trace))))
    return _excerpt(_line(before[-BEFORE:]), first > 0 or len(before) > BEFORE, token, _line(after[:AFTER]))


def cut_text(text: str, at: int | None) -> AnswerExcerpt:
    """Cut around the word that starts at a character; None: show the end of the text."""
    if at is None:
        return _excerpt(_line(text[-AFTER:]), len(text) > AFTER, "", "")
    before, rest = text[max(at - BEFORE, 0) : at], text[at:]
    n = 1 + next((place for place, char in enumerate(rest[1:WORD]) if not char.isalnum()), min(len(rest), WORD) - 1)
    if rest and not (rest[0].isalnum() or rest[0] == " "):
        n = 1  # a quote or a bracket by itself
    token = _line(rest[:n]).replace(" ", "·") if rest else END
    return _excerpt(_line(before), at > BEFORE, token, _line(rest[n : n + AFTER]))


def cut_pair(ours: TokenTrace, theirs: TokenTrace, words: Vocabulary) -> tuple[AnswerExcerpt, AnswerExcerpt] | None:
    """Cut both answers around the first position where tokens differ or one ends; None if they are equal."""
    n = min(len(ours), len(theirs))
    apart = np.flatnonzero(ours.token_ids[:n] != theirs.token_ids[:n])
    if not len(apart) and len(ours) == len(theirs):
        return None
    place = int(apart[0]) if len(apart) else n
    return cut_tokens(ours, words, place), cut_tokens(theirs, words, place)


def cut_texts(ours: str, theirs: str) -> tuple[AnswerExcerpt, AnswerExcerpt]:
    """Cut both answers around the first character that differs."""
    place = find_text_divergence(ours, theirs).text_position
    return cut_text(ours, place), cut_text(theirs, place)


def cut_hit(text: str, words: str, at: int | None) -> AnswerExcerpt | None:
    """Cut around the match of `words`, ignoring case, nearest to a character; None without a match."""
    hits = [match.span() for match in re.finditer(re.escape(words), text, re.IGNORECASE)] if words else []
    if not hits:
        return None
    start, end = min(hits, key=lambda span: abs(span[0] - (at or 0)))
    before, after = text[max(start - BEFORE, 0) : start], text[end : end + AFTER]
    return _excerpt(_line(before), start > BEFORE, _line(text[start:end]), _line(after), is_hit=True)


def _join(trace: TokenTrace, words: Vocabulary, places: range) -> str:
    """Return the text of tokens in a row; half a character at either end is left out."""
    ids = trace.token_ids[places.start : places.stop]
    drawn = zip(ids.tolist(), words.many_bytes(ids), strict=True)
    parts = [END.encode() if token in words.end_ids else known or b"" for token, known in drawn]
    return b"".join(parts).decode("utf-8", "replace").strip("\ufffd")


def _line(text: str) -> str:
    return text.replace("\r\n", LINE_END).replace("\n", LINE_END).replace("\t", " ")


def _excerpt(before: str, is_cut: bool, token: str, after: str, *, is_hit: bool = False) -> AnswerExcerpt:
    return AnswerExcerpt(before=before, is_cut=is_cut, token=token, after=after, is_hit=is_hit)
