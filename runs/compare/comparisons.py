"""Two runs compared: found if it was done before, else computed here or, where it is much, by the workers.

What is the same to the bit is never read. A comparison is kept by the digest of what it was computed from; a further
repeat, or other scores, make another one.
"""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from evalboard.core.compare import (
    TokenBytes,
    allows_comparing,
    begin_summary,
    complete_summary,
    count_by_digest,
    find_blocks,
    find_moved_setup,
    rank_consequence,
)
from evalboard.core.errors import EvalboardError
from evalboard.core.stats import NumericNoise
from evalboard.wording.comparability import explain_block
from runs.compare import inputs as comparison_inputs
from runs.compare import outcomes, reading
from runs.compare.computation import judge_computation
from runs.compare.groups import Groups, find_groups
from runs.compare.inputs import Inputs, Side, SideKey
from runs.compare.noise_share import ScoreNoise, find_noise_share
from runs.compare.reading import Judged
from runs.compare.stored_pairs import read_pairs
from runs.compare.telling import keep_told
from runs.models import Comparison, Divergence, EngineProcess, Response
from runs.store import bulk

logger = logging.getLogger(__name__)

INLINE = 4000  # distinct pairs that a request reads itself; more are left to the workers
CHUNK = 2000  # distinct pairs that one call of `work_on_comparison` reads
RETRY_FAILED = timedelta(minutes=1)
TAGS_KEPT = 40
AWAY = (OperationalError, InterfaceError)
COLUMNS = (
    "comparison_id",
    "case_index",
    "repeat_baseline",
    "repeat_candidate",
    "cause",
    "numeric",
    "consequence",
    "score_baseline",
    "score_candidate",
    "drift_onset",
    "flip_position",
    "margin_baseline",
    "margin_candidate",
    "gap_at_onset",
    "token_baseline",
    "token_candidate",
    "evidence",
)

TAGS = """
SELECT tag
  FROM runs_case AS known, jsonb_array_elements_text(known.tags) AS tag
 WHERE suite_version_id = %s AND index = ANY(%s::bigint[])
 GROUP BY tag
 ORDER BY count(*) DESC, tag
 LIMIT %s
"""


def compare(*, baseline: int, candidate: int, repeats: tuple[int, int] | None = None) -> Comparison:
    """Find or make the comparison of two runs over all repeats that have ended, or of one repeat of each.

    Cases of two versions of a suite are paired by their id where prompt, target and tools are the same. Where more
    than INLINE distinct pairs must be read, the answer is `queued` with the counts that digests give. Raises NotFound,
    InvalidInput or Conflict where the two cannot be compared.
    """
    ours, theirs, input_digest = comparison_inputs.find(baseline=baseline, candidate=candidate, repeats=repeats)
    return compare_sides(ours, theirs, input_digest, repeats=repeats)


def compare_sides(
    ours: SideKey, theirs: SideKey, input_digest: str, *, repeats: tuple[int, int] | None = None
) -> Comparison:
    """Compare as `compare` does, of two sides that have been found already; the record has both sides' runs."""
    row = _find_or_make(ours, theirs, input_digest, repeats)
    row.baseline, row.candidate = ours.run, theirs.run
    return row


def _find_or_make(ours: SideKey, theirs: SideKey, input_digest: str, repeats: tuple[int, int] | None) -> Comparison:
    known = Comparison.objects.filter(input_digest=input_digest).defer("outcomes")
    row = known.first()
    if row is not None and row.status == Comparison.Status.FAILED:
        # One that failed is tried again, but not by each of those who wait for it.
        known.filter(status=Comparison.Status.FAILED, finished_at__lt=Now() - RETRY_FAILED).delete()
        row = known.first()
    if row is not None:
        return row
    try:
        with transaction.atomic(), _without_looking_for_garbage():
            made = _make(ours, theirs, repeats, input_digest)
    except IntegrityError:  # somebody else asked for the same at the same time
        return known.get()
    _forget_older(made)
    return made


def work_on_comparison() -> bool:
    """Read one chunk of the oldest comparison that waits; False if none does. Any number of workers may call it.

    The chunk's rows and the progress are stored in one transaction, so that a crash costs that chunk and no more. A
    comparison that cannot be computed fails with the reason, and the others go on.
    """
    with transaction.atomic():
        waiting = Comparison.objects.filter(status=Comparison.Status.QUEUED).order_by("id")
        row = waiting.select_for_update(skip_locked=True, of=("self",)).first()
        if row is None:
            _prepared.forget()  # another worker may have ended it
            return False
        repeats = None if row.baseline_repeat is None else (row.baseline_repeat, row.candidate_repeat or 0)
        with _failing(row):
            sides = comparison_inputs.find(baseline=row.baseline_id, candidate=row.candidate_id, repeats=repeats)
            if sides[-1] != row.input_digest:  # a repeat has ended since, or was scored again: who asks gets that one
                row.delete()
                return True
            with _without_looking_for_garbage():
                _advance(row, *_prepared.of(*sides), CHUNK)
        if row.status != Comparison.Status.QUEUED:
            _prepared.forget()
    return True


