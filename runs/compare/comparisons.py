"""Return the comparison of two runs: a stored one, or computed here or, if large, by workers.

What is the same to the bit is never read. A comparison is kept by the digest of what it was computed from; a further
repeat, or other scores, make another one.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from evalboard.compared.report import write_blocks
from evalboard.contract.compare import Flip
from evalboard.contract.treatments import BY_INPUT, Terms
from evalboard.core.compare import SUMMED_FACTS, AlikePairs, Indexes
from evalboard.core.errors import Conflict, EvalboardError
from evalboard.core.garbage import without_garbage_search
from runs import acts
from runs.compare import inputs as comparison_inputs
from runs.compare import outcomes
from runs.compare.inputs import MODEL_TERMS, ComparisonInputs, SideKey
from runs.compare.representatives import store_representatives
from runs.models import ComparisonRecord, DivergenceRecord
from runs.store import bulk

logger = logging.getLogger(__name__)

INLINE = 4000  # distinct pairs that a request reads itself; more are left to the workers
CHUNK = 2000  # distinct pairs that one call of `work_on_comparison` reads
RETRY_FAILED = timedelta(minutes=1)
TAGS_KEPT = 40
AWAY = (OperationalError, InterfaceError)
FLIPS = bulk.RowTable(DivergenceRecord, Flip)
# One parameter a column for all of the pairs, in whose order the rows come. Each is looked up by itself: of rows that
# were stored just now PostgreSQL knows no numbers yet, and a join it would plan as a scan of every comparison's pairs.
OF_PAIRS = """
  FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[])
       WITH ORDINALITY AS wanted (of_case, of_baseline, of_candidate, place)
 CROSS JOIN LATERAL (
       SELECT *
         FROM runs_divergence
        WHERE (comparison_id, case_index, repeat_baseline, repeat_candidate)
            = (%s, wanted.of_case, wanted.of_baseline, wanted.of_candidate)
       OFFSET 0
       ) AS pair
 ORDER BY place
"""
# What a summary rests on; the rest of it would take longer to read than all else.
EVIDENCE = "jsonb_build_object({})".format(", ".join(f"'{fact}', evidence->'{fact}'" for fact in SUMMED_FACTS))

TAGS = """
SELECT tag
  FROM runs_case AS known, jsonb_array_elements_text(known.tags) AS tag
 WHERE suite_version_id = %s AND index = ANY(%s::bigint[])
 GROUP BY tag
 ORDER BY count(*) DESC, tag
 LIMIT %s
