"""Hints name the command as the reader can type it."""

import sys
from pathlib import Path

import pytest
import typer

from evalboard.cli.main import app
from evalboard.client.program import COMMANDS, as_typed, program


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `evalboard` of a virtualenv in the folder where the reader is."""
    made = tmp_path / ".venv" / "bin" / "evalboard"
    made.parent.mkdir(parents=True)
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(made.with_name("python")))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return made


def test_a_virtualenv_that_is_not_active_is_named_by_its_path(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert program() == ".venv/bin/evalboard"
    monkeypatch.chdir(script.parent)
    assert program() == str(script)  # a name without a folder would be looked for on PATH


def test_on_path_the_name_is_enough_if_it_is_the_same_one(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "evalboard"
    other = script.parents[2] / "evalboard"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert program() == ".venv/bin/evalboard"


def test_only_what_is_typed_is_rewritten(script: Path) -> None:
    hint = "Come back with: evalboard wait 12, or `evalboard suite push`; see /opt/evalboard run and evalboard itself."
    typed = as_typed(hint)
    assert typed.startswith("Come back with: .venv/bin/evalboard wait 12, or `.venv/bin/evalboard suite push`")
    assert typed.endswith("see /opt/evalboard run and evalboard itself.")
    assert as_typed(typed) == typed


def test_every_command_is_known() -> None:
    assert set(COMMANDS) == set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
