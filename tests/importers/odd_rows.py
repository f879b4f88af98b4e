"""What comes of a log with something that cannot be read: a refusal by file, or a note of the run that is read."""

from collections.abc import Callable, Sequence

from evalboard.core.errors import InvalidInput
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedRun

NOTED = "cannot be read and are missing"


def told_of(read: Callable[[Sequence[LogFile]], list[LoggedRun]], files: Sequence[LogFile]) -> dict[str, str]:
    """Return the problem of each file that is refused; else of each file what the notes say of rows left out."""
    try:
        runs = read(files)
    except InvalidInput as refused:
        return refused.fields
    notes = [note for run in runs for note in run.notes if NOTED in note]
    return {file.name: note for file in files for note in notes if f"Of {file.name} " in note}
