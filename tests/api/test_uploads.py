"""/uploads/: the person who opens an upload owns it."""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from runs.models import Suite, UploadRecord
from runs.uploads import read_next_part
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db

AsRole = Callable[[str], Api]
LINES = [json.dumps({"id": f"case-{number}", "prompt": "2 + 2?", "target": "4"}).encode() + b"\n" for number in (1, 2)]
WHOLE = b"".join(LINES)
HEADER = json.dumps({"suite": {"title": "Large", "scorer": {"kind": "exact"}}}).encode() + b"\n"


def digest(lines: bytes) -> str:
    return sha256(lines).hexdigest()


def opened(caller: Api) -> str:
    made = caller.post("/uploads/", {"slug": "large"})
    assert made.status_code == 201
    return str(made.json()["id"])


def send(caller: Api, upload: str, lines: bytes, *, offset: int = 0) -> Any:
    address = f"/uploads/{upload}/parts/{offset}/?sha256={digest(lines)}"
    return caller.send("POST", address, lines, "application/x-ndjson")


def close(caller: Api, upload: str, lines: bytes) -> Any:
    return caller.post(f"/uploads/{upload}/close/", {"n_bytes": len(lines), "sha256": digest(lines)})


@pytest.mark.parametrize("other", ["release manager", "admin"])
def test_nobody_else_adds_to_an_upload_or_closes_it(as_role: AsRole, other: str) -> None:
    owner, another = as_role("engineer"), as_role(other)
    upload = opened(owner)
    assert send(owner, upload, HEADER).status_code == 201
    for refused in (
        send(another, upload, LINES[0], offset=len(HEADER)),
        send(another, upload, HEADER),  # the part that is there
        close(another, upload, HEADER),
    ):
        assert (refused.status_code, refused.json()["code"]) == (403, "refused")
        assert refused.json()["detail"] == f"Upload {upload} was opened by engineer. Open an upload of your own."
    assert another.get(f"/uploads/{upload}/").json()["status"] == "open"
    assert send(owner, upload, WHOLE, offset=len(HEADER)).status_code == 201
    assert close(owner, upload, HEADER + WHOLE).json()["status"] == "reading"
    assert close(another, upload, HEADER + WHOLE).status_code == 403
    while read_next_part():
        pass
    assert Suite.objects.get(slug="large").versions.get().n_cases == 2


def test_the_owner_and_an_admin_delete_an_upload(as_role: AsRole) -> None:
    first, second = opened(as_role("engineer")), opened(as_role("engineer"))
    assert as_role("release manager").delete(f"/uploads/{first}/").status_code == 403
    assert as_role("engineer").delete(f"/uploads/{first}/").status_code == 204
    assert as_role("admin").delete(f"/uploads/{second}/").status_code == 204
    assert not UploadRecord.objects.exists()


def test_an_upload_whose_owner_is_gone_is_an_admins_to_delete(as_role: AsRole) -> None:
    upload = opened(as_role("engineer"))
    UploadRecord.objects.update(created_by=None)
    assert send(as_role("engineer"), upload, HEADER).status_code == 403
    assert as_role("admin").delete(f"/uploads/{upload}/").status_code == 204


def test_a_caller_lists_only_the_uploads_it_opened(as_role: AsRole) -> None:
    own, _ = opened(as_role("engineer")), opened(as_role("admin"))
    assert len(as_role("engineer").get("/uploads/").json()["results"]) == 2
    assert [row["id"] for row in as_role("engineer").get("/uploads/?own=true").json()["results"]] == [own]
    assert as_role("engineer").get("/uploads/?own=yes").status_code == 400


@pytest.mark.parametrize("wrong", [None, "", "0" * 63, "g" * 64, "0" * 64 + "\n", 7])
def test_close_needs_the_sha256_of_the_whole(api: Api, wrong: Any) -> None:
    upload = opened(api)
    assert send(api, upload, WHOLE).status_code == 201
    body = {"n_bytes": len(WHOLE), "sha256": wrong}
    refused = api.post(f"/uploads/{upload}/close/", {name: value for name, value in body.items() if value is not None})
    assert refused.status_code == 400
    assert list(refused.json()["fields"]) == ["sha256"]
    assert UploadRecord.objects.get().status == "open"


def test_close_refuses_the_checksum_of_another_file(api: Api) -> None:
    upload = opened(api)
    send(api, upload, WHOLE)
    refused = api.post(f"/uploads/{upload}/close/", {"n_bytes": len(WHOLE), "sha256": digest(HEADER)})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["sha256"])
    assert close(api, upload, WHOLE).status_code == 200
