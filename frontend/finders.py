"""Plotly's one script out of its Python package; the rest of that folder is megabytes nobody asks for."""

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

NAME = "plotly.min.js"
PREFIX = "plotly"


class PlotlyFinder(BaseFinder):
    """Yields `plotly/plotly.min.js` and nothing else."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.folder = Path(str(files("plotly") / "package_data"))
        self.storage = FileSystemStorage(location=self.folder)
        self.storage.prefix = PREFIX  # type: ignore[attr-defined]  # what staticfiles puts before each path
        super().__init__(*args, **kwargs)

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        if path != f"{PREFIX}/{NAME}":
            return []
        found = str(self.folder / NAME)
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[Any]:
        yield NAME, self.storage
