"""Experiments over the API."""

import re
from typing import Any

import pytest

from runs.models import ExperimentRecord, RunRecord
from runs.sweep import reconcile
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db
CONTROL = ("blue", "blue", "red")


@pytest.fixture
def body() -> dict[str, Any]:
    build.suite()
    build.profile()
    return {"suite": "colours", "endpoint": build.endpoint(), "runs": 5, "sources": ["order"]}


def finished(api: Api, body: dict[str, Any]) -> str:
    """An experiment whose arms a worker served: the order moved one pass."""
    made = api.post("/experiments/", body | {"start": True})
    assert made.status_code == 201
    reconcile()
    for texts in ([CONTROL] * 5, [CONTROL] * 4 + [("blue", "red", "red")]):
        run = RunRecord.objects.latest("id")
        process = build.process()
        for index, of_repeat in enumerate(texts, start=1):
            build.decode(run, index, of_repeat, by=process)
        reconcile()
    return str(made.json()["id"])


def read(answer: Any) -> str:
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode()


def test_a_plan_is_stored_confirmed_cancelled_and_deleted(api: Api, body: dict[str, Any]) -> None:
    made = api.post("/experiments/", body)
    assert made.status_code == 201
    planned = made.json()
    assert (planned["status"], planned["kind"], planned["started_at"]) == ("planned", "variance", None)
    assert [arm["source"] for arm in planned["arms"]] == ["control", "order"]
    assert {"source", "label", "code", "reason"} == planned["not_measured"][0].keys()
    assert made.headers["Location"].endswith(f"/experiments/{planned['id']}/")
    address = f"/experiments/{planned['id']}/"
    assert api.get(address).json() == planned
    started = api.post(f"{address}start/", {"budget_minutes": 30}).json()
    assert (started["status"], started["budget_minutes"]) == ("running", 30)
    assert api.delete(address).status_code == 409
    assert api.post(f"{address}start/").status_code == 409
    assert api.post(f"{address}cancel/").json()["status"] == "cancelled"
    assert api.post(f"{address}resume/").json()["status"] == "running"
    api.post(f"{address}cancel/")
    assert api.delete(address).status_code == 204
    assert api.get(address).status_code == 404


@pytest.mark.nightly
def test_the_table_is_a_file_and_the_report_is_markdown(api: Api, body: dict[str, Any]) -> None:
    address = f"/experiments/{finished(api, body)}/"
    detail = api.get(address).json()
    assert (detail["status"], [row["state"] for row in detail["rows"]]) == ("finished", ["holds", "source"])
    assert api.get("/experiments/").json()["results"][0]["sentence"] == detail["sentence"]
    lines = read(api.get(f"{address}table.csv")).splitlines()
    assert lines[0].startswith("source,name,condition,n_runs,")
    assert len(lines) == 1 + len(detail["rows"]) + len(detail["not_measured"])
    text = read(api.get(f"{address}report.md"))
    assert text.startswith(f"# Variance of colours v1\n\n{detail['sentence']}\n")
    assert f"[run {detail['arms'][1]['run']}](http" in text
    assert "| order of cases |" in text
    assert "* Judge: no scorer of this suite is a model." in text
    assert "minutes spent" in text
    assert re.search(r"Planned by \w+ on 20..-..-.. ..:.. UTC; confirmed on .* UTC; ended on .* UTC\.", text)
    served = detail["arms"][1]["bucket"]
    stack = f"paint-1b `{'a' * 8}` | vLLM 0.32.0, CPU, float32 `{served['fingerprint']['digest'][:8]}` | alone |"
    assert f"/) | local | pinned | {stack}" in text
    assert '"kv_cache_dtype": "auto"' in text
    assert text.endswith(
        "`evalboard experiment variance colours --endpoint local --profile pinned --runs 5 --source order`\n"
    )


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"runs": 4}, 400, "runs"),
        ({"sources": ["weather"]}, 400, "sources"),
        ({"kind": "divide"}, 400, "kind"),
        ({"budget_minutes": "much"}, 400, "budget_minutes"),
        ({"start": "yes"}, 400, "start"),
        ({"suite": "nowhere"}, 404, None),
    ],
)
def test_what_is_no_experiment_is_refused(
    api: Api, body: dict[str, Any], changes: dict[str, Any], status: int, field: str | None
) -> None:
    refused = api.post("/experiments/", {**body, **changes})
    assert refused.status_code == status
    assert field is None or list(refused.json()["fields"]) == [field]
    assert not ExperimentRecord.objects.exists()


