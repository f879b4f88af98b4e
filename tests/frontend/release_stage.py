"""Releases as the pages get them, one of each kind, with numbers that a real verdict could have."""

from datetime import UTC, datetime, timedelta
from typing import Any

from evalboard.contract import compare as contract
from evalboard.contract.base import Note
from evalboard.contract.bucket import Bucket, BucketRepeat, Noise
from evalboard.contract.parts import FingerprintNamed, ModelServed, RepeatScored
from evalboard.contract.release import (
    CasesChanged,
    Expected,
    Gate,
    GateSide,
    NextStep,
    NoiseOfSide,
    PolicyOfRelease,
    Reach,
    Release,
    ReleaseWarning,
    RepeatsToAdd,
    SettlePlan,
    SignOff,
    StoryLine,
)
from evalboard.contract.run import Draws, SuiteNamed
from evalboard.core.release import find_other_causes
from evalboard.wording.other_causes import write_other_cause

AT = datetime(2026, 4, 14, 8, 9, tzinfo=UTC)
DIGEST = "9c417d02e07b55a1" + "0" * 48
OLD = "51e0aa937c3d1b68" + "0" * 48
POINTS_BASELINE = (80.4, 80.6, 80.8, 81.1, 81.3)
POINTS_CANDIDATE = (79.8, 80.0, 80.1, 80.4, 80.6)
CHANGED = CasesChanged(n_fixed=11, n_broken=16, n_unstable=13, fixed=("tool-003",), broken=("tool-017", "tool-021"))


def note(code: str, text: str) -> Note:
    return Note(code=code, text=text)


def finding(code: str, text: str, gate: int | None = None, sides: tuple[str, ...] = (), block: str = "") -> NextStep:
    return NextStep(code=code, text=text, gate=gate, sides=sides, block=block or None)


def warning(code: str, text: str, gate: int | None = 0, **changes: Any) -> ReleaseWarning:
    """A warning that could change the verdict."""
    known = {"alike": f"{code} {text}", "severity": "warning", "must_act": "author"}
    return ReleaseWarning(code=code, text=text, gate=gate, **{**known, **changes})


def noise(sd_points: float | None) -> NoiseOfSide:
    return NoiseOfSide(disagreement_rate=None, sd_points=sd_points, n_unstable=None)


def changed(n_unstable: int = 0) -> CasesChanged:
    return CasesChanged(n_fixed=0, n_broken=0, n_unstable=n_unstable, fixed=(), broken=())


def reach(low: float, high: float) -> Reach:
    return Reach(low=low, high=high, level=0.9, n_groups=None, is_concentrated=False)


def side(run_id: int, points: tuple[float | None, ...], **changes: Any) -> GateSide:
    known = [value for value in points if value is not None]
    score = sum(known) / len(known) if known else None
    made = GateSide(
        run=str(run_id),
        model="acme-7b-ft-0330" if run_id == 61 else "acme-7b-ft-0412",
        endpoint="local",
        profile="pinned",
        profile_version=1,
        status="finished",
        n_repeats=len(points),
        repeats=points,
        score=score,
        interval=None if score is None else (score - 0.35, score + 0.35),
        noise=noise(0.4),
        is_baseline_expired=False,
        n_buckets=1,
        draws=Draws(),
        is_log=False,
        cost=None,
    )
    return made.model_copy(update=changes)


def gate(*, interval: tuple[float, float] | None = (-1.1, -0.1), **changes: Any) -> Gate:
    """Inconclusive: the interval crosses the tolerance, and repeats would settle it."""
    low, high = interval or (None, None)
    known: dict[str, Any] = {
        "warnings": (),
        "guard_points": None,
        "metric": "mean",
        "is_in_turn": None,
        "order": None,
        "cases_needed": {},
        "is_worth_a_look": False,
        "position": 0,
        "suite": "toolcalls",
        "suite_version": 12,
        "suite_digest": "3f9a04d2" + "0" * 56,
        "treatment": "model",
        "pair_by": "input",
        "n_cases": 800,
        "n_cases_judged": 800,
        "tier": "critical",
        "verdict": "inconclusive",
        "reasons": (note("not_settled", "It is open whether there is a drop larger than the 1.0 point you accept."),),
        "baseline": side(61, POINTS_BASELINE),
        "candidate": side(62, POINTS_CANDIDATE),
        "difference": -0.6,
        "low": low,
        "high": high,
        "level": 0.94,
        "reach": reach(-1.9, 0.7),
        "resolution_points": 0.7,
        "resolution_elsewhere_points": 2.2,
        "tolerance_points": 1.0,
        "look": 5,
        "repeats_needed": 15,
        "targeted": None,
        "settling_chance": 0.6,
        "targeted_settling": None,
        "expected": Expected(low=-0.9, high=-0.3, repeats=20),
        "leaning": "none",
        "early_lean": None,
        "changed": CHANGED,
        **changes,
    }
    return Gate(
        range_baseline=_range(known["baseline"].repeats), range_candidate=_range(known["candidate"].repeats), **known
    )


