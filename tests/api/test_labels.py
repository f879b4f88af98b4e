"""Labels of a run's answers over REST: who gives them, where they hold, and what they show of the scorers."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from runs.models import LabelRecord, RunRecord
from runs.suites import push_suite, rescore_run
from tests import build
from tests.api.conftest import Api
from tests.nightly import few

pytestmark = pytest.mark.django_db
N = 60
CASES = tuple(f"case-{number:03}" for number in range(N))
FAILED = "red"


def numbered(texts: dict[int, str] | None = None) -> RunRecord:
    """A run of 60 cases and two repeats: the first 45 cases pass, all others are called red."""
    if not RunRecord.objects.exists():
        build.suite(case_ids=CASES)
    answers = [(texts or {}).get(case, build.TARGET if case < 45 else FAILED) for case in range(N)]
    return build.finished_run(answers, answers)


def truly_right(case: str) -> bool:
    """What people say: every fourth answer that passes is wrong, and every fifth that fails is right."""
    number = int(case[-3:])
    return number % 4 != 0 if number < 45 else number % 5 == 0


def label(api: Api, run: RunRecord, *labels: dict[str, Any]) -> Any:
    return api.post(f"/runs/{run.pk}/labels/", {"labels": list(labels)})


def label_next(api: Api, run: RunRecord, n: int) -> list[str]:
    """Label the next answers as people would, in pages of 20."""
    cases: list[str] = []
    while len(cases) < n:
        page = api.get(f"/runs/{run.pk}/labels/next/").json()["results"]
        chosen = page[: n - len(cases)]
        said = [{"case": r["case"], "repeat": r["repeat"], "is_right": truly_right(r["case"])} for r in chosen]
        assert label(api, run, *said).status_code == 201
        cases += [row["case"] for row in chosen]
    return cases


def rows(api: Api, run: RunRecord) -> dict[str, Any]:
    return {row["case"]: row for row in api.get(f"/runs/{run.pk}/labels/?page_size=200").json()["results"]}


@pytest.mark.nightly
def test_forty_labels_correct_the_pass_rate_with_an_interval_that_covers(api: Api) -> None:
    run = numbered()
    cases = label_next(api, run, 40)
    assert len({*cases}) == 40
    told = api.get(f"/runs/{run.pk}/agreement/").json()
    assert (told["n_answers"], told["n_labelled"], told["n_sampled"], told["n_people"]) == (N, 40, 40, 1)
    [line] = told["scorers"]
    truth = 100 * sum(map(truly_right, CASES)) / N
    rate = line["rate"]
    assert rate["raw"] == 75.0
    assert rate["interval"][0] <= truth <= rate["interval"][1] < rate["interval"][0] + 40
    assert abs(rate["corrected"] - truth) < abs(rate["raw"] - truth)
    held = line["agreement"]
    assert held["n_labels"] >= 40  # responses: where both repeats gave an answer, the sample may have it twice
    for name in ("true_positive", "false_positive", "kappa"):
        low, high = held[f"{name}_interval"]
        assert low < held[name] < high


@pytest.mark.nightly
def test_labels_of_all_answers_give_the_true_rate_and_no_width(api: Api) -> None:
    run = numbered()
    label_next(api, run, N)
    [line] = api.get(f"/runs/{run.pk}/agreement/").json()["scorers"]
    truth = 100 * sum(map(truly_right, CASES)) / N
    assert line["rate"]["corrected"] == pytest.approx(truth)
    assert line["rate"]["interval"] == pytest.approx([truth, truth])
    assert api.get(f"/runs/{run.pk}/labels/next/").json()["results"] == []


@pytest.mark.nightly
def test_what_to_label_next_is_a_random_order_that_no_label_changes_and_other_runs_share(api: Api) -> None:
    run = numbered()
    first = [row["case"] for row in api.get(f"/runs/{run.pk}/labels/next/").json()["results"]]
    assert len(first) == 20
    assert first != sorted(first)
    label(api, run, {"case": first[3], "repeat": 1, "is_right": True})
    again = [row["case"] for row in api.get(f"/runs/{run.pk}/labels/next/").json()["results"]]
    assert again[:19] == [case for case in first if case != first[3]]
    other = numbered({int(first[0][-3:]): "green"})
    shared = [row["case"] for row in api.get(f"/runs/{other.pk}/labels/next/").json()["results"]]
    assert [case for case in shared if case in first[1:]] == [
        case for case in again if case in shared and case in first[1:]
    ]


@pytest.mark.nightly
def test_a_label_holds_wherever_the_same_text_answers_the_same_case(api: Api) -> None:
    run = numbered()
    label(api, run, {"case": CASES[0], "repeat": 2, "is_right": False})
    row = rows(api, run)[CASES[0]]
    assert (row["label"], row["n_responses"], row["mine"], row["score"]) == (0, 2, False, 1)
    assert CASES[0] in rows(api, numbered())
    assert CASES[0] not in rows(api, numbered({0: "green"}))
    document = {"slug": "other", "title": "Other", "max_tokens": 24, "scorer": {"kind": "exact"}}
    one = {"id": CASES[0], "prompt": "Which colour?", "target": "blue"}
    version = push_suite(document={**document, "cases": [one]})[0]
    assert rows(api, build.finished_run([build.TARGET], version=version)) == {}


@pytest.mark.nightly
def test_labels_out_of_the_random_order_are_in_no_figure(api: Api) -> None:
    run = numbered()
    first = api.get(f"/runs/{run.pk}/labels/next/").json()["results"][0]["case"]
    others = [case for case in CASES if case != first][:10]
    label(api, run, *({"case": case, "repeat": 1, "is_right": False} for case in others))
    told = api.get(f"/runs/{run.pk}/agreement/").json()
    assert (told["n_labelled"], told["n_sampled"], told["scorers"]) == (10, 0, [])
    label(api, run, {"case": first, "repeat": 1, "is_right": True})
    assert api.get(f"/runs/{run.pk}/agreement/").json()["n_sampled"] >= 1


@pytest.mark.nightly
def test_several_people_are_averaged_and_a_tie_is_disputed(api: Api, as_role: Callable[[str], Api]) -> None:
    run, engineer = numbered(), as_role("engineer")
    case = api.get(f"/runs/{run.pk}/labels/next/").json()["results"][0]["case"]
    label(api, run, {"case": case, "repeat": 1, "is_right": True})
    label(engineer, run, {"case": case, "repeat": 1, "is_right": False})
    row = rows(api, run)[case]
    assert (row["label"], row["n_people"], row["is_disputed"], row["mine"]) == (0.5, 2, True, True)
    told = api.get(f"/runs/{run.pk}/agreement/").json()
    assert (told["n_disputed"], told["scorers"][0]["agreement"]["n_labels"]) == (1, 0)
    label(engineer, run, {"case": case, "repeat": 1, "is_right": True})
    assert rows(engineer, run)[case]["label"] == 1
    assert api.delete(f"/runs/{run.pk}/labels/1/{case}/").status_code == 204
    assert (rows(api, run)[case]["n_people"], rows(api, run)[case]["mine"]) == (1, None)


def test_every_scorer_of_a_run_is_compared_with_the_labels(api: Api) -> None:
    run = numbered()
    label_next(api, run, 20)
    rescore_run(run_id=run.pk, scorer={"kind": "contains"})
    lines = api.get(f"/runs/{run.pk}/agreement/").json()["scorers"]
    assert [line["scorer"]["is_own"] for line in lines] == [True, False]


def test_a_run_of_two_buckets_has_no_pooled_rate(api: Api) -> None:
    build.suite(case_ids=CASES)
    run = build.run(repeats=1)
    one, other = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    build.decode(run, 1, [build.TARGET] * N, by=[one] * 30 + [other] * 30)
    label_next(api, run, 20)
    [line] = api.get(f"/runs/{run.pk}/agreement/").json()["scorers"]
    assert (line["rate"], line["agreement"]["n_labels"]) == (None, 20)
    pages = Client()
    pages.force_login(build.user())
    page = pages.get(f"/runs/{run.pk}/labels/").content.decode()
    assert "Labels: 20 answers; several buckets answered, so no pass rate is given for the whole." in page


GOOD = {"case": CASES[0], "repeat": 1, "is_right": True}
BAD: dict[str, tuple[Any, str]] = {
    "no such case": ({**GOOD, "case": "case-999"}, "labels[0].case"),
    "no such repeat": ({**GOOD, "repeat": 3}, "labels[0].repeat"),
    "neither repeat nor text": ({"case": CASES[0], "is_right": True}, "labels[0]"),
    "both": ({**GOOD, "text": build.TARGET}, "labels[0]"),
    "no such text": ({"case": CASES[0], "text": "gr\0n", "is_right": True}, "labels"),
    "another text": ({"case": CASES[0], "text": "green", "is_right": True}, "labels[0].text"),
    "a NUL": ({**GOOD, "case": "a\0"}, "labels"),
    "a word": ({**GOOD, "is_right": "right"}, "labels"),
    "a field too many": ({**GOOD, "person": "eve"}, "labels"),
}


@pytest.mark.parametrize("kind", few(BAD, 3))
def test_a_label_that_names_no_answer_is_refused_and_none_is_stored(api: Api, kind: str) -> None:
    body, field = BAD[kind]
    answer = label(api, numbered(), GOOD, body) if field == "labels" else label(api, numbered(), body, GOOD)
    assert answer.status_code == 400, answer.content
    assert any(name.startswith(field) for name in answer.json()["fields"]), answer.content
    assert not LabelRecord.objects.exists()


def test_labels_may_name_an_answer_by_its_text_and_the_last_of_two_counts(api: Api) -> None:
    run = numbered()
    by_text = {"case": CASES[0], "text": build.TARGET, "is_right": False}
    assert label(api, run, GOOD, by_text).status_code == 201
    assert LabelRecord.objects.get().value == 0


@pytest.mark.parametrize("labels", [[], [GOOD] * 1001])
def test_no_labels_or_too_many_at_a_time_are_refused(api: Api, labels: list[Any]) -> None:
    answer = label(api, numbered(), *labels)
    assert (answer.status_code, [*answer.json()["fields"]]) == (400, ["labels"])


def test_a_label_of_another_person_or_of_no_answer_is_not_removed(api: Api, as_role: Callable[[str], Api]) -> None:
    run = numbered()
    label(api, run, GOOD)
    for place in (f"1/{CASES[0]}", f"1/{CASES[1]}", "1/no-case", f"9/{CASES[0]}"):
        assert as_role("engineer").delete(f"/runs/{run.pk}/labels/{place}/").status_code == 404
    assert LabelRecord.objects.count() == 1


def test_a_missing_answer_and_a_run_at_work_cannot_be_labelled(api: Api) -> None:
    build.suite(case_ids=CASES)
    run = build.finished_run([None, *[build.TARGET] * (N - 1)])
    assert label(api, run, GOOD).json()["fields"].keys() == {"labels[0].repeat"}
    assert label(api, build.run(), GOOD).status_code == 409
    assert api.get("/runs/999/labels/").status_code == api.get("/runs/999/agreement/").status_code == 404


def test_a_judge_s_answers_are_not_labelled(api: Api) -> None:
    run = numbered()
    suite = run.suite_version.suite
    suite.judged_suite = suite
    suite.save()
    assert "the run that it judged" in label(api, run, GOOD).json()["detail"]
