"""One count of broken, fixed and unstable cases: verdict, pages, lists, REST and JUnit say the same, case by case."""

import re
from collections.abc import Callable, Iterator
from html import unescape

import pytest
from django.test import Client

from evalboard.cli import results
from evalboard.client.answers import Answer, parse
from evalboard.contract.release import Gate
from evalboard.contract.response import CaseOfRun
from evalboard.core.compare import CASE_PARTS
from evalboard.wording.outcomes import UNDER_LOAD
from runs import models
from runs.compare import outcomes
from runs.models import ReleaseRecord, RunRecord
from runs.release import create_release, release_report
from tests import build, judged
from tests.casts import cast
from tests.nightly import nightly

pytestmark = pytest.mark.django_db

N, LOOK = 40, 5
CASES = [f"case-{number:02}" for number in range(N)]


def run_of(wrong: dict[int, str], n: int) -> RunRecord:
    """A run in which every case is right but these: by repeat, "0" for wrong."""
    texts = [["blue"] * N for _ in range(n)]
    for case, said in wrong.items():
        for repeat, mark in enumerate(said):
            texts[repeat][case] = "blue" if mark == "1" else "red"
    return build.finished_run(*texts, version=build.suite(case_ids=CASES))


@cast
def released() -> ReleaseRecord:
    """Five repeats against seven. By the first five three break, one of which all seven acquit (case 11); one is fixed.

    Case 30 wavers alike on both sides, so that no pair of its responses differs; case 31 wavers after the look.
    """
    judged.policy()
    baseline = run_of({20: "00000", 30: "01111"}, 5)
    candidate = run_of(
        {7: "0001100", 3: "0000000", 5: "0011111", 9: "1110000", 11: "0001111", 30: "0111111", 31: "1111110"}, 7
    )
    gate = {"suite": "colours", "baseline": baseline.pk, "candidate": candidate.pk, "tier": "critical"}
    return create_release(gates=[gate], policy="lenient")


def listed(client: Client, url: str) -> list[str]:
    """The cases of a list, a row each."""
    page = unescape(client.get(url.partition("#")[0]).content.decode())
    part = page[page.index('id="case-list"') :]
    return re.findall(r'<tr>\s*<th scope="row"><a class="mono" href="[^"]*" title="[^"]*"><bdi>(case-\d+)</bdi>', part)


def rest(client: Client, release: ReleaseRecord, outcome: str, **more: int) -> list[str]:
    gate = release.gates.get()
    sides = {"baseline": gate.baseline_run_id, "candidate": gate.candidate_run_id, "page_size": 2}
    found, url = [], "/api/v1/compare/outcomes/"
    sent: dict[str, object] = {**sides, "outcome": outcome, **more}
    while url:
        body = client.get(url, sent).json()
        found += [row["case"] for row in body["results"]]
        url, sent = body["next"], {}
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("look", [None, LOOK])
def test_chances_are_dealt_once_and_kept_with_the_comparison(
    released: ReleaseRecord, viewer: Client, monkeypatch: pytest.MonkeyPatch, look: int | None
) -> None:
    more = {} if look is None else {"look": look}
    first = rest(viewer, released, "broken", **more)
    assert len(first) == (2 if look is None else 3)

    def deal(*_: object) -> None:
        raise AssertionError("dealt again")

    monkeypatch.setattr(outcomes, "judge_outcomes", deal)
    assert rest(viewer, released, "broken", **more) == first
    assert len(rest(viewer, released, "fixed", **more)) == 1


def test_every_count_is_the_length_of_its_list(released: ReleaseRecord, viewer: Client) -> None:
    [gate] = release_report(released.pk).gates
    changed = gate.changed
    assert (gate.look, changed.n_broken, changed.n_fixed, changed.n_unstable) == (
        LOOK,
        3,
        1,
        3,
    )
    page = unescape(viewer.get(f"/releases/{released.pk}/").content.decode())
    links = dict(re.findall(r'<a href="([^"]*outcome=[^"]*)">(\d+ \w+)</a>', page))
    assert sorted(links.values()) == ["1 fixed", "3 broken", "3 unstable"]
    by_outcome = {said.split()[1]: listed(viewer, url) for url, said in links.items()}
    assert by_outcome == {
        "broken": ["case-03", "case-07", "case-11"],
        "fixed": ["case-20"],
        "unstable": ["case-05", "case-09", "case-30"],
    }
    for outcome, cases in by_outcome.items():
        assert rest(viewer, released, outcome, look=LOOK) == cases
    assert set(changed.broken) == set(by_outcome["broken"])


@pytest.mark.nightly
def test_the_furthest_moved_comes_first_and_says_how_often_it_was_right(
    released: ReleaseRecord, viewer: Client
) -> None:
    gate = released.gates.get()
    url = f"/compare/{gate.baseline_run_id}/{gate.candidate_run_id}/?outcome=broken&look=5"
    page = " ".join(unescape(re.sub(r"<[^>]*>", " ", viewer.get(url).content.decode())).split())
    _, found, rows = page.partition("3 cases, the furthest moved first, by the first 5 repeats of each side")
    assert found
    assert re.findall(r"(case-\d+) .*?baseline (\d of 5) → candidate (\d of 5)", rows) == [
        ("case-03", "5 of 5", "0 of 5"),
        ("case-07", "5 of 5", "2 of 5"),
        ("case-11", "5 of 5", "2 of 5"),
    ]


