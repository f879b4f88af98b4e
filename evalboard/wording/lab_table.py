"""The rows of an experiment's table as a file has them, and as the command line prints them."""

from typing import TYPE_CHECKING, Any

from evalboard.wording import bisect_report
from evalboard.wording.lab import describe_arm
from evalboard.wording.lab_report import NOTHING, describe_change, describe_range, describe_sd

if TYPE_CHECKING:
    from evalboard.contract.lab import Experiment

NAMES = (
    "source",
    "name",
    "condition",
    "n_runs",
    "lowest",
    "highest",
    "range",
    "range_low",
    "range_high",
    "sd",
    "sd_low",
    "sd_high",
    "shift",
    "n_same",
    "n_responses",
    "n_flipped",
    "first_flip",
    "speed",
    "state",
    "finding",
    "fixed_by",
)


def table_names(experiment: "Experiment") -> tuple[str, ...]:
    """Return the columns of an experiment's table, which are those of its kind."""
    return NAMES if experiment.bisect is None else bisect_report.NAMES


def table_rows(experiment: "Experiment") -> list[dict[str, Any]]:
    """Return a row for each source, by NAMES; those that are not measured here come last, without numbers.

    Of a bisect it is one for each field.
    """
    if experiment.bisect is not None:
        return bisect_report.bisect_rows(experiment.bisect)
    rows = []
    for row in experiment.rows:
        low, high = row.range or (None, None)
        range_low, range_high = row.range_interval or (None, None)
        sd_low, sd_high = row.sd_interval or (None, None)
        own = {"lowest": low, "highest": high, "range": row.width, "range_low": range_low, "range_high": range_high}
        own |= {"sd_low": sd_low, "sd_high": sd_high}
        rows.append({name: own[name] if name in own else getattr(row, name) for name in NAMES})
    for left in experiment.not_measured:
        rows.append(dict.fromkeys(NAMES) | {"source": left.source, "state": left.code, "finding": left.reason})
    return rows


def render_table(experiment: "Experiment") -> list[str]:
    """Return a line per measured source in columns: change, range, flips and finding.

    Of a bisect it is one for each field.
    """
    if experiment.bisect is not None:
        return bisect_report.render_fields(experiment.bisect)
    cells = [("source", "runs", "from the control", "range over runs", "standard dev.", "flips", "finding")]
    for row in experiment.rows:
        flips = f"{row.n_flipped:,} of {row.n_responses:,}" if row.n_responses else NOTHING
        change = describe_change(row, experiment.control)
        measured = (str(row.n_runs), change, describe_range(row), describe_sd(row), flips)
        cells.append((describe_arm(row.source, row.name), *(measured if row.n_runs else [NOTHING] * 5), row.finding))
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]) - 1)]
    return ["  ".join([*(f"{line[at]:<{width}}" for at, width in enumerate(widths)), line[-1]]) for line in cells]
