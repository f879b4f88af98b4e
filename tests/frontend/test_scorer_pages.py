"""The page of a suite's scorers, and what a run's pages say while a team's own scorer has not scored it."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from evalboard.core.scoring import ScorerReply
from frontend.templatetags.drawing import spaced
from runs.models import RunRecord, ScoringRecord, SuiteVersionRecord
from runs.suites import push_suite, rescore_run
from runs.work import claim_scoring, finish_scoring, read_to_score
from tests import build, own_scorers
from tests.runs import logs

pytestmark = pytest.mark.django_db
PAGE = "/suites/colours/scorers/"
DIGEST = "3f2a9c10" * 8
OWN = {"kind": "python", "name": "folded", "digest": DIGEST}


def html_of(response: Any) -> str:
    assert response.status_code == 200, response.content.decode()[:400]
    return unescape(response.content.decode())


def words_of(response: Any) -> str:
    text = re.sub(r"</(td|th|h1|h2|dt|dd|li|span|a|p)>", " ", html_of(response).split('id="main"')[1])
    return " ".join(re.sub(r"<[^>]*>", "", text).split())


def push(**scorer: Any) -> SuiteVersionRecord:
    cases = [{"id": name, "prompt": "Which?", "target": "blue"} for name in ("sky", "sea", "bay")]
    return push_suite(document={"slug": "colours", "scorer": scorer or {"kind": "exact"}, "cases": cases})[0]


def test_a_suite_that_has_not_run_says_what_scores_it(engineer: Client) -> None:
    push(kind="exact", part="first_word")
    words = words_of(engineer.get(PAGE))
    assert "exact scores 3 cases. Options: part first_word." in words
    assert "so there is nothing to score again" in words
    assert f'href="{PAGE}"' in html_of(engineer.get("/suites/colours/"))


def test_another_scorer_is_tried_on_the_newest_run_and_adopted(engineer: Client, viewer: Client) -> None:
    run = build.finished_run(("blue", "Blue", "red"), version=push())
    sent = {"act": "try", "scorer": "exact", "options": '{"normalise": {"case": "fold"}}'}
    tried = engineer.post(f"{PAGE}?run={run.pk}", sent)
    assert tried.status_code == 302
    words = words_of(engineer.get(tried["Location"]))
    named = rf"Run {run.pk} would have 66.67 points with exact \([0-9a-f]{{8}}\) in place of exact: "
    assert re.search(rf"{named}\+33.3 from 33.33\.", words), words
    assert "1 case would change. One of 3 cases is 33.3 points." in words
    assert "sea +33.3 blue Blue" in words
    assert "exact normalise case fold 66.7 +33.3 1 Changes" in words
    html = html_of(viewer.get(tried["Location"]))
    assert "hx-get" not in html.split('id="rescored"')[1].split(">")[0]
    assert 'value="adopt"' not in html
    assert 'value="try"' not in html
    (scorer,) = re.findall(r'name="scorer" value="(\d+)"', html_of(engineer.get(PAGE)))
    adopted = engineer.post(f"{PAGE}?run={run.pk}", {"act": "adopt", "scorer": scorer}, follow=True)
    assert "colours v2 is scored by exact. Its next run uses it." in words_of(adopted)
    assert SuiteVersionRecord.objects.get(number=2).scorer_id == int(scorer)
    assert re.search(r"the run’s version’s .* the suite’s", words_of(adopted))


def test_the_run_is_chosen_from_those_of_the_suite_logs_among_them(engineer: Client) -> None:
    version = push()
    older, newer = (build.finished_run(("blue", answer, "red"), version=version) for answer in ("Blue", "blue"))
    RunRecord.objects.filter(pk=older.pk).update(status="incomplete")
    choice = html_of(engineer.get(PAGE)).partition('<select id="run"')[2].partition("</select>")[0]
    assert re.findall(r'value="(\d+)"( selected)?', choice) == [(str(newer.pk), " selected"), (str(older.pk), "")]
    assert f"Run {older.pk} , by each scorer" in words_of(engineer.get(f"{PAGE}?run={older.pk}"))


def test_spaces_that_a_page_would_fold_are_quoted() -> None:
    assert [spaced(text) for text in ("Oslo", " Oslo", "New  York\n")] == ["Oslo", '" Oslo"', '"New  York\\n"']


def test_what_does_not_suit_stands_at_the_form(engineer: Client) -> None:
    run = build.finished_run(("blue", "Blue", "red"), version=push())
    refused = engineer.post(f"{PAGE}?run={run.pk}", {"act": "try", "scorer": "number", "options": ""})
    assert refused.status_code == 422
    assert "must be a number" in unescape(refused.content.decode())
    judge = engineer.post(f"{PAGE}?run={run.pk}", {"act": "try", "scorer": "judge", "options": ""})
    assert "scorer.endpoint: is missing; judge needs it" in unescape(judge.content.decode())
    assert engineer.get(f"{PAGE}?run=999999").status_code == 404


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_the_page_follows_a_teams_scorer_until_its_scores_are_there(
    engineer: Client, settings: Any, tmp_path: Path
) -> None:
    run = build.finished_run(("blue", "Blue", "red"), version=push())
    with own_scorers.working(settings, tmp_path) as worker:
        (offered,) = re.findall(r'value="(command folded [0-9a-f]{8})"', html_of(engineer.get(PAGE)))
        place = engineer.post(f"{PAGE}?run={run.pk}", {"act": "try", "scorer": offered})["Location"]
        page = engineer.get(place)
        assert "A worker scores them with folded: 0 of 3." in words_of(page)
        (part,) = re.findall(r'hx-get="([^"]+part=scores)"', html_of(page))
        worker.work()
    after = html_of(engineer.get(part))
    assert "hx-get" not in after
    assert "66.67 points with command folded" in re.sub("<[^>]*>", "", after), after


@pytest.mark.nightly
def test_scoring_that_no_worker_can_do_is_cancelled_on_the_runs_page(engineer: Client) -> None:
    run = build.finished_run(("blue", "Blue", "red"), version=push())
    assert "Cancel scoring again" not in words_of(engineer.get(f"/runs/{run.pk}/"))
    rescore_run(run_id=run.pk, scorer=OWN)
    assert "Cancel scoring again" in words_of(engineer.get(f"/runs/{run.pk}/"))
    after = words_of(engineer.post(f"/runs/{run.pk}/cancel/", follow=True))
    assert "Stored responses and scores stay." in after
    assert "Cancel scoring again" not in after
    assert not ScoringRecord.objects.exists()


def test_a_suite_whose_scorer_no_worker_has_says_so(engineer: Client) -> None:
    push(**OWN)
    words = words_of(engineer.get(PAGE))
    assert "python folded (3f2a9c10) scores 3 cases." in words
    assert "No worker has the scorer folded (3f2a9c10), so runs of this suite wait for their scores." in words


def awaited() -> RunRecord:
    """A run with all its responses, whose scorer is the team's own."""
    build.process()
    return build.finished_run(("blue", "Blue", "red"), version=push(**OWN))


