"""Judge each case for a CI report: of a single run, or of a gate with the baseline's scores."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from evalboard.wording.numbers import points
from evalboard.wording.outcomes import compare_with_chance

if TYPE_CHECKING:
    from evalboard.client.rest import RestClient
    from evalboard.contract.release import Gate
    from evalboard.contract.response import CaseOfRun
    from evalboard.contract.run import Run

PASSED, FAILED, MISSING = "passed", "failed", "missing"
# That are read of one run. Beyond them a report says how many it leaves out.
MAX_CASES = 20_000


@dataclass(frozen=True, slots=True)
class CaseResult:
    """`outcome` is PASSED, FAILED or MISSING; `why` is one sentence and "" where it passed.

    Scores are points, None where several buckets answered the case; `baseline` is None for a run by itself as well.
    """

    case: str
    outcome: str
    score: float | None
    baseline: float | None
    why: str
    reason: str
    url: str


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """One suite's cases, those that did not pass first. `facts`: about the suite as a whole.

    `is_gate`: against a baseline, so that a case failed that got worse and not one that was wrong before.
    """

    suite: str
    n_cases: int
    cases: tuple[CaseResult, ...]
    facts: Mapping[str, str]
    url: str
    is_gate: bool

    def select(self, outcome: str) -> tuple[CaseResult, ...]:
        return tuple(case for case in self.cases if case.outcome == outcome)


def collect_run_results(client: "RestClient", run: "Run") -> SuiteResult:
    """Return a run's cases; one failed that is scored below 1 in some repeat, as on the run's page."""
    cases = [_judge_by_itself(case) for case in _load_cases(client, run.id)]
    facts = {"run": run.id, "status": run.status, "endpoint": run.endpoint, "profile": run.profile}
    facts["suite_version"] = str(run.suite.version)
    if run.range is not None:
        facts["range"] = f"{points(run.range[0])} to {points(run.range[1])} points"
    return SuiteResult(run.suite.slug, run.suite.n_cases, _sort_by_gravity(cases), facts, run.url, is_gate=False)


def collect_gate_results(client: "RestClient", gate: "Gate", url: str) -> SuiteResult:
    """Return a gate's cases. A case failed if the candidate broke it, as the verdict counts it."""
    baseline = {case.case: case for case in _load_cases(client, gate.baseline.run)}
    broken = set(gate.changed.broken)
    cases = [
        _judge_against(case, baseline.get(case.case), is_broken=case.case in broken)
        for case in _load_cases(client, gate.candidate.run)
    ]
    facts = {
        "verdict": gate.verdict or "",
        "tier": gate.tier,
        "candidate": gate.candidate.run,
        "baseline": gate.baseline.run,
        "suite_version": str(gate.suite_version),
    }
    if by_chance := compare_with_chance(gate.changed):
        facts["by_chance"] = by_chance
    return SuiteResult(gate.suite, gate.n_cases, _sort_by_gravity(cases), facts, url, is_gate=True)


def _load_cases(client: "RestClient", run_id: str) -> Iterator["CaseOfRun"]:
    return (row.value for row in islice(client.cases(run_id), MAX_CASES))


def _judge_by_itself(case: "CaseOfRun") -> CaseResult:
    score, missing = _read_points(case), _describe_missing(case)
    if missing:
        return _build_result(case, MISSING, missing)
    n_right = sum(value == 1 for value in case.scores)
    if n_right < len(case.scores):
        mean = "that several buckets served" if score is None else f"{points(score)} points"
        return _build_result(case, FAILED, f"Right in {n_right} of {len(case.scores)} repeats, {mean}.")
    return _build_result(case, PASSED, "")


def _judge_against(case: "CaseOfRun", other: "CaseOfRun | None", *, is_broken: bool) -> CaseResult:
    baseline = None if other is None else _read_points(other)
    if is_broken:
        fall = f"Fell to {_render_points(_read_points(case))} points from {_render_points(baseline)} of the baseline."
        return _build_result(case, FAILED, fall, baseline)
    if missing := _describe_missing(case):
        return _build_result(case, MISSING, missing, baseline)
    return _build_result(case, PASSED, "", baseline)


def _build_result(case: "CaseOfRun", outcome: str, why: str, baseline: float | None = None) -> CaseResult:
    return CaseResult(
        case=case.case,
        outcome=outcome,
        score=_read_points(case),
        baseline=baseline,
        why=why,
        reason=case.reason or "",
        url=case.url,
    )


def _describe_missing(case: "CaseOfRun") -> str:
    """Say how many responses are missing or have no score, and why; "" where none is."""
    n, n_repeats = case.scores.count(None), len(case.scores)
    if not n:
        return ""
    if case.reason and not case.errors:
        return f"{n} of {n_repeats} {'response has' if n_repeats == 1 else 'responses have'} no score."
    why = f": {', '.join(case.errors)}" if case.errors else ""
    return f"{n} of {n_repeats} {'response is' if n_repeats == 1 else 'responses are'} missing{why}."


def _read_points(case: "CaseOfRun") -> float | None:
    return None if case.score is None else 100 * case.score


def _render_points(score: float | None) -> str:
    return "unknown" if score is None else points(score)


def _sort_by_gravity(cases: Iterable[CaseResult]) -> tuple[CaseResult, ...]:
    return tuple(sorted(cases, key=lambda case: (FAILED, MISSING, PASSED).index(case.outcome)))
