"""Write and read a release as one file: verdict, evidence and sign-offs (docs/formats.md).

The file is enough to judge the release again with the same code: neither a server nor its database is needed.
"""

import base64
import hashlib
import json
from collections import abc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import IO, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from evalboard.core.archive.run_archive import ArchiveMember, write_archive
from evalboard.core.archive.run_archive_reader import Archive, ArchiveDamaged, reading
from evalboard.core.digest import canonical_json, digest_json
from evalboard.core.release import GateEvidence, digest_verdict

BUNDLE_FORMAT, BUNDLE_VERSION = "evalboard-release", 1
RELEASE_NAME = "release.json"
_DTYPES = {np.dtype(name).str for name in ("float64", "int64", "uint8", "bool")}

Json = dict[str, Any]


def evidence_name(gate: int) -> str:
    return f"gates/{gate}/evidence.json"


def cases_name(gate: int) -> str:
    return f"gates/{gate}/cases.jsonl"


def dump_evidence(gate: GateEvidence) -> bytes:
    """Return a gate's evidence as canonical JSON, without its history.

    The history (warnings about earlier candidates) is left out because it changes after the verdict.
    """
    return canonical_json(_dump(replace(gate, history=())))


def digest_evidence(gates: Iterable[bytes]) -> str:
    """Return the digest of all gates' evidence in their order, which a sign-off covers."""
    return digest_json([hashlib.sha256(each).hexdigest() for each in gates])


def write_bundle(release: Json, evidence: Sequence[bytes], cases: Sequence[Iterable[Json]]) -> Iterator[bytes]:
    """Yield the bundle's bytes in parts. evidence, cases: per gate; cases: answers to its worst cases.

    Nothing is compressed, so that a reader can reproduce the bytes and locate a change.
    """
    members = [ArchiveMember(RELEASE_NAME, [canonical_json(release)])]
    for at, (dumped, rows) in enumerate(zip(evidence, cases, strict=True)):
        members.append(ArchiveMember(evidence_name(at), [dumped]))
        members.append(ArchiveMember(cases_name(at), (canonical_json(row) + b"\n" for row in rows)))
    return _write(members, len(evidence))


def _write(members: Iterable[ArchiveMember], n_gates: int) -> Iterator[bytes]:
    stored = (replace(member, is_packed=True) for member in members)
    return write_archive(stored, lambda: {"n_gates": n_gates}, kind=(BUNDLE_FORMAT, BUNDLE_VERSION), is_packed=True)


class SignedBundle(NamedTuple):
    """A sign-off of a bundle.

    covers: the part of the file that it signs, in words. problem: why it is invalid; "" if it is valid.
    """

    person: str
    decision: str
    created_at: str
    digest: str
    covers: str
    problem: str


