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
    found = re.search(r'<aside class="tour".*?</aside>', page_of(client, "/"), re.DOTALL)
    return found[0] if found else ""


@pytest.mark.nightly
def test_three_sentences_lead_to_a_run_its_comparison_a_token_and_the_release(sample: None, viewer: Any) -> None:
    tour = tour_of_board(viewer)
    assert tour.count("<li>") == 3
    links = re.findall(r'<a href="([^"]+)">', tour)
    on_tour = sorted((url for url in links if "tour=" in url), key=lambda url: url[-1])
    run, compared, token, release = (page_of(viewer, url) for url in on_tour)
    for number, page in enumerate((run, compared, token, release), start=1):
        assert f"<b>Tour, {number} of 4.</b>" in page
    assert "Read from an export of <bdi>Evalboard</bdi>" in run
    assert "12 broken</a>" in compared
    assert "json-004" in token
    assert "<h1" in release
    assert "No-ship" in release
    for url in links:
        page_of(viewer, url)


def test_each_stop_leads_to_the_next_and_the_last_names_the_other_verdicts(sample: None, viewer: Any) -> None:
    found = re.search(r'href="(/runs/\d+/\?tour=1)"', tour_of_board(viewer))
    assert found is not None
    at, seen = found[1], []
    while at:
        page = page_of(viewer, at)
        seen.append(at.partition("?")[0])
        following = re.search(r'<a class="button" href="([^"]+tour=\d[^"]*)">Next: ', page)
        at = following[1] if following else ""
    assert [path.split("/")[1] for path in seen] == ["runs", "compare", "compare", "releases"]
    assert "may ship." in page
    assert "is not settled by so few cases." in page
    assert "cannot be judged as a new serving stack, as the weights are others too." in page


def test_a_page_outside_the_tour_says_nothing_of_it(sample: None, viewer: Any) -> None:
    found = re.search(r'href="(/runs/\d+/)\?tour=1"', tour_of_board(viewer))
    assert found is not None
    for path in (found[1], "/releases/?tour=1", f"{found[1]}?tour=4", f"{found[1]}?tour=x"):
        assert "Tour, " not in page_of(viewer, path), path


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


def test_nothing_offers_to_decode_the_sample_again(sample: None, engineer: Any) -> None:
    tour = tour_of_board(engineer)
    run, token = (re.search(rf'href="([^"]+tour={number})"', tour) for number in (1, 3))
    assert run is not None
    assert token is not None
    assert "Decode again" not in page_of(engineer, token[1])
    assert 'name="n"' not in page_of(engineer, run[1])  # of more repeats
    assert "evalboard replay" not in page_of(engineer, token[1])


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
