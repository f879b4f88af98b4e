"""Two runs of a suite, simulated, and what the verdict says of them: the error rates of docs/verdict.md.

A case passes with a chance of its own: nearly all always or never, a share of *unstable* ones with a chance drawn
from 0 to 1. The candidate's chances are the baseline's but for cases that are broken or fixed for good, so that the
true difference on these cases is known exactly. Repeats are draws. Run scores of `pinned` have a standard deviation
of 0.11 points and of `batched` of 0.48, both at 800 cases.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.run import Draws
from evalboard.core.compare import ServedShare, SideSetup
from evalboard.core.release import GateQuestion, judge_gate
from evalboard.core.release.gate_verdict import GateVerdict
from evalboard.core.stats import Marks, make_mark, normal_quantile, student_quantile
from evalboard.core.suite import DEFAULT_POLICIES, PolicySettings, parse_policy

SEED = 20261121
N_CASES = 800
PASSING = 0.8  # of the stable cases
MINUS = "−"
FALSE_NO_SHIP = 0.01  # at most, where nothing has changed
CHURN = 0.02  # of the cases change for good beside the drop, as many broken as fixed

Scores = NDArray[np.float64]
STRICT, PAIRED = (parse_policy(DEFAULT_POLICIES[slug]["settings"]) for slug in ("strict", "paired"))
SETTLED = ("ship", "no_ship")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """An error rate that a page promises.

    n, n_in_tests: situations that the bench simulates, and the tests. at_most, at_least: the share that is promised.
    """

    situation: str
    says: str
    n: int = 1000
    n_in_tests: int = 60
    at_most: float | None = None
    at_least: float | None = None

    @property
    def aim(self) -> str:
        if self.at_most is not None:
            return f"at most {100 * self.at_most:g} %"
        return "" if self.at_least is None else f"at least {100 * self.at_least:g} %"

    def is_kept(self, share: float) -> bool:
        return (self.at_most is None or share <= self.at_most) and (self.at_least is None or share >= self.at_least)


@dataclass(frozen=True, slots=True)
class Regime:
    """How responses come about. unstable: share of cases. run_shift: standard deviation in points by which whole runs
    move beside that, as some cases, others in each run, pass or fail together. cached: share of a case's answers after
    its first that a cache gives, which is the first once more; is_marked: the log says of which. is_redrawn: unstable
    cases have another chance on the candidate's side, so that the true difference lies about the one that is asked for.
    """

    name: str
    unstable: float
    run_shift: float = 0.0
    cached: float = 0.0
    is_marked: bool = True
    is_redrawn: bool = False


PINNED = Regime("pinned", 0.006)
REDRAWN = Regime("pinned, unstable cases of another chance", 0.006, is_redrawn=True)
BATCHED = Regime("batched", 0.112)
SHIFTED = Regime("batched, whole runs shifted by 0.7 points", 0.112, 0.7)
CACHED = Regime("batched, 8 % of later answers cached", 0.112, cached=0.08)
ALL_CACHED = Regime("batched, all later answers cached", 0.112, cached=1.0)
UNMARKED = Regime("batched, all later answers cached and not marked", 0.112, cached=1.0, is_marked=False)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two sides' repeats, float64[n_cases, k] each, their answers' marks, and the true difference in points."""

    baseline: Scores
    candidate: Scores
    difference: float
    marks_baseline: Marks | None = None
    marks_candidate: Marks | None = None

    def at(self, k: int) -> "Pair":
        """The first k repeats of each side."""
        ours, theirs = (None if side is None else side[:, :k] for side in (self.marks_baseline, self.marks_candidate))
        return Pair(self.baseline[:, :k], self.candidate[:, :k], self.difference, ours, theirs)

    @property
    def draws(self) -> tuple[Draws, Draws]:
        """What the repeats of each side are; greedy ones measure the engine."""
        return Draws(), Draws()

    @property
    def setups(self) -> tuple[SideSetup, SideSetup]:
        """How both sides were asked and served."""
        return asked("a"), asked("b")


def pairs(
    n: int,
    regime: Regime,
    *,
    difference: float = 0.0,
    churn: float = CHURN,
    k: int = 5,
    n_cases: int = N_CASES,
    seed: int = SEED,
) -> Iterator[Pair]:
    """n pairs of runs of k repeats, each of a suite of its own. difference: true one, in points, a whole number of
    cases.
    """
    rng = np.random.default_rng(seed)
    n_broken = round(-difference * n_cases / 100)
    if abs(n_broken + difference * n_cases / 100) > 1e-9:
        raise ValueError(f"{difference} points are no whole number of {n_cases} cases")
    for _ in range(n):
        chances = draw_chances(rng, regime, n_cases)
        changed = change_cases(rng, chances, n_broken, churn=churn)
        if regime.is_redrawn:
            is_unstable = (chances > 0) & (chances < 1)
            changed[is_unstable] = rng.random(int(is_unstable.sum()))
        sides = [draw_repeats(rng, each, regime, k) for each in (chances, changed)]
        if not regime.cached:
            yield Pair(sides[0], sides[1], difference)
            continue
        cached = [_cached(rng, each, regime) for each in sides]
        marks = [each[1] if regime.is_marked else None for each in cached]
        yield Pair(cached[0][0], cached[1][0], difference, marks[0], marks[1])


