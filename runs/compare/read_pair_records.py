"""The stored records of two responses to one case, in a fixed number of queries."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db.models import Q

from evalboard.contract.treatments import Terms
from evalboard.core.compare import TracedText
from evalboard.core.errors import NotFound
from evalboard.core.trace import TokenTrace, Vocabulary, read_traces
from runs.compare.inputs import MODEL_TERMS, find_others, find_scorers
from runs.models import Case, RepeatRecord, ResponseRecord, RunRecord, Scorer, TraceBlock
from runs.run import NOT_READ, SERVED_BY, words_of
from runs.store import ScoredCase, read_scored

NOT_SCORED = ScoredCase(scorer_id=0, scorer_digest="", score=None, reason="")
RUN_PARTS = ("suite_version__suite", "suite_version__scorer", "profile", "endpoint")


class Half(NamedTuple):
    """One side. trace: None without one; words: None if the vocabulary is not stored.

    scorer: that judges the side; scored: under it, NOT_SCORED where it has not scored the response.
    """

    run: RunRecord
    case: Case
    response: ResponseRecord
    trace: TokenTrace | None
    words: Vocabulary | None
    scored: ScoredCase
    scorer: Scorer
    n_repeats: int

    @property
    def repeat(self) -> int:
        return self.response.repeat.index

    @property
    def scorer_digest(self) -> str:
        return self.scorer.digest

    @property
    def vocabulary_id(self) -> int | None:
        process = self.response.engine_process
        return None if process is None else process.vocabulary_id

    @property
    def traced_text(self) -> TracedText:
        """Return the response for finding its divergence."""
        return TracedText(self.response.text, self.trace, self.vocabulary_id, is_logged=self.is_logged)

    @property
    def is_logged(self) -> bool:
        """Return whether a log or an external server gave it, with decimal numbers."""
        return bool(self.run.is_reported)

    @property
    def bucket(self) -> Any:
        """Return the bucket that answered, None if unknown."""
        process = self.response.engine_process
        return process.bucket if process else None

    @property
    def bucket_id(self) -> int | None:
        process = self.response.engine_process
        return None if process is None else process.bucket_id


def load_halves(
    runs: tuple[int, int], case_id: str, repeats: tuple[int, int], terms: Terms = MODEL_TERMS
) -> tuple[Half, Half]:
    """Load both sides; where the prompt is judged, without traces, which are not compared then.

    Raises NotFound where a run, its case or the response is not there.
    """
    sides = _load_sides(runs, case_id, repeats, terms)
    wanted = Q()
    for run, case, repeat in sides:
        wanted |= Q(repeat__run=run.pk, repeat__index=repeat, case_index=case.index)
    rows = ResponseRecord.objects.filter(wanted).select_related("repeat", *SERVED_BY).defer(*NOT_READ)
    responses = {(row.repeat.run_id, row.repeat.index): row for row in rows}
    for run, _, repeat in sides:
        if (run.pk, repeat) not in responses:
            raise NotFound(f"Run {run.pk} has no response to case {case_id} in repeat {repeat} yet.")
    traces = {} if terms.is_prompt else response_traces(list(responses.values()))
    scorers = find_scorers(sides[0][0], sides[1][0])
    scores, n_repeats = _scores(sides, responses), _n_repeats(runs)
    halves = []
    for (run, case, repeat), (scorer, scored_by) in zip(sides, scorers, strict=True):
        known = {each.scorer_id: each for each in scores.get((responses[run.pk, repeat].repeat_id, case.index), ())}
        response = responses[run.pk, repeat]
        halves.append(
            Half(
                run=run,
                case=case,
                response=response,
                trace=traces.get(response.pk),
                words=words_of(response),
                scored=known.get(scored_by.pk, NOT_SCORED),
                scorer=scorer,
                n_repeats=n_repeats[run.pk],
            )
        )
    return halves[0], halves[1]


def response_traces(responses: list[ResponseRecord]) -> dict[int, TokenTrace]:
    """Return the traces by response, unpacking each block once."""
    slots: dict[int, dict[int, int]] = {}
    for response in responses:
        if response.trace_block_id is not None and response.trace_slot is not None:
            slots.setdefault(response.trace_block_id, {})[response.pk] = response.trace_slot
    traces: dict[int, TokenTrace] = {}
    for pk, data in TraceBlock.objects.filter(pk__in=slots).values_list("pk", "data"):
        traces |= zip(slots[pk], read_traces(bytes(data), list(slots[pk].values())), strict=True)
    return traces


def _load_sides(
    runs: tuple[int, int], case_id: str, repeats: tuple[int, int], terms: Terms
) -> list[tuple[RunRecord, Case, int]]:
    records = {run.pk: run for run in RunRecord.objects.filter(pk__in=runs).select_related(*RUN_PARTS)}
    for run_id in runs:
        if run_id not in records:
            raise NotFound(f"There is no run {run_id}.")
    if terms.is_prompt:
        return _load_prompted([records[run_id] for run_id in runs], case_id, repeats, terms)
    versions = {run.suite_version_id for run in records.values()}
    cases = {case.suite_version_id: case for case in Case.objects.filter(suite_version__in=versions, case_id=case_id)}
    for run_id in runs:
        if records[run_id].suite_version_id not in cases:
            raise NotFound(f"The suite of run {run_id} has no case {case_id}.")
    sides = [records[run_id] for run_id in runs]
    return [(run, cases[run.suite_version_id], repeat) for run, repeat in zip(sides, repeats, strict=True)]


def _load_prompted(
    runs: list[RunRecord], case_id: str, repeats: tuple[int, int], terms: Terms
) -> list[tuple[RunRecord, Case, int]]:
    """Load both cases of a pair by the baseline's id: the candidate's may have another one."""
    ours, theirs = runs
    one = Case.objects.filter(suite_version=ours.suite_version_id, case_id=case_id).first()
    index = None if one is None else find_others((ours.pk, theirs.pk), [one.index], terms).get(one.index)
    other = None if index is None else theirs.suite_version.cases.filter(index=index).first()
    if one is None or other is None:
        raise NotFound(f"Case {case_id} of run {ours.pk} is paired with no case of run {theirs.pk}.")
    return [(ours, one, repeats[0]), (theirs, other, repeats[1])]


def _n_repeats(runs: tuple[int, int]) -> dict[int, int]:
    indexes = RepeatRecord.objects.filter(run__in=runs).values_list("run", "index")
    return {run_id: max(index for run, index in indexes if run == run_id) for run_id in runs}


def _scores(
    sides: list[tuple[RunRecord, Case, int]], responses: Mapping[tuple[int, int], ResponseRecord]
) -> Mapping[tuple[int, int], list[ScoredCase]]:
    """Return (repeat id, case index) → its score by each scorer."""
    wanted = {(responses[run.pk, repeat].repeat_id, case.index) for run, case, repeat in sides}
    return read_scored(wanted, n_cases=max(run.suite_version.n_cases for run, _, _ in sides))
