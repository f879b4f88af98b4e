"""What can be chosen above the list of a comparison's cases, and the addresses of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from evalboard.core.paired import OUTCOMES
from frontend import pair_address
from frontend.causes import MARKS, CauseMark
from runs.selectors.comparison import ComparisonReport, OutcomeCounts

OF_PAIRS = ("cause", "changed", "cluster")
KEPT = ("tag", "backend", "q")


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """One choice; `n` is how many cases or pairs it shows."""

    label: str
    url: str
    is_on: bool
    n: int | None = None
    mark: CauseMark | None = None


def of_report(
    report: ComparisonReport, asked: Mapping[str, str], outcomes: OutcomeCounts | None
) -> tuple[CaseFilter, ...]:
    """Cases by what became of them, then pairs of responses by what differs."""
    kept = {name: asked[name] for name in KEPT if name in asked}
    is_all = not {"outcome", *OF_PAIRS} & asked.keys()
    n_all = sum(count.n_pairs for count in report.causes)
    changed = asked.get("changed") == "yes" and "cause" not in asked
    found = [] if outcomes is None else _of_outcomes(report, asked, outcomes)
    found.append(CaseFilter("all pairs that differ", at(report, kept), is_all, n_all))
    n_changed = sum(count.n_score_changed for count in report.causes)
    found.append(CaseFilter("pairs whose score changed", at(report, kept | {"changed": "yes"}), changed, n_changed))
    for count in report.causes:
        url = at(report, kept | {"cause": count.cause})
        mark = MARKS[count.cause]
        found.append(CaseFilter(mark.label, url, asked.get("cause") == count.cause, count.n_pairs, mark))
    if "cluster" in asked:
        found.append(CaseFilter("one cluster", at(report, kept | {"cluster": asked["cluster"]}), True))
    return tuple(found)


def outcome_links(report: ComparisonReport) -> tuple[CaseFilter, ...]:
    """The lists of cases that are not empty, for the sentence that names them: "3 broken, 1 fixed"."""
    if report.outcomes is None:
        return ()
    found = zip(OUTCOMES, _of_outcomes(report, {}, report.outcomes), strict=True)
    return tuple(replace(each, label=outcome) for outcome, each in found if each.n)


def at(report: ComparisonReport, asked: Mapping[str, str], *, page: int = 1) -> str:
    """The page of the comparison with these filters."""
    kept = dict(asked) | ({"page": str(page)} if page > 1 else {})
    return pair_address.of_comparison(
        report.baseline.run_id, report.candidate.run_id, repeats=report.repeats, kept=kept
    )


def _of_outcomes(report: ComparisonReport, asked: Mapping[str, str], outcomes: OutcomeCounts) -> list[CaseFilter]:
    look = {"look": asked["look"]} if "look" in asked else {}
    return [
        CaseFilter(
            f"{outcome} cases",
            at(report, {"outcome": outcome} | look),
            asked.get("outcome") == outcome,
            getattr(outcomes, outcome),
        )
        for outcome in OUTCOMES
    ]