def judge(pair: Pair, settings: PolicySettings = PAIRED, *, are_apart: bool = False) -> GateVerdict:
    """The verdict on all repeats of a pair, both sides served alike.

    are_apart: they were batched as cases came, one side after the other, and their hours are known.
    """
    n_cases = len(pair.baseline)
    ours, theirs = (asked("a", "mixed"), asked("b", "mixed")) if are_apart else pair.setups
    question = GateQuestion(
        case_ids=[f"case-{index}" for index in range(n_cases)],
        groups=[""] * n_cases,
        baseline=pair.baseline,
        candidate=pair.candidate,
        setup_baseline=ours,
        setup_candidate=theirs,
        are_apart=are_apart,
        draws_baseline=pair.draws[0],
        draws_candidate=pair.draws[1],
        marks_baseline=pair.marks_baseline,
        marks_candidate=pair.marks_candidate,
    )
    return judge_gate(question, settings)


def follow(pair: Pair, settings: PolicySettings = PAIRED, *, are_apart: bool = False) -> GateVerdict:
    """The verdict of the first look that settles it, as a person would who adds repeats to the next look; else that
    of the last.
    """
    found = judge(pair.at(settings.looks[0]), settings, are_apart=are_apart)
    for look in settings.looks[1:]:
        if found.verdict in SETTLED or look > pair.baseline.shape[1]:
            break
        found = judge(pair.at(look), settings, are_apart=are_apart)
    return found


