"""Comparisons over REST: the fields that the contract names, filters, pages, one pair, and what is refused."""

from typing import Any

import pytest

from evalboard.core.compare import cause
from runs.compare import comparisons
from runs.models import RunRecord
from tests import build
from tests.api.conftest import Api
from tests.casts import cast
from tests.nightly import few

pytestmark = pytest.mark.django_db
CAUSES = {
    "error",
    "identical",
    "scorer",
    "model_changed",
    "prompt_changed",
    "prompt_mismatch",
    "sampling_changed",
    "leak",
    "silent_change",
    "seed_ignored",
    "backend_changed",
    "model_name_changed",
    "whitespace",
    "length",
    "filtered",
    "refused",
    "empty",
    "cut",
    "constrained",
    "sampler_fault",
    "drift_only",
    "near_tie",
    "larger_shift",
    "unknown",
}


@cast
def runs() -> tuple[RunRecord, RunRecord]:
    """The candidate, on another backend, answers "sea" otherwise in both repeats and misses one response."""
    baseline = build.finished_run(("blue", "blue", "red"), ("blue", "blue", "red"))
    other = build.process(build.bucket("bfloat16"))
    return baseline, build.finished_run(("blue", "red", "red"), ("blue", "red", None), by=other)


def of(runs: tuple[RunRecord, RunRecord]) -> str:
    return f"baseline={runs[0].pk}&candidate={runs[1].pk}"


def test_a_comparison_has_the_fields_of_the_contract(api: Api, runs: tuple[RunRecord, RunRecord]) -> None:
    answer = api.get(f"/compare/?{of(runs)}")
    assert answer.status_code == 200
    found = answer.json()
    assert (found["baseline"], found["candidate"]) == (str(runs[0].pk), str(runs[1].pk))
    assert found["comparable"] is False
    assert found["moved"] == [{"field": "engine.dtype", "baseline": "float32", "candidate": "bfloat16"}]
    assert [block["code"] for block in found["blocks"]] == ["rebaseline"]
    assert found["score"] == {
        "baseline": pytest.approx(200 / 3),
        "candidate": pytest.approx(100 / 3),
        "difference": pytest.approx(-100 / 3),
    }
    counts = {"identical": 3, "drift_only": 0, "flipped": 2, "text_only": 0, "score_changed": 2, "missing": 1}
    assert {name: found["counts"][name] for name in counts} == counts | {"identical": found["counts"]["identical"]}
    kinds = ("identical", "drift_only", "flipped", "text_only")
    assert sum(found["counts"][kind] for kind in kinds) == found["counts"]["n_pairs"]
    assert sum(row["points"] for row in found["ledger"]) == pytest.approx(found["score"]["difference"], abs=1e-9)
    assert [(row["cause"], row["n_cases"], row["gained"]) for row in found["ledger"]] == [("backend_changed", 1, 0.0)]
    assert found["flip_histogram"]["series"] == [{"cause": "backend_changed", "counts": [2]}]
    [cluster] = found["clusters"]
    assert (cluster["baseline_token"], cluster["candidate_token"], cluster["cases"]) == ("blue", "·red", ["sea"])
    assert found["progress"]["status"] == "finished"
    assert found["url"].endswith(f"/compare/{runs[0].pk}/{runs[1].pk}/")


def test_case_rows_come_gravest_first_in_pages(api: Api, runs: tuple[RunRecord, RunRecord]) -> None:
    first = api.get(f"/compare/cases/?{of(runs)}&page_size=2").json()
    assert first["previous"] is None
    second = api.get(first["next"]).json()
    rows = first["results"] + second["results"]
    assert [(row["case"], row["repeat_baseline"], row["cause"]) for row in rows] == [
        ("sea", 1, "backend_changed"),
        ("sea", 2, "backend_changed"),
        ("a/b c", 2, "error"),
    ]
    assert api.get(second["previous"]).json()["results"] == first["results"]
    row = rows[0]
    assert (row["numeric"], row["flip_position"], row["drift_onset"]) == ("larger_shift", 0, None)
    assert (row["score_baseline"], row["score_candidate"]) == (100.0, 0.0)
    assert (row["backend_baseline"], row["backend_candidate"]) == ("A", "B")
    assert row["margin_baseline"] == pytest.approx(1.75)
    assert row["evidence"]["movement"] == pytest.approx(3.5)
    assert row["url"].endswith("/cases/sea/?repeat=1%2C1&at=0")
    assert (rows[2]["score_candidate"], rows[2]["flip_position"]) == (None, None)


