"""What verdicts come to at the edges: the table of docs/verdict.md, written there anew."""

from bench import measured_table, simulated_edges
from bench.row import Row
from bench.simulated import SEED

PAIRS = 500
FAULTY_PAIRS = 1000


def measure() -> list[Row]:
    """Measure every claim, and what faults on one side do, and put both tables into the page."""
    claims = [(claim, claim.measure(PAIRS)) for claim in simulated_edges.CLAIMS]
    counts, n_right = simulated_edges.count_verdicts(FAULTY_PAIRS)
    n_wrong = sum(count["wrong"] for count in counts.values())
    measured_table.write(
        "verdict.md",
        [
            f"| {PAIRS:,} pairs each, {simulated_edges.N_CASES} cases, tolerance 1.0 | says | measured | promised |",
            "| --- | --- | --- | --- |",
            *(f"| {each.situation} | {each.says} | {100 * share:.1f} % | {each.aim} |" for each, share in claims),
            "",
            f"| {FAULTY_PAIRS:,} pairs of 400 cases, with a fault on one side | right | wrong | inconclusive |",
            "| --- | --- | --- | --- |",
            *(
                f"| {fault} | {count['right']} | {count['wrong']} | {count['inconclusive']} |"
                for fault, count in counts.items()
            ),
            f"| the same pairs without a fault | {n_right:,} | 0 | {FAULTY_PAIRS - n_right} |",
        ],
        name="measured edges",
    )
    return [
        *(
            Row(f"{each.situation}: {each.says} (seed {SEED})", 100 * share, "%", f"of {PAIRS:,} pairs", each.aim)
            for each, share in claims
        ),
        Row(f"a fault on one side: wrong verdicts (seed {SEED})", n_wrong, "", f"of {FAULTY_PAIRS:,} pairs", "0"),
    ]
