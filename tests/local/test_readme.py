"""A machine without an engine: what `make up ENGINE=none` brings, and the README's way with an API key alone.

The README's commands are cut out of the page. All tests share one installation, in any order.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from evalboard.local.children import wait_until
from tests.core.test_suite_sample import written_target
from tests.importers import batch_log
from tests.local.test_lifecycle import Machine
from tests.local.test_up import free_port
from tests.processes import is_gone
from tests.scripted import Received, Reply, ScriptedServer, as_gpt5, ok, status
from tests.scripted_answers import Answerer

ROOT = Path(__file__).resolve().parents[2]
SECTION = (
    (ROOT / "README.md").read_text().partition("## Judge two hosted models with an API key\n")[2].partition("\n## ")[0]
)
START, JUDGE, REASONING, OWN_SERVER = re.findall(r"^```\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
[KEY_NAME] = re.findall(r"^export (\w+)=", START, re.MULTILINE)
[SETTINGS] = re.findall(r"^make up (.+)", START, re.MULTILINE)
HOSTED, NEAR = "https://api.openai.com/v1", "http://localhost:8000/v1"
KEY = "sk-played-by-the-readme"
A_CALL_SECONDS = 0.2
PATIENCE = 300.0
WORSE = ("word-001", "word-002", "word-003", "json-001", "number-001", "number-002", "choice-001")
SUITE = json.loads((ROOT / "runs" / "samples" / "sample.json").read_text())


def model(*, wrong: Collection[str] = ()) -> Answerer:
    """A hosted model that knows every case but those that are named, and does not say what serves it."""
    known = {
        case["messages"][-1]["content"]: written_target(case.get("scorer", SUITE["scorer"])["kind"], case["target"])
        for case in SUITE["cases"]
        if case["id"] not in wrong
    }
    return Answerer(fingerprint=None, known=known)


def with_the_key(received: Received) -> Reply:
    if received.headers.get("authorization") != f"Bearer {KEY}":
        return status(401, words="Incorrect API key provided.")
    return ok(seconds=A_CALL_SECONDS)


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody in the folder where `make up` runs, with a terminal."""

    machine: Machine
    link: str
    folder: Path

    def types(self, commands: str) -> "subprocess.CompletedProcess[str]":
        """Play commands; the status is the last one's, or that of the first that failed before it."""
        return subprocess.run(
            ["bash", "-ec", commands],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "EVALBOARD_DATA_DIR": str(self.machine.data_dir)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def opens(self, address: str) -> str:
        """Return a page as the link that `make up` printed lets it be seen."""
        with httpx.Client(timeout=30, follow_redirects=True) as browser:
            browser.get(self.link).raise_for_status()
            form = dict(parse_qsl(urlsplit(self.link).query)) | {
                "csrfmiddlewaretoken": browser.cookies["evalboard_csrf"]
            }
            browser.post(self.link, data=form, headers={"Referer": self.link}).raise_for_status()
            return browser.get(address).raise_for_status().text

    def reads(self, path: str) -> list[dict[str, Any]]:
        """Return the rows of a list of REST."""
        headers = {"Authorization": f"Bearer {(self.machine.data_dir / 'token').read_text().strip()}"}
        answer = httpx.get(f"{self.machine.url}/api/v1/{path}/", headers=headers, timeout=60)
        return list(answer.raise_for_status().json()["results"])


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    tmp_path = tmp_path_factory.mktemp("home")
    command = tmp_path / ".venv" / "bin" / "evalboard"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m evalboard "$@"\n')
    command.chmod(0o755)
    settings = dict(each.split("=", 1) for each in SETTINGS.split())
    up = Machine(tmp_path / "data", port=free_port(), engine={**settings, KEY_NAME: KEY})
    try:
        reader = Reader(up, up.wait_for(lambda said: "url" in said)["url"], tmp_path)
        up.wait_for(
            lambda said: "No engine is started here (ENGINE=none)" in str(said) and "no sample run" in str(said)
        )
        yield reader
        family = up.family()
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(60) == 0
        assert wait_until(lambda: all(map(is_gone, family)), 60), "Ctrl-C leaves nothing"
    finally:
        if up.process.poll() is None:
            up.process.terminate()
            up.process.wait(60)
        if up.process.stdout:
            up.process.stdout.close()


def of_the_tour(reader: Reader) -> tuple[list[Any], ...]:
    """Return what there is of the tour: names of endpoints and suites, runs, verdicts."""
    endpoints, suites = ([row["slug"] for row in reader.reads(path)] for path in ("endpoints", "suites"))
    runs = [row["id"] for row in reader.reads("runs") if row["labels"] == {"sample": "tour"}]
    verdicts = [row["verdict"] for row in reader.reads("releases") if row["suites"] == ["sample-tour"]]
    return [name for name in endpoints if name == "sample-tour"], suites, runs, verdicts


def test_a_machine_without_an_engine_is_useful_with_endpoints_and_imports(reader: Reader) -> None:
    steps = {row["step"] for row in reader.machine.said if "step" in row}
    assert steps > {"database tables", "static files", "page", "sample suite and profiles", "sample tour"}
    endpoints, suites, runs, verdicts = of_the_tour(reader)
    assert (endpoints, bool(runs)) == (["sample-tour"], True)
    assert {"sample", "sample-tour"} <= set(suites)
    assert verdicts == ["not_comparable", "ship", "no_ship", "inconclusive"]
    assert reader.types(".venv/bin/evalboard tour --remove").stdout == "The sample of the tour is gone.\n"
    endpoints, _, runs, verdicts = of_the_tour(reader)
    assert (endpoints, runs, verdicts) == ([], [], [])
    assert wait_until(lambda: bool(reader.reads("workers")), PATIENCE)
    where = "--base-url https://api.example.com/v1 --model gpt-mini --key-env EXAMPLE_API_KEY"
    added = reader.types(f".venv/bin/evalboard endpoint add mini {where}")
    assert added.returncode == 0, added.stderr
    assert "mini" in [row["slug"] for row in reader.reads("endpoints")]
    (reader.folder / "output.jsonl").write_bytes(batch_log.output({"sea": "green"}))
    n_runs = len(reader.reads("runs"))
    read = reader.types(".venv/bin/evalboard import output.jsonl")
    assert read.returncode == 0, read.stderr
    assert len(reader.reads("runs")) == n_runs + 1
    assert_private(reader.machine.data_dir)


def assert_private(folder: Path) -> None:
    """Check that other accounts may not read what a folder keeps, and that no file of it has a sign-in link."""
    paths = [folder, *folder.rglob("*")]
    assert [path for path in paths if path.lstat().st_mode & 0o077 and not path.is_symlink()] == []
    files = [path for path in paths if path.is_file()]
    assert {folder / "logs" / "web.log", folder / "secret"} <= set(files)
    assert [path for path in files if b"sesame=" in path.read_bytes()] == []


def judge(small: ScriptedServer, large: ScriptedServer, commands: str = JUDGE) -> str:
    """Return the README's commands with these two servers in place of the hosted one."""
    assert commands.count(HOSTED) == 2
    return commands.replace(HOSTED, small.base_url, 1).replace(HOSTED, large.base_url, 1)


@pytest.mark.nightly
def test_two_hosted_models_are_judged_by_the_commands_of_the_readme(reader: Reader) -> None:
    with (
        ScriptedServer(with_the_key, answerer=model()) as small,
        ScriptedServer(with_the_key, answerer=model()) as large,
    ):
        started = time.monotonic()
        done = reader.types(judge(small, large))
        seconds = time.monotonic() - started
        print(f"{len(small.requests)} and {len(large.requests)} calls of {A_CALL_SECONDS} s, {seconds:.0f} s in all")
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert re.search(r"^logprobs +honoured", done.stdout, re.MULTILINE)
        assert re.search(r"^Release \d+: ship\.", done.stdout, re.MULTILINE)
        assert seconds < 600
        [page] = re.findall(r"http://\S+/releases/\d+/", done.stdout)
        shown = reader.opens(page)
        assert "Ship" in shown
        assert "assumed" in shown


@pytest.mark.nightly
def test_a_model_that_knows_less_ends_the_readme_by_another_exit_code(reader: Reader) -> None:
    with ScriptedServer(answerer=model(wrong=["word-001"])) as small, ScriptedServer(answerer=model()) as large:
        commands = judge(small, large).replace("small", "smaller").replace("large", "larger")
        assert reader.types(commands).returncode == 2
        small.answerer = model(wrong=["word-001", "json-001", "number-001"])
        assert reader.types(commands.rstrip().splitlines()[-1]).returncode == 1


def thinker(*, wrong: Collection[str] = ()) -> Answerer:
    """A hosted model that thinks before each answer, and samples whatever is asked."""
    known = model(wrong=wrong).known
    return Answerer(fingerprint=None, known=known, n_thinking=64, honours={"max_tokens", "temperature"})


@pytest.mark.nightly
@pytest.mark.parametrize(("wrong", "code", "word"), [((), 0, "ship"), (WORSE, 1, "no-ship")], ids=["same", "worse"])
def test_a_reasoning_model_is_judged_by_the_commands_of_the_readme(
    reader: Reader, wrong: Collection[str], code: int, word: str
) -> None:
    """It refuses a temperature, logprobs and max_tokens, and thinks for longer than the suite lets it answer."""
    with (
        ScriptedServer(as_gpt5, answerer=thinker(wrong=wrong)) as mini,
        ScriptedServer(as_gpt5, answerer=thinker()) as full,
    ):
        commands = judge(mini, full, REASONING)
        for name in ("mini", "full"):
            commands = re.sub(rf"\b(add|endpoint|with) {name}\b", rf"\1 {name}-{code}", commands)
        assert wait_until(lambda: bool(reader.reads("workers")), PATIENCE)
        done = reader.types(commands)
        assert done.returncode == code, (done.stdout, done.stderr)
        assert re.search(rf"^Release \d+: {word}\.", done.stdout, re.MULTILINE)
        for name in ("temperature", "logprobs"):
            assert re.search(rf"^{name} +refused ", done.stdout, re.MULTILINE)
        assert f"evalboard run sample --endpoint mini-{code} --profile hosted --wait" in done.stdout
        assert "It does not take temperature and logprobs: use --profile hosted" in done.stdout
        assert re.search(r"^max_tokens +honoured ", done.stdout, re.MULTILINE)
        refused = [call for call in full.requests if as_gpt5(call).status != 200]
        assert len(refused) < 26, "only the check asks for what is refused"


@pytest.mark.nightly
def test_a_server_of_your_own_is_scored_by_two_commands(reader: Reader) -> None:
    assert len(OWN_SERVER.strip().splitlines()) == 2
    with ScriptedServer(answerer=model(wrong=["word-001", "json-001", "number-001"])) as server:
        done = reader.types(OWN_SERVER.replace(NEAR, server.base_url))
        assert (done.returncode, done.stderr.count("Run ")) == (0, 1), (done.stdout, done.stderr)
        assert "90.0" in done.stdout
