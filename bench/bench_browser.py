"""What a reader waits for: pages as `make up` serves them, each by itself and in Chromium with an empty cache."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from playwright.sync_api import Browser, sync_playwright

from bench import compare_data
from bench.main_pages import make_main_pages
from bench.row import Row, median_row
from tests.conftest import LAUNCH
from tests.faults.site import Site, site

ROUNDS, LOADS = 20, 5
PATIENCE_MS = 60_000.0
# What is drawn is scrolled to as soon as it is there, as by a reader who looks for nothing else.
WATCH = """
addEventListener("DOMContentLoaded", () => {
  document.querySelector(".plot")?.scrollIntoView();
  const watching = new MutationObserver(look);
  function look() {
    if (!document.querySelector(".plot .main-svg")) return;
    watching.disconnect();
    document.documentElement.dataset.drawnAt = performance.now();
  }
  watching.observe(document.body, { childList: true, subtree: true });
  look();  // what deferred scripts have drawn by now
});
"""
# A page may have loaded before it is painted.
PAINTED = """
new Promise((tell) => new PerformanceObserver((found) => {
  for (const paint of found.getEntriesByName("first-contentful-paint")) tell(paint.startTime);
}).observe({ type: "paint", buffered: true }))
"""
ENDED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


@dataclass(frozen=True, slots=True)
class Page:
    """An address and its aims, in ms of the server and bytes of the compressed page; 0 where there is none.

    Main pages are loaded in a browser whether they have a chart or not.
    """

    what: str
    address: str
    ms: int
    n_bytes: int = 0
    has_plot: bool = False
    is_main: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """One load with an empty cache: ms from the start of the navigation, bytes of all answers as they were sent.

    ended: when all that the page names had come; drawn: when its chart stood there, 0 without one.
    """

    painted: float
    ended: float
    drawn: float
    n_requests: int
    n_bytes: float


def measure() -> list[Row]:
    """Read every page over HTTP by itself, then load the main ones and those with a chart in a browser."""
    with _served() as web:
        pages = [*_main_pages(), *_pages()]
        rows = [row for page in pages for row in _sent(web, page)]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=_chromium(), args=LAUNCH)
            rows += [row for page in pages if page.is_main or page.has_plot for row in _loaded(browser, web, page)]
            browser.close()
    return rows


@contextmanager
def _served() -> Iterator[Site]:
    with tempfile.TemporaryDirectory() as folder:
        static = str(Path(folder) / "static")
        with site(Path(folder), os.environ["DATABASE_URL"], EVALBOARD_STATIC_DIR=static) as web:
            web.manage("collect_static")
            web.start()
            yield web


def _main_pages() -> list[Page]:
    made = make_main_pages()
    return [Page(f"{page.what} of the sample", page.address, 0, has_plot=page.has_plot, is_main=True) for page in made]


def _pages() -> list[Page]:
    made = f"made up, seed {compare_data.SEED}"
    compared = compare_data.make_pair("bench-compared", n_cases=100, n_positions=200, n_repeats=3)
    what = f"compare page, 50 of 100 cases, 300 flips, {made}"
    pages = [Page(what, f"/compare/{compared[0]}/{compared[1]}/", ms=50, n_bytes=15_000, has_plot=True)]
    for n, ms_response, ms_pair in ((22, 20, 30), (200, 40, 40), (2_000, 40, 50), (32_000, 0, 0)):
        baseline, candidate = compare_data.make_pair(f"bench-{n}", n_cases=1, n_positions=n)
        response, pair = f"/runs/{baseline}/repeats/1/cases/case-0/", f"/compare/{baseline}/{candidate}/cases/case-0/"
        pages.append(Page(f"response page, {n:,} positions, {made}", response, ms=ms_response))
        pages.append(Page(f"trace page, {n:,} positions, {made}", f"{pair}?repeat=1,1", ms=ms_pair, has_plot=n >= 200))
    return pages


def _sent(web: Site, page: Page) -> list[Row]:
    """The page's own answer, from the request to its last byte."""
    times = []
    for _ in range(ROUNDS + 2):  # the first ones find caches empty
        began = time.perf_counter()
        answer = web.pages.get(page.address)
        times.append(1000 * (time.perf_counter() - began))
        assert answer.status_code == httpx.codes.OK, answer.text[:500]
    with web.pages.stream("GET", page.address, headers={"Accept-Encoding": "gzip"}) as answer:
        sent = sum(len(piece) for piece in answer.iter_raw())
    aims = [f"at most {aim:,}" if aim else "" for aim in (page.ms, page.n_bytes)]
    return [
        median_row(f"{page.what}: answered", times[2:], "ms", aim=aims[0]),
        Row(f"{page.what}: its HTML as sent", sent, "bytes", aim=aims[1]),
    ]


def _loaded(browser: Browser, web: Site, page: Page) -> list[Row]:
    loads = [_load(browser, web, page) for _ in range(LOADS)]
    what = f"{page.what}: cold in Chromium"
    rows = [
        median_row(f"{what}, first contentful paint", [load.painted for load in loads], "ms", aim="at most 500"),
        median_row(f"{what}, loaded", [load.ended for load in loads], "ms", aim="at most 1,000"),
        Row(f"{what}, requests", median(load.n_requests for load in loads), ""),
        Row(f"{what}, sent with all that it loads", median(load.n_bytes for load in loads), "bytes"),
    ]
    if page.has_plot:
        rows.append(median_row(f"{what}, chart drawn", [load.drawn for load in loads], "ms", aim="at most 1,000"))
    return rows


def _load(browser: Browser, web: Site, page: Page) -> Load:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    base = str(web.pages.base_url).rstrip("/")
    context.add_cookies([{"name": each.name, "value": each.value or "", "url": base} for each in web.pages.cookies.jar])
    context.add_init_script(WATCH)
    shown = context.new_page()
    sent: list[float] = []
    network: Any = context.new_cdp_session(shown)
    network.send("Network.enable")
    network.send("Network.clearBrowserCache")
    network.on("Network.loadingFinished", lambda event: sent.append(event["encodedDataLength"]))
    shown.goto(base + page.address)
    drawn = 0.0
    if page.has_plot:
        shown.locator("html[data-drawn-at]").wait_for(state="attached")
        drawn = float(shown.locator("html").get_attribute("data-drawn-at") or 0)
    load = Load(shown.evaluate(PAINTED), shown.evaluate(ENDED), drawn, len(sent), sum(sent))
    context.close()
    return load


def _chromium() -> str:
    names = (os.environ.get("CHROMIUM") or "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        raise FileNotFoundError(
            "No Chromium; Debian has it as the package `chromium-headless-shell`, or set CHROMIUM to its path."
        )
    return found
