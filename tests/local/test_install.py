"""tools/install.py: it finishes what it began, does nothing twice, and fails with one sentence."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_without_a_network_it_says_so_in_one_sentence_and_leaves_no_stamp(checkout):
    ended = run_installer(checkout, "core", PIP_INDEX_URL="http://127.0.0.1:9/simple")
    assert ended.returncode == 1
    assert ended.stderr.startswith("Cannot install: pip reached no package index; connect this machine")
    assert "Traceback" not in ended.stderr
    assert not (checkout / ".venv-core" / "installed-core").exists()


def test_an_index_without_the_package_is_named_as_the_reason(checkout):
    empty = checkout / "index"
    empty.mkdir()
    ended = run_installer(checkout, "core", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(empty))
    assert ended.returncode == 1
    assert "the package index has no attrs" in ended.stderr


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
