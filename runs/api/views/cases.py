"""The cases of a run over its repeats."""

from rest_framework.request import Request
from rest_framework.response import Response

from runs import selectors
from runs.access import READ
from runs.api import answers, pages, query
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.describe import describe, one_of, text
from runs.api.shapes import page_url
from runs.selectors.run import CaseRow

ONLY = ("unstable", "likely", "failed", "passed", "missing", "left_out")
FILTERS = {"only": one_of(ONLY), "query": text("part of a case's id, prompt or tags")}


@resource(GET=READ)
@describe(
    "GET",
    "Cases of a run over its repeats",
    name="cases",
    answer=Page[answers.CaseOfRun],
    query=FILTERS,
    is_paged=True,
)
def case_list(request: Request, run_id: int) -> Response:
    sent = query.read(request, FILTERS)
    only = query.choice(sent, "only", ONLY)

    def fetch(*, after: int | None, before: int | None, limit: int) -> tuple[CaseRow, ...]:
        return selectors.case_page(
            run_id, query=sent.get("query", ""), only=only, after=after, before=before, limit=limit
        )

    return pages.answer(request, fetch, place=lambda row: row.index, show=lambda row: _case(row, run_id, request))


def _case(row: CaseRow, run_id: int, request: Request) -> answers.CaseOfRun:
    known = [score for score in row.scores if score is not None]
    lowest = row.scores.index(min(known)) if known else 0
    return {
        "case": row.case_id,
        "case_index": row.index,
        "tags": list(row.tags),
        "score": row.mean,
        "scores": list(row.scores),
        "reason": row.reason or None,
        "errors": list(row.error_codes),
        "marks": [list(marks) for marks in row.marks],
        "n_texts": row.n_texts,
        "is_unstable": row.is_unstable,
        "flip_chance": row.flip_chance,
        "url": page_url(request, "response", run_id, lowest + 1, row.case_id),
    }
