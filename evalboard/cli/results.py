"""What a CI report says of each case: of a run by itself, or of a gate, where the baseline's scores stand beside."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from evalboard.cli.answers import RunAnswer
from evalboard.cli.client import Client

PASSED, FAILED, MISSING = "passed", "failed", "missing"
# Cases that are read of one run. Beyond them a report says how many it leaves out.
MOST_READ = 20_000

Json = dict[str, Any]


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
    """One suite's cases, those that did not pass first. `facts` are what a report says of the whole.

    `is_gate`: against a baseline, so that a case failed that got worse and not one that was wrong before.
    """

    suite: str
    n_cases: int
    cases: tuple[CaseResult, ...]
    facts: Mapping[str, str]
    url: str
    is_gate: bool

    def of(self, outcome: str) -> tuple[CaseResult, ...]:
        return tuple(case for case in self.cases if case.outcome == outcome)


def of_run(client: Client, run: RunAnswer) -> SuiteResult:
    """A case failed that is scored below 1 in some repeat, as on the run's page."""
    found = [_by_itself(row) for row in islice(client.cases(run.id), MOST_READ)]
    facts = {"run": run.id, "status": run.status, "endpoint": run.json["endpoint"], "profile": run.json["profile"]}
    facts["suite_version"] = str(run.json["suite"]["version"])
    if run.range is not None:
        facts["range"] = f"{run.range[0]:.1f} to {run.range[1]:.1f} points"
    return SuiteResult(
        run.suite, int(run.json["suite"]["n_cases"]), _gravest_first(found), facts, run.url, is_gate=False
    )


def of_gate(client: Client, gate: Json, url: str) -> SuiteResult:
    """A case failed that the candidate broke: its score fell, as the verdict counts it (docs/verdict.md)."""
    baseline = {row["case"]: row for row in islice(client.cases(gate["baseline"]["run"]), MOST_READ)}
    broken = set(gate["changed"]["broken"])
    rows = islice(client.cases(gate["candidate"]["run"]), MOST_READ)
    found = [_against(row, baseline.get(row["case"]), is_broken=row["case"] in broken) for row in rows]
    facts = {
        "verdict": str(gate["verdict"]),
        "tier": str(gate["tier"]),
        "candidate": str(gate["candidate"]["run"]),
        "baseline": str(gate["baseline"]["run"]),
        "suite_version": str(gate["suite_version"]),
    }
    return SuiteResult(str(gate["suite"]), int(gate["n_cases"]), _gravest_first(found), facts, url, is_gate=True)


def _by_itself(row: Json) -> CaseResult:
    score, missing = _points(row), _missing(row)
    if missing:
        return _result(row, MISSING, missing)
    if any(value < 1 for value in row["scores"]):
        n_right = sum(value == 1 for value in row["scores"])
        mean = "that several buckets served" if score is None else f"{score:.1f} points"
        return _result(row, FAILED, f"Right in {n_right} of {len(row['scores'])} repeats, {mean}.")
    return _result(row, PASSED, "")


def _against(row: Json, other: Json | None, *, is_broken: bool) -> CaseResult:
    baseline = None if other is None else _points(other)
    if is_broken:
        fell = f"Fell to {_shown(_points(row))} points from {_shown(baseline)} of the baseline."
        return _result(row, FAILED, fell, baseline)
    if missing := _missing(row):
        return _result(row, MISSING, missing, baseline)
    return _result(row, PASSED, "", baseline)


def _result(row: Json, outcome: str, why: str, baseline: float | None = None) -> CaseResult:
    return CaseResult(
        case=row["case"],
        outcome=outcome,
        score=_points(row),
        baseline=baseline,
        why=why,
        reason=row["reason"] or "",
        url=row["url"],
    )


def _missing(row: Json) -> str:
    """How many responses are missing, and why, as a sentence; "" where none is."""
    n, n_repeats = row["scores"].count(None), len(row["scores"])
    if not n:
        return ""
    why = f": {', '.join(row['errors'])}" if row["errors"] else ""
    return f"{n} of {n_repeats} {'response is' if n_repeats == 1 else 'responses are'} missing{why}."


def _points(row: Json) -> float | None:
    return None if row["score"] is None else 100 * row["score"]


def _shown(points: float | None) -> str:
    return "unknown" if points is None else f"{points:.1f}"


def _gravest_first(found: Iterable[CaseResult]) -> tuple[CaseResult, ...]:
    return tuple(sorted(found, key=lambda case: (FAILED, MISSING, PASSED).index(case.outcome)))
