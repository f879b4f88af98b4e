"""The pages in a real browser: the way from the board to a token, keys, themes, charts, and axe on each page."""

import re
from datetime import UTC, datetime

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from runs.models import RunRecord
from runs.work import bind_bucket, claim_shard, finish_shard
from tests.browser import looks
from tests.frontend.stage import SLUG
from tests.nightly import nightly

pytestmark = pytest.mark.browser


def addresses(run_id: int) -> list[str]:
    """Every kind of page."""
    return [
        "/",
        "/suites/",
        f"/suites/{SLUG}/",
        f"/suites/{SLUG}/versions/1/",
        "/runs/",
        "/runs/new/",
        "/imports/",
        "/compare/",
        f"/runs/{run_id}/",
        reverse("response", args=[run_id, 1, "case-004"]),
        "/endpoints/",
        f"/find/?q={SLUG}",
        "/find/?q=zzzz",
        "/workers/",
        "/settings/",
    ]


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.DESK)
def test_the_way_from_the_board_to_a_token(stage, watch, theme, width):
    run = stage.run_in("finished")
    watched = watch(theme=theme, width=width)
    page = watched.open("/")
    page.get_by_role("link", name=f"run {run.pk}").first.click()
    expect(page.get_by_role("heading", name=f"run {run.pk}")).to_be_visible()
    page.locator("#cases ~ form input[name=q]").fill("case-004")
    page.get_by_role("button", name="Find", exact=True).click()
    page.locator("table.cases a", has_text="case-004").click()
    expect(page.get_by_role("heading", name="case-004")).to_be_visible()
    token = page.locator('[data-position="2"]')
    expect(token).to_have_attribute("aria-current", "true")
    page.locator('[data-position="1"]').click()
    expect(page.locator("#alternatives h2")).to_have_text("At 1")
    assert page.url.endswith("?at=1")
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_every_page_is_quiet_fits_and_has_no_barrier(stage, watch, theme, width):
    run = stage.run_in("finished")
    watched = watch(theme=theme, width=width)
    barriers = []
    for address in addresses(run.pk):
        watched.open(address)
        assert watched.overflow() == 0, address
        watched.check()
        barriers += watched.barriers()
    assert barriers == []


def test_arrow_keys_walk_the_tokens_and_the_address_follows(stage, watch):
    run = stage.run_in("finished")
    watched = watch()
    page = watched.open(reverse("response", args=[run.pk, 1, "case-004"]) + "?at=0")
    page.locator('[data-position="0"]').focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#alternatives h2")).to_have_text("At 1")
    page.keyboard.press("End")
    expect(page.locator("#alternatives h2")).to_have_text("At 8")
    page.keyboard.press("[")
    expect(page.locator("#alternatives h2")).to_have_text("At 2")
    assert page.url.endswith("?at=2")
    expect(page.locator('[data-position="2"]')).to_be_focused()
    assert page.locator('[data-position][tabindex="0"]').count() == 1
    page.reload()
    expect(page.locator("#alternatives h2")).to_have_text("At 2")
    watched.check()


@pytest.mark.nightly
def test_keys_lead_to_the_next_case_to_the_search_and_to_help(stage, watch):
    run = stage.run_in("finished")
    watched = watch()
    page = watched.open(reverse("response", args=[run.pk, 1, "case-004"]))
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="case-005")).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_role("heading", name="case-004")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).not_to_be_visible()
    page = watched.open(f"/runs/{run.pk}/")
    page.keyboard.press("/")
    field = page.get_by_role("combobox", name="Find anything")
    expect(field).to_be_focused()
    page.keyboard.type("n/a")
    expect(field).to_have_value("n/a")
    watched.check()


def test_a_term_opens_its_definition_by_key_and_by_click_one_at_a_time(stage, watch):
    watched = watch(width=390)
    page = watched.open(f"/suites/{SLUG}/")
    tall = page.evaluate("document.documentElement.scrollHeight")
    bucket, baseline = (page.locator(f"#term-{name}") for name in ("bucket", "baseline"))
    page.get_by_role("button", name="bucket", exact=True).focus()
    page.keyboard.press("Enter")
    expect(bucket).to_be_visible()
    page.get_by_role("button", name="Baselines", exact=True).click()
    expect(baseline).to_be_visible()
    expect(bucket).to_be_hidden()
    assert (page.evaluate("document.documentElement.scrollHeight"), watched.overflow()) == (tall, 0)
    page.keyboard.press("Escape")
    expect(baseline).to_be_hidden()
    watched.check()


