"""Parse ids, pairs and labels from the command line, and read labels from CI variables.

The functions that parse raise typer.BadParameter, naming the option.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from evalboard.core.document import read_strict_json

ID = re.compile(r"[0-9]{1,18}", re.ASCII)
MAX_VALUE_CHARS = 200  # the server takes no more
Environment = Mapping[str, str]


def parse_id(text: str, option: str) -> str:
    """Return the id of a run, a release, a probe, a replay, a forced scoring."""
    if not text:
        raise typer.BadParameter("The id is missing. Give a number, such as 12.", param_hint=option)
    if not ID.fullmatch(text):
        raise typer.BadParameter(f"{text} is no id; an id is a number.", param_hint=option)
    return text


def parse_number(text: str, option: str) -> int:
    """Return one whole number of a list."""
    if not text.isascii() or not text.isdigit():
        raise typer.BadParameter(f"{text} is not a whole number.", param_hint=option)
    return int(text[:18])


def split(text: str) -> list[str]:
    """Return the parts of a list that is written with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_pair(text: str, form: str, option: str) -> tuple[str, str]:
    """Return "commit=1f3a" as a name and a value; `form` is how help writes it, "KEY=VALUE"."""
    name, has_value, value = text.partition("=")
    if not name or not has_value:
        raise typer.BadParameter(f"{text} is not {form}.", param_hint=option)
    return name, value


def collect_labels(texts: Sequence[str], environment: Environment = os.environ) -> dict[str, str]:
    """Parse KEY=VALUE labels and add those of the CI that this runs in."""
    return {**read_ci_labels(environment), **dict(parse_pair(text, "KEY=VALUE", "--label") for text in texts)}


def read_ci_labels(environment: Environment) -> dict[str, str]:
    """Return labels from CI variables: commit, branch or tag, job address, pull or merge request.

    Empty outside GitHub Actions and GitLab CI. Values too long for the server are left out.
    """
    if environment.get("GITHUB_ACTIONS") == "true":
        labels = _read_github_labels(environment)
    elif environment.get("GITLAB_CI") == "true":
        labels = _read_gitlab_labels(environment)
    else:
        labels = {}
    return {key: value for key, value in labels.items() if value and len(value) <= MAX_VALUE_CHARS}


def _read_github_labels(environment: Environment) -> dict[str, str]:
    read = environment.get
    is_tag = read("GITHUB_REF_TYPE") == "tag"
    number = re.fullmatch(r"refs/pull/([0-9]+)/(?:merge|head)", read("GITHUB_REF", ""))
    branch = read("GITHUB_HEAD_REF") or ("" if is_tag or number else read("GITHUB_REF_NAME", ""))
    job = f"{read('GITHUB_SERVER_URL', '')}/{read('GITHUB_REPOSITORY', '')}/actions/runs/{read('GITHUB_RUN_ID', '')}"
    return {
        # On a pull request GITHUB_SHA is a merge made for this job, which is unknown later.
        "commit": _read_pull_request_head(read("GITHUB_EVENT_PATH", "")) or read("GITHUB_SHA", ""),
        "branch": branch,
        "tag": read("GITHUB_REF_NAME", "") if is_tag else "",
        "url": job if read("GITHUB_RUN_ID") else "",
        "pull_request": number[1] if number else "",
    }


def _read_pull_request_head(event_path: str) -> str:
    """Return a pull request's head commit from GitHub's event file; "" for other events."""
    try:
        event: Any = json.loads(Path(event_path).read_text(encoding="utf-8"))
        commit = event["pull_request"]["head"]["sha"]
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    return commit if isinstance(commit, str) else ""


def _read_gitlab_labels(environment: Environment) -> dict[str, str]:
    read = environment.get
    return {
        # Set in pipelines of merged results alone, where CI_COMMIT_SHA is a merge that was made for this pipeline.
        "commit": read("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or read("CI_COMMIT_SHA", ""),
        "branch": read("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME") or read("CI_COMMIT_BRANCH", ""),
        "tag": read("CI_COMMIT_TAG", ""),
        "url": read("CI_JOB_URL") or read("CI_PIPELINE_URL", ""),
        "merge_request": read("CI_MERGE_REQUEST_IID", ""),
    }


def parse_headers(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return "Name: value" and so on as headers."""
    headers: dict[str, str] = {}
    for text in texts:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or not value.strip():
            # Not repeated: it may hold a key.
            raise typer.BadParameter("Write it as 'Name: value'.", param_hint=option)
        headers[name.strip()] = value.strip()
    return headers


def parse_body(text: str, option: str = "--extra-body") -> dict[str, Any]:
    """Return the object of an option: JSON, or @ and the name of its file."""
    try:
        value = read_strict_json(Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text)
    except OSError as problem:
        raise typer.BadParameter(f"{text[1:]} cannot be read: {problem.strerror}.", param_hint=option) from None
    except ValueError as problem:
        raise typer.BadParameter(f"It is not valid JSON: {problem}.", param_hint=option) from problem
    if not isinstance(value, dict):
        raise typer.BadParameter("Must be an object, {…}.", param_hint=option)
    return value
