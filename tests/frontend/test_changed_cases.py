"""A comparison's list of cases that changed: both answers where they part, filters that combine, and its neighbours."""

import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.db.models.functions import Now

from evalboard.core.trace import pack_reasons, pack_scores, pack_selection
from frontend.compare import pair_address
from frontend.compare.charts import label_parts
from runs.compare import case_outcomes, compare
from runs.models import RepeatRecord, RepeatScore, ReplayRecord, RunRecord
from tests.build import comparison_report
from tests.casts import cast
from tests.frontend import toolcalls_stage

pytestmark = pytest.mark.django_db
N_CASES = 36


@cast
def pair() -> tuple[RunRecord, RunRecord]:
    return toolcalls_stage.pair(model_root=settings.MODEL_ROOTS[0], n_cases=N_CASES)


def page_of(client: Any, pair: tuple[RunRecord, RunRecord], query: str = "") -> str:
    answer = client.get(f"/compare/{pair[0].pk}/{pair[1].pk}/{query}")
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def rows(page: str) -> dict[str, str]:
    table = page.partition('<table class="changed')[2].partition("</table>")[0]
    return {
        re.search(r"<bdi>(tool-\d+)", row)[1]: row for row in re.findall(r"<tr>(.*?)</tr>", table, re.S) if "<td" in row
    }


def broken(pair: tuple[RunRecord, RunRecord]) -> list[str]:
    comparison = compare(baseline=pair[0].pk, candidate=pair[1].pk)
    return [f"tool-{case.case_index:03}" for case in case_outcomes(comparison.pk, "broken").cases]


def test_it_opens_on_the_broken_cases_with_both_answers_where_they_part(pair, viewer):
    listed = rows(page_of(viewer, pair))
    assert list(listed) == broken(pair)
    first = next(iter(listed.values()))
    assert len(re.findall(r'class="excerpt', first)) == 2
    before = re.findall(r'<span class="near">(.*?)</span>', first)
    assert len(set(before)) == 1, "the outlines stand under each other"
    assert len(set(re.findall(r'<b class="parts-here">(.*?)</b>', first))) == 2
    passes = [re.findall(r"<b>(\d)</b> of (\d)", row) for row in listed.values()]
    lost = [int(ours) - int(theirs) for (ours, _), (theirs, _) in passes]
    assert lost == sorted(lost, reverse=True)
    assert lost[0] == 5


@pytest.mark.nightly
def test_filters_by_what_the_numbers_say_and_the_search_combine_with_the_outcome(pair, viewer):
    page = page_of(viewer, pair, "?outcome=unstable")
    chips = page[page.index('aria-label="Show"') :].partition("</p>")[0]
    looks = dict(re.findall(r"</svg></span> ([a-z ]+) <b>(\d+)</b>", chips))
    assert len(looks) > 1
    everything = rows(page)
    assert sum(map(int, looks.values())) == len(everything)
    ties = rows(page_of(viewer, pair, "?outcome=unstable&cause=near_tie"))
    assert len(ties) == int(looks["near tie"])
    assert set(ties) < set(everything)
    listed = rows(page_of(viewer, pair, "?outcome=broken&q=Shall+I+tell"))
    assert listed
    assert {int(case.removeprefix("tool-")) % len(toolcalls_stage.PROMPTS) for case in listed} == {2}
    assert "No case that holds" in page_of(viewer, pair, "?outcome=broken&q=nobody+wrote+this")


@pytest.mark.nightly
def test_compact_rows_are_one_line_and_stay_so_in_the_address(pair, viewer):
    page = page_of(viewer, pair, "?outcome=broken&compact=1")
    assert 'class="excerpt' not in page
    assert list(rows(page)) == broken(pair)
    assert "compact=1" in re.search(r'href="([^"]*)#cases"[^>]*>(?:<svg.*?</svg>)? ?fixed <b>', page)[1]


def chips(page: str) -> dict[str, int]:
    """The lists above the cases that this one may be changed for, each with how many it says it has."""
    part = page[page.index('aria-label="Show"') :].partition('<span class="hairline"')[0]
    return {name: int(n) for name, n in re.findall(r"> ?([a-z ]+) <b>(\d+)</b></a>", part)}


