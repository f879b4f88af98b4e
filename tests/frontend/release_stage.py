"""Releases as the pages get them, one of each kind, with numbers that a real verdict could have."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from runs.selectors.comparison import (
    ComparedCounts,
    ComparisonProgress,
    ComparisonReport,
    LedgerLine,
    OutcomeCounts,
    SideBucket,
    SideReport,
)
from runs.selectors.release import (
    GateReport,
    GateSide,
    Line,
    ReleaseReport,
    ReleaseRow,
    SettlePlan,
    SignOffLine,
    StoryLine,
)
from runs.selectors.run import BucketRepeat, BucketReport, Noise

AT = datetime(2026, 4, 14, 8, 9, tzinfo=UTC)
DIGEST = "9c417d02e07b55a1" + "0" * 48
OLD = "51e0aa937c3d1b68" + "0" * 48
POINTS_BASELINE = (80.4, 80.6, 80.8, 81.1, 81.3)
POINTS_CANDIDATE = (79.8, 80.0, 80.1, 80.4, 80.6)


def side(run_id: int, points: tuple[float | None, ...], **changes: Any) -> GateSide:
    known = [value for value in points if value is not None]
    span = (min(known), max(known)) if known else None
    score = sum(known) / len(known) if known else None
    made = GateSide(
        run_id=run_id,
        model_name="acme-7b-ft-0330" if run_id == 61 else "acme-7b-ft-0412",
        endpoint="local",
        profile="pinned",
        status="finished",
        n_repeats=len(points),
        points=points,
        score=score,
        range=span,
        interval=None if score is None else (score - 0.35, score + 0.35),
        noise_points=0.4,
        is_baseline_expired=False,
    )
    return replace(made, **changes)


def gate(**changes: Any) -> GateReport:
    """Inconclusive: the interval crosses the tolerance, and repeats would settle it."""
    made = GateReport(
        position=0,
        suite="toolcalls",
        suite_version=12,
        suite_digest="3f9a04d2" + "0" * 56,
        n_cases=800,
        n_cases_judged=800,
        tier="critical",
        verdict="inconclusive",
        reasons=(Line("not_settled", "It may be worse than the 1.0 point you accept, or not."),),
        warnings=(),
        baseline=side(61, POINTS_BASELINE),
        candidate=side(62, POINTS_CANDIDATE),
        difference=-0.6,
        interval=(-1.1, -0.1),
        level=0.94,
        reach=(-1.9, 0.7),
        reach_level=0.9,
        resolution_points=0.7,
        resolution_elsewhere_points=2.2,
        points_per_case=0.125,
        tolerance_points=1.0,
        guard_points=None,
        look=5,
        repeats_needed=15,
        expected=(-0.9, -0.3),
        expected_repeats=20,
        cases_needed={},
        leaning="none",
        n_fixed=11,
        n_broken=16,
        n_unstable=13,
        fixed=("tool-003",),
        broken=("tool-017", "tool-021"),
        is_worth_a_look=False,
    )
    return replace(made, **changes)


def shipping(position: int = 1, **changes: Any) -> GateReport:
    """A gate that ships, on 500 cases that hardly move."""
    points = (98.4, 98.4, 98.6, 98.6, 98.8)
    made = gate(
        position=position,
        suite="refusals",
        suite_version=7,
        n_cases=500,
        n_cases_judged=500,
        verdict="ship",
        reasons=(Line("within_tolerance", "The whole interval lies above the tolerance."),),
        baseline=side(63, points, model_name="acme-7b-ft-0330"),
        candidate=side(64, points, model_name="acme-7b-ft-0412"),
        difference=0.0,
        interval=(-0.3, 0.3),
        reach=(-0.9, 0.9),
        resolution_points=0.4,
        points_per_case=0.2,
        tolerance_points=0.5,
        repeats_needed=None,
        expected=None,
        expected_repeats=None,
        leaning=None,
        n_fixed=0,
        n_broken=0,
        n_unstable=2,
        fixed=(),
        broken=(),
    )
    return replace(made, **changes)


def advisory(position: int = 3) -> GateReport:
    return gate(
        position=position,
        suite="long-context",
        suite_version=3,
        n_cases=200,
        n_cases_judged=200,
        tier="advisory",
        baseline=side(67, (71.0, 71.5, 72.0, 72.5, 72.5)),
        candidate=side(68, (69.5, 70.0, 70.5, 71.0, 71.0)),
        difference=-1.5,
        interval=(-3.4, 0.4),
        reach=(-5.0, 2.0),
        resolution_points=2.8,
        points_per_case=0.5,
        tolerance_points=3.0,
        is_worth_a_look=True,
    )


def row(**changes: Any) -> ReleaseRow:
    made = ReleaseRow(
        id=22,
        verdict="inconclusive",
        outcome="unsigned",
        summary="toolcalls scored 80.2 (79.8–80.6 over 5 repeats) against 80.8 (80.4–81.3). It may be worse "
        "than the 1.0 point you accept, or not: −0.6 points, in [−1.1, −0.1] (94 % interval).",
        suites=("toolcalls",),
        candidate="acme-7b-ft-0412",
        baseline="acme-7b-ft-0330",
        candidate_run=62,
        baseline_run=61,
        policy="release-strict v3",
        treatment="model",
        labels={"commit": "8f21c0e", "branch": "main"},
        difference=-0.6,
        interval=(-1.1, -0.1),
        tolerance_points=1.0,
        created_at=AT - timedelta(hours=2),
        decided_at=AT,
        created_by="mira",
    )
    return replace(made, **changes)


VOID = SignOffLine(
    id=7,
    person="Mira K.",
    decision="approve",
    note="Shipping on the first look.",
    expires_at=None,
    created_at=AT - timedelta(hours=14),
    made_with="session 3fa1",
    input_digest=OLD,
    digest="ab12" + "0" * 60,
    void="Inputs changed since: 2 repeats were added.",
)
APPROVED = replace(VOID, id=8, input_digest=DIGEST, void="", note="Reviewed with the team.", created_at=AT)
STORY = (
    StoryLine(
        at=AT - timedelta(hours=15),
        code="created",
        text="Asked for: run 62 against run 61 on toolcalls.",
        person="mira",
    ),
    StoryLine(
        at=AT - timedelta(hours=15), code="decided", text="Inconclusive at 3 repeats: −0.7 [−1.6, +0.2].", person=""
    ),
    StoryLine(at=AT - timedelta(hours=14), code="signed", text="approve", person="Mira K."),
    StoryLine(at=AT, code="decided", text="Inconclusive at 5 repeats: −0.6 [−1.1, −0.1].", person=""),
)
PLAN = SettlePlan(look=20, n_responses=24000, runs=((61, 15), (62, 15)), minutes=95.0)
SETTLE = Line(
    "settle", "No lean either way. About 20 repeats a side should settle it; there are 5. It takes 15 more.", 0
)
SIGN = Line("sign", "A person with the right to sign may approve it.", None)
CANDIDATES = Line("candidates_tried", "3 candidates were judged against this baseline.", None)


def report(*gates: GateReport, **changes: Any) -> ReleaseReport:
    shown = gates or (gate(),)
    made = ReleaseReport(
        row=row(suites=tuple(each.suite for each in shown)),
        headline_gate=0,
        reasons=shown[0].reasons,
        warnings=(),
        next_steps=(SETTLE,),
        gates=shown,
        policy_name="release-strict",
        policy_title="Strict",
        policy_version=3,
        policy_settings={"rule": "strict", "tolerance_points": 1.0, "guard_points": 1.0, "looks": [5, 10, 20]},
        input_digest=DIGEST,
        candidates_tried=3,
        settle=PLAN,
        settling="",
        sign_offs=(VOID,),
        story=STORY,
    )
    return replace(made, **changes)


def of_kind(kind: str) -> ReleaseReport:
    return KINDS[kind]()


def _ship() -> ReleaseReport:
    words = (
        "toolcalls scored 80.9 (80.6–81.3 over 5 repeats) against 81.0 (80.7–81.4). It is no worse than the "
        "1.0 point you accept: −0.1 points, in [−0.6, +0.4] (94 % interval)."
    )
    ships = gate(
        verdict="ship",
        reasons=(Line("within_tolerance", "It is no worse than the 1.0 point you accept."),),
        difference=-0.1,
        interval=(-0.6, 0.4),
        reach=(-1.4, 1.2),
        repeats_needed=None,
        expected=None,
        expected_repeats=None,
        leaning=None,
    )
    return report(
        ships,
        row=row(verdict="ship", outcome="approved", summary=words, difference=-0.1, interval=(-0.6, 0.4)),
        next_steps=(SIGN,),
        settle=None,
        sign_offs=(VOID, APPROVED),
        candidates_tried=1,
    )


def _no_ship() -> ReleaseReport:
    words = (
        "toolcalls scored 78.4 (78.0–78.9 over 5 repeats) against 80.8 (80.4–81.3). It is worse than the "
        "1.0 point you accept: −2.4 points, in [−2.9, −1.9] (94 % interval)."
    )
    fails = gate(
        verdict="no_ship",
        reasons=(Line("regression", "It is worse than the 1.0 point you accept: 4 fixed, 27 broken."),),
        candidate=side(62, (78.0, 78.1, 78.4, 78.6, 78.9)),
        difference=-2.4,
        interval=(-2.9, -1.9),
        reach=(-3.9, -0.9),
        repeats_needed=None,
        expected=None,
        expected_repeats=None,
        leaning=None,
    )
    step = Line("decide_by_hand", "Read the 27 broken cases, then reject it or waive it for a time.", 0)
    return report(
        fails,
        row=row(verdict="no_ship", summary=words, difference=-2.4, interval=(-2.9, -1.9)),
        next_steps=(step,),
        settle=None,
        sign_offs=(),
    )


def _noisy() -> ReleaseReport:
    words = "toolcalls is too noisy for a verdict: five repeats of the candidate spread over 1.6 points, more than 1.0."
    steps = (
        Line("pin_batch", "Pin the batch: in this batch class five repeats spread over 1.5 points by themselves.", 0),
        Line("use_paired", "Or judge under the policy paired, which decides case by case.", 0),
    )
    noisy = gate(
        reasons=(Line("noisy", "Five repeats of the candidate spread over 1.6 points, more than the guard of 1.0."),),
        candidate=side(62, (79.2, 79.8, 80.1, 80.4, 80.8)),
        guard_points=1.0,
        repeats_needed=None,
        expected=None,
        expected_repeats=None,
        leaning="none",
    )
    return report(noisy, row=row(summary=words), next_steps=steps, settle=None, sign_offs=())


def _too_small() -> ReleaseReport:
    words = (
        "sample is too small to settle a change of 1.0 points: with 30 cases one case is worth 3.3. It would take 93 "
        "cases at 5 repeats."
    )
    small = gate(
        suite="sample",
        suite_version=1,
        n_cases=30,
        n_cases_judged=30,
        reasons=(Line("suite_too_small", "Even if no case moved, 30 cases at 5 repeats leave ±3.1 points open."),),
        baseline=side(61, (60.0,) * 5, noise_points=0.0),
        candidate=side(62, (60.0,) * 5, noise_points=0.0),
        difference=0.0,
        interval=(-3.1, 3.1),
        reach=(-9.3, 9.3),
        resolution_points=4.5,
        resolution_elsewhere_points=11.0,
        points_per_case=10 / 3,
        repeats_needed=None,
        expected=None,
        expected_repeats=None,
        cases_needed={5: 93, 10: 57, 20: 29},
        leaning="ship",
        n_fixed=0,
        n_broken=0,
        n_unstable=0,
        fixed=(),
        broken=(),
    )
    step = Line("larger_suite", "Add cases: 93 settle it at 5 repeats, 57 at 10, 29 at 20.", 0)
    return report(
        small,
        row=row(summary=words, difference=0.0, interval=(-3.1, 3.1)),
        next_steps=(step,),
        settle=None,
        sign_offs=(),
        candidates_tried=1,
    )


def _not_comparable() -> ReleaseReport:
    words = (
        "The candidate’s run was served by two backends. 240 of its 4,000 responses came from fp d07e, so 79.6 is a "
        "mixture and no change against 81.4 is given."
    )
    mixed = gate(
        verdict="not_comparable",
        reasons=(Line("mixed_fingerprint", "Two buckets served the candidate: 94 % and 6 % of its responses."),),
        baseline=side(61, (81.1, 81.2, 81.4, 81.5, 81.8)),
        candidate=side(62, (79.3, 79.4, 79.6, 79.7, 80.0), noise_points=None, range=None),
        difference=None,
        interval=None,
        level=None,
        reach=None,
        reach_level=None,
        resolution_points=None,
        resolution_elsewhere_points=None,
        repeats_needed=None,
        expected=None,
        expected_repeats=None,
        leaning=None,
    )
    step = Line("rebaseline", "Run the baseline again on today’s stack, then accept it as the new baseline.", 0)
    warning = Line("rotation", "Rotation seen on this endpoint on 2026-04-13 at 14:52.", 0)
    return report(
        mixed,
        shipping(),
        row=row(
            id=19,
            verdict="not_comparable",
            summary=words,
            difference=None,
            interval=None,
            suites=("toolcalls", "refusals"),
        ),
        warnings=(warning,),
        next_steps=(step,),
        settle=None,
        sign_offs=(),
        candidates_tried=1,
    )


def _several() -> ReleaseReport:
    extract = shipping(
        2,
        suite="json-extract",
        suite_version=4,
        n_cases=1200,
        n_cases_judged=1200,
        baseline=side(65, (91.4, 91.5, 91.6, 91.7, 91.8)),
        candidate=side(66, (91.5, 91.7, 91.8, 92.0, 92.0)),
        difference=0.2,
        interval=(-0.2, 0.6),
        resolution_points=0.6,
        tolerance_points=1.0,
    )
    return report(gate(), shipping(1), extract, advisory(3), warnings=(CANDIDATES,))


KINDS = {
    "ship": _ship,
    "no_ship": _no_ship,
    "inconclusive": report,
    "noisy": _noisy,
    "suite_too_small": _too_small,
    "not_comparable": _not_comparable,
    "several": _several,
}


def bucket(letter: str = "a81c", share: float = 1.0, **changes: Any) -> BucketReport:
    """One bucket of a run of 4,000 responses."""
    n = round(4000 * share)
    points = POINTS_BASELINE if share > 0.5 else (62.5, 63.0, 64.5, 66.0, 66.7)
    repeats = tuple(BucketRepeat(index, value, n // 5) for index, value in enumerate(points, start=1))
    made = BucketReport(
        id=1 if share > 0.5 else 2,
        model_name="acme-7b-ft-0330",
        model_digest="b7e2" + "0" * 60,
        fingerprint_id=1 if share > 0.5 else 2,
        fingerprint_digest=letter + "0" * 60,
        fingerprint_label="vLLM 0.31.2 · H100 · bf16" if share > 0.5 else "vLLM 0.32.0 · H100 · bf16",
        batch_class="mixed",
        n_responses=n,
        share=share,
        repeats=repeats,
        range=(min(points), max(points)),
        noise=Noise(disagreement_rate=0.02, sd_points=0.4, n_unstable=13),
    )
    return replace(made, **changes)


def compared(**changes: Any) -> ComparisonReport:
    """The comparison of the first gate's runs, with a ledger that ends in −0.6."""
    ledger = (
        LedgerLine("larger_shift", 19, -0.5, -0.5, 0.4, -0.9, 60),
        LedgerLine("near_tie", 7, -0.2, -0.2, 0.2, -0.4, 80),
        LedgerLine("length", 1, 0.1, 0.1, 0.1, 0.0, 2),
        LedgerLine("scorer", 0, 0.0, 0.0, 0.0, 0.0, 0),
    )
    counts = ComparedCounts(4000, 3000, 600, 380, 20, 0, 0, 60, 55, 800, 800, 0, 27)
    made = ComparisonReport(
        id=1,
        baseline=compared_side(61),
        candidate=compared_side(62),
        is_same_run=False,
        repeats=None,
        points_baseline=80.8,
        points_candidate=80.2,
        difference=-0.6,
        comparable=True,
        moved=(),
        blocks=(),
        counts=counts,
        outcomes=OutcomeCounts(7, 3, 12),
        ledger=ledger,
        causes=(),
        larger_shifts=None,
        noise=None,
        onset_histogram=None,
        flip_histogram=None,
        flips=(),
        n_flips=0,
        clusters=(),
        n_clusters=0,
        backends=(),
        tags=(),
        progress=ComparisonProgress("finished", 400, 400, ""),
        created_at=AT,
        finished_at=AT,
    )
    return replace(made, **changes)


def compared_side(run_id: int) -> SideReport:
    served = SideBucket("A", 1, "acme-7b-ft", "b" * 64, 1, "a81c" + "0" * 60, "vLLM 0.31.2", "mixed", 4000, 1.0)
    return SideReport(
        run_id=run_id,
        suite="toolcalls",
        suite_version=12,
        endpoint="local",
        profile="pinned",
        model_name="acme-7b-ft",
        status="finished",
        labels={},
        created_at=AT,
        n_repeats=5,
        repeats=(1, 2, 3, 4, 5),
        points=POINTS_BASELINE,
        range=(80.4, 81.3),
        buckets=(served,),
        scorer_digest="c0b7" + "0" * 60,
    )
