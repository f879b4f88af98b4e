"""Every way to decode a suite, crossed with every other: what verdict, variance and comparison may say of each.

The expected cells are in `matrix_table`, written by hand. Each cell is built once, in memory.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evalboard.contract.run import Draws
from evalboard.core.compare import (
    BucketFacts,
    EndedRepeats,
    Measured,
    PairNoise,
    Reads,
    ServingFacts,
    Side,
    SideSetup,
    WordsById,
    is_steady_batch,
    read_side_draws,
    run,
)
from evalboard.core.release import GateEvidence, judge_release
from evalboard.core.release.serving import DecodedSide
from evalboard.core.stats import SideAnswers, effective_draws, split_variance
from evalboard.core.trace import TokenTrace, Vocabulary, pack_vocabulary
from evalboard.wording.run import split_code
from tests.core import stacks
from tests.core.matrix_table import NOT_YET, ONE_FINGERPRINT, SEVERAL_FINGERPRINTS, Cell, Row, read_table
from tests.core.questions import ASKED, PAIRED, SERVED, question
from tests.core.test_pipeline import Kept, side
from tests.nightly import few

N_CASES, K = 800, 5
N_COMPARED = 24
TEMPERATURES = {"greedy": 0.0, "sampled": 0.2, "unknown": None}
BATCH_CLASSES = {"alone": "alone", "fixed": "fixed-4", "batched": "mixed", "unknown": "observed"}
REPORTED = {"source": {"system_fingerprint": "fp_1"}}
OTHER = "9" * 64  # the second fingerprint
COMPARED = {"apart": "unclear", "unknown": "unclear"}
TIES, DRAWN = {"near_tie", "drift_only"}, {"drawn", "sampled", "one_seed"}
# Vocabulary of the simulated stacks: a token's bytes are its number.
WORDS = WordsById(lambda _: Vocabulary.unpack(pack_vocabulary([b"%d" % token for token in range(1000)])))

ONE = read_table(ONE_FINGERPRINT)
SEVERAL = read_table(SEVERAL_FINGERPRINTS)


def is_reported(cell: Cell) -> bool:
    return cell.source in ("external", "imported")


def draws_of(cell: Cell) -> Draws:
    repeats = tuple(range(1, K + 1))
    return Draws(TEMPERATURES[cell.decoding], 42, repeats=repeats, is_external=is_reported(cell))


def setup_of(cell: Cell, *, is_several: bool, model: str) -> SideSetup:
    manifest = REPORTED if is_reported(cell) else SERVED.manifest
    share = replace(
        SERVED,
        weights_digest="" if is_reported(cell) else model * 64,
        named=model,
        manifest=manifest,
        batch_class=BATCH_CLASSES[cell.batch],
    )
    served = [replace(share, share=0.5), replace(share, share=0.5, fingerprint=OTHER)] if is_several else [share]
    temperature = TEMPERATURES[cell.decoding]
    sampling = {} if temperature is None else {"temperature": temperature}
    is_read = cell.source in ("archive", "imported")
    return replace(ASKED, sampling=sampling, served=served, is_logged=is_read)


def scores_of(cell: Cell) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Four of five cases pass; 8 break, 8 are fixed; where repeats vary, 16 others pass by chance on both sides."""
    rng = np.random.default_rng(1)
    ours = np.repeat((np.arange(N_CASES) < N_CASES * 0.8).astype(np.float64)[:, None], K, axis=1)
    theirs = ours.copy()
    theirs[:8], theirs[-8:] = 0.0, 1.0
    if cell.repeats == "varying":
        ours[100:116], theirs[100:116] = rng.integers(0, 2, (2, 16, K))
    return ours, theirs


def decoded(cell: Cell, number: int, *, is_several: bool) -> DecodedSide:
    """How a run was decoded; its repeats are unsteady where batching moves no bit and they vary all the same."""
    batch_class = BATCH_CLASSES[cell.batch]
    must_agree = is_steady_batch(batch_class, are_batches_equal=True) and cell.decoding == "greedy"
    unsteady = [{"batch_class": batch_class, "n_cases": N_CASES, "n_apart": 16}]
    prints = (SERVED.fingerprint, OTHER)[: 1 + is_several]
    return DecodedSide(
        run=number,
        n_repeats=K,
        n_left_out=0,
        n_unvouched=0,
        n_truncated=0,
        n_processes=0 if is_reported(cell) else 2,
        broken_pins=(),
        uncertified=(),
        strays=(),
        unsteady=unsteady if must_agree and cell.repeats == "varying" else (),
        is_log=cell.source == "imported",
        is_reported=is_reported(cell),
        is_read=cell.source in ("archive", "imported"),
        buckets=[[1 / len(prints), each[:8], batch_class, 80.0] for each in prints],
        n_answers=N_CASES * K,
    )


