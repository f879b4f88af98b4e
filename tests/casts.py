"""Rows that several tests look at are stored once, and each of these tests is rolled back to them.

`@cast` makes a fixture of a function that stores rows and returns what tests need of them. Its parameters are other
casts, and `param` for one that tests parametrise indirectly. A test finds the rows of those casts that it names, itself
or through its fixtures, and of no others: what else the test before it named is rolled back first. Hence tests of the
same casts follow each other, in one process. Every test gets a copy of what the function returned. A test that commits
stores the rows for itself.
"""

import copy
import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

Store = Callable[..., Any]
FIXTURE, CACHE = type(pytest.fixture(lambda: None)), type(functools.cache(len))
COMMITTING = {"transactional_db", "live_server"}
MAX_AGE_SECONDS = 30.0  # then rows are stored anew: a worker that was seen just now must not have gone silent
_stores: dict[Any, Store] = {}  # by fixture
_shared: dict[str, dict[Path, Store]] = {}  # by name, and by the folder of its conftest.py


class Cast(NamedTuple):
    store: Store
    param: Any = None

    def __str__(self) -> str:
        return f"{self.store.__qualname__}[{self.param}]"


def cast(store: Store) -> Any:
    @pytest.fixture(name=store.__name__)
    def fixture(request: pytest.FixtureRequest, casts: "Casts", db: None) -> Any:
        return casts.read(Cast(store, getattr(request, "param", None)))

    _stores[fixture] = store
    if (file := Path(store.__code__.co_filename)).name == "conftest.py":
        _shared.setdefault(store.__name__, {})[file.parent] = store
    return fixture


def with_param(cast: str, *params: Any) -> Any:
    """Return the mark of a test that is one for each of these parameters of a cast."""
    return pytest.mark.parametrize(cast, params, indirect=True)


def casts_of(item: pytest.Item) -> tuple[Cast, ...]:
    """Return the casts that a test names, itself or through fixtures, each after those that it builds on."""
    module, params = vars(getattr(item, "module", sys)), item.callspec.params if hasattr(item, "callspec") else {}
    named = [(name, _named(name, module, item.path)) for name in sorted(getattr(item, "fixturenames", ()))]
    casts = [Cast(store, params.get(name)) for name, store in named if store is not None]
    return tuple(dict.fromkeys(each for cast in casts for each in _with_needs(cast)))


def _with_needs(cast: Cast) -> list[Cast]:
    return [*(each for need in _needs(cast.store).values() for each in _with_needs(need)), cast]


def _named(name: str, module: Mapping[str, Any], path: Path) -> Store | None:
    """Return the cast of this name in the module, or in the nearest conftest.py, where pytest looks for it too."""
    if isinstance(module.get(name), FIXTURE):
        return _stores.get(module[name])
    above = _shared.get(name)
    return next((above[folder] for folder in path.parents if folder in above), None) if above else None


@functools.cache
def _needs(store: Store) -> dict[str, Cast]:
    """Return the casts that a cast builds on, by parameter."""
    names = [name for name in inspect.signature(store).parameters if name != "param"]
    needs = {name: _named(name, store.__globals__, Path(store.__code__.co_filename)) for name in names}
    assert None not in needs.values(), f"{store.__qualname__} takes what is no cast."
    return {name: Cast(need) for name, need in needs.items() if need is not None}


class Casts:
    """The casts whose rows are there: each in a savepoint on top of the one before it, the first in a transaction."""

    def __init__(self) -> None:
        self._wanted: tuple[Cast, ...] = ()
        self._blocker: Any = None
        self._stored: list[tuple[Cast, Any, Any]] = []  # with its atomic block and what it returned
        self._since = 0.0
        self._copies: dict[Cast, Any] = {}  # what the present test is given

    def turn_to(self, item: pytest.Item) -> None:
        """Have the rows of a test's casts there and no others, before its own transaction begins."""
        self._wanted = () if _commits(item) else casts_of(item)
        if self._blocker is not None:
            self._settle()

    def open(self, blocker: Any) -> None:
        """Begin: there is a database, and pytest-django's blocker lets its users through."""
        self._blocker = blocker
        self._settle()

    def close(self) -> None:
        self._wanted = ()
        self._settle()
        self._blocker = None

    def read(self, cast: Cast) -> Any:
        """Return what a cast gives the present test, which stores it itself where it commits."""
        if cast not in self._copies:
            given = {name: self.read(need) for name, need in _needs(cast.store).items()}
            if "param" in inspect.signature(cast.store).parameters:
                given["param"] = cast.param
            self._copies[cast] = cast.store(**given)
        return self._copies[cast]

    def _settle(self) -> None:
        is_old = time.monotonic() - self._since > MAX_AGE_SECONDS
        same = (stored[0] == cast for stored, cast in zip(self._stored, self._wanted, strict=False))
        n_kept = 0 if is_old else sum(takewhile(bool, same))
        with self._blocker.unblock():
            while len(self._stored) > n_kept:
                _roll_back(self._stored.pop()[1])
            if self._wanted:
                self._store(self._wanted[n_kept:])
                _forget_what_was_read()
        self._copies = self._copied()

    def _store(self, casts: Iterable[Cast]) -> None:
        """Store casts, up to one that fails: it fails once more where the test asks for it."""
        from django.db import connection, transaction

        if not self._stored:
            self._since = time.monotonic()
        for cast in casts:
            self._copies = self._copied()
            block: Any = transaction.atomic()
            block._from_testcase = True  # as Django marks a test's: what must be outermost elsewhere may begin inside
            block.__enter__()
            try:
                value = self.read(cast)
                connection.check_constraints()  # else every test has these rows checked again
            except Exception:  # noqa: BLE001 - whatever a test's rows meet
                _roll_back(block)
                return
            self._stored.append((cast, block, value))

    def _copied(self) -> dict[Cast, Any]:
        return copy.deepcopy({cast: value for cast, _, value in self._stored})


def _commits(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("django_db")
    is_marked = marker is not None and bool(marker.kwargs.get("transaction"))
    return is_marked or bool(COMMITTING & set(getattr(item, "fixturenames", ())))


def _roll_back(block: Any) -> None:
    from django.db import transaction

    transaction.set_rollback(True)
    block.__exit__(None, None, None)


def _forget_what_was_read() -> None:
    """Empty this process's caches: to another test, a row of the same id may say something else."""
    from django.core.cache import caches

    for cache in caches.all(initialized_only=True):
        cache.clear()
    for known in _caches(len(sys.modules)):
        known.cache_clear()


@functools.lru_cache(maxsize=1)
def _caches(n_modules: int) -> list[Any]:  # by how many modules there are: some are imported late
    ours = [module for name, module in list(sys.modules.items()) if name.startswith(("runs.", "frontend."))]
    return [value for module in ours for value in vars(module).values() if isinstance(value, CACHE)]
