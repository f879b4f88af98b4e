"""Compare page and trace diff page in a real browser: two clicks to the flip, keys, charts, themes, and axe."""

import pytest
from playwright.sync_api import expect

from frontend.compare import pair_address
from tests.browser import looks
from tests.frontend import two_runs
from tests.frontend.two_runs import said, sure, tie
from tests.nightly import nightly

pytestmark = pytest.mark.browser


@pytest.fixture
def runs(stage):
    """Another stack answered: two near ties, one of which cost a point, and some drift."""
    pairs = {case: two_runs.near_tie(case, n_more=8) for case in (5, 8)}
    ours = {case: pair[0] for case, pair in pairs.items()} | {6: said(6, [tie(1, 10), sure(0)])}
    theirs = {case: pair[1] for case, pair in pairs.items()} | {6: said(6, [tie(10, 1), sure(0)])}
    ours |= {7: said(7, [sure(1), sure(0)])}
    theirs |= {7: said(7, [sure(1, -0.2502), sure(0)])}
    by = stage.engine(stage.worker("other"), dtype="bfloat16")
    return two_runs.make(ours, theirs, by=by)


def diff_of(runs, case: str = "case-005") -> str:
    return pair_address.pair_url(runs[0].pk, runs[1].pk, case, repeats=(1, 1))


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.DESK)
def test_two_clicks_lead_from_the_runs_comparison_to_the_outlined_flip(runs, watch, theme, width):
    watched = watch(theme=theme, width=width)
    page = watched.open(pair_address.comparison_url(runs[0].pk, runs[1].pk))
    expect(page.locator("h1")).to_contain_text("points")
    expect(page.locator("table.changed tbody tr")).to_have_count(1)  # what broke is shown first
    page.locator(".filters a", has_text="near tie").click()
    expect(page.locator(".filters a", has_text="near tie")).to_have_attribute("aria-current", "true")
    page.wait_for_url("**/?outcome=broken&**")
    page.locator("table.changed tbody a").first.click()
    expect(page.get_by_role("heading", name="case-006")).to_be_visible()
    flip = page.locator(".baseline .token.flip")
    expect(flip).to_be_visible()
    assert flip.evaluate("element => getComputedStyle(element).outlineWidth") == "2px"
    expect(flip).to_have_attribute("aria-current", "true")
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_both_pages_are_quiet_fit_and_have_no_barrier(runs, watch, theme, width):
    watched = watch(theme=theme, width=width)
    barriers = []
    for address in (pair_address.comparison_url(runs[0].pk, runs[1].pk), diff_of(runs), diff_of(runs, "case-007")):
        page = watched.open(address)
        if page.locator(".plot").count():  # a short answer has a table in its place
            page.locator(".plot").first.scroll_into_view_if_needed()
            expect(page.locator(".plot .main-svg").first).to_be_visible()
        assert watched.overflow() == 0, address
        watched.check()
        barriers += watched.barriers()
    assert barriers == []


@pytest.mark.nightly
def test_keys_walk_both_sides_and_the_diverging_cases(runs, watch):
    watched = watch()
    watched.open(pair_address.comparison_url(runs[0].pk, runs[1].pk))  # whose order `n` follows
    page = watched.open(diff_of(runs))
    heading = page.locator("#alternatives h2")
    expect(heading).to_have_text("At 3")
    page.keyboard.press("[")
    expect(heading).to_have_text("At 1")
    expect(page.locator('.baseline [data-position="1"]')).to_be_focused()
    assert page.url.endswith("&at=1")
    page.keyboard.press("ArrowRight")
    expect(heading).to_have_text("At 2")
    assert page.locator('[aria-current="true"][data-position="2"]').count() == 2
    assert page.locator('[data-position][tabindex="0"]').count() == 1
    page.keyboard.press("]")
    expect(heading).to_have_text("At 3")
    page.reload()
    expect(heading).to_have_text("At 3")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="case-008")).to_be_visible()
    page.wait_for_load_state()  # a key that comes before the page's scripts is nobody's
    page.keyboard.press("p")
    expect(page.get_by_role("heading", name="case-005")).to_be_visible()
    watched.check()


@pytest.mark.nightly
def test_x_opens_a_row_to_its_whole_answers_and_closes_it_again(runs, watch):
    watched = watch()
    page = watched.open(pair_address.comparison_url(runs[0].pk, runs[1].pk, filters={"outcome": "all"}))
    row = page.locator("table.changed tbody tr").first
    page.keyboard.press("x")
    expect(row.locator("th a")).to_be_focused()
    expect(row.get_by_role("region", name="The baseline’s whole answer")).to_be_visible()
    expect(row.locator(".answer-line").first).to_be_hidden()
    assert watched.barriers() == []
    page.keyboard.press("x")
    expect(row.locator("pre")).to_have_count(0)
    expect(row.locator(".answer-line").first).to_be_visible()
    watched.check()


@pytest.mark.nightly
def test_on_a_phone_a_button_opens_a_row_to_its_whole_answers(runs, watch):
    watched = watch(width=390)
    page = watched.open(pair_address.comparison_url(runs[0].pk, runs[1].pk, filters={"outcome": "all"}))
    row = page.locator("table.changed tbody tr").filter(has=page.locator(".answer-line")).first
    button = row.get_by_role("button", name="whole answers")
    button.click()
    expect(row.get_by_role("region", name="The candidate’s whole answer")).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    assert (watched.overflow(), watched.barriers()) == (0, [])
    button.click()
    expect(row.locator("pre")).to_have_count(0)
    expect(row.locator(".answer-line").first).to_be_visible()
    watched.check()


