"""Two runs compared: the whole, the pairs that differ, and one pair around the position where it parted."""

import re

from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.core.cause import CAUSES
from evalboard.core.errors import InvalidInput
from evalboard.core.paired import OUTCOMES
from runs import selectors, services
from runs.access import READ
from runs.api import compare_answers, compare_shapes, pages, query
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.describe import describe, one_of, text, whole
from runs.selectors import DivergenceRow, OutcomeCase
from runs.selectors.divergence_list import DivergenceFilter
from runs.services.case_outcomes import CaseOutcome

RUNS = {
    "baseline": {**whole("a run"), "required": True},
    "candidate": {**whole("a run"), "required": True},
    "repeat": text("one repeat of each, as in 1,2", pattern="^[1-9][0-9]{0,8},[1-9][0-9]{0,8}$"),
}
FILTERS = {
    "cause": one_of(CAUSES),
    "changed": one_of(("0", "1"), "whether the score changed"),
    "tag": text("of the case"),
    "backend": text("the letters of both sides' buckets, as in A-B"),
    "cluster": text("its key"),
    "query": text("part of a case id"),
}
OUTCOME = {
    "outcome": {**one_of(OUTCOMES), "required": True},
    "look": whole("a look: the first so many repeats of each side, as a verdict there reads them"),
}
AT = {"at": whole("a position; where the two parted, unless given")}
CHANGED = {"": None, "1": True, "0": False}
FIRST = (1, 1)
COMPARING = (404, 409)


@resource(GET=READ)
@describe("GET", "Two runs compared", name="compare", answer=compare_answers.Comparison, query=RUNS, refuses=COMPARING)
def comparison(request: Request) -> Response:
    sent = query.read(request, RUNS, is_paged=False)
    return Response(compare_shapes.comparison(compared(sent), request))


@resource(GET=READ)
@describe(
    "GET",
    "The pairs that differ, the gravest first",
    name="compared_cases",
    answer=Page[compare_answers.ComparedCase],
    query={**RUNS, **FILTERS},
    is_paged=True,
    refuses=COMPARING,
)
def case_list(request: Request) -> Response:
    """Pairs that differ, the gravest first."""
    sent = query.read(request, (*RUNS, *FILTERS))
    wanted = wanted_pairs(sent)
    report = compared(sent)

    def fetch(*, after: int | None, before: int | None, limit: int) -> tuple[DivergenceRow, ...]:
        return selectors.divergence_rows(report.id, wanted, after=after, before=before, limit=limit)

    return pages.answer(
        request,
        fetch,
        place=lambda row: row.place,
        show=lambda row: compare_shapes.case_row(row, report, request),
    )


@resource(GET=READ)
@describe(
    "GET",
    "One pair of responses side by side",
    name="compared_case",
    answer=compare_answers.TracePair,
    query={**RUNS, **AT},
    refuses=COMPARING,
)
def case_detail(request: Request, case: str) -> Response:
    """One pair of responses around `at`, which is where they parted if not given."""
    sent = query.read(request, (*RUNS, *AT), is_paged=False)
    baseline, candidate = _runs(sent)
    found = selectors.trace_pair(
        baseline, candidate, case_id=case, repeats=_repeats(sent) or FIRST, at=query.number(sent, "at")
    )
    return Response(compare_shapes.trace_pair(found, request))


@resource(GET=READ)
@describe(
    "GET",
    "The cases that broke, were fixed or are unstable, the furthest moved first",
    name="compared_outcomes",
    answer=Page[compare_answers.CaseOutcome],
    query={**RUNS, **OUTCOME},
    is_paged=True,
    refuses=COMPARING,
)
def outcome_list(request: Request) -> Response:
    """One row for each case; as many as a verdict over the same repeats counts."""
    sent = query.read(request, (*RUNS, *OUTCOME))
    outcome = query.choice(sent, "outcome", OUTCOMES)
    if not outcome:
        raise InvalidInput("The query is not valid.", fields={"outcome": "Must be given."})
    report = compared(sent)
    found = services.case_outcomes(
        outcome=outcome,
        baseline=report.baseline.run_id,
        candidate=report.candidate.run_id,
        repeats=report.repeats,
        look=query.number(sent, "look"),
    )
    numbered = list(enumerate(found.cases))

    def fetch(*, after: int | None, before: int | None, limit: int) -> list[tuple[int, CaseOutcome, OutcomeCase]]:
        part = pages.part_of(numbered, after=after, before=before, limit=limit)
        known = selectors.outcome_cases(report.id, [case.case_index for _, case in part])
        return [(place, case, known[case.case_index]) for place, case in part]

    return pages.answer(
        request,
        fetch,
        place=lambda row: row[0],
        show=lambda row: compare_shapes.case_outcome(row[1], row[2], report, request),
    )


def wanted_pairs(sent: dict[str, str]) -> DivergenceFilter:
    return DivergenceFilter(
        cause=query.choice(sent, "cause", CAUSES),
        is_changed=CHANGED[query.choice(sent, "changed", ("0", "1"))],
        tag=sent.get("tag", ""),
        backend=sent.get("backend", ""),
        cluster=sent.get("cluster", ""),
        query=sent.get("query", ""),
    )


def compared(sent: dict[str, str]) -> selectors.ComparisonReport:
    baseline, candidate = _runs(sent)
    made = services.compare(baseline=baseline, candidate=candidate, repeats=_repeats(sent))
    return selectors.comparison_report(made.pk)


def _runs(sent: dict[str, str]) -> tuple[int, int]:
    found = [query.number(sent, name) for name in ("baseline", "candidate")]
    missing = {name: "Must be given." for name in ("baseline", "candidate") if name not in sent}
    if missing or None in found:
        raise InvalidInput("The query is not valid.", fields=missing)
    return found[0] or 0, found[1] or 0


def _repeats(sent: dict[str, str]) -> tuple[int, int] | None:
    """`1,2`: a repeat of the baseline and one of the candidate."""
    if "repeat" not in sent:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,8}),([1-9][0-9]{0,8})", sent["repeat"], re.ASCII)
    if found is None:
        raise InvalidInput("The query is not valid.", fields={"repeat": "Must be two repeats, as in 1,2."})
    return int(found[1]), int(found[2])
