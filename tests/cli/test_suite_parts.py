"""`evalboard suite push` of a large file: in parts, and after a broken connection only those that are not there."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from evalboard.cli import suite_file
from evalboard.client import suite_parts
from runs.models import SuiteVersionRecord, UploadRecord
from tests import build
from tests.cli.gateway import Gateway
from worker import beside

Call = Callable[..., "CompletedProcess[str]"]

ROWS: list[dict[str, Any]] = [
    {"suite": {"title": "Large", "scorer": {"kind": "exact"}}},
    *({"id": f"case-{number}", "prompt": f"Hva er {number}?", "target": str(number)} for number in range(9)),
]
LINES = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in ROWS]
OFFSETS = [sum(map(len, LINES[:first])) for first in range(len(LINES))]


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "large.jsonl").write_bytes(b"".join(LINES))
    return str(tmp_path / "large.jsonl")


@pytest.fixture(autouse=True)
def _line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every file sent in parts, each of one line."""
    monkeypatch.setattr(suite_file, "LARGE_BYTES", 1)
    monkeypatch.setattr(suite_parts, "PART_BYTES", 1)
    monkeypatch.setattr(beside, "LOOK_SECONDS", 0.05)


@pytest.fixture
def gateway(live_server: Any) -> Iterator[Gateway]:
    made = Gateway(live_server.url)
    made.start()
    yield made
    made.stop()


def offsets(addresses: list[str]) -> list[int]:
    """Return where the parts among these requests begin."""
    return [int(address.split("/parts/")[1].split("/")[0]) for address in addresses if "/parts/" in address]


@pytest.mark.nightly
def test_a_large_file_goes_in_parts_and_is_the_same_version(
    evalboard: Call, file: str, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    with beside.reading_suites():
        done = evalboard("suite", "push", file, EVALBOARD_URL=gateway.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("large v1 stored: 9 cases. http://")
    assert offsets(gateway.written) == OFFSETS
    monkeypatch.setattr(suite_file, "LARGE_BYTES", sum(map(len, LINES)))
    whole = evalboard("suite", "push", file)
    assert (whole.returncode, whole.stdout.startswith("large v1 was there already")) == (0, True)


def test_a_push_that_broke_off_goes_on_from_what_is_there(evalboard: Call, file: str, gateway: Gateway) -> None:
    gateway.breaks_after = 4  # the upload, and three parts
    broken = evalboard("suite", "push", file, "--give-up-after", "0", EVALBOARD_URL=gateway.url)
    assert (broken.returncode, broken.stdout) == (4, "")
    assert suite_parts.AGAIN in broken.stderr
    assert offsets(gateway.written) == OFFSETS[:3]
    assert list(UploadRecord.objects.get().parts.order_by("offset").values_list("offset", flat=True)) == OFFSETS[:3]

    gateway.breaks_after = None
    gateway.written.clear()
    with beside.reading_suites():
        again = evalboard("suite", "push", file, EVALBOARD_URL=gateway.url)
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("large v1 stored: 9 cases. http://")
    assert offsets(gateway.written) == OFFSETS[3:]
    assert (UploadRecord.objects.count(), SuiteVersionRecord.objects.get().n_cases) == (1, 9)


@pytest.mark.nightly
def test_an_upload_whose_opening_was_not_answered_is_gone_on_with(evalboard: Call, file: str, gateway: Gateway) -> None:
    gateway.loses_an_answer = True  # to the request that opens the upload
    broken = evalboard("suite", "push", file, EVALBOARD_URL=gateway.url)
    assert (broken.returncode, gateway.lost) == (4, [201])
    with beside.reading_suites():
        again = evalboard("suite", "push", file, EVALBOARD_URL=gateway.url)
    assert (again.returncode, UploadRecord.objects.count()) == (0, 1)


def test_a_wrong_line_is_named_and_nothing_is_stored(evalboard: Call, tmp_path: Path) -> None:
    wrong = tmp_path / "large.jsonl"
    wrong.write_bytes(b"".join([*LINES[:4], b"{not json}\n", *LINES[5:]]))
    with beside.reading_suites():
        done = evalboard("suite", "push", str(wrong))
    assert (done.returncode, done.stdout) == (64, "")
    assert "nothing of it is stored: line 5" in done.stderr
    assert not SuiteVersionRecord.objects.exists()


def test_a_push_leaves_the_open_upload_of_another_person_alone(evalboard: Call, file: str, gateway: Gateway) -> None:
    theirs = UploadRecord.objects.create(slug="large", created_by=build.user("another"))
    with beside.reading_suites():
        done = evalboard("suite", "push", file, EVALBOARD_URL=gateway.url)
    assert done.returncode == 0, done.stderr
    assert not theirs.parts.exists()
    assert SuiteVersionRecord.objects.get().uploads.get() != theirs
