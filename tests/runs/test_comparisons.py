"""Two runs compared end to end: what is read, what is kept, and that a fault that was put in is named."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalboard.contract.compare import Flip
from evalboard.core import digest
from evalboard.core.compare import run
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.trace import Reading, TokenTrace, encode_block, read_block
from runs.compare import (
    compare,
    comparisons,
    divergence_page,
    divergence_rows,
    inputs,
    neighbours,
    work_on_comparison,
)
from runs.compare.read_divergences import DivergenceFilter
from runs.models import (
    BucketRecord,
    Case,
    ComparisonRecord,
    DivergenceRecord,
    EngineProcess,
    FingerprintRecord,
    Model,
    RepeatRecord,
    RepeatScore,
    ResponseRecord,
    RunRecord,
    Shard,
    SuiteVersionRecord,
    TraceBlock,
)
from runs.suites import push_suite
from runs.work import case_to_decode, rollup
from tests import build
from tests.build import comparison_report

pytestmark = pytest.mark.django_db
DATA = Path(__file__).resolve().parents[1] / "core" / "data"
FLOAT32, BFLOAT16 = (read_block((DATA / f"smollm2-{dtype}.evt").read_bytes()) for dtype in ("float32", "bfloat16"))
RECORDED = [trace for trace in FLOAT32 if len(trace) >= 12]


@dataclass(frozen=True)
class Answer:
    """What a made-up engine gave: text, trace, and what its provenance says."""

    trace: TokenTrace
    text: str = build.TARGET
    finish_reason: str = "stop"
    prompt: bytes = b"prompt"
    n_prompt_tokens: int = 7


def recorded(index: int) -> TokenTrace:
    """A trace of the real model; indexes beyond the recorded ones start again."""
    return RECORDED[index % len(RECORDED)]


def answers(n: int) -> list[Answer | None]:
    return [Answer(recorded(index)) for index in range(n)]


def stored(
    version: SuiteVersionRecord, *repeats: Sequence[Answer | None], by: EngineProcess, **changes: Any
) -> RunRecord:
    """A run that has ended with these answers, one list for each repeat, each sent the seed that is due."""
    run = build.run(version, repeats=len(repeats), **changes)
    for index, of_repeat in enumerate(repeats, start=1):
        decode(run, index, of_repeat, by)
    run.refresh_from_db()
    return run


def decode(
    run: RunRecord, index: int, given: Sequence[Answer | None], by: EngineProcess | Sequence[EngineProcess]
) -> None:
    repeat = RepeatRecord.objects.get(run=run, index=index)
    traces = [answer.trace for answer in given if answer is not None]
    block = TraceBlock.objects.create(run=run, data=encode_block(traces), n_traces=len(traces), is_packed=True)
    slots = iter(range(len(traces)))
    served = [by] * len(given) if isinstance(by, EngineProcess) else list(by)
    cases = Case.objects.filter(suite_version=run.suite_version).order_by("index")
    seeds = [case_to_decode(case, repeat).seed for case in cases]
    rows = []
    for case, (answer, process) in enumerate(zip(given, served, strict=True)):
        known: dict[str, Any] = {"repeat": repeat, "case_index": case, "engine_process": process, "attempt": 1}
        known["seed_sent"] = seeds[case]
        if answer is None:
            rows.append(ResponseRecord(**known, error_code="timeout", error_detail="It took too long."))
            continue
        row = ResponseRecord(
            **known,
            text=answer.text,
            finish_reason=answer.finish_reason,
            trace_block=block,
            trace_slot=next(slots),
            text_digest=digest.text_digest(answer.text),
            trace_digest=answer.trace.digest,
            prompt_digest=digest.short_digest(answer.prompt),
            n_prompt_tokens=answer.n_prompt_tokens,
            n_tokens=len(answer.trace),
        )
        rows.append(row)
    ResponseRecord.objects.bulk_create(rows)
    repeat.engine_processes.set(set(served))
    RunRecord.objects.filter(pk=run.pk).update(bucket=served[0].bucket, status=RunRecord.Status.RUNNING)
    Shard.objects.filter(repeat=repeat).update(status=Shard.Status.FINISHED, attempt=1)
    rollup.finish_repeat(repeat_id=repeat.pk)


def moved(trace: TokenTrace, sd: float, *, onset: int = 0, seed: int = 1) -> TokenTrace:
    """The same tokens with every logprob moved from the onset on, top-1 staying top-1."""
    logprobs = trace.alternative_logprobs.copy()
    shifts = np.abs(np.random.default_rng(seed).normal(0, sd, len(trace) - onset)).astype(np.float32)
    logprobs[onset:, 1] -= shifts
    return replace(trace, alternative_logprobs=logprobs)


def flipped(trace: TokenTrace, at: int, *, movement: float = 0.0002, margin: float = 0.0001) -> TokenTrace:
    """What came second at a position is chosen: the two were `margin` apart, on either side of the movement."""
    ids, logprobs = trace.alternative_ids.copy(), trace.alternative_logprobs.copy()
    ids[at] = ids[at, ::-1]
    logprobs[at] = [logprobs[at, 0] + np.float32(movement - margin), logprobs[at, 0]]
    return _as_chosen(trace, ids, logprobs)


def near(trace: TokenTrace, at: int, margin: float = 0.0001) -> TokenTrace:
    """The same trace with its two best tokens nearly tied at a position."""
    logprobs = trace.alternative_logprobs.copy()
    logprobs[at, 1] = logprobs[at, 0] - np.float32(margin)
    return _as_chosen(trace, trace.alternative_ids, logprobs)


def _as_chosen(trace: TokenTrace, ids: Any, logprobs: Any) -> TokenTrace:
    return TokenTrace(ids[:, 0].copy(), logprobs[:, 0].copy(), ids, logprobs, trace.prompt_token_ids)


def cut(trace: TokenTrace, n: int) -> TokenTrace:
    return TokenTrace(
        trace.token_ids[:n], trace.logprobs[:n], trace.alternative_ids[:n], trace.alternative_logprobs[:n]
    )


def greedy(trace: TokenTrace) -> TokenTrace:
    return _as_chosen(trace, trace.alternative_ids, trace.alternative_logprobs)


@pytest.fixture
def version(db: None) -> SuiteVersionRecord:
    return build.suite(case_ids=[f"case-{number:02}" for number in range(12)])


@pytest.fixture
def process(db: None) -> EngineProcess:
    """Of a bucket whose bits may move with nothing changed."""
    return build.process(build.bucket(batch_class="mixed"))


def causes(found: ComparisonRecord) -> dict[int, str]:
    return dict(DivergenceRecord.objects.filter(comparison=found).values_list("case_index", "cause"))


def test_runs_that_are_the_same_to_the_bit_have_no_rows_and_read_no_trace(
    version: SuiteVersionRecord, process: EngineProcess
) -> None:
    runs = [stored(version, answers(12), answers(12), by=process) for _ in range(2)]
    TraceBlock.objects.update(data=b"unreadable")
    found = compare(baseline=runs[0].pk, candidate=runs[1].pk)
    assert (found.status, found.n_pairs) == ("finished", 0)
    report = comparison_report(found.pk)
    assert (report.counts.identical, report.counts.n_pairs) == (24, 24)
    assert (report.score.difference, report.ledger, report.comparable, report.noise) == (0.0, (), True, None)


@pytest.mark.nightly
def test_of_a_block_only_the_differing_slots_are_decoded(
    version: SuiteVersionRecord, process: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = answers(12), answers(12)
    theirs[5] = Answer(flipped(near(recorded(5), 6), 6), "red")
    ours[5] = Answer(near(recorded(5), 6))
    decoded: list[int] = []

    def spy(starts: Sequence[bytes], places: Sequence[tuple[int, int]]) -> Reading:
        decoded.extend(slot for _, slot in places)
        return Reading(starts, places)

    runs = [stored(version, each, each, each, by=process) for each in (ours, theirs)]
    monkeypatch.setattr("runs.store.stored_traces.Reading", spy)
    monkeypatch.setattr(
        "evalboard.core.compare.pair_noise.STEP_TRACES", 1
    )  # of case 0, to see the step of each side's logits
    found = compare(baseline=runs[0].pk, candidate=runs[1].pk)
    assert found.status == "finished"
    assert set(decoded) == {0, 5}
    assert found.n_pairs == 1  # three repeats, one pair of traces
    rows = DivergenceRecord.objects.filter(comparison=found)
    assert [(row.repeat_baseline, row.repeat_candidate, row.cause, row.flip_position) for row in rows] == [
        (repeat, repeat, "near_tie", 6) for repeat in (1, 2, 3)
    ]


def test_a_block_that_cannot_be_read_fails_the_comparison_in_words(
    version: SuiteVersionRecord, process: EngineProcess, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = answers(12)
    theirs[0] = Answer(moved(recorded(0), 0.0001))
    runs = [stored(version, each, by=process) for each in (answers(12), theirs)]
    TraceBlock.objects.update(data=b"unreadable")
    with caplog.at_level(logging.CRITICAL, "runs.compare.comparisons"):
        found = compare(baseline=runs[0].pk, candidate=runs[1].pk)
    assert found.status == "failed"
    assert "not a trace block" in found.error
    report = comparison_report(found.pk)
    assert report.progress.error == found.error
    assert compare(baseline=runs[0].pk, candidate=runs[1].pk).pk == found.pk
    ComparisonRecord.objects.update(finished_at=timezone.now() - 2 * comparisons.RETRY_FAILED)
    with caplog.at_level(logging.CRITICAL, "runs.compare.comparisons"):
        assert compare(baseline=runs[0].pk, candidate=runs[1].pk).pk != found.pk


def test_planted_faults_are_named(version: SuiteVersionRecord, process: EngineProcess) -> None:
    ours, theirs = answers(12), answers(12)
    long = greedy(recorded(3))
    ours[0], theirs[0] = Answer(near(recorded(0), 9)), Answer(flipped(near(recorded(0), 9), 9), "red")
    theirs[1] = Answer(flipped(moved(recorded(1), 0.3), 10, movement=4.0, margin=2.0), "red")
    drawn = replace(recorded(2), token_ids=recorded(2).token_ids.copy(), logprobs=recorded(2).logprobs.copy())
    drawn.token_ids[4] = recorded(2).alternative_ids[4, 1]
    drawn.logprobs[4] = recorded(2).alternative_logprobs[4, 1]
    theirs[2] = Answer(drawn, "red")
    ours[3], theirs[3] = Answer(long, "blue and more"), Answer(cut(long, 8), "blue and", "length")
    ours[4], theirs[4] = Answer(near(recorded(4), 7)), Answer(flipped(near(recorded(4), 7), 7), " blue\n")
    theirs[5] = None
    theirs[6] = Answer(moved(recorded(6), 0.0001, onset=3))
    theirs[7] = Answer(flipped(recorded(7), 2), "red", prompt=b"another", n_prompt_tokens=9)
    runs = [stored(version, each, by=process) for each in (ours, theirs)]
    found = compare(baseline=runs[0].pk, candidate=runs[1].pk)
    assert causes(found) == {
        0: "near_tie",
        1: "larger_shift",
        2: "sampler_fault",
        3: "length",
        4: "whitespace",
        5: "error",
        6: "drift_only",
        7: "prompt_mismatch",
    }
    report = comparison_report(found.pk)
    counts = report.counts
    assert (counts.identical, counts.drift_only, counts.flipped, counts.missing) == (4, 1, 6, 1)
    assert counts.n_cases_missing == 1
    assert sum(line.points for line in report.ledger) == pytest.approx(report.score.difference, abs=1e-9)
    assert sum(line.shown for line in report.ledger) == pytest.approx(round(report.score.difference or 0, 1))
    drift = DivergenceRecord.objects.get(comparison=found, cause="drift_only")
    assert (drift.drift_onset, drift.flip_position) == (3, None)
    assert report.noise is not None
    assert report.noise.is_assumed


@pytest.mark.nightly
def test_a_changed_template_and_a_changed_model_are_named(version: SuiteVersionRecord, process: EngineProcess) -> None:
    """Both change what the model is; only one changes its weights."""
    weights = {"model.safetensors": {"size": 1, "sha256": "e" * 64}}
    others = {"model.safetensors": {"size": 1, "sha256": "f" * 64}}
    base_model = Model.objects.create(digest="0" * 64, name="paint-1b", files=weights, template_digest="8" * 64)
    template = Model.objects.create(digest="1" * 64, name="paint-1b", files=weights, template_digest="9" * 64)
    retrained = Model.objects.create(digest="2" * 64, name="paint-1c", files=others, template_digest="8" * 64)
    theirs = [Answer(flipped(recorded(index), 2), "red", prompt=b"another") for index in range(12)]
    served = [
        BucketRecord.objects.create(model=model, fingerprint=process.bucket.fingerprint, batch_class="alone")
        for model in (base_model, template, retrained)
    ]
    base = stored(version, answers(12), by=build.process(served[0]))
    named = []
    for bucket in served[1:]:
        run = stored(version, theirs, by=build.process(bucket))
        found = compare(baseline=base.pk, candidate=run.pk)
        fields = [line["field"] for line in found.summary["moved"]]
        named.append((set(causes(found).values()), fields, [block["code"] for block in found.summary["blocks"]]))
    assert named == [
        ({"prompt_mismatch"}, ["chat_template"], ["params_changed"]),
        ({"model_changed"}, ["model"], []),
    ]


@pytest.mark.nightly
def test_cases_that_moved_further_than_noise_are_counted_and_nothing_is_made_of_it(process: EngineProcess) -> None:
    """6 % of responses moved far beyond noise, under one and the same fingerprint."""
    n = 400
    version = build.suite("many", case_ids=[f"case-{number:03}" for number in range(n)])
    ours = answers(n)
    theirs: list[Answer | None] = [
        Answer(moved(recorded(index), 0.3)) if index % 17 == 0 else answer for index, answer in enumerate(ours)
    ]
    theirs[1] = replace(answers(n)[1], prompt=b"another")
    theirs[1] = replace(theirs[1], trace=moved(recorded(1), 0.3))
    runs = [stored(version, each, each, by=process) for each in (ours, theirs)]
    report = comparison_report(compare(baseline=runs[0].pk, candidate=runs[1].pk).pk)
    assert report.larger_shifts is not None
    assert report.larger_shifts.text == (
        "The logits moved more than noise explains in 24 of 399 cases. 1 other case differs for a known cause."
    )


def test_two_buckets_in_one_run_are_said_and_named(version: SuiteVersionRecord, process: EngineProcess) -> None:
    other = build.process(build.bucket("bfloat16"))
    theirs = answers(12)
    theirs[11] = Answer(flipped(moved(recorded(11), 0.3), 2, movement=4.0, margin=2.0), "red")
    base = stored(version, answers(12), by=process)
    run = build.run(version, repeats=1)
    decode(run, 1, theirs, [process] * 11 + [other])
    found = compare(baseline=base.pk, candidate=run.pk)
    report = comparison_report(found.pk)
    [block] = report.blocks
    assert block.code == "mixed_fingerprint"
    assert "backend A (mixed) 92 % and backend B (batch size 1) 8 %." in block.text
    assert not report.comparable
    assert [(bucket.backend, bucket.n_responses) for bucket in report.sides.candidate.buckets] == [("A", 11), ("B", 1)]
    assert report.backends == (("A", "B"),)
    [row] = divergence_page(found.pk, DivergenceFilter(backend="A-B")).rows
    assert (row.cause, row.numeric, row.backend_candidate) == ("backend_changed", "larger_shift", "B")
    assert not divergence_page(found.pk, DivergenceFilter(backend="A-A")).rows


def test_another_scorer_moves_scores_of_equal_answers(process: EngineProcess) -> None:
    """Two versions of a suite that differ in their scorer: same answers, other grades."""
    document = {
        "slug": "graded",
        "title": "Graded",
        "scorer": {"kind": "exact"},
        "cases": [{"id": f"case-{n}", "prompt": "Say blue.", "target": "blue"} for n in range(4)],
    }
    first, _ = push_suite(document=document)
    given = [Answer(recorded(index), "BLUE") for index in range(4)]
    base = stored(first, given, by=process)
    second, _ = push_suite(document=document | {"scorer": {"kind": "exact", "normalise": {"case": "fold"}}})
    run = stored(second, given, by=process)
    if RepeatScore.objects.get(repeat__run=run).points == RepeatScore.objects.get(repeat__run=base).points:
        pytest.fail("the two scorers must grade differently for this test to say anything")
    found = compare(baseline=base.pk, candidate=run.pk)
    report = comparison_report(found.pk)
    assert set(causes(found).values()) == {"scorer"}
    assert [(line.cause, line.points) for line in report.ledger] == [("scorer", 100.0)]
    codes = {block.code for block in report.blocks}
    assert ("scorer_changed" in codes, "suite_changed" in codes) == (True, False), "only the scorer changed"


def test_a_stored_comparison_is_found_and_a_further_repeat_makes_a_new_one(
    version: SuiteVersionRecord, process: EngineProcess
) -> None:
    theirs = answers(12)
    theirs[3] = Answer(moved(recorded(3), 0.0001))
    base = stored(version, answers(12), by=process)
    run = build.run(version, repeats=2)
    decode(run, 1, theirs, process)
    first = compare(baseline=base.pk, candidate=run.pk)
    TraceBlock.objects.update(data=b"unreadable")  # found, and not computed again
    assert compare(baseline=base.pk, candidate=run.pk).pk == first.pk
    assert [each.index for each in comparison_report(first.pk).sides.candidate.repeats] == [1]
    decode(run, 2, answers(12), process)
    for block in TraceBlock.objects.filter(data=b"unreadable"):
        of_run = ResponseRecord.objects.filter(trace_block=block).order_by("trace_slot")
        given = answers(12) if block.run_id == base.pk else theirs
        block.data = encode_block([given[row.case_index].trace for row in of_run if given[row.case_index]])
        block.save()
    second = compare(baseline=base.pk, candidate=run.pk)
    assert second.pk != first.pk
    assert not ComparisonRecord.objects.filter(pk=first.pk).exists()  # nobody can ask for it any more
    assert [each.index for each in comparison_report(second.pk).sides.candidate.repeats] == [1, 2]
    pairs = DivergenceRecord.objects.filter(comparison=second).values_list("repeat_baseline", "repeat_candidate")
    assert list(pairs) == [(1, 1)]


def test_numbers_of_repeats_may_differ(version: SuiteVersionRecord, process: EngineProcess) -> None:
    right, wrong = answers(12), [Answer(flipped(recorded(index), 3), "red") for index in range(12)]
    base = stored(version, right, right, wrong, by=process)
    run = stored(version, wrong, right, by=process)
    report = comparison_report(compare(baseline=base.pk, candidate=run.pk).pk)
    assert report.counts.n_pairs == 12 * (3 + 2 - 1)
    assert report.score.difference == pytest.approx(50 - 100 * 2 / 3)
    assert sum(line.points for line in report.ledger) == pytest.approx(report.score.difference)


def test_a_repeat_against_a_repeat_of_the_same_run(version: SuiteVersionRecord, process: EngineProcess) -> None:
    other = answers(12)
    other[2] = Answer(moved(recorded(2), 0.0001))
    run = stored(version, answers(12), other, by=process)
    found = compare(baseline=run.pk, candidate=run.pk, repeats=(1, 2))
    report = comparison_report(found.pk)
    assert report.is_same_run
    assert report.repeats == (1, 2)
    assert report.comparable
    [row] = divergence_page(found.pk, DivergenceFilter()).rows
    assert (row.case, row.repeats, row.cause) == ("case-02", (1, 2), "drift_only")


def test_repeats_that_differ_measure_the_noise(version: SuiteVersionRecord, process: EngineProcess) -> None:
    other = [Answer(moved(recorded(index), 0.001)) for index in range(12)]
    base = stored(version, answers(12), other, by=process)
    run = stored(version, answers(12), by=process)
    report = comparison_report(compare(baseline=base.pk, candidate=run.pk).pk)
    assert report.noise is not None
    assert not report.noise.is_assumed
    assert report.noise.sd == pytest.approx(0.001, rel=0.2)
    assert "measured" in report.noise.text


def test_what_cannot_be_compared_says_why(version: SuiteVersionRecord, process: EngineProcess) -> None:
    run = stored(version, answers(12), by=process)
    other = build.suite("other", case_ids=["one"])
    foreign = stored(other, answers(1), by=process)
    waiting = build.run(version, repeats=1)
    for asked, error, words in (
        ((run.pk, run.pk, None), InvalidInput, "another run"),
        ((run.pk, foreign.pk, None), InvalidInput, "Runs of one suite"),
        ((run.pk, 10**9, None), NotFound, "There is no run"),
        ((run.pk, run.pk, (1, 7)), NotFound, "no repeat 7"),
        ((run.pk, waiting.pk, None), Conflict, "no repeat that has ended"),
    ):
        with pytest.raises(error, match=words):
            compare(baseline=asked[0], candidate=asked[1], repeats=asked[2])
    assert not ComparisonRecord.objects.exists()


def test_versions_that_share_no_case_cannot_be_compared(version: SuiteVersionRecord, process: EngineProcess) -> None:
    run = stored(version, answers(12), by=process)
    other = stored(build.suite(case_ids=["another"]), answers(1), by=process)
    with pytest.raises(InvalidInput, match="No case of versions 1 and 2"):
        compare(baseline=run.pk, candidate=other.pk)


@pytest.fixture
def large(
    version: SuiteVersionRecord, process: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], ComparisonRecord]:
    """A comparison of twelve differing pairs that is too large for the request, in chunks of five."""
    monkeypatch.setattr(comparisons, "INLINE", 3)
    monkeypatch.setattr(comparisons, "CHUNK", 5)
    theirs = [Answer(moved(recorded(index), 0.0001)) for index in range(12)]
    runs = [stored(version, each, by=process) for each in (answers(12), theirs)]
    return lambda: compare(baseline=runs[0].pk, candidate=runs[1].pk)


@pytest.mark.nightly
def test_a_large_comparison_counts_at_once_and_is_read_in_chunks(large: Callable[[], ComparisonRecord]) -> None:
    made = large()
    assert (made.status, made.n_done, made.n_pairs) == ("queued", 0, 12)
    report = comparison_report(made.pk)
    assert (report.counts.unread, report.counts.identical, report.score.difference) == (12, 0, 0.0)
    assert not report.progress.is_finished
    assert report.flip_histogram is None
    assert report.ledger == ()
    seen = []
    while work_on_comparison():
        made.refresh_from_db()
        seen.append((made.status, made.n_done))
        assert DivergenceRecord.objects.filter(comparison=made).count() == made.n_done
    assert seen == [("queued", 5), ("queued", 10), ("finished", 12)]
    report = comparison_report(large().pk)
    assert report.id == made.pk
    assert (report.counts.unread, report.counts.drift_only) == (0, 12)
    assert report.onset_histogram is not None
    assert report.onset_histogram.n == 12


def test_in_chunks_and_at_once_it_is_one_comparison(
    version: SuiteVersionRecord, process: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows and the summary are those of the pure function, which knows no database and no chunks."""
    monkeypatch.setattr(comparisons, "INLINE", 3)
    monkeypatch.setattr(comparisons, "CHUNK", 5)
    given = [Answer(near(recorded(case), 5)) for case in range(12)]
    parted = [None, *(Answer(flipped(each.trace, 5), text="red") for each in given[1:])]
    runs = [stored(version, each, given, by=process) for each in (given, parted)]
    made = compare(baseline=runs[0].pk, candidate=runs[1].pk)
    assert made.status == "queued"
    while work_on_comparison():
        pass
    made = ComparisonRecord.objects.get(pk=made.pk)
    ours, theirs, _ = inputs.find(baseline=made.baseline_id, candidate=made.candidate_id, repeats=None)
    loaded = inputs.load(ours, theirs)
    report = run(loaded.baseline, loaded.candidate, loaded.reads)
    wanted = json.loads(json.dumps(report.summary))
    worded = {name: made.summary.pop(name) for name in ("blocks", "tags")}
    assert [block["code"] for block in worded["blocks"]] == [block["code"] for block in wanted.pop("blocks")]
    assert made.summary == wanted
    assert made.outcomes["all"]["counts"] == report.cases["counts"]
    rows = DivergenceRecord.objects.filter(comparison=made).order_by(
        "case_index", "repeat_baseline", "repeat_candidate"
    )
    names = [field.name for field in fields(Flip)]
    flips = sorted(
        ((pairs.flip, *repeats) for pairs in report.flips for repeats in pairs.repeats),
        key=lambda each: (each[0].case_index, *each[1:]),
    )
    wanted_rows = [asdict(flip) | {"repeat_baseline": ours, "repeat_candidate": theirs} for flip, ours, theirs in flips]
    assert list(rows.values(*names)) == wanted_rows


