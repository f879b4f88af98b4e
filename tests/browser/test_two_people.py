"""Two browsers at once, the back button, and a session that ends in mid-form: nothing lies and nothing is lost."""

import re

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.test import Client
from playwright.sync_api import expect

from runs.access import add_person
from runs.models import ProbeRecord, RunRecord
from runs.suites import suite_report
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
    page.goto(page.url.replace("/login/", "/login/?next=/probes/"))
    sign_in(page)
    expect(page.locator("#id_parameters")).to_have_value("")
    expect(page.get_by_text(AGAIN)).to_be_hidden()


def test_after_the_back_button_a_form_that_was_sent_makes_no_second(mira, watch):
    watched = watch()
    page = watched.open("/runs/new/")
    page.get_by_role("button", name=re.compile("^Start")).click()
    page.wait_for_url(re.compile(r"/runs/\d+/"))
    page.go_back()
    expect(page.get_by_role("button", name=re.compile("^Start"))).to_be_enabled()
    page.go_forward()
    page.reload()
    assert RunRecord.objects.count() == 1
    watched.check()


def test_two_browsers_cancel_and_complete_one_run(stage, watch):
    run = stage.run_in("running")
    one, two = watch(), watch()
    here, there = (watched.open(f"/runs/{run.pk}/") for watched in (one, two))
    for page in (here, there):
        page.get_by_role("button", name="Cancel run…").click()
    here.get_by_role("button", name=f"Cancel run {run.pk}").click()
    expect(here.get_by_text("Cancelling. Stored responses stay.")).to_be_visible()
    there.get_by_role("button", name=f"Cancel run {run.pk}").click()
    there.wait_for_load_state()
    print(there.locator(".banner:visible").all_inner_texts())
    cancel_now(run)
    here.reload(), there.reload()
    here.get_by_role("button", name="Run the missing responses").first.click()
    here.wait_for_load_state()
    print(here.locator(".banner:visible").all_inner_texts())
    there.get_by_role("button", name="Run the missing responses").first.click()
    there.wait_for_load_state()
    print(there.locator(".banner:visible").all_inner_texts())
    one.check()
    two.check()


def cancel_now(run):
    from runs.sweep import reconcile
    from runs.models import Shard
    Shard.objects.filter(repeat__run=run).update(lease_until=None) if False else None
    reconcile()
    run.refresh_from_db(); print(run.status)


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
    there.wait_for_load_state()
    print(there.locator(".banner:visible").all_inner_texts(), there.locator(".hero-standing").inner_text(), there.get_by_label("Note").input_value(), there.get_by_label("Note").is_visible())
    there.get_by_role("button", name="Sign", exact=True).click()
    there.wait_for_load_state()
    print(there.locator(".banner:visible").all_inner_texts(), there.locator(".hero-standing").inner_text())
    here.go_back(); here.wait_for_load_state(); print(here.url, here.locator(".hero-standing").inner_text())
    one.check()
    two.check()


def test_two_people_edit_one_suite(stage, watch):
    pages = [watch(), watch(name="noor")]
    text = '{"suite": {"slug": "%s", "title": "Colours", "max_tokens": 24, "scorer": {"kind": "contains"}}}\n{"id": "a", "prompt": "Which?", "target": "%s"}'
    for at, watched in enumerate(pages):
        page = watched.open("/suites/new/")
        page.locator("#id_text").fill(text % (SLUG, ["red", "blue"][at]))
        page.get_by_role("button", name="Read").click()
        page.wait_for_load_state()
        print(page.locator("main").inner_text()[:1500])
    for watched in pages:
        page = watched.page
        page.get_by_role("button", name="Save").click()
        page.wait_for_load_state()
        print(page.url, page.locator(".banner:visible").all_inner_texts())
