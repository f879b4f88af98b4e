"""Search one bucket's repeats for responses from another build: outliers within their case."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare.comparability import is_steady_batch
from evalboard.core.compare.drift import measure_distances
from evalboard.core.compare.known_pair import Place
from evalboard.core.compare.run_facts import AnyBucket, logits_of
from evalboard.core.compare.side_columns import NO_BUCKET, Columns
from evalboard.core.compare.sides import Bools, Digests, Traces
from evalboard.core.stats import FAR_FLOORS, BucketStrays, assume_logit_sd, find_strays, list_strays
from evalboard.core.trace import differ

MIN_REPEATS = 3  # of two that differ, either may be the outlier
PAIRS = 10_000  # of repeats of a bucket, that are read at once
MIN_CASES = 200  # that are read then however many repeats they have

Rows = NDArray[np.intp]
CasePlaces = Callable[[Rows], Mapping[tuple[int, int], Place]]


@dataclass(frozen=True, eq=False, kw_only=True)
class ServedRepeats:
    """One bucket's part of a run's k repeats.

    traces: uint64[n, k, 2], digests. is_ours: bool[n, k], its draws that have a trace. is_steady: they should be the
    same to the bit. is_decimal: their numbers are decimals. logits: their name, as a floor of noise has it.
    find_places: returns (case, column) → where the trace is kept, of some cases. reader: reads these places.
    """

    traces: Digests
    is_ours: Bools
    is_steady: bool
    is_decimal: bool
    logits: str | None
    find_places: CasePlaces
    reader: Traces

    @property
    def n_repeats(self) -> NDArray[np.int64]:
        """int64[n]: draws of each case."""
        return np.asarray(self.is_ours.sum(axis=1), np.int64)

    @property
    def telling(self) -> Rows:
        """Cases that have enough draws and in which they differ."""
        return np.flatnonzero(self.differs & (self.n_repeats >= MIN_REPEATS))

    @property
    def n_at_once(self) -> int:
        """Return how many cases are read at once."""
        k: int = self.is_ours.shape[1]
        return max(2 * PAIRS // (k * (k - 1)), MIN_CASES)

    @property
    def far(self) -> float:
        """In nats, what noise does not do where the repeats measure none."""
        return 0.0 if self.is_steady else FAR_FLOORS * assume_logit_sd(self.logits)

    @property
    def differs(self) -> Bools:
        """bool[n]: cases whose draws are not the same to the bit."""
        first = np.take_along_axis(self.traces, self.is_ours.argmax(axis=1)[:, None, None], axis=1)
        has_other: Bools = ((self.traces != first).any(axis=2) & self.is_ours).any(axis=1)
        return has_other

    def search(self) -> "tuple[ReadRepeats, BucketStrays | None]":
        """Read an even sample of the cases that differ, and search it; None without outliers."""
        telling = self.telling
        read = self.read(telling[:: max(len(telling) // self.n_at_once, 1)][: self.n_at_once])
        return read, find_strays(read.tables, far=self.far)

    def list_all(self) -> list[tuple[int, int]]:
        """Return (case, column) of every outlier, including differing cases beyond the sample."""
        read, strays = self.search()
        if strays is None:
            return []
        if len(read.cases) < len(telling := self.telling):
            read = self.read(telling)
            strays = list_strays(read.tables, far=strays.far)
        return [(int(read.cases[case]), at) for case, at in strays.places]

    def read(self, cases: Rows) -> "ReadRepeats":
        """Read how far the bucket's samples of these cases differ; equal traces are read once."""
        rows = {case: at for at, case in enumerate(cases.tolist())}
        places = {(rows[case], at): place for (case, at), place in self.find_places(cases).items()}
        n = self.is_ours.shape[1]
        is_there = np.zeros((len(cases), n), np.bool_)
        is_there[tuple(np.array(list(places), np.intp).reshape(-1, 2).T)] = True
        is_there &= self.is_ours[cases]
        digests = self.traces[cases]
        are_alike = ~differ(digests[:, :, None], digests[:, None]) & is_there[:, :, None] & is_there[:, None]
        firsts = are_alike.argmax(axis=2)  # represents all equal ones
        is_first = is_there & (firsts == np.arange(n))
        at = np.nonzero(np.triu(is_first[:, :, None] & is_first[:, None], 1))
        pairs = [(places[case, one], places[case, other]) for case, one, other in np.transpose(at).tolist()]
        measured = [
            measure_distances(*sides, is_decimal=self.is_decimal) for sides in self.reader.read_pair_columns(pairs)
        ]
        apart = np.zeros(are_alike.shape)
        apart[at] = np.concatenate([np.zeros(0), *(distances for distances, _ in measured)])
        apart += apart.transpose(0, 2, 1)
        are_alike[at] = np.concatenate([np.zeros(0, np.bool_), *(are_equal for _, are_equal in measured)])
        case_at, one, other = np.arange(len(cases))[:, None, None], firsts[:, :, None], firsts[:, None]
        are_there = is_there[:, :, None] & is_there[:, None]
        are_alike = (are_alike | are_alike.transpose(0, 2, 1))[case_at, one, other] & are_there
        tables = np.where(are_there, apart[case_at, one, other], np.nan)
        return ReadRepeats(cases, is_there, are_alike, tables)


@dataclass(frozen=True, eq=False)
class DrawsByBucket:
    """The samples of several repeats. served: int64[n, k], each one's bucket, or NO_BUCKET."""

    served: NDArray[np.int64]
    traces: Digests
    are_greedy: bool

    @property
    def ids(self) -> list[int]:
        """The buckets that gave any."""
        return [bucket for bucket in np.unique(self.served).tolist() if bucket != NO_BUCKET]

    def of(self, bucket: AnyBucket) -> dict[str, Any]:
        """Return the fields of `ServedRepeats` of one bucket that columns give."""
        return {
            "traces": self.traces,
            "is_ours": (self.served == bucket.pk) & self.traces.any(axis=2),
            "is_steady": is_steady_batch(bucket.batch_class, are_batches_equal=self.are_greedy),
            "logits": logits_of(bucket),
        }


def split_by_bucket(columns: Sequence[Columns], *, are_greedy: bool) -> DrawsByBucket:
    """Return the draws of these repeats. are_greedy: nothing was sampled, so that fixed batches are equal."""
    served = np.column_stack([each.draws_by for each in columns])
    return DrawsByBucket(served, np.stack([each.traces for each in columns], axis=1), are_greedy)


@dataclass(frozen=True, eq=False)
class ReadRepeats:
    """Some cases of a bucket, read.

    cases: intp[n]. is_there: bool[n, k], its samples. are_alike: bool[n, k, k], pairs that are the same to the bit.
    tables: float64[n, k, k] in nats², as `find_strays` takes them.
    """

    cases: Rows
    is_there: Bools
    are_alike: Bools
    tables: NDArray[np.float64]

    def count_identical(self, strays: BucketStrays) -> int:
        """Count samples, without outliers, that are the same to the bit as another of their case."""
        agrees = self.is_there.copy()
        agrees[tuple(np.array(strays.places, np.intp).reshape(-1, 2).T)] = False
        n_alike = (self.are_alike & agrees[:, None, :]).sum(axis=2)
        return int((agrees & (n_alike > 1)).sum())
