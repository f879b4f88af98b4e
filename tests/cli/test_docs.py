"""docs/cli.md says every command, option and exit code; and every command on any page is one that runs."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from evalboard.cli import errors
from evalboard.cli.main import app, main
from evalboard.contract.probe import KINDS
from evalboard.core.probes import complete_parameters
from evalboard.wording import probe_states

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), *(ROOT / name / "README.md" for name in ("", "bench", "tests/rig"))]
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^(?:\.venv/bin/)?evalboard (.+?)(?: (?:\||>>?) .+)?$", re.MULTILINE)  # without pipes and files
NAMED = re.compile(r"`(?:\.venv/bin/)?evalboard ([^`]+?)(?: \| [^`]+)?`")
PAGE = (DOCS / "cli.md").read_text()
PROBES = (DOCS / "probes.md").read_text()
COMMON = {"--json", "--help"}  # said once, for every command


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    if not inner or command.invoke_without_command:  # `evalboard worker` works as well as `evalboard worker prove`
        yield name, command
    for word, found in inner.items():
        yield from commands(found, f"{name} {word}")


EVALBOARD: Any = typer.main.get_command(app)
COMMANDS = list(commands(EVALBOARD, "evalboard"))


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_every_command_is_documented(name: str, command: Any) -> None:
    assert any(line.startswith(f"## `{name}") for line in PAGE.splitlines())
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert "--json" in options
    if name != "evalboard up":  # docs/install.md
        assert not {option for option in options - COMMON if option not in PAGE}


def written(*, pattern: re.Pattern[str], fenced: bool) -> list[tuple[str, str]]:
    """(page, command line) of every page: of its blocks of code, or of what stands between backticks in its text."""
    rows = []
    for page in PAGES:
        text = page.read_text().replace("\\\n", "")
        parts = FENCE.findall(text) if fenced else [FENCE.sub("", text)]
        rows += [(page.name, " ".join(line.split())) for part in parts for line in pattern.findall(part)]
    return rows


def find_problem(line: str) -> str | None:
    """Read a command line as the real one is read, and run nothing; return what is wrong with it."""
    command = EVALBOARD
    words = [word for word in shlex.split(line, comments=True) if word != "--help"]
    try:
        while hasattr(command, "commands"):
            if command.invoke_without_command and words[:1] and words[0] not in command.commands:
                break
            command = command.commands[words.pop(0)]
        command.make_context(line, words)
    except Exception as error:  # noqa: BLE001  # click's errors have no public base
        return f"{type(error).__name__}: {error}"
    return None


def test_every_command_in_a_block_of_code_would_run() -> None:
    """tests/local/test_readme.py runs those of the README, some of them each night only."""
    lines = written(pattern=TYPED, fenced=True)
    assert len(lines) > 80
    assert not {each: problem for each in lines if (problem := find_problem(each[1]))}


def test_every_command_in_a_sentence_has_these_options() -> None:
    """It may leave out what a command needs: `evalboard wait` names the command."""
    left_out = re.compile("MissingParameter|IndexError|.* requires an argument")
    problems = {each: find_problem(each[1]) for each in written(pattern=NAMED, fenced=False)}
    assert len(problems) > 60
    assert not {each: problem for each, problem in problems.items() if problem and not left_out.match(problem)}


def test_the_comparison_of_the_readme_says_what_answered(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for page, line in written(pattern=TYPED, fenced=True) if page == "README.md" and "diff " in line]
    outputs = []
    for line in lines:
        with pytest.raises(SystemExit, match="0"):
            main(shlex.split(line))
        outputs.append(capsys.readouterr().out)
    assert f"```\n{outputs[0]}```\n" in (ROOT / "README.md").read_text()
    assert "Another backend answered" in outputs[1]


@pytest.mark.parametrize("line", ["no-such-command", "run sample --no-such-option", "compare 1", "run sample --wait=3"])
def test_a_command_that_would_not_run_is_noticed(line: str) -> None:
    assert find_problem(line)


def test_the_list_of_commands_says_what_each_does_in_a_whole_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    words = " ".join(capsys.readouterr().out.split())
    for name, command in EVALBOARD.commands.items():
        assert f"{name} {command.help.partition('. ')[0].partition(chr(10) * 2)[0]}" in words, name


def test_the_commands_of_a_server_are_listed_apart(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    client, _, server = capsys.readouterr().out.partition("\nCommands of a server, which need more than")
    words = ["up", "signin", "tour", "worker", "scheduler"]
    assert [word for word in words if f"\n  {word} " in server and f"\n  {word} " not in client] == words
    assert "\n  wait " in client


EXIT_CODES = {value for name, value in vars(errors).items() if name.isupper()}


def test_the_table_has_every_exit_code_and_no_other() -> None:
    table = PAGE.partition("## Exit codes")[2]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == {0, *EXIT_CODES}


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_the_table_of_exit_codes_names_every_command(name: str, command: Any) -> None:
    table = PAGE.partition("## Exit codes")[2]
    assert f"`{name.removeprefix('evalboard ')}`" in table


@pytest.mark.parametrize("kind", KINDS)
def test_every_state_and_parameter_of_probes_is_documented(kind: str) -> None:
    named = {*probe_states.STATES[kind], *complete_parameters(kind, {})}
    assert not {name for name in named if f"`{name}`" not in PROBES}
