"""The table of a capability check: each parameter, what was sent, and what the endpoint made of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.wording.capability import LABELS, describe_parameter, describe_state_of_parameter


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One parameter of a capability check. ink: a class; the glyph says the state without its colour."""

    name: str
    wanted: str
    word: str
    glyph: str
    ink: str
    seen: str


MARKS = {
    "honoured": ("pass", "pass"),
    "refused": ("error", "fail"),
    "ignored": ("warning", "partly"),
    "not_asked": ("idle", "quiet-ink"),
    "unclear": ("inconclusive", "quiet-ink"),
}


def parameter_rows(numbers: Mapping[str, Any]) -> tuple[ParameterRow, ...]:
    """Return the table of a capability check; nothing where too little was answered."""
    return tuple(
        ParameterRow(
            LABELS[row["parameter"]],
            "" if row["asked"] is None else str(row["asked"]).lower(),
            describe_state_of_parameter(row),
            *MARKS[row["state"]],
            describe_parameter(row),
        )
        for row in numbers.get("rows", ())
    )
