"""An experiment as Markdown: what was found, the table, the plan with its cost, what was not measured.

A post-mortem can be written from it alone.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evalboard.wording.bisect_report import bisect_command, bisect_parts, markdown_table
from evalboard.wording.lab import bound_points, describe_arm
from evalboard.wording.numbers import capital, counted, points, signed

if TYPE_CHECKING:
    from evalboard.contract.lab import Experiment, LabArm, LabRow

NOTHING = "–"


def render_report(experiment: "Experiment", *, address: str = "") -> str:
    """Return the whole report, from its heading on. address: of the server, where the experiment's lacks it."""
    address = address or experiment.url.partition("/lab/")[0]
    if experiment.bisect is not None:
        parts = bisect_parts(experiment, experiment.bisect, address=address)
        command = f"The same again: `{repeat_command(experiment)}`"
        return "\n\n".join([*parts, *_cost_parts(experiment, address), command]) + "\n"
    suite = experiment.suite
    head = f"# Variance of {suite.slug} v{suite.version}"
    where = f"{experiment.endpoint}, {experiment.profile_name}, {counted(experiment.runs, 'run')} a source"
    parts = [head, experiment.sentence, f"{capital(experiment.status)}, {where}: {address}/lab/{experiment.id}/"]
    parts += ["## Where the variance comes from", markdown_table(_HEADS, map(_row_cells, experiment.rows))]
    parts += ["Each row lets go of one thing. Intervals are at 95 %."]
    parts += _cost_parts(experiment, address)
    if experiment.not_measured:
        left = "\n".join(f"* {capital(each.label)}: {each.reason}" for each in experiment.not_measured)
        parts += ["## Not measured here", left]
    return "\n\n".join(parts) + "\n"


def repeat_command(experiment: "Experiment") -> str:
    """Return the command that plans the same experiment again."""
    if experiment.bisect is not None:
        return bisect_command(experiment.bisect)
    on = f"{experiment.suite.slug} --endpoint {experiment.endpoint}"
    return f"evalboard experiment variance {on} --runs {experiment.runs}"


def _cost_parts(experiment: "Experiment", address: str) -> list[str]:
    return ["## Plan and cost", markdown_table(_PLAN_HEADS, plan_cells(experiment, address=address))]


_HEADS = (
    "source",
    "condition",
    "runs",
    "score",
    "range over runs",
    "standard deviation",
    "equal to the bit",
    "responses that flip",
    "first flip",
    "speed",
    "finding",
    "fixed by",
)
_PLAN_HEADS = ("arm", "status", "run", "runs", "engine starts", "tokens", "minutes planned", "minutes spent")


def _row_cells(row: "LabRow") -> Sequence[str]:
    return (
        row.label,
        row.condition,
        str(row.n_runs) if row.n_runs else NOTHING,
        NOTHING if row.range is None else _span(row.range),
        describe_range(row),
        describe_sd(row),
        NOTHING if row.n_same is None else f"{row.n_same} of {row.n_runs}",
        f"{row.n_flipped:,} of {row.n_responses:,}" if row.n_responses else NOTHING,
        NOTHING if row.first_flip is None else f"{row.first_flip:,}",
        NOTHING if row.speed is None else f"{row.speed:.2f} ×",
        row.finding,
        row.fixed_by,
    )


def describe_range(row: "LabRow") -> str:
    """Return "4.2 [3.2, 6.2]", "0.0 (≤ 0.2)" where nothing was seen, "1.2 not sampled" of choices."""
    return _measured(row.width, row.range_interval)


def describe_sd(row: "LabRow") -> str:
    """Return a standard deviation with its interval; a dash where nothing was sampled."""
    return NOTHING if row.sd is None else _measured(row.sd, row.sd_interval, digits=2)


def _measured(value: float | None, interval: tuple[float, float] | None, *, digits: int = 1) -> str:
    if value is None:
        return NOTHING
    if interval is None:
        return f"{points(value, digits)} not sampled"
    if value == 0:
        return f"{points(0.0, digits)} (≤ {bound_points(interval[1])})"
    return f"{points(value, digits)} [{points(interval[0], digits)}, {points(interval[1], digits)}]"


def _span(span: tuple[float, float]) -> str:
    low, high = span
    return points(low) if low == high else f"{points(low)} to {points(high)}"


def describe_shift(row: "LabRow") -> str:
    """Return how far all runs are from the control's score, "" where they are not, or not all as far."""
    return "" if not row.shift else f"all {signed(row.shift)}"


def plan_cells(experiment: "Experiment", *, address: str = "") -> Iterable[Sequence[str]]:
    """Yield the cells of the plan, an arm a line, and a last one of all of them against what is allowed."""
    for arm in experiment.arms:
        run = NOTHING if arm.run is None else f"[run {arm.run}]({address}/runs/{arm.run}/)" if address else arm.run
        yield (describe_arm(arm.source, arm.name), arm.status, run, *_cost_cells(arm), f"{arm.spent_minutes:.1f}")
    cost = experiment.cost
    tokens, minutes = _known(cost.tokens, "{:,}"), _known(cost.minutes, "{:.1f}")
    spent = f"{experiment.spent_minutes:.1f} of {experiment.budget_minutes:g} allowed"
    yield ("all", experiment.status, NOTHING, str(cost.n_runs), str(cost.n_starts), tokens, minutes, spent)


def _cost_cells(arm: "LabArm") -> Sequence[str]:
    cost = arm.cost
    return str(cost.n_runs), str(cost.n_starts), _known(cost.tokens, "{:,}"), _known(cost.minutes, "{:.1f}")


def _known(value: float | None, form: str) -> str:
    return "not known" if value is None else form.format(value)
