"""The inputs of a comparison: two runs' packed columns on the same cases, settings and stacks.

Nothing here reads a response or a trace. `find` costs a few small queries, so that a stored comparison is found in
milliseconds; `load` reads the columns, some megabytes for 100,000 cases.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import F, OuterRef
from django.db.models.functions import JSONObject
from numpy.typing import NDArray

from evalboard.compared.report import join_names
from evalboard.contract.treatments import BY_INPUT, Terms
from evalboard.core import digest, scoring
from evalboard.core.compare import (
    COMPARISON_VERSION,
    NO_STRAYS,
    Comparing,
    JudgedAgain,
    PairNoise,
    PromptedCase,
    PromptOfCase,
    PromptPairs,
    PromptsJudged,
    Reads,
    ServingFacts,
    Side,
    find_terms,
    judge_by_other,
    judge_prompts,
    lay,
    lay_columns,
    measure_shift,
    pair_cases,
)
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.suite import digest_asked
from evalboard.core.trace import unpack_scores
from evalboard.wording.comparability import explain_unpaired
from runs import acts
from runs.catalogue import OneNames
from runs.compare.reading import StoredAnswers, StoredResponses
from runs.imports import lacks_prompts
from runs.judging import judge_facts, newest_judgings
from runs.models import (
    BucketRecord,
    ForcedScoringRecord,
    RepeatRecord,
    RepeatScore,
    RunRecord,
    Scorer,
    Stray,
    SuiteVersionRecord,
)
from runs.pairs import WORDS, copies, measure_pair_noise, pair_facts
from runs.pairs.pair_facts import EndpointBucket, find_names
from runs.store import Indexes, bulk, stored_columns, stored_traces
from runs.work import open_scorings

# Changed whenever the same inputs would give another answer: a stored comparison is then not found again.
METHOD = f"comparison {COMPARISON_VERSION}.32"
MODEL_TERMS = Terms()
RELATED = ("suite_version__suite__reference_of", "suite_version__scorer", "profile", "endpoint")

# By what is asked and what is right: a case whose tags or scorer changed is still the same case, and so is one whose
# input is named otherwise.
SAME_CASES = """
SELECT ours.index, theirs.index
  FROM runs_case AS ours
  JOIN runs_case AS theirs ON theirs.case_id = ours.case_id AND theirs.content - 'input' = ours.content - 'input'
 WHERE ours.suite_version_id = %s AND theirs.suite_version_id = %s
 ORDER BY ours.index
"""
# As `CaseDocument.own_input` has it: what the case names, else the last user message, else the last message.
OWN_INPUT = """
COALESCE(content->'input', jsonb_path_query_array(content, '$.messages[*] ? (@.role == "user")')->-1->'content',
         content->'messages'->-1->'content')
"""
PROMPTED = f"""
SELECT index, case_id, md5(({OWN_INPUT})::text), md5((content->'target')::text),
       md5((content - 'target' - 'input')::text)
  FROM runs_case
 WHERE suite_version_id = %s
 ORDER BY index
"""  # noqa: S608  an expression of our own
PROMPTS = f"""
SELECT index, case_id, content->'messages', content->'tools', {OWN_INPUT}
  FROM runs_case
 WHERE suite_version_id = %s AND index = ANY(%s::bigint[])