class _Prepared:
    """The inputs and groups of the comparison whose chunk was read last, since the next chunk is most often its too."""

    def __init__(self) -> None:
        self._digest = ""
        self._inputs: tuple[Inputs, Groups] | None = None

    def of(self, ours: SideKey, theirs: SideKey, input_digest: str) -> tuple[Inputs, Groups]:
        if self._inputs is None or self._digest != input_digest:
            self.forget()  # before the next one's are made: there is room for one
            inputs = comparison_inputs.load(ours, theirs)
            self._digest, self._inputs = input_digest, (inputs, find_groups(inputs))
        return self._inputs

    def forget(self) -> None:
        self._digest, self._inputs = "", None


_prepared = _Prepared()


@contextmanager
def _without_looking_for_garbage() -> Iterator[None]:
    """Put Python's search for cycles off: rows hold none, and looking through all that a server holds is a tenth of a
    comparison's time.
    """
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


@contextmanager
def _failing(row: Comparison) -> Iterator[None]:
    """Open a savepoint. A fault inside leaves the comparison failed, with its reason; one of the database is raised."""
    try:
        with transaction.atomic():
            yield
    except AWAY:
        raise
    except Exception as fault:
        logger.exception("Comparison %s failed", row.pk)
        row.status, row.finished_at = Comparison.Status.FAILED, Now()
        row.error = fault.detail if isinstance(fault, EvalboardError) else f"{type(fault).__name__}: {fault}"
        row.save(update_fields=["status", "error", "finished_at"])


def _make(ours: SideKey, theirs: SideKey, repeats: tuple[int, int] | None, input_digest: str) -> Comparison:
    inputs = comparison_inputs.load(ours, theirs)
    groups = find_groups(inputs)
    row = Comparison.objects.create(
        baseline=ours.run,
        candidate=theirs.run,
        baseline_repeat=repeats and repeats[0],
        candidate_repeat=repeats and repeats[1],
        input_digest=input_digest,
        n_pairs=len(groups),
    )
    with _failing(row):
        noise = _main_noise(inputs) if len(groups) else None
        row.summary = begin_summary(noise, _judged(inputs))
        row.summary |= {"sides": _sides(inputs), "outcomes": outcomes.keep_outcomes(row, inputs)}
        row.summary |= {"noise_share": find_noise_share(inputs)}
        if len(groups) <= INLINE:
            _advance(row, inputs, groups, INLINE)
        else:
            row.summary |= count_by_digest(inputs.matched, groups.is_unread)
            row.save(update_fields=["summary"])
    return Comparison.objects.defer("outcomes").get(pk=row.pk)


def _main_noise(inputs: Inputs) -> NumericNoise:
    """Return the noise between the buckets that served most of either side, which is shown for all."""
    sides = (inputs.baseline, inputs.candidate)
    return inputs.noise.between(*(side.bucket_ids[0] if side.bucket_ids else None for side in sides))


def _judged(inputs: Inputs) -> dict[str, Any]:
    ours, theirs = inputs.baseline.setup, inputs.candidate.setup
    blocks = find_blocks(ours, theirs)
    return {
        "moved": [
            {"field": moved.field, "baseline": moved.baseline, "candidate": moved.candidate}
            for moved in find_moved_setup(ours, theirs)
        ],
        "blocks": [{"code": block.code, "text": explain_block(block.code, block.facts)} for block in blocks],
        "comparable": allows_comparing(blocks),
    }


def _sides(inputs: Inputs) -> dict[str, Any]:
    """Return what a page says of a side beside its run: repeats, buckets with shares, whose words its tokens are."""
    return {
        name: {
            "repeats": list(side.key.repeats),
            "buckets": [list(served) for served in side.shares],
            "vocabulary": _vocabulary_id(side),
        }
        for name, side in (("baseline", inputs.baseline), ("candidate", inputs.candidate))
    }


def _vocabulary_id(side: Side) -> int | None:
    processes = EngineProcess.objects.filter(repeats__in=side.key.repeat_ids, bucket__in=side.bucket_ids[:1])
    return processes.exclude(vocabulary=None).order_by("id").values_list("vocabulary_id", flat=True).first()


def _advance(row: Comparison, inputs: Inputs, groups: Groups, n_groups: int) -> None:
    """Read the next groups and store their rows; after the last one, the whole summary."""
    part = slice(row.n_done, min(row.n_done + n_groups, len(groups)))
    if len(groups):
        judged = enumerate(reading.judge(inputs, groups, part), start=part.start)
        rows = (_rows(row.pk, inputs, groups, groups.members_of(group), each) for group, each in judged)
        bulk.copy_values(Divergence, COLUMNS, chain.from_iterable(rows))
    row.n_done = part.stop
    if row.n_done == len(groups):
        row.summary = _summary(row, inputs, groups)
        row.status, row.finished_at = Comparison.Status.FINISHED, Now()
    row.save(update_fields=["n_done", "summary", "status", "finished_at"])
    if row.n_done == len(groups):
        keep_told(row.pk)


