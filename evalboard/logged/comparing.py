"""Two runs of logs compared in memory: what the server answers of them, made by the same functions."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.compared.pairs import ListedCase, place_of, write_pair
from evalboard.compared.report import (
    Named,
    NamedSide,
    join_names,
    shown_cases,
    write_blocks,
    write_change,
    write_comparison,
)
from evalboard.contract.compare import SIDES, ChangedMessage, ComparedCase, Comparison, ComparisonProgress, Flip
from evalboard.contract.run import SuiteNamed
from evalboard.contract.treatments import AUTO, BY_ID, BY_INPUT, PROMPT_TREATMENT, Terms
from evalboard.core.compare import (
    MAX_USUAL,
    NO_BUCKET,
    PARTED_ALIKE,
    AlikeRows,
    Comparing,
    ComparisonReport,
    Indexes,
    Measured,
    PairNoise,
    PromptedCase,
    PromptOfCase,
    PromptPairs,
    Reads,
    ResponseFacts,
    Side,
    are_independent,
    choose_gravest,
    choose_treatment,
    compare_prompts,
    draws_of,
    find_terms,
    judge_by_other,
    judge_prompts,
    lay,
    lay_columns,
    list_scores,
    measure_buckets,
    needs_usual,
    pair_cases,
    served_beside,
    sum_listed_kl,
)
from evalboard.core.digest import canonical_json, digest_json
from evalboard.core.errors import InvalidInput
from evalboard.core.images import prompt_text
from evalboard.core.suite import CaseDocument, digest_asked
from evalboard.core.trace import TokenTrace, Vocabulary, pack_selection
from evalboard.logged.memory import TRACES, LogBucket, LogRepeat, LogResponses, LogRun, LogScorer, LogStore
from evalboard.logged.suites import unknown_prompt
from evalboard.wording.comparability import explain_unpaired
from evalboard.wording.manifest import name_backend
from evalboard.wording.numbers import counted

WITHOUT_SCORE = ("cancelled", "failed")


class OwnNames:
    """Names of models that are never merged."""

    def of(self, name: str) -> str:
        return name


NAMES = OwnNames()


@dataclass(frozen=True, slots=True)
class DifferingPair:
    """A pair that differs: the flip of its kind, and the repeats of this one."""

    flip: Flip
    repeat_baseline: int
    repeat_candidate: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.flip, name)


@dataclass(frozen=True, slots=True)
class WorstCase:
    """A case that differs. pair: its representative; n_alike: of n_pairs that diverge alike.

    movement: of the logits, in nats. scores_*: by repeat, from 0 to 1, None without one.
    """

    pair: DifferingPair
    n_alike: int
    n_pairs: int
    movement: float
    scores_baseline: list[float | None]
    scores_candidate: list[float | None]

    @property
    def moved(self) -> float:
        """By how much the mean score rose; 0 where a side has none."""
        means = [_mean(scores) for scores in (self.scores_baseline, self.scores_candidate)]
        return 0.0 if means[0] is None or means[1] is None else round(means[1] - means[0], 9)


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True, eq=False, kw_only=True)
class LogSide(Side):
    run: LogRun

    def find_company(self) -> Sequence[Hashable]:
        return [repeat.company for repeat in self.run.whole]


@dataclass(frozen=True, eq=False)
class LogComparison:
    """Two runs of one store compared.

    treatment: what is judged; AUTO for what alone differs, "" for the model, or the prompt where no case is the same.
    """

    store: LogStore
    baseline: LogRun
    candidate: LogRun
    at: datetime
    treatment: str = ""
    pair_by: str = BY_INPUT

    @cached_property
    def terms(self) -> Terms:
        """Return what is judged. Raises InvalidInput if no case can be paired."""
        named = self.treatment if self.treatment != AUTO else ""
        terms = find_terms(named, self.pair_by, are_prompts_other=not len(self._same[0]) and self._paired.are_other)
        if self.treatment == AUTO and not terms.is_prompt and len(self._same[0]):
            ours, theirs = (side.setup for side in self._lay_sides(self._same))
            return terms._replace(treatment=choose_treatment(ours, theirs))
        return terms

    @cached_property
    def cases(self) -> tuple[Indexes, Indexes]:
        """The indexes of the cases that both runs have, in the baseline's order. Raises InvalidInput."""
        ours, theirs = (run.suite_version.cases for run in (self.baseline, self.candidate))
        terms = self.terms
        cases = (self._paired.baseline, self._paired.candidate) if terms.is_prompt else self._same
        if len(cases[0]):
            return cases
        if self.treatment == PROMPT_TREATMENT or self.pair_by == BY_ID:
            raise InvalidInput(f"No case of the two logs can be paired: {explain_unpaired(self._paired.counts)}")
        advice = "--pair-by id" if self.treatment in ("", AUTO) else "--treatment prompt"
        raise InvalidInput(f"No case of the two logs is the same: {_find_difference(ours, theirs, advice)}")

    @cached_property
    def _same(self) -> tuple[Indexes, Indexes]:
        """The cases with the same content on both sides."""
        ours, theirs = self.baseline.suite_version, self.candidate.suite_version
        if ours is theirs:
            every = np.arange(len(ours.cases))
            return every, every
        has_inputs = any(case.input for case in (*ours.cases, *theirs.cases))
        known = {_key(case, has_inputs): case.index for case in theirs.cases}
        shared = [(case.index, known[key]) for case in ours.cases if (key := _key(case, has_inputs)) in known]
        rows = np.array(shared, np.int64).reshape(-1, 2)
        return rows[:, 0], rows[:, 1]

    @cached_property
    def _paired(self) -> PromptPairs:
        """The cases whose inputs, or ids, are the same on both sides."""
        ours, theirs = (map(_prompted, run.suite_version.cases) for run in (self.baseline, self.candidate))
        return pair_cases(list(ours), list(theirs), self.pair_by)

    def _read_prompts(self, places: Sequence[int]) -> Iterator[tuple[str, PromptOfCase, PromptOfCase]]:
        ours, theirs = (run.suite_version.cases for run in (self.baseline, self.candidate))
        for at in places:
            one, other = ours[self._paired.baseline[at]], theirs[self._paired.candidate[at]]
            yield one.id, *(PromptOfCase(each.messages, each.tools, each.own_input) for each in (one, other))

    def list_prompt_changes(self, case_index: int) -> tuple[ChangedMessage, ...]:
        """Return the changes in a pair's prompt, () unless the prompt is judged."""
        if not self.terms.is_prompt:
            return ()
        [(_, ours, theirs)] = self._read_prompts([int(np.searchsorted(self._paired.baseline, case_index))])
        return tuple(map(write_change, compare_prompts(ours, theirs)))

    def find_case(self, case_id: str) -> tuple[int | None, str]:
        """Return the baseline's index of a pair by either side's id.

        Else None, and the only side that has the case.
        """
        sides = [{case.id: case.index for case in run.suite_version.cases} for run in (self.baseline, self.candidate)]
        for indexes, cases in zip(sides, self.cases, strict=True):
            at = np.flatnonzero(cases == indexes.get(case_id, -1))
            if len(at):
                return int(self.cases[0][at[0]]), ""
        names = [name for name, indexes in zip(SIDES, sides, strict=True) if case_id in indexes]
        return None, names[0] if len(names) == 1 else ""

    @cached_property
    def report(self) -> ComparisonReport:
        """Return the pipeline's report on both sides."""
        report = self._comparing.run()
        report.summary["blocks"] = write_blocks(report.summary["blocks"])
        return report

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        return self._lay_sides(self.cases)

    def _lay_sides(self, cases: tuple[Indexes, Indexes]) -> tuple[Side, Side]:
        both = (self.baseline, self.candidate), (self.candidate, self.baseline)
        ours, theirs = (self._side(run, own, other) for (run, other), own in zip(both, cases, strict=True))
        return ours, theirs

    @cached_property
    def comparison(self) -> Comparison:
        """The answer that the server gives, without addresses."""
        summary, n = self.report.summary, len(self.report.flips)
        ids = {case.index: case.id for case in self.baseline.suite_version.cases}
        named = Named(
            sides=(self._name(self.baseline), self._name(self.candidate)),
            buckets=self.store.buckets,
            backends=self.backends,
            case_ids={index: ids[index] for index in shown_cases(summary)},
            read_words=self.store.words.read,
        )
        progress = ComparisonProgress(status="finished", n_done=n, n_total=n, error=None)
        return write_comparison(summary, named, repeat=None, progress=progress, finished_at=self.at, url="")

    @cached_property
    def pairs(self) -> list[DifferingPair]:
        """The pairs that differ, the gravest first."""
        every = (DifferingPair(flip, ours, theirs) for flip, repeats in self.report.flips for ours, theirs in repeats)
        return sorted(every, key=place_of)

    def write_pairs(self, pairs: Iterable[DifferingPair]) -> list[ComparedCase]:
        """Return rows of the list of pairs, as the server answers them."""
        cases, words = self.baseline.suite_version.cases, self.vocabularies
        return [
            write_pair(pair, ListedCase(case=cases[pair.flip.case_index].id, tags=(), url=""), self.backends, words)
            for pair in pairs
        ]

    @cached_property
    def backends(self) -> dict[int, str]:
        """The names of both logs' backends by bucket; a log has no endpoint with permanent names."""
        runs = self.baseline, self.candidate
        endpoints = [self._name(run).endpoint for run in runs]
        names: dict[str, dict[int, str]] = {endpoint: {} for endpoint in endpoints}
        for endpoint, run in zip(endpoints, runs, strict=True):
            for bucket in sorted(_bucket_ids(run) - names[endpoint].keys()):
                manifest = self.store.buckets[bucket].fingerprint.manifest
                names[endpoint][bucket] = name_backend(manifest, names[endpoint].values())
        return join_names(names[endpoints[0]], names[endpoints[1]], endpoints[1])

    def list_worst(self) -> "list[WorstCase]":
        """Return each differing case with its representative pair, worst first."""
        alike: dict[tuple[Any, ...], list[int]] = {}
        for at, pair in enumerate(self.pairs):
            alike.setdefault(tuple(getattr(pair, name) for name in PARTED_ALIKE), []).append(at)
        chosen = choose_gravest(
            AlikeRows._make((*key, len(at), at[0], self._move_logits(at))) for key, at in alike.items()
        )
        ours, theirs = (side.scored_draws[0].scores for side in self.sides)
        worst = []
        for row, case in enumerate(self.cases[0].tolist()):
            if (one := chosen.get(case)) is not None and self.pairs[one.row].flip.cause != "identical":
                pair, scores = self.pairs[one.row], (list_scores(ours[row]), list_scores(theirs[row]))
                worst.append(WorstCase(pair, one.n_alike, one.n_pairs, one.movement, *scores))
        return sorted(worst, key=lambda each: (each.pair.flip.consequence, each.moved, -each.movement))

    def _move_logits(self, at: Sequence[int]) -> float | None:
        given = [self.pairs[each].flip.evidence.get("movement") for each in at]
        return max((each for each in given if each is not None), default=None)

    def answers(self, pair: DifferingPair) -> tuple[ResponseFacts | None, ResponseFacts | None]:
        """Return both responses of a pair; None for one that never was."""
        at = int(np.searchsorted(self.cases[0], pair.flip.case_index))
        both = (
            (self.baseline, pair.repeat_baseline, self.cases[0][at]),
            (self.candidate, pair.repeat_candidate, self.cases[1][at]),
        )
        ours, theirs = (run.repeats[repeat - 1].answers[case] for run, repeat, case in both)
        return ours, theirs

    @cached_property
    def vocabularies(self) -> list[Vocabulary | None]:
        """Return both sides' vocabularies, None if unknown."""
        ids = (self.report.summary["sides"][name]["vocabulary"] for name in SIDES)
        return [None if pk is None else self.store.words.read(pk) for pk in ids]

    @property
    def case_parts(self) -> NDArray[np.uint8]:
        """The place in CASE_PARTS of each case."""
        return self._comparing.case_parts

    @property
    def has_tokens(self) -> bool:
        """Return whether answers of both sides have tokens, which are compared."""
        return not self.terms.is_prompt and all(
            any(facts is not None and facts.place is not None for repeat in run.whole for facts in repeat.answers)
            for run in (self.baseline, self.candidate)
        )

    @cached_property
    def mean_kl(self) -> float | None:
        """The mean KL of the two sides' distributions in nats a position, at least (core.compare.listed_kl).

        It is over the positions of all pairs until they part; None where no position can be compared.
        """
        if self.terms.is_prompt:
            return None
        pairing, total, n = self._comparing.matched.pairing, 0.0, 0
        known: dict[tuple[bytes, bytes], tuple[float, int]] = {}
        columns = (pairing.cases, pairing.baseline_repeats, pairing.candidate_repeats)
        for row, at, at_too in zip(*(column.tolist() for column in columns), strict=True):
            ours = self.baseline.whole[at].answers[self.cases[0][row]]
            theirs = self.candidate.whole[at_too].answers[self.cases[1][row]]
            if ours is None or theirs is None or ours.place is None or theirs.place is None:
                continue
            if self.store.words.beside(ours.vocabulary_id, theirs.vocabulary_id, are_logged=True) is not None:
                continue
            key = ours.place.digest, theirs.place.digest
            if key not in known:
                known[key] = sum_listed_kl(ours.place, theirs.place)
            total, n = total + known[key][0], n + known[key][1]
        return total / n if n else None

    def prompt(self, pair: DifferingPair) -> str:
        """Return the last message of a pair's case."""
        message = self.baseline.suite_version.cases[pair.flip.case_index].messages[-1]
        return prompt_text(message.get("content"))

    @cached_property
    def _comparing(self) -> Comparing:
        prompts = judge_prompts(self._paired, self._read_prompts) if self.terms.is_prompt else None
        reads = Reads(TRACES, self.store.words, self._measure_noise)
        return Comparing(*self.sides, reads, self.terms.treatment, prompts)

    def _side(self, run: LogRun, cases: Indexes, other: LogRun) -> Side:
        repeats, version = run.whole, run.suite_version
        if not repeats:
            raise InvalidInput("No repeat of the log has all of its cases, so there is nothing to compare.")
        columns = [repeat.columns.take(cases) for repeat in repeats]
        ids = _bucket_ids(run)
        buckets = {pk: bucket for pk, bucket in self.store.buckets.items() if pk in ids}
        lacks_prompts = run.is_log and any(list(case.messages) == unknown_prompt() for case in version.cases)
        own, others = version.scorer, other.suite_version.scorer
        judging, judging_other = self._scorers if run is self.baseline else self._scorers[::-1]
        fields = lay_columns(
            columns,
            run,
            repeats=[repeat.index for repeat in repeats],
            ended=[at for at, repeat in enumerate(repeats) if repeat.status not in WITHOUT_SCORE],
            suite_version=str(version),
            suite_digest=version.digest
            if own.digest == others.digest
            else digest_asked(version.max_tokens, version.stop, [case.digest for case in version.cases]),
            buckets=buckets,
            served=served_beside(run, other, buckets.values(), NAMES),
            names=NAMES,
            backends=self.backends,
            unknown_prompts=run.source_id if lacks_prompts else "",
            is_logged=run.is_log,
        )
        places = {case: at for at, case in enumerate(cases.tolist())}
        strays = [(places[case], at) for case, at in run.strays if case in places]
        shares, scores = fields["shares"], _scores(repeats, judging.digest, cases)
        if judging.digest != own.digest:
            fields = judge_by_other(fields, judging, _scores(repeats, own.digest, cases), scores)
        rows, at_repeats = np.array(strays, np.int64).reshape(-1, 2).T
        return LogSide(
            **fields,
            run=run,
            case_indexes=cases,
            scores=scores,
            alike=None if judging.digest == judging_other.digest else _scores(repeats, judging_other.digest, cases),
            strays=(rows, at_repeats),
            responses=LogResponses(run, repeats, cases, shares[0][0] if shares else None),
            usual=self._find_usual(run, cases),
        )

    @cached_property
    def _scorers(self) -> tuple[LogScorer, LogScorer]:
        """Return each side's judging scorer: the candidate's, where all repeats of the baseline have it."""
        own, other = (run.suite_version.scorer for run in (self.baseline, self.candidate))
        known = [repeat.scores.get(other.digest) for repeat in self.baseline.whole]
        is_shared = all(scores is not None and not np.isnan(scores).all() for scores in known)
        return other if is_shared else own, other

    def _find_usual(self, run: LogRun, cases: Indexes) -> NDArray[np.uint64] | None:
        """Return the texts of independent runs, where some repeats are equal to the bit."""
        columns = (tuple(part.tobytes() for part in each.columns[1:]) for each in run.whole)
        if run.status != "finished" or not needs_usual(run, columns):
            return None
        ended = [other for other in self.store.runs if other.status == "finished" and are_independent(run, other)]
        repeats = chain.from_iterable(
            (repeat for repeat in other.whole if repeat.status == "finished") for other in ended
        )
        texts = [repeat.columns.texts[cases] for repeat in list(repeats)[:MAX_USUAL]]
        return np.stack(texts, axis=1) if texts else None

    def _measure_noise(self) -> PairNoise:
        runs = self.baseline, self.candidate
        is_one = self.baseline.suite_version is self.candidate.suite_version
        are_equal = is_one and not any(draws_of(run).may_sample for run in runs)
        return PairNoise(*(_measure(run, self.store.buckets.values()) for run in runs), are_batches_equal=are_equal)

    def _name(self, run: LogRun) -> NamedSide:
        version, scorer = run.suite_version, self._scorers[run is not self.baseline].digest
        return NamedSide(
            run=str(run.pk),
            suite=SuiteNamed(slug=version.suite.slug, version=version.number),
            endpoint=run.endpoint,
            profile=run.profile.slug,
            profile_version=run.profile.version,
            model=run.model_name,
            scorer_digest=scorer,
            points={repeat.index: repeat.points(scorer) for repeat in run.whole},
            left_out={repeat.index: repeat.columns.n_left_out for repeat in run.whole},
            targeted=[
                int.from_bytes(pack_selection(repeat.chosen))
                for repeat in run.repeats
                if not repeat.is_whole and repeat.status not in WITHOUT_SCORE
            ],
        )