"""  # noqa: S608  an expression of our own
SCORES = "SELECT repeat_id, scores FROM runs_repeatscore WHERE repeat_id = ANY(%s::bigint[]) AND scorer_id = %s"


@dataclass(frozen=True, slots=True)
class SideKey:
    """One side before loading: its run, the compared repeats, and digests of their columns and scores.

    unscored_ids: of the repeats that were cancelled or failed.
    measured: the digests of the columns of all repeats that have ended, whose noise every pair of the run is judged by,
    and of its strays, which are no noise.
    scored: bucket id → the newest forced scoring of the run's answers that has ended there. usual: of a side with equal
    repeats, repeats of its independent runs. scorer: that judges it. scored_by: whose scores are read: the scorer, or
    where that is a judge that was asked again, its newest judging. is_awaited: a worker has yet to score it by the
    other side's scorer.
    """

    run: RunRecord
    repeat_ids: tuple[int, ...]
    repeats: tuple[int, ...]
    digests: dict[str, Any]
    bucket_ids: tuple[int, ...]
    measured: tuple[str, ...]
    unscored_ids: frozenset[int]
    scored: dict[int, int]
    usual_ids: tuple[int, ...]
    scorer: Scorer
    scored_by: Scorer
    is_awaited: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredSide(Side):
    key: SideKey

    def find_company(self) -> Sequence[Hashable]:
        return copies.find_company(self.key.run, self.key.repeat_ids)

    @property
    def columns(self) -> list[stored_columns.Columns]:
        """Return its repeats' columns as stored; empty unless it has all cases in order."""
        if not _is_whole(self.case_indexes, self.key.run.suite_version.n_cases):
            return []
        return [
            stored_columns.Columns(
                repeat, self.texts[:, at], self.traces[:, at], self.buckets[:, at], self.marks[:, at]
            )
            for at, repeat in enumerate(self.key.repeat_ids)
        ]


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonInputs(Comparing):
    """Both sides on one row of cases, and the buckets that served them."""

    baseline: StoredSide
    candidate: StoredSide
    buckets: Mapping[int, BucketRecord]


def find(
    *,
    baseline: int,
    candidate: int,
    repeats: tuple[int, int] | None,
    terms: Terms = MODEL_TERMS,
    judged_before: datetime | None = None,
) -> tuple[SideKey, SideKey, str]:
    """Return both sides and the digest of all inputs of the comparison.

    judged_before: a judge's newest judging until then counts; None for the newest of all. Raises NotFound for a run or
    repeat that is not there, InvalidInput for runs of two suites or a run against itself, Conflict where a side has no
    repeat that has ended.
    """
    if baseline == candidate and repeats is None:
        text = "A run is compared with another run, or one of its repeats with another one."
        raise InvalidInput(text, fields={"repeat": "Name two repeats of the run, as in 1,2."})
    runs = RunRecord.objects.select_related(*RELATED).in_bulk({baseline, candidate})
    missing = [run_id for run_id in (baseline, candidate) if run_id not in runs]
    if missing:
        raise NotFound(f"There is no run {missing[0]}.")
    [pair] = find_pairs([(runs[baseline], runs[candidate])], repeats=repeats, terms=terms, judged_before=judged_before)
    return pair


def choose_terms(*, baseline: int, candidate: int, treatment: str, pair_by: str) -> Terms:
    """Return what is judged of two runs; of what is named otherwise, `core.compare.find_terms` decides.

    Raises InvalidInput for a pairing by id where no prompt is judged.
    """
    if treatment or pair_by != BY_INPUT:
        return find_terms(treatment, pair_by, are_prompts_other=False)
    versions = dict(RunRecord.objects.filter(pk__in={baseline, candidate}).values_list("pk", "suite_version"))
    are_other = False
    if len({*versions.values()}) == 2:
        ours, theirs = versions[baseline], versions[candidate]
        with connection.cursor() as cursor:
            cursor.execute(f"{SAME_CASES} LIMIT 1", [ours, theirs])
            are_other = cursor.fetchone() is None and _pair(ours, theirs, pair_by).are_other
    return find_terms(treatment, pair_by, are_prompts_other=are_other)


def find_pairs(
    pairs: Sequence[tuple[RunRecord, RunRecord]],
    *,
    repeats: tuple[int, int] | None = None,
    terms: Terms = MODEL_TERMS,
    judged_before: datetime | None = None,
) -> list[tuple[SideKey, SideKey, str]]:
    """Find pairs of runs loaded with RELATED, like `find`, in a fixed number of queries."""
    for ours, theirs in pairs:
        if not terms.is_prompt and _whole_suite(ours) != _whole_suite(theirs):
            suites = f"{ours.suite_version.suite.slug} and {theirs.suite_version.suite.slug}"
            text = f"Runs of one suite can be compared, and these are of {suites}."
            raise InvalidInput(text, fields={"candidate": "Must be a run of the baseline's suite."})
    stored = _StoredRepeats([run for pair in pairs for run in pair], repeats, judged_before)
    return [_keys(pair, repeats, stored, terms) for pair in pairs]


