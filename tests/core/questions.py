"""Questions for the verdict: two runs of one suite, asked and served alike unless a test says otherwise."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalboard.core.compare.comparability import JudgeFacts, ServedShare, SideSetup
from evalboard.core.release.gate import GateQuestion
from evalboard.core.release.gate_verdict import GateVerdict
from evalboard.core.suite import policy
from evalboard.wording import release_verdict as words
from evalboard.wording.next_steps import next_step
from evalboard.wording.release_warnings import warning

STRICT, PAIRED = (policy.parse_policy(policy.DEFAULT_POLICIES[slug]["settings"]) for slug in ("strict", "paired"))
SERVED = ServedShare(
    model_name="paint-1b",
    weights_digest="a" * 64,
    template_digest="b" * 64,
    fingerprint="c" * 64,
    manifest={"versions": {"vllm": "0.31.2"}, "engine": {"dtype": "float32"}},
    batch_class="alone",
    share=1.0,
)
ASKED = SideSetup(
    suite_version="colours v1",
    suite_digest="d" * 64,
    scorer_digest="e" * 64,
    max_tokens=256,
    stop=(),
    sampling={"temperature": 0, "seed": 42},
    served=[SERVED],
)
JUDGE = JudgeFacts(
    name="referee",
    served=("referee-8b on vLLM 0.31.2",),
    models=("referee-8b",),
    identity=("9" * 64,),
    is_reported=False,
    anchors_digest="8" * 64,
    anchor_scores=((1.0,) * 10, (0.0,) * 10) * 25,
)
SHIPPED, PATCHED = (
    {
        "fingerprint": digest * 64,
        "manifest": {"versions": {"vllm": "0.31.2", "vllm_code": digest * 64}, "engine": {"dtype": "float32"}},
    }
    for digest in "12"
)
NEWER = {"fingerprint": "f" * 64, "manifest": {"versions": {"vllm": "0.32.0"}, "engine": {"dtype": "float32"}}}

FIVE = [651] * 5  # cases passed of 800, by repeat: 81.4 points


def served(**changes: Any) -> SideSetup:
    """As ASKED, but by a bucket that differs."""
    return replace(ASKED, served=[replace(SERVED, **changes)])


def judged(**changes: Any) -> SideSetup:
    """As ASKED, but scored by a judge that differs from JUDGE."""
    return replace(ASKED, judge=replace(JUDGE, **changes))


def runs(*counts: int, n_cases: int) -> NDArray[np.float64]:
    """Pass/fail scores of one side: repeat r passes the first counts[r] cases."""
    return (np.arange(n_cases)[:, None] < np.array(counts)).astype(np.float64)


def question(baseline: ArrayLike, candidate: ArrayLike, **changes: Any) -> GateQuestion:
    """Cases "case-0000" and on, each alone."""
    ours, theirs = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    known: dict[str, Any] = {
        "case_ids": [f"case-{index:04d}" for index in range(len(ours))],
        "groups": [""] * len(ours),
        "setup_baseline": ASKED,
        "setup_candidate": ASKED,
    }
    return GateQuestion(baseline=ours, candidate=theirs, **known | changes)


def pinned(n_broken: int = 0, n_fixed: int = 0, n_cases: int = 800, k: int = 5) -> GateQuestion:
    """Two pinned runs: no case flips, the candidate breaks some and fixes some."""
    baseline = runs(*[n_cases // 2] * k, n_cases=n_cases)
    candidate = baseline.copy()
    candidate[:n_broken] = 0
    candidate[n_cases - n_fixed :] = 1
    return question(baseline, candidate)


def reasons(judged: GateVerdict) -> list[str]:
    """What a person reads of why."""
    return [words.reason(line.code, line.facts) for line in judged.reasons]


def warnings(judged: GateVerdict, code: str = "") -> list[str]:
    """What a person reads beside any verdict; `code`: of these alone."""
    return [warning(line.code, line.facts) for line in judged.warnings if code in ("", line.code)]


def steps(judged: GateVerdict) -> list[str]:
    """What a person reads of what to do next."""
    return [next_step(line.code, line.facts) for line in judged.next]
