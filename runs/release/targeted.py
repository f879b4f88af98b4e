"""Predict noise before it is measured: choose the noisiest cases, and estimate a new run's noise.

The cases are chosen by the flip chances from the margins of the baseline's first repeat, never by the result of a
comparison. A run with few repeats is given the noise of these chances and of earlier runs in its bucket.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import F
from numpy.typing import NDArray

from evalboard.core.compare import is_steady_batch
from evalboard.core.release import TargetedScores
from evalboard.core.stats import EarlierNoise, choose_noisiest, measure_earlier
from evalboard.core.trace import unpack_chances, unpack_scores, unpack_selection
from runs.models import CaseColumns, GateRecord, RepeatRecord, RepeatScore, RunRecord, Scorer

EARLIER_READ = 20  # repeats of earlier runs, the newest


@dataclass(frozen=True, slots=True)
class TargetedInputs:
    """Targeted repeats with the same cases on both runs of a gate: their scores, by repeat.

    n_before: as in core.release.TargetedScores.
    """

    cases: bytes
    baseline: tuple[RepeatScore, ...]
    candidate: tuple[RepeatScore, ...]
    n_before: int

    @property
    def digests(self) -> dict[str, list[str]]:
        """Return the digests of the scores by side."""
        return {
            name: [score.digest for score in scores]
            for name, scores in (("baseline", self.baseline), ("candidate", self.candidate))
        }

    def load(self, n_cases: int) -> TargetedScores:
        """Return the scores, float64[n_cases, k] of each side, NaN where missing or not chosen."""
        sides = [
            np.column_stack([unpack_scores(bytes(score.scores), n_cases) for score in scores])
            for scores in (self.baseline, self.candidate)
        ]
        chosen = unpack_selection(self.cases, n_cases)
        return TargetedScores(is_chosen=chosen, baseline=sides[0], candidate=sides[1], n_before=self.n_before)


def find_targeted(gates: Sequence[GateRecord]) -> Mapping[int, TargetedInputs]:
    """Return by gate the targeted repeats that have ended and enter its verdict, of gates that have some."""
    runs = {run for gate in gates for run in (gate.baseline_run_id, gate.candidate_run_id)}
    own = RepeatScore.objects.filter(repeat__run__in=runs, scorer=F("repeat__run__suite_version__scorer"))
    ended = own.filter(repeat__finished_at__isnull=False).exclude(repeat__cases=None)
    ended = (
        ended.exclude(repeat__status__in=RepeatRecord.WITHOUT_SCORE).select_related("repeat").order_by("repeat__index")
    )
    by_run: dict[int, dict[bytes, list[RepeatScore]]] = defaultdict(lambda: defaultdict(list))
    for score in ended.defer("reasons", "answers"):
        by_run[score.repeat.run_id][bytes(score.repeat.cases or b"")].append(score)
    if not by_run:
        return {}
    whole = _read_whole(by_run)
    known = ((gate.pk, _shared(gate, by_run, whole)) for gate in gates)
    return {gate: targeted for gate, targeted in known if targeted is not None}


def choose_cases(baseline: RunRecord, candidate: RunRecord) -> NDArray[np.bool_] | None:
    """Return bool[n_cases], the cases for further repeats of both runs; None if they cannot be chosen.

    That is without known flip chances, for different suite versions, or if a run is from a log.
    """
    if baseline.suite_version_id != candidate.suite_version_id or baseline.source_id or candidate.source_id:
        return None
    chances = _read_chances(baseline)
    return None if chances is None else choose_noisiest(chances)


def find_earlier(run: RunRecord, scorer: Scorer) -> dict[int, str]:
    """Return earlier runs' repeats that show the noise of a run's bucket: score id → digest.

    scorer: that judges the run; only its scores of them are read.
    These runs were asked as this one was, by one profile, and had ended when it started. Where the batch moves bits, a
    repeat that is the same to the bit as an earlier one of its run may be a copy, and is left out.
    """
    if run.is_reported or run.source_id is not None or run.bucket is None or run.started_at is None:
        return {}
    asked_alike = {name: getattr(run, name) for name in ("suite_version_id", "profile_id", "bucket_id", "is_reported")}
    earlier = RunRecord.objects.filter(
        **asked_alike, source=None, is_one_draw=False, status=RunRecord.Status.FINISHED, finished_at__lt=run.started_at
    )
    scores = RepeatScore.objects.filter(repeat__run__in=earlier, repeat__cases=None, points__isnull=False)
    scores = scores.filter(scorer=scorer).exclude(repeat__columns__n_left_out__gt=0)
    newest_first = scores.order_by("-repeat__run", "repeat__index")[:EARLIER_READ]
    rows = list(newest_first.values_list("pk", "digest", "repeat__run", "repeat__columns__digest"))
    if not is_steady_batch(run.bucket.batch_class, are_batches_equal=True):
        rows = list({(of, columns): (pk, digest, of, columns) for pk, digest, of, columns in reversed(rows)}.values())
    return {pk: digest for pk, digest, _, _ in rows}


def measure_early_noise(run: RunRecord, earlier: Collection[int], cases: NDArray[np.int64]) -> EarlierNoise:
    """Return what is known of a run's noise from outside it. cases: indexes."""
    packed = RepeatScore.objects.filter(pk__in=earlier).order_by("pk").values_list("scores", flat=True)
    columns = [unpack_scores(bytes(each))[cases] for each in packed]
    scores = np.column_stack(columns) if columns else np.zeros((len(cases), 0))
    chances = _read_chances(run)
    return measure_earlier(scores, None if chances is None else chances[cases])


def _read_chances(run: RunRecord) -> NDArray[np.float32] | None:
    """Return the flip chances by the margins of a run's first repeat; None where they are not known."""
    known = CaseColumns.objects.filter(repeat__run=run, flip_chances__isnull=False)
    packed = known.values_list("flip_chances", flat=True).first()
    return None if packed is None else unpack_chances(bytes(packed))


def _read_whole(runs: Mapping[int, object]) -> Mapping[int, list[int]]:
    """Return by run the ids of the repeats of all cases that are judged."""
    rows = RepeatRecord.objects.filter(cases=None, run__in=runs, finished_at__isnull=False)
    ids: dict[int, list[int]] = defaultdict(list)
    for run_id, repeat_id in rows.exclude(status__in=RepeatRecord.WITHOUT_SCORE).values_list("run", "pk"):
        ids[run_id].append(repeat_id)
    return ids


def _shared(
    gate: GateRecord, by_run: Mapping[int, Mapping[bytes, list[RepeatScore]]], whole: Mapping[int, list[int]]
) -> TargetedInputs | None:
    """Return the targeted repeats of one selection that both runs have, the baseline's first one."""
    if gate.baseline_run.suite_version_id != gate.candidate_run.suite_version_id:
        return None
    ours, theirs = (by_run.get(run, {}) for run in (gate.baseline_run_id, gate.candidate_run_id))
    cases = next((cases for cases in ours if cases in theirs), None)
    if cases is None:
        return None
    sides = (ours[cases], theirs[cases])
    both_began = max(side[0].repeat_id for side in sides)  # repeats are stored in the order in which they are added
    n_before = min(sum(pk < both_began for pk in whole[side[0].repeat.run_id]) for side in sides)
    return TargetedInputs(cases, tuple(sides[0]), tuple(sides[1]), n_before)
