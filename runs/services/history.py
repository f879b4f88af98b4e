"""The history of a run: one line for each thing that happened to it."""

from runs.models import Event
from runs.services.storable import storable


def note(run_id: int, code: str, text: str, *, level: str = Event.Level.INFO) -> None:
    Event.objects.create(run_id=run_id, code=code, text=storable(text), level=level)


def note_once(run_id: int, code: str, text: str, *, level: str = Event.Level.INFO) -> None:
    """Write the line unless the run's history already holds the same one."""
    if not Event.objects.filter(run=run_id, code=code, text=storable(text)).exists():
        note(run_id, code, text, level=level)
