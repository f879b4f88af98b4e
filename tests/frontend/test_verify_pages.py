"""Verifications on pages: what one waits for, what it found and by what, and where else that is shown."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from runs.models import EngineProcess, ForcedScoringRecord, ProbeRecord
from tests import build, verifying

pytestmark = pytest.mark.django_db


@pytest.fixture
def stack() -> EngineProcess:
    return build.process()


def text_of(response: Any) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


@pytest.mark.nightly
def test_it_says_what_it_waits_for(viewer: Client, stack: EngineProcess) -> None:
    probe = verifying.ask()
    own = probe.sets.get(role="endpoint").run_id
    shown = text_of(viewer.get(f"/probes/{probe.pk}/"))
    assert f"Collecting answers. It waits for run {own} (endpoint), run " in shown
    assert "0 of 6 runs and scorings ended" in shown
    assert "none answered yet" not in shown
    verifying.end_runs(probe, stack)
    verifying.look()
    part = viewer.get(f"/probes/{probe.pk}/?part=progress")
    assert f"It waits for forced scoring {ForcedScoringRecord.objects.get().pk} (endpoint)." in text_of(part)
    assert "3 of 6" in text_of(part)


def test_its_page_says_how_sure_it_is_and_leads_to_every_token(viewer: Client, stack: EngineProcess) -> None:
    probe = verifying.end(verifying.ask(planted="changed"), stack)
    response = viewer.get(f"/probes/{probe.pk}/")
    shown = text_of(response)
    assert (
        "Another model Another model: 24 tokens of 12 answers are farther from the reference than other numerics"
        in shown
    )
    assert "(p < 0.001)" in shown or "(p = 0.00" in shown
    assert "What to do: Probe again first" in shown
    assert "above numerics p " in shown
    own = probe.sets.get(role="endpoint")
    links = re.findall(r'href="(/(?:forced|runs)/\d+/)"', response.content.decode())
    assert {f"/forced/{own.scoring_id}/", f"/runs/{own.run_id}/"} <= set(links)
    assert "endpoint: 0.02 nats" in response.content.decode()
    assert "evalboard probe asked --kind verify --profile pinned --set 'suite=\"texts\"'" in shown
    assert "Another model: 24 tokens" in text_of(viewer.get("/endpoints/asked/"))
    assert "another model" in text_of(viewer.get("/probes/")).lower()


@pytest.mark.nightly
def test_what_takes_from_its_weight_and_what_failed_is_said(viewer: Client, stack: EngineProcess) -> None:
    probe = verifying.end(verifying.ask(), stack, endpoint=0.0)
    shown = text_of(viewer.get(f"/probes/{probe.pk}/"))
    assert "12 prompts of the endpoint are rendered with the reference’s chat template" in shown
    ProbeRecord.objects.filter(pk=probe.pk).update(status="failed", finding=None, error="Run 1 is <b>cancelled</b>.")
    failed = viewer.get(f"/probes/{probe.pk}/")
    assert "The probe failed. Run 1 is <b>cancelled</b>." in text_of(failed)
    assert "<b>cancelled</b>" not in failed.content.decode()


def test_the_list_says_what_it_takes(viewer: Client) -> None:
    shown = text_of(viewer.get("/probes/"))
    assert "verify does it serve the weights of its reference?" in shown
    assert "depends on the suite" in shown
