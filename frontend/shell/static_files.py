"""Static files: scripts from packages, the Plotly bundle, and names with content digests.

Of Plotly the pages need only the kinds of its basic bundle, a quarter of the whole. It is only on npm, so installing
takes it where it can (tools/plotly_basic.py), and the whole bundle of the Python package is the fallback.
"""

import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage
from whitenoise.storage import CompressedManifestStaticFilesStorage

BASIC_PLOTLY = Path(sys.prefix) / "share" / "evalboard"
PLOTLY_VERSION = re.compile(r"plotly\.js (?:\([\w -]+\) )?v([\d.]+)")
# Style elements that Plotly would add by script, which a strict `style-src` refuses. Each is skipped where an element
# of its id is there already, so the page makes them, with the nonce: the global one is filled by script (allowed once
# it carries the nonce), that of the map library stays empty, since no page draws a map. The second id is a digest of
# the release, hence read from the script.
GLOBAL_STYLE = "plotly.js-style-global"
GUARDED_STYLE = re.compile(r'if\(!document\.getElementById\("([\w-]+)"\)\)\{var \w+=document\.createElement\("style"\)')


def _package_folder(package: str, inside: str) -> Path:
    return Path(str(files(package))) / inside


def plotly_version(folder: Path) -> str | None:
    """Return the version that the bundle in a folder names, None where there is no bundle."""
    try:
        with (folder / "plotly.min.js").open(encoding="utf-8") as script:
            named = PLOTLY_VERSION.search(script.read(200))
    except FileNotFoundError:
        return None
    return named[1] if named else None


@cache
def plotly_folder() -> Path:
    """Return the folder of the Plotly bundle: the basic one if it has the package's version."""
    whole = _package_folder("plotly", "package_data")
    return BASIC_PLOTLY if plotly_version(BASIC_PLOTLY) == plotly_version(whole) else whole


@cache
def plotly_style_ids() -> tuple[str, ...]:
    """Return the ids of the style elements that a page with a chart must have ready."""
    script = (plotly_folder() / "plotly.min.js").read_text(encoding="utf-8")
    return (GLOBAL_STYLE, *GUARDED_STYLE.findall(script))


def _scripts() -> Iterable[tuple[str, Path, tuple[str, ...]]]:
    """Yield (prefix under /static/, source folder, names of the files to serve)."""
    redoc = _package_folder("drf_spectacular_sidecar", "static/drf_spectacular_sidecar/redoc/bundles")
    yield "plotly", plotly_folder(), ("plotly.min.js",)
    yield "redoc", redoc, ("redoc.standalone.js",)
    # The second is asked for where EVALBOARD_DEBUG is on.
    htmx = _package_folder("django_htmx", "static/django_htmx")
    yield "django_htmx", htmx, ("htmx-2.min.js", "django-htmx.js")


class ScriptFinder(BaseFinder):
    """Finds only the scripts named above; other files of those folders are large and unused."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._storages: dict[str, tuple[str, FileSystemStorage]] = {}
        for prefix, folder, names in _scripts():
            storage = FileSystemStorage(location=folder)
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


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # WhiteNoise has no types
    """Names files by their content's digest, so that a browser may keep them for ever.

    What a script imports from its neighbours is renamed with them.
    """

    support_js_module_import_aggregation = True
    # No script's map is served, so what names one keeps its words.
    patterns = tuple(each for each in CompressedManifestStaticFilesStorage.patterns if each[0] != "*.js")
