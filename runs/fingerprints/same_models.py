"""Declare two model names to be one model, or withdraw it, and judge affected releases again."""

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from evalboard.core.errors import Conflict, InvalidInput
from runs.catalogue import OneNames, is_all_that_is_known
from runs.models import GateRecord, Model, SameModelRecord
from runs.store import changes, require_row

LONGEST_REASON = 2000


def say_same_model(*, name: str, other_name: str, reason: str, user: Any) -> SameModelRecord:
    """Declare two names to be one model, for names with unknown weights.

    Raises InvalidInput with fields, or Conflict if they already count as one.
    """
    fields = {
        field: "Must be the name of a model that a log was imported of."
        for field, given in (("name", name), ("other_name", other_name))
        if not any(is_all_that_is_known(model) for model in _called(given))
    }
    if not fields and name == other_name:
        fields["other_name"] = "Must be another name."
    if not reason.strip() or len(reason) > LONGEST_REASON or "\0" in reason:
        fields["reason"] = f"Say why, in at most {LONGEST_REASON:,} characters."
    if fields:
        raise InvalidInput("The two names are not valid.", fields=fields)
    first, second = sorted((name, other_name))
    with transaction.atomic():
        names = OneNames()
        if names.of(first) == names.of(second):
            raise Conflict(f"{first} and {second} count as one model already.")
        try:
            with transaction.atomic():
                made = SameModelRecord.objects.create(
                    name=first, other_name=second, reason=reason.strip(), said_by=user
                )
        except IntegrityError as raced:
            raise Conflict(f"{first} and {second} count as one model already.") from raced
        _decide_anew({first, second})
    return made


def take_back_same_model(*, same_model_id: int, user: Any) -> SameModelRecord:
    """Withdraw a declaration. Raises NotFound, also if it was withdrawn before."""
    with transaction.atomic():
        word = require_row(
            SameModelRecord.objects.select_for_update().filter(pk=same_model_id, taken_back_at__isnull=True),
            f"There is no word {same_model_id} that two names are one model.",
        )
        _decide_anew({word.name, word.other_name})
        word.taken_back_by, word.taken_back_at = user, Now()
        word.save(update_fields=["taken_back_by", "taken_back_at"])
    word.refresh_from_db()
    return word


def _called(name: str) -> list[Model]:
    return [] if "\0" in name else list(Model.objects.filter(name=name))


def _decide_anew(names: set[str]) -> None:
    """Decide the releases with a run of a model of these names once the transaction is done."""
    known = OneNames()
    every = {each for name in names for each in known.all_of(name)}
    runs: set[int] = set()
    for side in ("baseline_run", "candidate_run"):
        gates = GateRecord.objects.filter(Q(**{f"{side}__bucket__model__name__in": every}))
        runs |= set(gates.values_list(side, flat=True))
    for run in sorted(runs):
        changes.run_changed(run_id=run)