def _rows(
    comparison_id: int, inputs: Inputs, groups: Groups, members: np.ndarray[Any, Any], judged: Judged
) -> list[tuple[Any, ...]]:
    """Return the rows of one group: its pairs differ in nothing but their repeats."""
    first = members[0]
    case, at, at_too = groups.cases[first], groups.baseline_repeats[first], groups.candidate_repeats[first]
    ours, theirs = inputs.baseline, inputs.candidate
    score, score_too = float(ours.scores[case, at]), float(theirs.scores[case, at_too])
    is_paired = groups.pair_indexes[first] >= 0
    move = (score_too - score if inputs.matched.is_scored else 0.0) if is_paired else None
    parting = judged.divergence
    kind = _kind(groups, int(first), judged)
    evidence = judged.cause.evidence | {
        "n_tokens_baseline": judged.n_baseline,
        "n_tokens_candidate": judged.n_candidate,
        "text_position": parting.text_position if parting else None,
        "buckets": [int(ours.buckets[case, at]), int(theirs.buckets[case, at_too])],
    }
    rest = (
        judged.cause.code,
        judged.cause.numeric or "",
        rank_consequence(kind, move),
        None if np.isnan(score) else score,
        None if np.isnan(score_too) else score_too,
        parting and parting.drift_onset,
        parting and parting.flip,
        parting and parting.margin_baseline,
        parting and parting.margin_candidate,
        parting and parting.gap_at_onset,
        parting and parting.token_baseline,
        parting and parting.token_candidate,
        msgspec.json.encode(evidence).decode(),
    )
    case_index = int(ours.case_indexes[case])
    return [
        (
            comparison_id,
            case_index,
            ours.key.repeats[groups.baseline_repeats[member]],
            theirs.key.repeats[groups.candidate_repeats[member]],
            *rest,
        )
        for member in members.tolist()
    ]


def _kind(groups: Groups, pair: int, judged: Judged) -> str:
    kind = judged.divergence.kind if judged.divergence is not None else "identical"
    return "text_only" if kind == "identical" and groups.is_texted[pair] else kind


def _summary(row: Comparison, inputs: Inputs, groups: Groups) -> dict[str, Any]:
    """Return the whole summary, from the rows as they are stored."""
    differing, sample, backends = read_pairs(row, inputs, groups)
    sides = row.summary["sides"]
    summary = complete_summary(
        row.summary,
        inputs.matched,
        differing,
        is_read=_has_logprobs(inputs),
        words=(_words(sides["baseline"]["vocabulary"]), _words(sides["candidate"]["vocabulary"])),
        case_indexes=inputs.baseline.case_indexes,
        noise_of=ScoreNoise(inputs).measure_cases,
    )
    differing_cases = inputs.baseline.case_indexes[np.unique(groups.cases)]
    judged = {"computation": judge_computation(inputs), "tags": _tags(row, differing_cases)}
    return {**summary, **judged, "sample": sample, "backends": backends}


def _has_logprobs(inputs: Inputs) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return bool[m], whether the baseline's response of a pair has a trace; the candidate's, where nothing differs."""
    side, pairs = inputs.baseline, inputs.matched.pairing
    has_trace = side.is_there
    if side.key.run.is_reported:  # what an engine of ours decodes always has one
        for at, repeat_id in enumerate(side.key.repeat_ids):
            texts = Response.objects.filter(repeat=repeat_id, trace_block=None)
            has_trace[np.isin(side.case_indexes, list(texts.values_list("case_index", flat=True))), at] = False
    return has_trace[pairs.cases, pairs.baseline_repeats]


def _tags(row: Comparison, cases: np.ndarray[Any, np.dtype[np.int64]]) -> list[str]:
    """Return the tags of these cases of the baseline's suite version, the most frequent first."""
    with connection.cursor() as cursor:
        cursor.execute(TAGS, [row.baseline.suite_version_id, cases.tolist(), TAGS_KEPT])
        return [tag for (tag,) in cursor.fetchall()]


def _words(vocabulary_id: int | None) -> TokenBytes:
    vocabulary = reading.token_words(vocabulary_id)

    def token_bytes(token: int) -> bytes:
        known = vocabulary.token_bytes(token) if vocabulary else None
        return f"⟨token {token}⟩".encode() if known is None else known

    return token_bytes


def _forget_older(made: Comparison) -> None:
    """Delete what was computed for the same two from other inputs; one that a worker is at goes the next time."""
    with transaction.atomic():
        same = Q(baseline=made.baseline_id, candidate=made.candidate_id)
        same &= Q(baseline_repeat=made.baseline_repeat, candidate_repeat=made.candidate_repeat)
        older = Comparison.objects.filter(same, pk__lt=made.pk).select_for_update(skip_locked=True, of=("self",))
        Comparison.objects.filter(pk__in=[row.pk for row in older.only("pk")]).delete()
