"""What every test stands on: a database, the guards, and the parts that not every machine has.

Read from the environment: DATABASE_URL (else PostgreSQL out of its wheel in a temporary folder), CHROMIUM,
EVALBOARD_VLLM_PYTHON and EVALBOARD_TEST_MODEL. A test whose part is missing is skipped with the reason; with
EVALBOARD_REQUIRE_SERVICES=1 a skipped test has failed, whatever skipped it.
"""

import functools
import importlib.util
import ipaddress
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, settings

from evalboard.local.children import die_with_parent

# The machine is shared: that drawing an example took long says nothing about the strategy.
settings.register_profile("shared machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("shared machine")

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_MODEL = "smollm2-135m-instruct"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the core's tests run where Django is not installed: its plugin's one setting is unknown there."""
    if importlib.util.find_spec("pytest_django") is None:
        parser.addini("DJANGO_SETTINGS_MODULE", "pytest-django is not installed; not read")


def pytest_configure() -> None:
    """Have the kernel end what this session starts, should the session be killed: workers, servers, browsers, other
    sessions (pytest-xdist's). What they start dies with them in turn, as it does in production.
    """
    started = subprocess.Popen.__init__

    @functools.wraps(started)
    def start(self: Any, *arguments: Any, preexec_fn: Callable[[], None] | None = None, **options: Any) -> None:
        if threading.current_thread() is threading.main_thread():  # the kernel watches the thread, not the process
            preexec_fn = _one_after_another(die_with_parent(signal.SIGKILL), preexec_fn)
        started(self, *arguments, preexec_fn=preexec_fn, **options)

    subprocess.Popen.__init__ = start  # type: ignore[method-assign]


def _one_after_another(first: Callable[[], None], then: Callable[[], None] | None) -> Callable[[], None]:
    def call() -> None:
        first()
        if then is not None:
            then()

    return call


# Few tests that take long, each by itself: begun last, one of them would be waited for with a core idle.
LONG_RINGS = ("worker", "local", "faults", "browser")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.relative_to(ROOT / "tests").parts[0] not in LONG_RINGS)


SECRET = re.compile(r"evb_[0-9a-f]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}|whsec_[A-Za-z0-9+/]{24,}={0,2}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Fail a test after which a token or a webhook's secret stands in a log: ours, or a child process's stderr.

    And one that was skipped where everything must be there.
    """
    report: Any = yield
    _fail_if_skipped(report)
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
    from evalboard.local import postgres

    # Not under pytest's own temporary folder: a Unix socket's path has room for about 100 bytes.
    folder = Path(tempfile.mkdtemp(prefix="evalboard-test-"))
    folder.chmod(0o711)  # where root runs the tests, PostgreSQL runs under another account
    server = postgres.Server(folder / "postgres", log=folder / "postgres.log")
    try:
        server.start()
        yield server.create_database("evalboard")
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None, postgres_url: str) -> None:
    """Point Django at the server before pytest-django makes the test database."""
    import dj_database_url
    from django.conf import settings as project

    # In place: Django's connection objects hold this very dictionary.
    project.DATABASES["default"].update(dj_database_url.parse(postgres_url))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Let tests that commit be cleaned up after: they empty every table by TRUNCATE, which sign-offs refuse.

    tests/attacks/test_sign_off_evidence.py switches the refusal on again, and tries it.
    """
    from django.db import connection

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runs_signoff DISABLE TRIGGER runs_signoff_no_truncate")


@pytest.fixture
def database_url(transactional_db: None) -> str:
    """URL of the test database, for a child process of the test; rows are committed, hence transactional."""
    from django.db import connection

    found = connection.get_connection_params()
    host = quote(str(found.get("host", "")), safe="")
    password = quote(str(found.get("password", "")), safe="")
    account = quote(str(found.get("user", "")), safe="") + (f":{password}" if password else "")
    return f"postgres://{account}@/{found['dbname']}?host={host}&port={found.get('port', 5432)}"


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
    folder = Path(given) if given else vllm_python.parent.parent / "evalboard-models" / SAMPLE_MODEL
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
    """Path of a Chromium."""
    names = (os.environ.get("CHROMIUM") or "chromium", "chromium-browser", "google-chrome")
    found = next((path for path in map(shutil.which, names) if path), None)
    return found or pytest.skip("No Chromium; Debian has it as the package `chromium`, or set CHROMIUM to its path.")
