"""Questions for the verdict: two runs of one suite, asked and served alike unless a test says otherwise."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalboard.core import policy
from evalboard.core.comparability import Asked, Served
from evalboard.core.gate import Question

STRICT, PAIRED = (policy.parse(policy.DEFAULT_POLICIES[slug]["settings"]) for slug in ("strict", "paired"))
SERVED = Served(
    model_name="paint-1b",
    weights_digest="a" * 64,
    template_digest="b" * 64,
    fingerprint="c" * 64,
    manifest={"versions": {"vllm": "0.31.2"}, "engine": {"dtype": "float32"}},
    batch_class="alone",
    share=1.0,
)
ASKED = Asked(
    suite_version="colours v1",
    suite_digest="d" * 64,
    scorer_digest="e" * 64,
    max_tokens=256,
    stop=(),
    sampling={"temperature": 0, "seed": 42},
    served=[SERVED],
)
NEWER = {"fingerprint": "f" * 64, "manifest": {"versions": {"vllm": "0.32.0"}, "engine": {"dtype": "float32"}}}

FIVE = [651] * 5  # cases passed of 800, by repeat: 81.4 points


def served(**changes: Any) -> Asked:
    """As ASKED, but by a bucket that differs."""
    return replace(ASKED, served=[replace(SERVED, **changes)])


def runs(*counts: int, n_cases: int) -> NDArray[np.float64]:
    """Pass/fail scores of one side: repeat r passes the first counts[r] cases."""
    return (np.arange(n_cases)[:, None] < np.array(counts)).astype(np.float64)


def question(baseline: ArrayLike, candidate: ArrayLike, **changes: Any) -> Question:
    """Cases "case-0000" and on, each alone."""
    ours, theirs = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    known: dict[str, Any] = {
        "case_ids": [f"case-{index:04d}" for index in range(len(ours))],
        "groups": [""] * len(ours),
        "asked_baseline": ASKED,
        "asked_candidate": ASKED,
    }
    return Question(baseline=ours, candidate=theirs, **known | changes)


def pinned(n_broken: int = 0, n_fixed: int = 0, n_cases: int = 800, k: int = 5) -> Question:
    """Two pinned runs: no case flips, the candidate breaks some and fixes some."""
    baseline = runs(*[n_cases // 2] * k, n_cases=n_cases)
    candidate = baseline.copy()
    candidate[:n_broken] = 0
    candidate[n_cases - n_fixed :] = 1
    return question(baseline, candidate)
