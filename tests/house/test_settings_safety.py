"""What other machines may reach refuses to start where it is unsafe, in one sentence that says what to set."""

import gc
import os
import runpy
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db.utils import ConnectionHandler

from evalboard import safety
from runs.store import changes
from tests.nightly import nightly

ROOT = Path(__file__).resolve().parents[2]
SECRET = secrets.token_urlsafe(64)
SAFE = {"EVALBOARD_HOSTS": "evalboard.example.com", "EVALBOARD_SECRET_KEY": SECRET, "EVALBOARD_HTTPS": "true"}
SAFE["EVALBOARD_VERDICT_KEY"] = SECRET


def start(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end with these settings and no others."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.run(
        [sys.executable, *command], env=kept | environment, cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def start_web(**environment: str) -> subprocess.CompletedProcess[str]:
    """Go as far as the web server does before it listens."""
    return start("-m", "gunicorn", "--check-config", "--config", "deploy/gunicorn.conf.py", **environment)


def test_safe_settings_start():
    assert start_web(**SAFE).returncode == 0


def test_a_pooled_database_is_asked_without_cursors_and_prepared_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """PgBouncer gives each transaction another connection, which knows neither."""
    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setenv("EVALBOARD_DATABASE_POOLED", "true")
    read = runpy.run_path(str(ROOT / "evalboard" / "settings.py"))
    pooled = ConnectionHandler(read["DATABASES"])["default"]
    assert pooled.settings_dict["DISABLE_SERVER_SIDE_CURSORS"]
    assert pooled.get_connection_params()["prepare_threshold"] is None


def test_garbage_is_collected_again_once_all_is_imported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(changes, "follow", lambda call: None)  # which it registered when this session began
    gc.disable()
    try:
        apps.get_app_config("runs").ready()
        assert gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({"EVALBOARD_DEBUG": "true"}, ("EVALBOARD_DEBUG is on", "unset it"), id="debug"),
        pytest.param(
            {"EVALBOARD_HOSTS": "a.example.com,.example.com"},
            ("'.example.com'",),
            id="any subdomain",
            marks=pytest.mark.nightly,
        ),
        pytest.param({"EVALBOARD_VERDICT_KEY": ""}, ("EVALBOARD_VERDICT_KEY is empty", "set 50"), id="no verdict key"),
        pytest.param({"EVALBOARD_VERDICT_KEY": "a" * 49}, ("key of verdicts has 49",), id="short verdict key"),
        pytest.param({"EVALBOARD_SECRET_KEY_FILE": "/nowhere"}, ("EVALBOARD_SECRET_KEY_FILE",), id="no such file"),
        pytest.param(
            {"EVALBOARD_WEB_PROCESSES": "two"},
            ("EVALBOARD_WEB_PROCESSES",),
            id="not a number",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_unsafe_settings_end_the_start_with_one_sentence(changed: dict[str, str], words: tuple[str, ...]):
    ended = start_web(**SAFE | changed)
    assert ended.returncode != 0
    assert ended.stderr.startswith("Evalboard cannot start: ")
    assert len(ended.stderr.strip().splitlines()) == 1
    assert all(part in ended.stderr for part in words), ended.stderr
    assert SECRET[:20] not in ended.stderr


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({"secret_key": ""}, ("EVALBOARD_SECRET_KEY is empty", "set 50"), id="no secret"),
        pytest.param({"secret_key": SECRET[:49]}, ("has 49 characters", "set 50"), id="short secret"),
        pytest.param({"secret_key": "changeme" * 8}, ("7 different characters",), id="dull secret"),
        pytest.param({"hosts": ["*"]}, ("EVALBOARD_HOSTS has '*'", "name each host"), id="any host"),
        pytest.param({"hosts": ["https://a.example.com"]}, ("without scheme",), id="an address"),
    ],
)
def test_what_is_unsafe_is_refused_in_words(changed: dict[str, Any], words: tuple[str, ...]):
    known = {"hosts": ["evalboard.example.com"], "debug": False, "secret_key": SECRET, "https": True}
    assert safety.refusal(**known) is None
    refused = safety.refusal(**known | changed)
    assert refused is not None
    assert all(part in refused for part in words), refused
    assert SECRET[:20] not in refused


def test_whether_tls_is_spoken_must_be_said():
    ended = start_web(**{name: value for name, value in SAFE.items() if name != "EVALBOARD_HTTPS"})
    assert ended.returncode == 1
    assert "EVALBOARD_HTTPS is not set" in ended.stderr
    assert "or to false" in ended.stderr


def test_several_processes_never_sign_with_a_key_of_their_own_each():
    ended = start_web()
    assert ended.returncode == 1
    assert "EVALBOARD_SECRET_KEY is empty" in ended.stderr


def test_management_commands_are_refused_as_well():
    ended = start("manage.py", "check", **SAFE | {"EVALBOARD_DEBUG": "true"})
    assert ended.returncode != 0
    assert "EVALBOARD_DEBUG is on" in ended.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("https", [True, *nightly([False])])
def test_what_the_documents_recommend_has_nothing_for_djangos_own_check_to_warn_of(tmp_path: Path, https: bool):
    """Without TLS Django warns of just the four things that TLS would bring."""
    (tmp_path / "secret_key").write_text(SECRET + "\n")
    kept = {"EVALBOARD_HOSTS": "evalboard.example.com", "EVALBOARD_SECRET_KEY_FILE": str(tmp_path / "secret_key")}
    command = ("manage.py", "check", "--deploy", "--fail-level", "WARNING")
    tags = () if https else ("--tag", "security")  # all of its checks once; these alone look at TLS
    ended = start(*command, *tags, **kept, EVALBOARD_HTTPS="true" if https else "false")
    assert (ended.returncode == 0) is https
    warned = {name for name in ("W004", "W008", "W009", "W012", "W016", "W018", "W020") if name in ended.stderr}
    assert warned == (set() if https else {"W004", "W008", "W012", "W016"})


@pytest.mark.parametrize("hosts", [["127.0.0.1"], ["localhost", "[::1]"], list(safety.LOCAL_HOSTS)])
def test_this_machines_own_names_ask_for_nothing(hosts: list[str]):
    assert safety.refusal(hosts=hosts, debug=True, secret_key="", https=None) is None


def test_one_foreign_name_among_local_ones_is_enough():
    assert safety.refusal(hosts=["localhost", "box"], debug=False, secret_key=SECRET, https=None) is not None


@pytest.mark.parametrize("host", ["box", "a-b.example.com", "10.0.0.7", "[2001:db8::1]"])
def test_a_host_may_be_a_name_or_an_address(host: str):
    assert safety.refusal(hosts=[host], debug=False, secret_key=SECRET, https=False) is None


@pytest.mark.parametrize("length", [50, 64, 100])
def test_random_keys_are_never_called_weak(length: int):
    assert not any(safety.secret_weakness(secrets.token_hex(length)[:length]) for _ in range(1000))
