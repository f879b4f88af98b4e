"""What every test stands on: a database, the guards, and the parts that not every machine has.

Read from the environment: DATABASE_URL (else PostgreSQL out of its wheel in a temporary folder), CHROMIUM,
EVALBOARD_VLLM_PYTHON, EVALBOARD_TEST_MODEL and EVALBOARD_LITELLM. A test whose part is missing is skipped with the
reason; with EVALBOARD_REQUIRE_SERVICES=1 a skipped test has failed, whatever skipped it.
"""

import functools
import gc
import ipaddress
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, settings

from evalboard.local.children import die_with_parent
from tests.casts import Casts, casts_of

# A test that guards a change draws the same few examples each time; `make soak` draws others, and more of them. The
# machine is shared: that drawing one took long says nothing about the strategy.
SHARED_MACHINE: Any = {"suppress_health_check": [HealthCheck.too_slow], "deadline": None}
settings.register_profile("gate", max_examples=25, derandomize=True, database=None, **SHARED_MACHINE)
settings.register_profile("soak", max_examples=1000, print_blob=True, **SHARED_MACHINE)
settings.load_profile("soak" if os.environ.get("EVALBOARD_SOAK") else "gate")

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_MODEL = "smollm2-135m-instruct"
CASTS = Casts()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Let tests run without Django's plugin, whose one setting is unknown then: not installed, or `-p no:django`."""
    if not pluginmanager.hasplugin("django"):
        parser.addini("DJANGO_SETTINGS_MODULE", "pytest-django is not there; not read")


def pytest_configure() -> None:
    """Have the kernel end what this session starts, should the session be killed: workers, servers, browsers, other
    sessions (pytest-xdist's). What they start dies with them in turn, as it does in production.

    A shell ignores SIGINT for what it starts in the background. Tests press Ctrl-C, here and in what they start.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    started = subprocess.Popen.__init__

    @functools.wraps(started)
    def start(self: Any, *arguments: Any, preexec_fn: Callable[[], None] | None = None, **options: Any) -> None:
        if threading.current_thread() is threading.main_thread():  # the kernel watches the thread, not the process
            preexec_fn = _one_after_another(die_with_parent(signal.SIGKILL), preexec_fn)
        started(self, *arguments, preexec_fn=preexec_fn, **options)

    subprocess.Popen.__init__ = start  # type: ignore[method-assign]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Store the rows of a test's casts, and roll back those of other casts."""
    CASTS.turn_to(item)


def _one_after_another(first: Callable[[], None], then: Callable[[], None] | None) -> Callable[[], None]:
    def call() -> None:
        first()
        if then is not None:
            then()

    return call


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Read the tests without looking for garbage: what is imported stays, and looking takes a third of the time. While
    they run, look rarely: that saves a tenth of the processor time of pages and REST.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000, 50, 1000)
        gc.enable()


