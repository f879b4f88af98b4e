"""The tour on a fresh board: three sentences whose links open what they promise, until somebody has enough of it."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from runs.catalogue import store_default_policies, store_default_profiles
from runs.models import ReleaseRecord
from runs.tour import load_tour, remove_tour
from tests.casts import cast
from tests.frontend import release_runs

pytestmark = pytest.mark.django_db


@cast
def sample() -> None:
    store_default_profiles()
    store_default_policies()
    load_tour(user=get_user_model().objects.create(username="local"))


def page_of(client: Any, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return unescape(answer.content.decode())


def tour_of_board(client: Any) -> str:
    found = re.search(r'<aside class="facts tour-line".*?</aside>', page_of(client, "/"), re.DOTALL)
    return found[0] if found else ""


def walk(client: Any) -> dict[str, str]:
    """Return the pages of the tour by address, from the board's link on."""
    found = re.search(r'href="(/runs/\d+/\?tour=1)"', tour_of_board(client))
    assert found is not None
    at, pages = found[1], {}
    while at:
        pages[at] = page_of(client, at)
        following = re.search(r'<a class="button" href="([^"]+tour=\d[^"]*)">Next: ', pages[at])
        at = following[1] if following else ""
    return pages


def test_one_line_leads_to_a_run_its_comparison_a_token_and_the_release(sample: None, viewer: Any) -> None:
    pages = walk(viewer)
    assert [path.split("/")[1] for path in pages] == ["runs", "compare", "compare", "releases"]
    run, compared, token, release = pages.values()
    for number, page in enumerate(pages.values(), start=1):
        assert f"<b>Tour, {number} of 4.</b>" in page
    assert "Read from an export of <bdi>Evalboard</bdi>" in run
    assert "12 broken</a>" in compared
    assert compared.count("Each change is there in every repeat.") == 1
    assert "12 cases changed their score." in compared, "not in some repeat, where it is in every one"
    assert "word-002" in token
    assert "No-ship" in release
    assert "may ship." in release
    assert "is not settled by so few cases." in release
    assert "cannot be judged as a new serving stack, as the weights are others too." in release


def test_the_sample_is_folded_once_there_are_other_releases(sample: None, viewer: Any) -> None:
    board = page_of(viewer, "/")
    assert "One release must not ship." in board
    assert "sample releases of the tour" not in board
    assert "4 sample releases" not in tour_of_board(viewer)
    made = release_runs.of_kind("ship")
    board = page_of(viewer, "/")
    listed, folded = board.split('<details class="fold">')[:2]
    assert "One release waits for a signature." in listed
    assert f"release {made.pk} · <bdi>colours</bdi>" in listed
    assert "smollm2" not in listed.split("<tbody>")[1]
    assert folded.count("smollm2-135m-instruct-4bit</bdi></b>") == 2
    assert "its 4 sample releases are folded below" in tour_of_board(viewer)


@pytest.mark.nightly
def test_a_page_outside_the_tour_says_nothing_of_it(sample: None, viewer: Any) -> None:
    found = re.search(r'href="(/runs/\d+/)\?tour=1"', tour_of_board(viewer))
    assert found is not None
    for path in (found[1], "/releases/?tour=1", f"{found[1]}?tour=4", f"{found[1]}?tour=x"):
        assert "Tour, " not in page_of(viewer, path), path


@pytest.mark.nightly
def test_one_click_ends_it_for_one_person_for_good(sample: None, viewer: Any, engineer: Any) -> None:
    run = re.search(r'href="(/runs/\d+/\?tour=1)"', tour_of_board(viewer))
    assert viewer.post("/tour/end/").headers["Location"] == "/"
    assert tour_of_board(viewer) == ""
    assert run is not None
    assert "Tour, " not in page_of(viewer, run[1])
    assert tour_of_board(engineer) != ""
    assert viewer.get("/tour/end/").headers["Location"] == "/"


def test_without_its_sample_there_is_no_tour(sample: None, viewer: Any) -> None:
    remove_tour()
    assert tour_of_board(viewer) == ""


@pytest.mark.nightly
def test_nothing_offers_to_decode_the_sample_again(sample: None, engineer: Any) -> None:
    run, _, token, _ = walk(engineer).values()
    assert "Decode again" not in token
    assert 'name="n"' not in run  # of more repeats
    assert "evalboard replay" not in token


@pytest.mark.nightly
def test_a_release_of_the_sample_offers_no_new_logs_of_it(sample: None, engineer: Any) -> None:
    """Nobody can make any: they come with Evalboard."""
    releases = {release.verdict.word: release for release in ReleaseRecord.objects.select_related("verdict")}
    steps = [line["code"] for line in releases["not_comparable"].verdict.document["next"]]
    assert steps == ["import_again"]
    page = page_of(engineer, f"/releases/{releases['not_comparable'].pk}/")
    hero = page[page.index('class="hero-words"') : page.index('class="instrument"')]
    assert "none of it can be decoded again here" in hero
    assert "new logs" not in hero
    assert "Judge the service instead" in hero
    assert "Import" not in page_of(engineer, f"/releases/{releases['inconclusive'].pk}/")


@pytest.mark.nightly
def test_the_claim_of_a_verdict_stands_in_bold(sample: None, viewer: Any) -> None:
    for release in ReleaseRecord.objects.exclude(verdict__word="not_comparable"):
        sentence = re.search(
            r'<p class="hero-sentence">(.*?)</p>', page_of(viewer, f"/releases/{release.pk}/"), re.DOTALL
        )
        assert sentence is not None
        bold = re.search(r"<strong>(.*?)</strong>", sentence[1], re.DOTALL)
        assert bold is not None
        assert re.sub("<[^>]+>", "", bold[1]) in release.verdict.document["summary"]


def test_who_is_not_signed_in_ends_nothing(sample: None, client_of: Any) -> None:
    assert client_of("anonymous").post("/tour/end/").status_code in (302, 403)
