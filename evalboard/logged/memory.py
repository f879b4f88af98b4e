"""Logs as runs in memory: what an empty installation would store of them, one after the other."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.facts import SettingsSeen
from evalboard.core import scoring
from evalboard.core.compare import (
    NO_BUCKET,
    Bools,
    Columns,
    Indexes,
    ResponseFacts,
    ServedRepeats,
    WordsById,
    choose_step,
    count_not_greedy,
    draws_of,
    is_greedy_wanted,
    split_by_bucket,
)
from evalboard.core.digest import digest_json
from evalboard.core.profile import OBSERVED, identify_log, is_one_draw
from evalboard.core.stats import is_left_out, run_points
from evalboard.core.suite import CaseDocument, SuiteDocument, parse_suite
from evalboard.core.trace import BY_WORD, Ending, TokenTrace, TraceColumns, Vocabulary, join_traces, judge_words
from evalboard.importers.records import LoggedResponse, LoggedRun
from evalboard.importers.spelling import is_measured
from evalboard.logged import runs, suites
from evalboard.logged.answers import answer_fields
from evalboard.logged.backends import Known, known_parts, name_model
from evalboard.logged.times import times_of
from evalboard.logged.words import LoggedWords, trace_by_ids

PAIRS_AT_ONCE = 256
READ_POSITIONS = 1 << 18  # of both sides of the pairs that are in columns together

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LogScorer:
    spec: Mapping[str, Any]
    digest: str


@dataclass(frozen=True, slots=True)
class LogSuite:
    slug: str


@dataclass(frozen=True, slots=True)
class LogVersion:
    """A suite version, with the attributes of a stored one."""

    pk: int
    suite: LogSuite
    number: int
    digest: str
    scorer: LogScorer
    max_tokens: int
    stop: tuple[str, ...]
    cases: tuple[CaseDocument, ...]

    def __str__(self) -> str:
        return f"{self.suite.slug} v{self.number}"

    @property
    def n_cases(self) -> int:
        return len(self.cases)


class MemoryShelf:
    """The suite versions that logs have made; a `logged.suites.Shelf`."""

    def __init__(self) -> None:
        self.versions: list[LogVersion] = []

    def newest(self, slug: str) -> LogVersion | None:
        return next((version for version in reversed(self.versions) if version.suite.slug == slug), None)

    def with_digest(self, digest: str) -> Iterable[LogVersion]:
        return [version for version in self.versions if version.digest == digest]

    def newest_with(self, case_id: str, n_cases: int) -> Iterable[LogVersion]:
        newest = {each.suite.slug: each for each in self.versions}.values()
        return [each for each in newest if len(each.cases) == n_cases and case_id in self.indexes(each)]

    def scored_by(self, slug: str, plan: Mapping[str, Any]) -> Iterable[LogVersion]:
        digest = scoring.plan_digest(plan)
        return [each for each in reversed(self.versions) if (each.suite.slug, each.scorer.digest) == (slug, digest)]

    def push(self, document: Mapping[str, Any]) -> LogVersion:
        parsed = parse_suite(document)
        before, plan = self.newest(parsed.slug), scoring.plan(parsed.scorer, {})
        number = 1 if before is None else before.number + 1
        return self.put(parsed, LogScorer(plan, scoring.plan_digest(plan)), number=number)

    def put(self, parsed: SuiteDocument, scorer: LogScorer, *, number: int) -> LogVersion:
        """Return the version with this content, storing it under a new number if needed."""
        known = next((each for each in self.with_digest(parsed.digest) if each.suite.slug == parsed.slug), None)
        if known is not None:
            return known
        version = LogVersion(
            pk=len(self.versions) + 1,
            suite=LogSuite(parsed.slug),
            number=number,
            digest=parsed.digest,
            scorer=scorer,
            max_tokens=parsed.max_tokens,
            stop=parsed.stop,
            cases=parsed.cases,
        )
        self.versions.append(version)
        return version

    def messages(self, version: LogVersion) -> Mapping[str, Sequence[suites.Message]]:
        return {case.id: case.messages for case in version.cases}

    def indexes(self, version: LogVersion) -> Mapping[str, int]:
        return {case.id: case.index for case in version.cases}

    def has_all(self, version: LogVersion, digests: set[str]) -> bool:
        return digests <= {case.digest for case in version.cases}


@dataclass(frozen=True, slots=True)
class LogFingerprint:
    pk: int
    digest: str
    label: str
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogModel:
    """A model, with the attributes of a stored one: no more than its name is known."""

    pk: int
    name: str
    revision: str
    digest: str
    template_digest: str = ""
    files: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class LogBucket:
    pk: int
    model: LogModel
    fingerprint: LogFingerprint
    batch_class: str = OBSERVED

    @property
    def model_id(self) -> int:
        return self.model.pk


@dataclass(frozen=True, slots=True)
class LogProfile:
    pk: int
    slug: str
    version: int
    settings: Mapping[str, Any]


@dataclass(slots=True)
class LogRepeat:
    """One repeat. chosen: bool[n_cases], its cases. scores: by their scorer's digest.

    answers: by case, None if there was none to come; a trace's place is the trace. company: a key for its batches.
    """

    index: int
    chosen: Bools
    status: str
    columns: Columns
    is_filtered: Bools
    answers: list[ResponseFacts | None]
    scores: dict[str, Scores] = field(default_factory=dict)
    company: Hashable = None

    @property
    def is_whole(self) -> bool:
        return bool(self.chosen.all())

    def points(self, scorer_digest: str) -> float | None:
        """Return its score in points; None where it has none, or several buckets served it."""
        scores = self.scores.get(scorer_digest)
        is_mixed = len(np.unique(self.columns.buckets[self.columns.buckets != NO_BUCKET])) > 1
        if scores is None or is_mixed:
            return None
        return run_points(scores, self.columns.texts.any(axis=1) | self.is_filtered)


@dataclass(slots=True, kw_only=True)
class LogRun:
    """A run of a log or an archive, with the attributes of a stored one. vocabularies: by bucket."""

    pk: int
    model_name: str
    notes: Sequence[str]
    suite_version: LogVersion
    endpoint: str
    profile: LogProfile
    source_id: str
    is_one_draw: bool
    started_at: datetime | None
    finished_at: datetime | None
    ran_at: datetime
    vocabularies: Mapping[int, int]
    repeats: list[LogRepeat] = field(default_factory=list)
    status: str = ""
    bucket: LogBucket | None = None
    settings_seen: dict[str, Any] | None = None
    strays: list[tuple[int, int]] = field(default_factory=list)  # (case index, place among the whole repeats)
    seed: int | None = None
    second_of_id: int | None = None
    is_reported: bool = True
    is_log: bool = True

    @property
    def suite_version_id(self) -> int:
        return self.suite_version.pk

    @property
    def endpoint_id(self) -> str:
        return self.endpoint

    @property
    def profile_id(self) -> int:
        return self.profile.pk

    @property
    def whole(self) -> list[LogRepeat]:
        """Return the repeats of all cases; only these are compared."""
        return [repeat for repeat in self.repeats if repeat.is_whole]


class MemoryTraces:
    """Reads traces that are places of their own; a `core.compare.Traces`."""

    def read(self, places: Iterable[TokenTrace]) -> list[TokenTrace]:
        return list(places)

    def read_pair_columns(
        self, pairs: Sequence[tuple[TokenTrace, TokenTrace]]
    ) -> Iterator[tuple[TraceColumns, TraceColumns]]:
        start = 0
        while start < len(pairs):
            end, n = start, 0
            while end < min(len(pairs), start + PAIRS_AT_ONCE) and (end == start or n < READ_POSITIONS):
                n += sum(map(len, pairs[end]))
                end += 1
            ours, theirs = zip(*pairs[start:end], strict=True)
            yield join_traces(ours), join_traces(theirs)
            start = end


TRACES = MemoryTraces()


class LogStore:
    """The content of an empty installation after importing these logs in order."""

    def __init__(self, *, now: datetime) -> None:
        self._now = now
        self.shelf = MemoryShelf()
        self.runs: list[LogRun] = []
        self.buckets: dict[int, LogBucket] = {}
        self.words = WordsById(lambda pk: self._read_vocabulary(pk))
        self._models: dict[str, LogModel] = {}
        self._prints: dict[str, LogFingerprint] = {}
        self._profiles: dict[str, LogProfile] = {}
        self._endpoints: dict[str, str] = {}
        self._words: dict[str, LoggedWords] = {}
        self._vocabularies: dict[str, tuple[int, bytes]] = {}

    def add(self, logged: LoggedRun, *, source: str) -> LogRun:
        """Return the log as a run. source: the digest of its import. Raises InvalidInput."""
        runs.refuse_unfit(logged)
        placed = suites.place(logged, None, self.shelf, source=source)
        times, named = times_of(logged, imported_at=self._now), name_model(logged.model, logged.revision)
        model = self.put_model(name=named.name, revision=named.revision, digest=named.digest)
        answers = {(each.repeat, placed.indexes[each.case_id]): each for each in logged.responses}
        words = self._words.setdefault(model.digest, LoggedWords()) if logged.has_texts else None
        trace_of = trace_by_ids if words is None else words.trace
        traces = {key: trace for key, each in answers.items() if not each.error and (trace := trace_of(each))}
        vocabulary_id = self.put_vocabulary(words.digest, words.pack()["data"]) if words else None
        run = LogRun(
            pk=len(self.runs) + 1,
            model_name=logged.model,
            notes=logged.notes,
            suite_version=placed.version,
            endpoint=self._endpoint_of(model),
            profile=self._profile_of(logged),
            source_id=source,
            is_one_draw=is_one_draw(logged.sampling, runs.list_sent(logged)),
            started_at=times.started_at,
            finished_at=times.ended_at,
            ran_at=times.ran_at,
            vocabularies={},
        )
        fields = {key: answer_fields(each, traces.get(key)) for key, each in answers.items() if not each.error}
        _settle_endings(fields.values())
        chosen = runs.choose_cases(logged, placed.indexes, len(placed.version.cases))
        for index, cases in enumerate(chosen, start=1):
            made = self._repeat_of(logged, run, model, index, cases, answers, fields, traces, vocabulary_id)
            run.repeats.append(made)
        run.status = runs.end_run(logged, [repeat.status for repeat in run.repeats])
        run.settings_seen = _see_settings(run).to_json()
        self.keep(run)
        if vocabulary_id is not None:
            run.vocabularies = {
                int(pk): vocabulary_id for each in run.repeats for pk in np.unique(each.columns.buckets)
            }
        return run

    def keep(self, run: LogRun) -> None:
        """Store a run with its repeats, and set its main bucket and responses from other builds."""
        run.bucket = self._largest_bucket(run)
        run.strays = self._find_strays(run)
        self.runs.append(run)

    def _read_vocabulary(self, pk: int) -> Vocabulary:
        return Vocabulary.unpack(next(data for known, data in self._vocabularies.values() if known == pk))

    def put_model(self, *, digest: str, **fields: Any) -> LogModel:
        """Return the model of this digest, storing it with these fields if needed."""
        return self._models.setdefault(digest, LogModel(len(self._models) + 1, digest=digest, **fields))

    def put_fingerprint(self, digest: str, label: str, manifest: Mapping[str, Any]) -> LogFingerprint:
        return self._prints.setdefault(digest, LogFingerprint(len(self._prints) + 1, digest, label, manifest))

    def put_bucket(self, model: LogModel, fingerprint: LogFingerprint, batch_class: str) -> LogBucket:
        for bucket in self.buckets.values():
            if (bucket.model, bucket.fingerprint, bucket.batch_class) == (model, fingerprint, batch_class):
                return bucket
        pk = len(self.buckets) + 1
        return self.buckets.setdefault(pk, LogBucket(pk, model, fingerprint, batch_class))

    def put_profile(self, slug: str, version: int, settings: Mapping[str, Any]) -> LogProfile:
        key, pk = digest_json([slug, settings]), len(self._profiles) + 1
        return self._profiles.setdefault(key, LogProfile(pk, slug, version, settings))

    def put_vocabulary(self, digest: str, data: bytes) -> int:
        """Return the id of a vocabulary. data: it, packed."""
        return self._vocabularies.setdefault(digest, (len(self._vocabularies) + 1, data))[0]

    def _endpoint_of(self, model: LogModel) -> str:
        first, second = runs.name_endpoints(model.name, model.digest)
        return first if self._endpoints.setdefault(first, model.name) == model.name else second

    def _profile_of(self, logged: LoggedRun) -> LogProfile:
        version = 1 + sum(each.slug == runs.PROFILE for each in self._profiles.values())
        return self.put_profile(runs.PROFILE, version, runs.make_profile(logged))

    def _bucket_of(self, model: LogModel, known: Known, source: str) -> LogBucket:
        identity = identify_log(dict(known), log=source)
        return self.put_bucket(
            model, self.put_fingerprint(identity.digest, identity.label, identity.manifest), OBSERVED
        )

    def _repeat_of(
        self,
        logged: LoggedRun,
        run: LogRun,
        model: LogModel,
        index: int,
        chosen: Bools,
        answers: Mapping[tuple[int, int], LoggedResponse],
        fields: Mapping[tuple[int, int], Mapping[str, Any]],
        traces: Mapping[tuple[int, int], TokenTrace],
        vocabulary_id: int | None,
    ) -> LogRepeat:
        n = len(chosen)
        texts, digests = np.zeros((n, 16), np.uint8), np.zeros((n, 16), np.uint8)
        buckets, marks, is_filtered = np.full(n, NO_BUCKET, np.int64), np.zeros(n, np.uint8), np.zeros(n, np.bool_)
        rows: list[ResponseFacts | None] = [None] * n
        by_known: dict[Known, LogBucket] = {}
        for case in np.flatnonzero(chosen).tolist():
            response, given = answers.get((index, case)), fields.get((index, case))
            if response is None or given is None:
                code, _ = runs.why_missing(response)
                is_filtered[case] = code == runs.PROMPT_FILTERED
                rows[case] = ResponseFacts(None, "", "", code, None, None, None, None, None)
                continue
            known = known_parts(response.served_by)
            if known not in by_known:
                by_known[known] = self._bucket_of(model, known, run.source_id)
            buckets[case], marks[case] = by_known[known].pk, given["marks"]
            texts[case] = np.frombuffer(given["text_digest"], np.uint8)
            digests[case] = np.frombuffer(given["trace_digest"], np.uint8)
            rows[case] = ResponseFacts(
                place=traces.get((index, case)) if is_measured(response) else None,
                error_code="",
                vocabulary_id=vocabulary_id,
                **{name: given[name] for name in _FACTS},
            )
        n_missing = int(np.count_nonzero(chosen & (buckets == NO_BUCKET) & ~is_filtered))
        repeat = LogRepeat(
            index=index,
            chosen=chosen,
            status=runs.end_repeat(logged, n_missing if (buckets != NO_BUCKET).any() else int(chosen.sum())),
            columns=Columns(index, texts.view("<u8"), digests.view("<u8"), buckets, marks),
            is_filtered=is_filtered,
            answers=rows,
        )
        own = run.suite_version.scorer
        if scoring.scores_here(own.spec):  # the suite of an archive has a scorer of its own
            repeat.scores[own.digest] = _score(run.suite_version, index, fields)
        for name in logged.scorers:
            given_by = {
                case: score
                for (number, case), each in answers.items()
                if number == index and not each.error and (score := each.scores.get(name)) is not None
            }
            if given_by:
                scores = np.full(n, np.nan)
                for case, score in given_by.items():
                    scores[case] = np.nan if score.value is None else score.value
                repeat.scores[scoring.plan_digest(suites.recorded_plan(logged, name))] = scores
        return repeat

    def _largest_bucket(self, run: LogRun) -> LogBucket | None:
        counts: Counter[int] = Counter()
        for repeat in run.repeats:
            counts.update(repeat.columns.buckets[repeat.columns.buckets != NO_BUCKET].tolist())
        return self.buckets[min(counts, key=lambda pk: (-counts[pk], pk))] if counts else None

    def _find_strays(self, run: LogRun) -> list[tuple[int, int]]:
        """Return (case, place of its repeat) of the responses that another computation gave."""
        repeats = run.whole
        if len(repeats) < 2:
            return []

        def find_places(cases: NDArray[np.intp]) -> dict[tuple[int, int], TokenTrace]:
            return {
                (case, at): facts.place
                for at, repeat in enumerate(repeats)
                for case in cases.tolist()
                if (facts := repeat.answers[case]) is not None and facts.place is not None
            }

        parts = split_by_bucket([each.columns for each in repeats], are_greedy=not draws_of(run).may_sample)
        strays: list[tuple[int, int]] = []
        for bucket in parts.ids:
            own = parts.of(self.buckets[bucket])
            strays += ServedRepeats(
                **own, is_decimal=run.is_reported, find_places=find_places, reader=TRACES
            ).list_all()
        return strays


# What a response says of itself, by the names that it has in its row.
_FACTS = ("finish_reason", "ending", "prompt_digest", "n_prompt_tokens", "seed_sent", "n_reasoning_tokens", "text")


@dataclass(frozen=True, slots=True, eq=False)
class LogResponses:
    """The responses of one side; a `core.compare.sides.Responses`. cases: by place."""

    run: LogRun
    repeats: Sequence[LogRepeat]
    cases: Indexes
    bucket_id: int | None
    scored: None = None

    def read(self, cases: Indexes, repeats: Indexes, needs_text: Bools) -> list[ResponseFacts | None]:
        facts = [
            self.repeats[at].answers[case]
            for case, at in zip(self.cases[cases].tolist(), repeats.tolist(), strict=True)
        ]
        return [
            each if each is None or needs else replace(each, text="")
            for each, needs in zip(facts, needs_text.tolist(), strict=True)
        ]

    def find_traced(self, is_there: Bools) -> Bools:
        has_trace = is_there.copy()
        for at, repeat in enumerate(self.repeats):
            rows = [repeat.answers[case] for case in self.cases.tolist()]
            has_trace[:, at] &= [row is not None and row.place is not None for row in rows]
        return has_trace

    def find_vocabulary(self) -> int | None:
        return None if self.bucket_id is None else self.run.vocabularies.get(self.bucket_id)


def _score(version: LogVersion, repeat: int, fields: Mapping[tuple[int, int], Mapping[str, Any]]) -> Scores:
    """Return the scores of a repeat's answers under the scorer of their suite, NaN where there is none."""
    scores = np.full(len(version.cases), np.nan)
    for (index, at), given in fields.items():
        if index != repeat or given["ending"] is Ending.UNKNOWN:
            continue
        case = version.cases[at]
        spec = scoring.scorer_for(version.scorer.spec, case.id)
        value = scoring.score(
            spec,
            text=given["text"],
            thinking=given["reasoning"],
            is_truncated=given["is_truncated"],
            target=case.target,
            tools=case.tools,
        ).value
        scores[at] = np.nan if value is None else value
    return scores


