"""Whether the server is alive, and whether it can take work."""

from typing import Annotated

from evalboard.contract.base import Contract, Note, says


class Health(Contract):
    status: Annotated[str, says(enum=("alive",))]


class Readiness(Contract):
    status: Annotated[str, says(enum=("ready",))]
    warnings: tuple[Note, ...]
