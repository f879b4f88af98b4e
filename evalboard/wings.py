"""The wings: what people may take out, since nothing else imports it (an import contract).

A wing has a package or module of its name on every floor that it needs. The floors gather what it registers there, all
of it sequences:

* `runs.NAME`: `REQUESTS`, rows that workers claim; `SWEPT`, pairs of `open_work()` and `advance(id)` for the sweep;
  `AFTER_RUN`, functions of the id of a run that changed; `AFTER_IMPORT`, functions of what an import stored, in its
  transaction; `PROBE_KINDS`, pairs of a kind of probe that makes no calls and its `runs.probes.ProbeCourse`
* `worker.NAME`: `JOBS`, which workers go through before shards
* `runs.NAME.api` and `frontend.NAME.views`: `urlpatterns`
* `frontend.NAME.parts`: `PARTS`, pairs of a page and a function that returns a `frontend.shell.findings.Part` of it or
  None. It is given what the page shows: "comparison" (record), "pair" (contract, address at a position), "response"
  (run, repeat, case), "imported_run" (contract)
* `frontend.NAME`: `SECTIONS`, addresses and labels in the navigation
* `evalboard.cli.NAME`: `register(app, group)` for its commands

Its records stay in `runs.models`, since there is one migration. Links from elsewhere look its addresses up by name.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

WINGS = ("forced", "lab")


def load(place: str) -> list[ModuleType]:
    """Return a module of every wing that has one there. place: such as `runs.{}.api`."""
    modules = [place.format(name) for name in WINGS]
    return [import_module(module) for module in modules if find_spec(module) is not None]


def gather(place: str, name: str) -> list[Any]:
    """Return all that wings register by a name in their modules of a place."""
    return [each for module in load(place) for each in getattr(module, name, ())]
