"""The table of a capability check: each parameter, what was sent, and what the endpoint made of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.wording.capability import LABELS, describe_parameter
from frontend.endpoints.words import ParameterState, mark_parameter


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One parameter of a capability check."""

    name: str
    wanted: str
    state: ParameterState
    seen: str


def parameter_rows(numbers: Mapping[str, Any]) -> tuple[ParameterRow, ...]:
    """Return the table of a capability check; nothing where too little was answered."""
    return tuple(
        ParameterRow(
            LABELS[row["parameter"]],
            "" if row["asked"] is None else str(row["asked"]).lower(),
            mark_parameter(row),
            describe_parameter(row),
        )
        for row in numbers.get("rows", ())
    )
