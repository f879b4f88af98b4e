"""A release as a file: it is judged again from that alone, and whatever is changed in it is named."""

import io
import json
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from evalboard.cli.main import main
from evalboard.core.archive import run_archive
from evalboard.core.digest import canonical_json, digest_json
from runs import exports
from runs.models import ReleaseRecord, RunRecord
from runs.release import decide_release, sign_release
from tests import build
from tests.api.conftest import Api
from tests.casts import cast
from tests.judged import WORSE
from tests.nightly import few
from tests.runs import judged
from tests.runs.conftest import no_query

pytestmark = pytest.mark.django_db
POLICY = {"slug": "quick", "rule": "paired", "tolerance_points": 20.0, "looks": [3, 10, 20]}
Json = dict[str, Any]


@cast
def pair() -> tuple[RunRecord, RunRecord]:
    version, process = judged.suite(n_cases=8, policy=POLICY), build.process()
    return judged.run(version, repeats=3, by=process), judged.run(version, repeats=3, by=process)


@cast
def ship(pair: tuple[RunRecord, RunRecord]) -> ReleaseRecord:
    return judged.release(*pair)


@cast
def worse() -> ReleaseRecord:
    """Of a release whose candidate is another model and breaks most cases."""
    version = judged.suite(n_cases=60, slug="sixty")
    ours = judged.run(version, repeats=5, by=build.process())
    theirs = judged.run(
        version,
        dict.fromkeys(range(40), judged.ALWAYS),
        repeats=5,
        by=build.process(build.bucket(weights=WORSE)),
    )
    return judged.release(ours, theirs)


def bundle(release: ReleaseRecord) -> bytes:
    return b"".join(exports.release_bundle(release.pk))


def sign(release: ReleaseRecord, **more: Any) -> None:
    digest = decide_release(release_id=release.pk).input_digest
    mary = build.user("mary", "release manager")
    sign_release(**{"release_id": release.pk, "decision": "approve", "input_digest": digest, "user": mary, **more})


def verify(path: Path, *options: str) -> tuple[int, str, str]:
    """Run the command where any query fails; return its code and what it printed."""
    with (
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
        connection.execute_wrapper(no_query),
        pytest.raises(SystemExit) as end,
    ):
        main(["verify-release", str(path), *options])
    return int(end.value.code or 0), out.getvalue(), err.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(data: bytes, **changes: Callable[[Json], None]) -> bytes:
    """Return the bundle with changed members, and a manifest with their digests: as somebody who knows the format."""
    known = members(data)
    manifest = json.loads(known.pop(run_archive.MANIFEST_NAME))
    for name, change in changes.items():
        path = next(each for each in known if each.endswith(f"{name}.json"))
        change(value := json.loads(known[path]))
        known[path] = canonical_json(value)
    written = [run_archive.ArchiveMember(name, [data], is_packed=True) for name, data in known.items()]
    kind = manifest["format"], manifest["version"]
    return b"".join(
        run_archive.write_archive(written, lambda: {"n_gates": manifest["n_gates"]}, kind=kind, is_packed=True)
    )


def test_a_signed_release_is_judged_again_from_its_file_alone(ship: ReleaseRecord, tmp_path: Path) -> None:
    sign(ship, note="Looked at.")
    (path := tmp_path / "release.zip").write_bytes(bundle(ship))
    code, out, err = verify(path)
    assert (code, err) == (0, "")
    first, signed, again, _ = out.splitlines()
    assert first.startswith(f"Release {ship.pk}: ship. ")
    assert signed.startswith("mary: approve, ")
    assert "covers the verdict and its evidence" in signed
    assert again.startswith("Judged again from the evidence in this file")
    code, out, _ = verify(path, "--json")
    checked = json.loads(out)
    assert (code, checked["verdict"], checked["problems"]) == (0, "ship", [])


@pytest.mark.nightly
def test_a_no_ship_holds_too_and_has_the_worst_cases(worse: ReleaseRecord, tmp_path: Path) -> None:
    (path := tmp_path / "release.zip").write_bytes(data := bundle(worse))
    code, out, _ = verify(path)
    assert (code, out.splitlines()[1]) == (0, "It is not signed.")
    assert out.startswith(f"Release {worse.pk}: no-ship. ")
    rows = [json.loads(line) for line in members(data)["gates/0/cases.jsonl"].splitlines()]
    assert {row["outcome"] for row in rows} == {"broken"}
    assert all(row["pair"]["positions"] for row in rows)


