"""Verdicts on one suite: enough, too little, too noisy, drawn, logged, missing; and what forbids comparing."""

from dataclasses import replace
from typing import Any

import numpy as np

from evalboard.contract.run import Draws
from evalboard.core.compare.comparability import JudgedAgain, ScorerShift
from evalboard.core.release.gate import GateQuestion, TargetedScores
from evalboard.core.stats import CALLS, COPIED, EarlierNoise, make_mark
from evalboard.core.suite import policy
from tests.core.golden.readers import Situations, read_comparison, read_gate, read_prompts
from tests.core.questions import ASKED, NEWER, PAIRED, PATCHED, SERVED, SHIPPED, judged, pinned, question, runs, served
from tests.core.test_verdict import EXPIRED, LOGGED

EXPIRED_BY_PROBE = {name: fact for name, fact in EXPIRED.items() if name != "first_run"} | {
    "first_probe": 12,
    "profile": "",
}
NAN = float("nan")
N_CASES = 800
FIVE = (1, 2, 3, 4, 5)
MIXED = served(batch_class="mixed")
OBSERVED = served(batch_class="observed")
OF_LOG = replace(OBSERVED, is_logged=True)
REPORTED = {
    "weights_digest": "",
    "named": "paint-1b",
    "manifest": {"source": {"system_fingerprint": "vllm-0.32.0-ac25"}},
}
UNCERTIFIED = {"side": "candidate", "hosts": ["gpu-2"], "endpoint": "llama-8b", "profile": "invariant"}
LENIENT = policy.parse_policy({"rule": "paired", "tolerance_points": 15.0})


def scattered(n_broken: int = 0, *, by: int = 49, **changes: Any) -> GateQuestion:
    """Two runs of 800 cases of which `by` flip in two repeats of five on either side, and n_broken broke."""
    baseline, candidate = np.ones((N_CASES, 5)), np.ones((N_CASES, 5))
    for case in range(by):
        baseline[case, [case % 5, (case + 1) % 5]] = 0
        candidate[case + 100, [case % 5, (case + 1) % 5]] = 0
    candidate[200 : 200 + n_broken] = 0
    return question(baseline, candidate, **changes)


def foretold(*, has_targeted: bool = False) -> GateQuestion:
    """The same with 4 broken, and 100 that flip on both sides: 160 cases foretold hold most of those. has_targeted: 12
    more repeats of those alone.
    """
    asked = scattered(4, by=100)
    noisiest = np.arange(N_CASES) < N_CASES // 5
    if not has_targeted:
        return replace(asked, noisiest=noisiest)
    more = np.where(noisiest[:, None], np.ones((N_CASES, 12)), NAN)
    flips = more.copy()
    for case in range(80):
        flips[case, [case % 12, (case + 5) % 12]] = 0
    scores = TargetedScores(is_chosen=noisiest, baseline=flips, candidate=flips[:, ::-1], n_before=5)
    return replace(asked, targeted=scores)


def noisy(**changes: Any) -> GateQuestion:
    return question(runs(*[651] * 5, n_cases=N_CASES), runs(630, 640, 650, 660, 670, n_cases=N_CASES), **changes)


def loaded(ours: list[dict[int, int]], theirs: list[dict[int, int]], *, n_broken: int = 0) -> GateQuestion:
    """Two runs of five repeats, batched as cases came; ours, theirs: how the responses of each repeat were."""
    loads = {"loads_baseline": 5 * ours, "loads_candidate": 5 * theirs}
    return replace(pinned(n_broken), setup_baseline=MIXED, setup_candidate=MIXED, **loads)


def wandering(k: int = 5) -> GateQuestion:
    """Two runs batched as cases came, one after the other, whose repeats move as a whole."""
    counts = [630, 640, 650, 660, 670][:k]
    sides = runs(*counts, n_cases=N_CASES), runs(*[n - 4 for n in counts], n_cases=N_CASES)
    return question(*sides, setup_baseline=MIXED, setup_candidate=MIXED, are_apart=True)


def drawn(ours: Draws, theirs: Draws, *, n_parted: int = 16) -> GateQuestion:
    rng = np.random.default_rng(11)
    baseline = (rng.random((N_CASES, 5)) < 0.6).astype(np.float64)
    candidate = baseline.copy()
    candidate[:n_parted] = rng.random((n_parted, 5)) < 0.6
    return question(baseline, candidate, draws_baseline=ours, draws_candidate=theirs)


