"""Parse the server's answers as contracts of `evalboard.contract`, together with their JSON."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from importlib import metadata
from operator import getitem
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from evalboard.client.errors import WrongUse
from evalboard.contract.base import Contract

Json = dict[str, Any]
Kind = TypeVar("Kind", bound=Contract)
Value = TypeVar("Value", bound=Contract, covariant=True)


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """An answer. `value` has the fields that this version knows; `json` has those of a newer server too.

    `is_new` is False if the server already had the same content, and stored nothing.
    """

    value: Value
    json: Json
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class Download:
    """A file as it is received. n_rows: how many rows it must have, None if unknown."""

    parts: Iterator[bytes]
    n_rows: int | None


def parse(kind: type[Kind], json: Any, *, url: str) -> Kind:
    """Parse an answer of the server at `url` as a contract, ignoring fields that only a newer server has.

    A field that an older server does not answer is None, where it may be. Raises WrongUse where it may not, or where a
    field has another form than this version knows; the sentence names the field, and the version that is needed.
    """
    missing: list[tuple[int | str, ...]] = []
    try:
        return kind.model_validate(json, strict=False, extra="ignore")
    except ValidationError as problem:
        missing += [error["loc"] for error in problem.errors(include_url=False) if error["type"] == "missing"]
    try:
        return kind.model_validate(_add_nulls(json, missing), strict=False, extra="ignore")
    except ValidationError as problem:
        location = problem.errors(include_url=False)[0]["loc"]
        field = ".".join(map(str, location)) or "a field"
        version = metadata.version("evalboard")
        if location in missing:
            needed = f"this client needs a server of version {version} or later."
            raise WrongUse(f"{url} answered without {field}: {needed}") from problem
        needed = f"this client, version {version}, does not know: use one of the server's version."
        raise WrongUse(f"{url} answered with {field} in a form that {needed}") from problem


def _add_nulls(json: Any, locations: Iterable[tuple[int | str, ...]]) -> Any:
    """Return a copy with null at each location, skipping locations inside a union of types."""
    whole = deepcopy(json)
    for *path, name in locations:
        with suppress(LookupError, TypeError):
            reduce(getitem, path, whole)[name] = None
    return whole
