"""A prompt judged: two versions of a suite that differ in their system prompt alone, compared, released, on pages."""

import random
from typing import Any

import pytest
from django.test import Client

from evalboard.contract.treatments import Terms
from evalboard.core.errors import InvalidInput
from runs.compare import DivergenceFilter, compare, divergence_rows, report_of, trace_pair, worst_cases
from runs.models import RunRecord
from runs.suites import push_suite
from tests import build
from tests.casts import cast
from tests.nightly import few
from tests.runs import judged
from tests.runs.judged import ALWAYS, SAMPLE_POLICY, codes

pytestmark = pytest.mark.django_db
BROKEN = (3, 7, 11)


def version(system: str, *, seed: int = 0, form: str = "{}", **changes: Any) -> Any:
    """The sample suite with this system prompt, its cases in an order of their own and with questions of this form."""
    document = judged.document(policy=SAMPLE_POLICY)
    for case in document["cases"]:
        asked = form.format(case.pop("prompt"))
        case |= {"messages": [{"role": "system", "content": system}, {"role": "user", "content": asked}]}
    cases = [{**case, **changes} for case in document["cases"]]
    random.Random(seed).shuffle(cases)
    return push_suite(document={**document, "cases": cases})[0]


def wrong(of: Any) -> dict[int, Any]:
    """The cases of BROKEN, by their places in a version."""
    ids = [f"case-{number:03}" for number in BROKEN]
    return {case.index: ALWAYS for case in of.cases.filter(case_id__in=ids)}


def run_both(n_wrong: int = len(BROKEN), **changes: Any) -> tuple[RunRecord, RunRecord]:
    """A run of each version, the first before the second is pushed: a run is of the newest one."""
    process = build.process()
    first = judged.run(version("Be short."), by=process)
    second = version(**{"system": "Be very short.", "seed": 1, **changes})
    return first, judged.run(second, wrong(second) if n_wrong else {}, by=process)


@cast
def pair() -> tuple[RunRecord, RunRecord]:
    return run_both()


@pytest.mark.nightly
def test_a_prompt_takes_the_points_of_the_cases_that_it_broke(pair: tuple[RunRecord, RunRecord]) -> None:
    row = compare(baseline=pair[0].pk, candidate=pair[1].pk)
    report = report_of(row)
    assert (report.treatment, report.comparable, report.score.difference) == ("prompt", True, -10.0)
    assert [(line.cause, line.n_cases, line.shown) for line in report.ledger] == [("prompt_changed", 3, -10.0)]
    assert (report.computation, report.noise, report.clusters) == (None, None, ())
    assert report.prompts is not None
    assert (report.prompts.n_pairs, report.prompts.n_changed, report.prompts.n_changes) == (30, 30, 1)
    pieces = [(piece.kind, piece.text) for piece in report.prompts.changes[0].messages[0].pieces]
    assert pieces == [("same", "Be "), ("added", "very "), ("same", "short.")]
    rows = divergence_rows(row.pk, DivergenceFilter(), limit=100)
    assert {(each.case, each.cause) for each in rows} == {(f"case-{n:03}", "prompt_changed") for n in BROKEN}
    assert all("treatment=prompt" in each.url for each in rows)


def test_each_answer_is_shown_beside_that_of_its_own_case(pair: tuple[RunRecord, RunRecord]) -> None:
    terms, runs = Terms("prompt"), (pair[0].pk, pair[1].pk)
    row = compare(baseline=runs[0], candidate=runs[1])
    for shown in worst_cases(row.pk, runs, outcome="broken", terms=terms):
        assert shown.excerpt is not None
        assert (shown.excerpt.baseline.token, shown.excerpt.candidate.token) == ("blue", "·red")
    both = trace_pair(*runs, case_id="case-003", repeats=(1, 1), terms=terms)
    assert (both.cause, both.positions, both.candidate.text) == ("prompt_changed", (), "red")
    assert [message.role for message in both.changed] == ["system"]


@pytest.mark.parametrize(("n_wrong", "word"), few([(0, "ship"), (3, "no_ship")], 1))
def test_a_release_judges_the_prompt_and_says_so(n_wrong: int, word: str, admin_client: Client) -> None:
    release = judged.release(*run_both(n_wrong), treatment="prompt")
    assert release.verdict is not None
    document = release.verdict.document
    assert release.verdict.word == word
    assert [line["text"] for line in document["warnings"] if line["code"] == "prompt_judged"] == [
        "The prompt is judged. It changed in all 30 cases with equal inputs."
    ]
    board = admin_client.get("/").content.decode()
    assert ("?treatment=prompt&amp;outcome=broken" in board) == (word == "no_ship")


def test_a_release_of_another_question_needs_a_persons_word() -> None:
    runs = run_both(0, system="Be short.", form="Say: {}")
    with pytest.raises(InvalidInput, match="no input is on both sides"):
        judged.release(*runs, treatment="prompt")
    with pytest.raises(InvalidInput, match="not valid"):
        judged.release(*runs, pair_by="id")
    release = judged.release(*runs, treatment="prompt", pair_by="id")
    assert release.verdict is not None
    assert {"prompt_judged", "paired_by_id"} <= set(codes(release.verdict.document["warnings"]))


@pytest.mark.nightly
def test_pages_and_rest_take_the_terms(pair: tuple[RunRecord, RunRecord], admin_client: Client) -> None:
    viewer = admin_client
    runs = (pair[0].pk, pair[1].pk)
    page = viewer.get("/compare/{}/{}/".format(*runs), {"treatment": "prompt"}).content.decode()
    assert "What changed in the prompt" in page
    assert "<ins>" in page
    assert f"/compare/{runs[0]}/{runs[1]}/cases/case-003/?repeat=1,1&amp;treatment=prompt" in page
    both = viewer.get("/compare/{}/{}/cases/case-003/".format(*runs), {"treatment": "prompt"}).content.decode()
    assert "The prompt changed" in both
    query = {"baseline": runs[0], "candidate": runs[1], "treatment": "prompt", "pair_by": "id"}
    answer = viewer.get("/api/v1/compare/", query).json()
    assert answer["prompts"]["pair_by"] == "id"
    assert viewer.get("/api/v1/compare/", query | {"treatment": "model"}).status_code == 400