class ReleaseBundle(Archive):
    """A bundle in an open, seekable file. Methods raise ArchiveDamaged if it was changed or cut."""

    kind = BUNDLE_FORMAT
    what = "release"
    versions = (BUNDLE_VERSION,)
    max_manifest_bytes = 1 << 20  # of thousands of gates
    is_deflated = False

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        with reading(f"{RELEASE_NAME} cannot be read"):
            self.release: Json = json.loads(self.read_member(RELEASE_NAME))
            self.n_gates = int(self.manifest["n_gates"])

    def check(self) -> None:
        """Check every digest, and the structure of the release's JSON."""
        self.check_members()
        members = (ArchiveMember(each["name"], [self.read_member(each["name"])]) for each in self.manifest["members"])
        at = 0
        for part in _write(members, self.n_gates):
            self._file.seek(at)
            if self._file.read(len(part)) != part:
                raise ArchiveDamaged(f"The export is damaged: it was changed after byte {at:,}, outside its members.")
            at += len(part)
        if self._file.read(1):
            raise ArchiveDamaged(f"The export is damaged: something follows its end, at byte {at:,}.")
        with reading(f"{RELEASE_NAME} is not what it should be"):
            for name in ("release", "chain", "gates", "policy", "sign_offs"):
                self.release[name]
            verdict = self.release["verdict"]
            if not isinstance(verdict["document"]["summary"], str) or not isinstance(verdict["word"], str):
                raise ValueError("its verdict has no sentence")

    def sign_offs(self) -> Iterator[SignedBundle]:
        """Yield the sign-offs, oldest first, each with its problem if it is invalid."""
        evidence = digest_evidence(self.read_member(evidence_name(at)) for at in range(self.n_gates))
        verdict, chain = self.release["verdict"], self.release["chain"]
        with reading("its sign-offs cannot be read"):
            signed = digest_verdict(verdict["word"], verdict["document"], self.release["policy"])
            for row in self.release["sign_offs"]:
                covers, problem, extent = row["covers"], "", "covers an earlier verdict, which is not in this file"
                if digest_json(covers) != row["digest"]:
                    problem = "it was changed after it was signed."
                elif str(covers["release"]) != self.release["release"]:
                    problem = f"it is of release {covers['release']}."
                elif row["digest"] not in chain or covers["previous"] != _before(chain, row["digest"]):
                    problem = "it does not follow the sign-off before it."
                elif str(covers["verdict"]) == verdict["id"]:
                    extent = "covers the verdict"
                    if covers.get("verdict_digest", signed) != signed:
                        problem = "the verdict, or its policy, is not the one that was signed."
                    elif covers.get("evidence_digest", "") not in ("", evidence):
                        problem = "the evidence is not the one that the verdict was signed on."
                    elif covers.get("evidence_digest"):
                        extent = "covers the verdict and its evidence"
                person, decision, at = (str(covers[name]) for name in ("person_name", "decision", "created_at"))
                yield SignedBundle(person, decision, at, row["digest"], extent, problem)

    def evidence(self) -> Iterator[GateEvidence]:
        """Yield the evidence of each gate, reading one at a time."""
        for at in range(self.n_gates):
            name = evidence_name(at)
            with reading(f"{name} cannot be read"):
                gate: GateEvidence = _load(GateEvidence, json.loads(self.read_member(name)), "")
            yield gate


def _before(chain: Sequence[str], digest: str) -> str:
    at = chain.index(digest)
    return chain[at - 1] if at else ""


def _dump(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _dump(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"dtype": value.dtype.str, "shape": list(value.shape), "base64": data}
    if isinstance(value, Mapping):
        return {str(key): _dump(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_dump(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def _load(kind: Any, value: Any, place: str) -> Any:
    """Convert JSON to a value of `kind`, a class or an annotation. place: its path, for error texts."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, UnionType):
        if value is None and NoneType in parts:
            return None
        (kind,) = (part for part in parts if part is not NoneType)
        return _load(kind, value, place)
    if origin is np.ndarray:
        return _load_array(value, place)
    if origin in (abc.Sequence, tuple) and isinstance(value, list):
        return tuple(_load(parts[0], each, f"{place}[{at}]") for at, each in enumerate(value))
    if origin is abc.Mapping and isinstance(value, dict):
        return {parts[0](key): _load(parts[1], each, f"{place}.{key}") for key, each in value.items()}
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        hints = _hints(kind)
        if value.keys() != hints.keys():
            names = ", ".join(sorted(value.keys() ^ hints.keys()))
            raise ArchiveDamaged(f"{place or 'The evidence'} has other fields than this program knows: {names}.")
        return kind(**{name: _load(hints[name], each, f"{place}.{name}".strip(".")) for name, each in value.items()})
    if isinstance(kind, type) and isinstance(value, (float, int) if kind is float else kind):
        return value
    raise ArchiveDamaged(f"{place or 'The evidence'} is not what it should be: {str(value)[:80]!r}.")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _load_array(value: Any, place: str) -> NDArray[Any]:
    if value["dtype"] not in _DTYPES:
        raise ArchiveDamaged(f"{place} has numbers of kind {str(value['dtype'])[:20]}, which is none of a release.")
    data = base64.b64decode(value["base64"], validate=True)
    return np.frombuffer(data, dtype=value["dtype"]).reshape(value["shape"])
