"""Pairs of runs at the edges: coins behind servers that do as they like, and faults on one side (docs/verdict.md).

A coin is a model that passes each case of a suite with one chance, whatever temperature is sent. Its server refuses the
temperature, drops it, or was found to ignore it, and honours the seed of a call or not. What is known of its settings
is read as for any run, and so is what an ending means.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bench.simulated import PINNED, SEED, Pair, Scores, follow, judge, pairs
from bench.simulated_draws import sample_by_seed
from evalboard.contract.facts import SettingCheck, SettingFact, SettingsSeen
from evalboard.contract.run import Draws
from evalboard.core.compare import SideSetup
from evalboard.core.profile import OBSERVED, call_seed, find_temperature, list_setting_facts, select_compared
from evalboard.core.release.gate_verdict import GateVerdict
from evalboard.core.trace import ENDINGS, Ending, read_ending

N_CASES, MAX_REPEATS = 100, 20
WANTED = {"temperature": 0.0, "top_p": 1.0, "seed": 42}
REFUSES, DROPS, IGNORES = "refuses the temperature", "drops the temperature", "ignores the temperature"
FAIR, SLIGHTLY_WORSE, WORSE = 0.5, 0.49, 0.35
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Server:
    """What a server makes of the settings of a call."""

    temperature: str
    honours_seed: bool

    @property
    def name(self) -> str:
        return f"{self.temperature}, {'honours' if self.honours_seed else 'ignores'} the seed"

    @property
    def facts(self) -> tuple[SettingFact, ...]:
        """What is known of a run's settings: of refused calls, or by a check. What is dropped is not seen."""
        n_answers = N_CASES * MAX_REPEATS
        left_out = {"temperature": n_answers} if self.temperature == REFUSES else {}
        check = SettingCheck.from_stored({"state": "ignored", "probe": "1", "at": "2026-11-26T00:00:00Z"})
        checked = {"temperature": check} if self.temperature == IGNORES else {}
        seen = SettingsSeen(n_answers=n_answers, n_left_out=left_out, checked=checked)
        return list_setting_facts(WANTED, is_external=True, is_logged=False, seen=seen)

    def answer(self, rng: np.random.Generator, chance: float) -> Scores:
        """Return the scores of one coin: float64[N_CASES, MAX_REPEATS]."""
        server = rng.integers(2**63, dtype=np.uint64)
        values = sample_by_seed(_sent_seeds(), server) if self.honours_seed else rng.random((N_CASES, MAX_REPEATS))
        return (values < chance).astype(np.float64)


SERVERS = tuple(Server(temperature, honours) for temperature in (REFUSES, DROPS, IGNORES) for honours in (True, False))


@dataclass(frozen=True, eq=False)
class CoinPair(Pair):
    """Two coins behind servers of one kind."""

    server: Server = SERVERS[0]

    def at(self, k: int) -> "CoinPair":
        return replace(self, baseline=self.baseline[:, :k], candidate=self.candidate[:, :k])

    @property
    def draws(self) -> tuple[Draws, Draws]:
        repeats = tuple(range(1, self.baseline.shape[1] + 1))
        drawn = Draws(find_temperature(self.server.facts), 42, repeats=repeats, is_external=True)
        return drawn, drawn

    @property
    def setups(self) -> tuple[SideSetup, SideSetup]:
        ours, theirs = (
            replace(
                setup,
                sampling=select_compared(self.server.facts),
                served=[
                    replace(
                        setup.served[0],
                        weights_digest="",
                        named=name,
                        manifest={"source": {"system_fingerprint": "fp_1"}},
                        batch_class=OBSERVED,
                    )
                ],
            )
            for name, setup in zip(("coin a", "coin b"), super().setups, strict=True)
        )
        return ours, theirs


