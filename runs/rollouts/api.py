"""Rollouts of training runs: a step logged, series and their steps listed."""

from evalboard.contract.rollouts import RolloutSeries, RolloutStep
from runs.api.resource import Resource, serve
from runs.api.serializers import Amount, Object, Strict, Whole
from runs.rollouts.read import series_row, series_rows, show_step, step_rows
from runs.rollouts.series import MAX_STEP, delete_series, log_step


class RolloutStepIn(Strict):
    step = Whole(min_value=0, max_value=MAX_STEP)
    figures = Object()
    max_kl = Amount(required=False, allow_null=True, min_value=0)
    max_clip_share = Amount(required=False, allow_null=True, min_value=0, max_value=1)


SERIES = Resource("rollout_series", RolloutSeries, series_row)
STEP = Resource("rollout_step", RolloutStep, show_step, takes_record=True)


class _Steps:
    """The steps of a series; slicing reads only these rows."""

    def __init__(self, series: str) -> None:
        self._records = step_rows(series)

    def __getitem__(self, part: slice) -> tuple[RolloutStep, ...]:
        return tuple(map(show_step, self._records[part]))


series_list = serve(SERIES.listed("rollouts", "Series of rollouts, newest first", RolloutSeries, series_rows))
series_detail = serve(
    SERIES.one("A series of rollouts"), SERIES.deleted("Delete a series with its steps", delete_series)
)
step_list = serve(
    STEP.listed("rollout_steps", "Steps of a series, the newest step first", RolloutStep, _Steps),
    STEP.made(
        "Log a step of a training run, in place of what was logged of it before",
        RolloutStepIn,
        log_step,
        name="log_rollout",
        again="the step was logged before; its numbers are replaced",
        is_located=False,
        refuses=[409],
    ),
)