@cache
def marks_of(cell: Cell, scores: bytes) -> NDArray[np.uint8]:
    """Which of the answers to the cases are copies, of a side that answers by its scores."""
    values = np.frombuffer(scores).reshape(N_CASES, K)
    texts = np.stack([np.ones((N_CASES, K)), 1 + values], axis=2).astype(np.uint64)
    is_greedy_steady = cell.decoding == "greedy" and is_steady_batch(BATCH_CLASSES[cell.batch], are_batches_equal=True)
    side_answers = SideAnswers(
        texts=texts,
        traces=texts,
        is_there=np.ones((N_CASES, K), np.bool_),
        marks=np.zeros((N_CASES, K), np.uint8),
        draws=draws_of(cell),
        is_steady=is_greedy_steady,
        find_company=None if is_reported(cell) else lambda: range(K),  # batches of another size in each repeat
    )
    return effective_draws(side_answers).marks


@cache
def release(cell: Cell, *, is_several: bool = False) -> dict[str, Any]:
    """The release of two models that were both decoded as the cell says."""
    ours, theirs = scores_of(cell)
    loads = [{8 + repeat: N_CASES} for repeat in range(K)] if cell.batch == "batched" else []
    asked = question(
        ours,
        theirs,
        setup_baseline=setup_of(cell, is_several=is_several, model="a"),
        setup_candidate=setup_of(cell, is_several=is_several, model="b"),
        draws_baseline=draws_of(cell),
        draws_candidate=draws_of(cell),
        loads_baseline=loads,
        loads_candidate=loads,
        marks_baseline=marks_of(cell, ours.tobytes()),
        marks_candidate=marks_of(cell, theirs.tobytes()),
    )
    sides = [decoded(cell, number, is_several=is_several) for number in (1, 2)]
    gate = GateEvidence(tier="critical", suite_name="colours", question=asked, baseline=sides[0], candidate=sides[1])
    document: dict[str, Any] = judge_release([gate], PAIRED)["gates"][0]
    return document


def split_of(cell: Cell) -> str:
    """What the line of the variance says moves the score."""
    drawn = draws_of(cell)
    is_steady = is_steady_batch(BATCH_CLASSES[cell.batch], are_batches_equal=not drawn.may_sample)
    scores = scores_of(cell)[0]
    counted, drawn = read_side_draws(scores, marks_of(cell, scores.tobytes()), drawn)
    parts = split_variance(counted.scores, drawn, is_steady=is_steady)
    if parts is None:
        return "–"
    known = {"external": "server", "together": "together", "unexplained": "neither"}
    code = split_code(parts, is_external=drawn.is_external)
    return known.get(code, "sampler" if drawn.is_sampled else "batch")


