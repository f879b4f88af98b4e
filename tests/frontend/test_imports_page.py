"""The page /imports/, and what a run's page says of the log that it was read from."""

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from evalboard.importers.formats import FORMATS
from frontend.imports.views import WHOSE
from runs.models import AuditLineRecord, ImportReadingRecord, ImportRecord, RunRecord
from tests import build
from tests.frontend.stage import HOSTILE
from tests.importers import batch_log
from tests.nightly import nightly
from tests.waiting import wait_until

LOG = batch_log.output({"sky": "blue", "sea": "green"})


@pytest.fixture(autouse=True)
def spool(settings: Any, tmp_path: Path) -> Path:
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    return tmp_path


def send(client: Client, content: bytes = LOG, *, name: str = "output.jsonl", **fields: str) -> Any:
    asked = {"format": "auto", "suite": "", **fields}
    return client.post("/imports/", asked | {"log": [SimpleUploadedFile(name, content)]})


def text_of(response: Any) -> str:
    return response.content.decode()


@pytest.mark.nightly
def test_a_log_is_said_to_be_the_second_of_a_run(engineer: Client) -> None:
    def log(number: int) -> bytes:
        """A call with its prompt, answered as ever."""
        request = {"model": "m", "messages": [{"role": "user", "content": "Which colour?"}], "temperature": 0}
        choice = {"index": 0, "message": {"role": "assistant", "content": "blue"}, "finish_reason": "stop"}
        response = {"id": f"chatcmpl-{number}", "model": "m", "created": 1_700_000_000 + number, "choices": [choice]}
        return json.dumps({"request": request, "response": response}).encode()

    send(engineer, log(1))
    [first] = RunRecord.objects.all()
    assert f'value="{first.pk}"' in text_of(engineer.get(f"/imports/?second_of={first.pk}"))
    send(engineer, log(2), second_of=str(first.pk))
    assert RunRecord.objects.exclude(pk=first.pk).get().second_of == first
    refused = send(engineer, log(3), second_of="none")
    assert refused.status_code == 422
    assert "Must be the id of a run." in text_of(refused)


def test_every_format_has_words() -> None:
    assert list(WHOSE) == list(FORMATS)


def test_a_log_becomes_a_run_whose_page_says_where_it_is_from(engineer: Client, viewer: Client, spool: Path) -> None:
    answer = send(engineer)
    run, found = RunRecord.objects.get(), ImportRecord.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/runs/{run.pk}/")
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert "Read from a log of" in page
    assert "output.jsonl" in page
    assert "Finished, without a score." in page
    assert "Engine processes" not in page
    assert f"/imports/?before={found.pk + 1}#import-{found.pk}" in page
    listed = text_of(viewer.get(f"/imports/?before={found.pk + 1}"))
    assert f'id="import-{found.pk}"' in listed
    assert f'href="/runs/{run.pk}/"' in listed
    for note in found.notes:
        assert note in unescape(page)
        assert note in unescape(listed)
    assert list(spool.iterdir()) == []


@pytest.mark.nightly
def test_the_same_log_again_leads_to_the_run_that_is_there(engineer: Client) -> None:
    first, again = send(engineer), send(engineer)
    assert again.headers["Location"] == first.headers["Location"]
    assert "was imported before" in text_of(engineer.get(again.headers["Location"]))
    assert ImportRecord.objects.count() == 1


@pytest.mark.parametrize(
    ("content", "fields", "words"),
    [
        (b"no log at all", {}, "No known format fits output.jsonl"),
        *nightly(
            [(b"{}\n", {"format": "batch"}, "output.jsonl: "), (LOG, {"suite": "shades"}, "Select a valid choice")]
        ),
    ],
)
def test_a_refusal_is_words_at_the_form(engineer: Client, content: bytes, fields: dict[str, str], words: str) -> None:
    answer = send(engineer, content, **fields)
    assert answer.status_code == 422
    assert words in text_of(answer)
    assert not ImportRecord.objects.exists()


def test_no_file_is_said_at_the_field(engineer: Client) -> None:
    answer = engineer.post("/imports/", {"format": "auto"})
    assert answer.status_code == 422
    assert 'id="id_log-problem"' in text_of(answer)


def test_too_large_a_log_is_a_page_that_says_so(engineer: Client, settings: Any) -> None:
    settings.MAX_IMPORT_BYTES = 100
    answer = send(engineer)
    assert answer.status_code == 413
    assert "at most 0 MiB are read at a time" in text_of(answer)


def test_a_form_without_its_mark_is_refused(db: None) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(build.user("mira", "engineer"))
    assert send(client).status_code == 403
    assert not ImportRecord.objects.exists()


def test_a_viewer_sees_no_form_and_the_runs_page_leads_here(viewer: Client, engineer: Client) -> None:
    assert 'type="file"' in text_of(engineer.get("/imports/"))
    assert 'type="file"' not in text_of(viewer.get("/imports/"))
    assert 'href="/imports/"' in text_of(viewer.get("/runs/"))


def test_what_others_wrote_is_drawn_and_never_markup(engineer: Client) -> None:
    send(engineer, name=f"{HOSTILE}.jsonl")
    run = RunRecord.objects.get()
    for address in ("/imports/", f"/runs/{run.pk}/"):
        page = text_of(engineer.get(address))
        assert "<script>alert" not in page
        assert "\u202e" not in page


def test_a_large_log_is_followed_to_its_run(
    engineer: Client, settings: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)  # of the process that reads it
    settings.IMPORT_WAIT_BYTES = 0
    page = send(engineer).headers["Location"]
    wait_until(lambda: "HX-Refresh" in engineer.get(f"{page}?part=progress").headers)
    assert engineer.get(page).headers["Location"] == f"/runs/{RunRecord.objects.get().pk}/"
    line = AuditLineRecord.objects.get(kind="import", act="created")
    assert (line.actor, line.person, line.via) == ("person", "engineer", "POST imports")
    refused = send(engineer, b"no log at all").headers["Location"]
    wait_until(lambda: "HX-Refresh" in engineer.get(f"{refused}?part=progress").headers)
    assert "No known format fits output.jsonl" in text_of(engineer.get(refused))


def test_a_log_that_is_being_read_is_followed_and_listed(engineer: Client) -> None:
    reading = ImportReadingRecord.objects.create(options={}, names=["large.jsonl"], n_bytes=90_000_000)
    page = text_of(engineer.get(f"/imports/readings/{reading.pk}/"))
    assert 'hx-get="?part=progress"' in page
    assert "large.jsonl" in page
    assert f'href="/imports/readings/{reading.pk}/"' in text_of(engineer.get("/imports/"))