def _whole_suite(run: RunRecord) -> int:
    """Return the suite's id; for a reference set, that of its full suite."""
    suite = run.suite_version.suite
    return suite.reference_of.suite_id if suite.reference_of else suite.pk


def _keys(
    pair: tuple[RunRecord, RunRecord], repeats: tuple[int, int] | None, stored: "_StoredRepeats", terms: Terms
) -> tuple[SideKey, SideKey, str]:
    only = (None, None) if repeats is None else repeats
    ours = _side_key(pair[0], only[0], pair[1].suite_version.scorer, stored, is_baseline=True)
    theirs = _side_key(pair[1], only[1], pair[0].suite_version.scorer, stored)
    inputs = {
        "method": METHOD,
        "baseline": ours.digests,
        "candidate": theirs.digests,
        "measured": [ours.measured, theirs.measured],
        "scored": [scored_on_both(key, ours, theirs) for key in (ours, theirs)],
        **({} if terms == MODEL_TERMS else {"terms": list(terms)}),
    }
    return ours, theirs, digest.digest_json(inputs)


def scored_on_both(key: SideKey, ours: SideKey, theirs: SideKey) -> tuple[int, int] | None:
    """Return one side's forced scorings on the baseline's and on the candidate's bucket.

    None where one is missing, both sides are one bucket, or several buckets served a side.
    """
    if len(ours.bucket_ids) != 1 or len(theirs.bucket_ids) != 1 or ours.bucket_ids == theirs.bucket_ids:
        return None
    pair = key.scored.get(ours.bucket_ids[0]), key.scored.get(theirs.bucket_ids[0])
    return None if pair[0] is None or pair[1] is None else (pair[0], pair[1])


def load(ours: SideKey, theirs: SideKey, terms: Terms = MODEL_TERMS) -> ComparisonInputs:
    """Read the columns of both sides and lay them on the cases that both have."""
    paired = _pair_prompted(ours.run, theirs.run, terms) if terms.is_prompt else None
    case_indexes = shared_cases(ours.run, theirs.run) if paired is None else (paired.baseline, paired.candidate)
    rows = BucketRecord.objects.filter(pk__in={*ours.bucket_ids, *theirs.bucket_ids}).select_related(
        "model", "fingerprint"
    )
    buckets = {bucket.pk: bucket for bucket in rows}
    served = pair_facts.served_beside(ours.run, theirs.run, buckets.values())
    is_mixed = max(len(ours.bucket_ids), len(theirs.bucket_ids)) > 1
    backends = name_backends((ours.run, theirs.run), (ours.bucket_ids, theirs.bucket_ids)) if is_mixed else {}
    scored = [scored_on_both(key, ours, theirs) for key in (ours, theirs)]
    baseline = _load_side(ours, theirs, case_indexes[0], buckets, served, backends, scored[0])
    candidate = _load_side(theirs, ours, case_indexes[1], buckets, served, backends, scored[1])

    def measure_noise() -> PairNoise:
        return measure_pair_noise(ours.run, theirs.run, [*baseline.columns, *candidate.columns])

    return ComparisonInputs(
        baseline=baseline,
        candidate=candidate,
        reads=Reads(stored_traces, WORDS, measure_noise),
        treatment=terms.treatment,
        prompts=None if paired is None else _judge_prompts(ours.run, theirs.run, paired),
        buckets=buckets,
    )


def name_backends(
    runs: tuple[RunRecord, RunRecord],
    bucket_ids: Sequence[Collection[int]],
    *,
    find: Callable[[Collection[EndpointBucket]], Mapping[EndpointBucket, str]] = find_names,
) -> dict[int, str]:
    """Return the names of both sides' buckets by id. The runs are loaded with their endpoint."""
    places = [[(run.endpoint_id, bucket) for bucket in own] for run, own in zip(runs, bucket_ids, strict=True)]
    names = find({*places[0], *places[1]})
    ours, theirs = ({place[1]: names[place] for place in own} for own in places)
    return join_names(ours, theirs, runs[1].endpoint.slug)