def sure(draws: Draws, *, k: int = 5) -> GateQuestion:
    """Of 800 cases 400 pass in half of their draws; the candidate has as many right, and always the same ones."""
    baseline, candidate = np.ones((N_CASES, k)), np.ones((N_CASES, k))
    baseline[:400] = np.random.default_rng(5).random((400, k)) < 0.5
    candidate[:200] = 0
    draws = replace(draws, repeats=draws.repeats[:k])
    return question(baseline, candidate, draws_baseline=draws, draws_candidate=draws)


def graded(asked: GateQuestion) -> GateQuestion:
    asked.baseline[0, 0] = 0.5
    return asked


def by(metric: str) -> policy.PolicySettings:
    return policy.parse_policy({**PAIRED.settings(), "metric": metric})


def missing(*places: tuple[int, int], n_broken: int = 0, n_cases_lost: int = 0) -> GateQuestion:
    """A pinned candidate without some responses, (case, repeat), and without all of some cases that passed."""
    asked = pinned(n_broken)
    for place in places:
        asked.candidate[place] = NAN
    asked.candidate[100 : 100 + n_cases_lost] = NAN
    return asked


def marked(mark: str, where: Any) -> GateQuestion:
    """A candidate some of whose responses are no draws: came out of a cache, or after a fallback."""
    asked = pinned()
    marks = np.zeros(asked.candidate.shape, np.uint8)
    marks[where] = make_mark([mark])
    return replace(asked, marks_candidate=marks)


def copied(
    *,
    repeats: Any = np.s_[1:],
    sides: tuple[str, ...] = ("baseline", "candidate"),
    k: int = 5,
    **changes: Any,
) -> GateQuestion:
    """Sides some of whose answers are an earlier one given again, from an external server."""
    marks = np.zeros((N_CASES, k), np.uint8)
    marks[:, repeats] = make_mark([COPIED])
    asked = pinned(3, k=k)
    external: dict[str, Any] = {f"draws_{side}": Draws(is_external=True) for side in ("baseline", "candidate")}
    external |= {"one_answer": sides if repeats == np.s_[1:] else ()}
    external |= {f"setup_{side}": OBSERVED for side in ("baseline", "candidate")}
    found = {f"marks_{side}": marks for side in sides}
    return replace(asked, **{**external, **found, **changes})


def grouped(n_broken: int, group_size: int, *, n_cases: int = N_CASES) -> GateQuestion:
    groups = [f"group-{case // group_size}" for case in range(n_cases)]
    return replace(pinned(n_broken, n_cases=n_cases), groups=groups)


def asked_otherwise(**changes: Any) -> GateQuestion:
    return replace(pinned(), setup_candidate=replace(ASKED, **changes))


def rescored(points: float | None, n_cases: int) -> GateQuestion:
    """A baseline that the candidate's scorer judges: by how much that moved it, in how many cases."""
    shift = ScorerShift("0" * 64, points, n_cases)
    return replace(pinned(), setup_baseline=replace(ASKED, scorer_shift=shift))


NO_ANCHORS = {"anchors_digest": "", "anchor_scores": None}
NEWER_JUDGE = {"identity": ("7" * 64,), "served": ("referee-8b on vLLM 0.32.0",)}
MOVED_ANCHORS = {"anchor_scores": ((1.0,) * 10, (0.0,) * 10) * 22 + ((1.0,) * 10,) * 6}
FEW_ANCHORS = {"is_reported": True, "anchor_scores": ((1.0,) * 5, (0.0,) * 5) * 5}


def judged_by(candidate: dict[str, Any], baseline: dict[str, Any] | None = None) -> GateQuestion:
    return replace(pinned(), setup_baseline=judged(**baseline or {}), setup_candidate=judged(**candidate))


def judged_again(points: float, n_cases: int) -> GateQuestion:
    """A baseline whose judge was asked again: by how much that moved it, in how many cases."""
    again = JudgedAgain("0" * 64, points, n_cases)
    return replace(pinned(), setup_baseline=replace(judged(), judged_again=again), setup_candidate=judged())


COUNTS = {
    **{"pair_by": "input", "n_pairs": 800, "n_changed": 800, "n_alone_baseline": 0, "n_alone_candidate": 0},
    **{"n_other_target": 0, "n_repeated": 0, "n_other_input": 0},
}


