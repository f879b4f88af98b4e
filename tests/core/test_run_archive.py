"""An archive that is written as it is read, and a reader that finds whatever was changed in it."""

import copy
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evalboard.core import digest
from evalboard.core.archive import run_archive
from evalboard.core.archive.run_archive import ArchiveMember
from evalboard.core.archive.run_archive_reader import ArchiveDamaged, RunArchive
from evalboard.core.suite import lines as suite_lines
from evalboard.core.suite import read_suite_jsonl, suite
from evalboard.core.trace import codec, vocabulary
from evalboard.core.trace.trace import TokenTrace
from tests import make

CASES = ["sky", "a/b c"]
DOCUMENT = {
    "slug": "colours",
    "scorer": {"kind": "exact"},
    "cases": [
        {"id": CASES[0], "prompt": "Which colour has sky?", "target": "blue"},
        {"id": CASES[1], "completion": "The colour of a/b c is", "target": "blue"},
    ],
}
WORDS = vocabulary.pack_vocabulary([b"<end>", b"blue"], end_ids=[0])
MANIFEST = {"engine": {"dtype": "float32"}}

Files = dict[str, bytes]


def traces() -> list[TokenTrace]:
    return [make.trace("abcd", seed=1, prompt=[1, 2]), make.trace("ab", seed=2, k=3)]


def suite_text(document: dict[str, Any]) -> bytes:
    """The suite as the archive has it: out of what a database keeps."""
    parsed = suite.parse_suite(document)
    lines = [suite_lines.dump_header(title=parsed.title, max_tokens=parsed.max_tokens, stop=[], scorer=parsed.scorer)]
    for case in parsed.cases:
        content: dict[str, Any] = {"messages": list(case.messages), "target": case.target}
        content |= {"tools": case.tools} if case.tools else {}
        own = None if case.scorer == parsed.scorer else case.scorer  # as a scoring plan keeps it
        lines.append(
            suite_lines.dump_case(
                case_id=case.id,
                content=content,
                tags=list(case.tags),
                group=case.group,
                is_reference=case.is_reference,
                scorer=own,
                default=parsed.scorer,
                digest=case.digest,
            )
        )
    return jsonl(lines)


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def response_rows() -> list[dict[str, Any]]:
    rows = []
    offset, size = 0, len(codec.encode_block(traces()))
    for index, (case_id, trace) in enumerate(zip(CASES, traces(), strict=True)):
        rows.append(
            {
                "repeat": 1,
                "case": case_id,
                "case_index": index,
                "text": f"answer {index}",
                "text_digest": digest.text_digest(f"answer {index}").hex(),
                "score": 1 / 3,
                "reason": "Equal.",
                "trace": {"digest": trace.digest.hex(), "offset": offset, "size": size, "slot": index},
                "provenance": {"engine_process": "5"},
            }
        )
    return rows


def manifest(n_responses: int = 2) -> dict[str, Any]:
    return {
        "suite": {"slug": "colours", "digest": suite.parse_suite(DOCUMENT).digest},
        "repeats": [
            {"index": 1, "is_exported": True, "n_responses": n_responses},
            {"index": 2, "is_exported": False, "n_responses": 0},
        ],
        "fingerprints": [{"digest": digest.digest_json(MANIFEST), "manifest": MANIFEST}],
        "engine_processes": [{"id": "5", "vocabulary": "f" * 64}],
    }


def members(rows: list[dict[str, Any]] | None = None) -> list[ArchiveMember]:
    return [
        ArchiveMember(run_archive.SUITE_NAME, [suite_text(DOCUMENT)]),
        ArchiveMember(run_archive.RESPONSES_NAME, [jsonl(response_rows() if rows is None else rows)]),
        ArchiveMember(run_archive.vocabulary_name("f" * 64), [WORDS], is_packed=True),
        ArchiveMember(run_archive.TRACES_NAME, [codec.encode_block(traces())], is_packed=True),
    ]


def archive(rows: list[dict[str, Any]] | None = None, stated: dict[str, Any] | None = None) -> bytes:
    return b"".join(run_archive.write_archive(members(rows), lambda: stated or manifest()))


