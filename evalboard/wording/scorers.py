"""The sentences about scorers: what each is called, and what would change if another decided."""

from collections.abc import Iterator, Mapping
from math import isclose
from typing import TYPE_CHECKING, Any

from evalboard.wording.messages import Messages
from evalboard.wording.numbers import scores_beside

if TYPE_CHECKING:
    from evalboard.contract.suite import RescoredRun

DIGEST_CHARS = 8
ONLY_A_WORKER = "only a worker runs it. Import the answers to score them: evalboard import {log} --suite SUITE."
RESCORED = Messages(
    "rescored",
    {
        ("score", "asserts"): {
            "moves": "Run {run} would have {after} points with {scorer} in place of {own}: {points:signed} from "
            "{before}{note}.",
            "moves_shared": "Run {run} would have {after:points} points with {scorer} in place of {own}: "
            "{points:signed} over the cases that both score.",
            "same": "Run {run} would have the same score of every case with {scorer} as with {own}.",
            "cases": "{n:case} would change. One of {n_cases:,} cases is {points:points} points.",
        },
        ("score", "unknown"): {
            "unknown": "Run {run} has no single score with {scorer}; its cases are scored one by one.",
            "none": "Run {run} has no scores by {scorer} to compare with those by {own}.",
            "unscored": "{n:case} would have no score.",
        },
    },
)


def name_scorer(plan: Mapping[str, Any]) -> str:
    """Name what scores the cases without a scorer of their own: "exact", "command folded (3f2a9c10)"."""
    spec = plan["default"]
    if spec is None:
        return "the cases' own scorers"
    own = spec.get("digest")  # of the code, as `scorer list` shows it
    name = f"{spec['kind']} {spec['name']} ({own[:DIGEST_CHARS]})" if own else str(spec["kind"])
    if spec.get("judging"):
        return f"{name}, asked again (judging {spec['judging']})"
    return f"{name}, score {spec['decides']}" if spec.get("decides") else name


def describe_rescored(rescored: "RescoredRun", own: str) -> tuple[str, ...]:
    """Say what would change if a scorer decided a run. own: the name of the suite's scorer."""
    name = name_scorer(rescored.spec)
    name = f"{name} ({rescored.scorer.digest[:DIGEST_CHARS]})" if name == own else name
    known = {"run": rescored.run, "scorer": name, "own": own}
    pairs = [pair for pair in zip(rescored.before, rescored.after, strict=True) if None not in pair]
    if not rescored.n_cases:
        return (RESCORED.write("same" if pairs else "none", known),)
    if not pairs or rescored.points is None:
        return (RESCORED.write("unknown" if pairs else "none", known), *_counts(rescored))
    before, after = (sum(score or 0.0 for score in side) / len(pairs) for side in zip(*pairs, strict=True))
    if not isclose(after - before, rescored.points, abs_tol=1e-6):  # one of them left a case unscored
        moves = RESCORED.write("moves_shared", known, after=after, points=rescored.points)
        return (moves, *_counts(rescored))
    beside = scores_beside(before, after, rescored.points)
    ends = {"before": beside.baseline, "after": beside.candidate, "note": f" {beside.note}".rstrip()}
    return (RESCORED.write("moves", known | ends, points=rescored.points), *_counts(rescored))


def _counts(rescored: "RescoredRun") -> Iterator[str]:
    n_cases = round(100 / rescored.points_per_case)
    yield RESCORED.write("cases", n=rescored.n_cases, n_cases=n_cases, points=rescored.points_per_case)
    if rescored.n_unscored:
        yield RESCORED.write("unscored", n=rescored.n_unscored)
