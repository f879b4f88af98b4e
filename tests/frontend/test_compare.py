"""The compare page: it adds up, says first why the number moved, and leads to the very position."""

import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evalboard.cli.compare import render_comparison
from evalboard.contract.compare import CauseBins, PositionHistogram
from evalboard.core.errors import NotFound
from evalboard.core.trace import Failed
from frontend.compare import charts, flip_chart, pair_address
from frontend.compare import words as compare_words
from frontend.compare.pair_address import lists_of
from runs.compare import compare
from runs.models import ComparisonRecord, ResponseRecord
from runs.run import delete_run
from tests.build import comparison_report
from tests.casts import cast
from tests.frontend import stage as staged
from tests.frontend import two_runs
from tests.frontend.stage import HOSTILE, HOSTILE_ID, SLUG
from tests.frontend.two_runs import said, sure, tie
from tests.nightly import nightly

MAX_QUERIES = 44  # five of them say what scoring both sides on both stacks takes


def page_of(client: Client, runs, query: str = "") -> str:
    response = client.get(f"/compare/{runs[0].pk}/{runs[1].pk}/{query}")
    assert response.status_code == 200, response.content[:400]
    return response.content.decode()


def report_of(runs):
    found = compare(baseline=runs[0].pk, candidate=runs[1].pk)
    return comparison_report(found.pk)


def words_of(markup: str) -> str:
    return " ".join(unescape(re.sub("<[^>]+>", " ", markup)).split())


@cast
def moved(staged_rows):
    """Another stack answered: case 5 lost its point at a near tie, 6 won one, 7 flipped, 8 drifted, 9 is missing."""
    ours = {5: said(5, [tie(1, 10), sure(0)]), 6: said(6, [tie(10, 1), sure(0)])}
    theirs = {5: said(5, [tie(10, 1), sure(0)]), 6: said(6, [tie(1, 10), sure(0)])}
    ours |= {7: said(7, [sure(4), tie(10, 11), sure(0)]), 8: said(8, [sure(1), sure(0)])}
    theirs |= {7: said(7, [sure(4), tie(11, 10), sure(0)]), 8: said(8, [sure(1, -0.2502), sure(0)])}
    theirs |= {9: Failed(9, "timeout", f"late {HOSTILE}"), 10: said(10, [tie(10, 1), sure(0)])}
    by = staged.engine(staged.worker("other"), dtype="bfloat16")
    return two_runs.make(ours, theirs, by=by)


def test_the_ledger_ends_in_the_head_and_its_shown_rows_add_up(moved, viewer):
    page = page_of(viewer, moved)
    report = report_of(moved)
    head = words_of(re.findall(r"<h1>(.*?)</h1>", page, re.S)[0])
    shown = re.search(r"([+−]?\d+\.\d) points$", head)
    assert shown is not None
    ledger = re.findall(r'<table class="ledger">.*?</table>', page, re.S)[0]
    total = words_of(re.findall(r"<tfoot>.*</tfoot>", ledger, re.S)[0]).split()[-1]
    body = re.findall(r"<tbody>.*</tbody>", ledger, re.S)[0]
    rows = re.findall(r"<tr.*?>(.*?)</tr>", body, re.S)
    assert total == shown[1]
    assert len(rows) == sum(1 + len(line.parts or ()) for line in report.ledger)
    assert sum(line.shown for line in report.ledger) == pytest.approx(float(total.replace("−", "-")), abs=1e-9)


def test_every_number_of_the_ledger_opens_a_list_of_as_many_cases(stage, viewer):
    """Two repeats a side, so that pairs are more than cases."""
    lost = {case: said(case, [tie(10, 1), sure(0)]) for case in (5, 6)} | {7: said(7, [sure(10), sure(0)])}
    ours = {case: said(case, [tie(1, 10), sure(0)]) for case in (5, 6)} | {7: said(7, [sure(1), sure(0)])}
    page = page_of(viewer, two_runs.make(ours, lost, repeats=2))
    ledger = re.findall(r'<table class="ledger">.*?</table>', page, re.S)[0]
    links = re.findall(r'<a href="([^"]+)#cases">(\d+)</a>', ledger)
    assert len(links) == len(re.findall(r"<tr>", ledger)) - 1  # all rows but the head
    for address, n in links:
        listed = viewer.get(unescape(address)).content.decode()
        table = re.findall(r'<table class="(?:divergences|changed)".*?</table>', listed, re.S)[0]
        cases = re.findall(r"/cases/([^/\"]+)/", table)
        assert len(set(cases)) == int(n)
        what = "the furthest moved first" if "outcome=" in address else f"{2 * int(n)} pairs, the gravest first"
        assert f"<p>{n} case{'s' if n != '1' else ''}, {what}</p>" in listed
    assert sum(int(n) for _, n in links[:-1]) == int(links[-1][1]) == 3


