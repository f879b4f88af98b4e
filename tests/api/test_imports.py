"""POST /imports/: a log is read once, what is wrong with it is named, and nothing of it stays behind."""

import gzip
import tempfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, RequestFactory
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from evalboard.importers.formats import FORMATS
from runs.imports.uploads import MAX_FILES, LogUploads, log_files
from runs.models import ImportRecord, RunRecord
from tests import build
from tests.api.conftest import Api
from tests.importers import batch_log
from tests.nightly import few

LOG = batch_log.output({"sky": "blue", "sea": "green"})


@pytest.fixture(autouse=True)
def spool(settings: Any, tmp_path: Path) -> Path:
    """Where uploads lie while a request is at work."""
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    return tmp_path


def send(api: Api, *files: bytes, **fields: Any) -> Any:
    named = [SimpleUploadedFile(f"output-{number}.jsonl", content) for number, content in enumerate(files)]
    body = encode_multipart(BOUNDARY, ({"files": named} if named else {}) | fields)
    return api.send("POST", "/imports/", body, MULTIPART_CONTENT)


def test_a_log_is_read_once(api: Api, spool: Path) -> None:
    first, again = send(api, LOG), send(api, LOG)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.headers["Location"].endswith(f"/api/v1/imports/{first.json()['id']}/")
    assert first.json() == again.json() == api.get(first.headers["Location"]).json()
    assert api.get("/imports/").json()["results"] == [first.json()]
    found = first.json()
    assert (found["format"], found["created_by"]) == ("batch", "root")
    [file] = found["files"]
    assert (file["name"], file["size"], len(file["sha256"])) == ("output-0.jsonl", len(LOG), 64)
    assert found["runs"] == api.get("/runs/").json()["results"]
    assert list(spool.iterdir()) == []


@pytest.mark.nightly
def test_a_compressed_log_is_read_and_kept_as_what_it_was_sent_as(api: Api) -> None:
    packed = gzip.compress(LOG)
    answer = send(api, packed)
    assert (answer.status_code, answer.json()["runs"][0]["status"]) == (201, "finished")
    assert answer.json()["files"][0]["size"] == len(packed)
    assert send(api, LOG).json()["runs"][0]["id"] == answer.json()["runs"][0]["id"]


def test_a_bomb_ends_as_one_sentence(api: Api, settings: Any) -> None:
    settings.IMPORT_MEMORY_BYTES = 400 << 20
    bomb = zstandard.compress(bytes(600 << 20), 1)
    answer = send(api, bomb)
    assert answer.status_code == 400
    assert answer.json()["fields"] == {"output-0.jsonl": "unpacks to more than 512 MiB, the most that is read"}


@pytest.mark.nightly
def test_a_log_answers_the_cases_of_a_suite_that_is_named(api: Api) -> None:
    build.suite("colours", ["sky", "sea"])
    [run] = send(api, LOG, suite="colours").json()["runs"]
    assert run["suite"] == {"slug": "colours", "version": 1}
    unknown = send(api, LOG, suite="shades")
    assert unknown.status_code in (400, 404)
    assert "shades" in unknown.json()["detail"]


@pytest.mark.parametrize(
    ("files", "fields", "named"),
    few(
        [
            pytest.param([], {}, "files", id="no file"),
            pytest.param([], {"files": "text"}, "files[0]", id="text in place of a file"),
            pytest.param([LOG] * (MAX_FILES + 1), {}, "files", id="too many files"),
            pytest.param([LOG], {"formt": "batch"}, "formt", id="a field that is none"),
            pytest.param([LOG], {"format": "xls"}, "format", id="a format that is none"),
            pytest.param([LOG], {"format": ["auto", "batch"]}, "format", id="a format twice"),
            pytest.param([b"no log at all"], {}, "format", id="of no format"),
            pytest.param([b"{}\n"], {"format": "batch"}, "output-0.jsonl", id="not of its format"),
        ],
        4,
    ),
)
def test_what_is_wrong_is_named_and_nothing_stays(
    api: Api, spool: Path, files: list[bytes], fields: dict[str, Any], named: str
) -> None:
    answer = send(api, *files, **fields)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert named in answer.json()["fields"]
    assert not ImportRecord.objects.exists()
    assert not RunRecord.objects.exists()
    assert list(spool.iterdir()) == []


