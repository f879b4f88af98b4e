"""Find where two responses diverge, for one pair or a whole comparison."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare.alignment import spell_out
from evalboard.core.compare.divergence import Divergence, find_divergence, find_divergences, find_text_divergence
from evalboard.core.compare.drift import measure_distances
from evalboard.core.compare.known_pair import Place
from evalboard.core.compare.paired_rows import Vocabularies
from evalboard.core.trace import TokenTrace, TraceColumns, Vocabulary, join_traces

MEASURED_AT_ONCE = 1 << 15  # positions of both sides
_END_MARKS = re.compile(rb"(\s*<[^<>]{1,60}>)+\s*$")  # an end token that a log keeps as text


@dataclass(frozen=True, slots=True)
class TracedText:
    """A response as divergences need it. trace, vocabulary_id: None if not stored.

    is_logged: from a log or an external server, with decimal numbers.
    """

    text: str
    trace: TokenTrace | None
    vocabulary_id: int | None
    is_logged: bool


class WordsById:
    """Vocabularies by the ids that responses give. They never change. read: returns one of them."""

    def __init__(self, read: Callable[[int], Vocabulary]) -> None:
        self.read = functools.lru_cache(maxsize=4)(read)  # unpacking one takes longer than the rest of a page
        self._is_continued = functools.lru_cache(maxsize=4)(self._agree)  # asked for every pair

    def beside(self, ours: int | None, theirs: int | None, *, are_logged: bool) -> Vocabularies | None:
        """Return both sides' words where they differ: then only bytes can be compared. None where ids can be.

        are_logged: words that logs and servers of others have of one model go on from one run to the next, so that ids
        are the same.
        """
        if ours is None or theirs is None or ours == theirs or (are_logged and self._is_continued(ours, theirs)):
            return None
        return self.read(ours), self.read(theirs)

    def of(self, baseline: TracedText, candidate: TracedText) -> Vocabularies | None:
        """Return what `beside` does of two responses."""
        are_logged = baseline.is_logged and candidate.is_logged
        return self.beside(baseline.vocabulary_id, candidate.vocabulary_id, are_logged=are_logged)

    def spelling(self, ours: int | None, theirs: int | None) -> Vocabularies | None:
        """Return both sides' words, None where one is not known."""
        return None if ours is None or theirs is None else (self.read(ours), self.read(theirs))

    def _agree(self, ours: int, theirs: int) -> bool:
        return self.read(ours).agrees_with(self.read(theirs))


_Pair = tuple[TracedText, TracedText]


class PairedTexts(NamedTuple):
    """Two responses. places: where their traces are read, None for one without. is_same_trace: to the bit."""

    texts: tuple[str, str]
    places: tuple[Place | None, Place | None]
    vocabulary_ids: tuple[int | None, int | None]
    is_same_trace: bool


def find_partings(
    pairs: Sequence[PairedTexts],
    words: WordsById,
    read: Callable[[list[tuple[Place, Place]]], Iterable[tuple[TraceColumns, TraceColumns]]],
    *,
    are_logged: tuple[bool, bool],
) -> list[Divergence | None]:
    """Find how pairs diverge, by texts if a trace is missing; None if traces are equal to the bit.

    read: gives the traces of these places in order, as many pairs at a time as it likes. are_logged: as `is_logged`
    of both sides.
    """
    partings: list[Divergence | None] = [None] * len(pairs)
    traced: list[tuple[int, tuple[Place, Place], Vocabularies | None]] = []
    for at, pair in enumerate(pairs):
        one, other = pair.places
        if one is None or other is None:
            partings[at] = find_text_divergence(*pair.texts)
            continue
        own = words.beside(*pair.vocabulary_ids, are_logged=all(are_logged))
        if own is not None or not pair.is_same_trace:
            traced.append((at, (one, other), own))
    n_read = 0
    for columns in read([places for _, places, _ in traced]):
        stretch = traced[n_read : n_read + len(columns[0])]
        words_of = [own for _, _, own in stretch]
        divergences = find_divergences(*columns, vocabularies=words_of, is_decimal=any(are_logged))
        for n, ((at, _, _), parted) in enumerate(zip(stretch, divergences, strict=True)):
            is_same_text, is_logged = pairs[at].texts[0] == pairs[at].texts[1], any(are_logged)
            partings[at] = parted
            if is_same_text or is_logged:
                traces = columns[0].trace(n), columns[1].trace(n)
                spelled = words.spelling(*pairs[at].vocabulary_ids)
                partings[at] = settle_spelling(parted, traces, spelled, is_same_text=is_same_text, is_logged=is_logged)
        n_read += len(stretch)
    return partings


def find_parting(baseline: TracedText, candidate: TracedText, words: WordsById) -> Divergence | None:
    """Find the same of one pair."""
    one, other = baseline.trace, candidate.trace
    is_same = one is not None and other is not None and one.digest == other.digest
    ids = baseline.vocabulary_id, candidate.vocabulary_id
    pair = PairedTexts((baseline.text, candidate.text), (one, other), ids, is_same)
    return find_partings([pair], words, _join_each, are_logged=(baseline.is_logged, candidate.is_logged))[0]