def _pair_prompted(ours: RunRecord, theirs: RunRecord, terms: Terms) -> PromptPairs:
    """Pair the cases of two runs whose prompts are judged. Raises InvalidInput where none can be."""
    paired = _pair(ours.suite_version_id, theirs.suite_version_id, terms.pair_by)
    if not len(paired.baseline):
        text = f"No case of run {ours.pk} can be paired with one of run {theirs.pk}"
        raise InvalidInput(
            f"{text}: {explain_unpaired(paired.counts)}",
            fields={"candidate": "Must be a run that shares inputs or ids with the baseline's."},
        )
    return paired


def _pair(ours: int, theirs: int, pair_by: str) -> PromptPairs:
    """Pair the cases of two suite versions."""
    sides = []
    for version in (ours, theirs):
        with connection.cursor() as cursor:
            cursor.execute(PROMPTED, [version])
            sides.append([PromptedCase(*row) for row in cursor.fetchall()])
    return pair_cases(sides[0], sides[1], pair_by)


def _judge_prompts(ours: RunRecord, theirs: RunRecord, paired: PromptPairs) -> PromptsJudged:
    def read(places: Sequence[int]) -> Iterator[tuple[str, PromptOfCase, PromptOfCase]]:
        sides = (ours, paired.baseline[places].tolist()), (theirs, paired.candidate[places].tolist())
        one, other = (_read_prompts(run.suite_version_id, cases) for run, cases in sides)
        for index, index_too in zip(sides[0][1], sides[1][1], strict=True):
            yield one[index][0], one[index][1], other[index_too][1]

    return judge_prompts(paired, read)


def _read_prompts(suite_version: int, cases: Sequence[int]) -> dict[int, tuple[str, PromptOfCase]]:
    """Return id and prompt of cases by their indexes."""
    with connection.cursor() as cursor:
        cursor.execute(PROMPTS, [suite_version, list(cases)])
        return {
            index: (case_id, PromptOfCase(json.loads(messages), json.loads(tools or "null"), json.loads(own or "null")))
            for index, case_id, messages, tools, own in cursor.fetchall()
        }


