"""Suites in parts: the same version as a whole push, whatever breaks on the way."""

import hashlib
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from evalboard.core.errors import Conflict, InvalidInput
from evalboard.core.suite import read_suite_jsonl
from runs.models import Case, Suite, SuiteVersionRecord, UploadedCase, UploadPartRecord, UploadRecord
from runs.suites import push_suite
from runs.uploads import forget_old_uploads, read_next_part
from runs.uploads.uploads import MAX_BYTES, MAX_OPEN, close_upload, open_upload, store_part
from tests import build

pytestmark = pytest.mark.django_db

HEADER = {"suite": {"title": "Large", "max_tokens": 24, "scorer": {"kind": "exact"}}}


def case(number: int, **changes: Any) -> dict[str, Any]:
    return {"id": f"case-{number}", "prompt": f"Hva er {number}?\u2028", "target": str(number), **changes}


ROWS = [HEADER, *(case(number) for number in range(9)), case(9, scorer={"kind": "contains"}, reference=True)]


def line(row: Any) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def send(lines: Sequence[bytes], *, n_parts: int = 3, slug: str = "large") -> UploadRecord:
    """Send lines in so many parts, the last one first, and close."""
    upload = open_upload(slug=slug)
    size = -(-len(lines) // n_parts)
    parts = [(first, b"".join(lines[first : first + size])) for first in range(0, len(lines), size)]
    for first, part in reversed(parts):
        offset = sum(map(len, lines[:first]))
        store_part(upload_id=upload.pk, offset=offset, lines=part, sha256=hashlib.sha256(part).hexdigest())
    whole = b"".join(lines)
    return close_upload(upload_id=upload.pk, n_bytes=len(whole), sha256=hashlib.sha256(whole).hexdigest())


def read_all() -> int:
    n_steps = 0
    while read_next_part():
        n_steps += 1
    return n_steps


def stored(version: SuiteVersionRecord) -> list[tuple[Any, ...]]:
    fields = ("index", "case_id", "digest", "content", "tags", "group", "is_reference")
    return list(Case.objects.filter(suite_version=version).order_by("index").values_list(*fields))


def test_parts_make_the_version_that_a_whole_push_makes() -> None:
    text = b"".join(map(line, ROWS)).decode()
    whole, _ = push_suite(document=read_suite_jsonl(text, slug="whole"))
    upload = send([line(row) for row in ROWS])
    assert read_all() == 4  # three parts, and the version
    upload.refresh_from_db()
    assert (upload.status, upload.n_cases, upload.n_lines, upload.is_new) == ("finished", 10, 11, True)
    made = upload.version
    assert made is not None
    assert (made.suite.slug, made.number, made.title, made.max_tokens) == ("large", 1, "Large", 24)
    assert (made.digest, made.scorer_id, made.n_cases) == (whole.digest, whole.scorer_id, 10)
    assert stored(made) == stored(whole)
    assert not UploadPartRecord.objects.exists()
    assert not UploadedCase.objects.exists()


def test_content_that_is_there_makes_no_second_version() -> None:
    for _ in range(2):
        upload = send([line(row) for row in ROWS])
        read_all()
    upload.refresh_from_db()
    assert (upload.is_new, SuiteVersionRecord.objects.count()) == (False, 1)


@pytest.mark.parametrize(
    ("wrong", "place", "text"),
    [
        (line(case(3) | {"prompt": 3}), "line 8.prompt", "must be text"),
        (b"{not json}\n", "line 8", "is not JSON"),
        (b"\xff\n", "line 8", "is not UTF-8"),
        (line(case(1)), "case 7, id case-1", "is the id of case 2 too"),
    ],
)
def test_a_wrong_line_is_named_and_leaves_nothing(wrong: bytes, place: str, text: str) -> None:
    lines = [line(row) for row in ROWS]
    lines[7] = wrong
    upload = send(lines)
    read_all()
    upload.refresh_from_db()
    assert upload.status == "failed"
    assert list(upload.fields) == [place]
    assert upload.fields[place].startswith(text)
    assert not Suite.objects.exists()
    assert not UploadedCase.objects.exists()
    assert not UploadPartRecord.objects.exists()


def test_what_has_gaps_or_other_bytes_is_not_closed() -> None:
    upload = open_upload(slug="large")
    part = line(case(1))
    digest = hashlib.sha256(part).hexdigest()
    with pytest.raises(InvalidInput, match="damaged"):
        store_part(upload_id=upload.pk, offset=0, lines=part, sha256="0" * 64)
    first, was_new = store_part(upload_id=upload.pk, offset=0, lines=part, sha256=digest)
    again, is_new = store_part(upload_id=upload.pk, offset=0, lines=part, sha256=digest)
    assert (first, was_new, is_new) == (again, True, False)
    other = line(case(2))
    with pytest.raises(Conflict, match="another part at byte 0"):
        store_part(upload_id=upload.pk, offset=0, lines=other, sha256=hashlib.sha256(other).hexdigest())
    store_part(upload_id=upload.pk, offset=1000, lines=part, sha256=digest)
    with pytest.raises(Conflict, match=f"reach byte {len(part)} of"):
        close_upload(upload_id=upload.pk, n_bytes=1000 + len(part), sha256=digest)
    with pytest.raises(Conflict, match="is not whole"):  # as a part lies beyond the gap
        close_upload(upload_id=upload.pk, n_bytes=len(part), sha256=digest)
    beyond = {"offset": MAX_BYTES - len(part) + 1, "lines": part, "sha256": digest}
    nothing = {"offset": len(part), "lines": b"", "sha256": hashlib.sha256(b"").hexdigest()}
    for wrong in (beyond, nothing):
        with pytest.raises(InvalidInput):
            store_part(upload_id=upload.pk, **wrong)
    store_part(upload_id=upload.pk, **beyond | {"offset": MAX_BYTES - len(part)})
    assert not read_next_part()


def test_close_refuses_another_checksum_than_that_of_the_lines() -> None:
    upload = open_upload(slug="large")
    parts = [line(case(1)), line(case(2))]
    for offset, part in ((len(parts[0]), parts[1]), (0, parts[0])):
        store_part(upload_id=upload.pk, offset=offset, lines=part, sha256=hashlib.sha256(part).hexdigest())
    whole = b"".join(parts)
    digest = hashlib.sha256(whole).hexdigest()
    with pytest.raises(InvalidInput, match="another SHA-256") as refused:
        close_upload(upload_id=upload.pk, n_bytes=len(whole), sha256=hashlib.sha256(parts[0]).hexdigest())
    assert digest in refused.value.fields["sha256"]
    assert not read_next_part()
    for _ in range(2):  # closing again is harmless
        assert close_upload(upload_id=upload.pk, n_bytes=len(whole), sha256=digest.upper()).status == "reading"


def test_one_person_has_few_open_and_old_ones_are_forgotten() -> None:
    for _ in range(MAX_OPEN):
        open_upload(slug="large")
    with pytest.raises(Conflict, match="5 uploads open"):
        open_upload(slug="large")
    others = open_upload(slug="large", user=build.user())  # of another person
    others.delete()
    UploadRecord.objects.update(touched_at=Now() - timedelta(days=2))
    waiting = UploadRecord.objects.order_by("pk").first()
    assert waiting is not None
    UploadRecord.objects.filter(pk=waiting.pk).update(status="reading", n_bytes=1)
    young = open_upload(slug="large")  # what is being read is open no more
    forget_old_uploads()
    assert set(UploadRecord.objects.all()) == {waiting, young}
