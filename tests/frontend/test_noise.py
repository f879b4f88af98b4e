"""What a run page says of noise and resolution, and how it marks the cases that are likely to flip."""

import re
from html import unescape
from typing import Any

import pytest

from runs.models import CaseColumns
from tests import build
from tests.nightly import few


def page_of(client: Any, run: Any, query: str = "") -> str:
    return unescape(client.get(f"/runs/{run.pk}/{query}").content.decode())


def rows(page: str) -> dict[str, list[str]]:
    """The measures of the noise table, each with its values by bucket."""
    section = page[page.index('id="noise"') :].partition("</details>")[0]
    found = {}
    for line in re.findall(r"<tr>(.*?)</tr>", section, re.S)[1:]:
        name = re.search(r'<th scope="row">(.*?)</th>', line)[1]
        found[name] = [
            re.sub(r"<[^>]*>", "", value).strip() for value in re.findall(r"<td class=\"number.*?</td>", line)
        ]
    return found


def test_a_run_says_what_its_repeats_resolve(stage, viewer):
    page = page_of(viewer, stage.run_in("finished"))
    found = rows(page)
    assert found["Range"] == ["73.3–76.7"]
    assert found["Unstable cases"] == ["1"]
    assert found["Same score"] == found["Same text"] == ["97\u00a0%"]
    assert found["Likely to flip"] == ["6"]
    here, elsewhere = found["Detects here"][0].split()[0], found["Detects elsewhere"][0].split()[0]
    assert f"5 repeats a side detect changes of {here} points or more on these 30 cases." in page
    assert f"On new cases it is {elsewhere} points, if 6\u00a0% of them change." in page
    assert "Whole repeats differ by more than chance in single cases explains." not in page


@pytest.mark.parametrize(("last", "is_said"), few([("blue blue red", False), ("blue red red", True)], 1))
def test_what_moves_a_score_is_said_where_repeats_scored_unlike(viewer, last, is_said):
    run = build.finished_run(["blue", "blue", "red"], last.split())
    for address in (f"/runs/{run.pk}/", f"/suites/{run.suite_version.suite.slug}/"):
        assert ("Repeats differ by" in viewer.get(address).content.decode()) == is_said


@pytest.mark.nightly
def test_one_repeat_says_what_it_can_and_asks_for_another(stage, viewer):
    by = stage.worker()
    run = stage.start(repeats=1)
    stage.serve(by, stage.engine(by))
    page = page_of(viewer, run)
    assert set(rows(page)) == {"Range", "On cases like these", "Likely to flip"}
    assert "Not known from fewer than two repeats." in page
    assert "Which cases are unstable is known once two repeats are complete." in page
    assert "6 cases are likely to flip under other batching, by their margins." in page


@pytest.mark.nightly
def test_runs_that_move_as_a_whole_are_pointed_out(stage, viewer):
    by = stage.worker()
    run = stage.start(repeats=5)
    stage.serve(
        by, stage.engine(by), answer=lambda repeat, case: stage.reply(case, 1 if repeat < 4 or case % 4 else 10)
    )
    page = page_of(viewer, run)
    assert "Whole repeats differ by more than chance in single cases explains." in page
    assert rows(page)["Runs as a whole"] == ["p\u00a0under 0.001"]


@pytest.mark.nightly
def test_each_bucket_has_a_column_of_its_own(stage, viewer):
    float32, bfloat16 = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    run = build.run(build.suite("mixed", ["a", "b", "c"]), repeats=2)
    build.decode(run, 1, ("blue", "blue", "red"), by=[float32, float32, bfloat16])
    build.decode(run, 2, ("blue", "red", "red"), by=[float32, float32, bfloat16])
    page = page_of(viewer, run)
    assert rows(page)["Unstable cases"] == ["1", "0"]
    assert "Each bucket is measured separately." in page


@pytest.mark.nightly
def test_cases_likely_to_flip_are_marked_by_a_glyph_and_a_word_and_can_be_shown_alone(stage, viewer):
    run = stage.run_in("finished")
    listed = page_of(viewer, run, "?only=likely")
    table = listed[listed.index('class="cases"') :]
    assert len(re.findall(r'#cause-near-tie"/></svg> likely to flip <span class="quiet">50\u00a0%', table)) == 6
    assert table.index("case-004") < table.index("case-029")
    assert "case-003" not in table
    assert '<a href="?only=likely#cases" aria-current="true">likely to flip <b>6</b></a>' in listed


@pytest.mark.nightly
def test_no_prediction_is_no_promise(stage, viewer):
    run = stage.run_in("finished")
    CaseColumns.objects.update(flip_chances=None)
    page = page_of(viewer, run, "?only=likely")
    assert "Likely to flip" not in rows(page)
    assert "No case is likely to flip." not in page
    assert "No case of this run is likely to flip." in page  # the filter's own words
    assert "likely to flip <span" not in page


@pytest.mark.nightly
def test_repeats_that_agreed_are_said_beside_the_prediction(stage, viewer):
    by = stage.worker()
    run = stage.start(repeats=2)
    stage.serve(by, stage.engine(by), answer=lambda _, case: stage.reply(case, 1, 2, 3, margin=0.0))
    assert "These repeats had the same batches, and none did." in page_of(viewer, run)
