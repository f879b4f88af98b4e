"""Identify who answered, from a log or an external server: the model by name, and each backend."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evalboard.core.compare import UNNAMED, digest_model_name
from evalboard.core.document import storable
from evalboard.importers.records import ServedBy

# Where a key says no more than these, it names no backend: the one is kept by itself, the other is only a place.
NO_BACKEND = ("system_fingerprint", "base_url")
MAX_PART_CHARS = 200

Known = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model known by name and declared revision. line: its model line."""

    name: str
    line: str
    revision: str
    digest: str


def name_model(name: str, revision: str = "", *, line: str = "") -> NamedModel:
    """Return the model as it is stored; without a line that of its name."""
    name, revision = storable(name)[:200] or UNNAMED, storable(revision)[:100]
    return NamedModel(name, line or name[:80], revision, digest_model_name(name, revision))


def known_parts(served: ServedBy) -> Known:
    """Return a backend's identifying parts by name, without unknown ones."""
    has_backend = bool(served.key) and served.key_from not in NO_BACKEND
    parts = {
        "system_fingerprint": served.system_fingerprint,
        "backend": served.key if has_backend else "",
        "backend_from": served.key_from if has_backend else "",
        "model_reported": served.model,
    }
    return tuple((name, storable(value)[:300]) for name, value in parts.items() if value)


@dataclass(frozen=True, slots=True)
class Backend:
    """The common facts of all answers of a backend. known: identifies it. parts: by names of headers."""

    known: Known
    parts: Mapping[str, str]

    def manifest(self, **about: str) -> dict[str, dict[str, str]]:
        """Return the manifest of its engine process, with the non-empty values of `about`."""
        named = {name: value for name, value in about.items() if value}
        parts = {**named, **self.parts}
        cut = {storable(name): storable(str(value))[:MAX_PART_CHARS] for name, value in parts.items()}
        return {"source": {**dict(self.known), **cut}}


def read_backend(answers: Iterable[ServedBy]) -> Backend:
    """Return what these answers of one backend, at least one, have in common."""
    first, *others = answers
    alike = {
        name: value for name, value in first.parts.items() if all(each.parts.get(name) == value for each in others)
    }
    return Backend(known_parts(first), alike)