def _range(points: tuple[float | None, ...]) -> tuple[float, float] | None:
    known = [value for value in points if value is not None]
    return (min(known), max(known)) if known else None


def shipping(position: int = 1, **changes: Any) -> Gate:
    """A gate that ships, on 500 cases that hardly move."""
    points = (98.4, 98.4, 98.6, 98.6, 98.8)
    known: dict[str, Any] = {
        "position": position,
        "suite": "refusals",
        "suite_version": 7,
        "n_cases": 500,
        "n_cases_judged": 500,
        "verdict": "ship",
        "reasons": (note("within_tolerance", "The whole interval lies above the tolerance."),),
        "baseline": side(63, points, model="acme-7b-ft-0330"),
        "candidate": side(64, points, model="acme-7b-ft-0412"),
        "difference": 0.0,
        "interval": (-0.3, 0.3),
        "reach": reach(-0.9, 0.9),
        "resolution_points": 0.4,
        "tolerance_points": 0.5,
        "repeats_needed": None,
        "expected": None,
        "leaning": None,
        "changed": changed(2),
    }
    return gate(**{**known, **changes})


def advisory(position: int = 3) -> Gate:
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
        reach=reach(-5.0, 2.0),
        resolution_points=2.8,
        tolerance_points=3.0,
        is_worth_a_look=True,
    )


