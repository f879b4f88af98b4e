"""A line on each page of the tour: what to look at, and where it goes on."""

from typing import Any

from django import template

from frontend.board import tour
from runs.tour import tour_of

register = template.Library()


@register.inclusion_tag("board/_tour_stop.html", takes_context=True)
def tour_stop(context: dict[str, Any]) -> dict[str, Any]:
    """Render the tour's line if the address is a stop of the tour."""
    request = context.get("request")
    if request is None or not context.get("viewer") or tour.PARAMETER not in request.GET:
        return {}
    offered = tour_of(request.user)
    stops = tour.stops(offered) if offered else ()
    stop = tour.find_stop(request.GET, stops)
    if offered is None or stop is None or stop.url.partition("?")[0] != request.path:
        return {}
    following = stops[stop.number] if stop.number < len(stops) else None
    return {
        "stop": stop,
        "n_stops": len(stops),
        "following": following,
        "others": () if following else tour.others(offered),
        "csrf_token": context.get("csrf_token"),
    }
