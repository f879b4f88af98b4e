"""Read traces from their blocks, many at a time in bounded memory, and only the needed bytes."""

from collections.abc import Iterable, Iterator, Sequence

from evalboard.core.trace import BlockPiece, Reading, TokenTrace, TraceColumns, start_size
from runs.store import bulk

BLOCKS = "SELECT id, data FROM runs_traceblock WHERE id = ANY(%s::bigint[])"
STARTS = """
SELECT id, octet_length(data), substring(data FOR %s) FROM runs_traceblock WHERE id = ANY(%s::bigint[])
"""
# PostgreSQL keeps a large value in chunks, and reads those alone that hold the bytes.
PIECES = """
SELECT piece.place, substring(block.data FROM piece.first + 1 FOR piece.size)
  FROM unnest(%s::bigint[], %s::integer[], %s::integer[]) WITH ORDINALITY AS piece (id, first, size, place)
  JOIN runs_traceblock AS block ON block.id = piece.id
"""
START_BYTES = 1996  # one of those chunks: the directory of a block of 32 traces, and a short block as a whole
PAIRS_AT_ONCE = 256  # more take memory that a process touches for the first time, which costs more than it saves
ROWS_AT_ONCE = 32  # one by one, taking the rows takes as long as reading the bytes in them
READ_BYTES = 32 << 20  # of packed traces in memory at once

TracePlace = tuple[int, int]  # trace block id, slot
TracePair = tuple[TracePlace, TracePlace]


def read(places: Iterable[TracePlace]) -> list[TokenTrace]:
    """Return the traces at these places, in order, without prompt ids; equal places share an object."""
    wanted = list(places)
    distinct = list(dict.fromkeys(wanted))
    columns = read_columns(distinct)
    traces = {place: columns.trace(at) for at, place in enumerate(distinct)}
    return [traces[place] for place in wanted]


def read_columns(places: Iterable[TracePlace]) -> TraceColumns:
    """Return the traces at these places as columns, in order; a place may come more than once."""
    return _Places(list(places)).columns()


def read_pair_columns(pairs: Sequence[TracePair]) -> Iterator[tuple[TraceColumns, TraceColumns]]:
    """Yield both sides of consecutive pairs as columns, in stretches of at most READ_BYTES.

    The first side's trace i and the second's are one pair; stretch by stretch they are all the pairs, in order.
    """
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        yield from _read_stretch(pairs[start : start + PAIRS_AT_ONCE])


def _read_stretch(pairs: Sequence[TracePair]) -> Iterator[tuple[TraceColumns, TraceColumns]]:
    n = len(pairs)
    places = _Places([*(ours for ours, _ in pairs), *(theirs for _, theirs in pairs)])
    if places.n_bytes > READ_BYTES and n > 1:
        for half in (pairs[: n // 2], pairs[n // 2 :]):
            yield from _read_stretch(half)
        return
    columns = places.columns()
    yield columns.take(range(n)), columns.take(range(n, 2 * n))


class _Places:
    """Traces whose directories have been read, but not their positions."""

    def __init__(self, places: Sequence[TracePlace]) -> None:
        distinct = {place: at for at, place in enumerate(dict.fromkeys(places))}
        self._order = [distinct[place] for place in places]
        blocks = sorted({block for block, _ in distinct})
        read = {block: rest for block, *rest in bulk.stream_binary(STARTS, [START_BYTES, blocks], at_once=ROWS_AT_ONCE)}
        self._ids = [block for block in blocks if block in read]
        self._sizes = [read[block][0] for block in self._ids]
        self._starts = self._read_starts([read[block][1] for block in self._ids])
        at = {block: at for at, block in enumerate(self._ids)}
        self._reading = Reading(self._starts, [(at[block], slot) for block, slot in distinct])

    @property
    def n_bytes(self) -> int:
        """Packed bytes that reading takes."""
        return sum(piece.size for piece in self._reading.pieces)

    def columns(self) -> TraceColumns:
        columns = self._reading.columns(self._read(self._reading.pieces))
        is_in_order = self._order == list(range(len(self._order)))
        return columns if is_in_order else columns.take(self._order)

    def _read_starts(self, starts: list[bytes]) -> list[bytes]:
        """Return the starts with those made longer whose directory is."""
        more = [BlockPiece(at, 0, size) for at, start in enumerate(starts) if len(start) < (size := start_size(start))]
        self._starts = starts
        for piece, data in zip(more, self._read(more), strict=True):
            starts[piece.block] = data
        return starts

    def _read(self, pieces: Sequence[BlockPiece]) -> list[bytes]:
        """Return the bytes of pieces, in order, reusing those in the blocks' starts."""
        read: dict[int, bytes] = {}
        rest = []
        for at, (block, offset, size) in enumerate(pieces):
            end = min(offset + size, self._sizes[block])
            if end <= len(self._starts[block]):
                read[at] = self._starts[block][offset:end]
            else:
                rest.append((at, self._ids[block], offset, max(end - offset, 0)))
        if rest:
            places, *columns = zip(*rest, strict=True)
            rows = bulk.stream_binary(PIECES, [list(c) for c in columns], at_once=ROWS_AT_ONCE)
            read |= {places[place - 1]: data for place, data in rows}
        return [read[at] for at in range(len(pieces))]
