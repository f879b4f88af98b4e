"""How often simulated sides are called two computations, pairs by their planted causes, and how often noise stays
within what is said of it: the measured tables of docs/divergence.md.
"""

import numpy as np

from bench import measured_table, planted_causes, planted_recorded, simulated_share, simulated_strays
from bench.row import Row
from bench.simulated_shifts import POSITIONS, SEED, Situation, Stack, neighbours, share_called_two
from bench.simulated_spelling import count_flips
from evalboard.core.stats.numeric_noise import NEAR_SDS
from evalboard.wording.numbers import percent

COMPARISONS = 1000
OF_ONE_COMPARISONS = 10_000  # ten of which may be called two
OF_ONE = "at most 0.1 %"
BATCHED = Stack(0.03)
SCORED = (80,)  # positions: whole answers, and not up to where they part
COARSE = Stack(0.3)  # so far over the step of the logits that rounding hides nothing
STAYING = Stack(0.03, memory=0.9)
FEW_DIFFER = Stack(0.03, share=0.1)
UNEVEN = Stack(0.03, spread=0.5)
MOSTLY_ALIKE = Stack(0.03, alike=0.8)
QUIET = Stack(0.005, alike=0.8, dtype="float32")
ONE = (
    Situation("one computation: noise alike", BATCHED, BATCHED, repeats=5),
    Situation("one computation: noise alike, 3 repeats", BATCHED, BATCHED),
    Situation("one computation: noise of 0.01 against 0.05 nats", Stack(0.01), Stack(0.05), repeats=5),
    Situation("one computation: steady against batched", Stack(0.05, is_steady=True), Stack(0.05), repeats=5),
    Situation("one computation: 9 repeats of 10 are the same to the bit", FEW_DIFFER, FEW_DIFFER, repeats=5),
    Situation(
        "one computation: noise that stays along the answer",
        Stack(0.03, memory=0.9),
        Stack(0.03, memory=0.9),
        repeats=5,
    ),
    Situation(
        "one computation: repeats of 8 cases in 10 are the same to the bit", MOSTLY_ALIKE, MOSTLY_ALIKE, repeats=5
    ),
    Situation("one computation: noise larger or smaller by case (e to the 0.5)", UNEVEN, UNEVEN, repeats=5),
    Situation("one computation: 2 of 5 repeats are copies", Stack(0.03, copies=1), Stack(0.03, copies=1), repeats=5),
    Situation("one computation: 3 of 5 repeats are copies", Stack(0.03, copies=2), Stack(0.03, copies=2), repeats=5),
    Situation("one computation: 1 decoded, 4 copies", Stack(0.03, copies=3), Stack(0.03, copies=3), repeats=5),
    Situation("one computation: noise alike, scored by both stacks", BATCHED, BATCHED, repeats=5, positions=SCORED),
)
TWO = tuple(
    Situation(
        f"logits off by {share} of the noise, {k} repeats{which}", COARSE, COARSE, shift, repeats=k, positions=positions
    )
    for share, shift in (("¼", 0.25), ("½", 0.5), ("all", 1.0))
    for k in (3, 5)
    for which, positions in (("", POSITIONS), (", scored by both stacks", SCORED))
)
COPIES = tuple(
    Situation(f"logits off by ½ of the noise, 5 repeats, {n + 1} of them copies", stack, stack, 0.5, repeats=5)
    for n, stack in ((n, Stack(0.3, copies=n)) for n in (1, 3))
)
HIDDEN = Situation(
    "logits off by 0.02 nats, noise of 0.005, repeats of 8 cases in 10 the same to the bit", QUIET, QUIET, 4, repeats=5
)

