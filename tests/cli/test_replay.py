"""`evalboard replay`, against a server that is really there; the worker's part is played by the services."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.models import ReplayRecord, RunRecord
from runs.replays import claim_replay, finish_replay, record_result
from tests import build
from tests.cli.conftest import Step, ctrl_c
from tests.nightly import few
from tests.runs.test_replays import result

Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def run(transactional_db: None) -> RunRecord:
    return build.finished_run()


def finish(*errors: str) -> ReplayRecord:
    """Decode the replay that waits as a worker would; `errors` are the engine's words for the first variants."""
    lease = claim_replay(worker=build.worker("replayer"))
    assert lease is not None
    replay = ReplayRecord.objects.get(pk=lease.id)
    for number, variant in enumerate(replay.variants):
        words = errors[number] if number < len(errors) else ""
        record_result(lease=lease, result=result(variant, error=words, has_response=not replay.is_production))
    finish_replay(lease=lease)
    return replay


def finishing(n_variants: int, *errors: str) -> list[Step]:
    """The replay is decoded once the command has said that it waits."""
    return [(f": queued, 0 of {n_variants} variants\n", lambda: finish(*errors))]


def test_a_replay_is_asked_for_followed_and_read(evalboard: Call, run: RunRecord) -> None:
    done = evalboard("replay", str(run.pk), "a/b c", "--repeat", "2", meanwhile=finishing(1))
    replay = ReplayRecord.objects.get()
    assert (done.returncode, done.stderr) == (0, f"replay {replay.pk}: queued, 0 of 1 variants\n")
    title, sentence = done.stdout.splitlines()
    assert title.startswith(f"Replay {replay.pk} of case a/b c, run {run.pk} repeat 2: finished. http://")
    assert sentence == "Identical: every token and logprob equals the run’s response to the bit."
    assert replay.created_by is not None


@pytest.mark.nightly
def test_a_sweep_prints_a_line_for_each_variant_and_what_they_say(evalboard: Call, run: RunRecord) -> None:
    asked = ("replay", str(run.pk), "sky", "--batch-sizes", "1, 2,16", "--dtype", "float16")
    done = evalboard(*asked, meanwhile=finishing(3, "no kernel"))
    assert done.returncode == 0
    assert ReplayRecord.objects.get().variants == [{"dtype": "float16", "batch_size": size} for size in (1, 2, 16)]
    assert done.stdout.splitlines()[1:] == [
        "  float16, batch size 1   no answer: engine_error: no kernel",
        "  float16, batch size 2   identical",
        "  float16, batch size 16  identical",
        "float16: At batch size 2: Identical: every token and logprob equals the run’s response to the bit.",
        "float16: Identical at every batch size from 2 to 16.",
        "float16: Each batch size is compared with 2.",
        "float16: There is no answer at batch size 1: engine_error: no kernel",
    ]


def test_neighbours_are_sent_along(evalboard: Call, run: RunRecord) -> None:
    asked = ("replay", str(run.pk), "sky", "--batch-sizes", "2", "--neighbours", "2")
    evalboard(*asked, meanwhile=[(": queued, 0 of 2 variants\n", ctrl_c)])
    assert ReplayRecord.objects.get().variants == [{"batch_size": 2}, {"batch_size": 2, "neighbours": 1}]


def test_a_replay_that_gave_no_answer_is_4_and_says_why(evalboard: Call, run: RunRecord) -> None:
    done = evalboard("replay", str(run.pk), "sky", meanwhile=finishing(1, "The engine was killed\nby its prompt."))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (4, "The engine was killed by its prompt.")
    assert ": failed. http://" in done.stdout


@pytest.mark.nightly
def test_json_is_the_replay_and_nothing_else(evalboard: Call, run: RunRecord) -> None:
    done = evalboard("replay", str(run.pk), "sky", "--json", meanwhile=finishing(1))
    replay = ReplayRecord.objects.get()
    body: dict[str, Any] = json.loads(done.stdout)
    assert (body["id"], body["status"], len(body["results"])) == (str(replay.pk), "finished", 1)
    again = evalboard("replay", "--show", str(replay.pk), "--json")
    assert (again.returncode, json.loads(again.stdout), again.stderr) == (0, body, "")


@pytest.mark.nightly
def test_ctrl_c_leaves_the_replay_going_and_says_how_to_come_back(evalboard: Call, run: RunRecord) -> None:
    done = evalboard("replay", str(run.pk), "sky", meanwhile=[(": queued, 0 of 1 variants\n", ctrl_c)])
    replay = ReplayRecord.objects.get()
    assert done.returncode == 130
    last = done.stderr.splitlines()[-1]
    assert last == f"Replay {replay.pk} goes on. Come back with: evalboard replay --show {replay.pk}"
    assert replay.status == "queued"
    finish()
    done = evalboard("replay", "--show", str(replay.pk))
    assert (done.returncode, "Identical" in done.stdout) == (0, True)


