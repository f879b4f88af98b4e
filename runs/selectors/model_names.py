"""Which names people said are one model, and which names logs gave."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evalboard.core.errors import NotFound
from runs.model_names import is_all_that_is_known
from runs.models import Model, SameModel


@dataclass(frozen=True, slots=True)
class SameModelRow:
    """Two names that a person said are one model. taken_back_at is None while it holds."""

    id: int
    names: tuple[str, str]
    reason: str
    said_by: str
    said_at: datetime
    taken_back_by: str
    taken_back_at: datetime | None


def same_model_rows() -> tuple[SameModelRow, ...]:
    """Newest first, those that were taken back among them."""
    return tuple(map(_row, SameModel.objects.select_related("said_by", "taken_back_by")))


def same_model_row(same_model_id: int) -> SameModelRow:
    """Raises NotFound."""
    found = SameModel.objects.select_related("said_by", "taken_back_by").filter(pk=same_model_id).first()
    if found is None:
        raise NotFound(f"There is no word {same_model_id} that two names are one model.")
    return _row(found)


def logged_names() -> tuple[str, ...]:
    """The names of models that only logs know, by the alphabet."""
    models = Model.objects.only("name", "revision", "digest").order_by("name")
    return tuple(dict.fromkeys(model.name for model in models if is_all_that_is_known(model)))


def _row(said: SameModel) -> SameModelRow:
    return SameModelRow(
        id=said.pk,
        names=(said.name, said.other_name),
        reason=said.reason,
        said_by=_person(said.said_by),
        said_at=said.said_at,
        taken_back_by=_person(said.taken_back_by),
        taken_back_at=said.taken_back_at,
    )


def _person(user: Any) -> str:
    return user.get_username() if user else ""
