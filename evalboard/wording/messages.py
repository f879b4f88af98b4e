"""Write sentences from tables of messages: subject, strength of the claim, format with plurals.

A format is filled by name. After the colon is how a fact is written: a noun counts it ("{n:case}" is "1 case" or
"3 cases"), two words with a bar choose by the number ("{n:is|are}"), a name in `WRITTEN` is one of `wording.numbers`,
and all else is Python's own ("{n:,}"). A row that needs more than that is a function of its facts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from string import Formatter
from typing import Any, Literal, NamedTuple

from evalboard.wording import numbers

Facts = Mapping[str, Any]
# How much a message claims of its subject. "asserts": it is so. "allows": it may be so. "denies": it is not so.
# "unknown": it cannot be known. "advises": what to do.
Strength = Literal["asserts", "allows", "denies", "unknown", "advises"]
WRITTEN: Mapping[str, Callable[[Any], str]] = {
    "points": numbers.points,
    "signed": numbers.signed,
    "limit": numbers.limit,
    "share": numbers.percent,
    "nats": numbers.nats,
    "nats_rounded": numbers.nats_rounded,
    "about": numbers.about,
    "list": numbers.listed,
    "words": numbers.in_words,
    "a": partial(numbers.in_words, one="a"),
    "an": partial(numbers.in_words, one="an"),
}
BOLD = "\ue000\ue001"  # around what a format marks as bold, "{claim!b}"; in no text that leaves this package
# The first speaks, and the second does not, where both would be on one page.
EXCLUDED: tuple[tuple[str, str], ...] = (
    ("outcomes.beyond", "noise_share.near_ties_are_noise"),
    ("outcomes.in_every_repeat", "noise_share.near_ties_are_noise"),
    *((f"noise_share.{reason}", "note.noise_floor") for reason in ("left_out", "copies", "one_draw", "one_repeat")),
    *((f"split.{code}", "run.unknown_batching") for code in ("batch", "both")),
    *((f"block.{code}", "compare.because_stack") for code in ("rebaseline", "stack_changed", "service_judged")),
)


Text = str | Callable[[Facts], str]
NOTHING: Mapping[Any, Any] = {}


class Message(NamedTuple):
    """A row of a table. text: a format, or a function of the facts."""

    subject: str
    strength: Strength
    text: Text


class Claim(NamedTuple):
    """What a page says. code: with the name of its table, "noise_share.limit"."""

    code: str
    subject: str
    strength: Strength
    text: str


class Messages(dict[str, Message]):
    """The messages of one kind by their codes. groups: those of one subject and strength together."""

    def __init__(self, name: str, groups: Mapping[tuple[str, Strength], Mapping[str, Text]] = NOTHING) -> None:
        super().__init__(
            {code: Message(*group, text) for group, texts in groups.items() for code, text in texts.items()}
        )
        self.name = name
        TABLES.append(self)

    def claim(self, code: str, facts: Facts | None = None, **more: Any) -> Claim:
        """Fill in a message without saying it."""
        subject, strength, text = self[code]
        known = {**(facts or {}), **more}
        filled = write(text, **known) if isinstance(text, str) else text(known)
        return Claim(f"{self.name}.{code}", subject, strength, filled)

    def write(self, code: str, facts: Facts | None = None, **more: Any) -> str:
        """Return a message with its facts filled in."""
        return speak([self.claim(code, facts, **more)])


TABLES: list[Messages] = []


class _Words(Formatter):
    def convert_field(self, value: Any, conversion: Any) -> Any:
        return f"{BOLD[0]}{value}{BOLD[1]}" if conversion == "b" else super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec in WRITTEN:
            return WRITTEN[format_spec](value)
        if "|" in format_spec:
            one, several = format_spec.split("|")
            return one if value == 1 else several
        return numbers.counted(value, format_spec) if format_spec[:1].isalpha() else format(value, format_spec)


_WORDS = _Words()
_SPOKEN: ContextVar[list[Claim] | None] = ContextVar("spoken", default=None)


def write(text: str, **facts: Any) -> str:
    """Fill in a format."""
    return _WORDS.vformat(text, (), facts)


def speak(claims: Iterable[Claim], *, with_codes: Iterable[str] = ()) -> str:
    """Join the sentences of one page that do not exclude each other.

    with_codes: codes of what else is on the page.
    """
    claims = list(claims)
    codes = {*with_codes, *(claim.code for claim in claims)}
    silent = {loser for winner, loser in EXCLUDED if winner in codes}
    spoken = [claim for claim in claims if claim.code not in silent]
    if (record := _SPOKEN.get()) is not None:
        record.extend(spoken)
    return " ".join(claim.text for claim in spoken if claim.text)


def list_excluded(codes: AbstractSet[str]) -> list[tuple[str, str]]:
    """Return the pairs that exclude each other and are both there."""
    return [pair for pair in EXCLUDED if codes >= {*pair}]


def split_bold(text: str) -> tuple[str, tuple[int, int] | None]:
    """Return a text without its mark of bold, and from where to where it was; None without one."""
    before, start, rest = text.partition(BOLD[0])
    bold, _, after = rest.partition(BOLD[1])
    return f"{before}{bold}{after}", (len(before), len(before) + len(bold)) if start else None


@contextmanager
def record_claims() -> Iterator[list[Claim]]:
    """Collect the claims that are made within the block."""
    claims: list[Claim] = []
    token = _SPOKEN.set(claims)
    try:
        yield claims
    finally:
        _SPOKEN.reset(token)
