"""Compute which cases of a run are likely to flip when its first repeat ends.

A response has no column for its chance until its repeat ends, so the process that stores it remembers the chance.
Traces that other processes stored, or that were forgotten, are decoded again, some 45 ms per hundred thousand
positions. Later repeats are left out: within one bucket they have the same margins.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from evalboard.core.errors import TraceDamaged
from evalboard.core.stats import UNKNOWN_CHANCE, assume_logit_sd, predict_flip_chances
from evalboard.core.trace import TokenTrace, pack_chances, read_traces
from runs.models import BucketRecord, RepeatRecord, RunRecord
from runs.pairs import pair_facts
from runs.store import BLOCKS, bulk

FIRST = 1
MAX_REMEMBERED = 100_000  # some 20 MB

Placed = tuple[int, int, bytes, int, int]  # case index, bucket id, trace digest, trace block id, slot

# By what alone decides it, the trace's digest and the noise in nats: whichever attempt stored it, it is the same.
_remembered: dict[tuple[bytes, float], float] = {}


def remember(repeat: RepeatRecord, bucket: BucketRecord, traces: Sequence[TokenTrace]) -> None:
    """Cache the flip chances of traces from one bucket, if the repeat's end will use them."""
    if repeat.index != FIRST or not _margins_decide(repeat.run):
        return
    noise = assume_logit_sd(pair_facts.logits_of(bucket))
    chances = predict_flip_chances(traces, noise).tolist()
    _remembered.update(((trace.digest, noise), chance) for trace, chance in zip(traces, chances, strict=True))
    for oldest in list(_remembered)[: max(len(_remembered) - MAX_REMEMBERED, 0)]:
        _remembered.pop(oldest, None)


def predict(repeat: RepeatRecord, responses: Iterable[Placed]) -> bytes | None:
    """Return a repeat's packed flip chances; None for later repeats, and if margins do not decide.

    They decide in greedy decoding, with nothing added to the logits. A trace that cannot be read is unknown, as is a
    missing response: neither may keep a repeat from ending.
    """
    if repeat.index != FIRST or not _margins_decide(repeat.run):
        return None
    placed = list(responses)
    noise = _noise({bucket for _, bucket, _, _, _ in placed})
    chances = np.full(repeat.run.suite_version.n_cases, UNKNOWN_CHANCE, dtype=np.float32)
    by_block: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for index, bucket, digest, block, slot in placed:
        known = _remembered.get((digest, noise[bucket]))
        if known is None:
            by_block[block].append((slot, index, bucket))
        else:
            chances[index] = known
    for block, data in bulk.stream_binary(BLOCKS, [list(by_block)]) if by_block else ():
        slots, indexes, buckets = (np.array(part) for part in zip(*by_block[block], strict=True))
        try:
            traces = read_traces(data, slots.tolist())
        except TraceDamaged:
            continue
        for bucket in np.unique(buckets).tolist():
            mine = np.flatnonzero(buckets == bucket)
            chances[indexes[mine]] = predict_flip_chances([traces[at] for at in mine.tolist()], noise[bucket])
    return pack_chances(chances)


def _margins_decide(run: RunRecord) -> bool:
    setup = pair_facts.request_settings(run)
    return setup.temperature == 0 and not setup.is_adjusted


def _noise(bucket_ids: set[int]) -> dict[int, float]:
    """For each bucket the noise to reckon with, in nats: assumed, as no repeat has measured it yet."""
    buckets = BucketRecord.objects.filter(pk__in=bucket_ids).select_related("fingerprint")
    return {bucket.pk: assume_logit_sd(pair_facts.logits_of(bucket)) for bucket in buckets}
