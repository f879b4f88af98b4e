"""Pins are attested, not assumed: what was wanted against what the engine says of itself."""

from collections.abc import Mapping
from typing import Any


def attest(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one {"name", "wanted", "found", "held"} for each pin, broken ones first, then by name.

    A value that the engine does not report is found as None with `held` false: unknown is never equal.
    """
    pins = [
        {
            "name": name,
            "wanted": value,
            "found": found.get(name),
            "held": name in found and _is_same(value, found[name]),
        }
        for name, value in wanted.items()
    ]
    return sorted(pins, key=lambda pin: (pin["held"], pin["name"]))


def _is_same(wanted: Any, found: Any) -> bool:
    """Equal in kind too: True is not 1 here, though Python says so. Whole floats may come back as integers."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    return bool(wanted == found)