ALL_SERVED = re.compile(r"(?m)^pytestmark = (?:\[\s*)?pytest\.mark\.django_db")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave a file unread whose tests need a server, all of them, where none of these is to run (`make quick`)."""
    is_left = "not server" in config.getoption("markexpr") and collection_path.suffix == ".py"
    return True if is_left and ALL_SERVED.search(collection_path.read_text()) else None


# Their tests wait for processes more than they compute; the longest come first.
WAITING_RINGS = ("browser", "local", "worker", "faults", "timed")
SERVERS = {"db", "transactional_db", "live_server", "postgres_url", "session_redis", "redis", "chromium", "vllm_python"}


NIGHTLY = pytest.StashKey[dict[Path, set[str]]]()  # by file that was collected: the tests of it that left the gate


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    left = config.stash.setdefault(NIGHTLY, {item.path: set() for item in items})
    for item in items:
        if item.get_closest_marker("nightly"):
            left[item.path].add(item.nodeid.partition("[")[0])
        if _ring(item) in WAITING_RINGS or item.get_closest_marker("django_db") or SERVERS & set(_fixtures(item)):
            item.add_marker("server")
        if item.get_closest_marker("chaos"):
            item.add_marker(pytest.mark.flaky(reruns=1))
    yield  # others choose by markers, and shuffle
    items[:] = _spread(_by_casts(items))


def _by_casts(items: list[pytest.Item]) -> list[pytest.Item]:
    """Order the tests of each file by the casts that they name."""
    files = {path: number for number, path in enumerate(dict.fromkeys(item.path for item in items))}
    return sorted(items, key=lambda item: (files[item.path], [str(cast) for cast in casts_of(item)]))


def _spread(items: list[pytest.Item]) -> list[pytest.Item]:
    """Order tests so that those which wait run beside those which compute; the former end first, for each is long."""
    waiting = sorted((item for item in items if _ring(item) in WAITING_RINGS), key=_place_of_ring)
    computing = [item for item in items if _ring(item) not in WAITING_RINGS]
    places = [(0.7 * number / len(waiting), item) for number, item in enumerate(waiting)]
    places += [(number / len(computing), item) for number, item in enumerate(computing)]
    return [item for _, item in sorted(places, key=lambda place: place[0])]


def _place_of_ring(item: pytest.Item) -> int:
    return WAITING_RINGS.index(_ring(item))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file together where something is made once for them, and send every other one by itself.

    pytest-xdist's own groups change a name that pytest 9.2 no longer reads.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class BySharing(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file.startswith("tests/browser/"):
                return "tests/browser"  # one Chromium for all
            return file if _shares_something(ROOT / file) else nodeid

    return BySharing(config, log)


@functools.cache
def _shares_something(file: Path) -> bool:
    """Tell whether a fixture of the file is made once for several of its tests."""
    return re.search(r'(?m)scope="(class|module|session)"|^from tests.casts import', file.read_text()) is not None


def _ring(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT / "tests").parts[0]


def _fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])


SECRET = re.compile(r"evb_[0-9a-f]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}|whsec_[A-Za-z0-9+/]{24,}={0,2}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Fail a test after which a token or a webhook's secret stands in a log: ours, or a child process's stderr.

    And one that was skipped where everything must be there.
    """
    report: Any = yield
    _fail_if_skipped(report)
    if report.when == "call" and (record := os.environ.get("EVALBOARD_TESTS_RUN")):  # tools/test.py --nightly reads it
        with Path(record).open("a") as lines:
            lines.write(f"{item.nodeid}\n")
    logs = [text for name, text in report.sections if name.startswith(("Captured log", "Captured stderr"))]
    if found := SECRET.search("\n".join(logs)):
        report.outcome = "failed"
        report.longrepr = f"A secret stands in a log: {found[0][:12]}…"
    return report  # type: ignore[no-any-return]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """Fail a file that skips all its tests, where everything must be there."""
    report: Any = yield
    _fail_if_skipped(report)
    return report  # type: ignore[no-any-return]


def _fail_if_skipped(report: Any) -> None:
    if os.environ.get("EVALBOARD_REQUIRE_SERVICES") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        _, _, reason = report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{reason}; nothing may be skipped here (EVALBOARD_REQUIRE_SERVICES=1)"


@pytest.fixture(scope="session", autouse=True)
def loopback_only() -> Iterator[None]:
    """Refuse connections to other machines: a test that needs one is not a test of this project."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
            raise RuntimeError(f"A test tried to reach {address[0]}; only this machine may be reached.")
        connect(self, address)

    socket.socket.connect = guarded  # type: ignore[method-assign]
    yield
    socket.socket.connect = connect  # type: ignore[method-assign]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a PostgreSQL server on which databases may be made: the given one, or one out of the wheel."""
    given = os.environ.get("DATABASE_URL")
    if given:
        yield given
        return
    from tests.cluster import serve_cluster

    with serve_cluster() as url:
        yield url


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None, postgres_url: str) -> None:
    """Point Django at the server before pytest-django makes the test database."""
    import dj_database_url
    from django.conf import settings as project

    # In place: Django's connection objects hold this very dictionary. Connections stay open, as the product has them: a
    # new one for each statement of a worker's call to an external server costs 20 ms.
    project.DATABASES["default"].update(dj_database_url.parse(postgres_url, conn_max_age=60))


# What migrations leave there, and every test finds.
LASTING = ("django_migrations", "django_content_type", "auth_permission")


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest, django_test_environment: None, postgres_url: str, django_db_blocker: Any
) -> Iterator[None]:
    """Use the database of the copied cluster; on a given server have pytest-django make and migrate one.

    Tests that commit are cleaned up after quickly: Django would TRUNCATE every table and make permissions anew. At the
    end the sessions of processes that were killed are ended: the server learns of it late, and a database that somebody
    still uses cannot be dropped.
    """
    from django.db import connection
    from django.test import TransactionTestCase

    TransactionTestCase._fixture_teardown = lambda case: _empty_tables()
    _list_static_files_once()
    request.getfixturevalue("django_db_setup" if os.environ.get("DATABASE_URL") else "django_db_modify_db_settings")
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def _list_static_files_once() -> None:
    """Let the clients of all tests share one look at the static files; each would look through all folders."""
    from whitenoise.middleware import WhiteNoiseMiddleware

    files: dict[str, Any] = {}
    look = WhiteNoiseMiddleware.add_files_from_finders

    def look_once(middleware: Any) -> None:
        if not files:
            look(middleware)
            files.update(middleware.files)
        middleware.files.update(files)

    WhiteNoiseMiddleware.add_files_from_finders = look_once


