"""A case that changed shows both answers where they part: of the pair that stands for it, whatever is known of it."""

import pytest

from evalboard.contract.excerpt import AnswerExcerpt
from frontend.templatetags.pairs import answer_excerpt, passes
from runs.compare import choose_pairs, compare, divergence_rows, pair_excerpts
from runs.compare.read_divergences import DivergenceFilter
from runs.models import DivergenceRecord
from tests import outcomes
from tests.frontend import stage, two_runs
from tests.frontend.two_runs import END_ROW, said, sure, tie

pytestmark = pytest.mark.django_db


@pytest.fixture
def staged(db, settings):
    stage.stage(model_root=settings.MODEL_ROOTS[0], n_cases=6)


def excerpts(baseline, candidate):
    """Those of all pairs that differ, with the pairs."""
    comparison = compare(baseline=baseline.pk, candidate=candidate.pk)
    rows = divergence_rows(comparison.pk, DivergenceFilter(), limit=50)
    return rows, pair_excerpts((baseline.pk, candidate.pk), rows, [""] * len(rows))


def test_both_answers_stand_around_the_flip(staged):
    ours, theirs = two_runs.near_tie(2)
    (row,), (excerpt,) = excerpts(*two_runs.make({2: ours}, {2: theirs}))
    assert row.case == "case-002"
    assert excerpt.baseline.before == excerpt.candidate.before == "Blue is a"
    assert (excerpt.baseline.token, excerpt.candidate.token) == ("blue", "·red")
    assert excerpt.baseline.after == ".⟨end⟩"


@pytest.mark.nightly
def test_an_answer_that_ends_earlier_parts_at_its_end(staged):
    short, long = [sure(4), END_ROW], [sure(4), sure(5), END_ROW]
    _, (excerpt,) = excerpts(*two_runs.make({2: said(2, long)}, {2: said(2, short)}))
    assert (excerpt.baseline.token, excerpt.candidate.token) == ("·is", "⟨end⟩")


@pytest.mark.nightly
def test_a_missing_answer_has_no_excerpt(staged):
    _, (excerpt,) = excerpts(*two_runs.make({}, {2: outcomes.failed(2)}))
    assert excerpt is None
    assert "no answer came" in answer_excerpt(excerpt)


@pytest.mark.nightly
def test_two_vocabularies_are_cut_by_their_texts(staged):
    other = two_runs.other_words(stage.engine(stage.worker("other")), [b"", b"blue", b" red"])
    theirs = {n: said(n, [sure(1), sure(2), END_ROW], text="blue red") for n in range(6)}
    _, cut = excerpts(*two_runs.make({}, theirs, by=other))
    known = {(each.baseline.token, each.candidate.before, each.candidate.token) for each in cut}
    assert known == {("⟨end⟩", "blue", "·red")}


@pytest.mark.nightly
def test_of_repeats_that_flip_differently_the_most_frequent_one_stands_for_the_case(staged):
    def answer(repeat, case):
        flipped = 10 if repeat == 1 else 6
        return said(case, [sure(4), tie(flipped, 1), END_ROW]) if case == 2 else stage.reply(case, 1)

    worker = stage.worker()
    process = stage.engine(worker, batch_class="mixed")
    usual = {2: said(2, [sure(4), tie(1, 10), END_ROW])}
    baseline = stage.start(repeats=3)
    stage.serve(worker, process, answer=lambda _, case: usual.get(case, stage.reply(case, 1)))
    candidate = stage.start(repeats=3)
    stage.serve(worker, process, answer=answer)
    comparison = compare(baseline=baseline.pk, candidate=candidate.pk)
    chosen = choose_pairs(comparison.pk, [2, 3])
    assert list(chosen) == [2]
    assert (chosen[2].n_alike, chosen[2].n_pairs) == (2, 3)
    (pair,) = (row for row in divergence_rows(comparison.pk, DivergenceFilter(), limit=50) if row.repeat_candidate == 2)
    assert chosen[2].row == DivergenceRecord.objects.get(comparison=comparison, repeat_candidate=2).pk
    (excerpt,) = pair_excerpts((baseline.pk, candidate.pk), [pair], [chosen[2].reason])
    assert excerpt.candidate.token == "·a"


def test_a_list_of_pairs_takes_no_more_statements_than_one(staged, django_assert_max_num_queries):
    pairs = [two_runs.near_tie(case) for case in range(2, 6)]
    ours, theirs = ({2 + n: pair[side] for n, pair in enumerate(pairs)} for side in (0, 1))
    runs = two_runs.make(ours, theirs)
    comparison = compare(baseline=runs[0].pk, candidate=runs[1].pk)
    rows = divergence_rows(comparison.pk, DivergenceFilter(), limit=50)
    assert len(rows) == 4
    with django_assert_max_num_queries(6):
        assert None not in pair_excerpts((runs[0].pk, runs[1].pk), rows, [""] * len(rows))


@pytest.mark.parametrize(
    ("points", "mark", "words"),
    [
        ((100.0,) * 5, "pass", "<b>5</b> of 5"),
        ((0.0,) * 5, "fail", "<b>0</b> of 5"),
        ((100.0, 0.0, None), "partly", "<b>1</b> of 2"),
        ((50.0, 25.0), None, "<b>37.5</b> points"),
        ((None,), None, "not scored"),
    ],
)
def test_a_tick_is_for_all_and_a_cross_for_none(points, mark, words):
    drawn = passes(points)
    assert words in drawn
    assert mark is None or f'class="{mark}"' in drawn


@pytest.mark.parametrize("is_hit", [False, True])
def test_no_part_of_an_excerpt_becomes_markup(is_hit):
    parts = dict.fromkeys(("before", "token", "after"), stage.HOSTILE)
    drawn = answer_excerpt(AnswerExcerpt(**parts, is_cut=False, is_hit=is_hit))
    assert drawn.count("&lt;script&gt;") == 3
    assert "<script>" not in drawn
    assert "\u202e" not in drawn


def test_what_an_answer_says_cannot_become_markup(staged):
    ours = said(2, [sure(4), sure(8), END_ROW])
    theirs = said(2, [sure(4), sure(10), END_ROW])
    _, (excerpt,) = excerpts(*two_runs.make({2: ours}, {2: theirs}))
    assert "<script>" not in answer_excerpt(excerpt.baseline)
    assert "\u202e" not in answer_excerpt(excerpt.baseline)