@pytest.mark.nightly
def test_a_bisect_is_planned_started_and_exported(api: Api, body: dict[str, Any]) -> None:
    build.endpoint("half", dtype="bfloat16")
    ours = build.finished_run(("blue", "blue", "blue"))
    theirs = build.finished_run(("red", "red", "blue"), on="half", by=build.process(build.bucket("bfloat16")))
    made = api.post("/experiments/", {"kind": "bisect", "baseline": ours.pk, "candidate": theirs.pk, "start": True})
    assert made.status_code == 201
    reconcile()
    for texts in (("blue", "blue", "blue"), ("red", "red", "blue")):
        run = RunRecord.objects.latest("id")
        build.decode(run, 1, dict(enumerate(texts)), by=build.process(build.bucket(run.endpoint.dtype)))
        reconcile()
    address = f"/experiments/{made.json()['id']}/"
    found = api.get(address).json()
    assert (found["kind"], found["status"], found["rows"], found["not_measured"]) == ("bisect", "finished", [], [])
    [dtype] = found["bisect"]["fields"]
    assert (dtype["name"], dtype["state"], dtype["n_made"], dtype["n_undone"]) == ("dtype", "cause", 2, 2)
    assert [step["shown"] for step in found["bisect"]["steps"]] == [["baseline"] * 2, ["candidate"] * 2]
    assert found["bisect"]["cases"][0]["url"].startswith("http")
    assert [arm["source"] for arm in found["arms"]] == ["step", "step"]
    assert read(api.get(f"{address}table.csv")).splitlines()[1].startswith("dtype,float32,bfloat16,here,2,2,2,")
    report = read(api.get(f"{address}report.md"))
    assert "dtype alone causes 2 of 2 flips" in report
    assert [(case["token_baseline"], case["token_candidate"]) for case in found["bisect"]["cases"]] == [
        ("blue", "·red")
    ] * 2
    assert "Only this field differs" in report
    assert "| token 0 | `blue` | `·red` |" in report
    assert f"| candidate | [run {theirs.pk}](" in report
    sides = found["bisect"]["sides"]
    assert [(each["side"], each["run"]) for each in sides] == [
        ("baseline", str(ours.pk)),
        ("candidate", str(theirs.pk)),
    ]
    assert sides[1]["bucket"]["fingerprint"]["label"].endswith("bfloat16")
    assert sides[1]["score"] - sides[0]["score"] == found["bisect"]["points"]
    for side in sides:
        score = f"{side['score']:.1f}"
        assert f"| {side['side']} | {side['run']} | {score} | {side['endpoint']} | {side['profile']} | 20" in report


@pytest.mark.nightly
def test_a_bisect_that_cannot_be_is_refused(api: Api, body: dict[str, Any]) -> None:
    run = build.finished_run()
    asked = {"kind": "bisect", "baseline": run.pk}
    assert api.post("/experiments/", asked).status_code == 400
    assert api.post("/experiments/", asked | {"candidate": run.pk}).status_code == 400
    assert api.post("/experiments/", asked | {"candidate": run.pk, "suite": "colours"}).status_code == 400
    assert api.post("/experiments/", asked | {"candidate": run.pk + 1}).status_code == 404
    same = build.finished_run()
    assert api.post("/experiments/", asked | {"candidate": same.pk}).status_code == 409
    assert api.post("/experiments/", ["bisect"]).status_code == 400
