"""The search over everything in a real browser: keys, focus, what was opened lately, without scripts, on a phone."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from runs.models import ResponseRecord
from tests.browser import looks

pytestmark = pytest.mark.browser


def options(page):
    return page.get_by_role("dialog", name="Find anything").get_by_role("option")


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.DESK)
def test_the_dialog_opens_finds_and_leads_there(stage, watch, theme, width):
    run = stage.run_in("finished")
    watched = watch(theme=theme, width=width)
    page = watched.open("/suites/")
    page.get_by_role("button", name="Find anything").click()
    dialog = page.get_by_role("dialog", name="Find anything")
    expect(dialog).to_be_visible()
    if width > 760:
        assert round(dialog.bounding_box()["y"]) == 88
    field = dialog.get_by_role("combobox")
    expect(field).to_be_focused()
    field.press_sequentially("case-004")
    expect(options(page).first).to_contain_text("case-004")
    expect(field).to_have_attribute("aria-activedescendant", "find-hit-0")
    assert watched.overflow() == 0
    assert Axe().run(page).response["violations"] == []
    field.fill(f"run: {run.pk}")
    expect(options(page)).to_have_text(
        [re.compile(f"run {run.pk}"), re.compile("Run again"), re.compile("Compare with")]
    )
    expect(options(page).first.locator("use")).to_have_attribute("href", re.compile("#finished$"))
    field.press("Enter")
    expect(page.get_by_role("heading", name=f"run {run.pk}")).to_be_visible()
    watched.check()


def test_keys_move_narrow_and_close_and_the_focus_returns(stage, watch):
    for _ in range(3):
        stage.run_in("finished")
    watched = watch()
    page = watched.open("/suites/")
    begin = page.get_by_role("navigation", name="Sections").get_by_role("link", name="Suites")
    for key in ("/", "Control+k", "Meta+k"):
        begin.focus()
        page.keyboard.press(key)
        field = page.get_by_role("dialog").get_by_role("combobox")
        expect(field).to_be_focused()
        expect(field).to_have_value("")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(begin).to_be_focused()
    page.keyboard.press("/")
    field.press_sequentially("colours")
    expect(options(page)).to_have_count(4)  # three runs and the suite
    chosen = page.locator("[role=option][aria-selected=true]")
    first = options(page).nth(0).get_attribute("href")
    field.press("ArrowDown")
    expect(chosen).to_have_attribute("id", "find-hit-1")
    field.press("ArrowUp")
    field.press("ArrowUp")
    expect(chosen).to_have_attribute("id", "find-hit-3")
    field.press("Tab")
    expect(page.locator(".find-kinds [aria-current]")).to_contain_text("runs 3")
    expect(options(page)).to_have_count(3)
    field.press("Shift+Tab")
    expect(options(page)).to_have_count(4)
    with page.context.expect_page() as other:
        field.press("Control+Enter")
    assert other.value.url.endswith(first)
    watched.check()


@pytest.mark.nightly
def test_what_was_opened_lately_stands_in_the_empty_field_and_first(stage, watch):
    runs = [stage.run_in("finished") for _ in range(3)]
    watched = watch()
    oldest = f"/runs/{runs[0].pk}/"
    watched.open(oldest)
    page = watched.open("/suites/")
    page.keyboard.press("/")
    expect(options(page)).to_have_count(1)
    expect(options(page).first).to_have_attribute("href", oldest)
    page.keyboard.type("pinned")
    expect(options(page)).to_have_count(3)
    expect(options(page).first).to_have_attribute("href", oldest)
    watched.check()


@pytest.mark.nightly
def test_a_pasted_request_id_and_address_open_at_once(stage, watch):
    run = stage.run_in("finished")
    response = ResponseRecord.objects.filter(repeat__run=run, case_index=4).order_by("pk").first()
    ResponseRecord.objects.filter(pk=response.pk).update(request_id="req-041b7e2c")
    watched = watch()
    paste = """text => { const field = document.querySelector("#find input"); field.value = text;
        field.dispatchEvent(new ClipboardEvent("paste")); }"""
    for text, leads in (("req-041b7e2c", "/cases/case-004/"), (f"{watched.base}/workers/", "/workers/")):
        page = watched.open("/suites/")
        page.keyboard.press("/")
        page.evaluate(paste, text)
        page.wait_for_url(f"**{leads}")
    watched.check()


@pytest.mark.nightly
def test_nothing_found_says_where_it_looked_and_offers_the_answers(stage, watch):
    stage.run_in("finished")
    watched = watch()
    page = watched.open("/")
    page.keyboard.press("/")
    page.keyboard.type("zzzz")
    expect(page.get_by_text("Nothing found. Searched: runs")).to_be_visible()
    assert Axe().run(page).response["violations"] == []
    offered = page.get_by_role("link", name="Search the texts of")
    expect(offered).to_be_visible()
    offered.click()
    expect(page.get_by_text("The texts of all responses were searched.")).to_be_visible()
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.nightly), 390])
def test_without_scripts_the_field_leads_to_a_page_with_the_same_list(stage, watch, width):
    run = stage.run_in("finished")
    watched = watch(width=width, java_script_enabled=False)
    page = watched.open("/")
    field = page.get_by_role("searchbox", name="Find anything")
    field.fill(f"run {run.pk}")
    field.press("Enter")
    link = page.locator(".find-hit").first
    expect(link).to_contain_text(f"run {run.pk}")
    link.click()
    expect(page.get_by_role("heading", name=f"run {run.pk}")).to_be_visible()
    assert watched.complaints == []


@pytest.mark.nightly
def test_the_dialog_does_what_may_be_done_to_the_page_and_to_what_it_finds(stage, watch):
    run = stage.run_in("finished")
    watched = watch(role="release manager")
    page = watched.open(f"/runs/{run.pk}/")
    page.keyboard.press("/")
    expect(options(page)).to_contain_text([f"run {run.pk}", "Run again", "Compare with…", "Set as baseline"])
    field = page.get_by_role("dialog").get_by_role("combobox")
    field.fill("baseline")
    expect(options(page)).to_have_text([re.compile("Set as baseline")])
    field.press("Enter")
    expect(page.locator(":popover-open")).to_have_id("more")
    expect(page.get_by_label("Reason")).to_be_visible()
    page = watched.open("/")
    page.keyboard.press("/")
    field.fill(f"run {run.pk}")
    expect(options(page).filter(has_text="Run again")).to_have_count(1)
    options(page).filter(has_text="Run again").click()
    expect(page.get_by_text(f"it has the settings of run {run.pk}")).to_be_visible()
    watched.check()