def opened(data: bytes) -> RunArchive:
    return RunArchive(io.BytesIO(data))


def test_what_was_written_is_read_back_to_the_bit() -> None:
    run = opened(archive())
    run.check()
    found = list(run.responses())
    assert [(each.case_id, each.text, each.score) for each in found] == [
        ("sky", "answer 0", 1 / 3),
        ("a/b c", "answer 1", 1 / 3),
    ]
    for response, trace in zip(found, traces(), strict=True):
        read = run.trace(response)
        assert read is not None
        assert (read.digest, read.k) == (trace.digest, trace.k)
        assert (read.prompt_token_ids is None) == (trace.prompt_token_ids is None)
    words = run.vocabulary(found[0])
    assert words is not None
    assert words.token_bytes(1) == b"blue"
    assert run.suite().digest == suite.parse_suite(DOCUMENT).digest
    assert run.repeats == [1]


def test_the_same_run_gives_the_same_bytes() -> None:
    assert archive() == archive()


def test_it_is_written_as_it_is_read() -> None:
    """Parts come out while the members are still being made, and none is much larger than what was put in."""
    made = 0

    def parts() -> Iterator[bytes]:
        nonlocal made
        for made in range(1, 201):
            yield make_bytes(made)

    def make_bytes(seed: int) -> bytes:
        return bytes((seed * place) % 251 for place in range(10_000))

    sizes, at = [], []
    for part in run_archive.write_archive([ArchiveMember("big", parts(), is_packed=True)], dict):
        sizes.append(len(part))
        at.append(made)
    assert max(sizes) < 100_000
    assert at[0] < 20
    assert len(sizes) > 20


def test_it_is_a_zip_that_others_read() -> None:
    with zipfile.ZipFile(io.BytesIO(archive())) as found:
        assert found.testzip() is None
        assert found.namelist()[-1] == run_archive.MANIFEST_NAME
        assert found.getinfo(run_archive.TRACES_NAME).compress_type == zipfile.ZIP_STORED


def test_an_error_while_reading_gives_no_archive() -> None:
    def parts() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise RuntimeError("away")

    given: list[bytes] = []
    with pytest.raises(RuntimeError, match="away"):
        given.extend(run_archive.write_archive([ArchiveMember("one", parts())], dict))
    with pytest.raises(ArchiveDamaged):
        opened(b"".join(given))


@pytest.mark.parametrize(
    "document",
    [
        {"cases": [{"id": "a", "prompt": "p", "target": "b", "scorer": {"kind": "exact"}}]},
        {"cases": [{"id": "a", "prompt": "p", "target": ["b", "c"], "tags": ["t"], "group": "g", "reference": True}]},
        {"cases": [{"id": "a", "prompt": "p", "scorer": {"kind": "regex", "pattern": "x"}}]},
        {"cases": [{"id": "a", "prompt": "p", "target": "", "scorer": {"kind": "json"}}]},
        {"cases": [{"id": "a", "prompt": "p", "target": None, "scorer": {"kind": "json"}}]},
        {"scorer": None, "cases": [{"id": "a", "prompt": "p", "target": "b", "scorer": {"kind": "exact"}}]},
    ],
    ids=["own as the default", "all fields", "no target", "empty target", "null target", "no default"],
)
def test_a_stored_suite_is_the_same_suite_as_lines(document: dict[str, Any]) -> None:
    whole = {"slug": "s", "scorer": {"kind": "exact"}, **document}
    stored = suite.parse_suite(whole)
    assert suite.parse_suite(read_suite_jsonl(suite_text(whole).decode(), slug="s")).digest == stored.digest


# --- damage


def files(data: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(data)) as found:
        return {name: found.read(name) for name in found.namelist()}


def zipped(found: Files, *, is_packed: bool = False) -> bytes:
    """A new zip of the members, as somebody with a text editor would make it; its own checksums are right."""
    whole = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(whole, "w", kind) as made:
        for name, data in found.items():
            made.writestr(name, data)
    return whole.getvalue()


def changed(name: str, change: Callable[[bytes], bytes]) -> bytes:
    found = files(archive())
    return zipped({**found, name: change(found[name])})


