"""Sentences for how many cases break or get fixed by chance between two sides."""

from typing import TYPE_CHECKING

from evalboard.wording.numbers import about, counted, listed

if TYPE_CHECKING:
    from evalboard.contract.compare import CaseParts, Comparison, OutcomeCounts
    from evalboard.contract.parts import ByChance
    from evalboard.contract.release import CasesChanged


# Loads with nothing in common move the same cases in every repeat: 53 to 100 % of marks were chance (docs/verdict.md).
UNDER_LOAD = "; where the two sides ran under unlike load, half of them or more may be"
IN_EVERY_REPEAT = "Repeats give the same bits each time: each case that changed did so in every repeat."


def count_changes(parts: "CaseParts", outcomes: "OutcomeCounts | None") -> str:
    """Count all cases of a comparison in parts that add up, and those that would be there by chance."""
    counts = (
        (parts.broken, "broke", outcomes),
        (parts.fixed, "fixed", outcomes),
        (parts.unstable, "unstable", outcomes),
        (parts.changed, "of another score", None),
        (parts.other_text, "of another text", None),
        (parts.same_text, "of the same text", None),
        (parts.unscored, "not scored", None),
        (parts.missing, "not answered", None),
    )
    shown = ", ".join(f"{n:,} {what}" for n, what, is_always in counts if n or is_always)
    text = f"Of {counted(parts.n_cases, 'case')}: {shown}." if shown else ""
    return " ".join(filter(None, (text, compare_with_chance(outcomes) if outcomes else "")))


def count_targeted(comparison: "Comparison") -> str:
    """Say which repeats of chosen cases a comparison of whole runs leaves out; "" if there are none."""
    sides = (("baseline", comparison.sides.baseline), ("candidate", comparison.sides.candidate))
    counts = [
        f"{counted(side.targeted.n_repeats, 'repeat')} of {counted(side.targeted.n_cases, 'case')} on the {name}"
        for name, side in sides
        if side.targeted is not None and comparison.repeat is None
    ]
    return f"Targeted repeats count in a release's verdict and in no number here: {listed(counts)}." if counts else ""


def compare_with_chance(changed: "OutcomeCounts | CasesChanged") -> str:
    """Say how many cases would change by chance, "" where that is not known."""
    if changed.is_in_every_repeat:
        return IN_EVERY_REPEAT
    broken, fixed = changed.broken_by_chance, changed.fixed_by_chance
    if broken is None or fixed is None:
        return ""
    n_broken, n_fixed = about(broken.n_expected), about(fixed.n_expected)
    return f"By chance alone {n_broken} would break and {'as many' if n_fixed == n_broken else n_fixed} would be fixed."


def explain_marks(
    outcome: str, by_chance: "ByChance | None", *, can_load_move: bool = False, is_in_every_repeat: bool = False
) -> str:
    """Say how many of a list's cases chance explains, and what the marked ones are; "" if unknown.

    can_load_move: a side's answers may depend on what else is decoded.
    """
    if is_in_every_repeat and outcome != "unstable":
        return IN_EVERY_REPEAT
    if by_chance is None:
        return ""
    text = f"By chance alone {about(by_chance.n_expected)} would be {outcome}"
    if not by_chance.n_beyond:
        return f"{text}, and none of these is beyond chance."
    n = f"{by_chance.n_beyond:,} {'is' if by_chance.n_beyond == 1 else 'are'}"
    text = f"{text}; {n} marked as beyond chance. On average at most 1 in 10 of such marks is wrong"
    return f"{text}{UNDER_LOAD}." if can_load_move else f"{text}."
