"""Pairs of runs on which the rules say each of the four words: for tests of releases from end to end.

The suite has 8 cases, which under a tolerance of 15 points is enough for 5 repeats to settle something.
"""

from collections.abc import Sequence
from typing import Any

from runs.catalogue import create_policy, store_default_policies
from runs.models import EngineProcess, PolicyRecord, RunRecord, SuiteVersionRecord
from tests import build

N_CASES, REPEATS = 8, 5
WORSE = "e" * 64  # the weights of a model that answers otherwise: one bucket gives one answer
LENIENT = {"rule": "paired", "tolerance_points": 15.0}


def suite(slug: str = "colours") -> SuiteVersionRecord:
    return build.suite(slug, case_ids=[f"case-{number:02}" for number in range(N_CASES)])


def policy() -> PolicyRecord:
    """`lenient`, beside the two that every installation has."""
    store_default_policies()
    return create_policy(slug="lenient", title="Lenient", settings=LENIENT)[0]


def run(
    n_right: int = N_CASES,
    *,
    by: EngineProcess | None = None,
    repeats: int = REPEATS,
    version: SuiteVersionRecord | None = None,
) -> RunRecord:
    """A finished run in which the same cases are right in every repeat; one with others wrong is of other weights."""
    if by is None and n_right < N_CASES:
        by = build.process(build.bucket(weights=WORSE))
    return build.finished_run(*[answers(n_right)] * repeats, by=by, version=version or suite())


def answers(n_right: int) -> Sequence[str]:
    return ("blue",) * n_right + ("red",) * (N_CASES - n_right)


def open_run(**changes: Any) -> RunRecord:
    """Against a run in which every case is right, inconclusive at 5 repeats; further ones would settle it."""
    texts = [answers(N_CASES - 2 if repeat == 0 else N_CASES) for repeat in range(REPEATS)]
    return build.finished_run(*texts, version=suite(), **changes)
