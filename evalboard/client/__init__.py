"""The REST API from Python: `from evalboard.client import Client` (docs/client.md)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evalboard.client.errors import Unreachable, WrongUse
from evalboard.core.errors import EvalboardError

if TYPE_CHECKING:
    from evalboard.client.client import Client
    from evalboard.client.notebook import NotebookComparison, NotebookRelease, NotebookRun, Rows

__all__ = [
    "Client",
    "EvalboardError",
    "NotebookComparison",
    "NotebookRelease",
    "NotebookRun",
    "Rows",
    "Unreachable",
    "WrongUse",
]


def __getattr__(name: str) -> Any:
    """Import a name on first use, since pydantic and httpx would slow down the start of the command line."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'client' if name == 'Client' else 'notebook'}"), name)