def prompted(**counts: Any) -> GateQuestion:
    return replace(pinned(), treatment="prompt", prompts={**COUNTS, **counts})


def served_otherwise(treatment: str = "model", **changes: Any) -> GateQuestion:
    return replace(pinned(), setup_candidate=served(**changes), treatment=treatment)


PINNED_APART = {"is_steady": True, "n_cases": 60, "n_apart": 7, "shift": None}


def served_by_one(batch_class: str) -> GateQuestion:
    """Two sides of one bucket that lie further apart than their repeats."""
    setup = served(batch_class=batch_class)
    known = {"is_steady": False, "n_cases": 60, "n_apart": 60, "shift": 0.02}
    return replace(pinned(), setup_baseline=setup, setup_candidate=setup, computation=known)


def logged(asked: GateQuestion, *, both: bool = True) -> GateQuestion:
    return replace(asked, setup_candidate=LOGGED, setup_baseline=LOGGED if both else ASKED)


SEED_42, SEED_43 = Draws(0.7, 42, repeats=FIVE), Draws(0.7, 43, repeats=FIVE)
UNKNOWN_TEMPERATURE = Draws(None, 42, repeats=FIVE, is_external=True)
ONE_DRAW = Draws(0.7, None, is_one=True, repeats=FIVE)

