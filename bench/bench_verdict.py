"""What the verdict rules do with simulated runs: the measured table of docs/verdict.md, written there anew."""

from bench import (
    measured_table,
    simulated_copies,
    simulated_draws,
    simulated_early,
    simulated_groups,
    simulated_judges,
    simulated_load,
    simulated_outcomes,
    simulated_settling,
    simulated_targeted,
)
from bench.row import Row
from bench.simulated import CLAIMS, SEED

PAIRS = 1000
PAIRS_DRAWN = 500  # of sampled runs
PAIRS_COPIED = 500  # with copies among their repeats
PAIRS_OF_CASES = 1000  # for what is said of single cases
PAIRS_LOADED = 1000  # of runs under unlike loads
PAIRS_WANDERING = 300  # of runs that wander as a whole
SUITES_OF_GROUPS = 1000
PAIRS_TARGETED = 200  # with further repeats of the noisiest cases
PAIRS_EARLY = 1000
PAIRS_JUDGED = 2000
PAIRS_FOLLOWED = 150  # of each true change, to the last look


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
    others = (
        simulated_draws.table(PAIRS_DRAWN),
        simulated_load.tables(PAIRS_LOADED),
        simulated_load.table_of_wandering(PAIRS_WANDERING),
        simulated_settling.table(PAIRS_FOLLOWED),
        simulated_outcomes.table(PAIRS_OF_CASES),
        simulated_targeted.table(PAIRS_TARGETED),
        simulated_groups.table(SUITES_OF_GROUPS),
    )
    measured_table.write("suites.md", simulated_judges.table(PAIRS_JUDGED), name="measured judges")
    measured_table.write("verdict.md", simulated_copies.tables(PAIRS_COPIED), name="measured copies")
    measured_table.write("verdict.md", simulated_early.table(PAIRS_EARLY), name="measured early")
    measured_table.write("verdict.md", [*lines, *(line for table in others for line in ("", *table))])
    return [
        Row(f"{claim.situation}: {claim.says} (seed {SEED})", 100 * share, "%", f"of {PAIRS:,} pairs", claim.aim)
        for claim, share in zip(CLAIMS, shares, strict=True)
    ]
