"""Where two stored responses part, and whose words their tokens are: the same for one pair and for a comparison."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare import Divergence, find_divergence, find_text_divergence, measure_distances
from evalboard.core.trace import Trace, Vocabulary, join_traces
from runs.models import Vocabulary as VocabularyRow

MEASURED_AT_ONCE = 1 << 15  # positions of both sides


@dataclass(frozen=True, slots=True)
class TracedText:
    """What shows where a response parts from another. trace, vocabulary_id: None where nobody stored one.

    is_logged: as a log or a server of others has it, whose numbers are decimals.
    """

    text: str
    trace: Trace | None
    vocabulary_id: int | None
    is_logged: bool


_Pair = tuple[TracedText, TracedText]


def find_parting(baseline: TracedText, candidate: TracedText) -> Divergence | None:
    """Find how two responses part, by their texts where a trace is missing; None where traces are equal to the bit."""
    if baseline.trace is None or candidate.trace is None:
        return find_text_divergence(baseline.text, candidate.text)
    words = vocabularies(baseline, candidate)
    if words is None and baseline.trace.digest == candidate.trace.digest:
        return None
    is_decimal = baseline.is_logged or candidate.is_logged
    return find_divergence(baseline.trace, candidate.trace, vocabularies=words, is_decimal=is_decimal)


def distance_tables(cases: Sequence[Sequence[TracedText]]) -> list[NDArray[np.float64]]:
    """Return of each case's k responses float64[k, k] in nats²: 0 between equal traces, NaN where a trace or positions
    are missing.
    """
    tables = [np.zeros((len(responses), len(responses))) for responses in cases]
    # Repeats that refer to one stored trace are measured once.
    alike: dict[tuple[int, bytes, bytes, int | None, int | None], list[tuple[int, int]]] = {}
    for case, responses in enumerate(cases):
        for at, other in combinations(range(len(responses)), 2):
            ours, theirs = responses[at], responses[other]
            if ours.trace is None or theirs.trace is None:
                tables[case][at, other] = tables[case][other, at] = np.nan
            elif ours.trace.digest != theirs.trace.digest:
                known = (case, ours.trace.digest, theirs.trace.digest, ours.vocabulary_id, theirs.vocabulary_id)
                alike.setdefault(known, []).append((at, other))
    pairs = [(cases[case][at], cases[case][other]) for (case, *_), [(at, other), *_] in alike.items()]
    for ((case, *_), places), distance in zip(alike.items(), _distances(pairs), strict=True):
        for at, other in places:
            tables[case][at, other] = tables[case][other, at] = distance
    return tables


def _distances(pairs: Sequence[_Pair]) -> Iterator[float]:
    """Yield how far the two responses of each pair lie apart, many pairs measured at once."""
    for part in _parts(pairs):
        sides = (join_traces([side.trace for side in one if side.trace is not None]) for one in zip(*part, strict=True))
        yield from measure_distances(*sides, vocabularies=[vocabularies(*pair) for pair in part]).tolist()


def _parts(pairs: Iterable[_Pair]) -> Iterator[list[_Pair]]:
    """Yield stretches of the pairs, each of at most MEASURED_AT_ONCE positions, and of one pair at the least."""
    part: list[_Pair] = []
    n_positions = 0
    for pair in pairs:
        n = sum(len(side.trace) for side in pair if side.trace is not None)
        if part and n_positions + n > MEASURED_AT_ONCE:
            yield part
            part, n_positions = [], 0
        part.append(pair)
        n_positions += n
    if part:
        yield part


def vocabularies(baseline: TracedText, candidate: TracedText) -> tuple[Vocabulary, Vocabulary] | None:
    """Return both sides' words where they differ: then only bytes can be compared. None where ids can be.

    Words that logs and servers of others have of one model go on from one run to the next, so that ids are the same.
    """
    ours, theirs = baseline.vocabulary_id, candidate.vocabulary_id
    if ours is None or theirs is None or ours == theirs:
        return None
    if baseline.is_logged and candidate.is_logged and _is_continued(ours, theirs):
        return None
    return stored_words(ours), stored_words(theirs)


@functools.lru_cache(maxsize=4)
def stored_words(pk: int) -> Vocabulary:
    """Read a vocabulary. It never changes, and unpacking one takes longer than the rest of a page."""
    return Vocabulary.unpack(bytes(VocabularyRow.objects.values_list("data", flat=True).get(pk=pk)))


@functools.lru_cache(maxsize=4)  # asked for every pair
def _is_continued(vocabulary_id: int, other_id: int) -> bool:
    return stored_words(vocabulary_id).agrees_with(stored_words(other_id))
