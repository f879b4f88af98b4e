"""The formats that are read, and which of them a log is in. docs/imports.md has what each gives."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from evalboard.core.errors import InvalidInput
from evalboard.importers import batch, chat, inspect_ai, litellm, lm_eval, looks, promptfoo, rollouts, scored_lines
from evalboard.importers.files import LogFile
from evalboard.importers.json_files import naming
from evalboard.importers.records import LoggedRun
from evalboard.importers.scales import parse_scale, read_scores

AUTO = "auto"


class Format(Protocol):
    """A module that reads one format."""

    def recognises(self, files: Sequence[LogFile]) -> bool:
        """Tell whether these files look like it, by their content; never raises.

        A name may only decide where the content fits no other format.
        """

    def read(self, files: Sequence[LogFile]) -> list[LoggedRun]:
        """Return the runs of the log. Raises InvalidInput, with problems by file name."""


# In the order of detection. Lines of chat completions come after the others, whose lines hold completions too; and
# rollouts after those, as a completion may hold token ids.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "inspect": inspect_ai,
        "lm_eval": lm_eval,
        "promptfoo": promptfoo,
        "batch": batch,
        "litellm": litellm,
        "scores": scored_lines,
        "chat": chat,
        "rollouts": rollouts,
    }
)


def read_logs(
    files: Sequence[LogFile],
    *,
    format: str = AUTO,  # noqa: A002  the word of the call and of its form
    scale: str = "",
) -> tuple[str, list[LoggedRun]]:
    """Return the name of the format, and the runs in a log's files.

    scale: of scores beyond 0 to 1, as in 0..10; "" by default. Raises InvalidInput: at `scale`; at `format` if it is
    unknown, or detection finds none; else as its reader does.
    """
    for file in files:
        with naming(file):
            _ = file.content_size  # whether it unpacks at all, before anything is made of it
    name = _recognised(files) if format == AUTO else format
    if name not in FORMATS:
        raise InvalidInput("The log cannot be read.", fields={"format": f"Must be {AUTO} or one of: {_known()}."})
    on_scale = parse_scale(scale)
    return name, [read_scores(run, on_scale) for run in FORMATS[name].read(files)]


def recognise(files: Sequence[LogFile]) -> str:
    """Return the name of the format that all these files are in, "" where none fits. Never raises."""
    return next((name for name, reader in FORMATS.items() if reader.recognises(files)), "")


def _recognised(files: Sequence[LogFile]) -> str:
    if name := recognise(files):
        return name
    fitting = {file.name: name for file in files if (name := recognise([file]))}
    raise InvalidInput("The log is of no known format.", fields={"format": looks.explain(files, fitting)})


def _known() -> str:
    return ", ".join(FORMATS)