SITUATIONS: Situations = {
    # The noisy cases were foretold.
    "Open, and the noisy cases are foretold": lambda: read_gate(foretold(), PAIRED),
    "Further repeats of the noisiest cases are in": lambda: read_gate(foretold(has_targeted=True), PAIRED),
    # Settled.
    "Nothing moved": lambda: read_gate(pinned()),
    "As many cases broke as were fixed": lambda: read_gate(pinned(4, 4)),
    "Eight cases were fixed": lambda: read_gate(pinned(n_fixed=8)),
    "A real drop of half a point": lambda: read_gate(pinned(4)),
    "Twice the tolerance": lambda: read_gate(pinned(16)),
    "A drop with one case fixed": lambda: read_gate(pinned(30, 1)),
    "A drop with cases fixed, too": lambda: read_gate(pinned(30, 4)),
    "One case of five broke": lambda: read_gate(pinned(1, n_cases=5)),
    "Both sides pass every case": lambda: read_gate(question(np.ones((N_CASES, 5)), np.ones((N_CASES, 5)))),
    "Both sides fail every case": lambda: read_gate(question(np.zeros((N_CASES, 5)), np.zeros((N_CASES, 5)))),
    "From every case right to every case wrong": lambda: read_gate(
        question(np.ones((N_CASES, 5)), np.zeros((N_CASES, 5)))
    ),
    "A small suite under a wide tolerance": lambda: read_gate(pinned(1, n_cases=8), LENIENT),
    "Eight repeats on both sides": lambda: read_gate(pinned(k=8)),
    "Twenty-five repeats on both sides": lambda: read_gate(pinned(k=25)),
    # Open.
    "Exactly at the tolerance": lambda: read_gate(pinned(8)),
    "Exactly at the tolerance, at the last look": lambda: read_gate(pinned(8, k=20)),
    "Near the tolerance, and the next look nearly always settles it": lambda: read_gate(pinned(7, n_cases=770)),
    "Cases flip by chance, and the last look may settle it": lambda: read_gate(scattered(5), PAIRED),
    "Cases flip by chance in batches": lambda: read_gate(
        scattered(5, setup_baseline=MIXED, setup_candidate=MIXED), PAIRED
    ),
    "Many cases flip by chance": lambda: read_gate(scattered(0, by=90), PAIRED),
    "Thirty cases": lambda: read_gate(pinned(n_cases=30)),
    "Twenty-five cases": lambda: read_gate(pinned(n_cases=25)),
    "One case": lambda: read_gate(pinned(n_cases=1)),
    # Noise of runs.
    "The candidate's runs range too widely": lambda: read_gate(noisy()),
    "Both sides' runs range too widely, in batches": lambda: read_gate(
        replace(noisy(setup_baseline=MIXED, setup_candidate=MIXED), baseline=noisy().candidate)
    ),
    "Runs that range widely, judged case by case": lambda: read_gate(noisy(), PAIRED),
    # Batch-invariant kernels that no certificate speaks of.
    "Nothing changed, and no certificate speaks of the candidate's kernels": lambda: read_gate(
        replace(pinned(), uncertified=[UNCERTIFIED])
    ),
    "Many cases flip, and no certificate speaks of either side's kernels": lambda: read_gate(
        scattered(uncertified=[{**UNCERTIFIED, "side": "baseline", "hosts": ["gpu-1"]}, UNCERTIFIED]), PAIRED
    ),
    "Sixteen cases broke, and no certificate speaks of the candidate's kernels": lambda: read_gate(
        replace(pinned(16), uncertified=[UNCERTIFIED])
    ),
    # Unlike load.
    "The candidate was decoded in larger batches": lambda: read_gate(loaded([{4: 80, 8: 720}], [{48: 80, 64: 720}])),
    "The candidate was decoded in larger batches, and both sides took turns": lambda: read_gate(
        replace(loaded([{4: 80, 8: 720}], [{48: 80, 64: 720}]), is_in_turn=True)
    ),
    "The candidate was decoded alone": lambda: read_gate(loaded([{12: 600, 16: 200}], [{1: 760, 2: 40}])),
    "The baseline was decoded in larger batches, and a drop stands": lambda: read_gate(
        loaded([{30: 400, 60: 400}], [{12: 800}], n_broken=40)
    ),
    "The candidate's server of others got more calls at once": lambda: read_gate(
        replace(loaded([{2: 8, 4: 792}], [{16: 15, 32: 785}]), loads_counted=CALLS)
    ),
    "The same where both sides took turns": lambda: read_gate(
        replace(loaded([{2: 8, 4: 792}], [{16: 15, 32: 785}]), loads_counted=CALLS, is_in_turn=True)
    ),
    "The batches of one side are a third larger than the other's": lambda: read_gate(loaded([{10: 800}], [{14: 800}])),
    "Whole runs move, and the sides took no turns": lambda: read_gate(wandering(), PAIRED),
    "The same of two logs": lambda: read_gate(
        replace(wandering(), setup_baseline=OF_LOG, setup_candidate=OF_LOG), PAIRED
    ),
    "The same after three repeats": lambda: read_gate(wandering(k=3), PAIRED),
    "A log says nothing of its batches": lambda: read_gate(logged(loaded([{}], [{64: 800}]), both=False)),
    # Copies.
    "All repeats of both sides are one answer given again": lambda: read_gate(copied(), PAIRED),
    "All repeats of the candidate are one answer given again, in a log": lambda: read_gate(
        logged(copied(sides=("candidate",))), PAIRED
    ),
    "The same, and an independent run gave others": lambda: read_gate(
        copied(sides=("candidate",), independent=["candidate"]), PAIRED
    ),
    "All repeats are equal, and nothing caches there": lambda: read_gate(
        copied(sides=(), assumed=["baseline", "candidate"]), PAIRED
    ),
    "A cold answer and four copies of the next": lambda: read_gate(
        copied(repeats=np.s_[2:], sides=("candidate",), first_differs=["candidate"]), PAIRED
    ),
    "Each side has three repeats, and they are one answer given again": lambda: read_gate(
        copied(repeats=np.s_[1:], k=3), PAIRED
    ),
    "Five of ten repeats are copies": lambda: read_gate(copied(repeats=np.s_[5:], sides=("candidate",), k=10), PAIRED),
    "Our own engine decoded the same batches again": lambda: read_gate(
        copied(draws_baseline=Draws(), draws_candidate=Draws(), setup_baseline=MIXED, setup_candidate=MIXED), PAIRED
    ),
    # Too few repeats.
    "One candidate run against five": lambda: read_gate(replace(pinned(4), candidate=pinned(4).candidate[:, :1])),
    "One run each": lambda: read_gate(question(runs(651, n_cases=N_CASES), runs(637, n_cases=N_CASES))),
    "One run each, and earlier runs measured the noise": lambda: read_gate(
        replace(pinned(4, k=1), early_baseline=EarlierNoise(20, 1.0), early_candidate=EarlierNoise(20, 1.0))
    ),
    "One run each, both from logs": lambda: read_gate(logged(pinned(4, k=1))),
    # Drawn answers.
    "Drawn by one seed on both sides": lambda: read_gate(drawn(SEED_42, SEED_42), PAIRED),
    "Drawn by two seeds": lambda: read_gate(drawn(SEED_42, SEED_43), PAIRED),
    "Drawn without seeds": lambda: read_gate(drawn(SEED_42, replace(SEED_42, seed=None), n_parted=200), PAIRED),
    "Drawn by one seed, but in other repeats": lambda: read_gate(
        drawn(SEED_42, replace(SEED_42, repeats=(1, 2, 3, 4, 6))), PAIRED
    ),
    "Drawn on a server that refuses the temperature, against a known one": lambda: read_gate(
        drawn(Draws(0.0, 42, repeats=FIVE, is_external=True), UNKNOWN_TEMPERATURE, n_parted=200), PAIRED
    ),
    "Both at an unknown temperature": lambda: read_gate(
        drawn(UNKNOWN_TEMPERATURE, UNKNOWN_TEMPERATURE, n_parted=200), PAIRED
    ),
    "Five repeats that are one draw": lambda: read_gate(drawn(ONE_DRAW, SEED_42), PAIRED),
    "Two sides whose repeats are one draw": lambda: read_gate(drawn(ONE_DRAW, ONE_DRAW), PAIRED),
    "Of four draws one is right less often": lambda: read_gate(sure(SEED_42), by("pass@4")),
    "Both of two draws are right more often": lambda: read_gate(sure(SEED_42), by("pass^2")),
    "Three draws, judged by pass@3": lambda: read_gate(sure(SEED_42, k=3), by("pass@3")),
    "Greedy runs, judged by pass@2": lambda: read_gate(sure(Draws()), by("pass@2")),
    "Scores between wrong and right, judged by pass@2": lambda: read_gate(graded(sure(SEED_42)), by("pass@2")),
    # Answers that are no draws.
    "Four repeats of five out of a cache": lambda: read_gate(marked("cached", np.s_[:, 1:])),
    "Answers out of a cache in some cases": lambda: read_gate(marked("cached", np.s_[:40, 1])),
    "Four repeats of five that a server of others gave out of a cache": lambda: read_gate(
        replace(marked("cached", np.s_[:, 1:]), setup_baseline=OBSERVED, setup_candidate=OBSERVED)
    ),
    "One answer out of a cache": lambda: read_gate(marked("cached", np.s_[0, 1])),
    "Nine cases answered by a fallback alone": lambda: read_gate(marked("fallback", np.s_[:9, :])),
    "One case answered by a fallback alone": lambda: read_gate(marked("fallback", np.s_[:1, :])),
    # Missing responses.
    "One response is missing": lambda: read_gate(missing((3, 2))),
    "Responses are missing, and a drop stands all the same": lambda: read_gate(missing((3, 2), (4, 2), n_broken=16)),
    "Three cases are missing, and they decide": lambda: read_gate(missing(n_broken=6, n_cases_lost=3)),
    "Nine cases of 800 are missing": lambda: read_gate(missing(n_cases_lost=9)),
    "No case has a score": lambda: read_gate(replace(pinned(), candidate=np.full((N_CASES, 5), NAN))),
    "A log has no score for 100 cases": lambda: read_gate(logged(missing(n_cases_lost=100), both=False)),
    # Size, and other cases than these.
    "Cases that come in nine groups": lambda: read_gate(grouped(12, 45, n_cases=405), PAIRED),
    "One group is more than five times as large as the others": lambda: read_gate(
        replace(grouped(0, 4), groups=["large"] * 24 + [f"group-{case // 4}" for case in range(776)]), PAIRED
    ),
    "Cases that come in groups": lambda: read_gate(grouped(12, 4), PAIRED),
    "All that broke is of one group": lambda: read_gate(grouped(5, 8), PAIRED),
    "A suite that resolves two points": lambda: read_gate(scattered(0, by=300), PAIRED),
    # What forbids comparing.
    "A log without its prompts": lambda: read_gate(asked_otherwise(unknown_prompts="7")),
    "The suite changed": lambda: read_gate(asked_otherwise(suite_version="colours v2", suite_digest="0" * 64)),
    "The scorer changed": lambda: read_gate(asked_otherwise(scorer_digest="0" * 64)),
    "The scorer changed, and a worker is to score the baseline by the candidate's": lambda: read_gate(
        replace(asked_otherwise(scorer_digest="0" * 64), setup_baseline=replace(ASKED, is_awaited=True))
    ),
    "The candidate's scorer judges both sides": lambda: read_gate(rescored(-1.25, 10)),
    "The candidate's scorer judges both sides, and nothing moved": lambda: read_gate(rescored(0.0, 0)),
    "The candidate's scorer judges both sides, of which one has two buckets": lambda: read_gate(rescored(None, 10)),
    "Another build answered as the judge": lambda: read_gate(judged_by(NEWER_JUDGE | NO_ANCHORS, NO_ANCHORS)),
    "Another build answered as the judge, and the anchors show no shift": lambda: read_gate(judged_by(NEWER_JUDGE)),
    "Another build answered as the judge, and the anchors moved": lambda: read_gate(
        judged_by(NEWER_JUDGE | MOVED_ANCHORS)
    ),
    "The judge moved": lambda: read_gate(judged_by(MOVED_ANCHORS)),
    "The judge moved, and scored the candidate first": lambda: read_gate(judged_by(MOVED_ANCHORS, {"order": 1})),
    "The baseline was judged again": lambda: read_gate(judged_again(2.5, 4)),
    "The baseline was judged again, and no score moved": lambda: read_gate(judged_again(0.0, 0)),
    "The candidate's noise is the judge's": lambda: read_gate(
        replace(noisy(setup_baseline=judged(sd_points=1.0), setup_candidate=judged(sd_points=1.0)))
    ),
    "A judge's server reports another build, and the anchors exclude a shift": lambda: read_gate(
        judged_by(NEWER_JUDGE | {"is_reported": True}, {"is_reported": True})
    ),
    "Only a server says that the judge is the same": lambda: read_gate(
        judged_by({"is_reported": True} | NO_ANCHORS, {"is_reported": True})
    ),
    "Only a server says that the judge is the same, and the anchors are too few": lambda: read_gate(
        judged_by(FEW_ANCHORS, FEW_ANCHORS)
    ),
    "The token limit and the stop texts changed": lambda: read_gate(asked_otherwise(max_tokens=8, stop=("\n",))),
    "The chat template changed": lambda: read_gate(served_otherwise(template_digest="0" * 64)),
    "Two batch classes served the candidate": lambda: read_gate(
        asked_otherwise(
            served=[
                replace(SERVED, backend="A", share=0.94),
                replace(SERVED, backend="B", share=0.06, fingerprint="f" * 64, batch_class="mixed"),
            ]
        )
    ),
    "Two backends of an external server served the candidate": lambda: read_gate(
        asked_otherwise(
            served=[
                replace(SERVED, backend="pool-a", share=0.93, batch_class="observed"),
                replace(SERVED, backend="pool-b", share=0.07, fingerprint="f" * 64, batch_class="observed"),
            ]
        )
    ),
    "Another engine served the same model": lambda: read_gate(served_otherwise(**NEWER)),
    "Another build of one engine served the same model": lambda: read_gate(
        replace(pinned(), setup_baseline=served(**SHIPPED), setup_candidate=served(**PATCHED))
    ),
    "The baseline has expired": lambda: read_gate(replace(pinned(), expired=EXPIRED)),
    "The baseline has expired by what a probe saw": lambda: read_gate(replace(pinned(), expired=EXPIRED_BY_PROBE)),
    "One bucket answered both sides, and bits of a pinned run differ": lambda: read_gate(
        replace(pinned(), computation=PINNED_APART)
    ),
    "One bucket answered both sides in turn, and they are two computations": lambda: read_gate(
        replace(served_by_one("mixed"), is_in_turn=True), PAIRED
    ),
    "One bucket answered both sides one after the other, and they lie apart": lambda: read_gate(
        served_by_one("mixed"), PAIRED
    ),
    "One side was batched": lambda: read_gate(served_otherwise(batch_class="mixed")),
    "Model and engine changed at once": lambda: read_gate(
        served_otherwise(weights_digest="0" * 64, model_name="paint-2b", **NEWER)
    ),
    "Nobody knows what served": lambda: read_gate(served_otherwise(fingerprint="")),
    # What is allowed, and said beside it.
    "Other weights with another template": lambda: read_gate(
        served_otherwise(weights_digest="0" * 64, template_digest="0" * 64)
    ),
    "An engine upgrade is what is judged": lambda: read_gate(served_otherwise("stack", **NEWER)),
    "An engine upgrade is judged against an expired baseline": lambda: read_gate(
        replace(served_otherwise("stack", **NEWER), expired=EXPIRED)
    ),
    "An upgrade is judged, and nothing was upgraded": lambda: read_gate(replace(pinned(), treatment="stack")),
    "An upgrade is judged, and the model is another": lambda: read_gate(
        served_otherwise("stack", weights_digest="0" * 64, model_name="paint-2b")
    ),
    "An upgrade is judged in batches": lambda: read_gate(served_otherwise("stack", **NEWER, batch_class="mixed")),
    "Two hosted models are judged as services": lambda: read_gate(
        served_otherwise("service", weights_digest="0" * 64, model_name="paint-2b", **NEWER)
    ),
    "A prompt is judged": lambda: read_gate(prompted()),
    "A prompt is judged, and some cases have no partner": lambda: read_gate(
        prompted(n_changed=700, n_alone_baseline=40, n_alone_candidate=12, n_other_target=3, n_repeated=2)
    ),
    "A prompt is judged by equal ids": lambda: read_gate(prompted(pair_by="id", n_other_input=800)),
    "A prompt is judged by equal ids, and the inputs are equal too": lambda: read_gate(prompted(pair_by="id")),
    "A prompt is judged against itself": lambda: read_gate(prompted(n_changed=0)),
    "A prompt is judged, and the model is another one": lambda: read_gate(
        replace(prompted(), setup_candidate=served(weights_digest="0" * 64, model_name="paint-2b"))
    ),
    "A prompt is judged, and the engine is another one": lambda: read_gate(
        replace(prompted(), setup_candidate=served(**NEWER))
    ),
    "Two logs with another prompt, of an unknown stack": lambda: read_comparison(
        served(fingerprint=""), served(fingerprint=""), "prompt", prompts=COUNTS
    ),
    "Two engines compared, in batches": lambda: read_comparison(
        served(batch_class="observed"), served(**NEWER, batch_class="observed"), "stack"
    ),
    "Two engines compared, batched otherwise": lambda: read_comparison(
        ASKED, served(**NEWER, batch_class="mixed"), "stack"
    ),
    "Two logs with some of the same cases": lambda: read_comparison(
        replace(ASKED, n_cases=60, is_logged=True),
        replace(ASKED, suite_digest="0", n_cases=50, is_logged=True),
        "model",
        n_shared=40,
    ),
    "Two versions of a suite with some of the same cases": lambda: read_comparison(
        replace(ASKED, n_cases=60),
        replace(ASKED, suite_version="colours v2", suite_digest="0", n_cases=61),
        "model",
        n_shared=60,
    ),
    "Two logs of the same cases with other limits": lambda: read_comparison(
        replace(ASKED, n_cases=60, is_logged=True),
        replace(ASKED, suite_digest="0", n_cases=60, is_logged=True),
        "model",
        n_shared=60,
    ),
    "A prompt that changed alike": lambda: read_prompts(**COUNTS, n_read=200, n_changes=1),
    "A prompt that changed alike in some cases": lambda: read_prompts(
        **{**COUNTS, "n_changed": 12}, n_read=12, n_changes=1
    ),
    "Prompts that changed in many ways": lambda: read_prompts(
        **COUNTS, n_read=200, n_changes=31, changes=[{"n_cases": 120}]
    ),
    "A service is judged against itself": lambda: read_gate(replace(pinned(), treatment="service")),
    "Nobody knows what served, and both sides took turns within the window": lambda: read_gate(
        replace(
            served_otherwise("service", fingerprint=""),
            is_in_turn=True,
            span_hours=1.5,
            canaries=({"endpoint": "mini", "state": "stable"}, {"endpoint": "mini-2", "state": "changed"}),
        ),
        PAIRED,
    ),
    "Both sides took turns, and no canary was run": lambda: read_gate(
        replace(served_otherwise(fingerprint=""), is_in_turn=True, span_hours=7.0), PAIRED
    ),
    "Two names on a stack that logs report": lambda: read_gate(
        replace(
            served_otherwise(**REPORTED | {"named": "paint-2b", "model_name": "paint-2b"}),
            setup_baseline=served(**REPORTED),
        )
    ),
}