@pytest.mark.nightly
def test_a_click_on_a_mark_of_the_chart_chooses_its_token(runs, watch):
    watched = watch()
    page = watched.open(diff_of(runs))
    marks = page.locator(".pair-plot .scatterlayer .trace").first.locator(".point")
    expect(marks.first).to_be_visible()
    marks.first.scroll_into_view_if_needed()
    box = marks.first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".hoverlayer .hovertext")).to_contain_text("Blue")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("#alternatives h2")).to_have_text("At 0")
    watched.check()


@pytest.mark.nightly
def test_going_back_after_a_filter_shows_the_whole_page_again(runs, watch):
    watched = watch()
    page = watched.open(pair_address.comparison_url(runs[0].pk, runs[1].pk, filters={"show": "pairs"}))
    n_rows = page.locator("table.divergences tbody tr").count()
    page.locator(".filters a", has_text="pairs whose score changed").click()
    expect(page.locator("table.divergences tbody tr")).to_have_count(1)
    page.go_back()
    expect(page.locator("table.divergences tbody tr")).to_have_count(n_rows)
    page.locator(".plot").first.scroll_into_view_if_needed()
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    watched.check()


@pytest.mark.nightly
def test_plotly_is_asked_for_when_a_chart_comes_into_view(runs, watch):
    watched = watch()
    watched.page.set_viewport_size({"width": 1280, "height": 300})
    asked = []
    watched.page.on("request", lambda request: asked.append(request.url))
    page = watched.open(pair_address.comparison_url(runs[0].pk, runs[1].pk))
    page.wait_for_load_state("networkidle")
    assert not any("plotly" in url for url in asked)
    page.locator(".plot").first.scroll_into_view_if_needed()
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    assert sum("plotly" in url for url in asked) == 1
    watched.check()


@pytest.mark.nightly
def test_the_flips_numbers_come_into_the_page_when_they_are_opened(runs, watch):
    watched = watch()
    watched.page.set_viewport_size({"width": 1280, "height": 300})
    page = watched.open(pair_address.comparison_url(runs[0].pk, runs[1].pk))
    assert page.locator("#flips-numbers table").count() == 0
    page.locator("figure", has=page.locator(".flips-plot")).locator("summary").evaluate("each => each.click()")
    expect(page.locator("#flips-numbers tbody tr")).to_have_count(3)
    assert page.locator("#flips-numbers a", has_text="case-006").get_attribute("href").endswith("&at=0")
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize("address", ["compare", *nightly(["pair"])])
def test_printing_from_the_keyboard_draws_every_chart_first(runs, watch, address):
    watched = watch()
    watched.page.set_viewport_size({"width": 1280, "height": 200})
    page = watched.open(diff_of(runs) if address == "pair" else pair_address.comparison_url(runs[0].pk, runs[1].pk))
    drawn = "document.querySelectorAll('.plot .main-svg').length > 0"
    page.evaluate(f"window.print = () => document.body.toggleAttribute('data-on-paper', {drawn})")
    assert page.locator(".plot .main-svg").count() == 0
    page.keyboard.press("Control+p")
    expect(page.locator("body[data-on-paper]")).to_have_count(1)
    watched.check()


@pytest.mark.nightly
def test_printing_from_the_menu_opens_the_numbers_of_what_is_not_drawn(runs, watch):
    watched = watch()
    watched.page.set_viewport_size({"width": 1280, "height": 200})
    page = watched.open(diff_of(runs))
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(page.get_by_role("region", name="Margins and gaps by position")).to_be_visible()
    watched.check()


@pytest.mark.nightly
def test_without_scripts_every_position_and_number_can_be_reached(runs, watch):
    watched = watch(java_script_enabled=False)
    page = watched.page
    page.goto(watched.base + pair_address.comparison_url(runs[0].pk, runs[1].pk))
    page.locator("figure", has=page.locator(".flips-plot")).locator("summary").click()
    page.get_by_role("link", name="Open the table").click()
    expect(page.get_by_role("region", name="Flips, margin and movement").locator("tbody tr")).to_have_count(3)
    page.go_back()
    page.locator("table.changed tbody a").first.click()
    page.locator(".candidate [data-position]").first.click()
    assert page.url.endswith("&at=0")
    expect(page.locator("#alternatives h2")).to_have_text("At 0")
    expect(page.get_by_role("region", name="Margins and gaps by position")).to_be_visible()


@pytest.mark.nightly
def test_a_phone_shows_shared_lines_once_and_both_sides_of_the_others(runs, watch):
    page = watch(width=390).open(diff_of(runs))
    expect(page.locator(".pair-line:not(.same) .candidate").first).to_be_visible()
    assert page.locator(".pair-line.same .candidate:visible").count() == 0
    boxes = [page.locator(f".pair-line:not(.same) .{side}").first.bounding_box() for side in ("baseline", "candidate")]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["x"] == boxes[1]["x"]
    assert boxes[0]["y"] < boxes[1]["y"]
