"""The files that people paste into their CI: quoted as they are, calling commands that there are, naming no host."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import typer
from ruamel.yaml import YAML

from evalboard.cli.main import app
from tests.recorded import LOGS

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "docs" / "ci"
PAGE = (ROOT / "docs" / "ci.md").read_text()
GITHUB, GITLAB, GITHUB_DIFF = "github-actions.yml", "gitlab-ci.yml", "github-diff.yml"
MARKER = "<!-- evalboard: colours -->"


def read(name: str) -> Any:
    return YAML(typ="safe").load((FILES / name).read_text())


def scripts(name: str) -> list[str]:
    """Every script of a file."""
    if name.endswith(".sh"):
        return [(FILES / name).read_text()]
    if name.startswith("github-"):
        steps = [step for job in read(name)["jobs"].values() for step in job["steps"]]
        return [step["run"] for step in steps if "run" in step]
    jobs = [job for job in read(name).values() if isinstance(job, dict)]
    return [line for job in jobs for part in ("before_script", "script", "after_script") for line in job.get(part, [])]


@pytest.mark.parametrize("file", sorted(FILES.iterdir()), ids=lambda file: file.name)
def test_the_page_quotes_each_file_as_it_is(file: Path) -> None:
    kind = "sh" if file.suffix == ".sh" else "yaml"
    assert f"```{kind}\n{file.read_text()}```\n" in PAGE


@pytest.mark.parametrize("file", sorted(FILES.iterdir()), ids=lambda file: file.name)
def test_every_command_and_option_is_one_that_there_is(file: Path) -> None:
    known = typer.main.get_command(app)
    joined = "\n".join(scripts(file.name)).replace("\\\n", " ")
    calls = [
        shlex.split(found.rstrip("; }"))
        for found in re.findall(
            r"^[^#\n]*?\bevalboard ((?:run|wait|suite|release|baseline|trace|diff) .*)$", joined, re.M
        )
    ]
    assert calls
    for words in calls:
        command: Any = known
        for word in words:
            inner = getattr(command, "commands", {}).get(word)
            if inner is None:
                break
            command = inner
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, words


@pytest.mark.parametrize("name", [GITHUB, GITLAB])
def test_one_lane_leans_and_the_other_decides(name: str) -> None:
    calls = [text for text in scripts(name) if "evalboard run" in text]
    assert [("--profile fast --repeats 1" in text, "--profile pinned --repeats 5" in text) for text in calls] == [
        (True, False),
        (False, True),
    ]
    assert all("--wait --against current" in text for text in calls)


@pytest.mark.parametrize("file", sorted(FILES.iterdir()), ids=lambda file: file.name)
def test_no_host_is_named(file: Path) -> None:
    assert not re.findall(r"https?://(?!127\.0\.0\.1)|\b[\w-]+\.(?:com|io|org|net|dev)\b", file.read_text())


def test_a_pull_request_of_a_stranger_sees_no_secret() -> None:
    lane = read(GITHUB)["jobs"]["pull-request"]
    assert "head.repo.full_name == github.repository" in lane["if"]
    for name in (GITHUB, GITHUB_DIFF):
        assert "pull_request_target" not in (FILES / name).read_text()
        assert not [text for text in scripts(name) if "${{" in text], "a branch's name would be run as code"


def test_a_comparison_of_two_logs_is_posted_as_a_check(tmp_path: Path) -> None:
    for side, log in (("main", "fp32_baseline.eval"), ("log", "bf16_candidate.eval")):
        (tmp_path / side).mkdir()
        shutil.copy(LOGS / "inspect" / log, tmp_path / side)
    (bin_folder := tmp_path / "bin").mkdir()
    for name, script in (
        ("evalboard", f'exec {sys.executable} -m evalboard "$@"'),
        ("gh", 'echo "$@" > call.txt; cat > body.json'),
    ):
        (bin_folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (bin_folder / name).chmod(0o755)
    variables = {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "FAIL_ON": read(GITHUB_DIFF)["env"]["FAIL_ON"] + ",flip",
        "GITHUB_STEP_SUMMARY": "summary.md",
        "GITHUB_OUTPUT": "output.txt",
        "GITHUB_REPOSITORY": "acme/model",
        "CODE": "5",
        "SHA": "1f3a",
    }
    steps = {step["name"]: step for step in read(GITHUB_DIFF)["jobs"]["diff"]["steps"] if "name" in step}
    for name in ("Compare", "Post the check"):
        bash = ["bash", "-e", "-c", steps[name]["run"]]
        subprocess.run(bash, cwd=tmp_path, env=variables, check=True, capture_output=True)
    assert (tmp_path / "output.txt").read_text() == "code=5\n"
    assert (tmp_path / "report.html").stat().st_size > 10_000
    body = json.loads((tmp_path / "body.json").read_text())
    assert (body["conclusion"], body["head_sha"], body["output"]["title"]) == ("failure", "1f3a", "A limit is reached")
    assert body["output"]["summary"] == (tmp_path / "summary.md").read_text()
    assert "**flip&#58; 9 pairs chose another token**" in body["output"]["summary"]
    assert "repos/acme/model/check-runs" in (tmp_path / "call.txt").read_text()


class GitLab(ThreadingHTTPServer):
    """What of GitLab's API the job calls: notes in pages, newest last, written only with the right token."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), NotesApi)
        self.notes: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/api/v4"

    def add(self, body: str, author: int) -> None:
        self.notes.append({"id": len(self.notes) + 100, "body": body, "author": {"id": author}})