def asked(weights: str, batch_class: str = "alone") -> SideSetup:
    """How both sides were asked; only the weights, a letter here, are each side's own."""
    served = ServedShare(
        model_name=f"model {weights}",
        weights_digest=weights * 64,
        template_digest="7" * 64,
        fingerprint="f" * 64,
        manifest={"versions": {"vllm": "0.32.0"}, "engine": {"dtype": "bfloat16"}},
        batch_class=batch_class,
        share=1.0,
    )
    return SideSetup(
        suite_version="simulated v1",
        suite_digest="5" * 64,
        scorer_digest="c" * 64,
        max_tokens=64,
        stop=(),
        sampling={"temperature": 0.0},
        served=[served],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An error rate that docs/verdict.md promises: in how many of such pairs something holds.

    look: of the verdict, which is taken there at once; None for the first look that settles it. at_most, at_least: the
    share promised, both None for what is only told.
    """

    regime: Regime
    difference: float
    look: int | None
    says: str
    holds: Callable[[GateVerdict, float], bool]
    settings: PolicySettings = PAIRED
    at_most: float | None = None
    at_least: float | None = None

    @property
    def situation(self) -> str:
        moved = "no change" if not self.difference else f"true change of {MINUS}{-self.difference:g}"
        when = f"at k = {self.look}" if self.look else "by k = 20"
        return f"{self.regime.name}, {moved}, {self.settings.rule}, {when}"

    @property
    def aim(self) -> str:
        if self.at_most is not None:
            return f"at most {100 * self.at_most:g} %"
        return "" if self.at_least is None else f"at least {100 * self.at_least:g} %"

    def measure(self, n: int, *, seed: int = SEED) -> float:
        """The share of n simulated pairs in which it holds."""
        made = pairs(n, self.regime, difference=self.difference, k=self.look or self.settings.looks[-1], seed=seed)
        verdicts = (judge(pair, self.settings) if self.look else follow(pair, self.settings) for pair in made)
        return sum(self.holds(found, self.difference) for found in verdicts) / n

    def is_kept(self, share: float) -> bool:
        return (self.at_most is None or share <= self.at_most) and (self.at_least is None or share >= self.at_least)


def _is(word: str) -> Callable[[GateVerdict, float], bool]:
    return lambda found, _: found.verdict == word


def _covers(found: GateVerdict, true: float) -> bool:
    """Whether the 90 % interval holds the true change; the verdict's own is of another level, and wider by a factor."""
    if found.difference is None or found.high is None or found.alpha is None:
        return False
    df = found.k_baseline + found.k_candidate - 2
    quantile = normal_quantile if found.method == "flips" else lambda level: student_quantile(level, df)
    half = (found.high - found.difference) * quantile(0.95) / quantile(1 - found.alpha)
    return abs(true - found.difference) <= half


CLAIMS = (
    Claim(regime=PINNED, difference=-1.0, look=None, says="ship", holds=_is("ship"), at_most=0.06),
    Claim(regime=BATCHED, difference=-1.0, look=None, says="ship", holds=_is("ship"), at_most=0.06),
    Claim(regime=PINNED, difference=0.0, look=None, says="no-ship", holds=_is("no_ship"), at_most=FALSE_NO_SHIP),
    Claim(regime=BATCHED, difference=0.0, look=None, says="no-ship", holds=_is("no_ship"), at_most=FALSE_NO_SHIP),
    Claim(regime=PINNED, difference=0.0, look=5, says="ship", holds=_is("ship"), at_least=0.99),
    Claim(regime=BATCHED, difference=-2.0, look=5, says="no-ship", holds=_is("no_ship"), at_least=0.82),
    Claim(regime=BATCHED, difference=-2.0, look=None, says="no-ship", holds=_is("no_ship"), at_least=0.98),
    Claim(regime=SHIFTED, difference=0.0, look=5, says="the 90 % interval covers it", holds=_covers, at_least=0.88),
    Claim(regime=SHIFTED, difference=-1.0, look=5, says="ship", holds=_is("ship"), at_most=0.06),
    Claim(regime=CACHED, difference=-1.0, look=5, says="ship", holds=_is("ship"), at_most=0.06),
    Claim(regime=CACHED, difference=0.0, look=5, says="the 90 % interval covers it", holds=_covers, at_least=0.88),
    Claim(regime=ALL_CACHED, difference=-1.0, look=5, says="inconclusive", holds=_is("inconclusive"), at_least=1.0),
    Claim(regime=UNMARKED, difference=-1.0, look=5, says="ship", holds=_is("ship")),
    Claim(regime=BATCHED, difference=0.0, look=5, says="ship", holds=_is("ship")),
    Claim(regime=BATCHED, difference=0.0, look=None, says="ship", holds=_is("ship")),
    Claim(
        regime=BATCHED,
        difference=0.0,
        look=5,
        says="inconclusive",
        holds=_is("inconclusive"),
        settings=STRICT,
    ),
    Claim(
        regime=BATCHED,
        difference=0.0,
        look=None,
        says="inconclusive",
        holds=_is("inconclusive"),
        settings=STRICT,
    ),
    Claim(regime=PINNED, difference=0.0, look=5, says="ship", holds=_is("ship"), settings=STRICT),
)


def draw_chances(rng: np.random.Generator, regime: Regime, n_cases: int) -> Scores:
    chances = (rng.random(n_cases) < PASSING).astype(np.float64)
    n_unstable = rng.binomial(n_cases, regime.unstable)
    chances[rng.permutation(n_cases)[:n_unstable]] = rng.random(n_unstable)
    return chances


def change_cases(rng: np.random.Generator, chances: Scores, n_broken: int, *, churn: float = CHURN) -> Scores:
    """n_broken more broken than fixed, and `churn` beside them; stable cases only, so that the difference is exact."""
    n_beside = round(churn * len(chances) / 2)
    passing, failing = (rng.permutation(np.flatnonzero(chances == value)) for value in (1.0, 0.0))
    changed = chances.copy()
    changed[passing[: n_beside + max(n_broken, 0)]] = 0.0
    changed[failing[: n_beside + max(-n_broken, 0)]] = 1.0
    return changed


def _cached(rng: np.random.Generator, scores: Scores, regime: Regime) -> tuple[Scores, Marks]:
    """The scores where a cache gives a case's first answer once more, and the marks of those answers."""
    is_cached = rng.random(scores.shape) < regime.cached
    is_cached[:, 0] = False
    marks = np.where(is_cached, make_mark(["cached"]), 0).astype(np.uint8)
    return np.where(is_cached, scores[:, :1], scores), marks


def draw_repeats(rng: np.random.Generator, chances: Scores, regime: Regime, k: int) -> Scores:
    scores = (rng.random((len(chances), k)) < chances[:, None]).astype(np.float64)
    for repeat in range(k) if regime.run_shift else ():
        shift_repeat(rng, scores, repeat, rng.normal(0.0, regime.run_shift))
    return scores


def shift_repeat(rng: np.random.Generator, scores: Scores, repeat: int, points: float) -> None:
    """Move a repeat's score by so many points, in place: cases at random fail, or pass, that did not."""
    n_moved = round(points * len(scores) / 100)
    movable = np.flatnonzero(scores[:, repeat] == (0.0 if n_moved > 0 else 1.0))
    scores[rng.permutation(movable)[: abs(n_moved)], repeat] = 1.0 if n_moved > 0 else 0.0
