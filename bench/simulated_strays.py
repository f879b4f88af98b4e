"""How often simulated repeats are said to be of two computations, and which answers are then listed."""

from dataclasses import dataclass

import numpy as np

from bench.simulated_shifts import SEED, Stack, routed_tables
from evalboard.core.stats import FAR_FLOORS, assume_logit_sd, find_strays

ROUTED = 0.06  # of the answers


@dataclass(frozen=True, slots=True)
class Served:
    """Runs of n_cases cases and so many repeats, of which a share was routed to a build whose D is `shift` nats off.

    n: how many runs the bench simulates.
    """

    name: str
    stack: Stack
    n_cases: int = 100
    repeats: int = 5
    routed: float = 0.0
    shift: float = 0.33
    n: int = 200

    def measure(self, n: int) -> "Found":
        rng = np.random.default_rng(SEED)
        far = FAR_FLOORS * assume_logit_sd(self.stack.dtype)
        counts = np.zeros(4)
        for _ in range(n):
            tables, is_routed = routed_tables(
                self.stack, self.repeats, rng, n_cases=self.n_cases, routed=self.routed, shift=self.shift
            )
            strays = find_strays(tables, far=far)
            is_listed = np.zeros_like(is_routed)
            for place in strays.places if strays else ():
                is_listed[place] = True
            counts += [
                strays is not None,
                (is_listed & is_routed).sum() if strays else 0,
                is_routed.sum() if strays else 0,
                (is_listed & ~is_routed).sum(),
            ]
        found, right, there, wrong = counts.tolist()
        return Found(found / n, right / max(there, 1), wrong / n)


@dataclass(frozen=True, slots=True)
class Found:
    """share: of the runs that are said to be of two computations; listed: of the routed answers of these, those that
    are listed; wrong: answers a run that are listed and were not routed.
    """

    share: float
    listed: float
    wrong: float


CPU = "float32 on CPU"
SPREAD = "larger or smaller by"
OF_ONE_RUNS = 10_000  # ten of which may be said to be of two
OF_LARGE_RUNS = 3000  # where none is, fewer than 0.1 % are
LARGE = 600  # cases
ONE = tuple(
    Served(
        f"one computation, {name}",
        stack,
        repeats=k,
        n_cases=n_cases,
        n=OF_LARGE_RUNS if n_cases == LARGE else OF_ONE_RUNS,
    )
    for name, stack, n_cases, k in (
        ("noise alike", Stack(0.03), 100, 5),
        ("noise alike, 3 repeats", Stack(0.03), 100, 3),
        ("noise alike, 600 cases", Stack(0.03), LARGE, 5),
        ("noise of 0.005 nats", Stack(0.005), 100, 5),
        (f"noise {SPREAD} case (e to the 0.5)", Stack(0.03, spread=0.5), 100, 5),
        (f"noise {SPREAD} case (e to the 1)", Stack(0.03, spread=1.0), 100, 5),
        (f"noise {SPREAD} case (e to the 1), 3 repeats", Stack(0.03, spread=1.0), 100, 3),
        (f"noise {SPREAD} position (e to the 1)", Stack(0.03, unevenness=1.0), 100, 5),
        ("noise that stays along the answer, 3 repeats", Stack(0.03, memory=0.9), 100, 3),
        ("9 repeats of 10 are the same to the bit", Stack(0.03, share=0.1), 100, 5),
        ("repeats of 8 cases in 10 are the same to the bit", Stack(0.03, alike=0.8), 100, 5),
        ("rounding of float32", Stack(1e-6, dtype=CPU), 100, 5),
        ("rounding of float32 in 1 repeat of 10", Stack(1e-6, share=0.1, dtype=CPU), 100, 5),
    )
)
TWO = (
    *(Served(f"6 % routed, {n} cases", Stack(0.03), n_cases=n, routed=ROUTED) for n in (40, 100, 600)),
    Served("6 % routed, 100 cases, 3 repeats", Stack(0.03), repeats=3, routed=ROUTED),
    Served("6 % routed, 100 cases, no noise", Stack(0.0), routed=ROUTED),
    *(
        Served(
            f"6 % routed, 100 cases, {shift:g} nats off, noise of {noise:g}", Stack(noise), routed=ROUTED, shift=shift
        )
        for shift, noise in ((0.2, 0.03), (0.1, 0.005), (0.05, 0.005))
    ),
    Served(
        "6 % routed, 100 cases, 0.05 nats off, float32",
        Stack(1e-5, dtype="float32"),
        routed=ROUTED,
        shift=0.05,
    ),
)
SITUATIONS = (*ONE, *TWO)