VOID = SignOff(
    id="7",
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
APPROVED = VOID.model_copy(
    update={"id": "8", "input_digest": DIGEST, "void": None, "note": "Reviewed with the team.", "created_at": AT}
)
STORY = (
    StoryLine(
        at=AT - timedelta(hours=15),
        code="created",
        text="Asked for: run 62 against run 61 on toolcalls.",
        person="mira",
    ),
    StoryLine(at=AT - timedelta(hours=15), code="decided", text="Inconclusive at 3 repeats: −0.7 [−1.6, +0.2]."),
    StoryLine(at=AT - timedelta(hours=14), code="signed", text="approve", person="Mira K."),
    StoryLine(at=AT, code="decided", text="Inconclusive at 5 repeats: −0.6 [−1.1, −0.1]."),
)
MORE = tuple(RepeatsToAdd(run=run, n_more=15, n_chosen=None, n_before=5) for run in ("61", "62"))
PLAN = SettlePlan(look=20, chosen="all", chance=0.6, n_responses=24000, runs=MORE, minutes=95.0, refused=None)
SETTLE = finding(
    code="settle",
    text="No tendency. About 20 repeats a side should settle it; there are 5. It takes 15 more.",
    gate=0,
)
SIGN = finding("sign", "A person with the right to sign may approve it.")
CANDIDATES = warning("candidates_tried", "3 candidates were judged against this baseline.", severity="info")


def report(*gates: Gate, **changes: Any) -> Release:
    shown = gates or (gate(),)
    known: dict[str, Any] = {
        "id": "22",
        "verdict": shown[0].verdict,
        "outcome": "unsigned",
        "reasons": tuple(finding(line.code, line.text, 0) for line in shown[0].reasons),
        "summary": "toolcalls scored 80.2 (79.8–80.6 over 5 repeats) against 80.8 (80.4–81.3). It is open "
        "whether there is a drop larger than the 1.0 point you accept: −0.6 points, in [−1.1, −0.1] (94 % interval).",
        "next": (SETTLE,),
        "headline_gate": 0,
        "gates": shown,
        "policy": PolicyOfRelease(
            name="release-strict", version=3, title="Strict", rule="strict", tolerance_points=1.0, guard=1.0
        ),
        "treatment": "model",
        "pair_by": "input",
        "input_digest": DIGEST,
        "candidates_tried": 3,
        "settle": PLAN,
        "settle_targeted": None,
        "settling": None,
        "signoffs": (VOID,),
        "warnings": (),
        "labels": {"commit": "8f21c0e", "branch": "main"},
        "created_by": "mira",
        "created_at": AT - timedelta(hours=2),
        "decided_at": AT,
        "url": "/releases/22/",
        "story": STORY,
    }
    fields = {**known, **changes}
    asked = (fields[name] for name in ("gates", "warnings", "verdict", "treatment"))
    causes = tuple(map(write_other_cause, find_other_causes(*asked)))
    return Release(**{"other_causes": causes, **fields})


def of_kind(kind: str) -> Release:
    return KINDS[kind]()


def _ship() -> Release:
    words = (
        "toolcalls scored 80.9 (80.6–81.3 over 5 repeats) against 81.0 (80.7–81.4). A drop larger than the "
        "1.0 point you accept is ruled out: −0.1 points, in [−0.6, +0.4] (94 % interval)."
    )
    ships = gate(
        verdict="ship",
        reasons=(note("within_tolerance", "A drop larger than the 1.0 point you accept is ruled out."),),
        difference=-0.1,
        interval=(-0.6, 0.4),
        reach=reach(-1.4, 1.2),
        repeats_needed=None,
        expected=None,
        leaning=None,
    )
    return report(
        ships,
        outcome="approved",
        summary=words,
        next=(SIGN,),
        settle=None,
        signoffs=(VOID, APPROVED),
        candidates_tried=1,
    )


def _no_ship() -> Release:
    words = (
        "toolcalls scored 78.4 (78.0–78.9 over 5 repeats) against 80.8 (80.4–81.3). The drop is larger than the "
        "1.0 point you accept: −2.4 points, in [−2.9, −1.9] (94 % interval)."
    )
    fails = gate(
        verdict="no_ship",
        reasons=(note("regression", "The drop is larger than the 1.0 point you accept: 4 fixed, 27 broken."),),
        candidate=side(62, (78.0, 78.1, 78.4, 78.6, 78.9)),
        difference=-2.4,
        interval=(-2.9, -1.9),
        reach=reach(-3.9, -0.9),
        repeats_needed=None,
        expected=None,
        leaning=None,
    )
    step = finding(
        code="decide_by_hand", text="Read the 27 broken cases, then reject it or waive it for a time.", gate=0
    )
    return report(
        fails,
        summary=words,
        next=(step,),
        settle=None,
        signoffs=(),
    )


def _noisy() -> Release:
    words = "toolcalls is too noisy for a verdict: five repeats of the candidate spread over 1.6 points, more than 1.0."
    steps = (
        finding(
            "pin_batch",
            "Pin the batch: in this batch class five repeats spread over 1.5 points by themselves.",
            gate=0,
        ),
        finding("use_paired", "Or judge under the policy paired, which decides case by case.", 0),
    )
    noisy = gate(
        reasons=(
            Note(
                code="noisy", text="Five repeats of the candidate spread over 1.6 points, more than the guard of 1.0."
            ),
        ),
        candidate=side(62, (79.2, 79.8, 80.1, 80.4, 80.8)),
        guard_points=1.0,
        repeats_needed=None,
        expected=None,
        leaning="none",
    )
    return report(noisy, summary=words, next=steps, settle=None, signoffs=())


def _too_small() -> Release:
    words = (
        "sample is too small to settle a change of 1.0 points: with 30 cases one case is worth 3.3. It would take 93 "
        "cases at 5 repeats."
    )
    small = gate(
        suite="sample",
        suite_version=1,
        n_cases=30,
        n_cases_judged=30,
        reasons=(note("suite_too_small", "Even if no case moved, 30 cases at 5 repeats leave ±3.1 points open."),),
        baseline=side(61, (60.0,) * 5, noise=noise(0.0)),
        candidate=side(62, (60.0,) * 5, noise=noise(0.0)),
        difference=0.0,
        interval=(-3.1, 3.1),
        reach=reach(-9.3, 9.3),
        resolution_points=4.5,
        resolution_elsewhere_points=11.0,
        repeats_needed=None,
        expected=None,
        cases_needed={"5": 93, "10": 57, "20": 29},
        leaning="ship",
        changed=changed(),
    )
    step = finding("larger_suite", "Add cases: 93 settle it at 5 repeats, 57 at 10, 29 at 20.", 0)
    return report(
        small,
        summary=words,
        next=(step,),
        settle=None,
        signoffs=(),
        candidates_tried=1,
    )


def _not_comparable() -> Release:
    words = (
        "The candidate’s run was served by two backends. 240 of its 4,000 responses came from fp d07e, so 79.6 is a "
        "mixture and no change against 81.4 is given."
    )
    mixed = gate(
        verdict="not_comparable",
        reasons=(note("mixed_fingerprint", "Two buckets served the candidate: 94 % and 6 % of its responses."),),
        baseline=side(61, (81.1, 81.2, 81.4, 81.5, 81.8)),
        candidate=side(62, (79.3, 79.4, 79.6, 79.7, 80.0), noise=noise(None)),
        difference=None,
        interval=None,
        level=None,
        reach=None,
        resolution_points=None,
        resolution_elsewhere_points=None,
        repeats_needed=None,
        expected=None,
        leaning=None,
    )
    step = finding(
        code="rebaseline", text="Run the baseline again on today’s stack, then accept it as the new baseline.", gate=0
    )
    rotation = warning("rotation", "Rotation seen on this endpoint on 2026-04-13 at 14:52.")
    return report(
        mixed,
        shipping(),
        id="19",
        summary=words,
        warnings=(rotation,),
        next=(step,),
        settle=None,
        signoffs=(),
        candidates_tried=1,
    )


def _several() -> Release:
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


def bucket(letter: str = "a81c", share: float = 1.0, **changes: Any) -> Bucket:
    """One bucket of a run of 4,000 responses."""
    n = round(4000 * share)
    points = POINTS_BASELINE if share > 0.5 else (62.5, 63.0, 64.5, 66.0, 66.7)
    repeats = tuple(
        BucketRepeat(index=index, score=value, n_responses=n // 5) for index, value in enumerate(points, start=1)
    )
    noise = Noise.partly_known(disagreement_rate=0.02, sd_points=0.4, n_unstable=13)
    identity = "1" if share > 0.5 else "2"
    label = "vLLM 0.31.2 · H100 · bf16" if share > 0.5 else "vLLM 0.32.0 · H100 · bf16"
    made = Bucket(
        id=identity,
        backend="A" if share > 0.5 else "B",
        model=ModelServed(name="acme-7b-ft-0330", digest="b7e2" + "0" * 60),
        fingerprint=FingerprintNamed(id=identity, digest=letter + "0" * 60, label=label),
        batch_class="mixed",
        model_reported=None,
        n_responses=n,
        share=share,
        repeats=repeats,
        range=(min(points), max(points)),
        noise=noise,
        metrics=None,
        metrics_left_out=None,
        strays=None,
        range_so_far=(min(points), max(points)),
        noise_so_far=noise,
    )
    return made.model_copy(update=changes)


def compared(**changes: Any) -> contract.Comparison:
    """The comparison of the first gate's runs, with a ledger that ends in −0.6."""
    ledger = (
        _ledger_line("larger_shift", 19, -0.5, 0.4, -0.9, 60),
        _ledger_line("near_tie", 7, -0.2, 0.2, -0.4, 80),
        _ledger_line("length", 1, 0.1, 0.1, 0.0, 2),
        _ledger_line("scorer", 0, 0.0, 0.0, 0.0, 0),
    )
    counts = contract.ComparedCounts(
        n_pairs=4000,
        identical=3000,
        drift_only=600,
        flipped=380,
        text_only=20,
        missing=0,
        unread=0,
        score_changed=60,
        flipped_score_changed=55,
        n_cases=800,
        n_cases_paired=800,
        n_cases_missing=0,
        n_cases_score_changed=27,
    )
    parts = contract.CaseParts(
        broken=7,
        fixed=3,
        changed=5,
        unstable=12,
        other_text=173,
        same_text=600,
        unscored=0,
        missing=0,
        missing_on_both=0,
    )
    made = contract.Comparison(
        baseline="61",
        candidate="62",
        repeat=None,
        progress=contract.ComparisonProgress(status="finished", n_done=400, n_total=400, error=None),
        treatment="model",
        comparable=True,
        prompts=None,
        moved=(),
        blocks=(),
        score=contract.ScoreCompared(baseline=80.8, candidate=80.2, difference=-0.6),
        counts=counts,
        parts=parts,
        noise_share=None,
        outcomes=contract.OutcomeCounts(broken=7, fixed=3, unstable=12),
        ledger=ledger,
        computation=None,
        larger_shifts=None,
        noise=None,
        onset_histogram=None,
        flip_histogram=None,
        clusters=(),
        n_clusters=0,
        sides=contract.ComparedSides(baseline=compared_side("61"), candidate=compared_side("62")),
        finished_at=AT,
        url="/compare/61/62/",
        id=1,
        causes=(),
        flips=(),
        n_flips=0,
        backends=(),
        tags=(),
    )
    return made.model_copy(update=changes)


def _ledger_line(
    cause: str, n_cases: int, points: float, gained: float, lost: float, n_pairs: int
) -> contract.LedgerLine:
    return contract.LedgerLine(
        cause=cause, n_cases=n_cases, points=points, gained=gained, lost=lost, parts=(), shown=points, n_pairs=n_pairs
    )


def compared_side(run_id: str) -> contract.ComparedSide:
    served = contract.BucketOfSide(
        id="1",
        model=ModelServed(name="acme-7b-ft", digest="b" * 64),
        fingerprint=FingerprintNamed(id="1", digest="a81c" + "0" * 60, label="vLLM 0.31.2"),
        batch_class="mixed",
        n_responses=4000,
        share=1.0,
        backend="A",
    )
    return contract.ComparedSide(
        run=run_id,
        suite=SuiteNamed(slug="toolcalls", version=12),
        endpoint="local",
        profile="pinned",
        profile_version=1,
        model="acme-7b-ft",
        repeats=tuple(RepeatScored(index=index, score=score) for index, score in enumerate(POINTS_BASELINE, start=1)),
        range=(80.4, 81.3),
        scorer=contract.ScorerOfSide(digest="c0b7" + "0" * 60),
        buckets=(served,),
        targeted=None,
        n_repeats=5,
    )
