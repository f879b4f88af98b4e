"""The page on which two runs are chosen to be compared."""

import re
from html import unescape

import pytest

from runs.baselines import set_baseline
from runs.run import delete_run
from tests import build
from tests.casts import cast

pytestmark = pytest.mark.django_db


def page_of(client, path: str = "/compare/") -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def chosen(page: str) -> list[int]:
    return [int(run) for run in re.findall(r'<option value="(\d+)" selected>', page)]


@cast
def runs():
    return [build.finished_run(["blue", "blue", "red"]) for _ in range(3)]


def test_the_navigation_leads_to_it_and_it_says_what_it_is_for(runs, viewer):
    page = page_of(viewer)
    assert '<a href="/compare/" aria-current="page">Compare</a>' in page
    assert "Why did the number move?" in page


def test_the_newest_run_is_offered_against_the_one_before_or_its_baseline(runs, viewer, admin, django_user_model):
    first, second, third = (run.pk for run in runs)
    assert chosen(page_of(viewer)) == [second, third]
    user = django_user_model.objects.get(username="admin")
    set_baseline(suite="colours", run=first, reason="Released.", user=user)
    page = page_of(viewer)
    assert chosen(page) == [first, third]
    assert "(current baseline)" in page


def test_the_page_opens_on_the_newest_suite_that_has_two_runs_to_compare(runs, viewer):
    build.finished_run(["blue", "red", "red"], version=build.suite("shapes"))
    build.run(version=build.suite("letters"))  # queued
    page = page_of(viewer)
    assert "Two runs of" in page
    assert chosen(page) == [runs[1].pk, runs[2].pk]


def test_two_chosen_runs_keep_their_sides_and_one_twice_is_refused(runs, viewer):
    older, newer = runs[0].pk, runs[2].pk
    found = viewer.get(f"/compare/?baseline={newer}&candidate={older}")
    assert found.headers["Location"] == f"/compare/{newer}/{older}/"
    assert "Choose two different runs" in page_of(viewer, f"/compare/?baseline={newer}&candidate={newer}")


@pytest.mark.nightly
def test_only_runs_of_one_suite_with_an_answer_are_offered(runs, viewer):
    build.run()  # queued
    other = build.suite("shapes")
    apart = build.finished_run(["blue", "red", "red"], version=other)
    page = page_of(viewer, "/compare/?suite=colours")
    assert {int(run) for run in re.findall(r'<option value="(\d+)"', page)} == {run.pk for run in runs}
    assert "it takes two to compare" in page_of(viewer, "/compare/?suite=shapes")
    assert f'href="/runs/{apart.pk}/"' not in page
    assert "There is no run of a suite “<bdi>none</bdi>”." in page_of(viewer, "/compare/?suite=none")


def test_without_runs_it_says_why_it_is_empty(viewer, db):
    assert "nothing to compare" in page_of(viewer)


def test_it_opens_on_what_was_last_looked_at_and_the_page_leads_back_to_the_choice(runs, viewer):
    first, _, third = (run.pk for run in runs)
    page = page_of(viewer, f"/compare/{first}/{third}/")
    assert viewer.get("/compare/").headers["Location"] == f"/compare/{first}/{third}/"
    assert 'href="/compare/?suite=colours"' in page
    assert "Why did the number move?" in page_of(viewer, "/compare/?suite=colours")


@pytest.mark.parametrize("kept", ["", "1", "1-x", "1-2-3", "99999999999-1"])
def test_what_the_browser_kept_of_no_two_runs_that_are_there_is_passed_over(runs, viewer, kept):
    viewer.cookies["evalboard_compared"] = kept
    assert "Why did the number move?" in page_of(viewer)


@pytest.mark.nightly
def test_a_run_that_is_gone_is_not_opened_again(runs, viewer):
    first, second, _ = runs
    page_of(viewer, f"/compare/{first.pk}/{second.pk}/")
    delete_run(run_id=first.pk)
    assert "Why did the number move?" in page_of(viewer)
