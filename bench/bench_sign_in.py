"""How long others wait while forty anonymous passwords are sent at once."""

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx

from bench.row import Row
from tests.faults.site import Site, site

AT_ONCE = 40
LOOK_SECONDS = 0.05


def measure() -> list[Row]:
    """The longest health check of a web server of two processes, and how long all forty took to be answered."""
    with tempfile.TemporaryDirectory() as folder, site(Path(folder), os.environ["DATABASE_URL"]) as web:
        web.serve(workers=2, threads=8)
        began = time.perf_counter()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            tries = [pool.submit(partial(_try, web), number) for number in range(AT_ONCE)]
            waits = [0.0]
            while not all(each.done() for each in tries):
                waits.append(_seconds(partial(web.get, "/api/v1/health")))
                time.sleep(LOOK_SECONDS)
        n_looked_at = sum(each.result() == httpx.codes.OK for each in tries)
        seconds = time.perf_counter() - began
    what = f"{AT_ONCE} wrong passwords at once"
    return [
        Row(f"{what}: longest health check", max(waits), "s"),
        Row(f"{what}: all answered after", seconds, "s"),
        Row(f"{what}: looked at", n_looked_at, "tries"),
    ]


def _try(web: Site, number: int) -> int:
    with web.browser() as client:
        client.get("/login/")
        mark = client.cookies["evalboard_csrf"]
        sent = {"username": f"person-{number}", "password": "wrong", "csrfmiddlewaretoken": mark}
        return client.post("/login/", data=sent).status_code


def _seconds(ask: Callable[[], object]) -> float:
    began = time.perf_counter()
    ask()
    return time.perf_counter() - began
