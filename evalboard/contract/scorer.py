"""Teams' own scorers as workers have them. Without pydantic: workers start with it."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["python", "command", "http"]


@dataclass(frozen=True, slots=True)
class InstalledScorer:
    """A scorer on a worker.

    digest: SHA-256 of what it is: a package's files, the program's file, or what a service says of fixed answers.
    version: of its distribution, or that a service reports, "" without one. place: `module:name` of an entry point, or
    a path on that worker. problem: why the worker cannot run it, "" where it can.
    """

    kind: Kind
    name: str
    digest: str
    version: str
    place: str
    problem: str = ""
