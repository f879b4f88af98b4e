"""/runs/{id}/cases/: a row for each case over the repeats."""

from typing import Any

import pytest

from runs.models import RunRecord
from tests import build
from tests.api.conftest import Api
from tests.casts import cast

pytestmark = pytest.mark.django_db


@cast
def run() -> RunRecord:
    """Cases sky, sea and "a/b c": right, once wrong, and missing in the first repeat."""
    return build.finished_run(("blue", "red", None), ("blue", "blue", "red"))


def listed(api: Api, run: RunRecord, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/runs/{run.pk}/cases/{query}").json()["results"]
    return found


def test_a_case_has_its_scores_by_repeat_and_the_reason_of_the_lowest(api: Api, run: RunRecord) -> None:
    sky, sea, other = listed(api, run)
    assert (sky["case"], sky["case_index"], sky["score"], sky["scores"], sky["tags"]) == (
        "sky",
        0,
        1,
        [1, 1],
        ["tag-0"],
    )
    assert (sea["score"], sea["scores"], sea["is_unstable"], sea["n_texts"], sea["errors"]) == (
        0.5,
        [0, 1],
        True,
        2,
        [],
    )
    assert sea["reason"]
    assert sea["url"].endswith(f"/runs/{run.pk}/repeats/1/cases/sea/")
    assert (other["score"], other["scores"], other["errors"]) == (0, [None, 0], ["prompt_too_long"])
    assert other["url"].endswith(f"/runs/{run.pk}/repeats/2/cases/a/b%20c/")


def test_a_case_that_nobody_decoded_has_no_score(api: Api) -> None:
    [first, *_] = listed(api, build.run(repeats=1))
    assert (first["score"], first["scores"], first["reason"], first["errors"]) == (None, [None], None, [])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["sky", "sea", "a/b c"]),
        ("?only=passed", ["sky"]),
        ("?only=failed", ["sea", "a/b c"]),
        ("?only=missing", ["a/b c"]),
        ("?only=unstable", ["sea"]),
        ("?query=SEA", ["sea"]),
        ("?only=passed&query=sea", []),
    ],
)
def test_cases_come_in_the_suites_order_and_are_filtered(
    api: Api, run: RunRecord, query: str, found: list[str]
) -> None:
    assert [row["case"] for row in listed(api, run, query)] == found


def test_cases_are_paged_there_and_back(api: Api, run: RunRecord) -> None:
    first = api.get(f"/runs/{run.pk}/cases/?page_size=2").json()
    second = api.get(first["next"]).json()
    assert [row["case"] for row in first["results"] + second["results"]] == ["sky", "sea", "a/b c"]
    assert second["next"] is None
    assert api.get(second["previous"]).json()["results"] == first["results"]


def test_what_is_not_there_or_no_filter_is_refused(api: Api, run: RunRecord) -> None:
    assert api.get("/runs/999999/cases/").status_code == 404
    refused = api.get(f"/runs/{run.pk}/cases/?only=green&colour=blue")
    assert (refused.status_code, "colour" in refused.json()["fields"]) == (400, True)
