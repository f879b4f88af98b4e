"""The looks of a page: theme and width. The gate takes one look at every address (test_every_page.py), `make nightly`
all four at every situation.
"""

from typing import Any

import pytest

ALL = [(theme, width) for theme in ("light", "dark") for width in (1280, 390)]
THEME_AND_WIDTH = ("theme", "width")


def once(theme: str, width: int) -> list[Any]:
    """Return all looks as parameters, those but the named one marked `nightly`."""
    return [pytest.param(*look, marks=() if look == (theme, width) else pytest.mark.nightly) for look in ALL]


# A script of a page that collects its layout shifts.
SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => window.shifts.push(...list.getEntries()))
  .observe({ type: "layout-shift", buffered: true });
"""

PHONE = once("dark", 390)  # where a page is most likely too wide
DESK = once("light", 1280)
