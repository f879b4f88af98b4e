"""Verdicts and decisions on pages: a word and a glyph each, so that colour is never needed."""

from dataclasses import dataclass

from evalboard.wording.release_names import NAMES, verdict_name


@dataclass(frozen=True, slots=True)
class VerdictMark:
    """`glyph` is a symbol of the sprite, and the tail of the class that gives it its ink."""

    code: str
    label: str
    glyph: str


VERDICTS = {code: VerdictMark(code, verdict_name(code).capitalize(), code.replace("_", "-")) for code in NAMES}


@dataclass(frozen=True, slots=True)
class OutcomeMark:
    """A decision on a verdict. glyph, ink: "" if there is none."""

    label: str
    glyph: str = ""
    ink: str = ""


OUTCOMES = {
    "unsigned": OutcomeMark("not signed"),
    "approved": OutcomeMark("approved", "pass", "pass"),
    "rejected": OutcomeMark("rejected", "fail", "fail"),
    "waived": OutcomeMark("waived", "pass", "partly"),
    "expired": OutcomeMark("waiver expired", "warning", "partly"),
    "void": OutcomeMark("sign-off void", "warning", "partly"),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """A possible decision, and what it tells later readers."""

    label: str
    happened: str
    means: str


DECISIONS = {
    "approve": Decision("Approve", "Approved", "the verdict is ship, and it may go out"),
    "reject": Decision("Reject", "Rejected", "it does not go out, whatever the verdict; say why"),
    "waive": Decision("Waive", "Waived", "it goes out without a ship verdict, for a reason and until a date"),
}


def decisions_on(verdict: str | None) -> tuple[str, ...]:
    """Return the possible decisions: only ship can be approved, and only other verdicts waived."""
    return ("approve", "reject") if verdict == "ship" else ("reject", "waive")
