"""The two sides of a comparison: their columns on the same cases, and readers for everything else.

The caller makes the sides, and knows how responses and traces are stored and read.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.run import Draws
from evalboard.core.compare.comparability import SideSetup, is_steady_batch
from evalboard.core.compare.known_pair import Place, RequestSettings, ResponseFacts, ServingFacts
from evalboard.core.stats import EffectiveDraws, Marks, SideAnswers, SideDraws, effective_draws, read_draws
from evalboard.core.trace import TokenTrace, TraceColumns

Bools = NDArray[np.bool_]
Digests = NDArray[np.uint64]
Indexes = NDArray[np.int64]
Scores = NDArray[np.float64]
NO_STRAYS = np.zeros(0, np.int64), np.zeros(0, np.int64)
AnswerKey = tuple[int, bytes]  # of an answer: its case, and the digest of the trace that was decoded


class BucketFacts(NamedTuple):
    """A bucket. logits: their name, as a floor of noise has it; None where not known."""

    batch_class: str
    logits: str | None
    served: ServingFacts


class ScoredAnswer(NamedTuple):
    """An answer as one stack scored it: the place of its trace, and its vocabulary."""

    place: Place
    vocabulary_id: int | None


class Traces(Protocol):
    """Reads traces by their places."""

    def read(self, places: Iterable[Place], /) -> list[TokenTrace]: ...

    def read_pair_columns(
        self, pairs: Sequence[tuple[Place, Place]], /
    ) -> Iterator[tuple[TraceColumns, TraceColumns]]: ...


class ScoredAnswers(Protocol):
    """One side's answers as the stacks of both sides have scored them."""

    def cases(self) -> Sequence[int]:
        """Return the suite's indexes of the cases that have some."""
        ...

    def read(
        self, case_indexes: Sequence[int], /
    ) -> tuple[Mapping[AnswerKey, ScoredAnswer], Mapping[AnswerKey, ScoredAnswer]]:
        """Return the answers to these cases as the baseline's stack and as the candidate's read them."""
        ...


class Responses(Protocol):
    """Reads a side's responses."""

    def read(self, cases: Indexes, repeats: Indexes, needs_text: Bools, /) -> list[ResponseFacts | None]:
        """Return the responses at these places of the columns, in order; None for one that never was."""
        ...

    def find_traced(self, is_there: Bools, /) -> Bools:
        """Return which of these responses, bool[n, a], have a trace."""
        ...

    def find_vocabulary(self) -> int | None:
        """Return whose words the tokens of most responses are."""
        ...

    @property
    def scored(self) -> ScoredAnswers | None:
        """Return the answers that both sides' stacks scored; None without any."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Side:
    """One side's columns, in the order of the comparison's cases; a is the number of repeats.

    repeats: their numbers. ended: the places of those that were neither cancelled nor failed; draws: what these are.
    case_indexes: int64[n], the suite's index of each case. texts, traces: uint64[n, a, 2], digests, zeros where
    missing. buckets: int64[n, a] of bucket ids, negative where missing. scores: float64[n, a], NaN where missing;
    alike: the same by the other side's scorer, None where that is no other one. marks: uint8[n, a], as
    core.stats.live_answers has them. shares: (bucket id, number of responses, share of all) of each bucket that served
    the side, the largest first, in the order of setup.served. known: of these buckets at least. is_reported: it comes
    from a log or an external server, whose numbers are decimals. strays: rows and columns of the responses that another
    computation gave than the others of their case. usual: uint64[n, m, 2], digests of the texts that independent runs
    of the same side gave.
    """

    repeats: tuple[int, ...]
    ended: tuple[int, ...]
    draws: Draws
    case_indexes: Indexes
    texts: Digests
    traces: Digests
    buckets: Indexes
    scores: Scores
    alike: Scores | None
    marks: Marks
    setup: SideSetup
    shares: Sequence[tuple[int, int, float]]
    known: Mapping[int, BucketFacts]
    settings: RequestSettings
    is_reported: bool
    responses: Responses
    strays: tuple[Indexes, Indexes] = NO_STRAYS
    usual: Digests | None = None

    @property
    def batch_classes(self) -> tuple[str, ...]:
        """Those of the buckets that served the side."""
        return tuple(self.known[bucket].batch_class for bucket in self.bucket_ids)

    @property
    def is_steady(self) -> bool:
        """Return whether repeats give the same bits: a steady batch class, without sampling."""
        return are_bits_steady(self.batch_classes, self.draws)

    @cached_property
    def effective(self) -> EffectiveDraws:
        """Return which answers are samples; its marks add `copies` to those of `marks`."""
        return find_draws(
            batch_classes=self.batch_classes,
            draws=self.draws,
            texts=self.texts,
            traces=self.traces,
            is_there=self.is_there,
            marks=self.marks,
            find_company=None if self.is_reported else self.find_company,
            usual=self.usual,
        )

    def find_company(self) -> Sequence[Hashable]:
        """Return a key for the batches of each repeat; if unknown, a unique one."""
        return self.repeats

    @property
    def bucket_ids(self) -> tuple[int, ...]:
        """The buckets that served the side, that of the most responses first."""
        return tuple(bucket for bucket, _, _ in self.shares)

    @property
    def is_there(self) -> Bools:
        """bool[n, a]: whether there is a response."""
        has_response: Bools = self.buckets >= 0
        return has_response

    @cached_property
    def scored_draws(self) -> tuple[SideDraws, Draws]:
        """Return the scored repeats' samples."""
        places = list(self.ended)
        return read_side_draws(self.scores[:, places], self.effective.marks[:, places], self.draws)


def are_bits_steady(batch_classes: Sequence[str], draws: Draws) -> bool:
    """Tell whether repeats give the same bits: steady batch classes, without sampling."""
    is_steady = bool(batch_classes) and all(is_steady_batch(each, are_batches_equal=True) for each in batch_classes)
    return is_steady and not draws.may_sample


def find_draws(*, batch_classes: Sequence[str], draws: Draws, **answers: Any) -> EffectiveDraws:
    """Tell which answers are draws, for comparisons, verdicts and a run's own noise alike.

    answers: the other fields of `SideAnswers`.
    """
    is_steady = are_bits_steady(batch_classes, draws)
    return effective_draws(SideAnswers(draws=draws, is_steady=is_steady, **answers))


def read_side_draws(scores: Scores, marks: Marks | None, drawn: Draws) -> tuple[SideDraws, Draws]:
    """Return a side's repeats of samples; if all of them are one sample, that one."""
    side = read_draws(scores, marks)
    drawn = replace(drawn, repeats=tuple(drawn.repeats[at] for at in side.places if at < len(drawn.repeats)))
    return (side.as_one(), replace(drawn, repeats=drawn.repeats[:1])) if drawn.is_one else (side, drawn)
