"""Thinking apart from answers: what is scored, said and exported, and what a pair of responses says of it."""

import io
from collections.abc import Callable
from dataclasses import replace

import pytest

from evalboard.core.archive import RunArchive
from evalboard.core.trace import Decoded, unpack_scores
from runs.compare import DivergenceFilter, compare, divergence_rows, trace_pair
from runs.exports import case_table, run_archive
from runs.models import RepeatScore, RunRecord
from runs.run import run_report
from runs.run.read_response import response_page
from runs.suites import push_suite, rescore_run
from tests import make, outcomes
from tests.runs import logs

pytestmark = pytest.mark.django_db(transaction=True)

Serve = Callable[..., None]


def thinks(case: int, tokens: str, *, n_thinking: int, text: str, finish_reason: str = "stop") -> Decoded:
    return replace(
        outcomes.decoded(case, text=text),
        trace=make.trace(tokens, prompt=[1, 2, 3]),
        reasoning=tokens[1 : n_thinking - 1],
        n_reasoning_tokens=n_thinking,
        finish_reason=finish_reason,
    )


@pytest.fixture
def new_thinking_run(new_run: Callable[..., RunRecord], serve: Serve) -> Callable[..., RunRecord]:
    push_suite(document=outcomes.suite_document(slug="few", n_cases=3))

    def create(*answers: Decoded) -> RunRecord:
        created = new_run(suite="few", repeats=1)
        serve(lambda _, case: answers[case])
        created.refresh_from_db()
        return created

    return create


def scores(run: RunRecord) -> list[float]:
    row = RepeatScore.objects.filter(repeat__run=run).latest("pk")
    return unpack_scores(bytes(row.scores)).tolist()


ANSWERED = thinks(0, "<hmm>blue.", n_thinking=5, text="blue")
CUT = thinks(1, "<hmmhmm", n_thinking=7, text="\n", finish_reason="length")
PLAIN = outcomes.decoded(2)
PARTED = "They differ inside the thinking, from token 2 of 5 (baseline) and 8 (candidate)."


def test_a_cut_response_is_no_answer_for_any_scorer(new_thinking_run: Callable[..., RunRecord]) -> None:
    run = new_thinking_run(ANSWERED, CUT, PLAIN)
    assert scores(run) == [1.0, 0.0, 1.0]
    anything = {"kind": "regex", "pattern": ".*"}
    rescore_run(run_id=run.pk, scorer=anything)
    assert scores(run) == [1.0, 0.0, 1.0]
    page = response_page(run.pk, repeat=1, case_id="case-1")
    assert page.response.is_truncated
    assert "cut inside its thinking" in (page.response.reason or "")
    assert [each.code for each in run_report(run.pk).warnings if each.code == "truncated"] == ["truncated"]


def test_a_scorer_that_asks_for_it_reads_the_thinking(new_thinking_run: Callable[..., RunRecord]) -> None:
    run = new_thinking_run(ANSWERED, CUT, PLAIN)
    hums = {"kind": "regex", "pattern": "^hmm", "reads": "thinking"}
    rescore_run(run_id=run.pk, scorer=hums)
    assert scores(run) == [1.0, 1.0, 0.0]
    rescore_run(run_id=run.pk, scorer={**hums, "pattern": "hmm\nblue$", "reads": "whole"})
    assert scores(run) == [0.0, 0.0, 0.0]  # an empty line stands between
    rescore_run(run_id=run.pk, scorer={**hums, "pattern": "hmm\n\nblue$", "reads": "whole"})
    assert scores(run) == [1.0, 0.0, 0.0]


def test_another_thought_before_the_same_answer_is_no_other_scorer(
    serve: Serve, new_run: Callable[..., RunRecord]
) -> None:
    scorer = {"kind": "regex", "pattern": "^hmm", "reads": "thinking"}
    push_suite(document={**outcomes.suite_document(slug="few", n_cases=3), "scorer": scorer})
    runs = []
    for tokens in ("<hmm>blue.", "<hxm>blue."):
        runs.append(new_run(suite="few", repeats=1))
        serve(lambda _, case, tokens=tokens: thinks(case, tokens, n_thinking=5, text="blue"))
    pair = trace_pair(*(run.pk for run in runs), case_id="case-0", repeats=(1, 1))
    assert (pair.baseline.score, pair.candidate.score) == (100.0, 0.0)
    assert pair.cause != "scorer"


def test_a_log_keeps_its_thinking_and_says_where_it_was_cut() -> None:
    thought = {"reasoning": "The sky, so…"}
    cut = {**thought, "text": "", "finish_reason": "max_tokens", "score": 0.0}
    run = logs.stored(logs.log(logs.response("sky", **thought), logs.response("sea", **cut), logs.response("sun")))
    pages = [response_page(run.pk, repeat=1, case_id=case).response for case in logs.CASES]
    assert [(page.text, page.reasoning, page.is_truncated) for page in pages] == [
        ("it is blue", "The sky, so…", False),
        ("", "The sky, so…", True),
        ("it is blue", None, None),
    ]
    assert [page.score for page in pages] == [1.0, 0.0, 1.0]  # the tool's own
    [text] = [each.text for each in run_report(run.pk).warnings if each.code == "truncated"]
    assert text == "1 answer was cut inside the thinking. Raise max_tokens."


def test_an_export_has_the_thinking_beside_the_answer(new_thinking_run: Callable[..., RunRecord]) -> None:
    run = new_thinking_run(ANSWERED, CUT, PLAIN)
    archive = RunArchive(io.BytesIO(b"".join(run_archive(run.pk))))
    archive.check()
    rows = [response.row for response in archive.responses()]
    names = ("text", "reasoning", "n_reasoning_tokens", "is_truncated")
    wanted = [("blue", "hmm", 5, False), ("\n", "hmmhm", 7, True), ("blue", None, None, None)]
    assert [tuple(row[name] for name in names) for row in rows] == wanted
    assert [tuple(row[name] for name in names) for row in case_table(run.pk).rows()] == wanted


def test_a_pair_that_parts_inside_the_thinking_says_so_on_its_page_and_in_lists(
    new_thinking_run: Callable[..., RunRecord],
) -> None:
    baseline = new_thinking_run(ANSWERED, thinks(1, "<hmm>blue.", n_thinking=5, text="blue"), PLAIN)
    other = thinks(0, "<hxmmmm> blue.", n_thinking=8, text=" blue")
    candidate = new_thinking_run(other, thinks(1, "<hmm>green.", n_thinking=5, text="green"), PLAIN)
    spaced = trace_pair(baseline.pk, candidate.pk, case_id="case-0", repeats=(1, 1))
    assert spaced.parts_at == 2
    assert PARTED in spaced.text
    assert (spaced.baseline.reasoning, spaced.candidate.n_reasoning_tokens) == ("hmm", 8)
    answers = trace_pair(baseline.pk, candidate.pk, case_id="case-1", repeats=(1, 1))
    assert answers.parts_at == 5
    assert "thinking" not in answers.text
    comparison = compare(baseline=baseline.pk, candidate=candidate.pk)
    listed = {row.case: row for row in divergence_rows(comparison.pk, DivergenceFilter(), limit=10)}
    assert PARTED in listed["case-0"].text
    assert listed["case-0"].cause == spaced.cause
