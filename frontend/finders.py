"""The few scripts that pages ask for out of Python packages; the rest of those folders is megabytes nobody asks for."""

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

# The first part of an address under /static/, the folder that it stands for, and what is taken from there.
SCRIPTS = (
    ("plotly", ("plotly", "package_data"), ("plotly.min.js",)),
    ("redoc", ("drf_spectacular_sidecar", "static/drf_spectacular_sidecar/redoc/bundles"), ("redoc.standalone.js",)),
    # The second is asked for where EVALBOARD_DEBUG is on.
    ("django_htmx", ("django_htmx", "static/django_htmx"), ("htmx-2.min.js", "django-htmx.js")),
)


class ScriptFinder(BaseFinder):
    """Yields the scripts named above and nothing else."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._storages: dict[str, tuple[str, FileSystemStorage]] = {}
        for prefix, (package, inside), names in SCRIPTS:
            storage = FileSystemStorage(location=Path(str(files(package))) / inside)
            storage.prefix = prefix  # type: ignore[attr-defined]  # what staticfiles puts before each path
            self._storages |= {f"{prefix}/{name}": (name, storage) for name in names}
        super().__init__(*args, **kwargs)

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        if path not in self._storages:
            return []
        name, storage = self._storages[path]
        return [storage.path(name)] if find_all else storage.path(name)

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[Any]:
        return self._storages.values()
