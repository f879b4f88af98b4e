"""`evalboard trace`: a log of any server's answers, which all other commands read; no server of Evalboard is there."""

import fcntl
import io
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalboard.cli.errors import FAILED, INTERRUPTED, WRONG_USE
from evalboard.cli.main import main
from evalboard.importers import formats
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedRun
from tests.scripted import Received, Reply, ScriptedServer, ok, refusing, status
from tests.scripted_answers import Answerer
from tests.waiting import wait_until

KEY = "sk-live-0123456789abcdef"
BACKEND = {"X-Evalboard-Backend": "gpu-7", "X-Request-Id": "req-1", "Set-Cookie": "session=1"}
CASES = [{"id": f"case-{n}", "prompt": f"Say {n}.", "target": "red"} for n in range(6)]

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command to its end: code, stdout, stderr."""
    monkeypatch.setenv("CI", "true")

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err

    return run


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write(tmp_path / "words.json", {"slug": "words", "scorer": {"kind": "contains"}, "cases": CASES})


def write(path: Path, *values: Any) -> Path:
    path.write_text("\n".join(map(json.dumps, values)))
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read(path: Path) -> LoggedRun:
    name, [run] = formats.read_logs([LogFile(path.name, path)])
    assert name == "chat"
    return run


def at(server: ScriptedServer, path: Path, *more: object) -> Sequence[object]:
    return ("--base-url", server.base_url, "--model", "paint-1b", "-o", path, *more)


def test_a_log_has_all_that_the_server_said_and_two_of_one_server_do_not_differ(
    call: Call, suite: Path, tmp_path: Path
) -> None:
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    with ScriptedServer(ok(headers=BACKEND), answerer=Answerer(is_vllm=True)) as server:
        code, out, _ = call("trace", suite, *at(server, a, "--repeats", 3, "--top-logprobs", 3))
        assert (code, out) == (0, f"{a} holds 18 answers of paint-1b at {server.base_url}: 6 cases, 3 repeats.\n")
        assert call("trace", suite, *at(server, b, "--repeats", 3, "--top-logprobs", 3, "--concurrency", 1))[0] == 0
        sent = {(each.prompt, each.body["seed"]) for each in server.requests[:18]}
        assert sent == {(each.prompt, each.body["seed"]) for each in server.requests[18:]}
        assert len({seed for _, seed in sent}) == 18
    run = read(a)
    assert (run.slug, run.model, run.status, run.n_repeats, run.detail) == ("words", "paint-1b", "finished", 3, "ids")
    assert run.notes == ()
    assert run.sampling["temperature"] == 0
    assert run.sampling["max_tokens"] == 256
    one = next(each for each in run.responses if (each.case_id, each.repeat) == ("case-2", 3))
    assert one.positions is not None
    assert [len(row.alternatives) for row in one.positions] == [3] * 8
    assert one.prompt_token_ids == (1, 2, 3, 4, 5)
    assert (one.finish_reason, one.n_prompt_tokens, one.n_tokens) == ("stop", 5, 8)
    assert (one.served_by.key, one.served_by.system_fingerprint) == ("gpu-7", "fp-a")
    assert one.seed in {seed for _, seed in sent}
    assert one.request_id.startswith("chatcmpl-")
    assert one.answered_at is not None
    assert one.scores["score"].value == float("red" in one.text)
    assert [case.target for case in run.cases] == ["red"] * 6
    assert lines(a)[0]["headers"].keys() == {"x-evalboard-backend", "x-request-id"}
    code, out, _ = call("diff", a, b, "--fail-on", "shift,text,score")
    assert (code, "No case differs." in out) == (0, True)


def test_answers_that_only_a_worker_can_score_say_how_they_get_a_score(call: Call, tmp_path: Path) -> None:
    scorer = {"kind": "command", "name": "folded", "digest": "a" * 64}
    suite = write(tmp_path / "words.json", {"slug": "words", "scorer": scorer, "cases": CASES})
    with ScriptedServer() as server:
        code, out, _ = call("trace", suite, *at(server, tmp_path / "a.jsonl"))
    assert (code, "only a worker runs it" in out, "a.jsonl --suite SUITE." in out) == (0, True, True)
    assert not any("score" in line for line in lines(tmp_path / "a.jsonl"))


def test_lines_without_a_scorer_come_by_standard_input_and_are_named_by_their_prompts(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"prompt": "Say 1.", "topic": "numbers"}, {"id": 7, "messages": [{"role": "user", "content": "Say 2."}]}]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(map(json.dumps, rows))))
    path = tmp_path / "a.jsonl"
    with ScriptedServer() as server:
        assert call("trace", "-", *at(server, path))[0] == 0
    run = read(path)
    assert sorted(case.id[:7] for case in run.cases) == ["7", "prompt-"]
    assert (run.scorers, run.slug.startswith("cases-")) == ((), True)
    code, _, err = call("trace", write(tmp_path / "none.jsonl", {"question": "?"}), *at(server, tmp_path / "b.jsonl"))
    assert (code, "exactly one of prompt, messages and completion must be given" in err) == (WRONG_USE, True)


@pytest.mark.parametrize("api", ["completions", "responses"])
def test_other_apis_give_the_same_answers(call: Call, suite: Path, tmp_path: Path, api: str) -> None:
    path = tmp_path / "a.jsonl"
    with ScriptedServer() as server:
        assert call("trace", suite, *at(server, path, "--api", api))[0] == 0
    run = read(path)
    assert sorted(case.messages[0]["content"] for case in run.cases) == [case["prompt"] for case in CASES]
    assert all(one.positions and one.finish_reason for one in run.responses)


def test_a_log_that_was_broken_off_is_continued(call: Call, suite: Path, tmp_path: Path) -> None:
    def interrupt(received: Received) -> Reply:
        if received.number == 4:
            wait_until(lambda: path.read_bytes().count(b"\n") == 3)
            os.kill(os.getpid(), signal.SIGINT)
            return Reply(how="hang")
        return ok()

    path = tmp_path / "a.jsonl"
    with ScriptedServer(interrupt) as server:
        code, _, err = call("trace", suite, *at(server, path, "--concurrency", 1))
        n = len(lines(path))  # the third may be taken back by an interrupt in the midst of writing it
        assert (code, n in (2, 3)) == (INTERRUPTED, True)
        assert f"holds {n} of 6 answers. The same command goes on with it." in err
        assert (read(path).status, read(path).n_cases) == ("incomplete", 6)
        path.write_bytes(path.read_bytes()[:-20])  # as a machine that lost its power leaves it
        server.script = ok()
        server.requests.clear()
        assert call("trace", suite, *at(server, path, "--concurrency", 1))[0] == 0
        assert [each.prompt for each in server.requests] == [f"Say {number}." for number in range(n - 1, 6)]
        assert call("trace", suite, *at(server, path, "--concurrency", 1, "--repeats", 2))[0] == 0
        code, _, err = call("trace", suite, *at(server, path, "--concurrency", 1, "--repeats", 2))
        assert (code, err) == (0, "It was complete, and no call was made. --again overwrites it.\n")
        assert len(server.requests) == 7 - n + 6
        code, _, err = call("trace", suite, *at(server, path, "--concurrency", 1, "--temperature", 1, "--seed", 1))
        assert code == WRONG_USE
        assert "other settings: seed (42, now 1) and temperature (0.0, now 1.0)" in err
        assert call("trace", suite, *at(server, path, "--temperature", 1, "--again"))[0] == 0
    assert [line["settings"]["temperature"] for line in lines(path)] == [1.0] * 6
    assert call("diff", path, path, "--fail-on", "text")[0] == 0


def test_a_file_that_is_no_trace_is_left_alone(call: Call, suite: Path, tmp_path: Path) -> None:
    before = suite.read_bytes()
    with ScriptedServer() as server:
        code, _, err = call("trace", suite, *at(server, suite, "--again"))
        assert (code, "words.json holds the prompts" in err) == (WRONG_USE, True)
        code, _, err = call("trace", write(tmp_path / "p.jsonl", {"prompt": "Hello"}), *at(server, suite))
    assert (code, "was not written by this command (line 1)" in err) == (WRONG_USE, True)
    assert suite.read_bytes() == before


def test_a_disk_that_fills_up_leaves_whole_lines(call: Call, suite: Path, tmp_path: Path) -> None:
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    with ScriptedServer() as server:
        assert call("trace", suite, *at(server, a))[0] == 0
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (a.stat().st_size // 2, hard))
        try:
            code, _, err = call("trace", suite, *at(server, b))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert (code, f"{b} cannot be written: File too large." in err) == (FAILED, True)
        assert 0 < len(lines(b)) < 6
        assert b.read_bytes().endswith(b"\n")
        assert call("trace", suite, *at(server, Path("/dev/full")))[0] == WRONG_USE
        with b.open("ab") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            code, _, err = call("trace", suite, *at(server, b))
    assert (code, f"Another command is writing {b}." in err) == (FAILED, True)


def test_a_failed_call_is_a_line_with_its_reason_and_is_made_again(call: Call, suite: Path, tmp_path: Path) -> None:
    replies = {"Say 2.": status(422, words="too odd"), "Say 3.": status(400, words="flagged", code="content_filter")}
    path = tmp_path / "a.jsonl"
    with ScriptedServer(lambda received: replies.get(received.prompt, ok())) as server:
        code, out, _ = call("trace", suite, *at(server, path))
        assert code == FAILED
        assert "holds 4 of 6 answers. 2 calls failed; each has a line with the reason. The first: " in out
        run = read(path)
        assert run.status == "incomplete"
        missing = {one.case_id: one for one in run.responses if one.error}
        assert "too odd" in missing["case-2"].error
        assert missing["case-3"].is_prompt_filtered
        server.script = ok()
        server.requests.clear()
        assert call("trace", suite, *at(server, path))[0] == 0
        assert {each.prompt for each in server.requests} == replies.keys()
    assert read(path).status == "finished"


def test_what_a_server_refuses_is_left_out_and_the_log_says_so(call: Call, suite: Path, tmp_path: Path) -> None:
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    with ScriptedServer(refusing("logprobs", "temperature")) as server:
        assert "goes without" not in call("trace", suite, *at(server, a))[1]
        code, out, _ = call("trace", suite, *at(server, b, "--json"))
    assert (code, json.loads(out)["left_out"]) == (0, {"temperature": 6, "logprobs": 6})
    note = "The server does not take these settings, which were not sent: temperature and logprobs."
    assert note in read(a).notes
    code, _, err = call("diff", a, b, "--fail-on", "shift")
    assert (code, "shift" in err) == (FAILED, True)  # nothing to judge by is no green


@pytest.mark.server  # waits out pauses of seconds
def test_a_server_that_answers_no_call_leaves_no_file(call: Call, suite: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with ScriptedServer() as server:
        gone = at(server, path, "--give-up-after", 0, "--concurrency", 1)
    code, _, err = call("trace", suite, *gone)
    assert (code, "No call was answered." in err, path.exists()) == (FAILED, True, False)
    with ScriptedServer(status(401, words="Who are you?")) as server:
        code, _, err = call("trace", suite, *at(server, path))
    assert (code, "It answered 401" in err, path.exists()) == (FAILED, True, False)


def test_a_server_whose_answers_cannot_be_read_leaves_the_reason(call: Call, suite: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with ScriptedServer(Reply(b"<html>")) as server:
        code, out, _ = call("trace", suite, *at(server, path))
    assert (code, len(lines(path))) == (FAILED, 6)
    assert "holds 0 of 6 answers. 6 calls failed; each has a line with the reason. The first: The answer is no" in out


@pytest.mark.server  # waits out pauses of seconds
def test_a_server_that_stops_answering_leaves_a_reason_for_every_call(call: Call, suite: Path, tmp_path: Path) -> None:
    def die(received: Received) -> Reply:
        return ok() if received.number < 3 else Reply(how="reset")

    with ScriptedServer(die) as server:
        path = tmp_path / "a.jsonl"
        code, out, _ = call("trace", suite, *at(server, path, "--concurrency", 1, "--give-up-after", 1))
    assert (code, "holds 2 of 6 answers. 4 calls failed" in out) == (FAILED, True)
    assert [line["case_id"] for line in lines(path)] == [case["id"] for case in CASES]
    assert len(read(path).responses) == 6


def test_a_key_is_in_no_file_however_the_server_writes_it(
    call: Call, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_API_KEY", KEY)
    words = [KEY[:9], KEY[9:]]
    tokens = [{"token": word, "bytes": list(word.encode()), "logprob": -0.1, "top_logprobs": []} for word in words]
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"content": [{"type": "text", "text": word} for word in words]},
        "logprobs": {"content": tokens},
    }
    path = tmp_path / "a.jsonl"
    with ScriptedServer(ok(choices=[choice], headers={"X-Request-Id": f"for {KEY}"})) as server:
        assert call("trace", suite, *at(server, path, "--key-env", "THEIR_API_KEY"))[0] == 0
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert {(one.text, one.positions) for one in read(path).responses} == {("***", None)}
        assert not any(part in path.read_text() for part in (KEY, *words))
        server.script = status(401, words=f"The key {KEY} has expired.")
        code, _, err = call("trace", suite, *at(server, path, "--key-env", "THEIR_API_KEY", "--again"))
        assert (code, KEY in err) == (FAILED, False)
        for wrong in (["--header", f"Authorization: Bearer {KEY}"], ["--key-env", KEY]):
            code, _, err = call("trace", suite, *at(server, tmp_path / "b.jsonl", *wrong))
            assert (code, KEY in err) == (WRONG_USE, False)
