"""tools/install.py: it finishes what it began, does nothing twice, and fails with one sentence."""

import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.nightly import nightly
from tools import install

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path):
    """A checkout with the installer and its locks, and nothing installed."""
    for part in ("tools", "requirements"):
        shutil.copytree(ROOT / part, tmp_path / part)
    return tmp_path


def run_installer(checkout: Path, name: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    return subprocess.run(
        [sys.executable, checkout / "tools" / "install.py", name],
        env=clean | {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.nightly
def test_without_a_network_it_says_so_in_one_sentence_and_leaves_no_stamp(checkout):
    ended = run_installer(checkout, "core", PIP_INDEX_URL="http://127.0.0.1:9/simple")
    assert ended.returncode == 1
    assert ended.stderr.startswith("Cannot install: pip reached no package index; connect this machine")
    assert "Traceback" not in ended.stderr
    assert not (checkout / ".venv-core" / "installed-core").exists()


@contextmanager
def answering(status: int, *, certificate: Path | None = None) -> Iterator[str]:
    """A server on this machine that answers every request, a proxy's too, with one status; gives its host and port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_CONNECT = do_GET  # noqa: N815 - named by the standard library

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def pip_that_fails(venv: Path, monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    """Return the sentence for what the pip of this Python says of one package under these variables."""
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    for name in list(os.environ):
        if name.startswith("PIP_") or name.lower().endswith("_proxy") or name == "REQUESTS_CA_BUNDLE":
            monkeypatch.delenv(name)
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    for name, value in {**settings, **environment}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(install.CannotInstall) as failed:
        install.pip(venv, "download", "--no-deps", "--dest", str(venv), "attrs==26.1.0")
    return str(failed.value)


@pytest.mark.parametrize("status", [401, *nightly([403])])
def test_an_index_that_refuses_is_named_with_what_it_wants(tmp_path, monkeypatch, status):
    with answering(status) as host:
        sentence = pip_that_fails(tmp_path, monkeypatch, PIP_INDEX_URL=f"http://{host}/simple")
    assert f"the package index at {host} refuses to answer ({status})" in sentence
    assert "PIP_INDEX_URL=https://NAME:TOKEN@HOST/simple" in sentence


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["https", *nightly(["http"])])
def test_a_proxy_that_wants_a_password_is_named(tmp_path, monkeypatch, scheme):
    with answering(407) as host:
        proxies = {"HTTP_PROXY": f"http://{host}", "HTTPS_PROXY": f"http://{host}"}
        index = {"PIP_INDEX_URL": f"{scheme}://index.invalid/simple", "PIP_TRUSTED_HOST": "index.invalid"}
        sentence = pip_that_fails(tmp_path, monkeypatch, **proxies, **index)
    assert "the proxy wants a name and password (407)" in sentence
    assert "HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT" in sentence


@pytest.mark.nightly
def test_a_certificate_that_is_not_trusted_is_named(tmp_path, monkeypatch):
    certificate = tmp_path / "index.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=index", "-days", "2"]
    if shutil.which("openssl") is None:
        pytest.skip("No openssl on PATH to make a certificate with.")
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(certificate), "-out", str(tmp_path / "only.pem")]
    subprocess.run(made, check=True, capture_output=True)
    with certificate.open("a") as both:
        both.write((tmp_path / "only.pem").read_text())
    with answering(200, certificate=certificate) as host:
        sentence = pip_that_fails(tmp_path / "venv", monkeypatch, PIP_INDEX_URL=f"https://{host}/simple")
    assert "pip does not trust the certificate of the package index" in sentence
    assert "PIP_CERT=" in sentence


@pytest.mark.nightly
def test_an_index_over_plain_http_is_named_with_both_remedies(tmp_path, monkeypatch):
    sentence = pip_that_fails(tmp_path, monkeypatch, PIP_INDEX_URL="http://index.invalid/simple")
    assert "pip ignores the package index at index.invalid, whose address begins with http://" in sentence
    assert "PIP_TRUSTED_HOST=index.invalid" in sentence


@pytest.mark.nightly
def test_an_index_without_the_package_is_named_as_the_reason(checkout):
    empty = checkout / "index"
    empty.mkdir()
    ended = run_installer(checkout, "core", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(empty))
    assert ended.returncode == 1
    first = re.search(r"^[\w.-]+==", (checkout / "requirements" / "core.txt").read_text(), re.MULTILINE)
    assert first is not None
    assert f"the package index has no {first[0]}" in ended.stderr


def test_a_stamp_of_the_same_lock_ends_it_at_once_and_of_another_does_not(checkout, monkeypatch):
    monkeypatch.setattr(install, "ROOT", checkout)
    venv = checkout / ".venv-core"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").write_text("")
    assert not install.is_stamped(venv, "core")
    install.stamp_of(venv, "core").write_text(install.lock_digest("core"))
    assert install.is_stamped(venv, "core")
    with (checkout / "requirements" / "core.txt").open("a") as lock:
        lock.write("# another lock\n")
    assert not install.is_stamped(venv, "core")


def test_too_little_room_is_said_with_both_sizes(monkeypatch):
    plan = install.Plan(".venv-core", "core.txt", "core test packages", free_gib=2.0**30)
    with pytest.raises(install.CannotInstall, match=r"core test packages need .* GiB and .* has [\d.]+ GiB free"):
        install.check_space(plan)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<x>: Failed to "
            "establish a new connection: [Errno -3] Temporary failure in name resolution')'\n"
            "ERROR: No matching distribution found for attrs==26.1.0",
            "reached no package index",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            "differs from the one that was locked",
        ),
        ("ERROR: something new\n", "pip failed with 'ERROR: something new'"),
    ],
    ids=["disk full", "no network", "other bytes than locked", "anything else"],
)
def test_pips_words_become_one_sentence(said, sentence):
    assert sentence in str(install.explain(said, Path("install.log")))


def test_another_platform_is_refused(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(install.CannotInstall, match=r"Linux aarch64.*ENGINE=none"):
        install.check_platform(needs_engine=True)
    install.check_platform(needs_engine=False)
    monkeypatch.setattr("platform.system", lambda: "Windows")
    with pytest.raises(install.CannotInstall, match="Windows aarch64"):
        install.check_platform(needs_engine=False)


def test_another_python_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    with pytest.raises(install.CannotInstall, match=r"3\.11 to 3\.13 is needed"):
        install.check_platform(needs_engine=False)


def test_no_lock_names_a_host_or_a_source_build():
    for lock in (ROOT / "requirements").glob("*.txt"):
        assert "://" not in lock.read_text(), f"{lock.name} would send pip to a fixed address"
