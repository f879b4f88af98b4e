"""Fetch a model's files from a hub or an S3 bucket into a local folder. Part of `vllm_host.py`.

vLLM always loads a local folder. So a model is identified by the content of its files, wherever they come from.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any

BUCKET = "s3://"
FILES = ["*.safetensors", "*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken"]
GIB = 2**30
CACHE_LIMIT = "EVALBOARD_MODEL_CACHE_GB"
_IN_USE: list[IO[str]] = []  # the locks of models that this process has loaded


class SourceFailed(Exception):
    """A model's files cannot be fetched. The text says why and what to do."""


def fetch_repo(repo: str, revision: str, token: str) -> Path:
    """Return the folder of a hub's repository at a commit; files are fetched unless they are cached.

    token: "" for none; huggingface_hub then uses its own, as from HF_TOKEN. HF_ENDPOINT names another hub, and
    HF_HUB_OFFLINE forbids fetching. Raises SourceFailed.
    """
    from huggingface_hub import errors, snapshot_download

    name = f"The repository {repo} at {revision}"
    with_key = "with the endpoint's token" if token else "without a token of the endpoint"
    try:
        return Path(snapshot_download(repo, revision=revision or None, allow_patterns=FILES, token=token or None))
    except errors.GatedRepoError as problem:
        why = f"{name} is gated, and the hub refused it {with_key}. Accept its terms on the hub, and give the endpoint"
        raise SourceFailed(f"{why} the name of a variable with a token that may read it (auth).") from problem
    except errors.RevisionNotFoundError as problem:
        raise SourceFailed(f"{name} does not exist: the hub has no such commit of it.") from problem
    except errors.RepositoryNotFoundError as problem:
        why = f"The hub has no repository {repo}, or refused it {with_key}."
        raise SourceFailed(f"{why} Check its name, and the token that the endpoint names (auth).") from problem
    except errors.HfHubHTTPError as problem:
        raise SourceFailed(f"{name} was refused by the hub: {problem}") from problem
    except Exception as problem:
        if isinstance(problem, OSError) and problem.errno is not None:  # a file system's own
            raise disk_problem(problem, name) from problem
        # No answer came. Which class says so depends on the version of huggingface_hub and of its HTTP client.
        hub = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
        why = f"{name} is not on this node, and the hub at {hub} cannot be reached or HF_HUB_OFFLINE is set"
        raise SourceFailed(f"{why}: {problem.__cause__ or problem}") from problem


def fetch_bucket(address: str, needs: str = "config.json") -> Path:
    """Return a folder with the files directly under `s3://bucket/prefix`, fetched where they changed.

    Each content has a folder of its own, named by the digest of its listing, which appears when it is complete. An
    interrupted download continues. Credentials, region and `AWS_ENDPOINT_URL` are those of boto3's usual places.
    needs: the file without which it is refused. Raises SourceFailed.
    """
    try:
        import boto3
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
    except ImportError as problem:
        raise SourceFailed(
            f"{address} needs the package boto3, which {sys.executable} does not have. Install it there: "
            f"{sys.executable} -m pip install boto3"
        ) from problem
    bucket, _, prefix = address.removeprefix(BUCKET).strip("/").partition("/")
    try:
        client = boto3.client("s3")
        objects = list_objects(client, bucket, prefix)
        if needs not in objects:
            raise SourceFailed(f"{address} cannot be loaded: there is no {needs} directly under it.")
        return snapshot(client, bucket, prefix, objects)
    except NoCredentialsError as problem:
        why = f"{address} cannot be read: this worker has no AWS credentials."
        raise SourceFailed(f"{why} Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.") from problem
    except ClientError as problem:
        raise SourceFailed(f"{address} cannot be read: {refusal(problem, bucket)}") from problem
    except (BotoCoreError, Boto3Error) as problem:
        raise SourceFailed(f"{address} cannot be read: {problem}") from problem
    except OSError as problem:
        raise disk_problem(problem, address) from problem


def list_objects(client: Any, bucket: str, prefix: str) -> dict[str, list[Any]]:
    """Return name → [ETag, bytes] of a model's files directly under a prefix."""
    under = f"{prefix}/" if prefix else ""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=under, Delimiter="/")
    rows = [row for page in pages for row in page.get("Contents", ())]
    named = {row["Key"].removeprefix(under): [row["ETag"], row["Size"]] for row in rows}
    return {
        name: facts
        for name, facts in sorted(named.items())
        if "/" not in name and any(fnmatch(name, each) for each in FILES)  # some servers list what is deeper, too
    }


