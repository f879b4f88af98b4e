"""Releases: what a release manager reads first, several suites, and how the runs were served."""

from tests.core.golden.readers import Situations, read_release, read_warning
from tests.core.golden.verdicts import noisy, scattered, served_otherwise
from tests.core.questions import NEWER, pinned, question, runs

WHO = {"run": 12, "side": "candidate"}

SITUATIONS: Situations = {
    "One suite ships": lambda: read_release(("critical", "colours", pinned())),
    "One suite does not": lambda: read_release(("critical", "colours", pinned(16))),
    "One suite with scores that range": lambda: read_release(("critical", "colours", scattered())),
    "One suite is too noisy": lambda: read_release(("critical", "colours", noisy())),
    "One run each": lambda: read_release(
        ("critical", "colours", question(runs(651, n_cases=800), runs(637, n_cases=800)))
    ),
    "Two suites that decide ship": lambda: read_release(
        ("critical", "colours", pinned()), ("critical", "towns", pinned())
    ),
    "One suite of two cannot be compared": lambda: read_release(
        ("critical", "colours", pinned()), ("critical", "towns", served_otherwise(**NEWER))
    ),
    "A drop that is clear by itself, and not among four suites": lambda: read_release(
        *[("critical", name, pinned()) for name in ("colours", "towns", "rivers")],
        ("critical", "sums", pinned(9, n_cases=804)),
    ),
    "The same at the last look": lambda: read_release(
        *[("critical", name, pinned(k=20)) for name in ("colours", "towns", "rivers")],
        ("critical", "sums", pinned(17, n_cases=1600, k=20)),
    ),
    "An advisory suite moved": lambda: read_release(
        ("critical", "colours", pinned()), ("advisory", "towns", pinned(80))
    ),
    "A pin is broken": lambda: read_warning("pins_broken", **WHO, pins=["max_num_seqs"]),
    "Five pins are broken": lambda: read_warning("pins_broken", **WHO, pins=["a", "b", "c", "d", "e"]),
    "Two backends served a side": lambda: read_warning(
        "several_buckets", **WHO, buckets=[[0.94, "A", "alone", 81.4], [0.06, "B", "mixed", None]]
    ),
    "Another model answered a side": lambda: read_warning(
        "other_model", side="baseline", asked="gpt-4-turbo", answered=["gpt-3.5-turbo-0125"], n=1000, total=1000
    ),
    "Responses are not vouched for": lambda: read_warning("unvouched", **WHO, n=1200),
    "One response is not vouched for": lambda: read_warning("unvouched", **WHO, n=1),
    "Answers of a side were cut inside their thinking": lambda: read_warning("truncated", **WHO, n=31, is_log=False),
    "One answer of a side was cut inside its thinking": lambda: read_warning("truncated", **WHO, n=1, is_log=False),
    "Answers of one side alone were cut": lambda: read_warning(
        "endings_differ", **WHO, ending="cut", n=7, total=800, n_other=0, total_other=800
    ),
    "One more answer of a side was filtered": lambda: read_warning(
        "endings_differ", **WHO, ending="filtered", n=1, total=4, n_other=0, total_other=4
    ),
    "Prompts were refused on both sides": lambda: read_warning("prompts_filtered", **WHO, n=3, is_both=True),
    "A prompt was refused on one side": lambda: read_warning("prompts_filtered", **WHO, n=1, is_both=False),
    "Answers of a greedy side were drawn": lambda: read_warning("not_greedy", **WHO, n=12, total=800),
    "Two computations answered a side": lambda: read_warning("two_computations", **WHO, n=48, distance=0.331),
    "Repeats of a pinned side differ": lambda: read_warning(
        "unsteady", **WHO, batch_class="alone", n_cases=200, n_apart=2
    ),
    "A side was read from a log": lambda: read_warning("imported", **WHO),
    "A side was served by others": lambda: read_warning("reported", **WHO),
    "A side under invariant without a certificate": lambda: read_warning("uncertified", **WHO, hosts=["gpu-1"]),
    "A side was batched as cases came": lambda: read_warning("rough_profile", **WHO),
    "A repeat was cancelled": lambda: read_warning("repeats_left_out", **WHO, n=1),
    "Three repeats were cancelled": lambda: read_warning("repeats_left_out", **WHO, n=3),
    "A single repeat": lambda: read_warning("noise_unmeasured", **WHO),
    "One engine process": lambda: read_warning("one_process", **WHO, n_repeats=5),
    "Three candidates were tried": lambda: read_warning("candidates_tried", run=7, n=3, candidates=[9, 11, 12]),
    "Twelve candidates were tried": lambda: read_warning("candidates_tried", run=7, n=12, candidates=[9, 11, 12]),
    "The policy changed": lambda: read_warning(
        "policy_changed", tolerance=2.0, before=[[4, "strict", 1.0, "no_ship"], [5, "paired", 1.5, "inconclusive"]]
    ),
    "It was signed under earlier rules": lambda: read_warning("earlier_rules"),
    "The baseline was let through": lambda: read_warning(
        "waived_baseline", run=7, person="Ada", until="2026-12-01", release=3
    ),
}