def test_lists_of_cases_are_as_long_as_their_filters_say_and_add_up(pair, viewer):
    page, made = page_of(viewer, pair), compare(baseline=pair[0].pk, candidate=pair[1].pk)
    counts = chips(page)
    assert counts["all"] == N_CASES
    assert sum(counts.values()) == 2 * N_CASES
    named = {part: label for part, label in label_parts(comparison_report(made.pk)).items() if label in counts}
    listed = {part: list(rows(page_of(viewer, pair, f"?outcome={part}"))) for part in (*named, "all")}
    assert {part: len(cases) for part, cases in listed.items()} == {
        **{part: counts[label] for part, label in named.items()},
        "all": N_CASES,
    }
    assert sorted(listed["all"]) == sorted(case for part in named for case in listed[part])
    assert set(listed["all"][: counts["broken"]]) == set(broken(pair))
    ledger = page[page.index('<table class="ledger"') :]
    url, n_moved = re.search(r'<a href="([^"]*)#cases">(\d+)</a>', ledger[ledger.index("<tfoot>") :]).groups()
    moved = list(rows(page_of(viewer, pair, f"?{url.partition('?')[2]}")))
    assert moved == listed["all"][: int(n_moved)]


@pytest.mark.nightly
def test_a_search_hit_moves_the_excerpt_and_is_underlined(pair, viewer):
    page = page_of(viewer, pair, "?outcome=broken&q=Shall+I+TELL")
    listed = rows(page)
    assert listed
    assert all('<mark class="hit">Shall I tell</mark>' in row for row in listed.values())
    assert '<mark class="hit">' not in page_of(viewer, pair, "?outcome=broken&q=Priya+to+the+same")  # of a prompt


@pytest.mark.nightly
def test_a_row_opens_to_both_whole_answers(pair, viewer):
    link = re.search(r'href="([^"]*)"', next(iter(rows(page_of(viewer, pair)).values())))[1]
    part = unescape(viewer.get(f"{link}&part=answers").content.decode())
    answers = re.findall(r"<pre[^>]*><bdi>(.*?)</bdi></pre>", part, re.S)
    assert len(answers) == 2
    whole = unescape(viewer.get(link).content.decode())
    assert "<html" not in part
    assert len(part) < len(whole) / 4
    assert all(answer.startswith(("{", "Sure")) for answer in answers)


@pytest.mark.nightly
def test_the_ledger_says_how_far_noise_alone_moves_each_cause(pair, viewer):
    page = page_of(viewer, pair)
    ledger = page[page.index('<table class="ledger">') :].partition("</table>")[0]
    assert "Noise alone</th>" in ledger
    *each, whole = [float(up_to) for up_to in re.findall(r'<td class="number noise">± ([\d.]+)</td>', ledger)]
    assert len(each) == len(re.findall(r'<th scope="row">', ledger)) - 1
    assert f"at most ±{whole} points" in page
    assert 0 < min(each) < max(each) <= whole


@pytest.mark.nightly
def test_clusters_are_of_the_broken_cases(pair, viewer):
    page = page_of(viewer, pair)
    part, by_tag = page[page.index("have in common") :].split("</ul>")[:2]
    words = [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in re.findall(r"<li>(.*?)</li>", part, re.S)]
    assert any(re.fullmatch(r"\d+ wrote EUR for CHF all in currency .*", each) for each in words), words
    n = len(broken(pair))
    tagged = re.findall(rf'<a href="([^"]*)#cases">(\d+) of the {n}</a>', by_tag.partition("</p>")[0])
    assert sum(int(number) for _, number in tagged) == n, "each case of the stage has one tag"
    for url, number in tagged:
        assert len(rows(unescape(viewer.get(unescape(url)).content.decode()))) == int(number)
    sizes = [int(n) for n in re.findall(r'<b class="number">(\d+)</b>', part)]
    assert sizes == sorted(sizes, reverse=True)
    assert 0 < sum(sizes) <= len(broken(pair))


def test_n_and_p_walk_the_list_that_the_reader_came_from(pair, viewer):
    listed = rows(page_of(viewer, pair))
    order = list(listed)
    url = re.search(r'href="([^"]*)"', listed[order[1]])[1]
    page = unescape(viewer.get(url).content.decode())
    to = {key: link for link, key in re.findall(r'href="([^"]*)" data-key="([np])"', page)}
    assert f"/cases/{order[0]}/" in to["p"]
    assert f"/cases/{order[2]}/" in to["n"]
    back = unescape(viewer.get(to["n"]).content.decode())
    assert f'href="{url}" data-key="p"' in back


@pytest.mark.nightly
def test_n_then_p_returns_in_the_list_of_pairs_as_well(pair, viewer):
    page = page_of(viewer, pair, "?show=pairs")
    url = re.search(r'<a class="mono" href="([^"]*show=pairs[^"]*)"', page)[1]
    first = unescape(viewer.get(url).content.decode())
    following = re.search(r'href="([^"]*)" data-key="n"', first)[1]
    second = unescape(viewer.get(following).content.decode())
    assert re.search(r'href="([^"]*)" data-key="p"', second)[1] == url


