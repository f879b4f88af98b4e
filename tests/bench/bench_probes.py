"""What the probes say of simulated calls: the measured table of docs/probes.md, written there anew."""

from tests.bench import measured_table
from tests.bench.row import Row
from tests.bench.simulated_probes import CLAIMS, SEED


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
    measured_table.write("probes.md", lines)
    return [
        Row(f"{claim.situation}: {claim.says} (seed {SEED})", 100 * share, "%", f"of {claim.n:,} probes", claim.aim)
        for claim, share in zip(CLAIMS, shares, strict=True)
    ]
