"""The wings: what people may take out, since nothing else imports it (an import contract).

A wing has a package or module of its name on every floor. The floors load what it registers:

* `runs.NAME`: `open_work()` and `advance(id)` for the sweep, `advance_after(run_id)` for a run that changed
* `runs.NAME.api` and `frontend.NAME.views`: `urlpatterns`
* `frontend.NAME`: `SECTION`, its address and label in the navigation
* `evalboard.cli.NAME`: `register(app, group)` for its commands

Its records stay in `runs.models`, since there is one migration. Links from elsewhere look its addresses up by name.
"""

from importlib import import_module
from types import ModuleType

WINGS = ("lab",)


def load(place: str) -> list[ModuleType]:
    """Return a module of every wing. place: such as `runs.{}.api`."""
    return [import_module(place.format(name)) for name in WINGS]
