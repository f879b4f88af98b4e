"""What a response would take if it were stored otherwise: a trace beside one of the same tokens, a text packed.

    python -m bench.size_trials

needs no database. Evalboard stores nothing so: the figures say what it would be worth (bench/README.md). All that
reading would need is counted, but nothing is read back.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import zstandard
from numpy.typing import NDArray

from bench.bench_trace import PER_BLOCK, recorded
from bench.row import Row
from bench.size_data import DOCS, N_CHARACTERS, N_RESPONSES, SEED, make_decoded, move
from evalboard.core.stats import assume_logit_sd
from evalboard.core.trace import TokenTrace, codec, encode_block, packing

N_TRACES = 320
STEP = 2.0**-20  # nats: the grid of the recorded float32 logits
PER_TRACE = 16 + 11 + 12  # bytes: its digest, its row of the directory, and where the other trace stands
PER_PART = 4 + 6  # its checksum and its row of the directory
DICTIONARIES = (0, 4, 16, 112)  # kB

Rng = np.random.Generator
Words = NDArray[np.uint32]


def measure() -> list[Row]:
    rng = np.random.default_rng(SEED)
    traces = [each.trace for each in make_decoded(rng)[:N_TRACES] if each.trace is not None]
    siblings: dict[str, Callable[[TokenTrace], TokenTrace]] = {
        "another log-sum": lambda trace: move(trace, rng),
        "every logit moved": lambda trace: _move_logits(trace, rng),
    }
    rows: list[Row] = []
    for what, moved in siblings.items():
        rows += _beside(what, traces, [moved(trace) for trace in traces])
    pairs = [_shared(*pair) for pair in zip(recorded("float32"), recorded("bfloat16"), strict=True)]
    rows += _beside("bfloat16 beside float32, recorded", *(list(side) for side in zip(*pairs, strict=True)))
    return rows + _texts(rng)


def _beside(what: str, traces: Sequence[TokenTrace], siblings: Sequence[TokenTrace]) -> list[Row]:
    """Rows for the siblings as blocks hold them now, and as what differs from the traces."""
    n = sum(map(len, siblings))
    starts = range(0, len(siblings), PER_BLOCK)
    now = sum(len(encode_block(siblings[start : start + PER_BLOCK])) for start in starts)
    apart = sum(PER_PART + len(_pack(*part)) for part in _parts(traces, siblings)) + PER_TRACE * len(siblings)
    name = f"{what}, traces of {n / len(siblings):.0f} positions"
    return [
        Row(f"{name}: as blocks are", now / n, "bytes/position"),
        Row(f"{name}: what differs", apart / n, "bytes/position"),
    ]


def _parts(
    traces: Sequence[TokenTrace], siblings: Sequence[TokenTrace]
) -> Iterator[tuple[Sequence[TokenTrace], Sequence[TokenTrace]]]:
    """Yield traces and siblings as they would stand in one part."""
    first, cells = 0, 0
    for at, sibling in enumerate(siblings, 1):
        cells += sibling.alternative_ids.size
        if cells >= codec.PART_CELLS or at == len(siblings):
            yield traces[first:at], siblings[first:at]
            first, cells = at, 0


def _pack(traces: Sequence[TokenTrace], siblings: Sequence[TokenTrace]) -> bytes:
    """Pack what differs: the first alternative's logprob, the others' against what the trace makes of them, and the ids
    that are not its.
    """
    ours, theirs = ([each.alternative_logprobs for each in side] for side in (traces, siblings))
    own, other = np.concatenate(ours), np.concatenate(theirs)
    foretold = other[:, :1] - (own[:, :1] - own[:, 1:])
    ids, other_ids = (np.concatenate([each.alternative_ids for each in side]) for side in (traces, siblings))
    moved = np.flatnonzero((ids != other_ids).any(axis=1))
    planes = [*_planes(other[:, 0], own[:, 0]), *_planes(other[:, 1:].ravel(), foretold.ravel())]
    planes += [moved.astype("<u2").tobytes(), other_ids[moved].astype("<u2").tobytes()]
    packed = [plane for plane in planes if not codec._is_random(plane, 1)]
    return b"".join([packing.pack(packed), *(plane for plane in planes if codec._is_random(plane, 1))])


def _planes(logprobs: NDArray[np.float32], others: NDArray[np.float32]) -> list[bytes]:
    """Return how far the bits of logprobs lie from others', small numbers first, as bytes, the highest first."""
    apart = logprobs.view(np.int32).astype(np.int64) - others.astype(np.float32).view(np.int32)
    words = np.where(apart < 0, -2 * apart - 1, 2 * apart).astype("<u4")
    return [words.view(np.uint8).reshape(-1, 4)[:, byte].tobytes() for byte in (3, 2, 1, 0)]


def _move_logits(trace: TokenTrace, rng: Rng) -> TokenTrace:
    """Return the trace with each logit moved by the noise of float32, in whole steps of its grid."""
    noise = np.rint(rng.normal(0, assume_logit_sd("float32"), trace.alternative_logprobs.shape) / STEP) * STEP
    listed = trace.alternative_logprobs + (noise - rng.exponential(1e-3, (len(trace), 1))).astype(np.float32)
    return replace(trace, logprobs=listed[:, 0].copy(), alternative_logprobs=listed)


def _shared(trace: TokenTrace, other: TokenTrace) -> tuple[TokenTrace, TokenTrace]:
    """Return two traces up to where their tokens part."""
    n = min(len(trace), len(other))
    is_other = np.flatnonzero(trace.token_ids[:n] != other.token_ids[:n])
    end = int(is_other[0]) if len(is_other) else n
    return _cut(trace, end), _cut(other, end)


def _cut(trace: TokenTrace, end: int) -> TokenTrace:
    return TokenTrace(
        trace.token_ids[:end], trace.logprobs[:end], trace.alternative_ids[:end], trace.alternative_logprobs[:end]
    )


def _texts(rng: Rng) -> list[Row]:
    """Rows for texts packed one by one, under dictionaries made of others."""
    text = " ".join(path.read_text() for path in sorted(DOCS.glob("*.md"))).encode()
    half = len(text) // 2
    known, texts = _windows(text[:half], rng), _windows(text[half:], rng)
    rows = []
    for size in DICTIONARIES:
        trained = zstandard.train_dictionary(size << 10, known) if size else None
        packer = zstandard.ZstdCompressor(level=packing.LEVEL, dict_data=trained, write_content_size=False)
        what = f"texts of {N_CHARACTERS} bytes, each packed, dictionary of {size} kB"
        rows.append(Row(what, sum(len(packer.compress(each)) for each in texts) / len(texts), "bytes"))
    return rows


def _windows(text: bytes, rng: Rng) -> list[bytes]:
    firsts = rng.integers(len(text) - N_CHARACTERS, size=N_RESPONSES)
    return [text[first : first + N_CHARACTERS] for first in firsts.tolist()]


if __name__ == "__main__":
    for found in measure():
        sys.stdout.write(f"{found.value:>10,.2f} {found.unit:<15} {found.what}\n")