PAIRS_CASES = 5000  # of 5 repeats: 20,000 pairs of neighbours
CPU = "float32 on CPU"
NOISE = (
    ("noise of 0.03 nats on each logit, bfloat16", Stack(0.03), 0.0),
    ("the same in 1 repeat of 10, the others the same to the bit", FEW_DIFFER, 0.0),
    ("the same in all, and 6 % of the answers from another build (0.33 nats off)", Stack(0.03), 0.06),
    ("none, and 6 % of the answers from another build, not left out", Stack(0.0), 0.06),
    ("rounding of float32 in 1 repeat of 10, on a CPU", Stack(1e-6, share=0.1, dtype=CPU), 0.0),
    ("noise of 0.1 nats, larger or smaller by case (e to the 0.5)", Stack(0.1, spread=0.5), 0.0),
)
LONG = (120,)
SPIKE, SPIKE_SDS = 2.0, 8.0
SPIKES = (
    ("noise of 0.1 nats alone", Stack(0.1), 0.0),
    ("noise of 0.03 nats, larger or smaller by position (e to the 1)", Stack(0.03, unevenness=1.0), 0.0),
    ("noise of 0.1 nats, and 2 nats at one position", Stack(0.1), SPIKE),
)


def measure() -> list[Row]:
    """Measure every situation and put the tables into the page."""
    parts = (measure_computation, measure_noise, measure_planted, measure_recorded, measure_strays, measure_shares)
    return [*(row for part in parts for row in part()), measure_spelling()]


def measure_spelling() -> Row:
    """Measure how many equal texts in other tokens count as flips."""
    n_flips = count_flips(COMPARISONS, seed=SEED)
    return _row("equal texts in other tokens: called flips", n_flips, f"of {COMPARISONS:,} pairs", "0")


def measure_computation() -> list[Row]:
    """Measure how often two sides are called two computations."""
    cells = [(each, OF_ONE_COMPARISONS, OF_ONE) for each in ONE] + [
        (each, COMPARISONS, "–") for each in (*TWO, *COPIES, HIDDEN)
    ]
    shares = [100 * share_called_two(each, n) for each, n, _ in cells]
    lines = [
        "| 100 cases a side | comparisons | called two | promised |",
        "| --- | --- | --- | --- |",
        *(
            f"| {each.name} | {n:,} | {share:.2f} % | {aim} |"
            for (each, n, aim), share in zip(cells, shares, strict=True)
        ),
    ]
    measured_table.write("divergence.md", lines)
    return [
        _row(f"{each.name}: called two", share, f"% of {n:,} comparisons", aim)
        for (each, n, aim), share in zip(cells, shares, strict=True)
    ]


def measure_noise() -> list[Row]:
    """Measure what the noise of a bucket comes to, and what the largest D of a pair would show."""
    noise_rows, noise_lines = _measure_buckets()
    spike_rows, spike_lines = _measure_spikes()
    measured_table.write("divergence.md", [*noise_lines, "", *spike_lines], name="measured noise")
    return [_row(*row) for row in (*noise_rows, *spike_rows)]


def measure_planted() -> list[Row]:
    """Measure what planted causes are called."""
    noise = planted_causes.measure_noise()
    rows, lines = planted_causes.measure([(each, noise) for each in planted_causes.list_planted(noise)])
    measured_table.write("divergence.md", lines, name="measured planted")
    return [_row(*row) for row in rows]


def measure_recorded() -> list[Row]:
    """Measure what causes that are planted on recorded answers are called."""
    noise = planted_recorded.measure_recorded_noise()
    planted = [(each, noise) for each in planted_recorded.list_recorded(noise)]
    rows, lines = planted_causes.measure(planted)
    measured_table.write("divergence.md", lines, name="measured recorded")
    return [_row(*row) for row in rows]


def _measure_buckets() -> tuple[list[tuple[str, float, str, str]], list[str]]:
    """Measure the noise of a bucket by the median of pairs, beside that by all positions together."""
    rows = []
    lines = [
        "| pairs of repeats | near, nats | by the root mean square of all | R > t(L) |",
        "| --- | --- | --- | --- |",
    ]
    for name, stack, routed in NOISE:
        pairs = neighbours(stack, 5, np.random.default_rng(SEED), n_cases=PAIRS_CASES, routed=routed)
        noise = pairs.measure_noise(stack.dtype)
        overall = np.sqrt((pairs.lengths @ pairs.rms**2) / pairs.lengths.sum())
        beyond = 100 * pairs.share_beyond(noise)
        lines.append(f"| {name} | {noise.near:.2g} | {NEAR_SDS * overall:.2g} | {beyond:.1f} % |")
        rows += [(f"near: {name}", noise.near, "nats", "–"), (f"R > t(L): {name}", beyond, "% of pairs", "–")]
    return rows, lines


