"""`/releases/`, the sign-offs and the settling of one, and the export `/signoffs/`."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runs.models import ReleaseRecord, RunRecord, SignOffRecord
from runs.release import create_release
from runs.run import add_repeats
from runs.suites import rescore_run
from tests import build, judged
from tests.api.conftest import Api
from tests.casts import cast
from tests.judged import N_CASES
from tests.nightly import few

LATER = (datetime.now(UTC) + timedelta(days=30)).isoformat()


@cast
def baseline() -> RunRecord:
    judged.policy()
    return judged.run()


@cast
def candidate(baseline: RunRecord) -> RunRecord:
    return judged.run()


def create(api: Api, candidate: RunRecord, baseline: RunRecord, **changes: Any) -> Any:
    body = {"suite": "colours", "candidate": str(candidate.pk), "baseline": str(baseline.pk), "policy": "lenient"}
    return api.post("/releases/", body | changes)


def judge(baseline: RunRecord, candidate: RunRecord) -> ReleaseRecord:
    gate = {"suite": "colours", "candidate": candidate.pk, "baseline": baseline.pk}
    return create_release(gates=[gate], policy="lenient")


@cast
def shipped(baseline: RunRecord, candidate: RunRecord) -> ReleaseRecord:
    return judge(baseline, candidate)


@pytest.fixture
def ship(shipped: ReleaseRecord) -> dict[str, Any]:
    return read(shipped)


def read(release: ReleaseRecord) -> dict[str, Any]:
    """What its address answers."""
    reader = Api(build.token(build.user("reader", "viewer")))
    body: dict[str, Any] = reader.get(f"/releases/{release.pk}/").json()
    return body


# Creating one


def test_a_release_is_created_with_its_verdict(api: Api, baseline: RunRecord, candidate: RunRecord) -> None:
    answer = create(api, candidate, baseline, labels={"commit": "1f3a"})
    body = answer.json()
    assert answer.status_code == 201
    assert answer["Location"].endswith(f"/api/v1/releases/{body['id']}/")
    assert (body["verdict"], body["outcome"], body["treatment"]) == ("ship", "unsigned", "model")
    assert body["reasons"][0]["code"] in ("within_tolerance", "better")
    assert "colours" in body["summary"]
    assert body["policy"] | {"title": ""} == {
        "name": "lenient",
        "version": 1,
        "title": "",
        "rule": "paired",
        "tolerance_points": 15.0,
        "guard": None,
    }
    assert (body["labels"], body["created_by"], body["candidates_tried"]) == ({"commit": "1f3a"}, "root", 1)
    assert (body["signoffs"], body["settle"], body["settling"]) == ([], None, None)
    assert len(body["input_digest"]) == 64
    assert body["url"].endswith(f"/releases/{body['id']}/")
    [gate] = body["gates"]
    assert (gate["suite"], gate["tier"], gate["verdict"], gate["look"]) == ("colours", "critical", "ship", 5)
    assert (gate["difference"], gate["range_baseline"], gate["range_candidate"]) == (
        0.0,
        [100.0, 100.0],
        [100.0, 100.0],
    )
    assert gate["low"] < 0 < gate["high"]
    assert gate["low"] > -15.0
    assert (gate["baseline"]["run"], gate["candidate"]["run"]) == (str(baseline.pk), str(candidate.pk))
    assert gate["candidate"]["repeats"] == [100.0] * 5
    assert {"reach", "resolution_points", "repeats_needed", "leaning"} <= gate.keys()
    assert json.loads(api.get(answer["Location"]).content) == body


def test_a_gate_says_what_its_comparison_says_of_the_computation(
    api: Api, baseline: RunRecord, candidate: RunRecord
) -> None:
    compared = api.get(f"/compare/?baseline={baseline.pk}&candidate={candidate.pk}").json()
    assert compared["computation"]["answer"] == "one"
    [gate] = create(api, candidate, baseline).json()["gates"]
    assert gate["computation"] == compared["computation"]


@pytest.mark.parametrize(
    ("n_right", "dtype", "policy", "verdict", "reason"),
    few(
        [
            (N_CASES, "float32", "lenient", "ship", "within_tolerance"),
            (N_CASES // 2, "float32", "lenient", "no_ship", "regression"),
            (N_CASES, "float32", "strict", "inconclusive", "suite_too_small"),
            (N_CASES, "bfloat16", "lenient", "not_comparable", "rebaseline"),
        ],
        2,
    ),
)
def test_each_word_comes_with_its_reason(
    api: Api, baseline: RunRecord, n_right: int, dtype: str, policy: str, verdict: str, reason: str
) -> None:
    weights = "a" * 64 if n_right == N_CASES else "e" * 64
    candidate = judged.run(n_right, by=build.process(build.bucket(dtype, weights=weights)))
    body = create(api, candidate, baseline, policy=policy).json()
    assert body["verdict"] == verdict
    assert reason in [each["code"] for each in body["reasons"]]


@pytest.mark.nightly
def test_a_changed_stack_is_judged_where_it_is_the_treatment(api: Api, baseline: RunRecord) -> None:
    candidate = judged.run(by=build.process(build.bucket("bfloat16")))
    body = create(api, candidate, baseline, treatment="stack").json()
    assert (body["verdict"], body["treatment"]) == ("ship", "stack")


@pytest.mark.nightly
def test_the_current_baseline_is_taken_unless_a_run_is_named(
    api: Api, baseline: RunRecord, candidate: RunRecord
) -> None:
    body = {"suite": "colours", "candidate": candidate.pk}
    assert api.post("/releases/", body).status_code == 409
    api.post("/suites/colours/baselines/", {"run": baseline.pk, "reason": "As shipped."})
    made = api.post("/releases/", body)
    assert (made.status_code, made.json()["gates"][0]["baseline"]["run"]) == (201, str(baseline.pk))
    assert made.json()["policy"]["name"] == "strict"


@pytest.mark.nightly
def test_several_suites_are_gates_and_an_advisory_one_decides_nothing(api: Api, baseline: RunRecord) -> None:
    shapes = judged.suite("shapes")
    candidate = judged.run(by=build.process(build.bucket(weights="e" * 64)))
    gates = [
        {"suite": "colours", "candidate": str(candidate.pk), "baseline": str(baseline.pk)},
        {
            "suite": "shapes",
            "candidate": str(judged.run(N_CASES // 2, version=shapes).pk),
            "baseline": str(judged.run(version=shapes).pk),
            "tier": "advisory",
        },
    ]
    body = api.post("/releases/", {"gates": gates, "policy": "lenient"}).json()
    assert [(gate["suite"], gate["tier"]) for gate in body["gates"]] == [
        ("colours", "critical"),
        ("shapes", "advisory"),
    ]
    assert (body["verdict"], body["gates"][1]["verdict"]) == ("ship", "no_ship")
    gates[1]["tier"] = "critical"
    assert api.post("/releases/", {"gates": gates, "policy": "lenient"}).json()["verdict"] == "no_ship"


NO_RELEASE: list[tuple[dict[str, Any], int, str]] = [
    ({"candidate": None}, 400, "candidate"),
    ({"suite": None}, 400, "suite"),
    ({"candidate": "current"}, 400, "candidate"),
    ({"candidate": 1.5}, 400, "candidate"),
    ({"baseline": "newest"}, 400, "baseline"),
    ({"baseline": "²"}, 400, "baseline"),
    ({"treatment": "weather"}, 400, "treatment"),
    ({"tolerance": 9}, 400, "tolerance"),
    ({"labels": []}, 400, "labels"),
    ({"labels": {"a": 1}}, 400, "labels"),
    ({"gates": []}, 400, "gates"),
    ({"gates": [{}]}, 400, "gates[0].suite"),
    ({"gates": [{"suite": "colours", "candidate": "1", "weight": 2}]}, 400, "gates[0].weight"),
    ({"gates": [{"suite": "colours", "candidate": "1", "tier": "vital"}]}, 400, "gates[0].tier"),
    ({"gates": [{"suite": "colours", "candidate": "1"}]}, 400, "candidate"),
    ({"suite": "shapes"}, 400, "candidate"),
    ({"candidate": "SAME"}, 400, "baseline"),
    ({"candidate": "999999"}, 404, ""),
    ({"policy": "nothing"}, 404, ""),
    ({"policy": 7}, 400, "policy"),
]


def test_what_is_no_release_is_refused_by_field(api: Api, db: None) -> None:
    judged.policy()
    baseline, candidate = build.finished_run(), build.finished_run()
    asked: dict[str, Any] = {"suite": "colours", "candidate": str(candidate.pk), "baseline": str(baseline.pk)}
    for changes, status, field in NO_RELEASE:
        sent = {name: str(baseline.pk) if value == "SAME" else value for name, value in (asked | changes).items()}
        answer = api.post("/releases/", {name: value for name, value in sent.items() if value is not None})
        assert answer.status_code == status, changes
        assert not field or any(field in name for name in answer.json()["fields"]), (changes, answer.json())
    assert not ReleaseRecord.objects.exists()


def test_a_run_at_work_is_not_judged(api: Api, baseline: RunRecord) -> None:
    answer = create(api, build.run(), baseline)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert not ReleaseRecord.objects.exists()


# Reading


@pytest.mark.nightly
def test_releases_are_listed_newest_first_and_filtered(api: Api, baseline: RunRecord, candidate: RunRecord) -> None:
    good, bad = candidate, judged.run(N_CASES // 2)
    made = [create(api, run, baseline).json()["id"] for run in (good, bad)]
    rows = api.get("/releases/").json()["results"]
    assert [row["id"] for row in rows] == made[::-1]
    first = rows[1]
    assert (first["verdict"], first["outcome"], first["suites"], first["policy"]) == (
        "ship",
        "unsigned",
        ["colours"],
        "lenient",
    )
    assert first["candidate"] == {"run": str(good.pk), "model": "paint-1b"}
    assert (first["difference"], first["tolerance_points"]) == (0.0, 15.0)
    page = api.get("/releases/?page_size=1").json()
    assert [row["id"] for row in api.get(page["next"]).json()["results"]] == made[:1]
    for query, found in {
        "verdict=ship": made[:1],
        "verdict=no_ship": made[1:],
        "outcome=unsigned": made[::-1],
        "outcome=approved": [],
        "suite=colours": made[::-1],
        "suite=shapes": [],
    }.items():
        assert [row["id"] for row in api.get(f"/releases/?{query}").json()["results"]] == found, query


@pytest.mark.parametrize("query", ["verdict=maybe", "outcome=signed", "policy=strict"])
def test_an_unknown_filter_is_refused_by_its_name(api: Api, db: None, query: str) -> None:
    answer = api.get(f"/releases/?{query}")
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [query.partition("=")[0]])


@pytest.mark.nightly
def test_reading_decides_anew_where_the_runs_have_changed(api: Api, baseline: RunRecord, ship: dict[str, Any]) -> None:
    rescore_run(run_id=baseline.pk, scorer={"kind": "exact"})  # the same scorer: nothing has moved
    assert api.get(f"/releases/{ship['id']}/").json()["input_digest"] == ship["input_digest"]
    add_repeats(run_id=baseline.pk, n=1)
    assert api.get(f"/releases/{ship['id']}/").json()["input_digest"] == ship["input_digest"]
    build.decode(baseline, 6, judged.answers(N_CASES))
    changed = api.get(f"/releases/{ship['id']}/").json()
    assert changed["input_digest"] != ship["input_digest"]
    assert (changed["verdict"], changed["gates"][0]["look"]) == ("ship", 5)


# Signing


def sign(api: Api, release: dict[str, Any], decision: str = "approve", **changes: Any) -> Any:
    body = {"decision": decision, "input_digest": release["input_digest"]} | changes
    return api.post(f"/releases/{release['id']}/signoffs/", body)


@pytest.mark.nightly
def test_a_ship_is_approved_and_the_sign_off_stays_with_the_release(api: Api, ship: dict[str, Any]) -> None:
    answer = sign(api, ship, note="Good.")
    line = answer.json()
    assert answer.status_code == 201
    assert (line["person"], line["decision"], line["note"], line["void"]) == ("root", "approve", "Good.", None)
    assert line["input_digest"] == ship["input_digest"]
    found = api.get(f"/releases/{ship['id']}/").json()
    assert (found["outcome"], found["signoffs"]) == ("approved", [line])


def test_a_sign_off_sent_again_is_answered_and_that_of_another_is_409(
    api: Api, as_role: Callable[[str], Api], ship: dict[str, Any]
) -> None:
    first, again = (sign(api, ship, note="Good.") for _ in range(2))
    assert (again.status_code, again.json(), again["Idempotent-Replayed"]) == (201, first.json(), "true")
    assert "Idempotent-Replayed" not in first
    refused = sign(as_role("release manager"), ship)
    assert (refused.status_code, refused.json()["detail"].partition(":")[0]) == (409, "root has signed this verdict")
    assert SignOffRecord.objects.count() == 1


@pytest.mark.nightly
def test_a_stale_digest_is_409_and_nothing_is_signed(api: Api, baseline: RunRecord, ship: dict[str, Any]) -> None:
    add_repeats(run_id=baseline.pk, n=1)
    build.decode(baseline, 6, judged.answers(N_CASES))
    answer = sign(api, ship)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert sign(api, ship, input_digest="0" * 64).status_code == 409
    assert not SignOffRecord.objects.exists()
    present = api.get(f"/releases/{ship['id']}/").json()
    assert sign(api, present).status_code == 201


def test_a_sign_off_is_void_once_what_it_rests_on_changes(api: Api, baseline: RunRecord, ship: dict[str, Any]) -> None:
    sign(api, ship)
    add_repeats(run_id=baseline.pk, n=1)
    build.decode(baseline, 6, judged.answers(N_CASES))
    found = api.get(f"/releases/{ship['id']}/").json()
    assert found["outcome"] == "void"
    assert found["signoffs"][0]["void"].startswith("Its inputs have changed since")


@pytest.mark.nightly
def test_what_is_no_ship_is_waived_with_a_note_and_an_end(api: Api, baseline: RunRecord) -> None:
    release = create(api, judged.run(N_CASES // 2), baseline).json()
    assert sign(api, release).status_code == 409
    answer = sign(api, release, "waive", note="The demo needs it.", expires_at=LATER)
    assert answer.status_code == 201
    assert answer.json()["expires_at"].endswith("Z")
    assert api.get("/releases/?outcome=waived").json()["results"][0]["id"] == release["id"]


NO_SIGN_OFF: list[tuple[dict[str, Any], int, str]] = [
    ({"decision": "maybe"}, 400, "decision"),
    ({"decision": None}, 400, "decision"),
    ({"input_digest": None}, 400, "input_digest"),
    ({"input_digest": 7}, 400, "input_digest"),
    ({"note": 7}, 400, "note"),
    ({"person": "ada"}, 400, "person"),
    ({"expires_at": LATER}, 400, "expires_at"),
    ({"expires_at": "soon"}, 400, "expires_at"),
    ({"decision": "reject"}, 400, "note"),
    ({"decision": "waive", "note": "x"}, 400, "expires_at"),
    ({"decision": "waive", "note": "x", "expires_at": "2030-01-01T00:00:00"}, 400, "expires_at"),
    ({"decision": "waive", "note": "x", "expires_at": "2020-01-01T00:00:00Z"}, 400, "expires_at"),
    ({"decision": "waive", "note": "x", "expires_at": "2126-01-01T00:00:00Z"}, 400, "expires_at"),
    ({"decision": "waive", "note": "x", "expires_at": LATER}, 409, ""),
]


def test_what_is_no_sign_off_is_refused_by_field(api: Api, ship: dict[str, Any]) -> None:
    for changes, status, field in NO_SIGN_OFF:
        body = {"decision": "approve", "input_digest": ship["input_digest"]} | changes
        sent = {name: value for name, value in body.items() if value is not None}
        answer = api.post(f"/releases/{ship['id']}/signoffs/", sent)
        assert answer.status_code == status, changes
        assert not field or field in answer.json()["fields"], (changes, answer.json())
    assert not SignOffRecord.objects.exists()


def test_who_may_sign(as_role: Callable[[str], Api], ship: dict[str, Any]) -> None:
    for role, status in {"anonymous": 401, "viewer": 403, "engineer": 403}.items():
        assert sign(as_role(role), ship).status_code == status, role
    assert not SignOffRecord.objects.exists()
    signed = ""
    for role in ("release manager", "admin"):
        answer = sign(as_role(role), ship, after=signed)
        assert answer.status_code == 201, role
        signed = answer.json()["id"]
    assert list(SignOffRecord.objects.values_list("person_name", flat=True)) == ["release manager", "admin"]


def test_only_the_scope_to_sign_signs_whoever_the_person_is(ship: dict[str, Any]) -> None:
    person = build.user("ada", "release manager")
    for scope in ("read", "run", "admin"):
        assert sign(Api(build.token(person, scope)), ship).status_code == 403, scope
    assert not SignOffRecord.objects.exists()
    assert sign(Api(build.token(person, "sign")), ship).status_code == 201


@pytest.mark.nightly
def test_whoever_may_run_may_judge_and_settle_but_not_sign(as_role: Callable[[str], Api], baseline: RunRecord) -> None:
    viewer, engineer = as_role("viewer"), as_role("engineer")
    candidate = judged.open_run()
    assert create(viewer, candidate, baseline).status_code == 403
    release = create(engineer, candidate, baseline).json()
    agreed = {name: release["settle"][name] for name in ("look", "n_responses")}
    path = f"/releases/{release['id']}/settle/"
    assert (viewer.get(path).status_code, viewer.post(path, agreed).status_code) == (200, 403)
    assert sign(engineer, release, "reject", note="No.").status_code == 403
    assert engineer.post(path, agreed).status_code == 200


def test_a_release_that_is_not_there_is_not_found(api: Api, db: None) -> None:
    digest = {"input_digest": "0" * 64}
    assert api.get("/releases/7/").status_code == 404
    assert api.get("/releases/7/settle/").status_code == 404
    assert api.post("/releases/7/settle/", {"look": 10, "n_responses": 1}).status_code == 404
    assert api.post("/releases/7/signoffs/", {"decision": "approve"} | digest).status_code == 404


# Settling


@cast
def unsettled(baseline: RunRecord) -> ReleaseRecord:
    return judge(baseline, judged.open_run())


@pytest.fixture
def open_release(unsettled: ReleaseRecord) -> dict[str, Any]:
    """Inconclusive at 5 repeats, and further ones would settle it."""
    body = read(unsettled)
    assert body["verdict"] == "inconclusive", body["summary"]
    return body


@pytest.mark.nightly
def test_the_plan_says_what_settling_costs(api: Api, open_release: dict[str, Any]) -> None:
    answer = api.get(f"/releases/{open_release['id']}/settle/").json()
    plan = answer["plan"]
    assert answer == {"plan": open_release["settle"], "targeted": None, "settling": None}
    gate = open_release["gates"][0]
    n_more = gate["repeats_needed"]
    assert plan["look"] == gate["look"] + n_more
    assert plan["runs"] == [
        {"run": gate[side]["run"], "n_more": n_more, "n_chosen": None} for side in ("baseline", "candidate")
    ]
    assert (plan["n_responses"], plan["refused"]) == (2 * n_more * N_CASES, None)


@pytest.mark.nightly
def test_agreeing_to_the_plan_adds_the_repeats_to_both_sides(api: Api, open_release: dict[str, Any]) -> None:
    plan, path = open_release["settle"], f"/releases/{open_release['id']}/settle/"
    other = api.post(path, {"look": plan["look"], "n_responses": plan["n_responses"] + 1})
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    answer = api.post(path, {"look": plan["look"], "n_responses": plan["n_responses"]})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["verdict"], body["settle"]) == ("inconclusive", None)
    assert body["settling"].startswith(f"Repeats up to {plan['look']} a side are at work on runs ")
    assert all(RunRecord.objects.get(pk=each["run"]).repeats.count() == plan["look"] for each in plan["runs"])
    assert api.get(path).json() == {"plan": None, "targeted": None, "settling": body["settling"]}


def test_a_ship_has_nothing_to_settle(api: Api, ship: dict[str, Any]) -> None:
    path = f"/releases/{ship['id']}/settle/"
    assert api.get(path).json() == {"plan": None, "targeted": None, "settling": None}
    assert api.post(path, {"look": 10, "n_responses": 80}).status_code == 409


@pytest.mark.parametrize("body", [{}, {"look": 10}, {"look": "10", "n_responses": 1}, {"look": 10, "n_responses": 0}])
def test_a_plan_is_agreed_to_by_its_numbers(api: Api, open_release: dict[str, Any], body: dict[str, Any]) -> None:
    assert api.post(f"/releases/{open_release['id']}/settle/", body).status_code == 400


# The export


# Running sides again


@pytest.mark.nightly
def test_a_side_runs_again_by_a_key_once_and_both_in_turn(api: Api, baseline: RunRecord, ship: dict[str, Any]) -> None:
    address = f"/releases/{ship['id']}/rerun/"
    first, again = (api.post(address, {"candidate": {}}, Idempotency_Key="k") for _ in range(2))
    assert (first.status_code, first.json()["baseline"]) == (201, None)
    assert first.json()["candidate"]["id"] == again.json()["candidate"]["id"]
    assert again["Idempotent-Replayed"] == "true"
    build.profile("fast")
    both = api.post(address, {"baseline": {}, "candidate": {}, "profile": "fast"}).json()
    assert {both[side]["profile"] for side in ("baseline", "candidate")} == {"fast"}
    made = RunRecord.objects.get(pk=int(both["candidate"]["id"]))
    assert f"in turn with run {both['baseline']['id']}" in made.events.get(code="created").text
    assert RunRecord.objects.count() == 5
    assert {made.suite_version_id, made.endpoint_id} == {baseline.suite_version_id, baseline.endpoint_id}


@pytest.mark.nightly
def test_a_side_that_cannot_run_again_is_refused_by_the_rule_of_its_run(
    api: Api, baseline: RunRecord, ship: dict[str, Any]
) -> None:
    address = f"/releases/{ship['id']}/rerun/"
    for body, status in (({}, 400), ({"baseline": {}, "gate": 7}, 404), ({"baseline": {"endpoint": "none"}}, 404)):
        assert api.post(address, body).status_code == status
    RunRecord.objects.filter(pk=baseline.pk).update(status=RunRecord.Status.RUNNING)
    refused = api.post(address, {"baseline": {}, "candidate": {}})
    assert refused.status_code == 409
    assert refused.json()["detail"] == f"Run {baseline.pk} is running; run it again when it has ended."
    assert RunRecord.objects.count() == 2


def exported(api: Api) -> list[dict[str, Any]]:
    answer = api.get("/signoffs/")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/x-ndjson; charset=utf-8")
    return [json.loads(line) for line in answer.content.decode().splitlines()]


def test_sign_offs_are_exported_a_line_each_with_their_chain(api: Api, ship: dict[str, Any]) -> None:
    assert exported(api) == []
    sign(api, ship, "reject", note="Wait for „Müller“.")
    sign(api, ship)
    first, second = exported(api)
    assert (first["release"], first["decision"], first["note"]) == (ship["id"], "reject", "Wait for „Müller“.")
    assert (first["previous_digest"], second["previous_digest"]) == ("", first["digest"])
    assert [line["is_intact"] for line in (first, second)] == [True, True]


@pytest.mark.nightly
def test_a_run_that_a_release_rests_on_is_not_deleted(api: Api, baseline: RunRecord, ship: dict[str, Any]) -> None:
    assert api.delete(f"/runs/{baseline.pk}/").status_code == 409
