"""Cases of a run that several buckets answered: who answered which repeat, and each bucket's results."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runs.models import RunRecord
from runs.pairs.backend_names import names_on
from runs.run.case_table import FAILED, PASSED, UNSTABLE, Bits, find_unstable
from runs.run.read_columns import read_columns
from runs.store import NO_BUCKET


@dataclass(frozen=True, slots=True)
class MixedCases:
    """Columns of all cases over k repeats.

    served_by: int64[n, k], bucket ids, NO_BUCKET where missing. scores: float64[n, k], NaN where missing or not scored.
    marks: uint8[n, k]. letters: bucket id → its name on the endpoint, by how many responses each gave.
    """

    served_by: NDArray[np.int64]
    scores: NDArray[np.float64]
    marks: NDArray[np.uint8]
    letters: Mapping[int, str]

    def name_servers(self, case_index: int) -> tuple[str, ...]:
        """Return a letter for each repeat of a case, "" where it is missing."""
        return tuple(self.letters.get(bucket, "") for bucket in self.served_by[case_index].tolist())

    def answered_by(self, bucket: int) -> NDArray[np.bool_]:
        """Return bool[n], whether a bucket answered some repeat of each case."""
        return np.asarray((self.served_by == bucket).any(axis=1))

    def read_bits(self, bucket: int) -> Bits:
        """Return uint16[n], each case's bits by one bucket's responses; 0 if it did not answer."""
        own = np.where(self.served_by == bucket, self.scores, np.nan)
        flags = {
            UNSTABLE: find_unstable(own, self.marks),
            FAILED: (own < 1).any(axis=1),
            PASSED: (own == 1).any(axis=1),
        }
        bits = np.zeros(len(own), np.uint16)
        for bit, is_so in flags.items():
            bits[is_so] |= bit
        return bits

    def find_differing(self) -> NDArray[np.bool_]:
        """Return bool[n]: whether one bucket's mean score of a case is not another's."""
        low, high = np.full(len(self.scores), np.inf), np.full(len(self.scores), -np.inf)
        for bucket in self.letters:
            own = np.where(self.served_by == bucket, self.scores, np.nan)
            n_known = (~np.isnan(own)).sum(axis=1)
            mean = np.nansum(own, axis=1) / np.maximum(n_known, 1)
            low = np.where(n_known > 0, np.minimum(low, mean), low)
            high = np.where(n_known > 0, np.maximum(high, mean), high)
        return np.asarray(high - low > 1e-9)


def read_mixed_cases(run: RunRecord) -> MixedCases:
    """Read the columns of a run's repeats of all cases that have ended."""
    columns = read_columns(run)
    shape = (columns.n_cases, len(columns.repeats))
    served_by, scores, marks = np.full(shape, NO_BUCKET), np.full(shape, np.nan), np.zeros(shape, np.uint8)
    for place, repeat in enumerate(columns.repeats):
        if repeat.served_by is not None:
            served_by[:, place] = repeat.served_by
        if repeat.scores is not None:
            scores[:, place] = repeat.scores
        if repeat.marks is not None:
            marks[:, place] = repeat.marks
    buckets, n_responses = np.unique(served_by[served_by != NO_BUCKET], return_counts=True)
    by_share = buckets[np.lexsort((buckets, -n_responses))].tolist()
    return MixedCases(served_by, scores, marks, names_on(run.endpoint_id, by_share))