class _StoredRepeats:
    """What is stored of the repeats of several runs, each kind read at once."""

    def __init__(
        self, runs: Sequence[RunRecord], repeats: tuple[int, int] | None, judged_before: datetime | None = None
    ) -> None:
        self.repeats: dict[int, list[RepeatRecord]] = defaultdict(list)
        self.bucket_ids: dict[int, list[int]] = {}
        self.scored: dict[int, dict[int, int]] = {}
        self._columns: dict[int, str] = {}
        scorings = ForcedScoringRecord.objects.filter(
            run=OuterRef("run"), status=ForcedScoringRecord.Status.FINISHED, bucket__isnull=False
        )
        scorings = scorings.order_by("pk").values_list(JSONObject(bucket="bucket", scoring="pk"))
        rows = RepeatRecord.objects.filter(cases=None, run__in={run.pk for run in runs}).order_by("run_id", "index")
        rows = rows.annotate(packed_as=F("columns__digest"), buckets=F("columns__bucket_ids"))
        for row in rows.annotate(scored=ArraySubquery(scorings)):
            self.repeats[row.run_id].append(row)
            self.scored[row.run_id] = {each["bucket"]: each["scoring"] for each in row.scored}
            if row.packed_as is not None and row.finished_at is not None:
                self._columns[row.pk], self.bucket_ids[row.pk] = row.packed_as, row.buckets
        own = {run.suite_version.scorer_id: run.suite_version.scorer for run in runs}
        scorers = set(own)
        self._judged = newest_judgings(runs, list(own.values()), judged_before)
        read = scorers | {each.pk for each in self._judged.values()}
        scored = RepeatScore.objects.filter(repeat__in=self._columns, scorer__in=read)
        if repeats is not None:
            scored = scored.filter(repeat__index__in=repeats)
        light = scored.defer("scores", "reasons", "answers").order_by("pk")
        self._scores = {(row.repeat_id, row.scorer_id): row for row in light}
        waiting = open_scorings().filter(repeat__in=self._columns, scorer__in=scorers)
        self._awaited = {*waiting.values_list("repeat", "scorer")} if len(scorers) > 1 else set()
        self._names = OneNames()
        self._models = self._read_models([run.pk for run in runs if run.is_reported])
        packed = {run.pk: [self.columns_digest(row) for row in self.measured(run)] for run in runs}
        self.usual = copies.find_usual([run for run in runs if copies.needs_usual(run, packed[run.pk])])

    def _read_models(self, reported: list[int]) -> dict[int, tuple[str, str]]:
        """Return bucket id → model name and revision, for runs with unknown weights."""
        ids = {
            bucket for run in reported for repeat in self.repeats[run] for bucket in self.bucket_ids.get(repeat.pk, ())
        }
        rows = BucketRecord.objects.filter(pk__in=ids).select_related("model", "fingerprint") if ids else ()
        return {
            row.pk: (pair_facts.find_other_model(row, self._names) or row.model.name, row.model.revision)
            for row in rows
        }

    def measured(self, run: RunRecord) -> list[RepeatRecord]:
        """Return the repeats of a run that have ended with columns."""
        return [row for row in self.repeats[run.pk] if row.pk in self._columns]

    def columns_digest(self, repeat: RepeatRecord) -> str:
        return self._columns[repeat.pk]

    def score_digest(self, repeat: RepeatRecord, scorer: int) -> str | None:
        row = self._scores.get((repeat.pk, scorer))
        return None if row is None else row.digest

    def find_scored_by(self, run: RunRecord, scorer: Scorer) -> Scorer:
        """Return the scorer whose scores of a run are read: a judge's newest judging, else the scorer itself."""
        return self._judged.get((run.pk, scorer.pk), scorer)

    def are_scored(self, repeats: Collection[RepeatRecord], own: int, scorer: int) -> bool:
        """Tell whether a scorer has scored all repeats. own: their suite's; it may have scored nothing too."""
        rows = ((self._scores.get((row.pk, own)), self._scores.get((row.pk, scorer))) for row in repeats)
        return all(other is not None and (other.n_scored or not (one and one.n_scored)) for one, other in rows)

    def are_awaited(self, repeats: Collection[RepeatRecord], scorer: int) -> bool:
        """Tell whether a worker has yet to score some of the repeats by a scorer."""
        return any((row.pk, scorer) in self._awaited for row in repeats)

    def models(self, bucket_ids: Iterable[int]) -> list[list[str]]:
        """Return what counts as one model, of each bucket; each once."""
        known = {self._models[bucket] for bucket in bucket_ids}
        return sorted([self._names.of(name), revision] for name, revision in known)


def _side_key(
    run: RunRecord, only: int | None, other: Scorer, stored: _StoredRepeats, *, is_baseline: bool = False
) -> SideKey:
    """Find one side. other: the other side's scorer, which judges a baseline that it has scored whole."""
    measured = stored.measured(run)
    packed_as = {row.index: stored.columns_digest(row) for row in measured}
    if only is not None and only not in {row.index for row in stored.repeats[run.pk]}:
        raise NotFound(f"Run {run.pk} has no repeat {only}.")
    ended = [row for row in measured if only in (None, row.index)]
    if not ended:
        raise Conflict(acts.nothing_to_compare(run).reason)
    known = sorted({bucket for row in ended for bucket in stored.bucket_ids[row.pk]})
    version = run.suite_version
    own, is_other = version.scorer, version.scorer_id != other.pk
    is_shared = is_baseline and is_other and stored.are_scored(ended, own.pk, other.pk)
    is_awaited = is_baseline and is_other and not is_shared and stored.are_awaited(ended, other.pk)
    scorer = other if is_shared else own
    scored_by = stored.find_scored_by(run, scorer)
    read = {own.pk, other.pk, scored_by.pk}
    digests = {
        "run": run.pk,
        "suite": version.digest,
        "scorer": own.digest,
        "profile": run.profile.digest,
        "columns": {str(row.index): packed_as[row.index] for row in ended},
        "scores": {f"{row.index} {by}": stored.score_digest(row, by) for row in ended for by in read},
        **({"judged_by": other.digest} if is_shared else {}),
        **({"judged_again": scored_by.digest} if scored_by.pk != scorer.pk else {}),
        **({"is_awaited": True} if is_awaited else {}),
    }
    if run.is_reported:  # what counts as one model there is a person's word, which may change
        digests["models"] = stored.models(known)
    usual = stored.usual.get(run.pk, ())
    if usual:
        digests["usual"] = [packed for _, packed in usual]
    return SideKey(
        run=run,
        repeat_ids=tuple(row.pk for row in ended),
        repeats=tuple(row.index for row in ended),
        digests=digests,
        bucket_ids=tuple(known),
        measured=(*packed_as.values(), *([digest.digest_json(run.strays)] if run.strays else ())),
        unscored_ids=frozenset(row.pk for row in ended if row.status in RepeatRecord.WITHOUT_SCORE),
        scored=stored.scored[run.pk],
        usual_ids=tuple(repeat for repeat, _ in usual),
        scorer=scorer,
        scored_by=scored_by,
        is_awaited=is_awaited,
    )


