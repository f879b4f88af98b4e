"""What a list of cases shows is found once and kept with its comparison: a later page reads no column for it."""

import re
from statistics import mean
from typing import Any

import pytest
from django.conf import settings

from evalboard.core.compare import CASE_PARTS
from runs.compare import (
    CASE_LISTS,
    case_lists,
    case_outcomes,
    compare,
    inputs,
    outcomes,
    read_outcomes,
    representatives,
)
from runs.models import ComparisonRecord, ListedFrame, RunRecord
from tests.casts import cast
from tests.frontend import toolcalls_stage
from tests.frontend.test_changed_cases import page_of, rows

pytestmark = pytest.mark.django_db
N_CASES = 36


@cast
def pair() -> tuple[RunRecord, RunRecord]:
    return toolcalls_stage.pair(model_root=settings.MODEL_ROOTS[0], n_cases=N_CASES)


def listed(client: Any, pair: tuple[RunRecord, RunRecord], query: str = "") -> tuple[dict[str, str], str]:
    """The rows of the list, without the addresses, and the filters beside it."""
    page = page_of(client, pair, query)
    cut = {case: re.sub(r'href="[^"]*"', "", row) for case, row in rows(page).items()}
    return cut, re.sub(r'href="[^"]*"', "", page[page.index('aria-label="Show"') :].partition("</p>")[0])


def clusters(client: Any, pair: tuple[RunRecord, RunRecord]) -> str:
    page = page_of(client, pair)
    return page[page.index("have in common") :].partition("</ul>")[0]


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("read again")


@pytest.mark.nightly
def test_the_first_page_of_a_comparison_reads_what_was_found_when_it_was_made(pair, viewer, monkeypatch):
    compare(baseline=pair[0].pk, candidate=pair[1].pk)
    for module, name in ((inputs, "load"), (representatives, "choose_pairs"), (representatives, "unpack_reasons")):
        monkeypatch.setattr(module, name, refuse)
    for query in ("", "?outcome=unstable", "?outcome=fixed"):
        assert page_of(viewer, pair, query)


def test_a_later_page_reads_no_column_and_chooses_no_pair(pair, viewer, monkeypatch):
    queries = ("", "?outcome=unstable", "?outcome=broken&look=3", "?outcome=unstable&cause=near_tie")
    first, groups = [listed(viewer, pair, query) for query in queries], clusters(viewer, pair)
    monkeypatch.setattr(inputs, "load", refuse)
    monkeypatch.setattr(representatives, "choose_pairs", refuse)
    monkeypatch.setattr(representatives, "unpack_reasons", refuse)
    assert [listed(viewer, pair, query) for query in queries] == first
    assert clusters(viewer, pair) == groups


@pytest.mark.nightly
def test_what_an_earlier_version_kept_is_judged_anew(pair, viewer, monkeypatch):
    first = listed(viewer, pair)
    made = compare(baseline=pair[0].pk, candidate=pair[1].pk)
    earlier = {"broken": [0, 1], "chances": {"0": [0.5, False]}, "counts": {"broken": 2, "fixed": 0, "unstable": 0}}
    ComparisonRecord.objects.filter(pk=made.pk).update(outcomes={"all": earlier})
    assert listed(viewer, pair) == first
    monkeypatch.setattr(inputs, "load", refuse)
    assert listed(viewer, pair) == first


@pytest.mark.nightly
def test_a_look_at_more_repeats_than_there_are_is_one_at_all_and_is_not_kept(pair, monkeypatch):
    made = compare(baseline=pair[0].pk, candidate=pair[1].pk)
    everything = case_outcomes(made.pk, "unstable")
    monkeypatch.setattr(inputs, "load", refuse)
    assert case_outcomes(made.pk, "unstable", 5) == case_outcomes(made.pk, "unstable", 900) == everything
    assert list(ComparisonRecord.objects.get(pk=made.pk).outcomes) == ["all"]


@pytest.mark.nightly
def test_what_a_comparison_that_is_still_read_shows_is_not_kept(pair, viewer):
    made = compare(baseline=pair[0].pk, candidate=pair[1].pk)
    del made.outcomes["all"]["told"]
    ComparisonRecord.objects.filter(pk=made.pk).update(status="queued", outcomes=made.outcomes)
    assert listed(viewer, pair, "?outcome=broken")[0]
    assert "told" not in ComparisonRecord.objects.get(pk=made.pk).outcomes["all"]


