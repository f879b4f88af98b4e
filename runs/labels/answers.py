"""The different answers of a run in a random order, their labels, and the sample that the labels make."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalboard.core.trace import unpack_digests, unpack_scores
from runs.models import Case, CaseColumns, LabelRecord, RepeatScore, RunRecord
from runs.store import require_row

Keys = NDArray[np.uint64]
RELATED = ("suite_version__suite", "source")


class OwnLabel(NamedTuple):
    """A label of the person who asks; `answer` is its index."""

    id: int
    answer: int
    is_right: bool


@dataclass(frozen=True, slots=True)
class RunAnswers:
    """The n responses of a run's whole repeats in a random order, and their m different answers.

    The order is by a hash of case, text and repeat. So neither people nor scores decide it, and the responses before
    any point of it are a random sample of all: without one, labels correct no scorer. The order depends on no run:
    answers that two runs share come at about the same place in both, and are labelled once. Responses are ordered
    and not answers, so that an answer given in several repeats counts in each.

    The same text to the same case is one answer. places: int64[n], each response in the repeats, one after the other.
    inverse: int64[n], its answer. keys: uint64[m], ascending. first: int64[m], its first response in the order.
    labels: float64[m], NaN without one. n_people: int64[m]. own: of the person who asks, oldest first.
    """

    run: RunRecord
    repeats: tuple[int, ...]
    places: NDArray[np.int64]
    keys: Keys
    first: NDArray[np.int64]
    inverse: NDArray[np.int64]
    is_mixed: bool
    labels: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    n_people: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    people: frozenset[int | None] = frozenset()
    own: tuple[OwnLabel, ...] = ()

    @property
    def n_sampled(self) -> int:
        """Count the responses in the order before the first without a label."""
        missing = np.flatnonzero(np.isnan(self.labels[self.inverse]))
        return int(missing[0]) if len(missing) else len(self.inverse)

    @property
    def is_sampled(self) -> NDArray[np.bool_]:
        """Return bool[m]: which answers belong to the sample."""
        return np.asarray(self.first < self.n_sampled)

    @property
    def is_disputed(self) -> NDArray[np.bool_]:
        return np.asarray(self.labels == 0.5)

    def in_order(self, chosen: NDArray[np.bool_]) -> list[int]:
        """Return the chosen answers in the random order."""
        at = np.flatnonzero(chosen)
        return [int(answer) for answer in at[np.argsort(self.first[at])]]

    def place(self, answer: int) -> tuple[int, int]:
        """Return a repeat that gave an answer, and the index of its case."""
        row, case = divmod(int(self.places[self.first[answer]]), self.run.suite_version.n_cases)
        return self.repeats[row], case

    def find(self, keys: Keys) -> NDArray[np.int64]:
        """Return the answer of each key, -1 where the run did not give it."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, at, -1)

    def average(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return float64[m]: the mean of the n scores of each answer's responses, NaN where none has one."""
        sums, counts = (
            np.bincount(self.inverse, weights=values, minlength=len(self.keys))
            for values in (np.nan_to_num(scores), ~np.isnan(scores))
        )
        return np.asarray(sums / np.where(counts > 0, counts, np.nan))

    def read_scores(self) -> dict[int, NDArray[np.float64]]:
        """Return by scorer float64[n], NaN where a response has no score; the suite's own is first."""
        n_cases = self.run.suite_version.n_cases
        scores: dict[int, NDArray[np.float64]] = {}
        rows = RepeatScore.objects.filter(repeat__run=self.run, repeat__cases=None).order_by("scorer_id")
        for scorer, repeat, packed in rows.values_list("scorer_id", "repeat__index", "scores"):
            given = scores.setdefault(scorer, np.full((len(self.repeats), n_cases), np.nan))
            if repeat in self.repeats:
                given[self.repeats.index(repeat)] = unpack_scores(bytes(packed), n_cases)
        own = self.run.suite_version.scorer_id
        return {pk: scores[pk].ravel()[self.places] for pk in sorted(scores, key=lambda pk: (pk != own, pk))}


def load_run(run_id: int) -> RunRecord:
    """Return a run with its suite. Raises NotFound."""
    return require_row(RunRecord.objects.select_related(*RELATED).filter(pk=run_id), f"There is no run {run_id}.")


def read_answers(run: RunRecord, user: Any = None) -> RunAnswers:
    """Read the answers of a run's ended repeats, with their labels. user: whose own are wanted."""
    columns = CaseColumns.objects.filter(repeat__run=run, repeat__cases=None).order_by("repeat__index")
    rows = list(columns.values_list("repeat__index", "text_digests", "bucket_ids"))
    n_cases = run.suite_version.n_cases
    texts = np.stack([unpack_digests(bytes(packed), n_cases) for _, packed, _ in rows]) if rows else _NO_TEXTS
    cases = Case.objects.filter(suite_version=run.suite_version_id).order_by("index")
    case_parts = _case_parts(cases.values_list("digest", flat=True)) if rows else np.empty(0, np.uint64)
    indexes = tuple(row[0] for row in rows)
    there = np.flatnonzero(texts.any(axis=2))
    given = make_keys(np.tile(case_parts, len(rows))[there], texts[..., 0].ravel()[there])
    order = np.argsort(_mix(given ^ _mix(np.repeat(np.array(indexes, np.uint64), n_cases)[there])))
    keys, first, inverse = np.unique(given[order], return_index=True, return_inverse=True)
    buckets = {bucket for _, _, ids in rows for bucket in ids}
    return _with_labels(RunAnswers(run, indexes, there[order], keys, first, inverse, len(buckets) > 1), user)


_NO_TEXTS = np.empty((0, 0, 2), np.uint64)


def _with_labels(answers: RunAnswers, user: Any) -> RunAnswers:
    stored = LabelRecord.objects.filter(suite=answers.run.suite_version.suite_id).order_by("id")
    rows = list(stored.values_list("id", "case_digest", "text_digest", "value", "person_id"))
    keys = make_keys(_case_parts(row[1] for row in rows), _text_parts(row[2] for row in rows))
    at = answers.find(keys)
    is_given = at >= 0
    values = np.array([row[3] for row in rows], np.float64)[is_given]
    n_people = np.bincount(at[is_given], minlength=len(answers.keys))
    sums = np.bincount(at[is_given], weights=values, minlength=len(answers.keys))
    given = [(row, int(answer)) for row, answer in zip(rows, at, strict=True) if answer >= 0]
    own = [OwnLabel(row[0], answer, row[3] == 1) for row, answer in given if user is not None and row[4] == user.pk]
    return replace(
        answers,
        labels=sums / np.where(n_people > 0, n_people, np.nan),
        n_people=n_people,
        people=frozenset(row[4] for row, _ in given),
        own=tuple(own),
    )


def make_keys(cases: Keys, texts: Keys) -> Keys:
    """Return uint64[n], evenly spread: the keys of answers, by the digests of case and text."""
    return _mix(cases ^ _mix(texts))


def _case_parts(digests: Iterable[str]) -> Keys:
    return np.array([int(digest[:16], 16) for digest in digests], np.uint64)


def _text_parts(digests: Iterable[bytes | memoryview]) -> Keys:
    return np.frombuffer(b"".join(bytes(digest)[:8] for digest in digests), "<u8").astype(np.uint64)


def _mix(values: Keys) -> Keys:
    """Return uint64[n]: each value with its bits mixed, by the finalizer of splitmix64."""
    mixed = values
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def case_rows(run: RunRecord, indexes: Sequence[int]) -> dict[int, Case]:
    """Return cases of a run's suite version by their index."""
    return {case.index: case for case in Case.objects.filter(suite_version=run.suite_version_id, index__in=indexes)}
