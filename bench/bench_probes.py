"""What the probes say of simulated calls: the measured tables of docs/probes.md, written there anew."""

from collections.abc import Sequence

from bench import measured_table, simulated_border, simulated_witnesses
from bench.row import Row
from bench.simulated_probes import CLAIMS, SEED, Claim


def measure() -> list[Row]:
    """Measure every claim and put the tables into the page."""
    return _measure(CLAIMS, "measured") + measure_witnesses() + measure_border()


def measure_border() -> list[Row]:
    """Measure how often series of watches are called changed, and put the table into the page."""
    cases = [(case, simulated_border.measure(case, case.n)) for case in simulated_border.CASES]
    lines = [
        "| situation | noticed within | measured | of series | promised |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {case.situation} | {case.within or case.n_before} probes | {100 * share:.1f} % | {case.n} "
            f"| {case.promised} |"
            for case, share in cases
        ),
    ]
    measured_table.write("probes.md", lines, name="measured border")
    return [
        Row(
            f"border, {case.situation} (seed {simulated_border.SEED})",
            100 * share,
            "%",
            f"of {case.n} series",
            case.promised,
        )
        for case, share in cases
    ]


def measure_witnesses() -> list[Row]:
    """Measure what the seed probe says of buckets and temperatures, and how often certificates are wrong."""
    return _measure(simulated_witnesses.CLAIMS, "measured witnesses")


def _measure(claims: Sequence[Claim], name: str) -> list[Row]:
    shares = [claim.measure(claim.n) for claim in claims]
    lines = [
        "| situation | says | measured | of probes | promised |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {claim.situation} | {claim.says} | {100 * share:.1f} % | {claim.n:,} | {claim.aim} |"
            for claim, share in zip(claims, shares, strict=True)
        ),
    ]
    measured_table.write("probes.md", lines, name=name)
    return [
        Row(f"{claim.situation}: {claim.says} (seed {SEED})", 100 * share, "%", f"of {claim.n:,} probes", claim.aim)
        for claim, share in zip(claims, shares, strict=True)
    ]
