"""The history of a run: one line for each thing that happened to it."""

from django.db import transaction

from runs.models import Event, RunRecord
from runs.store.statements import storable


def note(run_id: int, code: str, text: str, *, place: str = "", level: str = Event.Level.INFO) -> None:
    """Write a line of a run's history. place: affected cases; lines that differ only in it are grouped."""
    whole, what = (f"{place}: {text}", text) if place else (text, "")
    Event.objects.create(run_id=run_id, code=code, text=storable(whole), what=storable(what), level=level)


def note_once(run_id: int, code: str, text: str, *, place: str = "", level: str = Event.Level.INFO) -> None:
    """Write the line unless the run's history has the same one, also where two processes would at once."""
    same = Event.objects.filter(run=run_id, code=code, text=storable(f"{place}: {text}" if place else text))
    if same.exists():
        return
    with transaction.atomic():
        RunRecord.objects.select_for_update(no_key=True).filter(pk=run_id).first()
        if not same.exists():
            note(run_id, code, text, place=place, level=level)
