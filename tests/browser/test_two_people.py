"""Two browsers at once, the back button, and a session that ends in mid-form: nothing lies and nothing is lost."""

import json
import re

import pytest
from django.contrib.sessions.models import Session
from django.db.models.functions import Now
from playwright.sync_api import expect

from runs.access import add_person
from runs.models import ProbeRecord, RunRecord, Shard
from runs.sweep import reconcile
from tests.frontend import release_runs
from tests.frontend.stage import SLUG

pytestmark = pytest.mark.browser
PASSWORD = "a long enough pass phrase"
TYPED = '{"copies": 7}'
AGAIN = "What you typed is back in its form. It was not sent."


@pytest.fixture
def mira(stage, settings):
    """A person with a password, whose session may be ended."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return add_person(name="mira", role="engineer", password=PASSWORD)[0]


def fill(page):
    page.locator("#id_kind").select_option("batch")
    page.locator("#id_profile").select_option("pinned")
    page.locator("#id_parameters").fill(TYPED)


def sign_in(page):
    page.get_by_label("Username").fill("mira")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def is_back(page):
    expect(page.get_by_text(AGAIN)).to_be_visible()
    expect(page.locator("#id_parameters")).to_have_value(TYPED)
    expect(page.locator("#id_kind")).to_have_value("batch")


def test_a_form_sent_after_its_session_ended_comes_back_as_it_was_typed(mira, watch):
    watched = watch()
    page = watched.open("/probes/")
    fill(page)
    Session.objects.all().delete()
    page.get_by_role("button", name="Start the probe").click()
    expect(page.get_by_text("the form that you sent was not stored")).to_be_visible()
    sign_in(page)
    is_back(page)
    assert not ProbeRecord.objects.exists()
    page.get_by_role("button", name="Start the probe").click()
    expect(page.get_by_text("is queued; this page follows it")).to_be_visible()
    assert ProbeRecord.objects.get().parameters["copies"] == 7
    page.goto(watched.base + "/probes/")
    expect(page.locator("#id_parameters")).to_have_value("")
    watched.check()


@pytest.mark.nightly
def test_a_list_that_follows_leads_to_sign_in_and_back_to_what_was_typed(mira, watch):
    watched = watch()
    page = watched.open("/probes/")
    fill(page)
    Session.objects.all().delete()
    page.wait_for_url(re.compile("/login/"))
    assert page.locator("form.form").count() == 1
    sign_in(page)
    is_back(page)
    watched.check()


@pytest.mark.nightly
def test_a_form_of_before_a_second_sign_in_is_opened_again_as_it_was_typed(mira, watch):
    watched = watch()
    page = watched.open("/probes/")
    fill(page)
    other = page.context.new_page()
    Session.objects.all().delete()
    other.goto(watched.base + "/lab/")
    sign_in(other)
    page.get_by_role("button", name="Start the probe").click()
    page.get_by_role("link", name="Open the form again").click()
    is_back(page)
    page.get_by_role("button", name="Start the probe").click()
    expect(page.get_by_text("is queued; this page follows it")).to_be_visible()


def test_what_was_typed_does_not_outlive_a_sign_out(mira, watch):
    page = watch().open("/probes/")
    fill(page)
    page.get_by_text("signed in as mira").click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.wait_for_url("**/login/")
    page.goto(f"{page.url}?next=/probes/")
    sign_in(page)
    expect(page.locator("#id_parameters")).to_have_value("")
    expect(page.get_by_text(AGAIN)).to_be_hidden()


@pytest.mark.nightly
def test_after_the_back_button_a_form_that_was_sent_makes_no_second(mira, watch):
    watched = watch()
    page = watched.open("/runs/new/")
    page.get_by_role("button", name=re.compile("^Start")).click()
    page.wait_for_url(re.compile(r"/runs/\d+/"))
    page.go_back()
    expect(page.get_by_role("button", name=re.compile("^Start"))).to_be_enabled()
    page.go_forward()
    page.reload()
    expect(page.get_by_text(AGAIN)).to_be_hidden()  # nothing was typed
    assert RunRecord.objects.count() == 1
    watched.check()


@pytest.mark.nightly
def test_two_browsers_cancel_and_complete_one_run(stage, watch):
    """The second acts on a page of before: without scripts, which would have loaded it again."""
    run = stage.run_in("running")
    one, two = watch(), watch(name="noor", java_script_enabled=False)
    here, there = (watched.open(f"/runs/{run.pk}/") for watched in (one, two))
    for page in (here, there):
        page.get_by_role("button", name="Cancel run…").click()
        page.get_by_role("button", name=f"Cancel run {run.pk}").click()
        expect(page.locator("[data-cancelling]")).to_be_visible()
    Shard.objects.filter(repeat__run=run, status="running").update(lease_until=Now())
    reconcile()
    for page in (here, there):
        page.goto(f"{one.base}/runs/{run.pk}/")
    here.get_by_role("button", name="Run the missing responses").first.click()
    expect(here.get_by_text("The missing responses are queued")).to_be_visible()
    there.get_by_role("button", name="Run the missing responses").first.click()
    expect(there.get_by_text(f"Run {run.pk} is queued; incomplete, failed and cancelled runs")).to_be_visible()
    one.check()


@pytest.mark.nightly
def test_two_people_sign_one_release(transactional_db, watch):
    made = release_runs.of_kind("ship")
    one, two = watch(role="release manager"), watch(role="release manager", name="noor")
    here, there = (watched.open(f"/releases/{made.pk}/") for watched in (one, two))
    for page, decision in ((here, "Approve"), (there, "Reject")):
        page.locator(".sign-bar > summary").click()
        page.get_by_role("radio", name=decision).check()
        page.get_by_label("Note").fill(f"{decision} it, as read.")
    here.get_by_role("button", name="Sign", exact=True).click()
    expect(here.locator(".hero-standing")).to_contain_text("Approved by mira")
    there.get_by_role("button", name="Sign", exact=True).click()
    expect(there.get_by_text("Nothing was signed. mira has signed this verdict: approve")).to_be_visible()
    expect(there.get_by_label("Note")).to_have_value("Reject it, as read.")
    there.get_by_role("button", name="Sign", exact=True).click()
    expect(there.locator(".hero-standing").last).to_contain_text("Rejected by noor")
    here.go_back()
    expect(here.locator(".hero-standing").last).to_contain_text("Rejected by noor")
    expect(here.locator(".hero-standing").first).to_contain_text("Approved by mira")
    one.check()


@pytest.mark.nightly
def test_two_people_edit_one_suite(stage, watch):
    people = [watch(), watch(name="noor")]
    for watched, target in zip(people, ("red", "blue"), strict=True):
        page = watched.open("/suites/new/")
        page.locator("#id_text").fill(json.dumps({"id": "a", "prompt": "Which?", "target": target}))
        page.get_by_role("button", name="Preview").click()
        page.locator("#id_slug").fill(SLUG)
    for watched, version in zip(people, (2, 3), strict=True):
        watched.page.get_by_role("button", name="Save the suite").click()
        watched.page.wait_for_url(re.compile(rf"/suites/{SLUG}/"))
        expect(watched.page.get_by_text(f"{SLUG} v{version} is stored: 1 case.")).to_be_visible()
        expect(watched.page.get_by_text(AGAIN)).to_be_hidden()
        watched.check()
