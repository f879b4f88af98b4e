"""The history of one case over the runs of its suite."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalboard.core.errors import NotFound
from runs.suites import case_history, push_suite, read_case
from tests import build
from tests.casts import cast

pytestmark = pytest.mark.django_db

CASE = "a/b c"
BLUE, BROKEN = ("blue", "blue", "blue"), ("blue", "blue", "red")


@cast
def broke():
    """Three runs that pass the case but once, then another model on the same server that fails it twice."""
    build.suite()
    old, new = build.process(build.bucket()), build.process(build.bucket(weights="c" * 64))
    before = [build.finished_run(BLUE, texts, by=old) for texts in (BLUE, BROKEN, BLUE)]
    return before, [build.finished_run(BROKEN, BROKEN, by=new) for _ in range(2)]


def test_it_says_since_when_the_case_fails_and_what_changed(broke):
    before, after = broke
    history = case_history("colours", CASE)
    change = history.change
    assert change is not None
    assert (change.run, change.before, change.is_pass) == (str(after[0].pk), str(before[-1].pk), False)
    assert (change.n_passed_before, change.n_before, change.n_after, change.n_runs_after) == (5, 6, 4, 2)
    assert [fact.what for fact in change.changes] == ["model"]
    assert history.claim.startswith("Passed 5 of 6 times until ")
    assert history.claim.endswith(f"since paint-1b (run {after[0].pk}) it fails every time (4 of 4).")
    assert history.rest[0] == "Changed then: model paint-1b → another paint-1b. Same server before and after."


def test_equal_answers_have_equal_letters_and_the_most_frequent_is_first(broke):
    before, after = broke
    history = case_history("colours", CASE)
    assert [(answer.letter, answer.text, answer.n_repeats) for answer in history.answers] == [
        ("A", "blue", 5),
        ("B", "red", 5),
    ]
    assert history.answers[1].runs == (str(after[1].pk), str(after[0].pk), str(before[1].pk))
    assert "expected" in (history.answers[1].reason or "") or "not" in (history.answers[1].reason or "")
    assert [[each.answer for each in run.repeats] for run in history.runs] == [
        ["B", "B"],
        ["B", "B"],
        ["A", "A"],
        ["A", "B"],
        ["A", "A"],
    ]
    assert [bool(run.changes) for run in history.runs] == [False, True, False, False, False]


def test_versions_are_joined_by_id_and_a_changed_case_is_named(broke):
    cases = [{"id": CASE, "prompt": "And now?", "target": "blue"}]
    push_suite(document={"slug": "colours", "title": "Colours", "scorer": {"kind": "exact"}, "cases": cases})
    newer = build.finished_run(("blue",), by=build.process(build.bucket(weights="c" * 64)))
    history = case_history("colours", CASE)
    assert (history.version, history.n_runs, history.prompt) == (2, 6, "And now?")
    assert history.change is not None
    assert (history.change.run, history.change.is_pass) == (str(newer.pk), True)
    assert [fact.what for fact in history.change.changes] == ["case"]
    assert "the case itself" in history.rest[0]
    assert history.rest[1] == "So few runs can differ by chance."


def test_older_runs_are_pages_and_the_count_says_what_it_covers(broke, monkeypatch):
    monkeypatch.setattr(read_case, "RUNS_READ", 3)
    newest = case_history("colours", CASE, limit=2)
    older = case_history("colours", CASE, offset=3, limit=2)
    every = [str(run.pk) for run in reversed([*broke[0], *broke[1]])]
    assert [run.run for run in newest.runs] == every[:2]
    assert [run.run for run in older.runs] == every[3:]
    assert older.claim == newest.claim
    assert newest.rest[-1] == "Counted over the newest 3 of 5 runs."
    assert [bool(run.changes) for run in newest.runs] == [False, True], "against a run that is not shown"


@pytest.mark.nightly
def test_runs_cost_no_queries(broke):
    with CaptureQueriesContext(
        connection,
    ) as few:
        case_history("colours", CASE)
    for _ in range(3):
        build.finished_run(BROKEN, BROKEN)
    with CaptureQueriesContext(connection) as more:
        case_history("colours", CASE)
    assert len(few) == len(more) <= 10


def test_an_unknown_case_is_not_there(broke):
    with pytest.raises(NotFound, match="has a case nowhere"):
        case_history("colours", "nowhere")


def test_a_case_without_runs_says_so():
    build.suite()
    history = case_history("colours", CASE)
    assert (history.claim, history.n_runs, history.answers) == ("No answer to this case is scored yet.", 0, ())
