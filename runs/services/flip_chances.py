"""Which cases of a run are likely to flip: computed when its first repeat ends, while no other can show it yet.

The traces of that repeat are decoded once more for it, some 45 ms for every hundred thousand positions: what a shard
packs is not decoded as a whole, and a response has no column to keep a chance in until its repeat ends. Later repeats
are left out: within one bucket their margins say the same.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from evalboard.core import codec, columns, fragility
from evalboard.core.errors import TraceDamaged
from runs import bulk, pair_facts
from runs.models import Bucket, Repeat
from runs.stored_traces import BLOCKS

FIRST = 1

Placed = tuple[int, int, int, int]  # case index, bucket id, trace block id, slot


def predict(repeat: Repeat, responses: Iterable[Placed]) -> bytes | None:
    """The packed flip chances of a repeat; None for a later repeat, and where the margins do not decide.

    They decide in greedy decoding, with nothing added to the logits. A trace that cannot be read is unknown, as is a
    missing response: neither may keep a repeat from ending.
    """
    if repeat.index != FIRST:
        return None
    asked = pair_facts.asked_of(repeat.run)
    if asked.temperature != 0 or asked.is_adjusted:
        return None
    by_block: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for index, bucket, block, slot in responses:
        by_block[block].append((slot, index, bucket))
    noise = _noise({bucket for members in by_block.values() for _, _, bucket in members})
    chances = np.full(repeat.run.suite_version.n_cases, fragility.UNKNOWN, dtype=np.float32)
    for block, data in bulk.stream_binary(BLOCKS, [list(by_block)]):
        slots, indexes, buckets = (np.array(part) for part in zip(*by_block[block], strict=True))
        try:
            traces = codec.read_traces(data, slots.tolist())
        except TraceDamaged:
            continue
        for bucket in np.unique(buckets).tolist():
            mine = np.flatnonzero(buckets == bucket)
            chances[indexes[mine]] = fragility.flip_chances([traces[at] for at in mine.tolist()], noise[bucket])
    return columns.pack_chances(chances)


def _noise(bucket_ids: set[int]) -> dict[int, float]:
    """For each bucket the noise to reckon with, in nats: assumed, as no repeat has measured it yet."""
    buckets = Bucket.objects.filter(pk__in=bucket_ids).select_related("fingerprint")
    return {bucket.pk: fragility.assumed_sd(pair_facts.dtype_of(bucket)) for bucket in buckets}