def test_a_crash_costs_one_chunk(large: Callable[[], ComparisonRecord], monkeypatch: pytest.MonkeyPatch) -> None:
    made = large()
    work_on_comparison()

    class Killed(BaseException):
        """What ends a process, and is no fault of the comparison's."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(ComparisonRecord, "save", die)
        with pytest.raises(Killed), transaction.atomic():
            work_on_comparison()
    made.refresh_from_db()
    assert (made.status, made.n_done) == ("queued", 5)
    assert DivergenceRecord.objects.filter(comparison=made).count() == 5
    while work_on_comparison():
        pass
    made.refresh_from_db()
    assert made.status == "finished"
    assert DivergenceRecord.objects.filter(comparison=made).count() == 12


def test_one_that_fails_leaves_the_others_alone(
    large: Callable[[], ComparisonRecord], caplog: pytest.LogCaptureFixture
) -> None:
    made = large()
    run = made.baseline
    beside = compare(baseline=made.candidate_id, candidate=run.pk)
    summary = ComparisonRecord.objects.get(pk=made.pk).summary
    del summary["sides"]
    ComparisonRecord.objects.filter(pk=made.pk).update(summary=summary)
    with caplog.at_level(logging.CRITICAL, "runs.compare.comparisons"):
        while work_on_comparison():
            pass
    made.refresh_from_db()
    beside.refresh_from_db()
    assert (made.status, made.error) == ("failed", "KeyError: 'sides'")
    assert beside.status == "finished"


def test_a_comparison_of_what_is_no_more_is_dropped(large: Callable[[], ComparisonRecord]) -> None:
    made = large()
    row = RepeatScore.objects.get(repeat__run=made.candidate_id)
    RepeatScore.objects.filter(pk=row.pk).update(digest="another")
    assert work_on_comparison()
    assert not ComparisonRecord.objects.filter(pk=made.pk).exists()
    assert not work_on_comparison()


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_two_workers_never_read_one_comparison_at_once(
    large: Callable[[], ComparisonRecord], django_db_blocker: Any
) -> None:
    made = large()
    from threading import Thread

    found: list[bool] = []

    def second() -> None:
        with django_db_blocker.unblock():
            found.append(work_on_comparison())
            connection.close()

    with transaction.atomic():
        assert work_on_comparison()  # its lock is held until the transaction ends
        thread = Thread(target=second)
        thread.start()
        thread.join(timeout=30)
    assert found == [False]
    made.refresh_from_db()
    assert made.n_done == 5


@pytest.mark.nightly
def test_the_list_is_sorted_filtered_and_paged(version: SuiteVersionRecord, process: EngineProcess) -> None:
    ours, theirs = answers(12), answers(12)
    for index in range(6):
        ours[index] = Answer(near(recorded(index), 8), "blue" if index % 2 else "red")
        theirs[index] = Answer(flipped(near(recorded(index), 8), 8), "red" if index % 2 else "blue")
    theirs[7] = Answer(moved(recorded(7), 0.0001))
    runs = [stored(version, each, by=process) for each in (ours, theirs)]
    found = compare(baseline=runs[0].pk, candidate=runs[1].pk)

    def ids(**wanted: Any) -> list[int]:
        return [row.case_index for row in divergence_page(found.pk, DivergenceFilter(**wanted)).rows]

    assert ids() == [1, 3, 5, 0, 2, 4, 7]  # lost, gained, unchanged
    assert ids(is_changed=True) == [1, 3, 5, 0, 2, 4]
    assert ids(is_changed=False) == ids(cause="drift_only") == [7]
    with CaptureQueriesContext(connection) as statements:
        assert ids(tag="tag-3") == ids(query="case-03") == [3]
    [tagged] = [each["sql"] for each in statements.captured_queries if "@>" in each["sql"]]
    assert "= ANY(ARRAY(" in tagged  # the index is searched for cases that differ; of 100,000, others are not read
    cluster = comparison_report(found.pk).clusters[0]
    assert set(ids(cluster=cluster.key)) >= {version.cases.get(case_id=case).index for case in cluster.cases}
    assert ids(cluster="near_tie-none") == []
    rows = divergence_rows(found.pk, DivergenceFilter(), limit=50)
    after = divergence_rows(found.pk, DivergenceFilter(), after=rows[2].place, limit=2)
    before = divergence_rows(found.pk, DivergenceFilter(), before=rows[5].place, limit=2)
    assert [row.case_index for row in after] == [0, 2]
    assert [row.case_index for row in before] == [0, 2]
    around = neighbours(found.pk, case_id="case-05", repeats=(1, 1))
    assert around.previous is not None
    assert around.next is not None
    assert (around.previous.case_id, around.next.case_id, around.next.at) == ("case-03", "case-00", 8)
    last = neighbours(found.pk, case_id="case-07", repeats=(1, 1), wanted=DivergenceFilter(is_changed=True))
    assert last.next is None
    assert last.previous is not None
    assert last.previous.case_id == "case-04"


def test_fingerprints_that_differ_name_the_field(version: SuiteVersionRecord, process: EngineProcess) -> None:
    manifest = {"engine": {"dtype": "float32"}, "versions": {"vllm": "0.33.0"}}
    newer = FingerprintRecord.objects.create(
        digest=digest.digest_json(manifest), label="vLLM 0.33.0", manifest=manifest
    )
    bucket = BucketRecord.objects.create(model=process.bucket.model, fingerprint=newer, batch_class="mixed")
    runs = [stored(version, answers(12), by=each) for each in (process, build.process(bucket))]
    report = comparison_report(compare(baseline=runs[0].pk, candidate=runs[1].pk).pk)
    assert [(moved.field, moved.baseline, moved.candidate) for moved in report.moved] == [
        ("versions.vllm", "0.32.0", "0.33.0")
    ]
    assert [block.code for block in report.blocks] == ["rebaseline"]


@pytest.mark.nightly
def test_the_two_dtypes_of_make_up_differ_by_backend_and_look_like_near_ties() -> None:
    """The same model in float32 and bfloat16, as recorded: what the compare page of the first two runs says."""
    version = build.suite("sample", case_ids=[f"case-{number:02}" for number in range(len(FLOAT32))])
    runs = []
    for dtype, traces in (("float32", FLOAT32), ("bfloat16", BFLOAT16)):
        given = [Answer(trace, str(trace.token_ids.tolist())) for trace in traces]
        runs.append(stored(version, given, given, by=build.process(build.bucket(dtype)), on=f"sample-{dtype}"))
    found = compare(baseline=runs[0].pk, candidate=runs[1].pk)
    report = comparison_report(found.pk)
    assert [(moved.field, moved.baseline, moved.candidate) for moved in report.moved] == [
        ("engine.dtype", "float32", "bfloat16")
    ]
    assert [block.code for block in report.blocks] == ["rebaseline"]
    assert report.counts.identical == 0
    assert report.counts.drift_only + report.counts.flipped == report.counts.n_pairs == 80
    assert [(count.cause, count.n_pairs) for count in report.causes] == [("backend_changed", 80)]
    assert found.n_pairs == 40  # both repeats refer to equal traces
    flips = DivergenceRecord.objects.filter(comparison=found, flip_position__isnull=False)
    assert flips.exclude(numeric="near_tie").count() * 5 < flips.count()
    for row in flips:
        ours, theirs = FLOAT32[row.case_index], BFLOAT16[row.case_index]
        differs = ours.token_ids[: len(theirs)] != theirs.token_ids[: len(ours)]
        assert row.flip_position == int(np.argmax(differs))
        assert row.token_baseline == ours.token_ids[row.flip_position]
        assert row.token_candidate == theirs.token_ids[row.flip_position]
    assert report.noise is not None
    assert (report.noise.sd, report.noise.dtype, report.noise.is_assumed) == (0.09, "bfloat16", True)
