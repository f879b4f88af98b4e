"""Traces read out of their blocks, many at a time and in bounded memory."""

from collections.abc import Iterable, Iterator, Sequence

from django.db.models import BigIntegerField, Func

from evalboard.core import codec
from evalboard.core.trace import Trace
from runs import bulk
from runs.models import TraceBlock

BLOCKS = "SELECT id, data FROM runs_traceblock WHERE id = ANY(%s::bigint[])"
BLOCK_BYTES = 32 << 20  # of packed blocks in memory at once

Place = tuple[int, int]  # trace block id, slot


def read(places: Iterable[Place]) -> list[Trace]:
    """The traces at these places, in order; of a block only the slots that are asked for are decoded."""
    asked = list(places)
    slots: dict[int, list[int]] = {}
    for block, slot in dict.fromkeys(asked):
        slots.setdefault(block, []).append(slot)
    decoded: dict[Place, Trace] = {}
    # PostgreSQL unpacks and sends the next block while this one is decoded.
    for block, data in bulk.stream_binary(BLOCKS, [list(slots)]):
        traces = codec.read_traces(data, slots[block])
        decoded.update(zip(((block, slot) for slot in slots[block]), traces, strict=True))
    return [decoded[place] for place in asked]


def read_pairs(pairs: Sequence[tuple[Place, Place]]) -> Iterator[tuple[Trace, Trace]]:
    """The traces of pairs, in order; at most BLOCK_BYTES of blocks are in memory, and one pair's at the least."""
    sizes = _sizes({block for pair in pairs for block, _ in pair})
    batch: list[tuple[Place, Place]] = []
    blocks: set[int] = set()
    held = 0
    for pair in pairs:
        new = {block for block, _ in pair} - blocks
        more = sum(sizes.get(block, 0) for block in new)
        if batch and held + more > BLOCK_BYTES:
            yield from _batch(batch)
            batch, blocks, held = [], set(), 0
            new = {block for block, _ in pair}
            more = sum(sizes.get(block, 0) for block in new)
        batch.append(pair)
        blocks |= new
        held += more
    yield from _batch(batch)


def _batch(pairs: Sequence[tuple[Place, Place]]) -> Iterator[tuple[Trace, Trace]]:
    traces = iter(read(place for pair in pairs for place in pair))
    for _ in pairs:
        yield next(traces), next(traces)


def _sizes(ids: set[int]) -> dict[int, int]:
    size = Func("data", function="octet_length", output_field=BigIntegerField())
    return dict(TraceBlock.objects.filter(pk__in=ids).values_list("pk", size))