@pytest.mark.nightly
def test_the_skip_link_is_first_and_leads_to_the_content(stage, watch):
    page = watch().open("/runs/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_the_theme_that_was_chosen_is_there_before_the_next_page_is_painted(stage, watch):
    watched = watch(theme="light")
    page = watched.open("/")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    switch = page.locator("[data-theme-switch]")
    switch.click()
    switch.click()
    expect(switch).to_have_attribute("aria-label", "Theme: dark")
    dark = page.evaluate(ground)
    assert dark != light
    page = watched.open("/runs/")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(ground) == dark
    watched.check()


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.nightly), 390])
def test_the_chart_is_drawn_in_place_in_the_inks_of_the_theme(stage, watch, width):
    stage.run_in("finished")
    watched = watch(width=width)
    page = watched.open(f"/suites/{SLUG}/")
    page.locator(".plot").scroll_into_view_if_needed()
    drawing = page.locator(".plot .main-svg").first
    expect(drawing).to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.main-svg')).position") == "absolute"
    box, frame = drawing.bounding_box(), page.locator(".plot").bounding_box()
    assert (round(box["width"]), round(box["height"])) == (round(frame["width"]), round(frame["height"]))
    assert page.locator(".plot .points .point").count() == 2
    fill = "getComputedStyle(document.querySelector('.plot .points .point')).fill"
    before = page.evaluate(fill)
    page.locator("[data-theme-switch]").click()
    page.locator("[data-theme-switch]").click()
    page.wait_for_function(f"{fill} !== {before!r}")
    watched.check()


def test_a_running_run_moves_on_its_page_and_settles_at_its_end(stage, watch):
    run, by = stage.start(), stage.worker()
    watched = watch()
    page = watched.open(f"/runs/{run.pk}/")
    expect(page.locator("#live .count b")).to_have_text("0 of 60")
    expect(page.locator("#live .finding")).to_contain_text("Waits for a worker of pool default")
    lease = claim_shard(worker=by)
    expect(page.locator("#live .finding")).to_contain_text("An engine starts.")
    process = stage.engine(by)
    bind_bucket(run_id=run.pk, bucket=process.bucket)
    stage.record(lease, process)
    finish_shard(lease=lease)
    expect(page.locator("#live .count b")).not_to_have_text("0 of 60")
    expect(page.locator("#run-status")).to_have_text("running")
    expect(page.locator("#live .finding")).to_contain_text("So far; not a verdict.")
    expect(page).to_have_title(re.compile(rf"^run {run.pk} \d+\s% "))
    expect(page.locator("#run-words")).to_have_text(re.compile(r"\d+ percent of the responses are in"))
    stage.serve(by, process)
    expect(page.get_by_text("73.3–76.7 points over 2 repeats.")).to_be_visible()
    expect(page.locator("#live")).to_have_count(0)
    expect(page).to_have_title(re.compile(rf"^run {run.pk} finished "))
    watched.check()


def test_the_pages_can_be_read_with_scripts_off(stage, watch):
    run = stage.run_in("finished")
    watched = watch(java_script_enabled=False)
    page = watched.page
    page.goto(watched.base + f"/suites/{SLUG}/")
    page.locator("summary", has_text="The same numbers as a table").click()
    expect(page.get_by_role("table", name="Score of each repeat by run and bucket")).to_be_visible()
    page.goto(watched.base + reverse("response", args=[run.pk, 1, "case-004"]))
    page.locator('[data-position="1"]').click()
    expect(page.locator("#alternatives h2")).to_have_text("At 1")
    expect(page.locator("[data-theme-switch]")).not_to_be_visible()


@pytest.mark.nightly
def test_a_page_on_paper_is_light_and_without_what_only_a_screen_can_use(stage, watch):
    run = stage.run_in("finished")
    watched = watch(theme="dark")
    page = watched.open(f"/runs/{run.pk}/")
    page.emulate_media(media="print")
    expect(page.locator(".bar")).not_to_be_visible()
    expect(page.locator(".actions").first).not_to_be_visible()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