def _join_each(pairs: list[tuple[TokenTrace, TokenTrace]]) -> Iterator[tuple[TraceColumns, TraceColumns]]:
    return ((join_traces([one]), join_traces([other])) for one, other in pairs)


def settle_spelling(
    parted: Divergence,
    traces: tuple[TokenTrace, TokenTrace],
    words: Vocabularies | None,
    *,
    is_same_text: bool,
    is_logged: bool,
) -> Divergence:
    """Return how two traces part, without partings at which they only cut one text into other tokens.

    words: of both sides, None where they are not known. is_same_text: whether the answers are equal. is_logged: the ids
    are not a tokenizer's own, so that the bytes decide also where the texts part later.
    """
    ours, theirs = parted.parts_at, parted.parts_at_candidate
    is_flipped = parted.flip_position is not None and ours is not None and theirs is not None
    if words is None or not (is_same_text or is_logged) or not (is_flipped or parted.is_approximate):
        return parted
    pieces = [spell_out(trace, vocabulary) for trace, vocabulary in zip(traces, words, strict=True)]
    if pieces[0] == pieces[1]:
        return parted
    if is_same_text and len({_END_MARKS.sub(b"", b"".join(side)).strip() for side in pieces}) == 1:
        n, n_too = map(len, traces)
        return Divergence(n_baseline=n, n_candidate=n_too, has_logprobs=True, is_retokenised=True)
    if parted.is_approximate or not is_flipped or not is_logged:
        return parted
    longer = max(len(b"".join(side[at : at + 1])) for side, at in zip(pieces, (ours or 0, theirs or 0), strict=True))
    rests = [b"".join(side[at:]) for side, at in zip(pieces, (ours or 0, theirs or 0), strict=True)]
    if min(map(len, rests)) < longer or rests[0][:longer] != rests[1][:longer]:
        return parted
    return find_divergence(*traces, vocabularies=words, is_decimal=True)


class CaseDistances(NamedTuple):
    """How far the k responses of a case differ.

    nats: float64[k, k] in nats², NaN if a trace or positions are missing. are_alike: bool[k, k], which are one answer:
    their traces are equal, decimals to a step.
    """

    nats: NDArray[np.float64]
    are_alike: NDArray[np.bool_]


def distance_tables(cases: Sequence[Sequence[TracedText]], words: WordsById) -> list[CaseDistances]:
    """Return the distances of each case's responses. If any is logged, all numbers count as decimals."""
    tables = [CaseDistances(np.zeros((k, k)), np.ones((k, k), np.bool_)) for k in map(len, cases)]
    is_decimal = any(each.is_logged for responses in cases for each in responses)
    # Repeats that refer to one stored trace are measured once.
    alike: dict[tuple[int, bytes, bytes, int | None, int | None], list[tuple[int, int]]] = {}
    for case, responses in enumerate(cases):
        for at, other in combinations(range(len(responses)), 2):
            ours, theirs = responses[at], responses[other]
            if ours.trace is None or theirs.trace is None:
                _set(tables[case], at, other, np.nan, is_alike=False)
            elif ours.trace.digest != theirs.trace.digest or words.of(ours, theirs) is not None:
                known = (case, ours.trace.digest, theirs.trace.digest, ours.vocabulary_id, theirs.vocabulary_id)
                alike.setdefault(known, []).append((at, other))
    pairs = [(cases[case][at], cases[case][other]) for (case, *_), [(at, other), *_] in alike.items()]
    measured = _measure(pairs, words, is_decimal=is_decimal)
    for ((case, *_), places), (distance, is_alike) in zip(alike.items(), measured, strict=True):
        for at, other in places:
            _set(tables[case], at, other, 0.0 if is_alike else distance, is_alike=is_alike)
    return tables


def _set(table: CaseDistances, at: int, other: int, distance: float, *, is_alike: bool) -> None:
    table.nats[at, other] = table.nats[other, at] = distance
    table.are_alike[at, other] = table.are_alike[other, at] = is_alike


def _measure(pairs: Sequence[_Pair], words: WordsById, *, is_decimal: bool) -> Iterator[tuple[float, bool]]:
    """Yield each pair's distance, and whether they are equal; many are measured at once."""
    for part in _parts(pairs):
        sides = (join_traces([side.trace for side in one if side.trace is not None]) for one in zip(*part, strict=True))
        own = [words.of(*pair) for pair in part]
        distances, are_alike = measure_distances(*sides, vocabularies=own, is_decimal=is_decimal)
        yield from zip(distances.tolist(), are_alike.tolist(), strict=True)


def _parts(pairs: Iterable[_Pair]) -> Iterator[list[_Pair]]:
    """Yield stretches of pairs, each at most MEASURED_AT_ONCE positions, but at least one pair."""
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
