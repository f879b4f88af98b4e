"""Mask secrets in a server's output: in every JSON spelling, and across parts or tokens."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from evalboard.importers.json_files import parse_value
from evalboard.importers.records import LoggedPosition, LoggedPositions, LoggedResponse

SHORTEST_MASKED = 4  # characters; a shorter one is no secret, and its letters stand in every text
SHORTEST_MASKED_IN_ANSWERS = 12  # "EMPTY" is a usual key of a server of one's own, and may be a right answer
MASK = "***"
BACKSLASHES = r"(?:\\++(?:u(?i:005c))*+)"  # one or more, perhaps by their number; to be repeated
NUMBERED = re.compile(rb"\\u00[2-7][0-9a-fA-F]")
ESCAPES = re.compile(rb'\\(?:u([0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*+)|(["\\/]))')
MAX_ESCAPE_LEVELS = 8  # of JSON within JSON whose escapes are escaped by number

Secret = re.Pattern[bytes]


class Mask:
    """Replaces secrets in a server's or an exception's text. Its repr shows none.

    A secret is found in every spelling of JSON: as it is, with escapes such as `\\u002b` and `\\/`, and within texts
    that are JSON themselves, however deep.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted((secret for secret in set(secrets) if len(secret) >= SHORTEST_MASKED), key=len, reverse=True)
        read = [(len(secret), re.compile(spelling.encode())) for secret in known if (spelling := _spelling(secret))]
        self._in_words = [secret for _, secret in read]
        self._in_answers = [secret for n_chars, secret in read if n_chars >= SHORTEST_MASKED_IN_ANSWERS]

    def __repr__(self) -> str:
        return f"<Mask of {len(self._in_words)} secrets>"

    def text(self, words: str) -> str:
        """Return a failure's words without the secrets."""
        return _without(self._in_words, _encoded(words)).decode("utf-8", "surrogatepass")

    def answer(self, content: bytes) -> Any:
        """Return the JSON value of an answer without the secrets that are too long to be there by chance.

        Raises InvalidInput where it is no JSON.
        """
        content = _replaced(self._in_answers, content)
        value = parse_value(content, where="")
        return self._value(value) if _hides(self._in_answers, content) else value

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._answer_text(value)
        if isinstance(value, Mapping):
            return {self._answer_text(name): self._value(one) for name, one in value.items()}
        return [self._value(one) for one in value] if isinstance(value, list) else value

    def _answer_text(self, text: str) -> str:
        return self._token(_encoded(text)).decode("utf-8", "surrogatepass")

    def _token(self, token: bytes) -> bytes:
        return _without(self._in_answers, token)

    def response(self, response: LoggedResponse) -> LoggedResponse:
        """Return a response with masked secrets, including those split over parts or tokens."""
        texts = {"text": response.text, "reasoning": response.reasoning, "error": response.error}
        masked: dict[str, Any] = {name: self._answer_text(text) for name, text in texts.items() if text}
        positions = response.positions and self._positions(response.positions)
        return replace(response, **masked, positions=positions)

    def _positions(self, positions: LoggedPositions) -> LoggedPositions:
        """Replace each token, chosen or not, that is part of a secret by MASK, with an unknown id."""
        joined = b"".join(map(positions.tokens.__getitem__, positions.chosen.tolist()))
        spans = [match.span() for secret in self._in_answers for match in secret.finditer(joined)]
        if not spans and not any(self._token(token) != token for token in positions.tokens):
            return positions
        end, rows = 0, list[LoggedPosition]()
        for row in positions:
            begin, end = end, end + len(row.token)
            is_part = any(begin < last and first < end for first, last in spans)
            chosen = MASK.encode() if is_part else self._token(row.token)
            others = tuple(
                (chosen if token == row.token else self._token(token), logprob) for token, logprob in row.alternatives
            )
            known_id = row.token_id if chosen == row.token else None
            rows.append(LoggedPosition(chosen, row.logprob, others, known_id))
        return LoggedPositions.from_positions(rows)


def _without(secrets: Iterable[Secret], text: bytes) -> bytes:
    """Return text with MASK for each secret, or for the whole text if an odd spelling hides one."""
    text = _replaced(secrets, text)
    return MASK.encode() if _hides(secrets, text) else text


def _replaced(secrets: Iterable[Secret], text: bytes) -> bytes:
    for secret in secrets:
        text = secret.sub(MASK.encode(), text)
    return text


def _hides(secrets: Iterable[Secret], text: bytes) -> bool:
    """Tell whether a text contains a secret after decoding it as JSON, once or several times."""
    for _ in range(MAX_ESCAPE_LEVELS):
        if not NUMBERED.search(text):  # any other spelling was replaced
            return False
        text = ESCAPES.sub(_unescaped, text)
        if any(secret.search(text) for secret in secrets):
            return True
    return any(secrets)  # so deep that it is no answer


def _unescaped(escape: re.Match[bytes]) -> bytes:
    numbers = (escape[1] or b"").replace(b"\\u", b"").decode()
    return escape[2] or bytes.fromhex(numbers).decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")


def _spelling(secret: str) -> str:
    """Return a pattern of a secret's spellings in JSON, in JSON within JSON, …; "" for only backslashes.

    Each level of JSON doubles backslashes and puts one before what it escapes, so any number of them may be before a
    character. The pattern takes each run of them from its start and as a whole: what is left is JSON, and the time it
    takes is proportional to the length of a text.
    """
    first, *others = re.findall(r"(\\*)([^\\])", secret.strip("\\"), re.DOTALL) or [("", "")]
    if not first[1]:
        return ""
    char = re.escape(first[1])
    start = rf"(?:{char}|\\(?<!\\\\)(?<!u(?i:005c)\\)(?:u(?i:005c))*+{BACKSLASHES}*+(?:{char}|{_numbers(first[1])}))"
    return start + "".join(_char_spelling(len(run), char) for run, char in others)


def _char_spelling(n_backslashes: int, char: str) -> str:
    """Return a pattern of a character after so many backslashes of the secret, and any that escape it."""
    escaped = rf"{BACKSLASHES}++(?:{re.escape(char)}|{_numbers(char)})"
    return escaped if n_backslashes else rf"(?:{re.escape(char)}|{escaped})"


def _numbers(char: str) -> str:
    """Return a pattern of a character by its UTF-16 numbers, after a backslash."""
    units = re.findall("....", char.encode("utf-16-be", "surrogatepass").hex())
    return rf"{BACKSLASHES}++".join(f"u(?i:{unit})" for unit in units)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