@pytest.mark.nightly
@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.nightly), 390])
def test_signing_out_stands_behind_the_name(stage, watch, width):
    watched = watch(width=width)
    page = watched.open("/")
    out = page.get_by_role("button", name="Sign out", exact=True)
    name = page.get_by_role("button", name="signed in as")
    expect(out).to_be_hidden()
    name.click()
    expect(out).to_be_visible()
    assert watched.overflow() == 0
    page.keyboard.press("Escape")
    expect(out).to_be_hidden()
    expect(name).to_be_focused()
    name.click()
    out.click()
    expect(page).to_have_url(f"{watched.base}/login/")
    watched.check()


@pytest.mark.nightly
def test_what_a_button_opens_closes_by_esc_by_a_click_elsewhere_and_by_the_next(stage, watch):
    run = stage.run_in("finished")
    watched = watch(width=390)
    page = watched.open(f"/runs/{run.pk}/")
    more, compare = (page.get_by_role("button", name=name, exact=True) for name in ("More…", "Compare with…"))
    opened = page.locator(":popover-open")
    more.click()
    expect(opened).to_have_id("more")
    assert watched.overflow() == 0
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)
    expect(more).to_be_focused()
    more.click()
    compare.dispatch_event("click")  # the next, while the first is open
    expect(opened).to_have_id("compare-with")
    page.mouse.click(5, 700)
    expect(opened).to_have_count(0)
    page.keyboard.press("?")
    expect(opened).to_have_id("help")
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)
    watched.check()


@pytest.mark.nightly
def test_the_marks_of_twenty_repeats_wrap_on_a_phone(stage, watch):
    run = stage.run_in("finished")
    watched = watch(width=390)
    page = watched.open(f"/runs/{run.pk}/")
    page.evaluate(
        "document.querySelectorAll('.cases .scores').forEach((marks) => "
        "{ while (marks.children.length < 20) marks.append(marks.children[0].cloneNode(true)); })"
    )
    assert page.locator(".cases .scores").first.locator("> *").count() == 20
    assert watched.overflow() == 0
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["Lab", *nightly(["Board", "Settings"])])
def test_on_a_phone_the_section_of_the_page_is_in_view(stage, watch, name):
    watched = watch(width=390)
    page = watched.open("/")
    page.get_by_role("navigation", name="Sections").get_by_role("link", name=name).click()
    here = page.locator(".nav [aria-current]")
    expect(here).to_have_text(name)
    expect(here).to_be_in_viewport(ratio=1)
    watched.check()


@pytest.mark.nightly
def test_fingerprints_and_probes_are_reached_from_endpoints(stage, watch):
    watched = watch()
    page = watched.open("/endpoints/")
    sections = page.get_by_role("navigation", name="Sections").get_by_role("link")
    expect(sections).to_have_text(
        ["Board", "Releases", "Suites", "Runs", "Compare", "Endpoints", "Lab", "Workers", "Settings"]
    )
    for name in ("Fingerprints", "Probes"):
        page.goto(f"{watched.base}/endpoints/")
        page.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        expect(sections.filter(has_text="Endpoints")).to_have_attribute("aria-current", "page")
    watched.check()


@pytest.mark.nightly
def test_times_are_in_the_readers_zone_with_utc_on_hover_and_nothing_moves(stage, watch):
    run = stage.run_in("finished")
    RunRecord.objects.filter(pk=run.pk).update(ran_at=datetime(2026, 7, 1, 23, 30, tzinfo=UTC))
    watched = watch(timezone_id="Europe/Berlin")
    watched.page.add_init_script(looks.SHIFTS)
    page = watched.open("/runs/")
    time = page.locator("table.runs time").first
    expect(time).to_have_text("2026-07-02 01:30")
    expect(time).to_have_attribute("title", "2026-07-01 23:30:00 UTC")
    expect(page.locator("[data-zone]")).to_have_text("Europe/Berlin")
    # A slow machine may paint half a table, which grows with its rows: only what moves in the whole page counts.
    late = "window.shifts.filter((each) => each.startTime > whole)"
    whole = "performance.getEntriesByType('navigation')[0].domInteractive"
    assert page.evaluate(f"(whole => {late}.map((each) => each.value))({whole})") == []
    plain = watch(timezone_id="Europe/Berlin", java_script_enabled=False)
    expect(plain.open("/runs/").locator("table.runs time").first).to_have_text("2026-07-01 23:30 UTC")
    watched.check()
