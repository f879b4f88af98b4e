"""The web server as a team runs it: deploy/gunicorn.conf.py over collected static files, behind a TLS proxy."""

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from runs.models import Token
from tests import build
from tests.conftest import read_database_url
from tests.servers import free_port

pytestmark = pytest.mark.server  # collecting the static files takes as long as a server's start

ROOT = Path(__file__).resolve().parents[2]
HOST = "evalboard.example.com"
HASHED = re.compile(r"/static/[\w/-]+(?:\.min)?\.[0-9a-f]{12}\.\w+")
START_SECONDS = 60.0
QUICK_BROTLI = "import brotli, functools; brotli.compress = functools.partial(brotli.compress, quality=5)"


@pytest.fixture(scope="session")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What collectstatic makes of the static files. At brotli's best quality most of its time would go into Plotly."""
    folder = tmp_path_factory.mktemp("static")
    command = [sys.executable, "-c", f"{QUICK_BROTLI}; import manage; manage.main()", "collectstatic", "--no-input"]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"EVALBOARD_STATIC_DIR": str(folder)}, check=True)
    return folder


@dataclass(frozen=True)
class Web:
    """The started server, in its folder; it keeps nothing of a request but a line in its log."""

    address: str
    folder: Path

    def log(self) -> str:
        return (self.folder / "web.log").read_text()

    def lines(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]


@pytest.fixture(scope="module")
def web(
    collected: Path, django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Web]:
    """The server, once for all tests of this file, on the test database, which each of them leaves empty."""
    folder, port = tmp_path_factory.mktemp("web"), free_port()
    (folder / "secret_key").write_text(secrets.token_urlsafe(64) + "\n")
    with django_db_blocker.unblock():
        database_url = read_database_url()
    environment = {
        "DATABASE_URL": database_url,
        "EVALBOARD_SECRET_KEY_FILE": str(folder / "secret_key"),
        "EVALBOARD_VERDICT_KEY": secrets.token_urlsafe(64),
        "EVALBOARD_HOSTS": HOST,
        "EVALBOARD_HTTPS": "true",
        "EVALBOARD_STATIC_DIR": str(collected),
        "EVALBOARD_WEB_BIND": f"127.0.0.1:{port}",
        "EVALBOARD_LOG_FORMAT": "json",
    }
    with (folder / "web.log").open("wb") as log:
        command = [sys.executable, "-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"]
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}/api/v1/health", process, folder / "web.log")
        yield Web(f"http://127.0.0.1:{port}", folder)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


@pytest.fixture
def server(web: Web, transactional_db: None) -> Iterator[httpx.Client]:
    """A client of the server that speaks as the proxy does."""
    headers = {"Host": HOST, "X-Forwarded-Proto": "https", "Accept-Encoding": "br"}
    with httpx.Client(base_url=web.address, headers=headers, timeout=30, trust_env=False) as client:
        yield client


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        try:
            httpx.get(url, headers={"Host": HOST}, trust_env=False)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return


def test_every_static_file_of_a_page_is_named_by_its_content_and_kept_for_ever(server: httpx.Client, collected: Path):
    page = server.get("/login/").text
    assert set(re.findall(r"/static/[^\"#]+", page)) == set(HASHED.findall(page))
    sheet = next(address for address in HASHED.findall(page) if "/shell/base." in address)
    served = server.get(sheet)
    assert served.headers["Content-Encoding"] == "br"
    assert "immutable" in served.headers["Cache-Control"]
    assert served.headers["Content-Length"] == str((collected / f"{sheet.removeprefix('/static/')}.br").stat().st_size)


@pytest.mark.nightly
def test_plotly_is_served_as_brotli(server: httpx.Client, collected: Path):
    plotly = next((collected / "plotly").glob("plotly.min.*.js"))
    served = server.head(f"/static/plotly/{plotly.name}")
    assert served.headers["Content-Encoding"] == "br"
    assert int(served.headers["Content-Length"]) < plotly.stat().st_size / 3  # of the whole bundle or of the basic one


