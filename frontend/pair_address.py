"""The addresses of two responses held against each other, with what the reader came from kept in them."""

from collections.abc import Mapping
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from evalboard.core.paired import OUTCOMES
from frontend.addresses import BEFORE_DOTS
from runs.selectors.divergence_list import DivergenceFilter

CHANGED = {"yes": True, "no": False}
FILTERS = ("outcome", "look", "cause", "changed", "tag", "backend", "cluster", "q")
MOST_DIGITS = 9

Kept = Mapping[str, str]  # filters of the address, as `asked_filter` gives them
NOTHING: Kept = {}


def asked_filter(request: HttpRequest) -> dict[str, str]:
    """The filters of the address that say something, as they stand there."""
    found = {name: request.GET.get(name, "").strip()[:200] for name in FILTERS}
    if found["changed"] not in CHANGED:
        found["changed"] = ""
    if found["outcome"] not in OUTCOMES:
        found["outcome"] = found["look"] = ""
    if asked_look(found) is None:
        found["look"] = ""
    return {name: value for name, value in found.items() if value}


def asked_look(asked: Mapping[str, str]) -> int | None:
    """The first so many repeats of each side, as a verdict at that look reads them; None for all."""
    text = asked.get("look", "")
    return int(text) or None if text.isascii() and text.isdigit() and len(text) < MOST_DIGITS else None


def divergence_filter(asked: dict[str, str]) -> DivergenceFilter:
    return DivergenceFilter(
        cause=asked.get("cause", ""),
        is_changed=CHANGED.get(asked.get("changed", "")),
        tag=asked.get("tag", ""),
        backend=asked.get("backend", ""),
        cluster=asked.get("cluster", ""),
        query=asked.get("q", ""),
    )


def asked_repeats(request: HttpRequest) -> tuple[int, int] | None:
    """The two repeats of `?repeat=1,2`, or of a form's two fields; nonsense reads as none."""
    parts = ",".join(request.GET.getlist("repeat")).split(",")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < MOST_DIGITS for part in parts):
        return None
    return int(parts[0]), int(parts[1])


def of_comparison(
    baseline: int, candidate: int, *, repeats: tuple[int, int] | None = None, kept: Kept = NOTHING
) -> str:
    query = ({} if repeats is None else {"repeat": f"{repeats[0]},{repeats[1]}"}) | dict(kept)
    return f"{reverse('compare', args=[baseline, candidate])}{f'?{_encoded(query)}' if query else ''}"


def of_pair(
    baseline: int,
    candidate: int,
    case_id: str,
    *,
    repeats: tuple[int, int],
    at: int | None = None,
    kept: Kept = NOTHING,
) -> str:
    """The trace diff page of one case; see `addresses.of_response` for its dots."""
    place = BEFORE_DOTS.sub("%2F", reverse("trace_diff", args=[baseline, candidate, case_id]))
    query = {"repeat": f"{repeats[0]},{repeats[1]}"} | dict(kept) | ({} if at is None else {"at": str(at)})
    return f"{place}?{_encoded(query)}"


def _encoded(query: dict[str, str]) -> str:
    return urlencode(query, safe=",")
