"""REST of comparisons: the whole, the differing pairs, and one pair around its divergence."""

import re
from functools import partial

from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.compare import CaseOutcome, ComparedCase, Comparison
from evalboard.contract.pair import TracePair
from evalboard.contract.treatments import BY_INPUT, PAIRINGS, TREATMENTS
from evalboard.core.compare import CASE_PARTS, CAUSES
from evalboard.core.errors import InvalidInput
from evalboard.core.stats import CASE_OUTCOMES
from evalboard.wording.numbers import listed
from runs.access import READ
from runs.api import pages, query, wire
from runs.api.describe import describe, one_of, text, whole
from runs.api.resource import resource
from runs.compare.case_lists import read_list
from runs.compare.comparisons import compare
from runs.compare.inputs import choose_terms
from runs.compare.outcomes import case_outcomes
from runs.compare.read import report_of
from runs.compare.read_divergences import DivergenceFilter, divergence_rows, outcome_rows
from runs.compare.read_pair import trace_pair

RUNS = {
    "baseline": {**whole("a run"), "required": True},
    "candidate": {**whole("a run"), "required": True},
    "repeat": text("one repeat of each, as in 1,2", pattern="^[1-9][0-9]{0,8},[1-9][0-9]{0,8}$"),
    "treatment": one_of(TREATMENTS, "what is judged; the model unless given, or the prompt where no case is the same"),
    "pair_by": one_of(PAIRINGS, "how cases are paired where the prompt is judged; by input unless given"),
}
FILTERS = {
    "cause": one_of(CAUSES),
    "changed": one_of(("0", "1"), "whether the score changed"),
    "tag": text("of the case"),
    "backend": text("what the backends of both sides are called, as in A-B"),
    "cluster": text("its key"),
    "query": text("part of a case id"),
}
OUTCOME = {
    "outcome": {**one_of(CASE_PARTS, "a part of `parts`"), "required": True},
    "look": whole("a look: the first so many repeats of each side, as a verdict there reads them; of judged cases"),
}
AT = {"at": whole("a position; where the two parted, unless given")}
CHANGED = {"": None, "1": True, "0": False}
FIRST = (1, 1)
COMPARING = (404, 409)


@resource(GET=READ)
@describe("GET", "Two runs compared", name="compare", answer=Comparison, query=RUNS, refuses=COMPARING)
def comparison(request: Request) -> Response:
    sent = query.read(request, RUNS, is_paged=False)
    return wire.answer(compared(sent), request)


@resource(GET=READ)
@describe(
    "GET",
    "The pairs that differ, the gravest first",
    name="compared_cases",
    answer=Page[ComparedCase],
    query={**RUNS, **FILTERS},
    refuses=COMPARING,
)
def case_list(request: Request) -> Response:
    """Pairs that differ, the gravest first."""
    sent = query.read(request, (*RUNS, *FILTERS))
    wanted = wanted_pairs(sent)
    return pages.answer(request, partial(divergence_rows, compared(sent).id, wanted), place=lambda row: row.place)


@resource(GET=READ)
@describe(
    "GET",
    "One pair of responses side by side",
    name="compared_case",
    answer=TracePair,
    query={**RUNS, **AT},
    refuses=COMPARING,
)
def case_detail(request: Request, case: str) -> Response:
    """One pair of responses around `at`, which is where they parted if not given."""
    sent = query.read(request, (*RUNS, *AT), is_paged=False)
    baseline, candidate = _runs(sent)
    repeats, at = _repeats(sent) or FIRST, query.number(sent, "at")
    terms = choose_terms(baseline=baseline, candidate=candidate, **_terms(sent))
    pair = trace_pair(baseline, candidate, case_id=case, repeats=repeats, at=at, terms=terms)
    return wire.answer(pair, request)


@resource(GET=READ)
@describe(
    "GET",
    "The cases of one part of a comparison, the furthest moved first",
    name="compared_outcomes",
    answer=Page[CaseOutcome],
    query={**RUNS, **OUTCOME},
    refuses=COMPARING,
)
def outcome_list(request: Request) -> Response:
    """One row for each case; of judged ones as many as a verdict over the same repeats counts."""
    sent = query.read(request, (*RUNS, *OUTCOME))
    outcome, look = query.choice(sent, "outcome", CASE_PARTS), query.number(sent, "look")
    if not outcome:
        raise InvalidInput("The query is not valid.", fields={"outcome": "Must be given."})
    is_judged = outcome in CASE_OUTCOMES
    if look is not None and not is_judged:
        fields = {"look": f"Only {listed(CASE_OUTCOMES)} cases are judged at a look."}
        raise InvalidInput("The query is not valid.", fields=fields)
    report = compared(sent)
    cases = (
        case_outcomes(report.id, outcome=outcome, look=look).cases if is_judged else read_list(report.id, outcome)[0]
    )
    return pages.answer_with(request, cases, make_rows=partial(outcome_rows, report.id))


def wanted_pairs(sent: dict[str, str]) -> DivergenceFilter:
    return DivergenceFilter(
        cause=query.choice(sent, "cause", CAUSES),
        is_changed=CHANGED[query.choice(sent, "changed", ("0", "1"))],
        tag=sent.get("tag", ""),
        backend=sent.get("backend", ""),
        cluster=sent.get("cluster", ""),
        query=sent.get("query", ""),
    )


def compared(sent: dict[str, str]) -> Comparison:
    baseline, candidate = _runs(sent)
    made = compare(baseline=baseline, candidate=candidate, repeats=_repeats(sent), **_terms(sent))
    return report_of(made)


def _terms(sent: dict[str, str]) -> dict[str, str]:
    pair_by = query.choice(sent, "pair_by", PAIRINGS) or BY_INPUT
    return {"treatment": query.choice(sent, "treatment", TREATMENTS), "pair_by": pair_by}


def _runs(sent: dict[str, str]) -> tuple[int, int]:
    run_ids = [query.number(sent, name) for name in ("baseline", "candidate")]
    missing = {name: "Must be given." for name in ("baseline", "candidate") if name not in sent}
    if missing or None in run_ids:
        raise InvalidInput("The query is not valid.", fields=missing)
    return run_ids[0] or 0, run_ids[1] or 0


def _repeats(sent: dict[str, str]) -> tuple[int, int] | None:
    """`1,2`: a repeat of the baseline and one of the candidate."""
    if "repeat" not in sent:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,8}),([1-9][0-9]{0,8})", sent["repeat"], re.ASCII)
    if match is None:
        raise InvalidInput("The query is not valid.", fields={"repeat": "Must be two repeats, as in 1,2."})
    return int(match[1]), int(match[2])