def test_too_large_a_log_is_refused_before_it_is_read(api: Api, settings: Any, spool: Path) -> None:
    settings.MAX_IMPORT_BYTES = 2**20
    answer = send(api, b" " * 2**20)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert answer.json()["detail"].startswith("The files have 1.0 MiB; at most 1 MiB are read at a time.")
    assert list(spool.iterdir()) == []


def test_a_full_disk_for_uploads_is_said(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: open("/dev/full", "r+b"))  # noqa: PTH123, SIM115
    for log in (LOG, LOG * 1000):
        answer = send(api, log)
        assert (answer.status_code, answer.json()["code"]) == (507, "disk_full")
    assert not ImportRecord.objects.exists()


def test_an_upload_lies_under_no_name(settings: Any, spool: Path) -> None:
    """So it is gone with its process, however that ends."""
    uploads = LogUploads(RequestFactory().post("/"))
    uploads.new_file("files", "log.jsonl", "text/plain", len(LOG), None, {})
    uploads.receive_data_chunk(LOG, 0)
    upload = uploads.file_complete(len(LOG))
    assert list(spool.iterdir()) == []
    [log] = log_files([upload])
    assert (log.name, log.size, log.head(9)) == ("log.jsonl", len(LOG), LOG[:9])
    uploads.forget()
    assert not log.path.exists()


@pytest.mark.parametrize("media_type", ["", MULTIPART_CONTENT, "application/x-www-form-urlencoded", "application/json"])
def test_a_request_without_a_form_is_told_so(api: Api, media_type: str) -> None:
    answer = api.send("POST", "/imports/", b"", media_type)
    assert (answer.status_code, answer.headers["Content-Type"]) in [
        (status, "application/problem+json") for status in (400, 415)
    ]
    if media_type == "":
        assert "files" in answer.json()["fields"]


@pytest.mark.nightly
def test_a_log_that_hangs_its_reader_is_refused_at_its_files(api: Api, settings: Any, spool: Path) -> None:
    settings.IMPORT_CPU_SECONDS, settings.IMPORT_WAIT_BYTES = 1, 2**30
    answer = send(api, LOG * 30_000)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert answer.json()["fields"].keys() == {"files"}
    assert not ImportRecord.objects.exists()


def test_files_are_taken_here_and_nowhere_else(api: Api) -> None:
    assert api.post("/imports/", {"files": []}).status_code == 415
    body = encode_multipart(BOUNDARY, {"suite": "colours"})
    assert api.send("POST", "/runs/", body, MULTIPART_CONTENT).status_code == 415


def test_a_session_needs_its_csrf_token_before_a_log_is_read(db: None, spool: Path) -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(build.user("mira", "engineer"))
    client.get("/imports/")  # the page with the form brings the cookie
    mark = client.cookies["evalboard_csrf"].value

    def post(body: bytes, **headers: str) -> Any:
        return client.generic("POST", "/api/v1/imports/", body, MULTIPART_CONTENT, headers=headers)

    body = encode_multipart(BOUNDARY, {"files": SimpleUploadedFile("output.jsonl", LOG)})
    refused = post(body)
    assert (refused.status_code, refused.json()["code"]) == (403, "csrf_failed")
    assert post(body, **{"X-CSRFToken": mark}).status_code == 201
    torn = client.generic("POST", "/api/v1/imports/", b"x", "multipart/form-data", headers={"X-CSRFToken": mark})
    assert (torn.status_code, torn.json()["code"]) == (400, "malformed")
    assert list(spool.iterdir()) == []


@pytest.mark.nightly
def test_imports_come_in_pages(api: Api) -> None:
    ids = [send(api, batch_log.output({"sky": text})).json()["id"] for text in ("blue", "grey", "black")]
    first = api.get("/imports/?page_size=2").json()
    assert [row["id"] for row in first["results"]] == ids[:0:-1]
    last = api.get(first["next"]).json()
    assert [row["id"] for row in last["results"]] == ids[:1]
    assert [row["id"] for row in api.get(last["previous"]).json()["results"]] == ids[:0:-1]
    assert api.get("/imports/999999/").status_code == 404


def test_the_schema_says_how_files_are_sent(api: Api) -> None:
    document = api.get("/api/schema/").json()
    content = document["paths"]["/api/v1/imports/"]["post"]["requestBody"]["content"]
    assert list(content) == ["multipart/form-data"]
    form = document["components"]["schemas"]["ImportInRequest"]
    assert form["required"] == ["files"]
    assert form["properties"]["files"]["items"] == {"type": "string", "format": "binary"}
    assert set(FORMATS) < set(form["properties"]["format"]["enum"])