@pytest.mark.nightly
def test_a_comparison_counts_all_its_repeats_and_its_lists_hold_them(released: ReleaseRecord, viewer: Client) -> None:
    gate = released.gates.get()
    sides = f"baseline={gate.baseline_run_id}&candidate={gate.candidate_run_id}"
    counts = viewer.get(f"/api/v1/compare/?{sides}").json()["outcomes"]
    chances = {name: counts.pop(f"{name}_by_chance") for name in ("broken", "fixed")}
    assert counts.pop("is_in_every_repeat") is None  # the repeats differ
    assert counts == {"broken": 2, "fixed": 1, "unstable": 5}
    path = f"/compare/{gate.baseline_run_id}/{gate.candidate_run_id}/"
    assert chances["broken"]["n_beyond"] == 2
    for outcome, n in counts.items():
        assert f">{n} {outcome}</a>" in viewer.get(path).content.decode()
        cases = listed(viewer, f"{path}?outcome={outcome}")
        assert (len(cases), rest(viewer, released, outcome)) == (n, cases)
    sides = {"baseline": gate.baseline_run_id, "candidate": gate.candidate_run_id}
    parts = viewer.get("/api/v1/compare/", sides).json()["parts"]
    lists = {part: rest(viewer, released, part) for part in CASE_PARTS}
    assert {part: len(cases) for part, cases in lists.items()} == {part: parts[part] for part in CASE_PARTS}
    assert len({case for cases in lists.values() for case in cases}) == sum(map(len, lists.values()))


@pytest.mark.nightly
def test_the_list_says_how_many_would_stand_there_by_chance_and_marks_what_is_beyond_it(
    released: ReleaseRecord, viewer: Client
) -> None:
    gate = released.gates.get()
    sides = {"baseline": gate.baseline_run_id, "candidate": gate.candidate_run_id, "outcome": "broken", "look": LOOK}
    rows = viewer.get("/api/v1/compare/outcomes/", sides).json()["results"]
    marked = [row["case"] for row in rows if row["is_beyond_chance"]]
    assert [row["case"] for row in rows if row["chance"] < 0.001] == marked == ["case-03"]
    [judged] = release_report(released.pk).gates
    by_chance = judged.changed.broken_by_chance
    assert by_chance is not None
    assert (by_chance.n_beyond, round(by_chance.n_expected, 2)) == (1, 0.18)
    url = f"/compare/{gate.baseline_run_id}/{gate.candidate_run_id}/?outcome=broken&look=5"
    page = " ".join(unescape(re.sub(r"<[^>]*>", " ", viewer.get(url).content.decode())).split())
    assert "Expect about 0.2 of these by chance. 1 is beyond chance (marked)." in page
    assert page.count("beyond chance p < 0.001") == 1
    assert page.count("may be chance p = ") == 2
    assert UNDER_LOAD not in page  # pinned: no load moves a bit
    models.BucketRecord.objects.update(batch_class="mixed")
    assert UNDER_LOAD in " ".join(unescape(viewer.get(url).content.decode()).split())
    told = unescape(re.sub(r"<[^>]*>", "", viewer.get(f"/releases/{released.pk}/").content.decode()))
    assert "Expect about 0.2 broken and about 0.2 fixed by chance." in " ".join(told.split())


@pytest.mark.nightly
def test_junit_fails_the_broken_cases_and_no_other(released: ReleaseRecord, client_of: Callable[[str], Client]) -> None:
    client = client_of("viewer")
    gate = client.get(f"/api/v1/releases/{released.pk}/").json()["gates"][0]

    class Cases:
        def cases(self, run: str) -> Iterator[Answer[CaseOfRun]]:
            rows = client.get(f"/api/v1/runs/{run}/cases/?page_size=200").json()["results"]
            return (Answer(parse(CaseOfRun, row, url=""), row) for row in rows)

    found = results.collect_gate_results(Cases(), parse(Gate, gate, url=""), "")  # type: ignore[arg-type]
    assert [case.case for case in found.select(results.FAILED)] == rest(client, released, "broken", look=LOOK)
    assert found.facts["by_chance"] == "Expect about 0.2 broken and about 0.2 fixed by chance."


@pytest.mark.nightly
def test_nothing_is_counted_of_a_side_of_two_buckets(released: ReleaseRecord, viewer: Client) -> None:
    one, other = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    mixed = build.run(repeats=1)
    build.decode(mixed, 1, ["red"] * N, by=[one] * 20 + [other] * 20)
    path = f"/compare/{released.gates.get().baseline_run_id}/{mixed.pk}/"
    assert "broken cases" not in viewer.get(path).content.decode()
    page = viewer.get(f"{path}?outcome=broken").content.decode()
    assert "Several buckets served the candidate, so no case of it is judged as a whole." in page


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "outcome"),
        ("&outcome=fixed&look=x", "look"),
        *nightly([("&outcome=worse", "outcome"), ("&outcome=same_text&look=5", "look")]),
    ],
)
def test_a_list_that_nobody_can_give_is_refused(
    released: ReleaseRecord, viewer: Client, query: str, field: str
) -> None:
    gate = released.gates.get()
    answer = viewer.get(
        f"/api/v1/compare/outcomes/?baseline={gate.baseline_run_id}&candidate={gate.candidate_run_id}{query}"
    )
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])
