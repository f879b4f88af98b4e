"""The command starts quickly: what is slow to load is loaded where it is used."""

import subprocess
import sys

import pytest
import typer

from evalboard.cli.main import app
from tests.cli.conftest import ROOT
from tests.cli.test_docs import commands
from tests.recorded import LOGS

LOG = LOGS / "scored_lines" / "sentences.jsonl"
# `worker` has options of its own, which typer has pydantic check before the help of `worker prove`.
COMMANDS = [name for name, _ in commands(typer.main.get_command(app), "evalboard") if name != "evalboard worker prove"]
HELP = [f"{name} --help" for name in COMMANDS]
# Each takes longer to load than a command takes from its start to its help.
SLOW = {"django", "httpx", "jsonschema", "numpy", "pandas", "psycopg", "pydantic", "rich"}
CALL_EACH = """
import sys
from evalboard.cli.main import main
for line in sys.argv[1:]:
    try:
        main(line.split()[1:])
    except SystemExit:
        continue
print("loaded:", *sys.modules)
"""


@pytest.mark.parametrize(
    ("lines", "slow"),
    [
        pytest.param(["evalboard --help", *HELP], SLOW, id="help"),
        # typer has pydantic check what a command is given.
        pytest.param([f"evalboard diff {LOG} {LOG}", "evalboard run"], {"django", "psycopg", "httpx"}, id="diff"),
        pytest.param(["evalboard wait x", "evalboard run", "evalboard walk"], SLOW - {"pydantic"}, id="error"),
    ],
)
def test_nothing_slow_is_loaded_before_it_is_used(lines: list[str], slow: set[str]) -> None:
    call = [sys.executable, "-c", CALL_EACH, *lines]
    ended = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.partition("loaded:")[2].split())
    assert "evalboard.cli.run" in loaded
    assert not loaded & slow
