"""The history of a run: one line for each thing that happened to it."""

from runs.models import Event, Run


def note(run: Run, code: str, text: str, *, level: str = Event.Level.INFO) -> None:
    Event.objects.create(run=run, code=code, text=text, level=level)


def note_once(run: Run, code: str, text: str, *, level: str = Event.Level.INFO) -> None:
    """Write the line unless the run's history already holds the same one."""
    if not Event.objects.filter(run=run, code=code, text=text).exists():
        note(run, code, text, level=level)