def test_the_waterfall_ends_where_the_total_does(moved):
    drawn = charts.waterfall(report_of(moved), lists_of(report_of(moved)))
    assert drawn is not None
    far_end = {drawn.total.x, drawn.total.end} - {drawn.zero}
    assert far_end == {drawn.bars[-1].end}
    start = drawn.zero
    for bar in drawn.bars:  # each begins where the one before ended
        assert pytest.approx(start, abs=0.01) in (bar.bar.x, bar.bar.end)
        start = bar.end
        if bar.parts:  # and its parts lead from where it begins to where it ends
            assert bar.parts[-1].end == pytest.approx(bar.end, abs=0.01)


@pytest.mark.nightly
def test_time_and_tokens_stand_beside_the_score(moved, viewer):
    ResponseRecord.objects.filter(repeat__run=moved[0]).update(decode_seconds=2.0, n_tokens=10, n_prompt_tokens=7)
    ResponseRecord.objects.filter(repeat__run=moved[1]).update(decode_seconds=4.0, n_tokens=20, n_prompt_tokens=7)
    speeds = [side.speed for side in (report_of(moved).sides.baseline, report_of(moved).sides.candidate)]
    assert [(speed.median_seconds, speed.tokens) for speed in speeds] == [(2.0, 10.0), (4.0, 20.0)]
    assert [speed.n_responses for speed in speeds] == [30, 29]
    page = words_of(page_of(viewer, moved))
    assert "baseline 2.0 s 2.0 s 10 7 candidate 4.0 s 4.0 s 20 7 " in page
    line = "An answer: median 2.00 s to 4.00 s, 95 % within 2.00 s to 4.00 s, tokens out 10.00 to 20.00."
    assert line in render_comparison(report_of(moved))


def test_the_first_sentence_says_why_and_the_banner_names_what_moved(moved, viewer):
    page = page_of(viewer, moved)
    finding = words_of(re.findall(r'<p class="finding">(.*?)</p>', page, re.S)[0])
    assert finding.startswith("The score fell by ")
    assert ", and another serving stack answered (dtype float32 → bfloat16)." in finding
    assert "1 case has no response on one side: the scores are over 29 of 30 cases." in finding
    assert "Not comparable as one change." in page
    assert re.search(r'href="/fingerprints/\d+/diff/\d+/"', page)


def test_counts_are_parts_of_one_bar_and_none_vanishes(moved, viewer):
    report = report_of(moved)
    parts = charts.count_parts(report, lists_of(report))
    assert sum(part.n for part in parts) == report.counts.n_cases
    assert min(part.bar.width for part in parts) > 0
    assert parts[-1].bar.end <= 100
    counts = report.counts.model_copy(update={"n_cases_paired": 1_000_000})
    few = charts.count_parts(report.model_copy(update={"counts": counts}), lists_of(report))
    assert min(part.bar.width for part in few) >= 0.1


@pytest.mark.nightly
def test_each_part_of_the_bar_leads_to_a_list_of_as_many_cases(moved, viewer):
    page = page_of(viewer, moved)
    shown = page[page.index('aria-label="Show"') :].partition("</p>")[0]
    pills = re.findall(r'<a href="([^"]+)#cases"[^>]*>(<svg class="swatch".*?)</a>', shown)
    parts = [(unescape(url), int(words_of(pill).split()[-1])) for url, pill in pills]
    assert sum(n for _, n in parts) == 30
    parts = [(url, n) for url, n in parts if n]
    lists = {url.rpartition("=")[2]: viewer.get(url).content.decode() for url, _ in parts}
    tables = [re.findall(r'<table class="changed".*?</table>', each, re.S)[0] for each in lists.values()]
    assert [each.count('<th scope="row">') for each in tables] == [n for _, n in parts]
    assert "case-007" in lists["other_text"]
    assert "case-008" in lists["same_text"]  # which drifted
    assert all(case in lists["broken"] + lists["fixed"] for case in ("case-005", "case-006", "case-010"))
    assert "case-009" in lists["missing"]


@pytest.mark.nightly
def test_a_case_of_one_text_shows_it_once_and_opens_to_it(moved, viewer):
    page = page_of(viewer, moved, "?outcome=same_text")
    rows = re.findall(r'<tr><th scope="row">.*?</tr>', page, re.S)
    row = next(row for row in rows if "case-000" in row)
    (line,) = re.findall(r'<p class="answer-line same">(.*?)</p>', row)
    assert words_of(line).startswith("both sides ")
    link = unescape(re.findall(r'href="([^"]*)"', row)[0])
    part = viewer.get(f"{link}&part=answers").content.decode()
    assert "Both sides gave this answer." in part
    (whole,) = re.findall(r"<pre[^>]*>(.*?)</pre>", part, re.S)
    assert words_of(whole).endswith(words_of(line).removeprefix("both sides ")[-10:])