@pytest.fixture(scope="session")
def casts(django_db_setup: None, django_db_blocker: Any) -> Iterator[Casts]:
    """The rows of tests/casts.py for the first test that names some; pytest_runtest_setup turns to the next."""
    CASTS.open(django_db_blocker)
    yield CASTS
    CASTS.close()


def _empty_tables() -> None:
    """Delete every row once no statement writes any more; without triggers, for sign-offs' refuse it."""
    from django.db import connection, transaction

    with transaction.atomic(), connection.cursor() as cursor:
        tables = [connection.ops.quote_name(name) for name in connection.introspection.table_names(cursor)]
        emptied = [name for name in tables if name.strip('"') not in LASTING]
        cursor.execute(f"LOCK TABLE {', '.join(emptied)} IN EXCLUSIVE MODE")
        cursor.execute(f"SELECT {', '.join(f'EXISTS (SELECT FROM {name})' for name in emptied)}")  # noqa: S608
        with_rows = [name for name, has_rows in zip(emptied, cursor.fetchone(), strict=True) if has_rows]
        cursor.execute("SET LOCAL session_replication_role = replica")
        for name in with_rows:
            cursor.execute(f"DELETE FROM {name}")  # noqa: S608


@pytest.fixture
def database_url(transactional_db: None) -> str:
    """URL of the test database, for a child process of the test; rows are committed, hence transactional."""
    return read_database_url()


def read_database_url() -> str:
    from django.db import connection

    options = connection.get_connection_params()
    host = quote(str(options.get("host", "")), safe="")
    password = quote(str(options.get("password", "")), safe="")
    account = quote(str(options.get("user", "")), safe="") + (f":{password}" if password else "")
    return f"postgres://{account}@/{options['dbname']}?host={host}&port={options.get('port', 5432)}"


@pytest.fixture(scope="session")
def session_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Redis of the tests' own that stays up; a test that harms its Redis starts one for itself (tests/servers.py)."""
    from tests.servers import RedisServer

    if not RedisServer.is_installed():
        pytest.skip("No redis-server on PATH; Debian has it as the package `redis-server`.")
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def nursery() -> Iterator[Any]:
    """Where processes of the product are forked from (tests/nursery.py)."""
    from tests.nursery import Nursery

    found = Nursery()
    yield found
    found.stop()


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The interpreter that has vLLM."""
    python = Path(os.environ.get("EVALBOARD_VLLM_PYTHON") or ROOT / ".venv-engine" / "bin" / "python")
    if not python.exists():
        pytest.skip(f"No interpreter with vLLM at {python}; `make engine` installs it.")
    return python


@pytest.fixture(scope="session")
def sample_model(vllm_python: Path) -> Path:
    """Folder of the small real model, converted once and kept beside the engine."""
    given = os.environ.get("EVALBOARD_TEST_MODEL")
    folder = (Path(given) if given else vllm_python.parent.parent / "evalboard-models" / SAMPLE_MODEL).resolve()
    if (folder / "config.json").exists():
        return folder
    made = subprocess.run(
        [vllm_python, ROOT / "worker" / "sample_model.py", folder], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"The sample model cannot be made: {made.stderr.strip()[-500:]}")
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium. The headless shell has no window to draw and takes a third of the processor time."""
    names = (os.environ.get("CHROMIUM") or "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    found = next((path for path in map(shutil.which, names) if path), None)
    return found or pytest.skip(
        "No Chromium; Debian has it as the package `chromium-headless-shell`, or set CHROMIUM to its path."
    )


PATIENCE_MS = 60_000  # for what must come about; how soon it does is for the bench, since a busy machine is slow
LAUNCH = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Any]:
    """One Chromium for all tests of the session; each test opens contexts of its own."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        # Playwright keeps an event loop in this thread, which Django takes for asynchronous code of ours.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        browser = playwright.chromium.launch(executable_path=chromium, args=LAUNCH)
        yield browser
        browser.close()
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