def snapshot(client: Any, bucket: str, prefix: str, objects: dict[str, list[Any]]) -> Path:
    """Return the folder with these objects; one process of the node fetches it, and others wait for that.

    It appears when every file is whole and the listing is still the same. This process keeps a shared lock on it, so
    that no other one deletes it. Raises SourceFailed.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "evalboard", "models")
    digest = hashlib.sha256(json.dumps([bucket, prefix, objects]).encode()).hexdigest()
    folder, partial = home / digest, home / f"{digest}.partial"
    home.mkdir(parents=True, exist_ok=True)
    lock = home.joinpath(f"{digest}.lock").open("w")  # which also dates the last use
    while True:  # one lock is let go before the other is had
        fcntl.flock(lock, fcntl.LOCK_SH)
        if folder.is_dir():
            _IN_USE.append(lock)  # freed when the process ends, however that is
            return folder
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            try:
                _fetch(client, bucket, prefix, objects, folder, partial)
            except BaseException:
                lock.close()
                raise


def make_room(home: Path, need: int) -> None:
    """Delete the least recently used models until `need` bytes fit into the cache.

    EVALBOARD_MODEL_CACHE_GB is its limit; 0: none. One that any process has in use, or fetches, stays. An interrupted
    download counts and goes, too.
    """
    limit = float(os.environ.get(CACHE_LIMIT) or 0) * GIB
    locks = sorted(home.glob("*.lock"), key=lambda each: each.stat().st_mtime) if limit else []
    folders = {lock: [lock.with_suffix(""), lock.with_suffix(".partial")] for lock in locks}
    sizes = {lock: sum(map(_size_of, both)) for lock, both in folders.items()}
    for lock in locks:
        if sum(sizes.values()) + need <= limit:
            return
        with lock.open("r") as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            for folder in folders[lock]:
                shutil.rmtree(folder, ignore_errors=True)
            sizes[lock] = 0


def _size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir()) if folder.is_dir() else 0


def _fetch(client: Any, bucket: str, prefix: str, objects: dict[str, list[Any]], folder: Path, partial: Path) -> None:
    """Fetch what is not there of a model yet, and give it its place. The caller has the lock."""
    home = folder.parent
    partial.mkdir(exist_ok=True)
    for file in partial.iterdir():  # a download takes the name of its file when it is whole
        if file.name not in objects:
            file.unlink()
    absent = {name: facts[1] for name, facts in objects.items() if not (partial / name).is_file()}
    need = sum(absent.values())
    make_room(home, need)
    free = shutil.disk_usage(home).free
    if need > free:
        what = f"{BUCKET}{bucket}/{prefix} needs {need / GIB:.1f} GiB more in {home}, which has"
        raise SourceFailed(f"{what} {free / GIB:.1f} GiB free. Free some, or set XDG_CACHE_HOME to another disk.")
    for name in absent:
        client.download_file(bucket, f"{prefix}/{name}" if prefix else name, str(partial / name))
    if list_objects(client, bucket, prefix) != objects:
        shutil.rmtree(partial)
        what = f"{BUCKET}{bucket}/{prefix} changed while it was fetched"
        raise SourceFailed(f"{what}. Start again when its upload is complete.")
    partial.rename(folder)


def refusal(problem: Any, bucket: str) -> str:
    """Say what an S3 server refused."""
    error = problem.response.get("Error", {})
    code, status = error.get("Code", ""), problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if code == "NoSuchBucket":
        return f"there is no bucket {bucket}."
    if status == 403:
        return f"the server refused this worker's credentials ({code}). They need s3:ListBucket and s3:GetObject."
    return f"the server answered {status} {code}: {error.get('Message', '')}"


def disk_problem(problem: OSError, name: str) -> SourceFailed:
    """Return the error of a file system that cannot take a model's files."""
    if problem.errno == errno.ENOSPC:
        return SourceFailed(f"{name} does not fit: the disk is full. Free some space, or move the cache.")
    return SourceFailed(f"{name} cannot be stored: {problem}")