def test_a_case_whose_logprobs_alone_drifted_shows_its_text_once_and_where_they_differ(moved, viewer):
    row, compact = (
        next(row for row in re.findall(r'<tr><th scope="row">.*?</tr>', page, re.S) if "case-008" in row)
        for page in (page_of(viewer, moved, f"?outcome=same_text{more}") for more in ("", "&compact=1"))
    )
    (line,) = re.findall(r'<p class="answer-line.*?">(.*?)</p>', row)
    assert words_of(line).startswith("both sides, logprobs differ from token 0 ")
    assert "nothing" not in words_of(compact)


def test_cases_come_by_consequence_and_lead_to_their_flip(moved, viewer):
    page = page_of(viewer, moved, "?show=pairs")
    table = re.findall(r'<table class="divergences">.*?</table>', page, re.S)[0]
    rows = [(words_of(row), row) for row in re.findall(r"<tr>(.*?)</tr>", table, re.S)[1:]]
    cases = [words.split()[0] for words, _ in rows]
    assert set(cases[:3]) == {"case-005", "case-006", "case-010"}
    assert all("→" in words for words, _ in rows[:3])
    flip = next(row for words, row in rows if words.startswith("case-007"))
    link = unescape(re.findall(r'href="([^"]*)"', flip)[0])
    assert link.endswith("?repeat=1,1&show=pairs&at=1")
    assert "flip at <b>1</b>" in viewer.get(link).content.decode()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?changed=yes", {"case-005", "case-006", "case-010"}),
        ("?changed=nonsense&cause=backend_changed&q=case-006", {"case-006"}),
        ("?backend=A-B&q=case-005", {"case-005"}),
        *nightly(
            [
                ("?cause=error", {"case-009"}),
                ("?show=pairs&q=case-007", {"case-007"}),
                ("?changed=yes&q=007", set()),
                ("?tag=nobody", set()),
            ]
        ),
    ],
)
def test_the_state_of_the_list_is_in_the_address(moved, viewer, query, expected):
    for part in ("", "&part=cases"):
        page = page_of(viewer, moved, query + part)
        assert ("<html" in page) is (not part)
        table = re.findall(r'<table class="divergences">.*?</table>', page, re.S)
        found = set(re.findall(r">(case-\d+)<", "".join(table)))
        assert found == expected, query
    assert ("No pair of responses fits this filter." in page) is (not found)


@pytest.mark.nightly
def test_equal_repeats_of_a_case_are_one_line(stage, viewer):
    runs = two_runs.make({5: said(5, [tie(1, 10), sure(0)])}, {5: said(5, [tie(10, 1), sure(0)])}, repeats=3)
    page = page_of(viewer, runs, "?show=pairs")
    assert page.count("3 repeats alike") == 1
    assert len(re.findall(r'<a class="mono" href="[^"]*case-005', page)) == 1


@pytest.mark.nightly
def test_two_equal_runs_say_that_nothing_moved(stage, viewer):
    page = page_of(viewer, two_runs.make({}, {}))
    assert "Nothing changed:" in page
    assert 'class="ledger"' not in page
    assert 'class="divergences"' not in page, "cases, not pairs of responses"
    assert len(re.findall(r'<th scope="row">', page)) == 30
    assert re.search(r'aria-current="true"><svg class="swatch".*?</svg> same text <b>30</b>', page)


@pytest.mark.nightly
def test_cases_without_a_response_are_not_among_those_that_did_not_move(stage, viewer):
    page = page_of(viewer, two_runs.make({}, {case: Failed(case, "timeout", "late") for case in (8, 9)}))
    finding = words_of(re.findall(r'<p class="finding">(.*?)</p>', page, re.S)[0])
    assert finding == (
        "Nothing changed where both sides answered: 28 pairs of responses have the same text and score. "
        "2 cases have no response on one side: the scores are over 28 of 30 cases."
    )


@pytest.mark.nightly
def test_a_repeat_is_held_against_another_of_the_same_run(stage, viewer):
    run = stage.run_in("finished")
    bare = viewer.get(f"/compare/{run.pk}/{run.pk}/")
    assert bare.status_code == 302
    assert bare.headers["Location"].endswith("?repeat=1,2")
    page = viewer.get(bare.headers["Location"]).content.decode()
    assert "repeat 1: 76.7" in page
    assert "repeat 2: 73.3" in page
    link = re.findall(r'<a class="mono" href="([^"]*case-002[^"]*)"', page)[0]
    diff = viewer.get(unescape(link)).content.decode()
    assert f'href="/compare/{run.pk}/{run.pk}/?repeat=1,2&outcome=broken"' in unescape(diff)


