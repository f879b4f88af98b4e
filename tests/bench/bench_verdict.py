"""What the verdict rules do with simulated runs: the measured table of docs/verdict.md, written there anew."""

from typing import Any

from tests.bench import measured_table, simulated_draws, simulated_settling
from tests.bench.simulated import CLAIMS, SEED

PAIRS = 1000
PAIRS_DRAWN = 500  # of sampled runs
PAIRS_FOLLOWED = 150  # of each true change, to the last look

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
    others = (simulated_draws.table(PAIRS_DRAWN), simulated_settling.table(PAIRS_FOLLOWED))
    measured_table.write("verdict.md", [*lines, *(line for table in others for line in ("", *table))])
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
