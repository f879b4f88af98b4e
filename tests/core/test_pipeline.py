"""Two sides in memory compared: whole and part by part, without anything that keeps them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evalboard.contract.run import Draws
from evalboard.core import digest
from evalboard.core.compare import (
    CASE_PARTS,
    COMPARISON_VERSION,
    Bools,
    BucketFacts,
    Comparing,
    ComparisonReport,
    EndedRepeats,
    Indexes,
    Measured,
    PairNoise,
    Reads,
    RequestSettings,
    ResponseFacts,
    ServedShare,
    ServingFacts,
    Side,
    SideSetup,
    WordsById,
    run,
)
from evalboard.core.compare.groups import find_groups, match_sides
from evalboard.core.stats import CASE_OUTCOMES
from evalboard.core.trace import TokenTrace, TraceColumns, Vocabulary, join_traces, pack_vocabulary
from evalboard.wording.computation import write_computation
from tests.core import stacks

N_CASES = 24
MAX_AT_ONCE = 16  # pairs whose traces are read together
Given = Sequence[Sequence[TokenTrace | None]]  # by repeat and case; None where no answer came


class Kept:
    """Reads traces that are places of their own."""

    def read(self, places: Iterable[TokenTrace]) -> list[TokenTrace]:
        return list(places)

    def read_pair_columns(
        self, pairs: Sequence[tuple[TokenTrace, TokenTrace]]
    ) -> Iterator[tuple[TraceColumns, TraceColumns]]:
        for start in range(0, len(pairs), MAX_AT_ONCE):
            ours, theirs = zip(*pairs[start : start + MAX_AT_ONCE], strict=True)
            yield join_traces(ours), join_traces(theirs)


@dataclass
class Answers:
    given: Given
    scored: None = None
    vocabulary: int = 1

    def read(self, cases: Indexes, repeats: Indexes, needs_text: Bools) -> list[ResponseFacts | None]:
        return [self._facts(case, at) for case, at in zip(cases.tolist(), repeats.tolist(), strict=True)]

    def _facts(self, case: int, repeat: int) -> ResponseFacts | None:
        trace = self.given[repeat][case]
        if trace is None:
            return None
        return ResponseFacts(trace, "stop", "complete", "", b"prompt", 7, None, self.vocabulary, None, text_of(trace))

    def find_traced(self, is_there: Bools) -> Bools:
        return is_there

    def find_vocabulary(self) -> int | None:
        return self.vocabulary


def text_of(trace: TokenTrace) -> str:
    return " ".join(map(str, trace.token_ids.tolist()))


def side(given: Given, *, bucket: int) -> Side:
    """A side of one bucket, with scores by what the texts happen to be."""
    shape = len(given[0]), len(given)
    is_there = np.array([[answer is not None for answer in repeat] for repeat in given]).T

    def digests(of: Any) -> NDArray[np.uint64]:
        found = np.zeros((*shape, 2), np.uint64)
        for at, repeat in enumerate(given):
            for case, trace in enumerate(repeat):
                if trace is not None:
                    found[case, at] = np.frombuffer(of(trace), "<u8")
        return found

    texts = digests(lambda trace: digest.text_digest(text_of(trace)))
    served = ServingFacts("weights", None, None, None, f"stack {bucket}", bucket)
    share = ServedShare(
        model_name="model",
        weights_digest="weights",
        template_digest="",
        fingerprint=f"stack {bucket}",
        manifest={"engine": {"version": str(bucket)}},
        batch_class="mixed",
        share=1.0,
    )
    return Side(
        repeats=tuple(range(1, len(given) + 1)),
        ended=tuple(range(len(given))),
        draws=Draws(0.0, 0, is_one=False, repeats=tuple(range(1, len(given) + 1)), is_external=False),
        case_indexes=np.arange(shape[0]),
        texts=texts,
        traces=digests(lambda trace: trace.digest),
        buckets=np.where(is_there, bucket, -1),
        scores=np.where(is_there, (texts[:, :, 0] % np.uint64(3) > 0).astype(np.float64), np.nan),
        alike=None,
        marks=np.zeros(shape, np.uint8),
        setup=SideSetup(
            suite_version="suite v1",
            suite_digest="suite",
            scorer_digest="scorer",
            max_tokens=512,
            stop=(),
            sampling={"temperature": 0.0},
            served=[share],
        ),
        shares=[(bucket, int(is_there.sum()), 1.0)],
        known={bucket: BucketFacts("mixed", "bfloat16", served)},
        settings=RequestSettings(512, (), 0.0, False, {}, False),
        is_reported=False,
        responses=Answers(given),
    )


def measured(one: Side) -> PairNoise:
    """The noise as the repeats of a side show it, for pairs with whatever bucket."""
    [bucket] = one.known
    given = one.responses.given  # type: ignore[attr-defined]
    ended = EndedRepeats(
        traces=[one.traces[:, at] for at in range(len(one.repeats))],
        served=[one.buckets[:, at] for at in range(len(one.repeats))],
        find_places=lambda repeat, cases: {case: given[repeat][case] for case in cases},
        reader=Kept(),
        is_reported=one.is_reported,
    )
    by_bucket: dict[int | None, Measured] = {bucket: ended.measure(bucket, logits="bfloat16", batch_class="mixed")}
    return PairNoise(by_bucket, by_bucket, are_batches_equal=True)


def read_nothing(_: int) -> Vocabulary:
    raise AssertionError("one vocabulary: no word is needed")


@pytest.fixture(scope="module")
def sides() -> tuple[Side, Side, Reads]:
    """Two repeats of either side; one answer of the candidate is missing, and one was not chosen greedily."""
    ours, theirs = (list(each) for each in zip(*stacks.pairs(N_CASES, seed=3), strict=True))
    again, fault = (list(each) for each in zip(*stacks.pairs(N_CASES, seed=3, noise=0.3), strict=True))
    gone: list[TokenTrace | None] = [None, *theirs[1:]]
    second = ours[7].alternative_ids[:, 1].copy(), ours[7].alternative_logprobs[:, 1].copy()
    gone[7] = replace(ours[7], token_ids=second[0], logprobs=second[1])
    baseline, candidate = side([ours, again], bucket=1), side([gone, fault], bucket=2)
    packed = pack_vocabulary([b"%d" % token for token in range(1000)])
    words = WordsById(lambda _: Vocabulary.unpack(packed))
    return baseline, candidate, Reads(Kept(), words, lambda: measured(baseline))


def in_parts(baseline: Side, candidate: Side, reads: Reads, size: int) -> ComparisonReport:
    """What a worker does that forgets all but the rows and the summary between two parts."""
    begun = Comparing(baseline, candidate, reads).begin()
    n_groups = len(Comparing(baseline, candidate, reads).groups)
    flips = []
    for first in range(0, n_groups, size):
        part = slice(first, min(first + size, n_groups))
        flips += list(Comparing(baseline, candidate, reads).judge(part))
    last = Comparing(baseline, candidate, reads)
    summary = last.complete(begun.summary | last.count(), lambda groups: (flips[at].flip for at in groups.tolist()))
    return ComparisonReport(summary, begun.cases, flips)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_part_by_part_gives_the_same_report(sides: tuple[Side, Side, Reads], size: int) -> None:
    whole, parts = run(*sides), in_parts(*sides, size)
    assert len(whole.flips) > N_CASES
    assert parts == whole


def test_a_report_counts_what_its_flips_say(sides: tuple[Side, Side, Reads]) -> None:
    report = run(*sides)
    counts = report.summary["counts"]
    assert counts["missing"] == 1
    assert counts["n_pairs"] == 2 * N_CASES  # both of the baseline's against the one answer that came
    by_cause: dict[str, int] = {}
    for pairs in report.flips:
        by_cause[pairs.flip.cause] = by_cause.get(pairs.flip.cause, 0) + len(pairs.repeats)
    assert {row["cause"]: row["n_pairs"] for row in report.summary["causes"]} == by_cause
    assert by_cause["backend_changed"] == counts["n_pairs"] - counts["identical"]
    faulty = [pairs.flip for pairs in report.flips if pairs.flip.case_index == 7]
    assert "sampler_fault" in {flip.numeric for flip in faulty}
    assert report.summary["score"]["difference"] == pytest.approx(
        sum(row["points"] for row in report.summary["ledger"])
    )
    assert report.summary["flips"]["n"] == len(report.summary["sample"]) > N_CASES


GONE = float("nan")
# By part, as CASE_PARTS has them: the scores of two repeats of either side; None is a repeat without a response.
PARTED = (
    ("broken", (1.0, 1.0), (0.0, 0.0)),
    ("broken", (1.0, 1.0), (0.0, 0.5)),  # and unstable too, which is counted once
    ("fixed", (0.0, 0.0), (1.0, 1.0)),
    ("changed", (0.5, 0.5), (0.75, 0.75)),
    ("unstable", (1.0, 0.0), (1.0, 0.0)),
    ("other_text", (1.0, 1.0), (1.0, 1.0)),
    ("same_text", (1.0, 1.0), (1.0, 1.0)),
    ("unscored", (1.0, 1.0), (GONE, GONE)),
    ("missing", (1.0, 1.0), (None, None)),
    ("missing", (None, None), (None, None)),
)


def parted_side(scores: Sequence[Sequence[float | None]], *, bucket: int) -> Side:
    is_there = np.array([[score is not None for score in case] for case in scores])
    texts = np.ones((*is_there.shape, 2), np.uint64)
    texts[5] += np.uint64(bucket)  # the case of another text
    return replace(
        side([[trace for trace, _ in stacks.pairs(len(PARTED), seed=3)]] * 2, bucket=bucket),
        texts=texts,
        buckets=np.where(is_there, bucket, -1),
        scores=np.array([[GONE if score is None else score for score in case] for case in scores]),
    )


def test_each_case_is_in_one_part_and_the_parts_add_up(sides: tuple[Side, Side, Reads]) -> None:
    named, ours, theirs = zip(*PARTED, strict=True)
    both = parted_side(ours, bucket=1), parted_side(theirs, bucket=2)
    comparing = Comparing(*both, sides[2])
    assert [CASE_PARTS[part] for part in comparing.case_parts.tolist()] == list(named)
    begun = comparing.begin().summary
    n_by_part = {part: begun["parts"][part] for part in CASE_PARTS}
    assert n_by_part == {part: named.count(part) for part in CASE_PARTS}
    assert sum(n_by_part.values()) == comparing.count()["counts"]["n_cases"] == len(PARTED)
    assert begun["parts"]["missing_on_both"] == 1
    assert all(begun["outcomes"][name] == n_by_part[name] for name in CASE_OUTCOMES)


def test_a_case_that_several_buckets_answered_is_judged_by_none(sides: tuple[Side, Side, Reads]) -> None:
    _, ours, theirs = zip(*PARTED, strict=True)
    mixed = replace(parted_side(theirs, bucket=2), shares=[(2, 10, 0.5), (1, 10, 0.5)])
    parts = [CASE_PARTS[part] for part in Comparing(parted_side(ours, bucket=1), mixed, sides[2]).case_parts.tolist()]
    assert parts == ["changed"] * 4 + ["same_text", "other_text", "same_text", "unscored", "missing", "missing"]


def test_a_side_against_itself_asks_for_nothing(sides: tuple[Side, Side, Reads]) -> None:
    def fail() -> PairNoise:
        raise AssertionError("nothing differs: no noise is needed")

    baseline = side([[trace for trace, _ in stacks.pairs(N_CASES, seed=3)]], bucket=1)
    report = run(baseline, baseline, Reads(Kept(), WordsById(read_nothing), fail))
    assert report.flips == []
    assert report.summary["counts"]["identical"] == N_CASES
    assert (report.summary["version"], report.summary["noise"]) == (COMPARISON_VERSION, None)


@pytest.mark.parametrize(("n_faults", "n_unexplained"), [(0, 0), (2, 0), (3, 3), (7, 7)])
def test_tokens_that_logprobs_do_not_explain_are_counted_beside_a_test_that_sees_none(
    n_faults: int, n_unexplained: int
) -> None:
    """The test reads what comes before a flip; a sampler that takes another token leaves that as it was."""
    cases = list(stacks.repeated(N_CASES, 3, noise=(0.03, 0.03), seed=5))
    ours, theirs = ([[case[at][repeat] for case in cases] for repeat in range(3)] for at in (0, 1))
    for repeat in theirs:
        for case in range(n_faults):
            repeat[case] = fault(repeat[case], 20)
    words = WordsById(lambda _: Vocabulary.unpack(pack_vocabulary([b"%d" % token for token in range(1000)])))
    baseline = side(ours, bucket=1)
    made = run(baseline, side(theirs, bucket=1), Reads(Kept(), words, lambda: measured(baseline))).summary
    assert (made["computation"]["answer"], made["computation"]["n_unexplained"]) == ("one", n_unexplained)
    assert write_computation(made["computation"]).endswith("the logprobs agree, and yet another token was chosen.") == (
        n_unexplained > 0
    )


def fault(trace: TokenTrace, at: int) -> TokenTrace:
    """Return the answer with the second token chosen at one position."""
    tokens, logprobs = trace.token_ids.copy(), trace.logprobs.copy()
    tokens[at], logprobs[at] = trace.alternative_ids[at, 1], trace.alternative_logprobs[at, 1]
    return replace(trace, token_ids=tokens, logprobs=logprobs)


def logged(given: Given) -> Side:
    """A side of a log: decimals, and nothing known of the batches."""
    return replace(side(given, bucket=1), is_reported=True)


def test_equal_digests_are_equal_answers_only_where_the_ids_are_of_one_vocabulary() -> None:
    """Logs number tokens in the order in which they meet them, so that equal ids may be other words."""
    given = [[ours for ours, _ in stacks.pairs(N_CASES, seed=3)]] * 3
    packed = {number: pack_vocabulary([b"%d %d" % (number, token) for token in range(1000)]) for number in (1, 2)}
    words = WordsById(lambda number: Vocabulary.unpack(packed[number]))
    baseline, candidate = logged(given), logged(given)
    reads = Reads(Kept(), words, lambda: measured(baseline))
    assert run(baseline, candidate, reads).summary["computation"]["answer"] == "one"
    other = replace(candidate, responses=Answers(given, vocabulary=2))
    judged = run(baseline, other, reads).summary["computation"]
    assert (judged["answer"], judged["n_differing"]) == ("unknown", N_CASES)


def write(given: Given, n_decimals: int) -> list[list[TokenTrace | None]]:
    """The same answers with so many decimals of every logprob. What is equal to the bit is written alike."""

    def move(logprobs: NDArray[np.float32]) -> NDArray[np.float32]:
        return logprobs.astype(np.float64).round(n_decimals).astype(np.float32)

    def written(trace: TokenTrace | None) -> TokenTrace | None:
        return trace and replace(
            trace, logprobs=move(trace.logprobs), alternative_logprobs=move(trace.alternative_logprobs)
        )

    return [[written(trace) for trace in repeat] for repeat in given]


@pytest.mark.parametrize(
    ("noise", "shift", "n_copied"), [(0.0, 0.0, 0), (0.0, 0.03, 0), (0.03, 0.0, 0), (0.03, 0.03, 0), (0.03, 0.0, 2)]
)
def test_another_way_to_write_a_decimal_changes_nothing(noise: float, shift: float, n_copied: int) -> None:
    """Four cases are the same on both sides, and of the others so many of a side's repeats are copies."""
    cases = list(stacks.repeated(N_CASES, 4, noise=(noise, noise), shift=shift, seed=5))
    ours, theirs = ([[case[at][repeat] for case in cases] for repeat in range(4)] for at in (0, 1))
    for repeats in (ours, theirs):
        repeats[4 - n_copied :] = repeats[:n_copied]
        for each in repeats:
            each[:4] = ours[0][:4]

    def compare(ours: Given, theirs: Given) -> dict[str, Any]:
        words = WordsById(lambda _: Vocabulary.unpack(pack_vocabulary([b"%d" % token for token in range(1000)])))
        baseline, candidate = logged(ours), logged(theirs)
        return run(baseline, candidate, Reads(Kept(), words, lambda: measured(baseline))).summary

    exact, written = compare(ours, theirs), compare(write(ours, 6), write(theirs, 7))
    assert exact["computation"]["answer"] in {"one", "two", "apart", "unknown"}
    assert_same(written, exact)