def _measure_spikes() -> tuple[list[tuple[str, float, str, str]], list[str]]:
    """Measure what a limit for the largest |D| of a pair would find, and accuse."""
    rows = []
    lines = [f"| pairs of repeats, 120 positions | R > t(L) | max D over {SPIKE_SDS:g} sd |", "| --- | --- | --- |"]
    for name, stack, spike in SPIKES:
        rng = np.random.default_rng(SEED)
        noise = neighbours(stack, 5, rng, n_cases=PAIRS_CASES, positions=LONG).measure_noise(stack.dtype)
        pairs = neighbours(stack, 5, rng, n_cases=PAIRS_CASES, spike=spike, positions=LONG)
        beyond, over = 100 * pairs.share_beyond(noise), 100 * float(np.mean(pairs.largest > SPIKE_SDS * noise.sd))
        lines.append(f"| {name} | {beyond:.1f} % | {over:.1f} % |")
        rows += [(f"R > t(L): {name}", beyond, "% of pairs", "–"), (f"max D: {name}", over, "% of pairs", "–")]
    return rows, lines


def _row(what: str, value: float, unit: str, aim: str) -> Row:
    unit, _, note = unit.partition(" ")
    return Row(f"{what} (seed {SEED})", value, unit, note, aim)


def measure_strays() -> list[Row]:
    """Measure how often runs are said to be of two computations, and which answers are listed then."""
    measured = [(each, each.measure(each.n)) for each in simulated_strays.SITUATIONS]
    lines = [
        "| 5 repeats, noise of 0.03 nats, another build 0.33 nats off, where nothing else is said | runs"
        " | said to be of two | of the routed, listed | listed and not routed, a run | promised |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    rows = []
    for each, found in measured:
        aim, listed = ("–", f"{100 * found.listed:.1f} %") if each.routed else (OF_ONE, "–")
        share = f"{100 * found.share:.2f} %"
        lines.append(f"| {each.name} | {each.n:,} | {share} | {listed} | {found.wrong:.3f} | {aim} |")
        rows.append(_row(f"strays, {each.name}: two", 100 * found.share, f"% of {each.n:,} runs", aim))
        if each.routed:
            rows.append(_row(f"strays, {each.name}: listed", 100 * found.listed, "% of the routed answers", "–"))
        rows.append(_row(f"strays, {each.name}: listed and not routed", found.wrong, "answers a run", "–"))
    measured_table.write("divergence.md", lines, name="measured strays")
    return rows


def measure_shares() -> list[Row]:
    """Measure how often noise stays within what is said of it."""
    situations = simulated_share.SITUATIONS
    cells = [(each, f"at least {percent(each.at_least)}" if each.at_least else "–") for each in situations]
    measured = [each.measure(COMPARISONS) for each in situations]
    lines = [
        f"| {COMPARISONS:,} pairs each, 800 cases, 5 repeats a side | noise stayed within | promised | what was said |",
        "| --- | --- | --- | --- |",
        *(
            f"| {each.name} | {100 * share:.1f} % | {promised} | ± {up_to:.2f} |"
            for (each, promised), (share, up_to) in zip(cells, measured, strict=True)
        ),
    ]
    measured_table.write("divergence.md", lines, name="measured noise share")
    unit = f"% of {COMPARISONS:,} pairs"
    return [
        _row(f"{each.name}: noise stayed within what is said", 100 * share, unit, promised)
        for (each, promised), (share, _) in zip(cells, measured, strict=True)
    ]
