"""Pack the cases of a run for lists: two bytes per case to filter by, and frames to show."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from evalboard.core.stats import UNKNOWN_CHANCE, is_left_out, is_likely_flip, select_draws
from evalboard.core.trace import NOTABLE, unpack_reasons
from runs.models import RepeatScore, ResponseRecord
from runs.run.read_columns import RunColumns
from runs.store import Digests

FRAME = 256  # cases; a page of a hundred that lie apart reads a hundred of them
# The bits of a case. Mixed: its repeats came from several buckets. Passed: scored 1 in some repeat.
UNSTABLE, MISSING, FAILED, PASSED, LEFT_OUT, LIKELY, MIXED = (1 << bit for bit in range(7))
BY_ENDING = {str(ending): 1 << bit for bit, ending in enumerate(NOTABLE, start=7)}  # one of its answers ended so
MAX_FRAME_BYTES = 1 << 28

Bits = NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Frame:
    """Some cases in a row.

    scores: float64[m, k], NaN where missing or not scored yet. marks: uint8[m, k], as core.stats.live_answers has them.
    n_texts, n_traces: uint32[m], different ones. flip_chances: float32[m], NaN where unknown. shown: uint32[m], the
    column of the repeat to show: the first with the lowest score, and an answer without a score before one that passes.
    reasons: of that repeat; None where there is none.
    """

    scores: NDArray[np.float64]
    marks: NDArray[np.uint8]
    n_texts: NDArray[np.uint32]
    n_traces: NDArray[np.uint32]
    flip_chances: NDArray[np.float32]
    shown: NDArray[np.uint32]
    reasons: Sequence[str | None]


def unpack_bits(packed: bytes) -> Bits:
    """Return uint16[n_cases]."""
    return np.frombuffer(zstandard.decompress(packed), "<u2")


def unpack_frame(packed: bytes, *, n_repeats: int) -> Frame:
    """Return the cases of a frame over so many repeats."""
    data = zstandard.decompress(packed, max_output_size=MAX_FRAME_BYTES)
    n = int.from_bytes(data[:4], "little")
    at = 4

    def column(dtype: str, *shape: int) -> NDArray[Any]:
        nonlocal at
        values = np.frombuffer(data, dtype, int(np.prod(shape)), at).reshape(shape)
        at += values.nbytes
        return values

    scores, marks = column("<f8", n, n_repeats), column("u1", n, n_repeats)
    n_texts, n_traces, chances, shown = column("<u4", n), column("<u4", n), column("<f4", n), column("<u4", n)
    return Frame(scores, marks, n_texts, n_traces, chances, shown, json.loads(data[at:]))


@dataclass(frozen=True, slots=True)
class CaseTable:
    """All cases of a run, as `Frame` has them but for the reasons; bits: uint16[n_cases]."""

    bits: Bits
    cases: Frame

    def pack_bits(self) -> bytes:
        return zstandard.compress(self.bits.astype("<u2").tobytes())

    def pack_frames(self) -> Iterator[tuple[int, bytes]]:
        """Yield (index of its first case, packed frame)."""
        packer, of = zstandard.ZstdCompressor(), self.cases
        for first in range(0, len(self.bits), FRAME):
            part = slice(first, first + FRAME)
            columns = of.scores, of.marks, of.n_texts, of.n_traces, of.flip_chances, of.shown
            reasons = json.dumps(of.reasons[part], separators=(",", ":")).encode()
            n = len(of.scores[part]).to_bytes(4, "little")
            yield first, packer.compress(b"".join([n, *(column[part].tobytes() for column in columns), reasons]))


def make_table(columns: RunColumns) -> CaseTable:
    """Return the table of a run's columns; reads the reasons of its scores."""
    n_cases, repeats = columns.n_cases, columns.repeats
    scores = np.full((n_cases, len(repeats)), np.nan)
    marks = np.zeros((n_cases, len(repeats)), np.uint8)
    chances = np.full(n_cases, UNKNOWN_CHANCE, np.float32)
    is_missing = np.zeros(n_cases, bool)
    for place, repeat in enumerate(repeats):
        if repeat.scores is not None:
            scores[:, place] = repeat.scores
            is_missing |= np.isnan(repeat.scores)
        if repeat.marks is not None:
            marks[:, place] = repeat.marks
        if repeat.flip_chances is not None:
            chances = repeat.flip_chances
    flags = {
        UNSTABLE: find_unstable(scores, marks),
        MISSING: is_missing,
        FAILED: (scores < 1).any(axis=1),
        PASSED: (scores == 1).any(axis=1),
        LEFT_OUT: is_left_out(marks).any(axis=1),
        LIKELY: is_likely_flip(chances),
        MIXED: _is_mixed([repeat.served_by for repeat in repeats if repeat.served_by is not None], n_cases),
    }
    bits = np.zeros(n_cases, np.uint16)
    for bit, is_so in flags.items():
        bits[is_so] |= bit
    ended = ResponseRecord.objects.filter(repeat__run=columns.run, repeat__cases=None, ending__in=NOTABLE).order_by()
    for index, ending in ended.values_list("case_index", "ending").distinct():
        bits[index] |= BY_ENDING[ending]
    texts = [repeat.texts for repeat in repeats if repeat.texts is not None]
    traces = [repeat.traces for repeat in repeats if repeat.traces is not None]
    shown = _find_shown(columns, scores)
    n_texts, n_traces = (_n_different(digests, n_cases) for digests in (texts, traces))
    return CaseTable(bits, Frame(scores, marks, n_texts, n_traces, chances, shown, _reasons(columns, shown)))


