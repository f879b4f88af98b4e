"""Tokens of a trace, by position from 0. Logprobs and margins are in nats."""

from typing import Annotated

from pydantic import Field, PlainSerializer

from evalboard.contract.base import Contract, Count, finite, page_only, says

Position = Annotated[int, says(minimum=0)]


# What an engine said, −inf for a token that it forbids; on the wire a number or null.
Logprob = Annotated[
    Annotated[float, Field(allow_inf_nan=True)] | None,
    PlainSerializer(finite, return_type=float | None, when_used="json"),
]


class TokenOfPair(Contract):
    token_id: int
    drawn: str
    logprob: Logprob


class TokenAtPosition(TokenOfPair):
    position: Position
    margin: float | None
    alternatives: tuple[TokenOfPair, ...]
    breaks_line: bool = page_only


class TraceToken(Contract):
    """A token. `token` is null if its bytes are only part of a character; `drawn` can always be read."""

    token_id: int
    token: str | None
    drawn: str
    logprob: float | None


class TracePosition(TraceToken):
    alternatives: tuple[TraceToken, ...]


class Trace(Contract):
    """Positions from `start` on, of a trace that has `length` of them."""

    start: Position
    length: Count
    positions: tuple[TracePosition, ...]
