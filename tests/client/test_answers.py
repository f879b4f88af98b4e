"""Answers as contracts: fields of a newer server break nothing, and a field that is missing is named."""

import re
from copy import deepcopy
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import pytest

from evalboard.client.answers import parse
from evalboard.client.errors import WrongUse
from evalboard.contract.base import Page
from evalboard.contract.baseline import Baseline
from evalboard.contract.catalogue import Endpoint, Policy, Profile
from evalboard.contract.compare import ComparedCase, Comparison
from evalboard.contract.imports import Import
from evalboard.contract.probe import Probe
from evalboard.contract.release import Release, ReleaseRow
from evalboard.contract.replay import Replay
from evalboard.contract.response import CaseOfRun, Response
from evalboard.contract.run import Run, RunRow
from evalboard.contract.suite import SuiteRow, SuiteVersion
from tests.cli import answers

URL = "https://board.example"


SLUG = "[^/]+"
READ = {
    r"/runs/\d+/": Run,
    r"/runs/": Page[RunRow],
    r"/runs/\d+/cases/": Page[CaseOfRun],
    r"/runs/\d+/responses/": Page[Response],
    r"/runs/\d+/replays/": Page[Replay],
    r"/replays/\d+/": Replay,
    r"/compare/": Comparison,
    r"/compare/cases/": Page[ComparedCase],
    r"/probes/\d+/": Probe,
    r"/releases/": Page[ReleaseRow],
    r"/releases/\d+/": Release,
    r"/suites/": Page[SuiteRow],
    rf"/suites/{SLUG}/": SuiteVersion,
    rf"/suites/{SLUG}/baselines/": Page[Baseline],
    r"/endpoints/": Page[Endpoint],
    r"/profiles/": Page[Profile],
    r"/policies/": Page[Policy],
    r"/imports/": Page[Import],
    r"/imports/\d+/": Import,
}


@pytest.mark.parametrize("path", READ)
def test_what_a_server_answers_is_read_whole(path: str) -> None:
    bodies = [
        body
        for address, (status, body) in answers.recorded().items()
        if status == 200 and re.fullmatch(path, address.partition("?")[0])
    ]
    assert bodies
    for body in bodies:
        assert shared(parse(READ[path], body, url=URL).to_json(), body) == body


def shared(answer: Any, body: Any) -> Any:
    """Return an answer without the fields that came after `body` was answered."""
    if isinstance(answer, dict) and isinstance(body, dict):
        return {name: shared(value, body[name]) for name, value in answer.items() if name in body}
    if isinstance(answer, list) and isinstance(body, list) and len(answer) == len(body):
        return [shared(value, other) for value, other in zip(answer, body, strict=True)]
    return answer


@pytest.fixture
def json() -> dict[str, Any]:
    """A run as the server answers it."""
    return deepcopy(answers.run().json)


def test_an_answer_has_the_types_of_its_contract(json: dict[str, Any]) -> None:
    run = parse(Run, json, url=URL)
    assert run.created_at == datetime(2026, 11, 20, 8, tzinfo=UTC)
    assert (run.range, run.suite.slug) == ((75.0, 87.5), "colours")


def test_fields_that_only_a_newer_server_has_break_nothing(json: dict[str, Any]) -> None:
    newer = {**json, "mood": "good", "suite": {**json["suite"], "mood": "good"}}
    assert parse(Run, newer, url=URL) == parse(Run, json, url=URL)


def test_what_an_older_server_does_not_answer_is_none_where_it_may_be(json: dict[str, Any]) -> None:
    del json["progress"]["eta_seconds"], json["repeats"][1]["score"]
    run = parse(Run, json, url=URL)
    assert (run.progress.eta_seconds, [repeat.score for repeat in run.repeats]) == (None, [87.5, None])


def test_a_field_that_is_missing_says_which_server_is_needed(json: dict[str, Any]) -> None:
    del json["suite"]["version"]
    version = metadata.version("evalboard")
    with pytest.raises(WrongUse) as raised:
        parse(Run, json, url=URL)
    assert str(raised.value) == (
        f"{URL} answered without suite.version: this client needs a server of version {version} or later."
    )


@pytest.mark.parametrize(("changed", "field"), [({"status": 3}, "status"), (None, "a field")])
def test_a_field_of_another_form_says_which_client_is_needed(
    json: dict[str, Any], changed: dict[str, Any] | None, field: str
) -> None:
    with pytest.raises(WrongUse, match=rf"answered with {field} in a form .* use one of the server's version\.$"):
        parse(Run, changed and {**json, **changed}, url=URL)