def find_scorers(ours: RunRecord, theirs: RunRecord) -> tuple[tuple[Scorer, Scorer], tuple[Scorer, Scorer]]:
    """Return each side's scorer, and the one whose scores are read, as in `SideKey`.

    The runs are loaded with RELATED.
    """
    own, other = ours.suite_version.scorer, theirs.suite_version.scorer
    if own == other and not scoring.is_judged(own.spec):
        return (own, own), (other, other)
    stored = _StoredRepeats([ours, theirs], None)
    judge = own
    if own != other and stored.measured(ours):
        judge = _side_key(ours, None, other, stored, is_baseline=True).scorer
    return (judge, stored.find_scored_by(ours, judge)), (other, stored.find_scored_by(theirs, other))


def shared_cases(ours: RunRecord, theirs: RunRecord) -> tuple[Indexes, Indexes]:
    """Return the suite's indexes of the cases that both runs have, in the baseline's order."""
    if ours.suite_version_id == theirs.suite_version_id:
        every = np.arange(ours.suite_version.n_cases)
        return every, every
    with connection.cursor() as cursor:
        cursor.execute(SAME_CASES, [ours.suite_version_id, theirs.suite_version_id])
        rows = np.array(cursor.fetchall(), dtype=np.int64).reshape(-1, 2)
    if not len(rows):
        versions = f"versions {ours.suite_version.number} and {theirs.suite_version.number}"
        raise InvalidInput(
            f"No case of {versions} of suite {ours.suite_version.suite.slug} is the same.",
            fields={"candidate": "Must be a run of a suite version that shares cases with the baseline's."},
        )
    return rows[:, 0], rows[:, 1]


def find_others(runs: tuple[int, int], case_indexes: Iterable[int], terms: Terms = MODEL_TERMS) -> dict[int, int]:
    """Return the candidate's case indexes by the baseline's; another version may renumber cases.

    runs: ids of the baseline and the candidate. terms: of their comparison.
    """
    if not terms.is_prompt:
        versions = RunRecord.objects.filter(pk__in=runs).order_by().values_list("suite_version", flat=True)
        if len({*versions}) == 1:
            return {index: index for index in case_indexes}
    records = RunRecord.objects.select_related("suite_version__suite").in_bulk(runs)
    ours, theirs = (records[run] for run in runs)
    if terms.is_prompt:
        paired = _pair_prompted(ours, theirs, terms)
        return dict(zip(paired.baseline.tolist(), paired.candidate.tolist(), strict=True))
    return dict(zip(*(column.tolist() for column in shared_cases(ours, theirs)), strict=True))


