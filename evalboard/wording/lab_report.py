"""Render an experiment as Markdown: findings, table, plan with cost, serving stacks, and omissions.

It is complete enough to write a post-mortem from.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC
from typing import TYPE_CHECKING

from evalboard.contract.lab_kinds import CONTROL, Source
from evalboard.wording.bisect_report import bisect_command, bisect_parts, markdown_table
from evalboard.wording.lab import bound_points, describe_arm, describe_money
from evalboard.wording.messages import Messages, speak
from evalboard.wording.numbers import capital, counted, fixed, points, score_digits, signed

if TYPE_CHECKING:
    from evalboard.contract.lab import Experiment, LabArm, LabCost, LabRow
    from evalboard.contract.parts import BucketNamed

NOTHING = "–"
WHEN = "%Y-%m-%d %H:%M UTC"
SAID = Messages(
    "experiment_report",
    {
        ("columns", "asserts"): {
            "rows": "Each row changes one thing, and is compared with the control's first run.",
            "cases": "The suite has {n:case}; one case is {points:points} points.",
            "range": "± is half of the range, including the control's score.",
            "chosen": "Chosen settings show that range; they were not sampled.",
            "first_flip": "First flip: the median token where texts part, from 0.",
            "speed": "Speed: tokens a second, as a multiple of the control's.",
            "intervals": "Intervals and bounds (≤) are at 95 %: they cover more runs of these cases, not other cases.",
        },
        ("plan", "asserts"): {
            "planned": "Planned by {who} on {at}{more}.",
            "pinned": "Settings that stay fixed, by the profile {profile}:",
        },
        ("plan", "advises"): {"again": "Run it again: `{command}`"},
    },
)


def render_report(experiment: "Experiment", *, address: str = "") -> str:
    """Return the whole report. address: of the server, used if the experiment's URL lacks it."""
    address = address or experiment.url.partition("/lab/")[0]
    if experiment.bisect is not None:
        parts = bisect_parts(experiment, experiment.bisect, address=address)
        return "\n\n".join([*parts, *_cost_parts(experiment, address), *_setting_parts(experiment)]) + "\n"
    suite = experiment.suite
    head = f"# Variance of {suite.slug} v{suite.version}"
    where = f"{experiment.endpoint}, {experiment.profile_name}, at most {counted(experiment.runs, 'run')} a source"
    parts = [head, experiment.sentence, f"{capital(experiment.status)}, {where}: {address}/lab/{experiment.id}/"]
    shown_with = score_digits(_changes(experiment))
    rows = (_row_cells(row, experiment.control, *shown_with) for row in experiment.rows)
    parts += ["## Where the variance comes from", markdown_table(_HEADS, rows), _describe_columns(experiment)]
    parts += _cost_parts(experiment, address)
    if experiment.not_measured:
        left = "\n".join(f"* {capital(each.label)}: {each.reason}" for each in experiment.not_measured)
        parts += ["## Not measured here", left]
    parts += _setting_parts(experiment)
    return "\n\n".join(parts) + "\n"


def _describe_columns(experiment: "Experiment") -> str:
    """Say what the table's figures are compared with, and what they do not cover."""
    one_case = experiment.case_points
    n_cases = round(100 / one_case) if one_case else 0
    codes = [code for code, row in SAID.items() if row.subject == "columns" and (n_cases or code != "cases")]
    return speak(SAID.claim(code, n=n_cases, points=one_case) for code in codes)


def repeat_command(experiment: "Experiment") -> str:
    """Return the command that plans the same experiment again."""
    if experiment.bisect is not None:
        return bisect_command(experiment.bisect)
    on = f"{experiment.suite.slug} --endpoint {experiment.endpoint} --profile {experiment.profile}"
    command = f"evalboard experiment variance {on} --runs {experiment.runs}"
    if any(each.code == "not_asked" for each in experiment.not_measured):
        chosen = dict.fromkeys(arm.source for arm in experiment.arms if arm.source != CONTROL)
        command += "".join(f" --source {source}" for source in chosen)
    return command if experiment.temperature is None else f"{command} --temperature {experiment.temperature:g}"


def _cost_parts(experiment: "Experiment", address: str) -> list[str]:
    plan = markdown_table(_PLAN_HEADS, plan_cells(experiment, address=address))
    problems = [f"* {describe_arm(arm.source, arm.name)}: {arm.problem}" for arm in experiment.arms if arm.problem]
    words = describe_money(experiment)
    parts = ["## Plan and cost", _describe_times(experiment), plan, *([words] if words else [])]
    parts += ["\n".join(problems)] if problems else []
    served = [*_served_cells(experiment, address)]
    return [*parts, "## What served", markdown_table(_SERVED_HEADS, served)] if served else parts


def _setting_parts(experiment: "Experiment") -> list[str]:
    pinned = SAID.write("pinned", profile=experiment.profile_name)
    settings = f"```json\n{json.dumps(experiment.settings, indent=2, sort_keys=True)}\n```"
    known = [] if experiment.settings is None else [pinned, settings]
    return ["## Settings", *known, SAID.write("again", command=repeat_command(experiment))]


def _describe_times(experiment: "Experiment") -> str:
    """Say who planned it, and when it was confirmed and ended."""
    steps = (("confirmed", experiment.started_at), ("ended", experiment.finished_at))
    more = "".join(f"; {word} on {at.astimezone(UTC):{WHEN}}" for word, at in steps if at is not None)
    planned_at = f"{experiment.created_at.astimezone(UTC):{WHEN}}"
    return SAID.write("planned", who=experiment.created_by or "an unknown person", at=planned_at, more=more)


