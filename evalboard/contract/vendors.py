"""The vendor card: what was measured of the endpoints that claim one model, side by side."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Id, Instant, says

CELL_STATES = ("good", "fault", "refused", "ignored", "unclear", "measured", "several", "not_measured")


class VendorCell(Contract):
    """One row of the card for one endpoint."""

    state: Annotated[str, says(enum=CELL_STATES)]
    sentence: str
    n: Annotated[Count | None, says(description="answers, calls or prompts that decided it; null without a count")]
    at: Annotated[Instant | None, says(description="when it was measured")]
    probe: Annotated[Id | None, says(description="the probe behind it")]


class VendorRow(Contract):
    """One row of the card, with a cell for each endpoint in their order."""

    row: Annotated[str, says(description="its name in docs/probes.md, or `parameter.` with a parameter's name")]
    label: str
    cells: tuple[VendorCell, ...]


class VendorColumn(Contract):
    """An endpoint of the card."""

    endpoint: str
    model: Annotated[str, says(description="the name that it is asked for")]
    mixes: Annotated[str | None, says(description="why several vendors may answer behind it; null if nothing says so")]
    commands: Annotated[tuple[str, ...], says(description="what adds an endpoint of one vendor alone")]


class VendorCard(Contract):
    """The newest probes of endpoints that claim one model, up to a time. There is no total score."""

    suite: Annotated[str | None, says(description="the suite that `verify` used; null: any")]
    reference: Annotated[str | None, says(description="the endpoint that the others are compared with; null: none")]
    until: Annotated[Instant | None, says(description="nothing newer is used; null: no limit")]
    endpoints: tuple[VendorColumn, ...]
    rows: tuple[VendorRow, ...]