class NotesApi(BaseHTTPRequestHandler):
    server: GitLab

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/api/v4/user":
            return self._answer({"id": 7})
        asked = parse_qs(address.query)
        page, size = int(asked["page"][0]), int(asked["per_page"][0])
        assert address.path == "/api/v4/projects/3/merge_requests/12/notes"
        shown = self.server.notes[(page - 1) * size : page * size]
        return self._answer(shown, str(page + 1) if page * size < len(self.server.notes) else "")

    def do_POST(self) -> None:
        self.server.add(self._body(), author=7)
        self._answer(self.server.notes[-1])

    def do_PUT(self) -> None:
        [note] = [each for each in self.server.notes if self.path.endswith(f"/notes/{each['id']}")]
        note["body"] = self._body()
        self._answer(note)

    def _body(self) -> str:
        assert self.headers["PRIVATE-TOKEN"] == "notes"
        found: str = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        return found

    def _answer(self, content: Any, next_page: str = "") -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("X-Next-Page", next_page)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def gitlab() -> Iterator[GitLab]:
    server = GitLab()
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield server
    server.shutdown()
    serving.join()
    server.server_close()


def test_the_note_on_a_merge_request_replaces_our_own_and_no_others(gitlab: GitLab, tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    [script] = read(GITLAB)["lean on a merge request"]["after_script"]
    variables = {"CI_API_V4_URL": gitlab.url, "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "12"}
    variables |= {"GITLAB_NOTES_TOKEN": "notes", "PATH": f"{tmp_path}:/usr/bin:/bin"}

    def say(text: str) -> None:
        (tmp_path / "comment.md").write_text(text)
        subprocess.run(["sh", "-eu", "-c", script], env=variables, cwd=tmp_path, check=True, timeout=60)

    for number in range(120):  # more than one page
        gitlab.add(f"note {number}", author=1)
    gitlab.add(f"{MARKER}\nby somebody else", author=1)
    say("")
    assert len(gitlab.notes) == 121, "nothing to say"
    say(f"{MARKER}\nleaning ship")
    say("<!-- evalboard: shapes -->\nanother suite")
    say(f"{MARKER}\nleaning no-ship")
    assert [note["body"] for note in gitlab.notes[120:]] == [
        f"{MARKER}\nby somebody else",
        f"{MARKER}\nleaning no-ship",
        "<!-- evalboard: shapes -->\nanother suite",
    ]
