"""What the CI's own variables say of a run, and what is given by name."""

import json
from pathlib import Path

import pytest
import typer

from evalboard.cli import arguments

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SHA": "0f3a" * 10,
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_REF_NAME": "main",
    "GITHUB_REF_TYPE": "branch",
    "GITHUB_SERVER_URL": "https://github.example",
    "GITHUB_REPOSITORY": "acme/tools",
    "GITHUB_RUN_ID": "4711",
}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_COMMIT_SHA": "9b1c" * 10,
    "CI_COMMIT_BRANCH": "main",
    "CI_JOB_URL": "https://gitlab.example/acme/tools/-/jobs/8",
}


def test_github_says_commit_branch_and_job() -> None:
    assert arguments.read_ci_labels(GITHUB) == {
        "commit": "0f3a" * 10,
        "branch": "main",
        "url": "https://github.example/acme/tools/actions/runs/4711",
    }


def test_on_a_pull_request_it_is_the_commit_that_was_pushed_and_its_branch(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"head": {"sha": "77aa" * 10}}}))
    pull = {"GITHUB_REF": "refs/pull/12/merge", "GITHUB_REF_NAME": "12/merge", "GITHUB_HEAD_REF": "faster"}
    found = arguments.read_ci_labels({**GITHUB, **pull, "GITHUB_EVENT_PATH": str(event)})
    assert (found["commit"], found["branch"], found["pull_request"]) == ("77aa" * 10, "faster", "12")


@pytest.mark.parametrize("event", ["", "{", "[]", '{"pull_request": null}', '{"pull_request": {"head": {"sha": 7}}}'])
def test_an_event_that_is_none_leaves_the_commit_of_the_job(tmp_path: Path, event: str) -> None:
    file = tmp_path / "event.json"
    file.write_text(event)
    assert arguments.read_ci_labels({**GITHUB, "GITHUB_EVENT_PATH": str(file)})["commit"] == GITHUB["GITHUB_SHA"]


def test_a_tag_is_no_branch() -> None:
    of_tag = {"GITHUB_REF": "refs/tags/v2", "GITHUB_REF_NAME": "v2", "GITHUB_REF_TYPE": "tag"}
    found = arguments.read_ci_labels({**GITHUB, **of_tag})
    assert (found["tag"], "branch" in found) == ("v2", False)
    found = arguments.read_ci_labels({**GITLAB, "CI_COMMIT_BRANCH": "", "CI_COMMIT_TAG": "v2"})
    assert (found["tag"], "branch" in found) == ("v2", False)


def test_gitlab_says_the_same_and_its_merge_request() -> None:
    assert arguments.read_ci_labels(GITLAB) == {
        "commit": "9b1c" * 10,
        "branch": "main",
        "url": "https://gitlab.example/acme/tools/-/jobs/8",
    }
    merge = {"CI_MERGE_REQUEST_IID": "31", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "faster", "CI_COMMIT_BRANCH": ""}
    found = arguments.read_ci_labels({**GITLAB, **merge, "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "77aa" * 10})
    assert (found["commit"], found["branch"], found["merge_request"]) == ("77aa" * 10, "faster", "31")


def test_what_is_given_wins_and_outside_ci_nothing_is_guessed() -> None:
    assert arguments.collect_labels(["commit=mine", "note=a=b"], GITHUB)["commit"] == "mine"
    outside = {"CI": "true", "GITHUB_SHA": "x", "CI_COMMIT_SHA": "y"}
    assert arguments.collect_labels(["note=a=b"], outside) == {"note": "a=b"}


def test_what_the_server_would_refuse_as_too_long_is_left_out() -> None:
    assert "branch" not in arguments.read_ci_labels({**GITLAB, "CI_COMMIT_BRANCH": "x" * 201})


@pytest.mark.parametrize("text", ["commit", "=1f3a", ""])
def test_a_label_is_a_pair(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="KEY=VALUE"):
        arguments.collect_labels([text], {})
