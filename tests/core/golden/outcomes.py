"""Cases that broke or were fixed: how many, and how many of them by chance alone."""

import numpy as np

from evalboard.contract.compare import CaseParts, OutcomeCounts
from evalboard.contract.parts import ByChance
from evalboard.core.stats import CASE_OUTCOMES
from evalboard.wording.outcomes import count_changes, explain_marks
from tests.core.golden.readers import Sentence, Situations, read_gate
from tests.core.questions import PAIRED, question

NO_PARTS = dict.fromkeys(CaseParts.model_fields, 0)
NO_CASE = ByChance(n_expected=0.02, n_beyond=0)


def waver(n_broken: int, n_wavering: int) -> list[Sentence]:
    """Judge 800 cases of which some pass half of their repeats on either side, and others broke for good."""
    rng = np.random.default_rng(3)
    sides = [np.ones((800, 5)) for _ in range(2)]
    for side in sides:
        side[:n_wavering] = rng.random((n_wavering, 5)) < 0.5
    sides[1][800 - n_broken :] = 0
    return read_gate(question(*sides), PAIRED)


def parts_of(counts: OutcomeCounts, other_text: int = 40) -> CaseParts:
    """Divide 800 cases."""
    judged = {name: getattr(counts, name) for name in CASE_OUTCOMES}
    same_text = 800 - sum(judged.values()) - other_text
    return CaseParts(**NO_PARTS | judged | {"other_text": other_text, "same_text": same_text})


def read_counts(
    broken: int, fixed: int, unstable: int, *by_chance: ByChance, outcome: str = "broken", can_load_move: bool = False
) -> list[Sentence]:
    """Read what a comparison says of its cases, and what the list of one outcome does."""
    by_name = dict(zip(("broken_by_chance", "fixed_by_chance"), by_chance, strict=False))
    counts = OutcomeCounts(broken=broken, fixed=fixed, unstable=unstable, **by_name)
    marks = explain_marks(by_name.get(f"{outcome}_by_chance"), can_load_move=can_load_move)
    return [Sentence("cases", "", text) for text in (count_changes(parts_of(counts), counts), marks) if text]


def read_steady(broken: int, fixed: int) -> list[Sentence]:
    counts = OutcomeCounts(broken=broken, fixed=fixed, unstable=0, is_in_every_repeat=True)
    return [Sentence("cases", "", count_changes(parts_of(counts), counts))]


def read_mixed() -> list[Sentence]:
    """Read what a comparison says of its cases where several buckets answered a side, and some are not compared."""
    parts = NO_PARTS | {"changed": 31, "other_text": 12, "same_text": 745, "unscored": 1, "missing": 11}
    return [Sentence("cases", "", count_changes(CaseParts(**parts), None))]


SITUATIONS: Situations = {
    "A drop among cases that waver": lambda: waver(40, 60),
    "More broke than chance breaks": lambda: read_counts(
        12, 3, 31, ByChance(n_expected=2.9, n_beyond=9), ByChance(n_expected=2.8, n_beyond=0)
    ),
    "The same where load may move answers": lambda: read_counts(
        12, 3, 31, ByChance(n_expected=2.9, n_beyond=9), ByChance(n_expected=2.8, n_beyond=0), can_load_move=True
    ),
    "As many broke as by chance": lambda: read_counts(
        3, 4, 90, ByChance(n_expected=2.6, n_beyond=0), ByChance(n_expected=2.6, n_beyond=0)
    ),
    "One case broke where nothing wavers": lambda: read_counts(1, 0, 0, ByChance(n_expected=0.0, n_beyond=1), NO_CASE),
    "One was fixed": lambda: read_counts(0, 1, 0, NO_CASE, ByChance(n_expected=0.01, n_beyond=1), outcome="fixed"),
    "Repeats give the same bits each time": lambda: read_steady(12, 3),
    "Several buckets answered a side": read_mixed,
    "One run each, so that chance is not known": lambda: read_counts(12, 3, 0),
}