def assert_same(written: Any, exact: Any, at: str = "") -> None:
    """Compare two documents, numbers by what a few decimals that are off make of them."""
    if isinstance(exact, dict):
        assert written.keys() == exact.keys(), at
        for name in exact:
            assert_same(written[name], exact[name], f"{at}.{name}")
    elif isinstance(exact, list):
        assert len(written) == len(exact), at
        for place, (one, other) in enumerate(zip(written, exact, strict=True)):
            assert_same(one, other, f"{at}[{place}]")
    elif isinstance(exact, float):
        assert written == pytest.approx(exact, rel=1e-3, abs=1e-5), at
    else:
        assert written == exact, at


def test_draws_of_seeds_of_their_own_are_alike_only_in_the_same_repeats(sides: tuple[Side, Side, Reads]) -> None:
    given = [each.responses.given[0] for each in sides[:2]]  # type: ignore[attr-defined]
    baseline, candidate = (side([one] * 2, bucket=bucket) for bucket, one in enumerate(given, start=1))
    n_groups = {}
    for temperature in (0.0, 0.7):
        ours, theirs = (
            replace(each, draws=replace(each.draws, temperature=temperature)) for each in (baseline, candidate)
        )
        n_groups[temperature] = len(find_groups(ours, theirs, match_sides(ours, theirs)))
    assert n_groups[0.7] > n_groups[0.0] > 0
