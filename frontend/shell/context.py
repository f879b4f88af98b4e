"""What every page needs beside its own report: who looks, what they may do, where they are."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from runs.access import roles

try:
    VERSION = version("evalboard")
except PackageNotFoundError:  # run from a checkout that is not installed
    VERSION = ""

SECTIONS = (
    ("board", "Board"),
    ("releases", "Releases"),
    ("suites", "Suites"),
    ("runs", "Runs"),
    ("compare_chosen", "Compare"),
    ("endpoints", "Endpoints"),
    ("experiments", "Lab"),
    ("workers", "Workers"),
    ("settings", "Settings"),
)
# What is reached from a section's page, and has addresses of its own.
ALSO_UNDER = {
    "/endpoints/": ("/fingerprints/", "/probes/"),
    "/lab/": ("/replays/",),
    "/runs/": ("/imports/",),
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
    """Who looks at the page; what they may not do is not offered."""

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
    here = request.path
    nav = tuple(NavItem(name, label, url := reverse(name), _is_under(here, url)) for name, label in SECTIONS)
    viewer = Viewer(user.get_username(), roles.RUN in scopes, roles.SIGN in scopes, roles.ADMIN in scopes)
    return base | {"viewer": viewer, "nav": nav}


def _is_under(path: str, url: str) -> bool:
    under = [url, *ALSO_UNDER.get(url, ())]
    return path == url if url == "/" else any(path.startswith(each) for each in under)
