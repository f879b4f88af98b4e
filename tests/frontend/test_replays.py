"""The replays on a response's page: how to ask for one, and what each found."""

import shlex
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evalboard.wording.replay import replay_command
from runs.models import ReplayRecord, RunRecord
from runs.replays import claim_replay, create_replay, finish_replay, record_result
from tests import build
from tests.casts import cast
from tests.runs.test_replays import result


@cast
def run() -> RunRecord:
    return build.finished_run()


@pytest.fixture
def page(run: RunRecord, client: Client) -> Any:
    client.force_login(build.user("reader", "viewer"))
    return lambda: client.get(reverse("response", args=[run.pk, 1, "a/b c"])).content.decode()


@pytest.mark.nightly
def test_without_replays_the_page_says_how_to_ask_for_one(run: RunRecord, page: Any) -> None:
    assert f"<code>evalboard replay {run.pk} &#x27;a/b c&#x27; --repeat 1</code>" in page()


def test_a_replay_is_shown_waiting_and_with_what_it_found(run: RunRecord, page: Any) -> None:
    asked = create_replay(run_id=run.pk, case_id="a/b c", batch_sizes=[1, 2])
    assert "Queued, 0 of 2 variants decoded." in page()
    lease = claim_replay(worker=build.worker("replayer"))
    assert lease is not None
    record_result(lease=lease, result=result({"batch_size": 1}))
    assert "Running, 1 of 2 variants decoded." in page()
    record_result(lease=lease, result=result({"batch_size": 2}, error="<b>no memory</b>"))
    finish_replay(lease=lease)
    shown = page()
    assert "<strong><bdi>Identical at batch size 1.</bdi></strong>" in shown
    assert "&lt;b&gt;no memory&lt;/b&gt;" in shown
    assert "<li>batch size 1: <bdi>identical</bdi></li>" in shown
    ReplayRecord.objects.filter(pk=asked.pk).update(status="failed", error="It was begun 3 times.")
    assert "Could not be replayed: <bdi>It was begun 3 times.</bdi>" in page()


def test_replays_of_other_cases_stand_elsewhere(run: RunRecord, page: Any) -> None:
    create_replay(run_id=run.pk, case_id="sky")
    assert "variants decoded" not in page()
    assert "variant decoded" not in page()


@pytest.mark.parametrize("case_id", ["sky", "a/b c", "it's; rm -rf $HOME", "--show", "-1", "東京"])
def test_the_command_is_read_by_a_shell_as_it_is_meant(case_id: str) -> None:
    import typer

    from evalboard.cli.main import app

    program, name, *words = shlex.split(replay_command(7, case_id, repeat=2))
    assert (program, name) == ("evalboard", "replay")
    command = typer.main.get_command(app).commands["replay"]  # type: ignore[attr-defined]
    read = command.make_context("replay", words).params
    assert (read["run"], read["case"], read["repeat"]) == ("7", case_id, 2)