@pytest.mark.nightly
def test_a_changed_byte_is_noticed_wherever_it_stands(ship: ReleaseRecord, tmp_path: Path) -> None:
    sign(ship)
    data, path = bundle(ship), tmp_path / "release.zip"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        starts = {info.filename: info.header_offset for info in archive.infolist()}
    middle = {name: at + 100 + len(name) for name, at in starts.items() if "cases" not in name}
    places = [*starts.values(), *middle.values(), *range(len(data) - 300, len(data), 7), *range(5, len(data), 997)]
    for at in places:
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        code, out, err = verify(path)
        assert (code, out, err.count("\n")) == (4, "", 1), (at, err)
        for name in (name for name, place in middle.items() if place == at):
            assert name in err
    path.write_bytes(data + b" ")
    assert verify(path)[0] == 4


def drop_a_score(gate: Json) -> None:
    gate["question"]["candidate"] = {**gate["question"]["candidate"], "base64": gate["question"]["baseline"]["base64"]}
    gate["question"]["case_ids"][0] = "another"


def say_ship(release: Json) -> None:
    release["verdict"]["word"] = release["verdict"]["document"]["verdict"] = "ship"


def change_note(release: Json) -> None:
    release["sign_offs"][0]["covers"]["note"] = "Never mind."


def change_and_digest(release: Json) -> None:
    change_note(release)
    release["sign_offs"][0]["digest"] = digest_json(release["sign_offs"][0]["covers"])


def add_unknown(gate: Json) -> None:
    gate["question"]["colour"] = "red"


def change_sentence(release: Json) -> None:
    release["verdict"]["document"]["summary"] = "Ship it."


CHANGED: list[tuple[dict[str, Callable[[Json], Any]], str]] = [
    ({"evidence": drop_a_score}, "the evidence is not the one that the verdict was signed on"),
    ({"release": say_ship}, "it says ship, and recomputed it is no_ship"),
    ({"release": change_sentence}, "summary differs when it is recomputed"),
    ({"release": change_note}, "it was changed after it was signed"),
    ({"release": change_and_digest}, "it does not follow the sign-off before it"),
    ({"evidence": add_unknown}, "question has other fields than this program knows: colour"),
    ({"release": lambda release: release.pop("policy")}, "'policy'"),
    ({"evidence": lambda gate: gate["question"]["baseline"].update(shape=[-1, 7])}, "evidence.json cannot be read"),
    ({"evidence": lambda gate: gate["question"].update(case_ids=[])}, "cannot be judged"),
]


@pytest.mark.nightly
def test_what_was_changed_by_somebody_who_knows_the_format_is_named(worse: ReleaseRecord, tmp_path: Path) -> None:
    sign(worse, decision="reject", note="Worse.")
    right = bundle(worse)
    for changes, words in CHANGED:
        (path := tmp_path / "release.zip").write_bytes(rewrite(right, **changes))
        code, out, err = verify(path)
        assert (code, words in out + err) == (4, True), words


def test_a_sign_off_of_an_earlier_verdict_is_told_apart(ship: ReleaseRecord, tmp_path: Path) -> None:
    sign(ship)
    ReleaseRecord.objects.filter(pk=ship.pk).update(nothing_caches=True)  # part of what the verdict rests on
    (path := tmp_path / "release.zip").write_bytes(bundle(ship))
    code, out, _ = verify(path)
    assert (code, "covers an earlier verdict" in out) == (0, True)


@pytest.mark.parametrize("data", [b"", b"no zip", b"PK\x05\x06" + 18 * b"\0"])
def test_what_is_no_bundle_is_refused(tmp_path: Path, data: bytes) -> None:
    (path := tmp_path / "release.zip").write_bytes(data)
    code, out, err = verify(path)
    assert (code, out, err.count("\n")) == (4, "", 1)


def zipped(data: bytes, method: int = zipfile.ZIP_STORED, **changes: Any) -> bytes:
    """Return the bundle's members in another zip; `changes` are of its manifest, where None takes a field out."""
    known = members(data)
    manifest = {**json.loads(known[run_archive.MANIFEST_NAME]), **changes}
    stated = json.dumps({name: each for name, each in manifest.items() if each is not None})
    with zipfile.ZipFile(out := io.BytesIO(), "w", method) as archive:
        for name, each in {**known, run_archive.MANIFEST_NAME: stated}.items():
            archive.writestr(name, each)
    return out.getvalue()


