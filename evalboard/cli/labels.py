"""Labels of a run: what the CI's own environment variables say of it, and above that what is given by name."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

LONGEST_VALUE = 200  # characters; the server takes no more
Environment = Mapping[str, str]


def read(texts: Sequence[str], environment: Environment = os.environ) -> dict[str, str]:
    """`commit=1f3a` and so on as labels, beside those of the CI that this runs in."""
    return {**of_ci(environment), **dict(map(read_label, texts))}


def read_label(text: str) -> tuple[str, str]:
    """`commit=1f3a` as a pair."""
    key, has_value, value = text.partition("=")
    if not key or not has_value:
        raise typer.BadParameter(f"{text} is not KEY=VALUE.", param_hint="--label")
    return key, value


def of_ci(environment: Environment) -> dict[str, str]:
    """Commit, branch or tag, address of the job, and number of the pull or merge request, as far as the CI says them.

    Outside GitHub Actions and GitLab CI nothing is guessed. What the server would refuse as too long is left out.
    """
    if environment.get("GITHUB_ACTIONS") == "true":
        found = _of_github(environment)
    elif environment.get("GITLAB_CI") == "true":
        found = _of_gitlab(environment)
    else:
        found = {}
    return {key: value for key, value in found.items() if value and len(value) <= LONGEST_VALUE}


def _of_github(environment: Environment) -> dict[str, str]:
    said = environment.get
    is_tag = said("GITHUB_REF_TYPE") == "tag"
    number = re.fullmatch(r"refs/pull/([0-9]+)/(?:merge|head)", said("GITHUB_REF", ""))
    branch = said("GITHUB_HEAD_REF") or ("" if is_tag or number else said("GITHUB_REF_NAME", ""))
    job = f"{said('GITHUB_SERVER_URL', '')}/{said('GITHUB_REPOSITORY', '')}/actions/runs/{said('GITHUB_RUN_ID', '')}"
    return {
        # On a pull request GITHUB_SHA is a merge that was made for this job and that nobody knows later.
        "commit": _head_of_pull_request(said("GITHUB_EVENT_PATH", "")) or said("GITHUB_SHA", ""),
        "branch": branch,
        "tag": said("GITHUB_REF_NAME", "") if is_tag else "",
        "url": job if said("GITHUB_RUN_ID") else "",
        "pull_request": number[1] if number else "",
    }


def _head_of_pull_request(event_path: str) -> str:
    """The commit that was pushed, out of the file that GitHub describes the event in; "" for any other event."""
    try:
        event: Any = json.loads(Path(event_path).read_text(encoding="utf-8"))
        found = event["pull_request"]["head"]["sha"]
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    return found if isinstance(found, str) else ""


def _of_gitlab(environment: Environment) -> dict[str, str]:
    said = environment.get
    return {
        # Set in pipelines of merged results alone, where CI_COMMIT_SHA is a merge that was made for this pipeline.
        "commit": said("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or said("CI_COMMIT_SHA", ""),
        "branch": said("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME") or said("CI_COMMIT_BRANCH", ""),
        "tag": said("CI_COMMIT_TAG", ""),
        "url": said("CI_JOB_URL") or said("CI_PIPELINE_URL", ""),
        "merge_request": said("CI_MERGE_REQUEST_IID", ""),
    }
