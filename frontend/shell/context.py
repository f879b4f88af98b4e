"""The context of every page: who views it, their rights, and the current section."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from evalboard import wings
from frontend.shell.version import VERSION
from runs.access import roles

SECTIONS = (
    ("board", "Board"),
    ("releases", "Releases"),
    ("suites", "Suites"),
    ("runs", "Runs"),
    ("compare_chosen", "Compare"),
    ("endpoints", "Endpoints"),
    *wings.gather("frontend.{}", "SECTIONS"),
    ("workers", "Workers"),
    ("settings", "Settings"),
)
# What is reached from a section's page, and has addresses of its own.
ALSO_UNDER = {
    "/endpoints/": ("/fingerprints/", "/probes/", "/settings/endpoints/"),
    "/lab/": ("/replays/",),
    "/runs/": ("/imports/", "/rollouts/"),
    "/settings/": ("/schedules/",),
}


@dataclass(frozen=True, slots=True)
class NavItem:
    name: str
    label: str
    url: str
    is_here: bool


@dataclass(frozen=True, slots=True)
class Viewer:
    """The person viewing the page; actions they may not take are hidden."""

    name: str
    may_run: bool
    may_sign: bool
    may_admin: bool


def page_context(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    request_id = getattr(request, "request_id", "")
    base: dict[str, Any] = {"version": VERSION, "request_id": request_id, "viewer": None, "nav": ()}
    if user is None or not user.is_authenticated:
        return base
    scopes = roles.scopes_of(user)
    urls = [reverse(name) for name, _ in SECTIONS]
    here = _section_of(request.path, urls)
    nav = tuple(NavItem(name, label, url, url == here) for (name, label), url in zip(SECTIONS, urls, strict=True))
    viewer = Viewer(user.get_username(), roles.RUN in scopes, roles.SIGN in scopes, roles.ADMIN in scopes)
    return base | {"viewer": viewer, "nav": nav}


def _section_of(path: str, urls: Iterable[str]) -> str:
    """Return the section of a path by its longest prefix; the board is only its own path."""
    begins = {each: url for url in urls for each in (url, *ALSO_UNDER.get(url, ()))}
    under = [each for each in begins if (path == each if each == "/" else path.startswith(each))]
    return begins[max(under, key=len)] if under else ""
