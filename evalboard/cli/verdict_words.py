"""Verdicts, leans and changes as people write them."""

from typing import Any

from evalboard.core.verdict_names import verdict_name

Json = dict[str, Any]

NO_VERDICT = "A lean, not a verdict: batched as cases came, no run is like another, and nothing is decided by it."


def of_lean(lean: str) -> str:
    return f"leaning {verdict_name(lean)}" if lean in ("ship", "no_ship") else "no lean either way"


def lean_of(gate: Json) -> str | None:
    """Which way a gate leans: "ship", "no_ship" or "none"; None where nothing can be said."""
    if gate["verdict"] in ("ship", "no_ship"):
        return str(gate["verdict"])
    found = gate["leaning"] if gate["verdict"] == "inconclusive" else None
    return None if found is None else str(found)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def change(gate: Json) -> str:
    """The change with its interval, "−0.6 [−1.1, −0.1]"; "" where there is none."""
    if gate["difference"] is None:
        return ""
    found = points(gate["difference"])
    return found if gate["low"] is None else f"{found} [{points(gate['low'])}, {points(gate['high'])}]"


def points(value: float) -> str:
    """A change in points, signed, to one decimal: "−0.6"."""
    shown = f"{value:+.1f}"
    return "0.0" if float(shown) == 0 else shown.replace("-", "\N{MINUS SIGN}")