def test_a_comparison_under_way_polls_and_one_that_ended_does_not(moved, viewer):
    page = page_of(viewer, moved)
    assert 'hx-trigger="every 2s"' not in page
    comparison = ComparisonRecord.objects.get()
    ComparisonRecord.objects.update(status="queued", n_pairs=4, n_done=1)
    page = page_of(viewer, moved)
    assert 'hx-trigger="every 2s"' in page
    assert "Comparing: 1 of 4 pairs of traces." in page
    address = f"/compare/{moved[0].pk}/{moved[1].pk}/?part=progress"
    assert "HX-Refresh" not in viewer.get(address).headers
    ComparisonRecord.objects.filter(pk=comparison.pk).update(status="finished")
    assert viewer.get(address).headers["HX-Refresh"] == "true"


def test_hostile_words_are_drawn(stage, viewer):
    by = stage.engine(stage.worker("other"), dtype="bfloat16")
    runs = two_runs.make({1: said(1, [tie(1, 8)])}, {1: said(1, [tie(8, 1)])}, by=by)
    for query, filters in (("?show=pairs", {"show": "pairs"}), ("", {"outcome": "broken"})):
        page = page_of(viewer, runs, query)
        assert "<script>alert" not in page
        assert not {"\u202e", "\x07"} & set(page)
        url = pair_address.pair_url(runs[0].pk, runs[1].pk, HOSTILE_ID, repeats=(1, 1), at=0, filters=filters)
        assert f'href="{unescape(url)}"' in unescape(page)


@pytest.mark.nightly
def test_the_cost_does_not_grow_with_what_differs(stage, viewer):
    def costs(n: int) -> int:
        ours = {case: said(case, [tie(1, 10), sure(0)]) for case in range(5, 5 + n)}
        theirs = {case: said(case, [tie(10, 1), sure(0)]) for case in range(5, 5 + n)}
        runs = two_runs.make(ours, theirs)
        page_of(viewer, runs)
        with CaptureQueriesContext(connection) as queries:
            page_of(viewer, runs)
        return len(queries)

    few = costs(2)
    assert costs(20) == few
    assert few <= MAX_QUERIES


def test_two_ticked_runs_lead_to_their_comparison_and_another_number_back_to_the_list(moved, viewer):
    older, newer = sorted(run.pk for run in moved)
    found = viewer.get(f"/compare/?run={newer}&run={older}")
    assert found.headers["Location"] == f"/compare/{older}/{newer}/"
    back = viewer.get(f"/compare/?run={newer}&run=x", follow=True)
    assert "Tick two runs to compare them; 1 ticked." in back.content.decode()


@pytest.mark.nightly
def test_runs_suite_and_cases_lead_to_a_comparison(stage, viewer):
    first, second = stage.run_in("finished"), stage.run_in("finished")
    page = viewer.get(f"/runs/{second.pk}/").content.decode()
    assert f'href="/compare/{first.pk}/{second.pk}/"' in page
    assert f'href="/compare/{second.pk}/{second.pk}/?repeat=1,2"' in page
    for address in ("/runs/", f"/suites/{SLUG}/"):
        assert f'name="run" value="{first.pk}" form="compare-chosen"' in viewer.get(address).content.decode()
    case = viewer.get(f"/runs/{first.pk}/repeats/1/cases/case-002/").content.decode()
    assert f"/compare/{first.pk}/{first.pk}/cases/case-002/?repeat=1,2" in case
    same = viewer.get(f"/runs/{first.pk}/repeats/1/cases/case-003/").content.decode()
    assert "/compare/" not in same.split('id="main"')[1]


def test_stacked_bars_hold_every_pair_and_a_lone_one_can_be_seen():
    found = PositionHistogram(
        width=5,
        starts=(0, 5, 10),
        series=(CauseBins(cause="near_tie", counts=(3, 0, 1)), CauseBins(cause="backend_changed", counts=(1000, 2, 0))),
        n=1006,
        n_at_start=900,
    )
    drawn = charts.histogram(found, "flip")
    assert drawn is not None
    assert [mark.code for mark in drawn.marks] == ["backend_changed", "near_tie"]
    assert drawn.rows[0] == (0, 4, (1000, 3))
    first = [bar for bar in drawn.bars if bar.x < 33]
    assert first[1].y + first[1].height == pytest.approx(first[0].y)
    assert min(bar.y for bar in drawn.bars) >= 0
    assert compare_words.describe_histogram(found, "flip").claim == "900 of 1,006 differ from the first token."
    assert charts.histogram(found.model_copy(update={"n": 0}), "flip") is None


def test_a_run_that_is_deleted_while_its_flips_are_read_is_not_found(moved):
    report = report_of(moved)
    assert len(flip_chart.name_flips(report)) == len(flip_chart.known_flips(report)) > 0
    delete_run(run_id=moved[0].pk)
    with pytest.raises(NotFound, match=f"no run {moved[0].pk} any more"):
        flip_chart.name_flips(report)