def coin_pairs(n: int, server: Server, *, chance: float = FAIR, seed: int = SEED) -> Iterator[CoinPair]:
    """n pairs of coins: a fair one against one with this chance."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield CoinPair(server.answer(rng, FAIR), server.answer(rng, chance), 100 * (chance - FAIR), server=server)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinClaim:
    """What docs/verdict.md promises of coins behind a server; look as in simulated.Claim."""

    server: Server
    chance: float
    look: int | None
    says: str
    holds: Callable[[GateVerdict, float], bool]
    at_most: float | None = None
    at_least: float | None = None

    @property
    def situation(self) -> str:
        points = round(100 * (FAIR - self.chance))
        coins = f"coins {points} point{'s' * (points > 1)} apart" if points else "equal coins"
        return f"{self.server.name}: {coins}, {f'at k = {self.look}' if self.look else 'by k = 20'}"

    @property
    def aim(self) -> str:
        return f"at most {self.at_most:.0%}" if self.at_most is not None else f"at least {self.at_least or 0:.0%}"

    def measure(self, n: int, *, seed: int = SEED) -> float:
        """The share of n simulated pairs in which it holds."""
        made = coin_pairs(n, self.server, chance=self.chance, seed=seed)
        verdicts = ((judge(pair.at(self.look)) if self.look else follow(pair), pair.difference) for pair in made)
        return sum(self.holds(*each) for each in verdicts) / n

    def is_kept(self, share: float) -> bool:
        return (self.at_most is None or share <= self.at_most) and (self.at_least is None or share >= self.at_least)


def _covers(found: GateVerdict, true: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= true <= found.high


def _is(word: str) -> Callable[[GateVerdict, float], bool]:
    return lambda found, _: found.verdict == word


def _list_claims(server: Server) -> tuple[CoinClaim, ...]:
    covers, no_ship = "the 94 % interval covers it", "no-ship"
    return (
        CoinClaim(server=server, chance=FAIR, look=None, says=no_ship, holds=_is("no_ship"), at_most=0.05),
        CoinClaim(server=server, chance=SLIGHTLY_WORSE, look=None, says="ship", holds=_is("ship"), at_most=0.06),
        CoinClaim(server=server, chance=FAIR, look=5, says=covers, holds=_covers, at_least=0.93),
        CoinClaim(server=server, chance=WORSE, look=None, says=no_ship, holds=_is("no_ship"), at_least=0.8),
    )


CLAIMS = tuple(claim for server in SERVERS for claim in _list_claims(server))

Break = Callable[[np.random.Generator, Scores, float], Bools]


def _lose_calls(rng: np.random.Generator, scores: Scores, share: float) -> Bools:
    return rng.random(scores.shape) < share


def _lose_right_ones(rng: np.random.Generator, scores: Scores, share: float) -> Bools:
    """Only answers that are right: they are the longer ones."""
    return (rng.random(scores.shape) < share) & (scores == 1.0)


def _refuse_prompts(rng: np.random.Generator, scores: Scores, share: float) -> Bools:
    is_refused = rng.random(len(scores)) < share
    return np.broadcast_to(is_refused[:, None], scores.shape)


def _die(rng: np.random.Generator, scores: Scores, share: float) -> Bools:
    """From some call on none is answered; calls go repeat by repeat."""
    order = np.arange(scores.size).reshape(scores.shape[::-1]).T
    return order >= round((1 - share) * scores.size)


BROKEN_OFF = "answers that the server broke off"
FAULTS: dict[str, Break] = {
    BROKEN_OFF: _lose_right_ones,
    "lost calls": _lose_calls,
    "prompts that a provider's filter refuses": _refuse_prompts,
    "a provider that dies midway": _die,
}


@dataclass(frozen=True, eq=False)
class FaultyPair:
    """A pair of runs, and the same with a fault on one side."""

    fault: str
    whole: Pair
    faulty: Pair

    @property
    def right(self) -> str:
        return "no_ship" if self.whole.difference else "ship"


def faulty_pairs(n: int, *, seed: int = SEED) -> Iterator[FaultyPair]:
    """n pairs whose verdict is clear, half of them without a change and half with a drop of 5 points, each with a
    fault in up to 60 % of one side.
    """
    rng = np.random.default_rng(seed)
    made = [pairs(n, PINNED, difference=difference, n_cases=400, seed=seed) for difference in (0.0, -5.0)]
    words = ENDINGS[Ending.FAILED]
    for at in range(n):
        whole = next(made[at % 2])
        fault = [*FAULTS][at // 2 % len(FAULTS)]
        name = str(rng.choice(["baseline", "candidate"]))
        scores = getattr(whole, name)
        is_hit = FAULTS[fault](rng, scores, float(0.6 * rng.random() ** 3))
        # What was written of an answer that is broken off would score 0, if its ending did not say so.
        is_scored = fault == BROKEN_OFF and read_ending(str(rng.choice(words))) is not Ending.FAILED
        yield FaultyPair(fault, whole, replace(whole, **{name: np.where(is_hit, 0.0 if is_scored else np.nan, scores)}))


def count_verdicts(n: int, *, seed: int = SEED) -> tuple[dict[str, Counter[str]], int]:
    """Return by fault how many verdicts are right, wrong and inconclusive, and how many of all are right without it."""
    counts: dict[str, Counter[str]] = {fault: Counter() for fault in FAULTS}
    n_right = 0
    for pair in faulty_pairs(n, seed=seed):
        found = judge(pair.faulty).verdict
        counts[pair.fault][found if found == "inconclusive" else "right" if found == pair.right else "wrong"] += 1
        n_right += judge(pair.whole).verdict == pair.right
    return counts, n_right


@cache
def _sent_seeds() -> NDArray[np.uint64]:
    """Return the seed of each call: uint64[N_CASES, MAX_REPEATS]."""
    sent = [
        [
            call_seed(WANTED, run_seed=42, repeat=repeat, case_id=f"case-{case}", is_external=True)
            for repeat in range(1, MAX_REPEATS + 1)
        ]
        for case in range(N_CASES)
    ]
    return np.array(sent, np.uint64)
