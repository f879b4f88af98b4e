"""Sentences for how many cases break or get fixed by chance between two sides."""

from typing import TYPE_CHECKING

from evalboard.contract.treatments import CHANGED
from evalboard.wording.messages import Messages, speak
from evalboard.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalboard.contract.compare import CaseOutcome, CaseParts, ComparedSides, Comparison, OutcomeCounts
    from evalboard.contract.parts import ByChance
    from evalboard.contract.release import CasesChanged


# Loads with nothing in common move the same cases in every repeat: 53 to 100 % of marks were chance (docs/verdict.md).
UNDER_LOAD = "Different load on both sides may cause half of them or more."
OUTCOMES = Messages(
    "outcomes",
    {
        ("change", "asserts"): {
            "counts": "Of {n:case}: {parts}.",
            "broke": f"mean score over repeats fell by {CHANGED:g} or more",
            "moved": f"Broken or fixed: a case’s mean score moved by {CHANGED:g} or more.",
            "by_metric": "The change is by {metric}, not by these counts.",
        },
        ("chance", "denies"): {
            "in_every_repeat": "Repeats give the same bits. Each change is there in every repeat.",
            "beyond": "{n:,} {n:is|are} beyond chance (marked). At most 1 in 10 marks is wrong on average.",
        },
        ("chance", "asserts"): {
            "by_chance": "Expect {broken:about} broken and {fixed:about} fixed by chance.",
            "marks": "Expect {n:about} of these by chance.",
            "none_beyond": "No case is beyond chance.",
        },
        ("chance", "unknown"): {
            "one_repeat": "Only one repeat of a side counts, so which of these are chance is not known.",
        },
        ("load", "allows"): {"under_load": UNDER_LOAD},
        ("repeats", "asserts"): {
            "targeted": "Targeted repeats count only in a release's verdict: {parts:list}.",
            "samples": "Passes leave out copies, and answers of a cache or a fallback.",
        },
    },
)


def count_changes(parts: "CaseParts", outcomes: "OutcomeCounts | None") -> str:
    """Count all cases of a comparison in parts that add up, and those that would be there by chance."""
    counts = (
        (parts.broken, "broke", outcomes),
        (parts.fixed, "fixed", outcomes),
        (parts.unstable, "unstable", outcomes and is_chance_known(outcomes)),
        (parts.changed, "with another score", None),
        (parts.other_text, "with another answer (same score)", None),
        (parts.same_text, "with the same answer", None),
        (parts.unscored, "not scored", None),
        (parts.missing, "not answered", None),
    )
    shown = ", ".join(f"{n:,} {what}" for n, what, is_always in counts if n or is_always)
    text = OUTCOMES.write("counts", n=parts.n_cases, parts=shown) if shown else ""
    return " ".join(filter(None, (text, compare_with_chance(outcomes) if outcomes else "")))


def count_targeted(comparison: "Comparison") -> str:
    """Say which repeats of chosen cases a comparison of whole runs leaves out; "" if there are none."""
    sides = (("baseline", comparison.sides.baseline), ("candidate", comparison.sides.candidate))
    parts = [
        f"{counted(side.targeted.n_repeats, 'repeat')} of {counted(side.targeted.n_cases, 'case')} on the {name}"
        for name, side in sides
        if side.targeted is not None and comparison.repeat is None
    ]
    return OUTCOMES.write("targeted", parts=parts) if parts else ""


def explain_passes(sides: "ComparedSides", cases: "Iterable[CaseOutcome]") -> str:
    """Say which repeats the scores of listed cases leave out; "" if they leave out none."""
    baseline, candidate = (
        sum(repeat.score is not None for repeat in side.repeats) for side in (sides.baseline, sides.candidate)
    )
    is_short = any(len(each.scores_baseline) < baseline or len(each.scores_candidate) < candidate for each in cases)
    return OUTCOMES.write("samples") if is_short else ""


def is_chance_known(changed: "OutcomeCounts | CasesChanged") -> bool:
    """Return whether repeats show what a case does by chance, as one repeat on a side does not."""
    return bool(changed.is_in_every_repeat) or None not in (changed.broken_by_chance, changed.fixed_by_chance)


def compare_with_chance(changed: "OutcomeCounts | CasesChanged") -> str:
    """Say how many cases would change by chance, or that one repeat does not show it."""
    if changed.is_in_every_repeat:
        return OUTCOMES.write("in_every_repeat")
    broken, fixed = changed.broken_by_chance, changed.fixed_by_chance
    if broken is None or fixed is None:
        return OUTCOMES.write("one_repeat")
    return OUTCOMES.write("by_chance", broken=broken.n_expected, fixed=fixed.n_expected)


def define_changes(changed: "CasesChanged", metric: str | None) -> str:
    """Say when a case is broken or fixed, and that a metric over samples does not count them.

    "" where no case is.
    """
    if not (changed.n_broken or changed.n_fixed):
        return ""
    is_mean = metric in (None, "mean")
    return speak([OUTCOMES.claim("moved"), *([] if is_mean else [OUTCOMES.claim("by_metric", metric=metric)])])


def explain_marks(by_chance: "ByChance | None", *, can_load_move: bool = False) -> str:
    """Say how many of a list's cases chance explains, and what the marked ones are; "" if unknown.

    can_load_move: a side's answers may depend on what else is decoded.
    """
    if by_chance is None:
        return ""
    claims = [OUTCOMES.claim("marks", n=by_chance.n_expected)]
    if not by_chance.n_beyond:
        return speak([*claims, OUTCOMES.claim("none_beyond")])
    claims.append(OUTCOMES.claim("beyond", n=by_chance.n_beyond))
    return speak([*claims, OUTCOMES.claim("under_load")] if can_load_move else claims)
