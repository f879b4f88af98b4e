"""The page of a case: its columns, its answers, and the act."""

import base64

import pytest

from runs.models import ImageRecord, ReplayRecord
from runs.suites import push_suite
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


def test_images_are_thumbnails_of_our_own_and_addresses_elsewhere_are_text(viewer, client):
    data = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    urls = (f"data:image/png;base64,{base64.b64encode(data).decode()}", "https://example.com/<b>.png")
    content = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    cases = [{"id": "sea", "messages": [{"role": "user", "content": content}], "target": "blue"}]
    push_suite(document={"slug": "colours", "scorer": {"kind": "exact"}, "cases": cases})
    page = viewer.get(PAGE).content.decode()
    address = f"/images/{ImageRecord.objects.get().digest}/"
    assert f'<img src="{address}"' in page
    assert "https://example.com/&lt;b&gt;.png" in page
    assert "example.com" not in "".join(part for part in page.split("<") if part.startswith(("img", "a ")))
    image = viewer.get(address)
    assert (image.status_code, image["Content-Type"], image.content) == (200, "image/png", data)
    assert image["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in image["Cache-Control"]
    assert "default-src 'none'" in image["Content-Security-Policy"]
    assert viewer.get(f"/images/{'0' * 64}/").status_code == 404
    assert client.get(address).status_code == 302  # to the sign-in page
