"""Steps of training runs: stored, replaced where a run was resumed, and deleted with their series."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from pydantic import ValidationError

from evalboard.contract.base import Contract
from evalboard.contract.rollouts import RolloutFigures
from evalboard.core.errors import Conflict, InvalidInput
from evalboard.wording.rollouts import explain_limits
from runs.catalogue import SLUG
from runs.models import RolloutSeriesRecord, RolloutStepRecord
from runs.store import require_row

MAX_SERIES = 1_000
MAX_STEPS = 100_000  # of one series
MAX_STEP = 2**53 - 1  # every JSON reader has larger ones as floats


@transaction.atomic
def log_step(
    *,
    series: str,
    step: int,
    figures: Mapping[str, Any],
    max_kl: float | None = None,
    max_clip_share: float | None = None,
    user: Any,
) -> tuple[RolloutStepRecord, bool]:
    """Store a step, in place of what was logged of it before; return it and whether it is new.

    The series is created with its first step. figures: `contract.rollouts.RolloutFigures`. Raises InvalidInput with
    fields, and Conflict where there are too many series or steps.
    """
    if not SLUG.fullmatch(series):
        raise InvalidInput("The step was not stored.", fields={"series": "Use small letters, digits, dots and dashes."})
    if not 0 <= step <= MAX_STEP:
        raise InvalidInput("The step was not stored.", fields={"step": f"Must be from 0 to {MAX_STEP}."})
    measured = _read_figures(figures)
    logged = _get_series(series, user)
    columns = {
        "figures": measured.to_stored(),
        "kl_k3": measured.kl_k3,
        "clip_share": measured.clip_share,
        "max_kl": max_kl,
        "max_clip_share": max_clip_share,
        "is_over": bool(explain_limits(measured, max_kl=max_kl, max_clip_share=max_clip_share)),
    }
    record, is_new = RolloutStepRecord.objects.select_for_update().get_or_create(
        series=logged, step=step, defaults=columns
    )
    if is_new:
        if logged.steps.count() > MAX_STEPS:
            raise Conflict(f"{series} has {MAX_STEPS:,} steps already; log fewer steps, or begin another series.")
        return record, True
    # The same step sent again after a lost answer, or trained again from a checkpoint: the last one counts.
    RolloutStepRecord.objects.filter(pk=record.pk).update(**columns, n_logged=F("n_logged") + 1, logged_at=Now())
    record.refresh_from_db()
    return record, False


def delete_series(*, series: str) -> None:
    """Delete a series with all its steps. Raises NotFound."""
    require_series(series).delete()


def require_series(name: str) -> RolloutSeriesRecord:
    """Return a series by its name. Raises NotFound."""
    rows = RolloutSeriesRecord.objects.select_related("created_by").filter(name=name)
    return require_row(rows, f"There is no series of rollouts named {name}.")


def _get_series(name: str, user: Any) -> RolloutSeriesRecord:
    series, is_new = RolloutSeriesRecord.objects.get_or_create(name=name, defaults={"created_by": user})
    if is_new and RolloutSeriesRecord.objects.count() > MAX_SERIES:
        raise Conflict(f"There are {MAX_SERIES:,} series already; delete one that is not needed.")
    return series


def _read_figures(figures: Mapping[str, Any]) -> RolloutFigures:
    try:
        measured = RolloutFigures.model_validate(dict(figures))
    except ValidationError as wrong:
        fields = {".".join(map(str, ("figures", *each["loc"]))): each["msg"] for each in wrong.errors()}
        raise InvalidInput("The step was not stored.", fields=fields) from wrong
    if fields := dict(_range_problems(measured, "figures")):
        raise InvalidInput("The step was not stored.", fields=fields)
    return measured


def _range_problems(figures: Contract, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path, problem) for each number outside the range that its contract states."""
    for name, hint in get_type_hints(type(figures), include_extras=True).items():
        value, place = getattr(figures, name, None), f"{path}.{name}"
        if isinstance(value, Contract):
            yield from _range_problems(value, place)
        elif isinstance(value, int | float):
            stated = dict(pair for words in getattr(hint, "__metadata__", ()) for pair in words)
            widest = MAX_STEP if isinstance(value, int) else math.inf
            least, most = stated.get("minimum", -widest), stated.get("maximum", widest)
            if not least <= value <= most:
                yield place, f"Must be from {least} to {most}."
