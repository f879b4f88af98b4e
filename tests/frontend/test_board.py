"""The board: open verdicts, expired baselines and rotations beside what needs somebody; quiet in one line."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.utils import timezone

from runs.baselines import set_baseline
from runs.catalogue import store_default_policies
from runs.models import Release, Rotation
from runs.release import create_release, release_report, sign_release
from tests import probes
from tests.frontend import history_stage
from tests.frontend.history_stage import SLUG

pytestmark = pytest.mark.django_db


def words_of(response) -> str:
    assert response.status_code == 200
    page = response.content.decode().split('id="main"')[1]
    return unescape(" ".join(re.sub(r"<[^>]*>", " ", page).split()))


@pytest.fixture
def released(settings, client_of, django_user_model):
    """A release of the newest run against the current baseline, judged."""
    made = history_stage.make(n_old=1)
    store_default_policies()
    client_of("release manager")
    user = django_user_model.objects.get(username="release manager")
    gate = {"suite": SLUG, "candidate": made.candidate.pk, "baseline": "current", "tier": "critical"}
    return create_release(gates=[gate], policy="paired", user=user), user


def test_a_quiet_board_says_so_in_one_line(viewer):
    words = words_of(viewer.get("/"))
    assert "Nothing needs you. No run is in progress." in words
    for heading in ("Open verdicts", "Expired baselines", "Rotations this week", "Needs somebody", "Probes that need"):
        assert heading not in words


def test_a_verdict_without_a_sign_off_is_open_and_links_to_its_release(released, viewer):
    release, _ = released
    page = viewer.get("/")
    words = words_of(page)
    assert "1 verdict is open." in words
    assert f'href="/releases/{release.pk}/"' in page.content.decode()
    assert "not signed" in words


def test_a_rejected_release_no_longer_waits_and_a_void_one_does_again(released, viewer):
    release, user = released
    digest = release_report(release.pk).input_digest
    asked = {"release_id": release.pk, "decision": "reject", "note": "Not this one.", "user": user}
    sign_release(**asked, input_digest=digest)
    assert "Open verdicts" not in words_of(viewer.get("/"))
    verdict = Release.objects.get(pk=release.pk).verdict
    verdict.pk, verdict.input_digest = None, "0" * 64
    verdict.save()
    Release.objects.filter(pk=release.pk).update(verdict=verdict)
    words = words_of(viewer.get("/"))
    assert "Open verdicts" in words
    assert "sign-off void" in words


def test_what_nobody_signed_for_two_weeks_does_not_wait_on_the_board(released, viewer):
    Release.objects.update(created_at=timezone.now() - timedelta(days=15))
    assert "Open verdicts" not in words_of(viewer.get("/"))


def test_an_expired_baseline_needs_somebody_until_there_is_a_new_one(settings, viewer, django_user_model):
    expired, noticed = history_stage.rotated()
    words = words_of(viewer.get("/"))
    assert "1 baseline has expired." in words
    assert re.search(rf"{SLUG} , acme-7b-ft , fast : run {expired.run_id} , .* expired 2026-09-06", words)
    assert f'href="/suites/{SLUG}/#baselines"' in viewer.get("/").content.decode()
    user = django_user_model.objects.get(username="mira")
    set_baseline(suite=SLUG, run=noticed.pk, reason="Held.", user=user)
    assert "Expired baselines" not in words_of(viewer.get("/"))


@pytest.mark.parametrize(("days", "is_shown"), [(6.9, True), (7.1, False)])
def test_rotations_are_news_for_a_week(settings, viewer, days, is_shown):
    history_stage.rotated()
    Rotation.objects.update(at=timezone.now() - timedelta(days=days))
    words = words_of(viewer.get("/"))
    assert ("Rotations this week" in words) is is_shown
    assert ("1 baseline expired." in words) is is_shown


def test_a_probe_that_found_something_bad_stands_here_until_a_newer_one_does_not(viewer):
    probes.ask("seed")
    bad = probes.served(probes.ignored())
    page = viewer.get("/")
    assert "1 probe needs somebody." in words_of(page)
    assert bad.finding["sentence"] in words_of(page)
    assert f'href="/probes/{bad.pk}/"' in page.content.decode()
    probes.ask("seed")
    probes.served(probes.honoured)
    assert "Probes that need somebody" not in words_of(viewer.get("/"))
