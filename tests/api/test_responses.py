"""/runs/{id}/responses/ and the traces below it."""

from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from evalboard.core.trace import read_block
from runs.models import RunRecord
from tests import build
from tests.api.conftest import Api
from tests.casts import cast
from tests.nightly import few

pytestmark = pytest.mark.django_db

# What people call their cases; each must be reachable by its address.
CASE_IDS = ["sky", "a/b c", "/", "x/trace", "per%cent", "q?u=e#st", "blå ☁", "trace/", "%2F", "a//b", "responses/1"]


@cast
def run() -> RunRecord:
    return build.finished_run(("blue", None, "red"), ("blue", "blue", "red"))


def listed(api: Api, run: RunRecord, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/runs/{run.pk}/responses/{query}").json()["results"]
    return found


def test_a_response_is_text_score_reason_provenance_and_digest(api: Api, run: RunRecord) -> None:
    first = listed(api, run)[0]
    assert (first["case"], first["repeat"], first["text"], first["score"]) == ("sky", 1, "blue", 1.0)
    assert first["reason"]
    assert first["error"] is None
    assert first["trace_digest"] == build.trace("blue").digest.hex()
    assert first["provenance"]["seed_sent"] == 42
    assert first["provenance"]["batch_max"] == 1
    assert first["recorded_at"].endswith("Z")


def test_a_missing_response_has_no_score_and_says_why(api: Api, run: RunRecord) -> None:
    missing = listed(api, run, "?case=sea&repeat=1")[0]
    assert (missing["text"], missing["score"], missing["trace_digest"]) == ("", None, None)
    assert missing["error"] == {"code": "prompt_too_long", "detail": "1,100 tokens do not fit."}
    trace = api.get(f"/runs/{run.pk}/responses/1/sea/trace/")
    assert (trace.status_code, "prompt_too_long" in trace.json()["detail"]) == (404, True)


@pytest.mark.parametrize(
    ("query", "n"), [("", 6), ("?repeat=2", 3), ("?repeat=9", 0), ("?case=sky", 2), ("?case=a%2Fb%20c&repeat=2", 1)]
)
def test_responses_are_filtered_by_case_and_repeat(api: Api, run: RunRecord, query: str, n: int) -> None:
    assert len(listed(api, run, query)) == n


def test_responses_are_paged(api: Api, run: RunRecord) -> None:
    first = api.get(f"/runs/{run.pk}/responses/?page_size=4").json()
    second = api.get(first["next"]).json()
    assert [row["case"] for row in first["results"] + second["results"]] == ["sky", "sea", "a/b c"] * 2
    assert api.get(second["previous"]).json()["results"] == first["results"]


def test_a_case_that_the_suite_has_not_is_not_found(api: Api, run: RunRecord) -> None:
    assert api.get(f"/runs/{run.pk}/responses/?case=nothing").status_code == 404


def test_a_trace_is_its_positions(api: Api, run: RunRecord) -> None:
    first, last = api.get(f"/runs/{run.pk}/responses/1/sky/trace/").json()["positions"]
    assert (first["token_id"], first["token"], first["logprob"]) == (1, "blue", -0.25)
    assert [(other["token_id"], other["logprob"]) for other in first["alternatives"]] == [(1, -0.25), (2, -2.0)]
    assert last["alternatives"][1]["logprob"] is None, "no infinity in JSON"


def test_a_trace_is_answered_by_range(api: Api, run: RunRecord) -> None:
    address = f"/runs/{run.pk}/responses/1/sky/trace/"
    whole = api.get(address).json()
    assert (whole["start"], whole["length"]) == (0, len(whole["positions"]))
    last = api.get(f"{address}?start=1&limit=1").json()
    assert last == {"start": 1, "length": whole["length"], "positions": whole["positions"][1:2]}
    assert api.get(f"{address}?limit=1").json()["positions"] == whole["positions"][:1]
    assert api.get(f"{address}?start=999").json() == {**whole, "start": whole["length"], "positions": []}
    refused = api.get(f"{address}?start=-1")
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["start"])
    packed = api.get(f"{address}?limit=1", Accept="application/octet-stream")
    assert (packed.status_code, list(packed.json()["fields"])) == (400, ["limit"])


def test_packed_bytes_are_the_trace_to_the_bit(api: Api, run: RunRecord) -> None:
    answer = api.get(f"/runs/{run.pk}/responses/1/sky/trace/", Accept="application/octet-stream")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/octet-stream")
    [packed] = read_block(answer.content)
    assert packed.digest == build.trace("blue").digest
    assert np.isneginf(packed.alternative_logprobs[1, 1])


def test_a_problem_stays_a_problem_where_bytes_were_asked_for(api: Api, run: RunRecord) -> None:
    answer = api.get(f"/runs/{run.pk}/responses/1/nothing/trace/", Accept="application/octet-stream")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("case_id", few(CASE_IDS, 2))
def test_every_case_can_be_addressed(api: Api, case_id: str) -> None:
    run = build.finished_run(("blue",), version=build.suite(case_ids=[case_id]))
    answer = api.get(f"/runs/{run.pk}/responses/1/{quote(case_id, safe='')}/trace/")
    assert answer.status_code == 200
    assert len(listed(api, run, f"?case={quote(case_id, safe='')}")) == 1
