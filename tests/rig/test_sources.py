"""Models from a hub and from a bucket: real clients (huggingface_hub, boto3) on servers that speak their protocols."""

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytestmark = pytest.mark.rig

ROOT = Path(__file__).resolve().parents[2]
COMMIT, GONE = "a" * 40, "b" * 40
TOKEN, KEY_ID = "hub-token-1", "AKIDEXAMPLE"
FILES = {"config.json": b"{}", "model.safetensors": b"weights" * 1000, "README.md": b"not a file of the model"}
FETCH = """
import json, sys
import vllm_sources as sources, vllm_start
try:
    fetch = {"hub": sources.fetch_repo, "bucket": sources.fetch_bucket, "adapter": vllm_start.adapter_folder}
    folder = fetch[sys.argv[1]](*sys.argv[2:])
    print(json.dumps({each.name: each.read_bytes().decode() for each in folder.iterdir() if each.is_file()}))
except sources.SourceFailed as problem:
    print(json.dumps(str(problem)))
"""


def tag_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:40]


class Server(BaseHTTPRequestHandler):
    """Serves a dict of files, and notes what was asked for."""

    protocol_version = "HTTP/1.1"
    files: dict[str, bytes]
    asked: list[str]

    def log_message(self, *args: Any) -> None:
        pass

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.asked.append(f"{self.command} {self.path} {status}")
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Hub(Server):
    """What huggingface_hub asks of a hub: the tree of a commit, and files."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if "/gated/" in path:
            return self.reply(403, X_Error_Code="GatedRepo", X_Error_Message="Ask for access.")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}" or "/lab/paint/" not in path:
            return self.reply(401, X_Error_Code="RepoNotFound")
        if COMMIT not in path:
            return self.reply(404, X_Error_Code="RevisionNotFound")
        if "/tree/" in path:
            rows = [
                {"type": "file", "path": name, "size": len(data), "oid": tag_of(data)}
                for name, data in self.files.items()
            ]
            return self.reply(200, json.dumps(rows).encode(), Content_Type="application/json")
        data = self.files[path.rsplit("/", 1)[1]]
        return self.reply(200, data, ETag=tag_of(data), X_Repo_Commit=COMMIT)

    def do_HEAD(self) -> None:
        self.do_GET()


class Bucket(Server):
    """What boto3 asks of S3 to list a prefix and to read objects; every call must be signed."""

    def do_GET(self) -> None:
        split = urlsplit(self.path)
        _, bucket, *key = split.path.split("/", 2)
        if f"Credential={KEY_ID}/" not in self.headers.get("Authorization", ""):
            return self.refuse(403, "InvalidAccessKeyId")
        if bucket != "models":
            return self.refuse(404, "NoSuchBucket")
        if "list-type" in split.query:
            prefix = parse_qs(split.query)["prefix"][0]
            rows = "".join(
                f"<Contents><Key>{prefix}{name}</Key><ETag>{tag_of(data)}</ETag><Size>{len(data)}</Size></Contents>"
                for name, data in self.files.items()
                if prefix == "lab/paint/"
            )
            self.listed()
            return self.reply(200, f"<ListBucketResult>{rows}</ListBucketResult>".encode())
        data = self.files[key[0].rsplit("/", 1)[1]]
        return self.reply(200, data, ETag=tag_of(data))

    def do_HEAD(self) -> None:
        self.do_GET()

    def listed(self) -> None:
        """Do nothing after a listing."""

    def refuse(self, status: int, code: str) -> None:
        self.reply(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())


@contextmanager
def serving(kind: type[Server], **files: bytes) -> Iterator[tuple[str, type[Server]]]:
    handler = type(kind.__name__, (kind,), {"files": {**FILES, **files}, "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", handler
        server.shutdown()


@pytest.fixture(params=["rig", "engine"])
def fetch(request: pytest.FixtureRequest, litellm: Path, vllm_python: Path, tmp_path: Path) -> Any:
    """Fetch by an interpreter: the rig's has both clients, the engine's another version of the hub's."""
    python = vllm_python if request.param == "engine" else litellm.with_name("python")

    def fetch(*arguments: str, **environment: str) -> Any:
        known = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HF_"))}
        known |= {"PYTHONPATH": str(ROOT / "worker"), "HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hub")}
        known |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_DEFAULT_REGION": "eu-north-1", "AWS_MAX_ATTEMPTS": "1"}
        command = [str(python), "-c", FETCH, *arguments]
        done = subprocess.run(command, env=known | environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return fetch


def test_a_repository_is_fetched_at_its_commit_and_every_refusal_says_why(fetch: Any) -> None:
    with serving(Hub) as (address, hub):

        def ask(repo: str, commit: str = COMMIT, token: str = TOKEN, **environment: str) -> Any:
            return fetch("hub", repo, commit, token, HF_ENDPOINT=address, **environment)

        assert "lab/paint" in ask("lab/paint", token="")
        assert "without a token of the endpoint" in ask("lab/paint", token="")
        assert "the hub has no such commit" in ask("lab/paint", GONE)
        assert "is gated" in ask("lab/gated")
        assert set(ask("lab/paint")) == {"config.json", "model.safetensors"}
        n_asked = len(hub.asked)
    again = fetch("hub", "lab/paint", COMMIT, TOKEN, HF_ENDPOINT=address)  # the hub is gone, the cache is not
    assert set(again) == {"config.json", "model.safetensors"}
    assert len(hub.asked) == n_asked
    assert "cannot be reached" in fetch("hub", "lab/other", COMMIT, TOKEN, HF_ENDPOINT=address)


@pytest.mark.parametrize("fetch", ["rig"], indirect=True)
def test_a_bucket_is_fetched_once_for_each_content_and_every_refusal_says_why(fetch: Any, tmp_path: Path) -> None:
    keys = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": "secret"}
    with serving(Bucket, **{"../../../escaped.json": b"{}"}) as (address, bucket):

        def ask(source: str, **environment: str) -> Any:
            return fetch("bucket", source, AWS_ENDPOINT_URL=address, **{**keys, **environment})

        assert "there is no bucket other" in ask("s3://other/lab/paint")
        assert "refused this worker's credentials (InvalidAccessKeyId)" in ask(
            "s3://models/lab/paint", AWS_ACCESS_KEY_ID="AKIDOTHER"
        )
        unset = fetch("bucket", "s3://models/lab/paint", AWS_ENDPOINT_URL=address)
        assert "this worker has no AWS credentials" in unset
        assert "no config.json directly under it" in ask("s3://models/lab")
        first = ask("s3://models/lab/paint")
        assert first == {name: data.decode() for name, data in FILES.items() if name != "README.md"}
        assert not list(tmp_path.rglob("escaped.json"))

        def n_fetched() -> int:
            return sum("list-type" not in each and each.startswith("GET") for each in bucket.asked)

        assert n_fetched() == 2
        assert ask("s3://models/lab/paint") == first
        assert n_fetched() == 2
        bucket.files["model.safetensors"] = b"other weights"
        assert ask("s3://models/lab/paint")["model.safetensors"] == "other weights"
        assert n_fetched() == 4

        def upload_goes_on(self: Bucket) -> None:
            self.files["model.safetensors"] += b"+"

        bucket.files["model.safetensors"] = b"third weights"
        bucket.listed = upload_goes_on
        assert "changed while it was fetched" in ask("s3://models/lab/paint")
        bucket.listed = lambda _: None
        bucket.files["model.safetensors"] = b"other weights"
        n_before = n_fetched()
        bucket.listed = upload_goes_on
        assert ask("s3://models/lab/paint")["model.safetensors"] == "other weights"  # whole here, whatever comes next
        assert n_fetched() == n_before
    assert "cannot be read" in fetch("bucket", "s3://models/lab/paint", AWS_ENDPOINT_URL=address, **keys)


@pytest.mark.parametrize("fetch", ["rig"], indirect=True)
def test_an_adapter_is_fetched_from_a_repository_or_a_bucket(fetch: Any) -> None:
    keys = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": "secret"}
    files = {"adapter_config.json": b"{}"}
    with serving(Hub, **files) as (hub, _), serving(Bucket, **files) as (bucket, _):
        of_repo = fetch("adapter", f"lab/paint@{COMMIT}", TOKEN, HF_ENDPOINT=hub)
        of_bucket = fetch("adapter", "s3://models/lab/paint", AWS_ENDPOINT_URL=bucket, **keys)
    assert of_repo == of_bucket == {"adapter_config.json": "{}", "config.json": "{}"} | of_bucket
    with serving(Bucket) as (bucket, _):
        refused = fetch("adapter", "s3://models/lab/paint", AWS_ENDPOINT_URL=bucket, **keys)
    assert "there is no adapter_config.json directly under it" in refused
