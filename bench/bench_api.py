"""The REST API under load: gunicorn as a team runs it, PostgreSQL and, in a process of their own, the clients."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from django.contrib.auth import get_user_model
from django.db import connection

from bench import api_data, compare_data, import_data
from bench.row import Row
from runs.access import create_token
from runs.models import RunRecord
from tests.servers import free_port

ROOT = Path(__file__).resolve().parents[1]
LOG = ROOT / "bench" / "results" / "web.log"
N_RUNS = 10_000  # of 100 responses each
SECONDS = 60
N_CLIENTS, EVERY, POSTS_PER_SECOND = 50, 2.0, 2.0
AT_ONCE = 16
ROUNDS = 40
COMPARED, LOGGED = 20_000, 1_760  # cases; responses of a log of 100 MB
PATIENCE_SECONDS = 120.0

Found = dict[str, Any]


def measure(*, n_runs: int = N_RUNS, seconds: float = SECONDS) -> list[Row]:
    """The lists first, while nothing but the made-up runs is there."""
    api_data.make_runs(n_runs)
    stored = api_data.n_stored()
    token = _token()
    newest = list(RunRecord.objects.order_by("-id").values_list("id", flat=True)[: 2 * N_CLIENTS])
    ended, at_work = newest[:N_CLIENTS], newest[N_CLIENTS:]
    api_data.set_at_work(at_work)
    with _web() as address:
        plan = {"address": address, "token": token}
        rows = _lists(plan, stored)
        rows += _polling(plan | {"seconds": seconds}, at_work)
        rows += _saturation(plan | {"seconds": seconds / 4}, ended)
    return rows + measure_busy(token, ended)


def measure_busy(token: str, run_ids: Sequence[int]) -> list[Row]:
    """Clients next to an import of 100 MB and a comparison of two runs of 20,000 cases; a web server each time."""
    compared = compare_data.make_runs(COMPARED)
    rows = []
    with tempfile.TemporaryDirectory(prefix="evalboard-bench-") as folder:
        for n_clients, candidate in ((50, compared.flipped), (200, compared.moved)):
            log, live = Path(folder) / f"{n_clients}.jsonl", f"127.0.0.1:{free_port()}"
            import_data.write_chat_lines(log, LOGGED, n_flips=n_clients)
            with _web(EVALBOARD_LIVE_BIND=live) as address:
                plan = {"address": address, "token": token, "live": f"http://{live}/live", "log": str(log)}
                plan |= {"kind": "busy", "runs": list(run_ids), "every": EVERY, "n_clients": n_clients}
                found = _load(plan | {"pair": [compared.baseline, candidate]})
            seconds, what = (
                found["seconds"],
                f"{n_clients} clients, import of {log.stat().st_size / 1e6:.0f} MB, compare",
            )
            rows += [
                Row(f"{what}: /live", *_p95(seconds["live"]), aim="at most 500"),
                Row(f"{what}: /api/v1/health", *_p95(seconds["health"])),
                Row(f"{what}: GET /runs/{{id}}/", *_p95(seconds["poll"]), aim="at most 2000"),
                Row(f"{what}: errors", len(found["problems"]), "errors", aim="0"),
            ]
            for name in ("import, answered", "import, stored", "compare"):
                rows.append(Row(f"{what}: {name}", seconds[name][0], "s"))
            _complain(found)
    return rows


def _polling(plan: Found, run_ids: Sequence[int]) -> list[Row]:
    """50 clients, once reading every answer and once with the tags of answers seen; progress moves every second."""
    rows = []
    for uses_tags, what in ((False, "every answer read"), (True, "with If-None-Match")):
        load = {
            "kind": "polled",
            "n_clients": N_CLIENTS,
            "every": EVERY,
            "posts_per_second": POSTS_PER_SECOND,
            "runs": list(run_ids),
            "body": api_data.BODY,
            "uses_tags": uses_tags,
        }
        with _moving(run_ids):
            found = _load(plan | load)
        polls = found["seconds"]["poll"]
        unchanged = len(found["seconds"].get("poll, 304", ()))
        name = f"GET /runs/{{id}}/, {N_CLIENTS} clients every {EVERY:g} s, {POSTS_PER_SECOND:g} posts a second, {what}"
        rows += [
            Row(name, *_p95(polls), aim="at most 150"),
            Row(f"{what}: the POST /runs/ meanwhile", *_p95(found["seconds"]["post"])),
            Row(f"{what}: errors", len(found["problems"]), "errors", f"{unchanged / len(polls):.0%} answered 304", "0"),
        ]
        _complain(found)
    return rows


def _saturation(plan: Found, run_ids: Sequence[int]) -> list[Row]:
    rows = []
    for uses_tags, what in ((False, "every answer read"), (True, "all answered 304")):
        load = {"kind": "saturated", "n_clients": AT_ONCE, "runs": list(run_ids)}
        found = _load(plan | load | {"uses_tags": uses_tags})
        n = len(found["seconds"]["poll"])
        rate = n / found["took"]
        p95 = 1000 * float(np.percentile(found["seconds"]["poll"], 95))
        note = f"p95 {p95:.0f} ms, {len(found['problems'])} errors"
        rows.append(Row(f"GET /runs/{{id}}/ at saturation, {AT_ONCE} clients, {what}", rate, "requests/s", note))
        _complain(found)
    return rows


def _lists(plan: Found, stored: Found) -> list[Row]:
    of_all = f"suite={api_data.SUITE}&endpoint={api_data.ENDPOINT}"
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    with httpx.Client(base_url=plan["address"], headers={"Authorization": f"Bearer {plan['token']}"}) as client:
        deep = _deep(client)
    paths = {
        "GET /runs/": "/api/v1/runs/",
        "GET /runs/?page_size=200": "/api/v1/runs/?page_size=200",
        "a page in the middle": deep,
        "?label=branch=b7": "/api/v1/runs/?label=branch%3Db7",
        f"?suite&endpoint&date={today}": f"/api/v1/runs/?{of_all}&date={today}",
        "?status=failed, of which there is none": "/api/v1/runs/?status=failed",
    }
    found = _load(plan | {"kind": "listed", "rounds": ROUNDS, "paths": list(paths.values())})
    _complain(found)
    held = f"{stored['runs']:,} runs and {stored['responses']:,} responses stored"
    return [
        Row(f"{name}, {held}" if name == "GET /runs/" else name, *_p95(found["seconds"][path]), aim="at most 200")
        for name, path in paths.items()
    ]


def _deep(client: httpx.Client) -> str:
    """The address of a page some way down."""
    address = "/api/v1/runs/?page_size=200"
    for _ in range(10):
        following = client.get(address, timeout=60).raise_for_status().json()["next"]
        if following is None:
            break
        address = following
    return address.replace("page_size=200", "page_size=50")


@contextmanager
def _moving(run_ids: Sequence[int]) -> Iterator[None]:
    """Workers' part: the runs get on by one case a second."""
    ended = threading.Event()

    def move() -> None:
        n = 0
        while not ended.wait(1.0):
            n += 1
            api_data.progress(list(run_ids), n)
        connection.close()

    mover = threading.Thread(target=move)
    mover.start()
    try:
        yield
    finally:
        ended.set()
        mover.join()