@pytest.mark.nightly
def test_a_comparison_with_a_mixed_run_has_no_equation_but_a_line_a_bucket(pair, viewer):
    mixed = toolcalls_stage.mixed(N_CASES)
    page = page_of(viewer, (pair[0], mixed))
    head = re.search(r"<h1.*?</h1>", page, re.S)[0]
    assert "points" not in head
    lines = page[page.index("by-bucket") :].partition("</table>")[0]
    assert len(re.findall(r'<th scope="row"', lines)) == 3
    assert "bfloat16" in lines
    assert re.search(r" float16", lines)


@pytest.mark.nightly
def test_a_response_is_decoded_again_from_the_page_of_its_pair(pair, client_of):
    engineer = client_of("engineer")
    address = pair_address.pair_url(pair[0].pk, pair[1].pk, "tool-001", repeats=(1, 2))
    page = unescape(engineer.get(address).content.decode())
    assert "Never decoded again" in page
    act = re.search(r'action="([^"]*/replay/[^"]*)"', page)[1]
    sent = {"case": "tool-001", "run": pair[1].pk, "batch_sizes": "1, 2 4"}
    answer = engineer.post(act, sent)
    assert answer.headers["Location"] == address
    replay = ReplayRecord.objects.get()
    assert (replay.run_id, replay.repeat.index, replay.case_index) == (pair[1].pk, 2, 1)
    assert [variant["batch_size"] for variant in replay.variants] == [1, 2, 4]
    assert "0 of 3 variants decoded" in unescape(engineer.get(address).content.decode())
    refused = engineer.post(act, {**sent, "batch_sizes": "many"}, follow=True)
    assert "Batch sizes are whole numbers" in refused.content.decode()
    stranger = engineer.post(act, {**sent, "run": "999999"}, follow=True)
    assert "no side of this pair" in stranger.content.decode()
    assert ReplayRecord.objects.count() == 1
    assert client_of("viewer").post(act, sent).status_code == 403


@pytest.mark.nightly
def test_targeted_repeats_stand_beside_the_passes_and_count_in_none_of_them(pair, viewer):
    before = page_of(viewer, pair)
    assert "argeted" not in before
    case = int(broken(pair)[0].removeprefix("tool-"))
    is_chosen = np.arange(N_CASES) == case
    for run, score in zip(pair, (1.0, 0.0), strict=True):
        repeat = RepeatRecord.objects.create(
            run=run, index=6, cases=pack_selection(is_chosen), status="finished", finished_at=Now()
        )
        RepeatScore.objects.create(
            repeat=repeat,
            scorer=run.suite_version.scorer,
            scores=pack_scores(np.where(is_chosen, score, np.nan)),
            reasons=pack_reasons([None] * N_CASES),
            n_scored=1,
            n_missing=0,
        )
    page = page_of(viewer, pair)
    (own,) = [row for row in rows(page).values() if "targeted" in row]
    assert own == rows(page)[f"tool-{case:03}"]
    whole, targeted = own.split("targeted")
    assert re.findall(r"<b>(\d)</b> of (\d)", targeted) == [("1", "1"), ("0", "1")]
    assert re.findall(r"<b>(\d)</b> of (\d)", whole) == re.findall(
        r"<b>(\d)</b> of (\d)", rows(before)[f"tool-{case:03}"]
    )
    said = "Targeted repeats count only in a release's verdict: 1 repeat of 1 case on the baseline"
    assert f"{said} and 1 repeat of 1 case on the candidate." in page
    assert said not in page_of(viewer, pair, "?repeat=1,1")


@pytest.mark.nightly
def test_the_list_is_sorted_by_a_head_and_a_column_can_be_hidden(pair, viewer):
    page = page_of(viewer, pair, "?outcome=broken")
    heads = dict(re.findall(r'<th scope="col"[^>]*><a href="([^"]*)#cases"[^>]*>(\w+)</a>', page))
    assert list(heads.values()) == ["Case", "Passes", "Why"]
    address = {name: url for url, name in heads.items()}
    by_case = viewer.get(address["Case"]).content.decode()
    assert list(rows(unescape(by_case))) == sorted(broken(pair))
    assert 'aria-sort="ascending"><a href' in by_case
    flips = [int(at) for at in re.findall(r'class="under">at (\d+)', viewer.get(address["Why"]).content.decode())]
    assert flips == sorted(flips)
    assert len(set(flips)) > 1
    hide = re.search(r'href="([^"]*hide=got[^"]*)#cases"', page)[1]
    assert '<table class="changed hide-got"' in viewer.get(hide).content.decode()


def test_a_broken_case_says_what_was_expected_and_what_came_and_leads_to_its_runs(pair, viewer):
    row = rows(page_of(viewer, pair, "?outcome=broken"))["tool-001"]
    got = re.sub(r"<[^>]*>", "", row.partition('<td class="got">')[2].partition("</td>")[0])
    assert got.startswith('Expected "CHF\\"')
    assert ', got "EUR\\"' in got
    assert 'href="/suites/toolcalls/cases/tool-001/"' in row
