"""What the probes say of simulated calls: the measured table of docs/probes.md, written there anew."""

import re
from pathlib import Path
from typing import Any

from tests.bench.simulated_probes import CLAIMS, SEED

PAGE = Path(__file__).resolve().parents[2] / "docs" / "probes.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
TABLE = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)

Row = dict[str, Any]


def measure() -> list[Row]:
    """Measure every claim and put the table into the page."""
    shares = [claim.measure(claim.n) for claim in CLAIMS]
    lines = [
        "| situation | says | measured | of probes | promised |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {claim.situation} | {claim.says} | {100 * share:.1f} % | {claim.n:,} | {claim.aim} |"
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
            "unit": f"% of {claim.n:,} probes",
            "aim": claim.aim,
            "command": 'make bench ARGS="--only probes"',
        }
        for claim, share in zip(CLAIMS, shares, strict=True)
    ]


def table_of(page: str) -> str:
    """What stands between the two marks. Raises ValueError where they are not there."""
    found = TABLE.search(page)
    if found is None:
        raise ValueError(f"docs/probes.md has no {BEGIN} and {END}")
    return found.group()
