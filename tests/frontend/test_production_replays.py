"""Replays under the settings of production, as pages show them: asked for, listed, read, and told from the others."""

import json
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.models import EngineProcess, ReplayRecord, RunRecord
from runs.replays import claim_replay, create_replay, finish_replay, record_result
from tests import build
from tests.casts import cast
from tests.runs.test_replays import result

BODY = {"model": "prod", "messages": [{"role": "user", "content": "Name <b>a</b> colour."}], "n": 2, "max_tokens": 8}


@cast
def run() -> RunRecord:
    create_profile(slug="warm", title="", settings=DEFAULT_PROFILES["fast"]["settings"])
    return build.finished_run()


@pytest.fixture
def engineer(run: RunRecord, client: Client) -> Client:
    client.force_login(build.user("ida", "engineer"))
    return client


def page_of(client: Client, address: str) -> str:
    return unescape(client.get(address).content.decode())


def decode(*, error: str = "") -> None:
    """Decode the replay that waits as a worker would."""
    lease = claim_replay(worker=build.worker(f"replayer-{ReplayRecord.objects.count()}"))
    assert lease is not None
    process = EngineProcess.objects.latest("pk")
    served = {"engine_process": str(process.pk), "bucket": str(process.bucket_id)}
    record_result(lease=lease, result={**result({}, error=error, has_response=False), **served})
    finish_replay(lease=lease)


def sent(**changes: Any) -> dict[str, Any]:
    return {"endpoint": "local", "profile": "warm", "body": json.dumps(BODY), **changes}


def test_a_request_is_pasted_followed_and_read(engineer: Client) -> None:
    assert "evalboard replay --body request.json" in page_of(engineer, reverse("replays"))
    answer = engineer.post(reverse("replays"), sent())
    replay = ReplayRecord.objects.get()
    assert answer.headers["Location"] == reverse("replay", args=[replay.pk])
    address = answer.headers["Location"]
    waiting = page_of(engineer, address)
    assert "Queued." in waiting
    assert 'hx-get="?part=progress"' in waiting
    decode()
    assert engineer.get(f"{address}?part=progress").headers["HX-Refresh"] == "true"
    page = page_of(engineer, address)
    assert '<span class="tag">production</span> separate from evals: counts toward no score' in page
    assert "Decoded once under warm: 2 tokens, ended by stop." in page
    assert "Not sent, although the answer may depend on it: n." in page
    assert "the request names <bdi>prod</bdi>" in page
    assert "Name <b>a</b> colour." not in engineer.get(address).content.decode()
    assert 'aria-label="Text of the response">' in page
    assert "data-trace" in page
    assert "<dt><bdi>temperature</bdi></dt>" in page
    assert "hx-get" not in page
    assert "the chosen one is outlined" in page_of(engineer, f"{address}?part=alternatives&at=1")
    assert engineer.get(f"{address}?part=other").status_code == 404
    listed = page_of(engineer, reverse("replays"))
    assert f'<a id="replay-{replay.pk}" href="{address}">replay {replay.pk}</a>' in listed
    assert "Decoded once under warm" in listed


def test_a_request_without_an_answer_says_why(engineer: Client) -> None:
    engineer.post(reverse("replays"), sent())
    decode(error="<i>prompt_too_long</i>")
    replay = ReplayRecord.objects.get()
    shown = engineer.get(reverse("replay", args=[replay.pk])).content.decode()
    assert "There is no answer." in shown
    assert "&lt;i&gt;prompt_too_long&lt;/i&gt;" in shown


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"body": "{"}, "This is not valid JSON"),
        ({"body": "[]"}, "This must be a JSON object"),
        ({"body": "{}"}, "body.messages: must be a list of 1 to 1000 messages"),
        ({"body": json.dumps(BODY | {"max_tokens": 9000})}, "leave no room for a prompt"),
        ({"profile": "nowhere"}, "is not one of the available choices"),
    ],
)
def test_what_is_wrong_stands_at_its_field(engineer: Client, changes: dict[str, Any], said: str) -> None:
    refused = engineer.post(reverse("replays"), sent(**changes))
    assert refused.status_code == 422
    assert said in unescape(refused.content.decode())
    assert not ReplayRecord.objects.exists()


def test_viewers_read_and_ask_for_nothing(run: RunRecord, client: Client) -> None:
    client.force_login(build.user("reader", "viewer"))
    assert 'method="post" action="/replays/"' not in client.get(reverse("replays")).content.decode()
    assert client.post(reverse("replays"), sent()).status_code == 403
    assert client.get(reverse("replay", args=[999])).status_code == 404


@pytest.mark.nightly
def test_a_case_under_another_profile_is_told_from_the_run_s_own_replays(run: RunRecord, engineer: Client) -> None:
    other = create_replay(run_id=run.pk, case_id="sky", profile="warm")
    decode()
    own = create_replay(run_id=run.pk, case_id="sky")
    decode()
    response = engineer.get(reverse("response", args=[run.pk, 1, "sky"])).content.decode()
    assert f'<a href="/replays/{other.pk}/">{other.pk}</a>' in response
    assert response.count('<span class="tag">production</span>') == 1
    shown = page_of(engineer, reverse("replay", args=[other.pk]))
    assert "Decoded under warm instead of the run’s pinned: it counts toward no score." in shown
    assert "production</span>" not in page_of(engineer, reverse("replay", args=[own.pk]))
    [listed] = [line for line in page_of(engineer, reverse("replays")).splitlines() if '<th scope="row"' in line]
    assert f"replay {other.pk}" in listed


def test_the_form_of_a_pair_offers_the_profiles(run: RunRecord, engineer: Client) -> None:
    theirs = build.finished_run(("red", "blue", "red"))
    pair = reverse("pair_replay", args=[run.pk, theirs.pk])
    body = {"case": "sky", "run": theirs.pk, "batch_sizes": "", "profile": "warm"}
    answer = engineer.post(f"{pair}?repeat=1,1", body)
    replay = ReplayRecord.objects.get()
    assert answer.headers["Location"] == reverse("replay", args=[replay.pk])
    assert (replay.profile.slug, replay.variants, replay.run_id) == ("warm", [{}], theirs.pk)
