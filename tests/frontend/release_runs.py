"""Runs to be judged: two sides of one suite whose cases pass and fail as a test says, and the policies to judge by."""

from collections.abc import Sequence
from typing import Any

from runs.catalogue import create_policy, store_default_policies
from runs.models import EngineProcess, ReleaseRecord, RunRecord, SuiteVersionRecord
from runs.release import create_release
from tests import build
from tests.judged import WORSE

N_CASES = 30
REPEATS = 5
WIDE = {"rule": "paired", "tolerance_points": 5.0, "guard_points": 5.0}


def suite(slug: str = "colours", n_cases: int = N_CASES) -> SuiteVersionRecord:
    return build.suite(slug, [f"case-{n:03}" for n in range(n_cases)])


def run(
    of: SuiteVersionRecord,
    *,
    by: EngineProcess,
    n_failed: int = 0,
    unstable: Sequence[int] = (),
    repeats: int = REPEATS,
    **changes: Any,
) -> RunRecord:
    """A finished run whose last `n_failed` cases fail in every repeat, and the `unstable` ones in every odd one."""
    texts = [
        [_text(of.n_cases - case <= n_failed or (case in unstable and repeat % 2)) for case in range(of.n_cases)]
        for repeat in range(1, repeats + 1)
    ]
    return build.finished_run(*texts, version=of, by=by, **changes)


def _text(is_wrong: bool) -> str:
    return "red" if is_wrong else "blue"


def worse() -> EngineProcess:
    """What serves a model of other weights: one bucket gives one answer."""
    return build.process(build.bucket(weights=WORSE))


def policies() -> None:
    """The defaults, and `wide`, under which 30 cases can be settled."""
    store_default_policies()
    create_policy(slug="wide", title="Wide", settings=WIDE)


def gate(baseline: RunRecord, candidate: RunRecord, tier: str = "critical") -> dict[str, Any]:
    slug = candidate.suite_version.suite.slug
    return {"suite": slug, "candidate": candidate.pk, "baseline": baseline.pk, "tier": tier}


def release(*gates: dict[str, Any], policy: str | None = "wide", **changes: Any) -> ReleaseRecord:
    return create_release(gates=gates, policy=policy, **changes)


def baseline_run() -> RunRecord:
    """A run of 30 cases that are right in every repeat, and the policies."""
    policies()
    return run(suite(), by=build.process())


def of_kind(kind: str, baseline: RunRecord | None = None) -> ReleaseRecord:
    """A release whose verdict is of a kind, of another run against this one."""
    baseline = baseline or baseline_run()
    of, by = baseline.suite_version, EngineProcess.objects.get(bucket=baseline.bucket)
    if kind == "not_comparable":
        other = build.process(build.bucket("bfloat16"))
        return release(gate(baseline, run(of, by=other)))
    if kind == "suite_too_small":
        return release(gate(baseline, run(of, by=by)), policy="strict")
    if kind == "noisy":
        return release(gate(baseline, run(of, by=by, unstable=range(6))), policy="strict")
    if kind == "too_few_repeats":
        return release(gate(baseline, run(of, by=by, repeats=1)))
    if kind == "inconclusive":
        return release(gate(baseline, run(of, by=by, unstable=[3])))
    if kind == "no_ship":
        return release(gate(baseline, run(of, by=worse(), n_failed=10)))
    return release(gate(baseline, run(of, by=by)))
