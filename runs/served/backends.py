"""Who answered, as far as a log or a server of others says: the model by its name, and a bucket for each backend."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evalboard.core.profile import OBSERVED, identify_log
from evalboard.importers.records import ServedBy
from runs.models import BucketRecord, FingerprintRecord, Model
from runs.store import imported, storable

# Where a key says no more than these, it names no backend: the one is kept by itself, the other is only a place.
NO_BACKEND = ("system_fingerprint", "base_url")
MAX_PART_CHARS = 200
UNNAMED = "unnamed model"

Known = tuple[tuple[str, str], ...]


def model_of(name: str, revision: str = "", *, line: str = "") -> Model:
    """Return the model by its name and declared revision, which is all that is known of it: one row for logs and calls.

    line: the series that it belongs to; without one its name.
    """
    name, revision = storable(name)[:200] or UNNAMED, storable(revision)[:100]
    known = {"name": name, "line": line or name[:80], "revision": revision}
    return Model.objects.get_or_create(digest=imported.model_digest(name, revision), defaults=known)[0]


def known_parts(served: ServedBy) -> Known:
    """Return what of a backend is part of its fingerprint, by name; what nobody says is not there."""
    has_backend = bool(served.key) and served.key_from not in NO_BACKEND
    parts = {
        "system_fingerprint": served.system_fingerprint,
        "backend": served.key if has_backend else "",
        "backend_from": served.key_from if has_backend else "",
        "model_reported": served.model,
    }
    return tuple((name, storable(value)[:300]) for name, value in parts.items() if value)


def bucket_of(model: Model, known: Known, *, log: str = "", run: str = "") -> BucketRecord:
    """Return the bucket of a reported stack; how it batches, nobody says.

    log, run: what stands in for the stack where nothing names it, so that no other log and no other run has it.
    """
    identity = identify_log(dict(known), log=log, run=run)
    print_, _ = FingerprintRecord.objects.get_or_create(
        digest=identity.digest, defaults={"label": identity.label, "manifest": identity.manifest}
    )
    return BucketRecord.objects.get_or_create(model=model, fingerprint=print_, batch_class=OBSERVED)[0]


@dataclass(frozen=True, slots=True)
class Backend:
    """What is said of all answers of a backend alike. known: what identifies it. parts: by the names of headers."""

    known: Known
    parts: Mapping[str, str]

    def manifest(self, **about: str) -> dict[str, dict[str, str]]:
        """Return the manifest of its engine process; `about` is what stands there beside, where it is not empty."""
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
