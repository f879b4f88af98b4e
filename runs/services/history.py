"""The history of a run: one line for each thing that happened to it."""

from django.db import transaction

from runs.models import Event, Run
from runs.services.storable import storable


def note(run_id: int, code: str, text: str, *, level: str = Event.Level.INFO) -> None:
    Event.objects.create(run_id=run_id, code=code, text=storable(text), level=level)


def note_once(run_id: int, code: str, text: str, *, level: str = Event.Level.INFO) -> None:
    """Write the line unless the run's history already holds the same one, also where two processes would at once."""
    same = Event.objects.filter(run=run_id, code=code, text=storable(text))
    if same.exists():
        return
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).filter(pk=run_id).first()
        if not same.exists():
            note(run_id, code, text, level=level)