WRONG = (
    (("replay",), "Give the run's id and the case's id"),
    (("replay", "RUN"), "Give the run's id and the case's id"),
    (("replay", "latest", "sky"), "latest is no id"),
    (("replay", "RUN", "desert"), "has no case desert"),
    (("replay", "999", "sky"), "There is no run 999"),
    (("replay", "RUN", "sky", "--repeat", "9"), "has the repeats 1 to 2"),
    (("replay", "RUN", "sky", "--repeat", "0"), "--repeat"),
    (("replay", "RUN", "sky", "--batch-sizes", "1,two"), "two is not a whole number"),
    (("replay", "RUN", "sky", "--batch-sizes", "0,1"), "batch_sizes: Must be whole numbers from 1 to 256"),
    (("replay", "RUN", "sky", "--dtype", "int4"), "dtypes: Must be among"),
    (("replay", "RUN", "sky", "--neighbours", "2"), "neighbours: Only a batch has neighbours"),
    (("replay", "RUN", "sky", "--show", "3"), "without RUN, CASE and other options"),
    (("replay", "--show", "x"), "x is no id"),
    (("replay", "--show", "999"), "There is no replay 999"),
)


def test_wrong_use_is_one_sentence_and_64(evalboard: Call, run: RunRecord) -> None:
    for arguments, words in WRONG:
        done = evalboard(*(str(run.pk) if part == "RUN" else part for part in arguments))
        assert (done.returncode, done.stdout) == (64, ""), arguments
        assert words in done.stderr
        assert (done.stderr.startswith("evalboard: "), done.stderr.count("\n")) == (True, 1)
    assert not ReplayRecord.objects.exists()


def body_file(folder: Path, text: str = "") -> str:
    file = folder / "request.json"
    file.write_text(text or json.dumps({"messages": [{"role": "user", "content": "Say blue."}], "max_tokens": 8}))
    return str(file)


def test_a_request_of_production_is_decoded_and_its_answer_printed(
    evalboard: Call, run: RunRecord, tmp_path: Path
) -> None:
    asked = ("replay", "--body", body_file(tmp_path), "--on", "local", "--profile", "pinned")
    done = evalboard(*asked, meanwhile=finishing(1))
    replay = ReplayRecord.objects.get()
    assert (done.returncode, replay.run_id, replay.endpoint.slug) == (0, None, "local")
    title, first, *limits, empty, text = done.stdout.splitlines()
    assert title.startswith(f"Replay {replay.pk} of a request of production [production]: finished. http://")
    assert first == "Decoded once under pinned: 2 tokens, ended by stop."
    assert limits[0].startswith("Taken from the profile, as the request lacks it: temperature, ")
    assert (empty, text) == ("", "blue")


@pytest.mark.nightly
def test_a_case_under_another_profile_is_labelled(evalboard: Call, run: RunRecord) -> None:
    create_profile(slug="warm", title="", settings=DEFAULT_PROFILES["fast"]["settings"])
    done = evalboard("replay", str(run.pk), "sky", "--profile", "warm", meanwhile=finishing(1))
    assert f"of case sky, run {run.pk} repeat 1 [production]: finished." in done.stdout
    assert "Decoded under warm instead of the run’s pinned: it counts toward no score." in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    few(
        [
            ("{", "is no JSON: "),
            ('{"messages": []}', "body.messages: must be a list of 1 to 1000 messages"),
            ('{"messages": [{"role": "user", "content": "a"}], "max_tokens": 9000}', "leave no room for a prompt"),
        ],
        1,
    ),
)
def test_a_body_that_is_none_is_64_and_says_why(
    evalboard: Call, run: RunRecord, tmp_path: Path, text: str, said: str
) -> None:
    done = evalboard("replay", "--body", body_file(tmp_path, text), "--on", "local", "--profile", "pinned")
    assert (done.returncode, said in done.stderr, done.stdout) == (64, True, "")
    assert not ReplayRecord.objects.exists()


def test_what_does_not_go_with_a_body_is_64(evalboard: Call, run: RunRecord) -> None:
    for wrong in (
        ("1", "sky", "--on", "local"),
        ("--body", "request.json", "--on", "local"),
        ("--body", "request.json", "--profile", "pinned"),
        ("1", "--body", "request.json", "--on", "local", "--profile", "pinned"),
        ("--body", "request.json", "--on", "local", "--profile", "pinned", "--dtype", "float16"),
        ("--show", "1", "--profile", "pinned"),
        ("--body", "nowhere.json", "--on", "local", "--profile", "pinned"),
    ):
        assert evalboard("replay", *wrong).returncode == 64, wrong
    assert not ReplayRecord.objects.exists()