"""


def compare(
    *,
    baseline: int,
    candidate: int,
    repeats: tuple[int, int] | None = None,
    treatment: str = "",
    pair_by: str = BY_INPUT,
) -> ComparisonRecord:
    """Find or make the comparison of two runs over all repeats that have ended, or of one repeat of each.

    Cases of two versions of a suite are paired by their id where prompt, target and tools are the same. Where more
    than INLINE distinct pairs must be read, the answer is `queued` with the counts that digests give. treatment: what
    is judged, "" for the model, or the prompt where no case is the same. pair_by: how cases are paired where the prompt
    is judged. Raises NotFound, InvalidInput or Conflict where the two cannot be compared.
    """
    terms = comparison_inputs.choose_terms(baseline=baseline, candidate=candidate, treatment=treatment, pair_by=pair_by)
    sides = comparison_inputs.find(baseline=baseline, candidate=candidate, repeats=repeats, terms=terms)
    return compare_sides(*sides, repeats=repeats, terms=terms)


def compare_sides(
    ours: SideKey,
    theirs: SideKey,
    input_digest: str,
    *,
    repeats: tuple[int, int] | None = None,
    terms: Terms = MODEL_TERMS,
    judged_before: datetime | None = None,
) -> ComparisonRecord:
    """Compare two sides that are already loaded, as `compare` does; the record has both runs.

    judged_before: as both were found by.
    """
    row = _find_or_make(ours, theirs, input_digest, repeats, terms, judged_before)
    row.baseline, row.candidate = ours.run, theirs.run
    return row


def _find_or_make(
    ours: SideKey,
    theirs: SideKey,
    input_digest: str,
    repeats: tuple[int, int] | None,
    terms: Terms,
    judged_before: datetime | None,
) -> ComparisonRecord:
    known = ComparisonRecord.objects.filter(input_digest=input_digest).defer("outcomes")
    row = known.first()
    if row is not None and row.status == ComparisonRecord.Status.FAILED:
        # One that failed is tried again, but not by each of those who wait for it.
        known.filter(status=ComparisonRecord.Status.FAILED, finished_at__lt=Now() - RETRY_FAILED).delete()
        row = known.first()
    if row is not None:
        return row
    if no := acts.texts_deleted(ours.run) or acts.texts_deleted(theirs.run):
        raise Conflict(f"{no.reason} Comparisons that were made before are kept.")
    try:
        with transaction.atomic(), without_garbage_search():
            made = _make(ours, theirs, repeats, input_digest, terms, judged_before)
    except IntegrityError:  # somebody else asked for the same at the same time
        return known.get()
    _forget_older(made)
    return made


def work_on_comparison() -> bool:
    """Read one chunk of the oldest waiting comparison; return False if there is none.

    Any number of workers may call it.

    The chunk's rows and the progress are stored in one transaction, so that a crash costs that chunk and no more. A
    comparison that cannot be computed fails with the reason, and the others go on.
    """
    with transaction.atomic():
        waiting = ComparisonRecord.objects.filter(status=ComparisonRecord.Status.QUEUED).order_by("id")
        row = waiting.select_for_update(skip_locked=True, of=("self",)).first()
        if row is None:
            _prepared.forget()  # another worker may have ended it
            return False
        repeats = None if row.baseline_repeat is None else (row.baseline_repeat, row.candidate_repeat or 0)
        with _failing(row):
            runs = {"baseline": row.baseline_id, "candidate": row.candidate_id}
            sides = comparison_inputs.find(**runs, repeats=repeats, terms=row.terms, judged_before=row.judged_before)
            if sides[-1] != row.input_digest:  # a repeat has ended since, or was scored again: who asks gets that one
                row.delete()
                return True
            with without_garbage_search():
                _advance(row, _prepared.of(*sides, row.terms), CHUNK)
        if row.status != ComparisonRecord.Status.QUEUED:
            _prepared.forget()
    return True


class _Prepared:
    """The inputs of the comparison whose chunk was read last, with their results.

    The next chunk usually belongs to the same comparison.
    """

    def __init__(self) -> None:
        self._digest = ""
        self._inputs: ComparisonInputs | None = None

    def of(self, ours: SideKey, theirs: SideKey, input_digest: str, terms: Terms) -> ComparisonInputs:
        if self._inputs is None or self._digest != input_digest:
            self.forget()  # before the next one's are made: there is room for one
            self._digest, self._inputs = input_digest, comparison_inputs.load(ours, theirs, terms)
        return self._inputs

    def forget(self) -> None:
        self._digest, self._inputs = "", None


_prepared = _Prepared()


@contextmanager
def _failing(row: ComparisonRecord) -> Iterator[None]:
    """Open a savepoint; a fault inside fails the comparison with its reason.

    A fault of the database is raised.
    """
    try:
        with transaction.atomic():
            yield
    except AWAY:
        raise
    except Exception as fault:
        logger.exception("Comparison %s failed", row.pk)
        row.status, row.finished_at = ComparisonRecord.Status.FAILED, Now()
        row.error = fault.detail if isinstance(fault, EvalboardError) else f"{type(fault).__name__}: {fault}"
        row.save(update_fields=["status", "error", "finished_at"])


def _make(
    ours: SideKey,
    theirs: SideKey,
    repeats: tuple[int, int] | None,
    input_digest: str,
    terms: Terms,
    judged_before: datetime | None,
) -> ComparisonRecord:
    inputs = comparison_inputs.load(ours, theirs, terms)
    row = ComparisonRecord.objects.create(
        baseline=ours.run,
        candidate=theirs.run,
        baseline_repeat=repeats and repeats[0],
        candidate_repeat=repeats and repeats[1],
        treatment=terms.treatment,
        pair_by=terms.pair_by,
        judged_before=judged_before,
        input_digest=input_digest,
        n_pairs=len(inputs.groups),
    )
    with _failing(row):
        begun = inputs.begin()
        row.summary = begun.summary | {"blocks": write_blocks(begun.summary["blocks"])}
        row.outcomes = outcomes.keep_all(begun.cases)
        row.save(update_fields=["outcomes"])
        if len(inputs.groups) <= INLINE:
            _advance(row, inputs, INLINE)
        else:
            row.summary |= inputs.count()
            row.save(update_fields=["summary"])
    return ComparisonRecord.objects.defer("outcomes").get(pk=row.pk)


def _advance(row: ComparisonRecord, inputs: ComparisonInputs, n_groups: int) -> None:
    """Read the next groups and store their rows; after the last one, the whole summary."""
    part = slice(row.n_done, min(row.n_done + n_groups, len(inputs.groups)))
    FLIPS.insert(chain.from_iterable(map(_rows, inputs.judge(part))), comparison_id=row.pk)
    row.n_done = part.stop
    if row.n_done == len(inputs.groups):
        row.summary = inputs.complete(row.summary, partial(_read_flips, row, inputs))
        row.summary["tags"] = _tags(row, inputs.differing_cases)
        row.status, row.finished_at = ComparisonRecord.Status.FINISHED, Now()
    row.save(update_fields=["n_done", "summary", "status", "finished_at"])
    if row.n_done == len(inputs.groups):
        store_representatives(row.pk)


def _rows(alike: AlikePairs) -> Iterator[dict[str, Any]]:
    values = FLIPS.values(alike.flip)
    for ours, theirs in alike.repeats:
        yield values | {"repeat_baseline": ours, "repeat_candidate": theirs}


def _read_flips(row: ComparisonRecord, inputs: ComparisonInputs, groups: Indexes) -> Iterator[Flip]:
    """Yield the first pair of each of some groups, as it is stored."""
    pairs = inputs.groups
    firsts = pairs.members[pairs.starts[groups]]
    cases, repeats = (
        inputs.baseline.case_indexes[pairs.cases[firsts]],
        (pairs.baseline_repeats, pairs.candidate_repeats),
    )
    numbers = (
        np.array(side.repeats, np.int64)[own[firsts]]
        for side, own in zip((inputs.baseline, inputs.candidate), repeats, strict=True)
    )
    parameters = [*(column.tolist() for column in (cases, *numbers)), row.pk]
    return FLIPS.stream(OF_PAIRS, parameters, at_once=500, evidence=EVIDENCE)


def _tags(row: ComparisonRecord, cases: Indexes) -> list[str]:
    """Return the tags of these cases of the baseline's suite version, the most frequent first."""
    with connection.cursor() as cursor:
        cursor.execute(TAGS, [row.baseline.suite_version_id, cases.tolist(), TAGS_KEPT])
        return [tag for (tag,) in cursor.fetchall()]


def _forget_older(made: ComparisonRecord) -> None:
    """Delete older comparisons of the same two runs, except one that a worker is reading."""
    with transaction.atomic():
        same = Q(baseline=made.baseline_id, candidate=made.candidate_id)
        same &= Q(treatment=made.treatment, pair_by=made.pair_by)
        same &= Q(baseline_repeat=made.baseline_repeat, candidate_repeat=made.candidate_repeat)
        older = ComparisonRecord.objects.filter(same, pk__lt=made.pk).select_for_update(skip_locked=True, of=("self",))
        ComparisonRecord.objects.filter(pk__in=[row.pk for row in older.only("pk")]).delete()
