"""Teams' own scorers: which there are, what one would change in a run, and its adoption by a suite."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runs.models import Case, PolicyRecord, RunRecord, Suite, SuiteVersionRecord
from runs.suites import ScoreChanges, push_suite, reference_suite
from tests import build, judged, own_scorers
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db
CONTAINS = {"kind": "contains"}


def rescored(api: Api, run: int, scorer: dict[str, Any]) -> str:
    """The address of what another scorer would change."""
    answer = api.post(f"/runs/{run}/rescore/", {"scorer": scorer})
    assert answer.status_code == 200, answer.content
    return f"/runs/{run}/rescored/{answer.json()['scorer']['id']}/"


@pytest.mark.django_db(transaction=True)
def test_a_teams_scorer_is_listed_scores_a_run_and_says_what_would_change(
    api: Api, settings: Any, tmp_path: Path
) -> None:
    run = build.finished_run(("blue", "Blue", "red"), ("blue", "blue", " BLUE"))
    with own_scorers.working(settings, tmp_path) as worker:
        (listed,) = api.get("/scorers/").json()["results"]
        assert (listed["kind"], listed["name"], len(listed["digest"])) == ("command", "folded", 64)
        assert [(each["pool"], each["problem"]) for each in listed["workers"]] == [("default", None)]
        address = rescored(api, run.pk, own_scorers.SPEC)
        waits = api.get(address).json()
        assert (waits["waiting"], waits["n_cases"], waits["after"]) == (True, 0, [None, None])
        assert waits["waits_for"] == "All responses are there. A worker scores them with folded: 0 of 6."
        worker.work()
    body = api.get(address).json()
    assert (body["waiting"], body["waits_for"], body["spec"]["default"]["digest"]) == (False, None, listed["digest"])
    assert body["before"] == [pytest.approx(100 / 3), pytest.approx(200 / 3)]
    assert body["after"] == [pytest.approx(200 / 3), 100.0]
    assert (body["points"], body["n_cases"], body["n_unscored"]) == (pytest.approx(100 / 3), 2, 0)
    first, second = api.get(f"{address}cases/").json()["results"]
    assert (first["case"], first["before"], first["after"], first["repeat"]) == ("sea", [0, 1], [1, 1], 1)
    assert (first["points"], first["answer"], first["target"]) == (pytest.approx(100 / 6), "Blue", "blue")
    assert (first["reason_after"], "Blue" in first["reason_before"]) == ("It is the target.", True)
    assert (second["case"], second["repeat"], second["answer"]) == ("a/b c", 2, " BLUE")
    assert first["points"] + second["points"] == pytest.approx(body["points"])


@pytest.mark.nightly
def test_a_scoring_that_no_worker_can_do_says_what_to_do(api: Api) -> None:
    run = build.finished_run(("blue", "Blue", "red"))
    digest = "ab" * 32
    address = rescored(api, run.pk, {"kind": "command", "name": "folded", "digest": digest})
    waits = api.get(address).json()
    assert waits["waits_for"] == (
        "All responses are there. No worker that runs has the scorer folded (abababab). Install it on one; "
        "it looks again every 15 seconds."
    )
    cancelled = api.post(f"/runs/{run.pk}/cancel/", {})
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "finished")
    assert api.get(address).status_code == 404
    assert api.post(f"/runs/{run.pk}/cancel/", {}).status_code == 409


def test_a_run_that_lacks_only_its_scores_says_which_scorer_it_waits_for(api: Api) -> None:
    own = {"kind": "python", "name": "folded", "digest": "ab" * 32}
    cases = [{"id": "sky", "prompt": "Which?", "target": "blue"}]
    version, _ = push_suite(document={"slug": "colours", "scorer": own, "cases": cases})
    run = build.finished_run(("blue",), version=version)
    body = api.get(f"/runs/{run.pk}/").json()
    assert (body["status"], body["progress"]["n_done"], body["ahead"], body["trouble"]) == ("running", 1, None, None)
    (warning,) = [each for each in body["warnings"] if each["code"] == "no_matching_worker"]
    assert "No worker that runs has the scorer folded (abababab)." in warning["text"]


def test_points_are_of_the_cases_that_both_score_and_cases_add_up_to_them() -> None:
    before, after = np.array([[0.0], [1.0], [1.0], [0.0]]), np.array([[1.0], [1.0], [np.nan], [np.nan]])
    changes = ScoreChanges(RunRecord(), (1,), before, after, (), is_mixed=False)
    assert (changes.n_shared, changes.n_unscored, changes.indexes) == (2, 2, [0, 2, 3])
    assert [None if np.isnan(point) else point for point in changes.points] == [50.0, 0.0, None, None]


def test_the_scores_of_a_suites_own_scorer_change_nothing(api: Api) -> None:
    run = build.finished_run(("blue", "Blue", "red"))
    own = api.get(f"/runs/{run.pk}/").json()["scores"][0]["scorer"]["id"]
    body = api.get(f"/runs/{run.pk}/rescored/{own}/").json()
    assert (body["scorer"]["is_own"], body["n_cases"], body["points"]) == (True, 0, 0.0)


def test_a_scorer_that_did_not_score_the_run_is_not_found(api: Api) -> None:
    run = build.finished_run(("blue", "Blue", "red"))
    for path in (f"/runs/{run.pk}/rescored/999999/", f"/runs/{run.pk}/rescored/999999/cases/"):
        answer = api.get(path)
        assert (answer.status_code, f"Run {run.pk} has no scores" in answer.json()["detail"]) == (404, True)


def adopt(api: Api, slug: str = "colours", **scorer: Any) -> Any:
    return api.post(f"/suites/{slug}/scorer/", {"scorer": scorer or CONTAINS})


def test_a_suite_adopts_a_scorer_with_the_same_cases_and_its_policy(api: Api) -> None:
    judged.policy()
    before = build.suite()
    Suite.objects.update(policy=PolicyRecord.objects.first())
    answer = adopt(api)
    assert (answer.status_code, answer.json()["version"], answer.json()["scorer"]["default"]["kind"]) == (
        201,
        2,
        "contains",
    )
    assert Suite.objects.get().policy is not None
    fields = ("case_id", "digest", "content", "tags", "is_reference")
    first, second = (list(Case.objects.filter(suite_version__number=n).values_list(*fields)) for n in (1, 2))
    assert first == second
    again = adopt(api)
    assert (again.status_code, again.json()["digest"]) == (200, answer.json()["digest"])
    assert adopt(api, kind="exact").json()["digest"] == before.digest


def test_a_case_that_names_its_scorer_keeps_it_though_it_was_the_suites_too(api: Api) -> None:
    exact = {"kind": "exact"}
    cases = [{"id": name, "prompt": "Which?", "target": "blue"} for name in ("plain", "named", "other")]
    cases[1] |= {"scorer": exact}
    cases[2] |= {"scorer": {"kind": "regex", "pattern": "blue"}}
    document = {"slug": "colours", "scorer": exact, "cases": cases}
    push_suite(document=document)
    adopted = adopt(api).json()
    assert {case: spec["kind"] for case, spec in adopted["scorer"]["cases"].items()} == {
        "named": "exact",
        "other": "regex",
    }
    pushed, _ = push_suite(document={**document, "scorer": CONTAINS})
    assert (pushed.digest, pushed.scorer.digest) == (adopted["digest"], adopted["scorer"]["digest"])


def test_a_scorer_that_does_not_suit_is_refused(api: Api) -> None:
    build.suite()
    assert adopt(api, kind="number").json()["fields"].keys() >= {"cases[0].target"}
    assert adopt(api, kind="guess").json()["fields"].keys() == {"scorer.kind"}
    assert adopt(api, kind="command", name="nobody").json()["fields"].keys() == {"scorer.name"}
    assert adopt(api, slug="nothing").status_code == 404
    assert SuiteVersionRecord.objects.count() == 1


def test_a_suite_whose_scorer_decides_nothing_adopts_none(api: Api) -> None:
    build.suite()
    assert adopt(api, slug=reference_suite(slug="colours", first=1).suite.slug).status_code == 409
    cases = [{"id": "sky", "prompt": "Which?", "target": "blue", "scorer": {"kind": "exact"}}]
    push_suite(document={"slug": "own", "cases": cases})
    answer = adopt(api, slug="own")
    assert (answer.status_code, "of its own" in answer.json()["detail"]) == (409, True)
