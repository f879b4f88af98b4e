"""Images in suites: stored once, sent whole to external endpoints, refused by our own engine, shown and exported."""

import base64
import hashlib
import io
import json
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from evalboard.calling.request import Dialect, build
from evalboard.cli.suite_file import load_document, open_lines
from evalboard.client.errors import WrongUse
from evalboard.core.archive import RunArchive
from evalboard.core.errors import InvalidInput
from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.core.suite import parse_suite
from runs.catalogue import create_endpoint, create_profile
from runs.exports import run_archive
from runs.find import parse_wanted
from runs.find.cases import match_cases
from runs.models import Case, ImageRecord, RunRecord
from runs.retention import purge_case
from runs.run import create_run
from runs.suites import push_suite, reference_suite
from runs.uploads import forget_old_uploads, read_next_part
from runs.uploads.uploads import close_upload, open_upload, store_part
from runs.work.read import case_to_decode
from tests import build as rows
from worker.jobs import make_request

pytestmark = pytest.mark.django_db

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
OTHER = PNG[:-1] + b"\x83"
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def part(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def case(*urls: str, name: str = "sky", **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": "Which colour?"}, *map(part, urls)]
    return {"id": name, "messages": [{"role": "user", "content": content}], "target": "blue", **more}


def suite(*cases: dict[str, Any]) -> dict[str, Any]:
    return {"slug": "pictures", "scorer": {"kind": "exact"}, "cases": list(cases)}


@pytest.fixture
def external(settings: Any) -> str:
    settings.ENDPOINT_HOSTS = frozenset({"api.example.com"})
    known = {"engine": "openai", "base_url": "https://api.example.com/v1", "model_name": "paint"}
    return str(create_endpoint(slug="theirs", **known).slug)


def test_the_bytes_of_an_image_are_part_of_the_digest_and_stored_once() -> None:
    one, other = (
        parse_suite(suite(case(f"data:image/png;base64,{base64.b64encode(data).decode()}"))) for data in (PNG, OTHER)
    )
    assert one.digest != other.digest
    push_suite(document=suite(case(URL), case(URL, name="sea", reference=True)))
    [stored] = ImageRecord.objects.all()
    assert (stored.media_type, bytes(stored.data)) == ("image/png", PNG)
    content = Case.objects.get(case_id="sky").content["messages"][0]["content"]
    assert content[1]["image_url"]["url"] == f"sha256:{stored.digest}"
    assert reference_suite(slug="pictures").n_cases == 1  # by digest: its image is there


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("picture.png", "the path of a file"),
        ("http://example.com/a.png", "must be"),
        ("data:image/svg+xml;base64,PHN2Zz4=", "must be"),
        (URL.replace("png", "jpeg", 1), "is not what it says"),
        ("data:image/png;base64,AAAA", "is not what it says"),
        (f"data:image/png;base64,{'A' * 6_000_000}", "is larger than 4,194,304 bytes"),
        (f"sha256:{'0' * 64}", "is not stored here"),
    ],
)
def test_what_is_no_image_is_refused_and_nothing_is_stored(url: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        push_suite(document=suite(case(URL, name="good"), case(url)))
    assert words in "".join(refused.value.fields.values())
    assert not ImageRecord.objects.exists()
    assert not Case.objects.exists()


def test_an_external_endpoint_is_sent_the_image_and_our_engine_refuses_the_run(external: str) -> None:
    push_suite(document=suite(case(URL, "https://example.com/b.png")))
    create_profile(slug="pinned", title="", settings=DEFAULT_PROFILES["pinned"]["settings"])
    rows.endpoint("ours")
    with pytest.raises(InvalidInput) as refused:
        create_run(suite="pictures", endpoint="ours", profile="pinned")
    assert "Case sky has an image, which only an external endpoint takes" in refused.value.fields["endpoint"]

    run: RunRecord = create_run(suite="pictures", endpoint=external, profile="pinned", repeats=1)
    repeat = run.repeats.get()
    request = make_request(case_to_decode(Case.objects.get(), repeat), {})
    known: dict[str, Any] = {"model": "m", "extra_body": {}, "dialect": Dialect(), "is_vllm": False}
    [message] = build(request, api="chat", **known).body["messages"]
    assert [each.get("image_url", {}).get("url") for each in message["content"]] == [
        None,
        URL,
        "https://example.com/b.png",
    ]
    [item] = build(request, api="responses", **known).body["input"]
    assert [each["type"] for each in item["content"]] == ["input_text", "input_image", "input_image"]
    assert item["content"][1]["image_url"] == URL


def test_the_command_line_reads_files_next_to_the_suite(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "sky.png").write_bytes(PNG)
    file = tmp_path / "suite.jsonl"
    lines = [{"suite": {"scorer": {"kind": "exact"}}}, case("pictures/sky.png")]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    document = load_document(file)
    assert document["cases"][0]["messages"][0]["content"][1] == part(URL)
    with open_lines(file, slug="", title="") as opened:  # as a large file is sent
        assert json.loads([*opened.lines][1]) == document["cases"][0]
    with (tmp_path / "pictures" / "sky.png").open("wb") as large:
        large.truncate(2**40)  # sparse: nobody can read it whole
    with pytest.raises(WrongUse, match=r"sky\.png is larger than 4,194,304 bytes"):
        load_document(file)
    (tmp_path / "pictures" / "sky.png").write_text("<svg/>", encoding="utf-8")
    with pytest.raises(WrongUse, match=r"sky\.png is no image that can be sent"):
        load_document(file)


@pytest.mark.django_db(transaction=True)
def test_an_archive_has_the_images_and_the_suite_s_digest(external: str) -> None:
    version, _ = push_suite(document=suite(case(URL)))
    archive = RunArchive(
        io.BytesIO(b"".join(run_archive(rows.finished_run(("blue",), version=version, on=external).pk)))
    )
    read = archive.suite()
    assert read.digest == version.digest
    assert [image.data for image in read.cases[0].images] == [PNG]


def test_an_image_is_deleted_with_the_last_case_that_has_it() -> None:
    push_suite(document=suite(case(URL), case(URL, name="sea")))
    purge_case(suite="pictures", case_id="sky", reason="It shows a person.")
    assert ImageRecord.objects.exists()
    purge_case(suite="pictures", case_id="sea", reason="It shows a person.")
    assert not ImageRecord.objects.exists()


def upload(slug: str, *cases: dict[str, Any]) -> None:
    rows = [{"suite": {"scorer": {"kind": "exact"}}}, *cases]
    data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    sent = open_upload(slug=slug)
    store_part(upload_id=sent.pk, offset=0, lines=data, sha256=digest_of(data))
    close_upload(upload_id=sent.pk, n_bytes=len(data), sha256=digest_of(data))
    while read_next_part():
        pass


def test_images_of_uploads_that_fail_are_deleted_after_some_days_and_those_of_suites_stay() -> None:
    upload("fails", case(URL), case(name="sky"))  # the id twice
    upload("stays", case(f"data:image/png;base64,{base64.b64encode(OTHER).decode()}"))
    forget_old_uploads()
    ImageRecord.objects.update(kept_at=Now() - timedelta(days=9))
    forget_old_uploads()
    assert [bytes(image.data) for image in ImageRecord.objects.all()] == [OTHER]
    assert Case.objects.get().content["messages"][0]["content"][1]["image_url"]["url"] == f"sha256:{digest_of(OTHER)}"


@pytest.mark.django_db(transaction=True)
def test_an_image_that_a_new_suite_names_outlives_the_case_that_is_deleted_meanwhile() -> None:
    push_suite(document=suite(case(URL)))
    deleting = threading.Thread(target=delete_sky)
    with transaction.atomic():
        push_suite(document=suite(case(f"sha256:{digest_of(PNG)}", name="sea")) | {"slug": "other"})
        deleting.start()
        while deleting.is_alive() and not n_waiting():
            time.sleep(0.01)
    deleting.join()
    assert ImageRecord.objects.filter(pk=digest_of(PNG)).exists()
    assert Case.objects.get(case_id="sky").content["target"] is None


def delete_sky() -> None:
    try:
        purge_case(suite="pictures", case_id="sky", reason="It shows a person.")
    finally:
        connection.close()


def n_waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # a transaction sees what its first look saw
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(("words", "n"), [("which colour", 1), ("image_url", 0), ("type", 0)])
def test_a_case_with_images_is_found_by_the_words_of_its_text_alone(words: str, n: int) -> None:
    push_suite(document=suite(case(URL)))
    assert len(match_cases(parse_wanted(words))) == n