def test_scripts_import_their_neighbours_by_hashed_names(collected: Path):
    imported = [
        (script, name)
        for script in collected.glob("*/*.js")
        for name in re.findall(r'^import .* from "(\.[^"]+)"', script.read_text(), re.M)
    ]
    assert imported
    for script, name in imported:
        assert re.fullmatch(r"\.{1,2}/(\w+/)?\w+\.[0-9a-f]{12}\.js", name), f"{script.name} imports {name}"
        assert (script.parent / name).exists()


def test_every_static_file_that_a_template_names_is_collected(collected: Path):
    known = json.loads((collected / "staticfiles.json").read_text())["paths"]
    templates = (ROOT / "frontend").glob("*/templates/**/*.html")
    asked = {name for template in templates for name in re.findall(r"\{% static '([^']+)' %\}", template.read_text())}
    assert asked
    assert asked | {"django_htmx/htmx-2.min.js"} <= set(known)


def test_behind_the_proxy_pages_are_secure_and_forms_are_taken(server: httpx.Client):
    page = server.get("/login/")
    assert "max-age=31536000" in page.headers["Strict-Transport-Security"]
    cookie = page.headers["Set-Cookie"]
    assert "evalboard_csrf=" in cookie
    assert "Secure" in cookie
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token is not None
    answered = server.post(
        "/login/",
        data={"csrfmiddlewaretoken": token[1], "username": "ada", "password": "wrong"},
        headers={"Origin": f"https://{HOST}", "Referer": f"https://{HOST}/login/", "Cookie": cookie.partition(";")[0]},
    )
    assert answered.status_code == 200, "a CSRF failure would be 403"


def test_without_tls_only_health_is_answered(server: httpx.Client):
    plain = {"X-Forwarded-Proto": "http"}
    sent_on = server.get("/login/", headers=plain)
    assert (sent_on.status_code, sent_on.headers["Location"]) == (301, f"https://{HOST}/login/")
    assert server.get("/api/v1/health", headers={**plain, "Host": "127.0.0.1"}).status_code == 200


def test_the_access_log_has_the_request_id_and_no_sign_in_secret(server: httpx.Client, web: Web):
    server.get("/signin/?sesame=the-secret", headers={"X-Request-Id": "asked-by-the-proxy"})
    deadline = time.monotonic() + START_SECONDS
    wanted = ("asked-by-the-proxy", "gunicorn.access")  # the last line that a request leaves
    while not (found := [line for line in web.lines() if (line["request_id"], line["logger"]) == wanted]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert ' - "GET /signin/" 403' in found[0]["message"]
    assert "the-secret" not in web.log()


def test_no_token_and_no_secret_is_in_its_log(server: httpx.Client, web: Web):
    """Requests that go well and wrong, and a token where it does not belong: in the address."""
    secret = build.token(build.user("root", "admin"), "read", "admin")
    bearer = {"Authorization": f"Bearer {secret}"}
    until = (datetime.now(UTC) + timedelta(days=7)).isoformat()
    asked = {"name": "next", "scopes": ["read"], "expires_at": until}
    made = server.post("/api/v1/tokens/", json=asked, headers=bearer)
    told = {"url": "https://hooks.example/", "events": ["run.failed"]}
    hook = server.post("/api/v1/webhooks/", json=told, headers=bearer)
    assert (made.status_code, hook.status_code) == (201, 201)
    for path in ("/api/v1/runs/", "/api/v1/runs/999/", "/api/v1/nothing/", f"/api/v1/runs/?token={secret}"):
        server.get(path, headers=bearer)
    server.get(f"/runs/{secret}/", headers={**bearer, "X-Request-Id": "the-last-one"})
    server.get("/api/v1/runs/", headers={"Authorization": f"Bearer {secret}x"})
    deadline = time.monotonic() + START_SECONDS
    while not any("/api/v1/runs/" in line["message"] and " 401 " in line["message"] for line in web.lines()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    log = web.log()
    assert any(
        f' token:{Token.objects.get(name="test").pk} "GET /api/v1/runs/" 200' in line["message"] for line in web.lines()
    )
    assert f"{secret[:12]}_[removed]" in log, "what stood in the address is taken out, but for its label"
    for found in (secret, made.json()["secret"], hook.json()["secret"]):
        assert found not in log
        assert found[14:50] not in log
