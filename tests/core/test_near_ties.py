"""docs/temperature-zero.md counts the near ties of recorded answers, and where two dtypes part."""

from pathlib import Path

import numpy as np

from evalboard.core.trace import codec
from evalboard.core.trace.trace import TokenTrace

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs" / "temperature-zero.md").read_text().split())
NEAR = 0.1  # nats


def read_sides() -> list[list[TokenTrace]]:
    """Return the recorded answers in float32, and those to the same prompts in bfloat16."""
    data = Path(__file__).parent / "data"
    return [codec.read_block((data / f"smollm2-{dtype}.evt").read_bytes()) for dtype in ("float32", "bfloat16")]


def test_the_page_counts_the_near_ties_of_the_recorded_answers() -> None:
    sides = read_sides()
    margins = [np.concatenate([trace.margins() for trace in side]) for side in sides]
    counts = [len(each) for each in margins]
    near = [int((each < NEAR).sum()) for each in margins]
    shares = [f"{n} ({100 * n / of:.1f} %)" for n, of in zip(near, counts, strict=True)]
    touched = [sum(trace.margins().min() < NEAR for trace in side) for side in sides]
    n_tied = [int((each == 0).sum()) for each in margins]
    assert f"| positions | {counts[0]:,} | {counts[1]:,} |" in PAGE
    assert f"| positions with a margin below 0.1 nats | {shares[0]} | {shares[1]} |" in PAGE
    assert f"| answers with at least one of those | {touched[0]} of 40 | {touched[1]} of 40 |" in PAGE
    assert f"| {n_tied[0]} | {n_tied[1]} ({100 * n_tied[1] / counts[1]:.1f} %) |" in PAGE


def test_the_page_counts_the_answers_that_two_dtypes_change() -> None:
    parted = []
    for one, other in zip(*read_sides(), strict=True):
        n = min(len(one), len(other))
        differing = np.flatnonzero(one.token_ids[:n] != other.token_ids[:n])
        if len(differing):
            parted.append((int(differing[0]), float(one.margins()[differing[0]])))
    places, margins = zip(*parted, strict=True)
    assert f"gave {len(parted)} of the 40 prompts another answer" in PAGE
    assert f"In {sum(margin < NEAR for margin in margins)} of those {len(parted)} the first different token" in PAGE
    assert f"the largest margin was {max(margins):.2f}" in PAGE
    assert f"parted by position {np.median(places):.0f}" in PAGE
