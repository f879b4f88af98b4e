"""Find the positions of two traces that may be compared: those before the tokens part.

Token ids decide where both sides have one vocabulary. Else the tokens' bytes do, and the answer is approximate:
the answers are compared as two streams of bytes, so that one text cut into other tokens is no difference. What may
be compared then are the positions that hold the same token at the same place of the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalboard.core.trace import NO_TOKEN, TokenTrace, Vocabulary

Ids = NDArray[np.int32]
Bools = NDArray[np.bool_]
Positions = NDArray[np.intp]
Starts = NDArray[np.int64]
Shorter = Literal["baseline", "candidate"]
SIDES: tuple[Shorter, Shorter] = ("baseline", "candidate")
NEVER = -1  # for a position in arrays
_END = b"\xff"  # no token of text has these bytes and an empty name could be one's own


@dataclass(frozen=True, eq=False)
class Alignment:
    """Two traces laid side by side.

    baseline, candidate: the traces, their ids in one numbering, which is their own unless `is_approximate`.
    baseline_positions, candidate_positions: intp[m], the positions that agree, in order.
    parts_at: the position on each side where the tokens part: both tokens differ there, or the shorter side has none.
    shorter: the side whose tokens all agree while the other side goes on.
    """

    baseline: TokenTrace
    candidate: TokenTrace
    baseline_positions: Positions
    candidate_positions: Positions
    parts_at: tuple[int, int] | None
    shorter: Shorter | None
    is_approximate: bool

    @property
    def flip(self) -> tuple[int, int] | None:
        """The positions of the first tokens that differ."""
        return None if self.shorter else self.parts_at

    def shared(self) -> tuple[TokenTrace, TokenTrace]:
        """Return both traces cut to the positions that agree, aligned row by row."""
        if self.is_approximate:
            return _cut(self.baseline, self.baseline_positions), _cut(self.candidate, self.candidate_positions)
        before = slice(0, len(self.baseline_positions))
        return _cut(self.baseline, before), _cut(self.candidate, before)


def align(baseline: TokenTrace, candidate: TokenTrace) -> Alignment:
    """Lay two traces of one vocabulary side by side: position by position, token ids decide."""
    starts = (np.array([0, len(side)], np.int64) for side in (baseline, candidate))
    shared, flips = share_tokens(baseline.token_ids, candidate.token_ids, *starts)
    n_shared, has_flip = int(shared[0]), bool(flips[0])
    positions = np.arange(n_shared)
    return Alignment(
        baseline=baseline,
        candidate=candidate,
        baseline_positions=positions,
        candidate_positions=positions,
        parts_at=(n_shared, n_shared) if has_flip or len(baseline) != len(candidate) else None,
        shorter=None if has_flip else _shorter(len(baseline), len(candidate)),
        is_approximate=False,
    )


def share_tokens(baseline: Ids, candidate: Ids, starts: Starts, candidate_starts: Starts) -> tuple[Starts, Bools]:
    """Return for each pair how many first tokens agree, int64[p], and whether a flip ends them, bool[p].

    The tokens of p traces of a side are concatenated, those of trace i from starts[i] to starts[i + 1].
    """
    n = np.minimum(np.diff(starts), np.diff(candidate_starts))
    bounds = np.concatenate([[0], np.cumsum(n)])
    rows = np.arange(bounds[-1])
    ours, theirs = (rows + np.repeat(each[:-1] - bounds[:-1], n) for each in (starts, candidate_starts))
    flips = find_firsts(baseline[ours] != candidate[theirs], bounds)
    has_flip = flips != NEVER
    return np.where(has_flip, flips, n), has_flip


def find_firsts(holds: Bools, starts: Starts) -> Starts:
    """Return int64[p], the first position in each stretch where `holds` is true, else NEVER.

    holds: bool[n], stretch i from starts[i] to starts[i + 1].
    """
    rows = np.append(np.flatnonzero(holds), len(holds))
    firsts = rows[np.searchsorted(rows, starts[:-1])]
    return np.where(firsts < starts[1:], firsts - starts[:-1], NEVER)


def align_by_bytes(
    baseline: TokenTrace, candidate: TokenTrace, baseline_vocabulary: Vocabulary, candidate_vocabulary: Vocabulary
) -> Alignment:
    """Lay two traces of different vocabularies side by side: the bytes of the answers decide.

    The flip stands, on each side, at the token that holds the first byte in which the answers differ, also
    where that byte is inside a character or a longer token. An end token holds no byte: against further text it is a
    flip; where only one side has recorded it, it is none, for that is a habit of logs.
    """
    traces, vocabularies = (baseline, candidate), (baseline_vocabulary, candidate_vocabulary)
    tokens = [_tokens(*side) for side in zip(traces, vocabularies, SIDES, strict=True)]
    pieces = [[token or b"" for token in side] for side in tokens]
    ends = [np.cumsum([len(piece) for piece in side], dtype=np.intp) for side in pieces]
    texts = [b"".join(side) for side in pieces]
    agreed = _common(*texts)
    parts_at, shorter = None, None
    if agreed < min(map(len, texts)):
        parts_at = (_holder(ends[0], agreed), _holder(ends[1], agreed))
    elif len(texts[0]) != len(texts[1]):
        parts_at, shorter = _past_the_end(tokens, ends, agreed)
    limits = parts_at or (len(baseline), len(candidate))
    left, right = _same_places(pieces, ends, limits)
    numbering = _number(traces, vocabularies)
    return Alignment(
        baseline=_renumbered(baseline, numbering[0]),
        candidate=_renumbered(candidate, numbering[1]),
        baseline_positions=left,
        candidate_positions=right,
        parts_at=parts_at,
        shorter=shorter,
        is_approximate=True,
    )


def spell_out(trace: TokenTrace, vocabulary: Vocabulary) -> list[bytes]:
    """Return the bytes of each token that has some; an end token has none."""
    return [token for token in _tokens(trace, vocabulary, SIDES[0]) if token]


def _cut(trace: TokenTrace, rows: Positions | slice) -> TokenTrace:
    return TokenTrace(
        trace.token_ids[rows], trace.logprobs[rows], trace.alternative_ids[rows], trace.alternative_logprobs[rows]
    )


def _shorter(n_baseline: int, n_candidate: int) -> Shorter | None:
    if n_baseline == n_candidate:
        return None
    return "baseline" if n_baseline < n_candidate else "candidate"


def _tokens(trace: TokenTrace, vocabulary: Vocabulary, side: Shorter) -> list[bytes | None]:
    """Return each position's bytes; None for an end token."""
    ids = trace.token_ids.tolist()
    return [None if token in vocabulary.end_ids else _bytes(token, vocabulary, side) for token in ids]