@pytest.mark.parametrize("name", [run_archive.SUITE_NAME, run_archive.RESPONSES_NAME, run_archive.TRACES_NAME])
def test_a_changed_member_shows(name: str) -> None:
    run = opened(changed(name, lambda data: data.replace(b"e", b"f", 1) if b"e" in data else data[::-1]))
    with pytest.raises(ArchiveDamaged, match=f"{name} is not what was written"):
        run.check()


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_an_archive_that_was_cut_off_shows(at: float) -> None:
    data = archive()
    with pytest.raises(ArchiveDamaged):
        opened(data[: int(at * len(data))]).check()


@pytest.mark.parametrize("part", [n / 32 for n in range(32)])
def test_a_byte_that_was_changed_anywhere_shows_or_changes_nothing(part: float) -> None:
    """Some bytes of a zip say nothing that is read: dates, versions."""
    data = bytearray(archive())
    data[int(part * len(data))] ^= 0x10
    try:
        run = opened(bytes(data))
        run.check()
    except ArchiveDamaged:
        return
    assert files_read(run) == files_read(opened(archive()))


def files_read(run: RunArchive) -> Any:
    return run.manifest, [each.row for each in run.responses()], run.suite()


def test_a_member_too_many_or_too_few_shows() -> None:
    found = files(archive())
    with pytest.raises(ArchiveDamaged, match="its manifest lists"):
        opened(zipped({**found, "more.txt": b""})).check()
    with pytest.raises(ArchiveDamaged, match="its manifest lists"):
        opened(zipped({name: data for name, data in found.items() if name != run_archive.RESPONSES_NAME})).check()


def test_traces_that_were_compressed_again_are_refused() -> None:
    run = opened(zipped(files(archive()), is_packed=True))
    with pytest.raises(ArchiveDamaged, match="compressed once more"):
        run.trace(next(run.responses()))


def rows_with(change: Callable[[list[dict[str, Any]]], Any]) -> bytes:
    """An archive whose own digests are right, but whose responses are not those of the run."""
    rows = copy.deepcopy(response_rows())
    change(rows)
    return archive(rows)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[0].update(text="another"), "the text of case sky in repeat 1 is another one"),
        (lambda rows: rows[0]["trace"].update(slot=1), "the trace of case sky in repeat 1 is another one"),
        (lambda rows: rows[0]["trace"].update(slot=7), "no trace at slot 7"),
        (lambda rows: rows[0]["trace"].update(offset=10**9), "a place that its traces do not have"),
        (lambda rows: rows[0]["trace"].update(size=20), "a block of traces cannot be read"),
        (lambda rows: rows[1].update(case="sea"), "has no case sea at 1"),
        (lambda rows: rows.reverse(), "out of order"),
        (lambda rows: rows.append(copy.deepcopy(rows[-1])), "out of order"),
        (lambda rows: rows.pop(), "where its manifest says"),
        (lambda rows: rows[0].pop("text"), "its responses cannot be read"),
    ],
)
def test_responses_that_are_not_the_runs_show(change: Callable[..., Any], said: str) -> None:
    with pytest.raises(ArchiveDamaged, match=said):
        opened(rows_with(change)).check()


def test_a_fingerprint_and_a_suite_that_are_not_what_their_digests_say_show() -> None:
    with pytest.raises(ArchiveDamaged, match="fingerprint"):
        opened(archive(stated={**manifest(), "fingerprints": [{"digest": "0" * 64, "manifest": MANIFEST}]})).check()
    with pytest.raises(ArchiveDamaged, match="its suite is not the one"):
        opened(archive(stated={**manifest(), "suite": {"slug": "colours", "digest": "0" * 64}})).check()


def test_a_newer_version_is_refused_with_the_advice_to_update() -> None:
    data = changed(run_archive.MANIFEST_NAME, lambda text: text.replace(b'"version": 4', b'"version": 5', 1))
    with pytest.raises(ArchiveDamaged, match="update Evalboard"):
        opened(data)


@pytest.mark.parametrize("data", [b"", b"PK", b"evalboard", zipped({"a": b"b"}), zipped({"manifest.json": b"[1"})])
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    with pytest.raises(ArchiveDamaged):
        opened(data)
