"""Describe the history of a case: since when it passes or fails, and what changed then."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from evalboard.wording.numbers import counted, listed

if TYPE_CHECKING:
    from evalboard.contract.case import CaseChange, LastingChange

MAX_CHANCE = 0.05
LINKED_IMAGE = "Only this address is part of the case's digest: the image may change."
NOT_KNOWN = "not known yet"  # which server answers, before a repeat has ended
NAMES = {"case": "the case itself", "scorer": "the scorer"}  # of facts whose values are digests


def describe_change(change: "LastingChange", until: datetime) -> tuple[str, tuple[str, ...]]:
    """Return the claim and further sentences. until: when the last run before the change ran."""
    n, passed = change.n_before, change.n_passed_before
    before = f"Passed {passed} of {n} times" if not change.is_pass else f"Failed {n - passed} of {n} times"
    model = next((fact.after for fact in change.changes if fact.what == "model"), "")
    since = f"{model} (run {change.run})" if model else f"run {change.run}"
    verb = "passes" if change.is_pass else "fails"
    every = f"{verb} every time ({change.n_after} of {change.n_after})"
    claim = f"{before} until {day(until)}; since {since} it {every}."
    rest = [describe_changes(change.changes, change.before, change.run)]
    if change.chance > MAX_CHANCE:
        rest.append("So few runs can differ by chance.")
    return claim, tuple(rest)


def describe_steady(n_passed: int, n: int, n_runs: int, newest: Sequence[bool]) -> str:
    """Return the claim where no change has lasted. newest: whether each repeat of the newest run passed."""
    if n == 0:
        return "No answer to this case is scored yet."
    runs = counted(n_runs, "run")
    if n_passed == n:
        return f"Passed every time: {n} of {n} in {runs}."
    if n_passed == 0:
        return f"Failed every time: {n} of {n} in {runs}."
    last = f"the newest run passed {sum(newest)} of {len(newest)}"
    return f"Passed {n_passed} of {n} times in {runs}; {last}."


def describe_changes(changes: "Sequence[CaseChange]", before: str, run: str) -> str:
    """Name what changed between two runs, and whether the server is the same."""
    if not changes:
        return f"No recorded fact changed between runs {before} and {run}."
    parts = [NAMES.get(fact.what) or _describe_fact(fact) for fact in changes]
    same = "" if {"server", "endpoint"} & {fact.what for fact in changes} else " Same server before and after."
    return f"Changed then: {listed(parts)}.{same}"


def _describe_fact(fact: "CaseChange") -> str:
    """Name a fact with both values. Two models or servers may have one name, such as "unknown stack"."""
    another = "another " if fact.before == fact.after else ""
    return f"{fact.what} {fact.before or NOT_KNOWN} → {another}{fact.after or NOT_KNOWN}"


def describe_turn(
    *, case: str, suite: str, is_pass: bool, run: int, endpoint: str, n: int, before: int, n_before: int
) -> str:
    """Say that a followed case turned. before: the last earlier run whose repeats had one result."""
    now, past = ("passes", "failed") if is_pass else ("fails", "passed")
    text = f"Case {case} of {suite} {now} every time in run {run} on {endpoint} ({n} of {n})"
    return f"{text}; it {past} every time in run {before} ({n_before} of {n_before})."


def describe_part(n_read: int, n_runs: int) -> str:
    """Say that only the newest runs were read; "" if all were."""
    return f"Counted over the newest {n_read:,} of {n_runs:,} runs." if n_read < n_runs else ""


def day(at: datetime) -> str:
    return f"{at.day} {at:%b %Y}"


def describe_deletion(what: str, at: datetime, why: str, case: str = "") -> str:
    """Return that answers were deleted: when, and by which rule or for which reason."""
    if case:
        return f"The texts of case {case} were deleted on {day(at)}: {why}. Its scores and digests are kept."
    return f"The {what} of this run's answers were deleted on {day(at)} by {why}. Scores and digests are kept."