def _bucket_ids(run: LogRun) -> set[int]:
    return {int(pk) for repeat in run.whole for pk in np.unique(repeat.columns.buckets)} - {NO_BUCKET}


def _key(case: CaseDocument, has_inputs: bool) -> str:
    """Return a key that is equal for equal cases, whatever a log calls their input."""
    return digest_json([case.id, case.messages, case.tools, case.target]) if has_inputs else case.digest


def _prompted(case: CaseDocument) -> PromptedCase:
    prompt = canonical_json([case.messages, case.tools])
    return PromptedCase(case.index, case.id, case.own_input, canonical_json(case.target), prompt)


def _find_difference(ours: Sequence[CaseDocument], theirs: Sequence[CaseDocument], advice: str) -> str:
    """Return why no case is on both sides: other ids, or other content under a shared id.

    advice: the option by which prompts are judged.
    """
    known = {case.id: case for case in theirs}
    both = [(case, known[case.id]) for case in ours if case.id in known]
    if not both:
        return f"their ids differ. The first is {ours[0].id!r} on one side and {theirs[0].id!r} on the other."
    case, other = both[0]
    if (list(case.messages) == unknown_prompt()) != (list(other.messages) == unknown_prompt()):
        what = "one log does not hold its prompts. Where these are in a file of requests, name a folder that has both"
    else:
        parts = {"prompt": (case.messages, other.messages), "target": (case.target, other.target)}
        unequal = [name for name, (one, two) in parts.items() if one != two] or ["tools or settings"]
        what = f"of {case.id!r} each has another {' and another '.join(unequal)}"
        what += f". To judge the prompt: {advice}" if unequal == ["prompt"] else ""
    return f"{counted(len(both), 'id')} {'is' if len(both) == 1 else 'are'} on both sides, but {what}."


def _scores(repeats: Sequence[LogRepeat], scorer_digest: str, cases: Indexes) -> NDArray[np.float64]:
    nothing = np.full(len(cases), np.nan)
    return lay(
        [repeat.scores[scorer_digest][cases] if scorer_digest in repeat.scores else nothing for repeat in repeats]
    )


def _measure(run: LogRun, buckets: Iterable[LogBucket]) -> Mapping[int | None, Measured]:
    repeats = run.whole

    def find_places(at: int, cases: Sequence[int]) -> dict[int, TokenTrace]:
        rows = ((case, repeats[at].answers[case]) for case in sorted(cases))
        return {case: facts.place for case, facts in rows if facts is not None and facts.place is not None}

    return measure_buckets(
        [repeat.columns for repeat in repeats],
        run.strays,
        buckets,
        find_places=find_places,
        reader=TRACES,
        is_reported=run.is_reported,
    )