def _load_side(
    key: SideKey,
    other: SideKey,
    case_indexes: Indexes,
    buckets: Mapping[int, BucketRecord],
    served: Mapping[int, ServingFacts],
    backends: Mapping[int, str],
    scored: tuple[int, int] | None,
) -> StoredSide:
    """Load one side. other: the other one. scored: scorings on both buckets."""
    run, n_cases = key.run, key.run.suite_version.n_cases
    places = _places(key, {index: key.digests["columns"][str(index)] for index in key.repeats})
    wanted = slice(None) if _is_whole(case_indexes, n_cases) else case_indexes
    by_place = [stored_columns.missing(len(case_indexes))] * len(key.repeats)
    for columns in stored_columns.stream(list(places)):
        taken = columns.take(wanted)
        for at in places[columns.repeat_id]:
            by_place[at] = taken
    ended = tuple(at for at, repeat in enumerate(key.repeat_ids) if repeat not in key.unscored_ids)
    version = run.suite_version
    is_one_scorer = version.scorer_id == other.run.suite_version.scorer_id
    fields = lay_columns(
        by_place,
        run,
        repeats=key.repeats,
        ended=ended,
        suite_version=f"{version.suite.slug} v{version.number}",
        suite_digest=version.digest if is_one_scorer else _digest_asked(version),
        buckets=buckets,
        served=served,
        names=OneNames(),
        backends=backends,
        unknown_prompts=str(run.source_id) if run.is_log and lacks_prompts(version) else "",
        is_logged=run.source_id is not None,
    )
    shares, n = fields["shares"], len(case_indexes)
    scores = _scores(key, key.scorer.pk, wanted, n)
    if key.scorer != version.scorer:
        fields = judge_by_other(fields, key.scorer, _scores(key, version.scorer_id, wanted, n), scores)
    if key.scored_by != key.scorer:
        before, scores = scores, _scores(key, key.scored_by.pk, wanted, n)
        again = JudgedAgain(key.scored_by.digest, *measure_shift(fields["setup"], before, scores))
        fields["setup"] = replace(fields["setup"], judged_again=again)
    if key.is_awaited:
        fields["setup"] = replace(fields["setup"], is_awaited=True)
    return StoredSide(
        **fields | {"setup": replace(fields["setup"], judge=judge_facts(run, key.scored_by))},
        key=key,
        case_indexes=case_indexes,
        scores=scores,
        alike=None if key.scorer == other.scorer else _scores(key, other.scorer.pk, wanted, n),
        strays=_find_strays(key, case_indexes),
        responses=StoredResponses(
            key.repeat_ids,
            case_indexes,
            shares[0][0] if shares else None,
            None if scored is None else StoredAnswers(scored),
        ),
        usual=copies.read_usual(key.usual_ids, wanted),
    )


def _digest_asked(version: SuiteVersionRecord) -> str:
    cases = version.cases.order_by("index").values_list("digest", flat=True)
    return digest_asked(version.max_tokens, version.stop, list(cases))


def _find_strays(key: SideKey, case_indexes: Indexes) -> tuple[Indexes, Indexes]:
    """Return the rows and columns of the responses that another computation gave."""
    if not key.run.strays:
        return NO_STRAYS
    places = Stray.objects.filter(run=key.run, repeat__in=key.repeats).listed()
    rows = dict(zip(case_indexes.tolist(), range(len(case_indexes)), strict=True))
    columns = {index: at for at, index in enumerate(key.repeats)}
    known = [
        (rows[case], columns[repeat]) for case, repeat in places.values_list("case_index", "repeat") if case in rows
    ]
    cases, repeats = np.array(known, np.int64).reshape(-1, 2).T
    return cases, repeats


def _is_whole(case_indexes: Indexes, n_cases: int) -> bool:
    return len(case_indexes) == n_cases and bool((case_indexes == np.arange(n_cases)).all())


def _scores(key: SideKey, scorer_id: int, wanted: Any, n: int) -> NDArray[np.float64]:
    """Return float64[n, a] under one scorer, NaN where that has not scored."""
    places = _places(key, {index: key.digests["scores"][f"{index} {scorer_id}"] for index in key.repeats})
    by_place = [np.full(n, np.nan)] * len(key.repeats)
    for repeat_id, packed in bulk.stream_binary(SCORES, [list(places), scorer_id]):
        scores = unpack_scores(packed, key.run.suite_version.n_cases)[wanted]
        for at in places[repeat_id]:
            by_place[at] = scores
    return lay(by_place)


def _places(key: SideKey, digests: Mapping[int, str | None]) -> dict[int, list[int]]:
    """Return the repeats to read, each with the places of all equal ones. digests: by repeat."""
    firsts: dict[str | None, int] = {}
    places: dict[int, list[int]] = defaultdict(list)
    for at, (repeat_id, index) in enumerate(zip(key.repeat_ids, key.repeats, strict=True)):
        places[firsts.setdefault(digests[index], repeat_id)].append(at)
    return places