@pytest.mark.nightly
def test_a_run_that_waits_for_its_scorer_says_so_on_its_page(engineer: Client) -> None:
    run = awaited()
    words = words_of(engineer.get(f"/runs/{run.pk}/"))
    assert "The scores are not there yet." in words
    assert "No worker that runs has the scorer folded (3f2a9c10)." in words
    build.worker(name="second", scorers=[{"digest": DIGEST, "problem": ""}])
    words = words_of(engineer.get(f"/runs/{run.pk}/"))
    assert "All responses are there. A worker scores them with folded: 0 of 3." in words
    assert "No worker that runs" not in words


@pytest.mark.nightly
def test_a_run_whose_scorer_scored_nothing_does_not_speak_of_a_log(engineer: Client) -> None:
    run = awaited()
    worker = build.worker(name="second", scorers=[{"digest": DIGEST, "problem": ""}])
    lease = claim_scoring(worker=worker, left_alone=frozenset())
    assert lease is not None
    row = ScoringRecord.objects.get()
    given = {
        each.index: ScorerReply(None, "Unscored: it raised.") for part in read_to_score(row.repeat) for each in part
    }
    finish_scoring(lease=lease, given=given)
    run.refresh_from_db()
    words = words_of(engineer.get(f"/runs/{run.pk}/"))
    assert "The scorer left every response of 1 repeat without one." in words
    assert "The log gave none" not in words
    assert "Unscored: it raised." in words_of(engineer.get(f"/runs/{run.pk}/repeats/1/cases/sea/"))


@pytest.mark.nightly
def test_an_imported_run_ends_with_its_scores_or_without_them_once_it_is_cancelled(engineer: Client) -> None:
    cases = [{"id": each.id, "messages": [*each.messages], "target": "blue"} for each in map(logs.case, logs.CASES)]
    push_suite(document={"slug": "colours", "scorer": OWN, "cases": cases})
    run = logs.stored(logs.log(scorers=()), suite="colours")
    address = f"/runs/{run.pk}/"
    assert (run.status, run.finished_at) == ("running", None)
    assert "The scores are not there yet." in words_of(engineer.get(address))
    response = words_of(engineer.get(f"{address}repeats/1/cases/sea/"))
    assert "It is not scored yet." in response
    assert "The log gave no score" not in response
    assert engineer.post(f"{address}cancel/").status_code == 302
    run.refresh_from_db()
    assert run.status == "finished"
    assert "The scorer left every response of 2 repeats without one." in words_of(engineer.get(address))
    assert "Unscored: The run was cancelled." in words_of(engineer.get(f"{address}repeats/1/cases/sea/"))