@pytest.mark.parametrize(
    ("query", "n_rows"),
    few(
        [
            ("cause=error", 1),
            ("cause=near_tie", 0),
            ("changed=1", 2),
            ("changed=0", 0),
            ("tag=tag-1", 2),
            ("query=a%2Fb", 1),
            ("backend=A-B", 2),
            ("backend=A-A", 0),
            ("cluster=nothing", 0),
            ("repeat=2,2", 2),
        ],
        3,
    ),
)
def test_filters(api: Api, runs: tuple[RunRecord, RunRecord], query: str, n_rows: int) -> None:
    assert len(api.get(f"/compare/cases/?{of(runs)}&{query}").json()["results"]) == n_rows


def test_one_pair_side_by_side(api: Api, runs: tuple[RunRecord, RunRecord]) -> None:
    found = api.get(f"/compare/cases/sea/?{of(runs)}&repeat=2,2").json()
    assert (found["case"], found["cause"], found["flip_position"], found["at"]) == ("sea", "backend_changed", 0, 0)
    assert (found["baseline"]["text"], found["candidate"]["text"]) == ("blue", "red")
    assert (found["baseline"]["score"], found["candidate"]["score"]) == (100.0, 0.0)
    at = next(step for step in found["positions"] if step["at"] == 0)
    assert [cell["drawn"] for cell in (*at["baseline"], *at["candidate"])] == ["blue", "·red"]
    assert [other["token_id"] for other in at["candidate"][0]["alternatives"]] == [2, 1]
    assert {"field": "engine.dtype", "baseline": "float32", "candidate": "bfloat16"} in found["moved"]
    assert "fingerprint" in {line["field"] for line in found["provenance"]}


def test_a_pair_says_the_same_before_and_after_its_comparison_is_stored(
    api: Api, runs: tuple[RunRecord, RunRecord]
) -> None:
    pair = f"/compare/cases/sea/?{of(runs)}&repeat=2,2"
    before = api.get(pair).json()
    api.get(f"/compare/?{of(runs)}&repeat=2,2")
    [listed, _] = api.get(f"/compare/cases/?{of(runs)}&cause=backend_changed").json()["results"]
    assert api.get(pair).json() == before
    assert {name: listed["evidence"][name] for name in before["evidence"]} == before["evidence"]


def test_a_case_id_may_hold_a_slash(api: Api, runs: tuple[RunRecord, RunRecord]) -> None:
    assert api.get(f"/compare/cases/a/b%20c/?{of(runs)}").json()["case"] == "a/b c"


def test_a_large_comparison_answers_at_once_with_its_progress(
    api: Api, runs: tuple[RunRecord, RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparisons, "INLINE", 0)
    found = api.get(f"/compare/?{of(runs)}").json()
    assert found["progress"] == {"status": "queued", "n_done": 0, "n_total": 2, "error": None}
    assert (found["counts"]["unread"], found["counts"]["missing"], found["ledger"]) == (2, 1, [])
    assert found["flip_histogram"] is None
    assert api.get(f"/compare/cases/?{of(runs)}").json()["results"] == []
    while comparisons.work_on_comparison():
        pass
    assert api.get(f"/compare/?{of(runs)}").json()["progress"]["status"] == "finished"


def wrong(runs: tuple[RunRecord, RunRecord]) -> dict[str, tuple[str, int, str]]:
    one = runs[0].pk
    return {
        "no candidate": (f"/compare/?baseline={one}", 400, "candidate"),
        "no number": (f"/compare/?baseline={one}&candidate=x", 400, "candidate"),
        "itself": (f"/compare/?baseline={one}&candidate={one}", 400, "repeat"),
        "no repeat": (f"/compare/?{of(runs)}&repeat=1", 400, "repeat"),
        "repeat zero": (f"/compare/?{of(runs)}&repeat=0,1", 400, "repeat"),
        "no such repeat": (f"/compare/?{of(runs)}&repeat=1,9", 404, ""),
        "no such run": (f"/compare/?baseline={one}&candidate=999999", 404, ""),
        "no such cause": (f"/compare/cases/?{of(runs)}&cause=magic", 400, "cause"),
        "no such filter": (f"/compare/cases/?{of(runs)}&colour=blue", 400, "colour"),
        "no such case": (f"/compare/cases/nowhere/?{of(runs)}", 404, ""),
    }


def test_wrong_input_is_a_problem_that_names_its_field(api: Api, runs: tuple[RunRecord, RunRecord]) -> None:
    for name, (address, status, field) in wrong(runs).items():
        answer = api.get(address)
        assert answer.status_code == status, name
        problem: dict[str, Any] = answer.json()
        assert answer["Content-Type"] == "application/problem+json", name
        assert list(problem.get("fields") or {}) == ([field] if field else []), name


def test_causes_are_those_of_the_contract() -> None:
    assert set(cause.CAUSES) == CAUSES