def lay_over(data: bytes) -> bytes:
    """Return a zip whose directory lists its largest member twice."""
    with zipfile.ZipFile(out := io.BytesIO(zipped(data)), "a") as archive:
        archive.filelist.append(max(archive.filelist, key=lambda info: info.file_size))
        archive._didModify = True  # type: ignore[attr-defined]  # so that it writes its directory again
    return out.getvalue()


@pytest.mark.parametrize(
    ("spoil", "words"),
    few(
        [
            (lambda data: zipped(data, members=None), "its manifest does not list its members ('members')"),
            (lambda data: zipped(data, members=[1]), "its manifest does not list its members"),
            (
                lambda data: zipped(data, members=[{"name": ["a"], "size": 1, "sha256": ""}]),
                "it holds gates/0/cases.jsonl",
            ),
            (lambda data: zipped(data, version=None), "The export has format version None"),
            (lambda data: zipped(data, n_gates=float("inf")), "release.json cannot be read"),
            (lambda data: zipped(data, zipfile.ZIP_DEFLATED), "a member is compressed, and none is"),
            (lambda data: zipped(data, zipfile.ZIP_DEFLATED, more="[" * 2**20), "its manifest is larger than any"),
            (lay_over, "its members lie on top of one another"),
        ],
        2,
    ),
)
def test_a_zip_that_somebody_made_up_ends_in_a_sentence(
    ship: ReleaseRecord, tmp_path: Path, spoil: Callable[[bytes], bytes], words: str
) -> None:
    (path := tmp_path / "release.zip").write_bytes(spoil(bundle(ship)))
    code, out, err = verify(path)
    assert (code, out, err.count("\n")) == (4, "", 1)
    assert words in err


def test_a_number_that_no_digest_covers_ends_in_a_sentence(ship: ReleaseRecord, tmp_path: Path) -> None:
    known = members(bundle(ship))
    release = json.loads(known["release.json"])
    release["verdict"]["document"]["gates"][0]["repeats_needed"] = float("nan")
    known["release.json"] = json.dumps(release).encode()
    written = [run_archive.ArchiveMember(name, [each], is_packed=True) for name, each in known.items()]
    kind = "evalboard-release", 1
    parts = run_archive.write_archive(written[:-1], lambda: {"n_gates": 1}, kind=kind, is_packed=True)
    (path := tmp_path / "release.zip").write_bytes(b"".join(parts))
    code, out, err = verify(path)
    assert (code, out, err.count("\n")) == (4, "", 1)
    assert "its sign-offs cannot be read (Out of range float values" in err


def test_what_a_bundle_says_turns_no_terminal_around(ship: ReleaseRecord, tmp_path: Path) -> None:
    def paint(release: Json) -> None:
        release["verdict"]["document"]["summary"] = "\x1b[31mShip it.\u202e\ud800"

    (path := tmp_path / "release.zip").write_bytes(rewrite(bundle(ship), release=paint))
    code, out, _ = verify(path)
    assert code == 4
    assert "\\u{1b}[31mShip it.\\u{202e}" in out


def test_nothing_in_a_bundle_is_deflated(ship: ReleaseRecord) -> None:
    """So that another zlib writes the same bytes again."""
    with zipfile.ZipFile(io.BytesIO(bundle(ship))) as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}


@pytest.mark.django_db(transaction=True)
def test_a_run_is_no_release(tmp_path: Path) -> None:
    (path := tmp_path / "run.zip").write_bytes(b"".join(exports.run_archive(build.finished_run(("blue",)).pk)))
    assert "it is no release of Evalboard's" in verify(path)[2]


def test_rest_sends_it_and_refuses_what_is_not_there(api: Api, ship: ReleaseRecord) -> None:
    answer = api.get(f"/releases/{ship.pk}/export/")
    assert answer["Content-Disposition"] == f'attachment; filename="release-{ship.pk}.zip"'
    assert "release.json" in members(b"".join(answer.streaming_content))
    assert api.get("/releases/999999/export/").status_code == 404
