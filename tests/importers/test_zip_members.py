"""A zip that anybody sent: its members are read within caps and proved by their checksums, and touch no disk."""

import zipfile
from collections.abc import Callable

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers import zip_members
from evalboard.importers.files import LogFile
from evalboard.importers.zip_members import Members
from tests.importers.zips import ZSTANDARD, zip_of

Written = Callable[[str, bytes], LogFile]
CONTENT = {"a/1.json": b'{"a": 1}' * 100, "b": b"", "../../c": b"x", "d\\e": b"y"}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTANDARD])
def test_members_come_back_whatever_packed_them(written: Written, method: int) -> None:
    members = Members(written("log.eval", zip_of(CONTENT, method=method)))
    assert members.names() == ["a/1.json", "b", "../../c", "d/e"]
    assert [members.read(name) for name in members.names()] == list(CONTENT.values())


def test_of_two_members_of_one_name_the_last_counts(written: Written) -> None:
    members = Members(written("log.eval", zip_of({"a/b": b"old", "a\\b": b"new"})))
    assert [members.read(name) for name in members.names()] == [b"new"]


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        (zip_of(CONTENT)[:-30], "is a zip that cannot be read"),
        (zip_of(CONTENT)[:40], "is a zip that cannot be read"),
        (zip_of({"a": b"1"}, flags=1), "a is encrypted"),
        (zip_of({"a": b"1"}, method=12), "a member compressed by method 12"),
        (zip_of({"a": b"1" * 50}, size=49), "a is damaged: it is not what its checksum says"),
        (zip_of({"a": b"1" * 50}, method=zipfile.ZIP_DEFLATED, size=51), "a is damaged"),
        (zip_of({"a": b"sound"}, method=zipfile.ZIP_STORED).replace(b"sound", b"wound"), "a is damaged"),
        (zip_of({"a": b"1" * 500}).replace(b"\x28\xb5\x2f\xfd", b"abcd"), "a is damaged"),
        (zip_of({"a": bytes(2 << 20)}, method=zipfile.ZIP_DEFLATED), "a unpacks to more than 100 times its size"),
        (zip_of({"a": bytes(2 << 20)}), "a unpacks to more than 100 times its size"),
        (zip_of({"a": bytes(2 << 20)}, size=1 << 20), "a is damaged"),
    ],
)
def test_what_is_damaged_or_a_bomb_is_refused(written: Written, log: bytes, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Members(written("log.eval", log)).read("a")
    assert problem in refused.value.detail


def test_a_lie_about_the_size_unpacks_no_more_than_was_told() -> None:
    for method in (zipfile.ZIP_DEFLATED, ZSTANDARD):
        packed = zip_of({"a": bytes(1 << 24)}, method=method)
        start = len(b"a") + 30
        assert len(zip_members._unpacked(packed[start:], method, 1000)) == 1001


def test_all_members_together_have_a_cap(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_members, "MAX_BYTES", 1000)
    members = Members(written("log.eval", zip_of({"a": bytes(600), "b": bytes(600)})))
    assert members.read("a") == bytes(600)
    with pytest.raises(InvalidInput, match="b unpacks to more than is read"):
        members.read("b")


def test_many_members_are_refused_before_they_are_listed(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_members, "MAX_MEMBERS", 2)
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(InvalidInput, match="is a zip of more than 2 members"):
        Members(written("log.eval", zip_of({"a": b"", "b": b"", "c": b""})))