def find_unstable(scores: NDArray[np.float64], marks: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Find cases whose samples (two or more) differ in score."""
    drawn = select_draws(scores, marks)
    first = np.where(np.isnan(drawn), np.inf, drawn).min(axis=1, initial=np.inf)
    last = np.where(np.isnan(drawn), -np.inf, drawn).max(axis=1, initial=-np.inf)
    return np.asarray(last > first)


def _is_mixed(served: list[NDArray[np.int64]], n_cases: int) -> NDArray[np.bool_]:
    """Return bool[n_cases]: whether repeats of a case came from several buckets, ignoring missing ones."""
    if not served:
        return np.zeros(n_cases, dtype=bool)
    table = np.column_stack(served)
    last = table.max(axis=1)
    return np.asarray(np.where(table < 0, last[:, None], table).min(axis=1) != last)


def _n_different(digests: list[Digests], n_cases: int) -> NDArray[np.uint32]:
    """Return the number of distinct digests of each case; zeros mean missing and are not counted."""
    if not digests:
        return np.zeros(n_cases, np.uint32)
    # All have 16 bytes, so numpy's habit of ignoring trailing zeros can make no two of them equal.
    table = np.sort(np.column_stack([np.ascontiguousarray(one).view("S16")[:, 0] for one in digests]), axis=1)
    is_new = np.column_stack([table[:, :1] != b"", (table[:, 1:] != table[:, :-1]) & (table[:, 1:] != b"")])
    return np.asarray(is_new.sum(axis=1, dtype=np.uint32))


def _find_shown(columns: RunColumns, scores: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Return uint32[n_cases]: the column of the repeat to show of each case."""
    if not scores.shape[1]:
        return np.zeros(len(scores), np.uint32)
    ranks = scores.copy()
    for place, repeat in enumerate(columns.repeats):
        is_answered = np.zeros(len(scores), bool) if repeat.texts is None else np.any(repeat.texts, axis=1)
        is_unscored = np.isnan(scores[:, place])
        ranks[is_unscored, place] = np.where(is_answered[is_unscored], np.nextafter(1.0, 0.0), np.inf)
    return np.asarray(np.argmin(ranks, axis=1), np.uint32)


def _reasons(columns: RunColumns, shown: NDArray[np.uint32]) -> list[str | None]:
    """For each case the reason of the repeat to show."""
    reasons: list[str | None] = [None] * len(shown)
    wanted: dict[int, list[int]] = {}
    for place, repeat in enumerate(columns.repeats):
        if repeat.score_id is not None:
            wanted[repeat.score_id] = np.flatnonzero(shown == place).tolist()
    for score_id, packed in RepeatScore.objects.filter(pk__in=wanted).values_list("pk", "reasons").iterator():
        stored = unpack_reasons(bytes(packed))
        for index in wanted[score_id]:
            reasons[index] = stored[index] or None
    return reasons
