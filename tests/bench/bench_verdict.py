"""What the verdict rules do with simulated runs: the measured table of docs/verdict.md, written there anew."""

import re
from pathlib import Path
from typing import Any

from tests.bench.simulated import CLAIMS, SEED

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verdict.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
TABLE = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)
PAIRS = 1000

Row = dict[str, Any]


def measure() -> list[Row]:
    """Measure every claim and put the table into the page."""
    shares = [claim.measure(PAIRS) for claim in CLAIMS]
    lines = [
        f"| {PAIRS:,} pairs each, 800 cases, tolerance 1.0 | says | measured | promised |",
        "| --- | --- | --- | --- |",
        *(
            f"| {claim.situation} | {claim.says} | {100 * share:.1f} % | {claim.aim} |"
            for claim, share in zip(CLAIMS, shares, strict=True)
        ),
    ]
    page = PAGE.read_text(encoding="utf-8")
    table_of(page)
    PAGE.write_text(TABLE.sub(lambda _: "\n".join(lines) + "\n", page), encoding="utf-8")
    return [
        {
            "what": f"{claim.situation}: {claim.says} (seed {SEED})",
            "value": 100 * share,
            "unit": f"% of {PAIRS:,} pairs",
            "aim": claim.aim,
            "command": 'make bench ARGS="--only verdict"',
        }
        for claim, share in zip(CLAIMS, shares, strict=True)
    ]


def table_of(page: str) -> str:
    """What stands between the two marks. Raises ValueError where they are not there."""
    found = TABLE.search(page)
    if found is None:
        raise ValueError(f"docs/verdict.md has no {BEGIN} and {END}")
    return found.group()
