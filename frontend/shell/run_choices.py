"""Runs as the choices of a form."""

from collections.abc import Iterable
from datetime import UTC

from evalboard.contract.run import RunRow
from evalboard.core.errors import NotFound
from frontend.templatetags.drawing import drawn_plain, shortened
from frontend.templatetags.numbers import span
from runs.run import run_report, run_rows

RUNS_OFFERED = 200
ENDED = ("finished", "incomplete")


def offered_runs(*named: list[int]) -> tuple[tuple[RunRow, ...], list[int]]:
    """Return the newest runs that ended, and those that the address names; and which of these are none."""
    newest = [row for row in run_rows(limit=RUNS_OFFERED) if row.status in ENDED]
    known = {int(row.id) for row in newest}
    unknown = []
    for run_id in dict.fromkeys(run for runs in named for run in runs if run not in known):
        try:
            newest.append(run_report(run_id).row)
        except NotFound:
            unknown.append(run_id)
    return tuple(newest), unknown


def by_suite(runs: Iterable[RunRow]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return runs as choices, those of a suite under its name."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for row in runs:
        groups.setdefault(row.suite.slug, []).append((row.id, run_words(row)))
    return sorted(groups.items())


def run_words(row: RunRow) -> str:
    """Describe a run in one line: `run 62 · acme-7b-ft on local, pinned · 5 repeats, 79.8–80.6 · …`."""
    whole = f"{row.n_buckets} buckets, no score as a whole" if row.n_buckets > 1 else "not scored"
    score = span(row.range_so_far) if row.range_so_far else whole
    repeats = f"{row.n_repeats} repeat{'' if row.n_repeats == 1 else 's'}"
    name = drawn_plain(shortened(f"{row.model} on {row.endpoint}, {row.profile_name}", 60))
    state = "" if row.status == "finished" else f" · {row.status}"
    return f"run {row.id} · {name} · {repeats}, {score} · {row.ran_at.astimezone(UTC):%Y-%m-%d}{state}"