def _settle_endings(fields: Iterable[dict[str, Any]]) -> None:
    """Decide what words of no list mean, by all answers of a run."""
    every = list(fields)
    judged = judge_words(Counter(each["finish_reason"] for each in every), {})
    for each in every if judged else ():
        if each["finish_reason"] in judged and each["ending"] in BY_WORD:
            each["ending"] = judged[each["finish_reason"]]


def _see_settings(run: LogRun) -> SettingsSeen:
    """Return what the answers of a run show of its settings."""
    there = [
        (case, repeat, facts)
        for repeat in run.repeats
        for case, facts in enumerate(repeat.answers)
        if facts is not None and not facts.error_code
    ]
    counts: Counter[bytes] = Counter()
    traces: dict[bytes, TokenTrace] = {}
    step = choose_step(len(there))
    for case, repeat, facts in there if is_greedy_wanted(run) else ():
        if facts.place is not None and case % step == 0 and not is_left_out(repeat.columns.marks[case]):
            digest = repeat.columns.traces[case].tobytes()
            counts[digest] += 1
            traces[digest] = facts.place
    n_listed, n_not_greedy = count_not_greedy(
        counts, lambda digests: join_traces([traces[digest] for digest in digests]), is_decimal=True
    )
    return SettingsSeen(n_answers=len(there), n_left_out={}, checked={}, n_listed=n_listed, n_not_greedy=n_not_greedy)
