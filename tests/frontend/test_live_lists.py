"""Lists that follow what changes: an open page asks for its rows again, and is sent them only where they look other."""

import html
import re
from typing import Any

import pytest
from django.test import Client

from runs.lab import start_experiment
from runs.replays import create_body_replay
from runs.sweep import reconcile
from tests import probes
from tests.frontend import release_runs
from tests.frontend.test_lab import planned

__all__ = ["planned"]

ASKS = re.compile(r'<div id="live-rows" hx-get="([^"]+)" hx-trigger="every (\d+)s" hx-swap="outerHTML">')


def asks(text: str) -> tuple[str, int]:
    """The address that a page asks for its rows, and every how many seconds."""
    [(address, seconds)] = ASKS.findall(text)
    return html.unescape(address), int(seconds)


def opened(client: Client, address: str) -> tuple[str, int]:
    answer = client.get(address)
    assert answer.status_code == 200
    return asks(answer.content.decode())


def test_rows_are_sent_again_only_when_they_look_other(viewer: Client, stage: Any) -> None:
    stage.start()
    address, seconds = opened(viewer, "/runs/")
    assert seconds == 3
    same = viewer.get(address)
    assert (same.status_code, same.content, same.headers["Cache-Control"]) == (204, b"", "no-store")
    run = stage.run_in("finished")
    told = viewer.get(address)
    text = told.content.decode()
    assert (told.status_code, told.headers["Cache-Control"]) == (200, "no-store")
    assert f">run {run.pk}</a>" in text
    assert "<html" not in text
    assert viewer.get(asks(text)[0]).status_code == 204


@pytest.mark.nightly
def test_what_filters_a_list_filters_what_follows(viewer: Client, stage: Any) -> None:
    stage.run_in("finished")
    address, seconds = opened(viewer, "/runs/?status=finished&label=a%3Db")
    assert seconds == 10
    assert "status=finished&label=a%3Db&part=rows&seen=" in address
    address, _ = opened(viewer, "/runs/?status=finished")
    stage.start()
    assert viewer.get(address).status_code == 204


@pytest.mark.nightly
def test_probes_experiments_and_replays_follow_too(engineer: Client, planned: Any) -> None:
    probe, lab = opened(engineer, "/probes/"), opened(engineer, "/lab/")
    replay = opened(engineer, "/replays/")
    assert [each[1] for each in (probe, lab, replay)] == [10, 10, 10]
    probes.ask("seed", parameters={"prompts": 2, "calls_per_group": 3})
    start_experiment(experiment_id=planned.pk)
    reconcile()
    body = {"messages": [{"role": "user", "content": "Which colour?"}]}
    create_body_replay(body=body, endpoint="local", profile="pinned", user=None)
    for address, _ in (probe, lab, replay):
        told = engineer.get(address)
        assert (told.status_code, asks(told.content.decode())[1]) == (200, 3)


@pytest.mark.nightly
def test_releases_follow(viewer: Client, transactional_db: None) -> None:
    address, _ = opened(viewer, "/releases/")
    made = release_runs.of_kind("ship")
    assert f"release {made.pk}" in viewer.get(address).content.decode()


def test_a_list_that_was_sent_back_with_a_form_follows_too(engineer: Client, planned: Any) -> None:
    answer = engineer.post("/probes/", {"endpoint": "nowhere", "kind": "seed"})
    assert answer.status_code == 422
    assert asks(answer.content.decode())[0].startswith("/probes/?part=rows&seen=")