def _load(plan: Found) -> Found:
    command = [sys.executable, "-m", "bench.api_load"]
    done = subprocess.run(command, input=json.dumps(plan), capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"The clients ended with {done.returncode}: {done.stderr[-2000:]}")
    found: Found = json.loads(done.stdout)
    return found


@contextmanager
def _web(**environment: str) -> Iterator[str]:
    """gunicorn with the product's own configuration; no limit on how much one token may ask."""
    port = free_port()
    unlimited = {f"EVALBOARD_RATE_{scope}": "0" for scope in ("READ", "RUN", "SIGN", "ADMIN")}
    own = {"EVALBOARD_WEB_BIND": f"127.0.0.1:{port}", "EVALBOARD_SECRET_KEY": secrets.token_urlsafe(64)}
    command = [sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py"]
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("ab") as log:
        server = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | unlimited | own | environment, stdout=log, stderr=log
        )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not _answers(address):
            if time.monotonic() > deadline or server.poll() is not None:
                raise TimeoutError(f"The web server does not answer; {LOG} may say why.")
            time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=60)


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/api/v1/health", trust_env=False).is_success
    except httpx.TransportError:
        return False


def _token() -> str:
    user = get_user_model().objects.create_superuser(f"bench-{secrets.token_hex(3)}")
    until = datetime.now(UTC) + timedelta(hours=2)
    return create_token(user=user, name="bench", scopes=("read", "run"), expires_at=until)[1]


def _p95(seconds: Sequence[float]) -> tuple[float, str, str]:
    """The value, its unit and a note."""
    middle, most = 1000 * float(np.median(seconds)), 1000 * max(seconds)
    note = f"p95 of {len(seconds):,}; median {middle:.0f}, longest {most:.0f}"
    return 1000 * float(np.percentile(seconds, 95)), "ms", note


def _complain(found: Found) -> None:
    for problem in found["problems"][:5]:
        print(problem, file=sys.stderr)
