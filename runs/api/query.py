"""Read query parameters strictly: unknown ones are refused, since a typo would mean "no filter"."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.utils.dateparse import parse_date
from rest_framework.request import Request

from evalboard.core.errors import InvalidInput
from runs.api.pages import PARAMETERS
from runs.store import Orders, ordering_names

MAX_ID_DIGITS = 18  # below 2**63


def read(request: Request, known: Iterable[str] = (), *, is_paged: bool = True) -> dict[str, str]:
    """Return the sent parameters without those of paging. Raises InvalidInput, naming each invalid one."""
    allowed = {*known, *(PARAMETERS if is_paged else ())}
    fields: dict[str, str] = {}
    for name in request.query_params:
        if name not in allowed:
            fields[name] = f"Unknown parameter; known are: {', '.join(sorted(allowed)) or 'none'}."
        elif len(request.query_params.getlist(name)) > 1:
            fields[name] = "Given more than once."
        elif "\0" in request.query_params[name]:
            fields[name] = "Holds a NUL character."
    if fields:
        raise InvalidInput("The query is not valid.", fields=fields)
    return {name: request.query_params[name] for name in known if name in request.query_params}


def read_values(request: Request, known: Mapping[str, Mapping[str, Any]], *, is_paged: bool = True) -> dict[str, Any]:
    """Return every known parameter as described: a number or None, a word of its enum or "", text or ""."""
    sent = read(request, known, is_paged=is_paged)
    values = dict[str, Any]()
    for name, about in known.items():
        if about["type"] == "integer":
            values[name] = number(sent, name)
        else:
            values[name] = choice(sent, name, about["enum"]) if "enum" in about else sent.get(name, "")
    return values


def number(sent: dict[str, str], name: str) -> int | None:
    """Return a whole number above zero; None where it was not sent."""
    text = sent.get(name)
    if text is None:
        return None
    if not re.fullmatch(rf"[0-9]{{1,{MAX_ID_DIGITS}}}", text, re.ASCII):
        raise InvalidInput("The query is not valid.", fields={name: "Must be a whole number."})
    return int(text)


def numbers(sent: dict[str, str], name: str) -> list[int]:
    """Return whole numbers above zero, which are separated by commas; none where they were not sent."""
    return [number({name: part}, name) or 0 for part in sent[name].split(",")] if name in sent else []


def choice(sent: dict[str, str], name: str, among: Iterable[str]) -> str:
    """Return one of some words; "" where it was not sent."""
    text, known = sent.get(name, ""), list(among)
    if name in sent and text not in known:
        raise InvalidInput("The query is not valid.", fields={name: f"Must be one of: {', '.join(known)}."})
    return text


def ordering(sent: dict[str, str], orders: Orders) -> str:
    """Return the order that a request names; "" for the list's own."""
    return choice(sent, "ordering", ordering_names(orders))


def ordering_of(orders: Orders) -> dict[str, dict[str, object]]:
    """Describe the query parameter `ordering` of a list."""
    names = list(ordering_names(orders))
    return {"ordering": {"type": "string", "enum": names, "description": "a minus sorts in descending order"}}


def days(sent: dict[str, str], name: str) -> tuple[datetime | None, datetime | None]:
    """Parse `2026-11-20`, or `2026-11-01..2026-11-20` including both days, to (from, until) in UTC.

    until is exclusive.
    """
    if name not in sent:
        return None, None
    first, _, last = sent[name].partition("..")
    try:
        begin, end = parse_date(first), parse_date(last or first)
        until = end and end + timedelta(days=1)
    except (ValueError, OverflowError):  # the shape of a date, but no such day, or none after it
        begin = until = None
    if begin is None or until is None or until <= begin:
        raise InvalidInput("The query is not valid.", fields={name: "Must be a day, or two as 2026-11-01..2026-11-20."})
    midnight = time(tzinfo=UTC)
    return datetime.combine(begin, midnight), datetime.combine(until, midnight)