def _served_cells(experiment: "Experiment", address: str) -> Iterable[Sequence[str]]:
    """Yield the cells of each run's serving stack: of a bisect first the two runs', then each step's."""
    sides = () if experiment.bisect is None else experiment.bisect.sides
    for side in sides:
        if side.bucket is not None:
            made = _run_link(side.run, address), side.endpoint, side.profile
            yield (side.side, *made, *_bucket_cells(side.bucket))
    for arm in experiment.arms:
        if arm.bucket is not None:
            made = _run_link(arm.run, address), arm.endpoint, arm.profile or NOTHING
            yield (describe_arm(arm.source, arm.name), *made, *_bucket_cells(arm.bucket))


def _bucket_cells(bucket: "BucketNamed") -> Sequence[str]:
    model = f"{bucket.model.name} `{bucket.model.digest[:8]}`"
    return model, f"{bucket.fingerprint.label} `{bucket.fingerprint.digest[:8]}`", bucket.batch_class


def _run_link(run: str | None, address: str) -> str:
    return NOTHING if run is None else f"[run {run}]({address}/runs/{run}/)" if address else run


_HEADS = (
    "source",
    "condition",
    "runs",
    "score",
    "from the control",
    "range over runs",
    "standard deviation",
    "equal to the bit",
    "texts that flip",
    "first flip",
    "speed",
    "finding",
    "fixed by",
)
_PLAN_HEADS = ("condition", "status", "run", "runs", "engine starts", "tokens", "minutes planned", "minutes spent")
_SERVED_HEADS = ("condition", "run", "endpoint", "profile", "model", "fingerprint", "batch class")


def _changes(experiment: "Experiment") -> Iterator[tuple[float, float, float]]:
    """Yield the arguments of `describe_change`: the control's score, a run's, and their difference.

    Runs of a condition have no comparison: these are scores of single runs over the same cases.
    """
    control = experiment.control
    for row in experiment.rows:
        for each in row.points:
            if control is not None and each.score is not None:
                yield control, each.score, each.score - control


def _row_cells(row: "LabRow", control: float | None, digits: int, note: str) -> Sequence[str]:
    own = [each.score for each in row.points if each.score is not None]
    return (
        row.label,
        row.condition,
        (f"{row.n_runs} scorings" if row.source == Source.PARSER else str(row.n_runs)) if row.n_runs else NOTHING,
        f"{_span(lambda score: points(score, digits), own)} {note if own else ''}".rstrip(),
        describe_change(row, control),
        describe_range(row),
        describe_sd(row),
        NOTHING if row.n_same is None else f"{row.n_same} of {row.n_runs}",
        f"{row.n_flipped:,} of {row.n_responses:,}" if row.n_responses else NOTHING,
        NOTHING if row.first_flip is None else f"{row.first_flip:,}",
        NOTHING if row.speed is None else f"{fixed(row.speed, 2)} ×",
        row.finding,
        row.fixed_by,
    )


def describe_range(row: "LabRow") -> str:
    """Return "4.2 [3.2, 6.2]", "0.0 (≤ 0.2)" where nothing was seen, "1.2 not sampled" of choices."""
    return _measured(row.width, row.range_interval)


def describe_sd(row: "LabRow") -> str:
    """Return a standard deviation with its interval, "0.82 [0.49, at least 2.30]"; a dash if not sampled."""
    return NOTHING if row.sd is None else _measured(row.sd, row.sd_interval, digits=2, is_open=bool(row.is_sd_open))


def _measured(
    value: float | None, interval: tuple[float, float] | None, *, digits: int = 1, is_open: bool = False
) -> str:
    if value is None:
        return NOTHING
    if interval is None:
        return f"{points(value, digits)} not sampled"
    if value == 0:
        return f"{points(0.0, digits)} (≤ {bound_points(interval[1])})"
    high = f"{'at least ' if is_open else ''}{points(interval[1], digits)}"
    return f"{points(value, digits)} [{points(interval[0], digits)}, {high}]"


def _span(write: Callable[[float], str], values: Sequence[float]) -> str:
    """Return "60.0", or "56.7 to 63.3" of several; a dash of none."""
    if not values:
        return NOTHING
    low, high = min(values), max(values)
    return write(low) if low == high else f"{write(low)} to {write(high)}"


def describe_change(row: "LabRow", control: float | None) -> str:
    """Return the runs' difference from the control: "+3.3", "−6.7 to 0.0"; a dash for the control."""
    if control is None or row.source == Source.CONTROL:
        return NOTHING
    return _span(signed, [each.score - control for each in row.points if each.score is not None])


def plan_cells(experiment: "Experiment", *, address: str = "") -> Iterable[Sequence[str]]:
    """Yield the plan's cells, a condition per line, then the total against the budget."""
    for arm in experiment.arms:
        run, spent = _run_link(arm.run, address), fixed(arm.spent_minutes, 1)
        yield (describe_arm(arm.source, arm.name), arm.status, run, *_cost_cells(arm), spent)
    cost = experiment.cost
    tokens, minutes = _tokens(cost), _minutes(cost)
    spent = f"{fixed(experiment.spent_minutes, 1)} of {experiment.budget_minutes:g} allowed"
    yield ("all", experiment.status, NOTHING, str(cost.n_runs), str(cost.n_starts), tokens, minutes, spent)


def _cost_cells(arm: "LabArm") -> Sequence[str]:
    cost = arm.cost
    return str(cost.n_runs), str(cost.n_starts), _tokens(cost), _minutes(cost)


def _tokens(cost: "LabCost") -> str:
    return "not known" if cost.tokens is None else f"{cost.tokens:,}"


def _minutes(cost: "LabCost") -> str:
    return "not known" if cost.minutes is None else fixed(cost.minutes, 1)
