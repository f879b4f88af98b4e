"""Describe each result of a search: what it is, and the fact that distinguishes similar ones."""

from evalboard.contract.release import ReleaseRow
from evalboard.contract.run import RunRow
from evalboard.wording.numbers import change_and_interval, counted, score_range
from evalboard.wording.release_names import verdict_name


def describe_run(row: RunRow) -> tuple[str, str]:
    """Return a run's description and its status.

    The description has the range if one bucket answered.
    """
    parts = [row.model, f"{row.suite.slug} v{row.suite.version}", row.profile_name]
    if row.range is not None:
        parts.append(score_range(*row.range))
    done = row.progress
    share = f", {100 * done.n_done // done.n_total} %" if row.status == "running" and done.n_total else ""
    return " · ".join(parts), f"{row.status}{share}"


def describe_release(row: ReleaseRow) -> tuple[str, str]:
    """Return what a release compared, with the change if measured, and its verdict."""
    parts = [f"{row.candidate.model} against {row.baseline.model}", ", ".join(row.suites)]
    if row.difference is not None and row.low is not None and row.high is not None:
        parts.append(" ".join(change_and_interval(row.difference, row.low, row.high, row.tolerance_points)))
    return " · ".join(parts), verdict_name(row.verdict) if row.verdict else "not decided"


def describe_suite(title: str, number: int, n_cases: int) -> tuple[str, str]:
    return title, f"v{number}, {counted(n_cases, 'case')}"


def describe_flips(baseline: int, candidate: int, n_cases: int) -> tuple[str, str]:
    return f"flips from run {baseline} to run {candidate}", counted(n_cases, "case")


def describe_response(case_id: str, run_id: int, repeat: int) -> str:
    return f"case {case_id} of run {run_id}, repeat {repeat}"
