"""docs/formats.md says every member, field and column."""

import io
import re
from pathlib import Path

import pytest

from evalboard.core.archive import RunArchive, run_archive
from runs import exports
from tests import build

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text()


def rows(heading: str) -> set[str]:
    """The names in the first column of the table after a heading."""
    section = PAGE.split(f"{heading}", 1)[1].split("\n#", 1)[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.django_db(transaction=True)
def test_every_member_and_field_of_an_archive_is_documented() -> None:
    run = build.finished_run(("blue", None, "red"))
    archive = RunArchive(io.BytesIO(b"".join(exports.run_archive(run.pk))))
    assert rows("### The manifest\n") == set(archive.manifest)
    names = {re.sub("[0-9a-f]{64}", "{digest}", member["name"]) for member in archive.manifest["members"]}
    assert rows("## The archive, version") == names | {run_archive.MANIFEST_NAME}
    for response in archive.responses():
        assert rows("### A response\n") == set(response.row)
        assert not {name for name in response.row["provenance"] if f"`{name}`" not in PAGE}
        assert not {name for name in response.row["trace"] or {} if f'"{name}"' not in PAGE}


def test_every_column_is_documented() -> None:
    assert rows("## The tables\n") == set(exports.CASE_NAMES)


def test_the_version_is_the_codes() -> None:
    assert f"## The archive, version {run_archive.ARCHIVE_VERSION}\n" in PAGE
    assert f"`{run_archive.ARCHIVE_FORMAT}`, {run_archive.ARCHIVE_VERSION}" in PAGE


@pytest.mark.django_db(transaction=True)
def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run = build.finished_run(("blue", None, "red"))
    (tmp_path / "run-12.zip").write_bytes(b"".join(exports.run_archive(run.pk)))
    monkeypatch.chdir(tmp_path)
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "export-format.md", "exec"), {})  # noqa: S102  # this project's own page
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [["1", "sky"], ["1", "a/b"]]
