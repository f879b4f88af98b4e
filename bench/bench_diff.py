"""`evalboard diff` from the files to the report, as a person starts it: processor time by the operating system's count.

Of two logs that are small both are read at the same time, so that an idle machine with two cores takes little more than
half of the processor's time by the clock. Peak memory is of the largest process. Where Inspect is installed its own
reader finds the same flips in the same files, in the same run.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from bench import peer_install
from bench.import_data import N_POSITIONS, SEED, write_chat_lines, write_inspect_log
from bench.row import Row, median_row

SHORT = 60  # positions, so that 20,000 responses are within the 512 MiB that are read of one log
INSPECT_LOGS, MOST = "Inspect logs", 500  # MB
REPORTED, OPENED = 1000, 5  # samples of the logs whose report is written, and how often a browser opens it
Write = Callable[..., None]
# The name, the files' ending, what writes them, positions, and for each number of responses the seconds that it may
# take. No more than 2,300 of such samples are read of one Inspect log.
LOGS: tuple[tuple[str, str, Write, int, dict[int, float]], ...] = (
    (INSPECT_LOGS, "eval", partial(write_inspect_log, is_of_today=True), N_POSITIONS, {100: 0.8, 1000: 2, 2000: 4}),
    ("deflated Inspect logs", "eval", write_inspect_log, N_POSITIONS, {1000: 2.5}),
    ("raw chat lines", "jsonl", partial(write_chat_lines, n_positions=SHORT), SHORT, {100: 0.8, 1000: 2, 20_000: 30}),
)


def measure() -> list[Row]:
    """Compare two logs of each kind and size: a tenth of the second one's answers flip, and every logprob moved."""
    rows = []
    for what, ending, write, n_positions, sizes in LOGS:
        for n, seconds in sizes.items():
            with tempfile.TemporaryDirectory() as folder:
                paths = [Path(folder) / f"{side}.{ending}" for side in "ab"]
                write(paths[0], n)
                write(paths[1], n, n_flips=n // 10, shift=0.0001)
                by_clock, by_processor, peak = _run(paths)
                name = f"diff, 2 × {n:,} responses of {n_positions} positions, {what}, made up, seed {SEED}"
                note = f"of the processor, all processes with their start; {by_clock:.2f} by the clock"
                rows += [
                    Row(name, by_processor, "s", note, f"at most {seconds:g} by the clock, idle"),
                    Row(f"{name}: memory", peak, "MB", "peak", f"at most {MOST}"),
                ]
                if (what, n) == (INSPECT_LOGS, REPORTED):
                    rows += _report(name, paths, by_processor)
                    rows += _beside_inspect(name, paths, by_processor, n // 10)
    return rows


def _report(name: str, paths: list[Path], without: float) -> list[Row]:
    """Write the report of two logs and open it in Chromium. without: the seconds of the same without it."""
    file = paths[0].with_name("report.html")
    _, by_processor, _ = _run(paths, "--html", str(file))
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        trials = [_open(browser, file) for _ in range(OPENED)]
        browser.close()
    note = f"of the processor, and {by_processor - without:.2f} of them for the report"
    return [
        Row(f"{name}, with --html", by_processor, "s", note),
        Row(f"{name}: the report", file.stat().st_size / 1000, "kB", "one file", "at most 400"),
        median_row(f"{name}: opening the report, of the processor", trials, "ms", aim="at most 500 by the clock, idle"),
    ]


def _open(browser: Browser, file: Path) -> float:
    """Return the processor time of the page's thread until it is loaded and drawn, in ms."""
    page = browser.new_page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(file.as_uri())
    page.screenshot()
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    page.close()
    return float(1000 * metrics["TaskDuration"])


def _run(paths: list[Path], *options: str) -> tuple[float, float, float]:
    """Return seconds by the clock, seconds of the processor, and the peak in MB."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "evalboard", "diff", *map(str, paths), "--limit", "5", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _beside_inspect(name: str, paths: list[Path], ours: float, n_flips: int) -> list[Row]:
    """Find the flips by Inspect's own reader, without its start: from all fields, and without those that none needs."""
    what, python = f"{name}: Inspect's own reader against it", peer_install.find()
    if python is None:
        return [Row(what, f"Inspect is not installed; {peer_install.COMMAND}")]
    rows = []
    for fields, options in (("all fields", ["--whole"]), ("without events and messages", [])):
        script = Path(__file__).with_name("peer_inspect.py")
        answer = subprocess.run(
            [python, script, *paths, *options], check=True, stdout=subprocess.PIPE, text=True, cwd=script.parent
        )
        theirs = json.loads(answer.stdout.splitlines()[-1])
        assert theirs["n_flips"] == n_flips, theirs
        note = f"{theirs['processor_seconds']:.1f} s of the processor, its start aside; Inspect {theirs['version']}"
        aim = "at least 25" if "--whole" in options else ""
        rows.append(Row(f"{what}, {fields}", theirs["processor_seconds"] / ours, "times", note, aim))
    return rows