def answers_of(cell: Cell) -> tuple[list[list[TokenTrace]], list[list[TokenTrace]]]:
    """Either side's answers by repeat and case, of one model. Unknown batches are noise of their own in each answer;
    identical repeats are one answer again, which our own engine gives both sides.
    """
    n = K if cell.repeats == "varying" else 1
    noise = stacks.NOISE if cell.repeats == "varying" or is_reported(cell) else 0.0
    if cell.decoding == "greedy":
        cases = [[*ours, *theirs] for ours, theirs in stacks.repeated(N_COMPARED, n, noise=(noise, noise), seed=5)]
    else:
        cases = list(stacks.drawn(N_COMPARED, 2 * n, noise=noise, temperature=0.2, seed=5))
    if n == 1 and not is_reported(cell):
        cases = [[both[0], both[0]] for both in cases]
    ours, theirs = ([[case[at] for case in cases] for at in places] for places in (range(n), range(n, 2 * n)))
    return ours * (K // n), theirs * (K // n)


def compared_side(cell: Cell, answers: list[list[TokenTrace]], *, is_several: bool) -> Side:
    made = side(answers, bucket=1)
    batch_class, temperature = BATCH_CLASSES[cell.batch], TEMPERATURES[cell.decoding]
    served = ServingFacts(None, "paint-1b", None, None, SERVED.fingerprint, 1)
    buckets, known = made.buckets, {1: BucketFacts(batch_class, "bfloat16", served)}
    shares = [(1, N_COMPARED * K, 1.0)]
    if is_several:
        buckets = np.where(np.arange(N_COMPARED)[:, None] % 2, 2, buckets)
        known[2] = BucketFacts(batch_class, "bfloat16", replace(served, fingerprint=OTHER, bucket=2))
        shares = [(1, N_COMPARED * K // 2, 0.5), (2, N_COMPARED * K // 2, 0.5)]
    return replace(
        made,
        draws=draws_of(cell),
        buckets=buckets,
        setup=setup_of(cell, is_several=is_several, model="a"),
        shares=shares,
        known=known,
        settings=replace(made.settings, temperature=temperature),
        is_reported=is_reported(cell),
    )


def measure_noise(one: Side) -> PairNoise:
    given = one.responses.given  # type: ignore[attr-defined]
    ended = EndedRepeats(
        traces=[one.traces[:, at] for at in range(K)],
        served=[one.buckets[:, at] for at in range(K)],
        find_places=lambda repeat, cases: {case: given[repeat][case] for case in cases},
        reader=Kept(),
        is_reported=one.is_reported,
    )
    by_bucket: dict[int | None, Measured] = {
        bucket: ended.measure(bucket, logits="bfloat16", batch_class=facts.batch_class)
        for bucket, facts in one.known.items()
    }
    return PairNoise(by_bucket, by_bucket, are_batches_equal=True)


@cache
def comparison(cell: Cell, *, is_several: bool = False) -> tuple[dict[str, Any], str]:
    """The summary of two runs of one model, and what their flips are called."""
    baseline, candidate = (compared_side(cell, each, is_several=is_several) for each in answers_of(cell))
    report = run(baseline, candidate, Reads(Kept(), WORDS, lambda: measure_noise(baseline)))
    causes = {(pairs.flip.cause, (pairs.flip.evidence or {}).get("reason")) for pairs in report.flips}
    return report.summary, name_flips(causes)


def name_flips(causes: set[tuple[str, str | None]]) -> str:
    if not causes:
        return "–"
    assert not {cause for cause, _ in causes} & {"seed_ignored", "sampler_fault", "silent_change", "leak"}, causes
    if {reason for _, reason in causes} & DRAWN:
        return "drawn"
    return "tie" if {cause for cause, _ in causes} <= TIES else "open"


def say_of_one(cell: Cell) -> dict[str, str]:
    document, (summary, flips) = release(cell), comparison(cell)
    verdict, reason = document["verdict"], document["reasons"][0]["code"]
    by_chance = document["changed"]["broken_by_chance"]
    share = summary["noise_share"]
    return {
        "verdict": verdict if verdict != "inconclusive" else reason,
        "draws": str(document["k_baseline"]),
        "split": split_of(cell),
        "share": share["reason"] or "known",
        "chance": "–" if by_chance is None else "p",
        "compared": COMPARED.get(summary["computation"]["answer"], summary["computation"]["answer"]),
        "flips": flips,
    }


def list_faults(row: Row, says: dict[str, str], document: dict[str, Any]) -> dict[str, str]:
    """Return the columns that are not as the table has them, each with what is said instead."""
    faults = {name: says[name] for name, wanted in row.says.items() if says[name] != wanted}
    codes = {line["code"] for line in document["warnings"]}
    if not row.must <= codes <= row.may:
        faults["warnings"] = " ".join(sorted(codes))
    return faults


def not_yet(cell: Cell) -> set[str]:
    return {name for _, columns, pattern in NOT_YET if cell.matches(pattern) for name in columns.split()}


def test_the_table_has_each_cell_that_can_exist_once() -> None:
    cells = {
        Cell(source, decoding, batch, repeats)
        for source, decodings, batches in (
            ("engine", ("greedy", "sampled"), ("alone", "fixed", "batched")),
            ("archive", ("greedy", "sampled"), ("alone", "fixed", "batched")),
            ("external", ("greedy", "sampled", "unknown"), ("unknown",)),
            ("imported", ("greedy", "sampled", "unknown"), ("unknown",)),
        )
        for decoding in decodings
        for batch in batches
        for repeats in ("identical", "varying")
    }
    assert [row.cell for row in ONE] == sorted({row.cell for row in ONE}, key=[row.cell for row in ONE].index)
    assert {row.cell for row in ONE} == cells
    for cell in cells:
        assert sum(cell.matches(" ".join(row.cell)) for row in SEVERAL) == 1, cell


@pytest.mark.parametrize("row", few([*ONE[::3], *ONE[1::3], *ONE[2::3]], 12), ids=lambda row: row.cell.name)
def test_one_fingerprint(row: Row) -> None:
    faults = list_faults(row, say_of_one(row.cell), release(row.cell))
    assert set(faults) == not_yet(row.cell), faults


@pytest.mark.parametrize(
    "cell", few([row.cell for row in [*ONE[::3], *ONE[1::3], *ONE[2::3]]], 12), ids=lambda cell: cell.name
)
def test_several_fingerprints(cell: Cell) -> None:
    [row] = [row for row in SEVERAL if cell.matches(" ".join(row.cell))]
    document, (summary, _) = release(cell, is_several=True), comparison(cell, is_several=True)
    says = {"verdict": document["reasons"][0]["code"], "next": document["next"][0]["code"]}
    assert list_faults(row, says, document) == {}
    unknown = [document[name] for name in ("difference", "low", "high", "score_baseline", "changed", "repeats_needed")]
    unknown += [summary["noise_share"], summary["outcomes"]]
    assert (document["verdict"], set(unknown), summary["comparable"]) == ("not_comparable", {None}, False)
