"""The page of a case: its columns, its answers, and the act."""

import pytest

from runs.models import ReplayRecord
from tests import build
from tests.casts import cast

pytestmark = pytest.mark.django_db
PAGE = "/suites/colours/cases/sea/"


@cast
def run():
    return build.finished_run()


def test_a_column_has_a_mark_for_each_repeat_and_equal_answers_have_one_ink(run, viewer):
    html = viewer.get(PAGE).content.decode()
    life = html.split("case-life")[1].split("</section>")[0]
    assert life.count("answer-chip ink-a") == life.count("answer-chip ink-b") == 1
    assert 'aria-label="repeat 1: pass"' in life
    assert 'aria-label="repeat 2: fail"' in life
    assert f'href="/compare/{run.pk}/{run.pk}/cases/sea/?repeat=1,2"' in html, "the token diff of the two answers"


def test_decode_now_is_a_replay_of_the_newest_run_and_is_listed(run, client_of):
    engineer = client_of("engineer")
    assert "Decode now on 1 endpoint" in engineer.get(PAGE).content.decode()
    answer = engineer.post(PAGE)
    assert (answer.status_code, answer["Location"]) == (302, f"{PAGE}#replays")
    replay = ReplayRecord.objects.get()
    assert (replay.run_id, replay.case_index) == (run.pk, 1)
    page = engineer.get(PAGE).content.decode()
    assert "Decoded again" in page
    assert "Queued." in page


def test_a_viewer_may_not_decode(run, viewer):
    assert "Decode now" not in viewer.get(PAGE).content.decode()
    assert viewer.post(PAGE).status_code == 403
    assert not ReplayRecord.objects.exists()


def test_a_log_has_no_endpoint_to_decode_on_and_says_so(run, client_of):
    run.is_reported = True
    run.save()
    engineer = client_of("engineer")
    assert "Decode now" not in engineer.get(PAGE).content.decode()
    answer = engineer.post(PAGE, follow=True)
    assert "No endpoint of ours has run the case sea." in answer.content.decode()