def _bytes(token: int, vocabulary: Vocabulary, side: Shorter) -> bytes:
    """Return a token's bytes; an unused id gets bytes that occur in no text, nor on the other side."""
    piece = vocabulary.token_bytes(token)
    return b"\xff%s %d" % (side.encode(), token) if piece is None else piece


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts share from their beginning."""
    n = min(len(one), len(other))
    if one[:n] == other[:n]:
        return n
    differs = np.frombuffer(one, np.uint8, n) != np.frombuffer(other, np.uint8, n)
    return int(differs.argmax())


def _holder(ends: Positions, place: int) -> int:
    """Return the position of the token that contains the byte at `place`."""
    return int(np.searchsorted(ends, place, side="right"))


def _past_the_end(
    tokens: Sequence[Sequence[bytes | None]], ends: Sequence[Positions], agreed: int
) -> tuple[tuple[int, int], Shorter | None]:
    """Return where one text, which begins the other, ends: a flip if its side chose to end."""
    n_bytes = [int(side[-1]) if len(side) else 0 for side in ends]
    short = 0 if n_bytes[0] < n_bytes[1] else 1
    ended = next((position for position, token in enumerate(tokens[short]) if token is None), None)
    stopped = len(tokens[short]) if ended is None else ended
    goes_on = _holder(ends[1 - short], agreed)
    return (stopped, goes_on) if short == 0 else (goes_on, stopped), SIDES[short] if ended is None else None


def _same_places(
    pieces: Sequence[Sequence[bytes]], ends: Sequence[Positions], limits: tuple[int, int]
) -> tuple[Positions, Positions]:
    """Return the positions before the limits whose tokens begin and end at the same bytes of both texts."""
    places = []
    for side, limit, bounds in zip(pieces, limits, ends, strict=True):
        starts = np.concatenate([[0], bounds[:-1]])[:limit] if len(bounds) else bounds
        places.append((starts, bounds[:limit], np.array([len(piece) > 0 for piece in side[:limit]], dtype=np.bool_)))
    keys = [start.astype(np.int64) << 32 | end for start, end, _ in places]
    indexes = [np.flatnonzero(is_held) for _, _, is_held in places]  # an end token holds no place
    _, left, right = np.intersect1d(keys[0][indexes[0]], keys[1][indexes[1]], assume_unique=True, return_indices=True)
    return indexes[0][left], indexes[1][right]


def _number(traces: Sequence[TokenTrace], vocabularies: Sequence[Vocabulary]) -> list[dict[int, int]]:
    """Return for each side id → a number that is equal on both sides for equal bytes.

    Numbered by the sorted bytes, so that swapping the sides changes no number. All end tokens are one; an unused id
    equals none of the other side.
    """
    names = []
    for trace, vocabulary, side in zip(traces, vocabularies, SIDES, strict=True):
        ids = np.union1d(trace.token_ids, trace.alternative_ids.ravel()).tolist()
        ends = vocabulary.end_ids
        names.append({i: _END if i in ends else _bytes(i, vocabulary, side) for i in ids if i != NO_TOKEN})
    order = {name: number for number, name in enumerate(sorted({*names[0].values(), *names[1].values()}))}
    return [{token: order[name] for token, name in side.items()} | {NO_TOKEN: NO_TOKEN} for side in names]


def _renumbered(trace: TokenTrace, numbering: dict[int, int]) -> TokenTrace:
    known = np.array(sorted(numbering), dtype=np.int32)
    numbers = np.array([numbering[token] for token in known.tolist()], dtype=np.int32)
    return TokenTrace(
        token_ids=numbers[np.searchsorted(known, trace.token_ids)],
        logprobs=trace.logprobs,
        alternative_ids=numbers[np.searchsorted(known, trace.alternative_ids)],
        alternative_logprobs=trace.alternative_logprobs,
    )
