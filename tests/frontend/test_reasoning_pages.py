"""Pages of responses that think before they answer."""

import re
from dataclasses import replace

import pytest

from evalboard.core.answer import AnswerParts, join_parts
from evalboard.core.trace import Decoded
from frontend.compare import pair_address
from tests.frontend import two_runs
from tests.frontend.two_runs import END_ROW, said, sure

pytestmark = pytest.mark.django_db


def thinks(case: int, *tokens: int, n_thinking: int, text: str, finish_reason: str = "stop") -> Decoded:
    plain = said(case, [*map(sure, tokens), END_ROW], text=text)
    return replace(plain, reasoning="Let me <b>see</b>.", n_reasoning_tokens=n_thinking, finish_reason=finish_reason)


def text_of(page):
    return re.sub(r"\s+", " ", page.content.decode())


@pytest.fixture
def runs(stage):
    ours = {5: thinks(5, 4, 5, 6, 1, n_thinking=3, text="blue")}
    theirs = {5: thinks(5, 4, 7, 6, 9, n_thinking=5, text="\n", finish_reason="length")}
    return two_runs.make(ours, theirs)


def test_a_response_shows_its_thinking_apart_and_where_the_answer_begins(runs, viewer):
    page = text_of(viewer.get(f"/runs/{runs[0].pk}/repeats/1/cases/case-005/"))
    assert "5 tokens, 3 of them thinking" in page
    assert "<summary>Thinking, 3 tokens</summary>" in page
    assert "Let me &lt;b&gt;see&lt;/b&gt;." in page
    before, _, after = page.partition("The answer begins.")
    assert 'data-position="2"' in before
    assert 'data-position="3"' not in before
    assert 'data-position="3"' in after
    assert "cut inside its thinking" not in page


@pytest.mark.nightly
def test_a_response_shows_its_words_and_its_calls_apart(stage, viewer):
    call = {"name": "add", "arguments": '{"a": 1}'}
    text = join_parts(AnswerParts("Wait\nthere.", calls=(call,)))
    run, _ = two_runs.make({5: said(5, [sure(4), END_ROW], text=text)}, {})
    page = viewer.get(f"/runs/{run.pk}/repeats/1/cases/case-005/").content.decode()
    assert "<bdi>Wait\nthere.</bdi></pre>" in page
    assert 'aria-label="Tool calls of the response"><bdi>{&quot;arguments&quot;:' in page


@pytest.mark.nightly
def test_a_response_that_was_cut_while_it_thought_says_so_and_so_does_its_run(runs, viewer):
    page = text_of(viewer.get(f"/runs/{runs[1].pk}/repeats/1/cases/case-005/"))
    assert "Cut inside its thinking, at 5 tokens." in page
    run = text_of(viewer.get(f"/runs/{runs[1].pk}/"))
    assert "1 answer was cut inside the thinking and scores 0. Raise max_tokens." in run


@pytest.mark.nightly
def test_a_pair_says_where_inside_the_thinking_it_parted(runs, viewer):
    page = text_of(viewer.get(pair_address.pair_url(runs[0].pk, runs[1].pk, "case-005", repeats=(1, 1))))
    assert "They differ inside the thinking, from token 1 of 3 (baseline) and 5 (candidate)." in page
    assert "<td>3 tokens</td> <td>5 tokens, and cut there: no answer</td>" in page


@pytest.mark.nightly
def test_a_long_trace_shows_the_positions_around_one_and_links_to_the_others(stage, viewer):
    long = said(5, [*[sure(4)] * 4500, END_ROW], text="blue")
    run, _ = two_runs.make({5: long}, {})
    address = f"/runs/{run.pk}/repeats/1/cases/case-005/"
    page = text_of(viewer.get(f"{address}?at=3000"))
    assert 'Positions 2,800 to 3,199 of 4,501. <a href="?at=2799">Earlier positions</a>' in page
    assert '<a href="?at=3200">Later positions</a>' in page
    assert 'data-position="2800"' in page
    assert 'data-position="2799"' not in page
    assert "4,501 tokens" in page