def test_parts_of_a_list_are_the_list(pair):
    made = compare(baseline=pair[0].pk, candidate=pair[1].pk)
    everything = case_outcomes(made.pk, "unstable")
    assert everything.n == len(everything.cases) > 4
    for _ in range(2):  # the first time found, then kept
        for part in (slice(0, 2), slice(2, 4), slice(2, None), slice(0, 0), slice(900, 950)):
            found = case_outcomes(made.pk, "unstable", None, part.start, part.stop)
            assert (found.cases, found.n) == (everything.cases[part], everything.n)
            told = representatives.read_representatives(made.pk, "unstable", None, part.start, part.stop)
            assert len(told.pairs) == len(found.cases)


@pytest.mark.nightly
def test_a_list_too_long_to_be_counted_shows_the_same_rows(pair, viewer, monkeypatch):
    everything, filters = listed(viewer, pair, "?outcome=unstable")
    searched, _ = listed(viewer, pair, "?outcome=unstable&q=tool")
    ComparisonRecord.objects.update(outcomes={})
    for module in (representatives, read_outcomes):
        monkeypatch.setattr(module, "MAX_STORED", 2)
    long, fewer = listed(viewer, pair, "?outcome=unstable")
    assert long == everything
    assert len(fewer) < len(filters)
    assert listed(viewer, pair, "?outcome=unstable&q=tool")[0] == searched
    one = next(iter(everything))
    assert listed(viewer, pair, f"?outcome=unstable&q={one}")[0] == {one: everything[one]}


@pytest.mark.nightly
def test_lists_of_all_that_became_of_cases_read_no_column_again(pair, viewer, monkeypatch):
    monkeypatch.setattr(case_lists, "FRAME", 7)
    queries = [f"?outcome={name}{narrowed}" for name in CASE_LISTS for narrowed in ("", "&q=tool", "&cause=near_tie")]
    first = [listed(viewer, pair, query) for query in queries]
    assert ListedFrame.objects.count() == -(-N_CASES // 7)
    monkeypatch.setattr(inputs, "load", refuse)
    assert [listed(viewer, pair, query) for query in queries] == first


@pytest.mark.nightly
def test_parts_of_a_list_of_cases_are_the_list(pair, monkeypatch):
    made = compare(baseline=pair[0].pk, candidate=pair[1].pk)
    monkeypatch.setattr(case_lists, "FRAME", 7)
    whole = {name: case_lists.read_list(made.pk, name) for name in CASE_LISTS}  # found, then kept
    every, n = whole["all"]
    assert [case for part in CASE_PARTS for case in whole[part][0]] == list(every)
    assert len(every) == n == N_CASES
    for part in ("broken", "fixed", "changed"):
        moves = [round(mean(case.candidate) - mean(case.baseline), 9) for case in whole[part][0]]
        assert moves == sorted(moves, key=lambda move: (move >= 0, -abs(move)))
    assert len(whole["broken"][0]) > 1
    assert list(whole["score_changed"][0]) == list(every)[: whole["score_changed"][1]]
    for name, (cases, n) in whole.items():
        for part in (slice(0, 2), slice(5, 9), slice(2, None), slice(0, 0), slice(900, 950)):
            found, n_again = case_lists.read_list(made.pk, name, part.start, part.stop)
            assert (list(found), n_again) == (list(cases[part]), n)


@pytest.mark.nightly
def test_lists_of_a_comparison_that_rests_on_fewer_repeats_are_not_kept(pair, viewer):
    made = compare(baseline=pair[0].pk, candidate=pair[1].pk)
    ComparisonRecord.objects.filter(pk=made.pk).update(input_digest="f" * 64)
    assert case_lists.read_list(made.pk, "all")[1] == N_CASES
    assert not ListedFrame.objects.exists()


@pytest.mark.nightly
def test_a_page_beyond_the_last_one_is_the_last_one(pair, viewer):
    first, _ = listed(viewer, pair, "?outcome=broken")
    for page in ("2", "99999999"):
        assert listed(viewer, pair, f"?outcome=broken&page={page}")[0] == first


@pytest.mark.nightly
def test_chances_of_mixed_runs_are_none(pair, viewer):
    made = compare(baseline=pair[0].pk, candidate=toolcalls_stage.mixed(N_CASES).pk)
    assert case_outcomes(made.pk, "broken") == outcomes.CaseOutcomes((), 0, {})
