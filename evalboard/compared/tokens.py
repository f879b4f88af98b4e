"""Tokens of a trace as pages and REST show them."""

from collections.abc import Sequence

from evalboard.contract.base import finite
from evalboard.contract.trace import TokenAtPosition, TokenOfPair
from evalboard.core.trace import TokenTrace, Vocabulary


def tokens_at(trace: TokenTrace, positions: Sequence[int], words: Vocabulary | None) -> tuple[TokenAtPosition, ...]:
    """Return readable tokens without alternatives."""
    places = list(positions)
    ids, logprobs = trace.token_ids[places].tolist(), trace.logprobs[places].tolist()
    margins = trace.margins()[places].tolist()
    return tuple(
        TokenAtPosition(
            token_id=token_id,
            drawn=drawn,
            logprob=logprob,
            position=position,
            margin=finite(margin),
            alternatives=(),
            breaks_line=breaks_line(token_id, words),
        )
        for position, token_id, drawn, logprob, margin in zip(
            places, ids, draw(ids, words), logprobs, margins, strict=True
        )
    )


def token_at(trace: TokenTrace, position: int, margin: float, words: Vocabulary | None) -> TokenAtPosition:
    """Return one position with its alternatives; `margin` as `trace.margins()` has it."""
    token_id = int(trace.token_ids[position])
    alternatives = trace.alternatives(position)
    drawn = draw([token_id, *(other.token_id for other in alternatives)], words)
    return TokenAtPosition(
        token_id=token_id,
        drawn=drawn[0],
        logprob=float(trace.logprobs[position]),
        position=position,
        margin=finite(margin),
        alternatives=tuple(
            TokenOfPair(token_id=other.token_id, drawn=text, logprob=other.logprob)
            for other, text in zip(alternatives, drawn[1:], strict=True)
        ),
        breaks_line=breaks_line(token_id, words),
    )


def breaks_line(token_id: int, words: Vocabulary | None) -> bool:
    return b"\n" in ((words and words.token_bytes(token_id)) or b"")


def draw(token_ids: Sequence[int], words: Vocabulary | None) -> list[str]:
    """Return readable tokens as in `core.trace.vocabulary`, or by id if the vocabulary is not stored."""
    return [f"⟨token {token}⟩" for token in token_ids] if words is None else words.draw(token_ids)
