"""Lists in pages."""

from typing import Any

import pytest

from tests import build
from tests.api.conftest import Api
from tests.nightly import few

pytestmark = pytest.mark.django_db


def walk(api: Api, path: str, direction: str = "next") -> list[list[Any]]:
    pages, address = [], path
    while address:
        page = api.get(address).json()
        pages.append(page["results"])
        address = page[direction]
    return pages


@pytest.mark.parametrize("size", few([1, 2, 3, 5, 200], 2))
def test_following_next_sees_every_run_once_newest_first(api: Api, size: int) -> None:
    created = [str(build.run().pk) for _ in range(5)]
    pages = walk(api, f"/runs/?page_size={size}")
    assert [run["id"] for page in pages for run in page] == created[::-1]
    assert all(len(page) <= size for page in pages)


def test_following_previous_comes_back_to_the_newest(api: Api) -> None:
    created = [str(build.run().pk) for _ in range(5)]
    second = api.get(api.get("/runs/?page_size=2").json()["next"]).json()
    third = api.get(second["next"]).json()
    assert third["next"] is None
    back = walk(api, third["previous"], "previous")
    assert [run["id"] for page in reversed(back) for run in page] == created[:0:-1]


def test_a_run_that_arrives_meanwhile_neither_repeats_nor_hides_one(api: Api) -> None:
    created = [str(build.run().pk) for _ in range(4)]
    first = api.get("/runs/?page_size=2").json()
    build.run()
    second = api.get(first["next"]).json()
    assert [run["id"] for run in first["results"] + second["results"]] == created[::-1]


def test_the_filters_stay_in_the_links(api: Api) -> None:
    for label in ("a", "b", "a", "a"):
        build.run(labels={"branch": label})
    pages = walk(api, "/runs/?page_size=2&label=branch%3Da")
    assert [[run["labels"]["branch"] for run in page] for page in pages] == [["a", "a"], ["a"]]


def test_a_short_list_is_paged_like_a_long_one(api: Api) -> None:
    for slug in ("blue", "green", "red"):
        build.suite(slug)
    assert [[suite["slug"] for suite in page] for page in walk(api, "/suites/?page_size=2")] == [
        ["blue", "green"],
        ["red"],
    ]
    last = api.get(api.get("/suites/?page_size=2").json()["next"]).json()
    assert [suite["slug"] for suite in api.get(last["previous"]).json()["results"]] == ["blue", "green"]


def test_an_empty_list_has_no_further_page(api: Api) -> None:
    assert api.get("/runs/").json() == {"next": None, "previous": None, "results": []}


@pytest.mark.parametrize(
    "query", ["page_size=0", "page_size=201", "page_size=x", "cursor=x", "cursor=", "cursor=YTE5OQ%3D%3D%3D"]
)
def test_a_page_that_cannot_be_given_is_refused(api: Api, query: str) -> None:
    answer = api.get(f"/runs/?{query}")
    assert answer.status_code == 400
    assert answer.json()["fields"].keys() == {query.partition("=")[0]}
