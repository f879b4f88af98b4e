"""The suite's page in a real browser: the chart as it is drawn, its table, a baseline set by hand."""

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import expect

from runs.access import grant_role
from runs.models import BaselineRecord
from tests.browser import looks
from tests.frontend import history_stage
from tests.frontend.history_stage import SLUG

pytestmark = pytest.mark.browser
PAGE = f"/suites/{SLUG}/"


@pytest.fixture
def made(transactional_db, settings):
    return history_stage.make(n_old=3)


@pytest.fixture
def watch_as(watch):
    """A watched page of a person with a role."""

    def opened(role: str, **options):
        watched = watch(**options)
        grant_role(user=get_user_model().objects.get(username="mira"), role=role)
        return watched

    return opened


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_the_chart_is_drawn_fits_and_has_no_barrier(made, watch, theme, width):
    watched = watch(theme=theme, width=width)
    page = watched.open(PAGE)
    page.locator(".plot").scroll_into_view_if_needed()
    expect(page.locator(".plot .points .point").first).to_be_visible()
    assert page.locator(".plot .points .point").count() == 5 * len(made.runs)
    assert page.locator(".plot .shapelayer path").count() == 2, "a line for each rotation"
    assert page.locator(".plot pattern").count() == 1, "only the expired baseline is hatched"
    said = page.locator(".plot .annotation-text").all_text_contents()
    assert sum("⇄" in words for words in said) == 2
    assert any("expired" in words for words in said)
    plot = page.locator(".plot").bounding_box()
    for place in page.locator(".plot .annotation").all():
        box = place.bounding_box()
        assert plot["x"] - 1 <= box["x"]
        assert box["x"] + box["width"] <= plot["x"] + plot["width"] + 1
    assert watched.overflow() == 0
    assert watched.barriers() == []
    watched.check()


@pytest.mark.nightly
def test_the_table_has_the_numbers_that_are_drawn(made, watch):
    watched = watch()
    page = watched.open(PAGE)
    page.locator(".plot").scroll_into_view_if_needed()
    expect(page.locator(".plot .points .point").first).to_be_visible()
    drawn = page.evaluate("""() => document.querySelector(".plot").data
        .filter((trace) => trace.meta.role === "marks")
        .flatMap((trace) => trace.y.map((value, at) => `${trace.customdata[at]} ${value.toFixed(1)}`)).sort()""")
    page.locator("summary", has_text="The same numbers as a table").click()
    table = page.get_by_role("table", name="Score of each repeat by run and bucket")
    expect(table).to_be_visible()
    told = table.evaluate("""(table) => [...table.tBodies[0].rows].flatMap((row) => row.cells[4].textContent
        .split(", ").map((value) => `${row.querySelector("a").getAttribute("href")} ${value.trim()}`)).sort()""")
    assert told == drawn
    watched.check()


@pytest.mark.nightly
def test_where_the_system_sets_the_colours_bands_have_borders(made, watch):
    watched = watch(forced_colors="active")
    page = watched.open(PAGE)
    page.locator(".plot").scroll_into_view_if_needed()
    expect(page.locator(".plot .points .point").first).to_be_visible()
    widths = page.evaluate("""() => document.querySelector(".plot").data.filter((trace) => trace.fill === "toself")
        .map((trace) => [trace.meta.role, trace.line.width, trace.line.dash])""")
    assert widths == [["expired", 1, "dash"], ["band", 1, "solid"]]
    watched.check()


@pytest.mark.nightly
def test_with_scripts_off_the_table_stands_for_the_chart(made, watch):
    watched = watch(java_script_enabled=False)
    page = watched.page
    page.goto(watched.base + PAGE)
    page.locator("summary", has_text="The same numbers as a table").click()
    expect(page.get_by_role("table", name="Score of each repeat by run and bucket")).to_be_visible()
    expect(page.get_by_role("table", name="Baselines as bands of the chart")).to_contain_text("expired")


@pytest.mark.nightly
def test_a_mark_leads_to_its_run(made, watch):
    watched = watch()
    page = watched.open(PAGE)
    page.locator(".plot").scroll_into_view_if_needed()
    expect(page.locator(".plot .points .point").first).to_be_visible()
    at = page.evaluate("""() => {
      const plot = document.querySelector(".plot"), { xaxis, yaxis } = plot._fullLayout;
      const marks = plot.data.find((trace) => trace.meta.role === "marks" && trace.meta.symbol === "circle");
      const box = plot.getBoundingClientRect();
      const at = { x: box.x + xaxis._offset + xaxis.d2p(marks.x[0]), y: box.y + yaxis._offset + yaxis.d2p(marks.y[0]) };
      return { ...at, url: marks.customdata[0] };
    }""")
    page.mouse.move(at["x"], at["y"])
    page.mouse.click(at["x"], at["y"])
    page.wait_for_url(f"**{at['url']}")


@pytest.mark.nightly
def test_a_release_manager_sets_the_baseline_from_the_head_of_the_page(made, watch_as):
    watched = watch_as("release manager")
    page = watched.open(PAGE)
    page.get_by_role("link", name="Set baseline").click()
    expect(page.get_by_label("Reason")).to_be_visible()
    page.get_by_label("Run", exact=True).select_option(str(made.candidate.pk))
    page.get_by_label("Reason").fill("It shipped.")
    page.get_by_role("button", name="Set the baseline").click()
    expect(page.get_by_text(f"Run {made.candidate.pk} is the baseline now.")).to_be_visible()
    assert BaselineRecord.objects.latest("pk").run_id == made.candidate.pk
    expect(page.get_by_text(f"current baseline: run {made.candidate.pk}")).to_be_visible()
    watched.check()


@pytest.mark.nightly
def test_a_run_is_set_as_the_baseline_from_its_own_page(made, watch_as):
    watched = watch_as("release manager", width=390)
    page = watched.open(f"/runs/{made.candidate.pk}/")
    page.get_by_text("More…").click()
    page.get_by_label("Reason").fill("It shipped.")
    page.get_by_role("button", name=f"Set run {made.candidate.pk} as the baseline").click()
    expect(page.get_by_text(f"Run {made.candidate.pk} is the baseline now.")).to_be_visible()
    assert watched.overflow() == 0
    watched.check()
