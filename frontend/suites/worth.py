"""Texts on a suite's cases: which add nothing, which are duplicates, and the weight of tags."""

from dataclasses import dataclass

from evalboard.contract.suite import SuiteVersion
from evalboard.wording.numbers import counted, points
from runs.suites import CasesWorth, SomeCases


@dataclass(frozen=True, slots=True)
class WorthLine:
    """One fact with the first cases that it is true of."""

    name: str
    text: str
    cases: tuple[str, ...] = ()
    n_more: int = 0


@dataclass(frozen=True, slots=True)
class TagWorth:
    tag: str
    n_cases: int
    points: float


@dataclass(frozen=True, slots=True)
class Worth:
    """What the cases are worth. read: what was read, "" without repeats. tags: most frequent first."""

    read: str
    lines: tuple[WorthLine, ...]
    tags: tuple[TagWorth, ...]


def describe_worth(suite: SuiteVersion, known: CasesWorth) -> Worth:
    """Describe the cases' worth, leaving out empty findings, except that there are no duplicates."""
    lines = []
    for name, some, why in (
        ("always right", known.always_right, "only a loss can show here"),
        ("never right", known.never_right, "only a gain can show here"),
    ):
        if some is not None and some.n:
            weight = points(some.n * suite.points_per_case)
            lines.append(_line(name, f"{counted(some.n, 'case')} of {suite.n_cases:,}, {weight} points: {why}", some))
    if (alike := known.alike) is not None:
        text = f"{counted(alike.n, 'case')}, apart from spaces and capitals" if alike.n else "none"
        lines.append(_line("same question twice", text, alike))
    if (at_odds := known.at_odds) is not None and at_odds.n:
        lines.append(_line("same question, other target", counted(at_odds.n, "case"), at_odds))
    read = f"by the newest {counted(known.n_repeats, 'repeat')}" if known.n_repeats else ""
    tags = tuple(TagWorth(tag, n, n * suite.points_per_case) for tag, n in known.tags)
    return Worth(read, tuple(lines), tags)


def _line(name: str, text: str, some: SomeCases) -> WorthLine:
    return WorthLine(name, text, some.ids, some.n - len(some.ids))
