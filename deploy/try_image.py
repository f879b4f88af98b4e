"""Check the started web image from inside (deploy/build-without-docker.sh); exit on a problem."""

import importlib.util
import os
import re
import time
from pathlib import Path
from urllib.request import Request, urlopen

SERVER = "http://127.0.0.1:8033"
PATIENCE_SECONDS = 30


def answer(path: str) -> tuple[bytes, dict[str, str]]:
    with urlopen(Request(SERVER + path, headers={"Accept-Encoding": "br"}), timeout=10) as response:  # noqa: S310  the address stands above
        return response.read(), dict(response.headers)


def wait_for_health() -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            answer("/api/v1/health")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def check(what: str, *, holds: bool) -> None:
    print(f"{'yes' if holds else 'NO '}  {what}", flush=True)
    if not holds:
        raise SystemExit(1)


wait_for_health()
check("answers /api/v1/health", holds=True)
check("runs as account 10001", holds=os.getuid() == 10001)
check("cannot write its packages", holds=not any(os.access(path, os.W_OK) for path in ("/opt/venv", "/opt/evalboard")))
check("has no torch and no vllm", holds=not any(importlib.util.find_spec(name) for name in ("torch", "vllm")))

page, _ = answer("/login/")
sheet = re.search(rb"/static/shell/base\.[0-9a-f]{12}\.css", page)
check("names its static files by their content", holds=sheet is not None)
_, headers = answer(sheet[0].decode() if sheet else "")
is_compressed_for_good = headers["Content-Encoding"] == "br" and "immutable" in headers["Cache-Control"]
check("serves them as brotli, to be kept", holds=is_compressed_for_good)

plotly = next(Path("/opt/static/plotly").glob("plotly.min.*.js"))
body, headers = answer(f"/static/plotly/{plotly.name}")
check(f"serves Plotly's {plotly.stat().st_size:,} bytes as {len(body):,}", holds=headers["Content-Encoding"] == "br")
