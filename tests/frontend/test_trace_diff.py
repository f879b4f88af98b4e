"""The trace diff page: the outlined tokens are those whose stored ids differ, and nothing on it can hide or run."""

import json
import re
from html import unescape

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evalboard.core.trace import Failed, TokenTrace, read_trace
from frontend.compare import pair_address, pair_chart
from frontend.compare.pair_lines import pair_lines
from frontend.shell.charts.axes import log_scale_of
from runs.compare import trace_pair
from runs.models import ResponseRecord
from tests.casts import cast
from tests.frontend import two_runs
from tests.frontend.stage import HOSTILE, HOSTILE_ID
from tests.frontend.two_runs import END_ROW, said, sure, tie
from tests.nightly import few, nightly

TOKEN = re.compile(r'<a class="token([^"]*)" href="[^"]*" data-position="(\d+)" aria-label="([^"]*)"([^>]*)>(.*?)</a>')
CASE = "case-005"
MAX_QUERIES = 20  # the pair, its comparison’s row, the neighbours, the newest replay, the profiles, and who looks


def page_of(client: Client, runs, case=CASE, *, query="") -> str:
    address = pair_address.pair_url(runs[0].pk, runs[1].pk, case, repeats=(1, 1))
    response = client.get(f"{address}{query}")
    assert response.status_code == 200, response.content[:400]
    return response.content.decode()


def stored(run, case_index: int) -> TokenTrace:
    response = ResponseRecord.objects.select_related("trace_block").get(repeat__run=run, case_index=case_index)
    assert response.trace_block is not None
    assert response.trace_slot is not None
    return read_trace(bytes(response.trace_block.data), response.trace_slot)


def sides(page: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """(classes, position, label, attributes, inner) of the tokens of each side, in order."""
    runs = re.findall(r'<span class="run (baseline|candidate)">(.*?)</span>\s*(?=<span class="run|</div>)', page, re.S)
    found: dict[str, list[tuple[str, ...]]] = {"baseline": [], "candidate": []}
    for side, inner in runs:
        found[side] += TOKEN.findall(inner)
    return found["baseline"], found["candidate"]


@cast
def near_tie(staged_rows):
    ours, theirs = two_runs.near_tie(5)
    return two_runs.make({5: ours}, {5: theirs})


def test_the_outlined_tokens_are_the_first_whose_stored_ids_differ(near_tie, viewer):
    ours, theirs = (stored(run, 5) for run in near_tie)
    differs = next(at for at in range(len(ours)) if ours.token_ids[at] != theirs.token_ids[at])
    page = page_of(viewer, near_tie)
    for tokens, trace in zip(sides(page), (ours, theirs), strict=True):
        assert len(tokens) == len(trace)
        assert [int(position) for classes, position, *_ in tokens if " flip" in classes] == [differs]
    assert "At 3 the baseline chose" in page
    assert re.search(r"near tie.*flip at <b>3</b> of 7.*drift onset at <b>1</b>", page, re.S)
    assert "From 4 on the two sides read different texts" in page


@pytest.mark.nightly
def test_the_lines_of_both_sides_begin_at_the_same_positions(stage, viewer):
    shared = [sure(token) for token in (4, 5, 6, 7) * 40]
    runs = two_runs.make(
        {5: said(5, [*shared, tie(1, 10), *shared])}, {5: said(5, [*shared, tie(10, 1), sure(3), *shared[:20]])}
    )
    report = trace_pair(runs[0].pk, runs[1].pk, case_id=CASE, repeats=(1, 1))
    lines = pair_lines(report)
    for line in lines:
        assert {side[0].key for side in (line.baseline, line.candidate) if side} == {line.first}
    assert [line.first for line in lines if line.is_first_past] == [161]
    assert all(line.is_same != line.is_past or line.baseline[-1].mark == "flip" for line in lines)


@pytest.mark.nightly
def test_words_of_marks_that_are_close_stand_above_each_other(stage, viewer):
    shared = [sure(4), *[sure(5)] * 12]
    ours = said(6, [*shared, tie(1, 10), END_ROW])
    theirs = said(6, [sure(4, -0.2501), *[sure(5)] * 12, tie(10, 1), END_ROW])
    near = two_runs.near_tie(5)
    runs = two_runs.make({5: near[0], 6: ours}, {5: near[1], 6: theirs})
    for case, raised in ((CASE, [True, False]), ("case-006", [False, False])):
        classes = [token[0].split() for token in sides(page_of(viewer, runs, case))[0]]
        assert ["raised" in each for each in classes if {"onset", "flip"} & set(each)] == raised


@pytest.mark.nightly
def test_a_position_of_the_address_is_selected_on_both_sides_and_nonsense_leads_to_the_flip(near_tie, viewer):
    page = page_of(viewer, near_tie, query="&at=1")
    assert [[token[1] for token in side if "aria-current" in token[3]] for side in sides(page)] == [["1"], ["1"]]
    assert "<h2>At 1</h2>" in page
    for nonsense in ("x", "-1", "99999999999"):
        assert "<h2>At 3</h2>" in page_of(viewer, near_tie, query=f"&at={nonsense}")
    part = page_of(viewer, near_tie, query="&at=2&part=at")
    assert "<html" not in part
    assert "<h2>At 2</h2>" in part
    assert re.search(r'data-key="\[" data-goto="1"', part)
    assert re.search(r'data-key="\]" data-goto="3"', part)


def test_a_missing_response_on_one_side_is_said_and_the_other_side_is_shown(stage, viewer):
    runs = two_runs.make({}, {5: Failed(5, "timeout", f"No answer {HOSTILE}")})
    page = page_of(viewer, runs)
    assert "The candidate has no response: timeout." in page
    assert "There is no pair of responses to compare." in page
    ours, theirs = sides(page)
    assert (len(ours), theirs) == (2, [])
    assert 'data-figure="margins"' not in page


@pytest.mark.nightly
def test_a_side_that_ends_earlier_is_hatched_without_a_flip(stage, viewer):
    start = [sure(4), sure(5)]
    runs = two_runs.make({5: said(5, start)}, {5: said(5, [*start, sure(6), sure(9)])})
    page = page_of(viewer, runs)
    assert "At 2 the baseline ends where the other goes on." in page
    assert "The baseline ends here; only the other side goes on." in page
    assert " flip" not in {token[0] for side in sides(page) for token in side}
    assert "This side has ended." in page_of(viewer, runs, query="&at=3&part=at")


@pytest.mark.parametrize("rows", few([[], [sure(4)]], 1))
def test_an_empty_trace_has_a_page(stage, viewer, rows):
    runs = two_runs.make({5: said(5, [])}, {5: said(5, rows)})
    page = page_of(viewer, runs)
    assert [len(side) for side in sides(page)] == [0, len(rows)]


def test_equal_traces_are_said_to_be_the_same_to_the_bit(stage, viewer):
    runs = two_runs.make({}, {})
    page = page_of(viewer, runs)
    assert "The two traces are the same to the bit." in page
    assert "Next case" not in page


@pytest.mark.parametrize(
    ("compared", "words"),
    [("trace", "same to the bit"), ("retokenised", "have the same text"), ("text", "have the same text")],
)
def test_only_equal_traces_are_said_to_be_the_same_to_the_bit(compared, words):
    pair = {
        "parts_at": None,
        "text_position": None,
        "drift_onset": None,
        "evidence": {"compared": compared},
        "text": "",
    }
    assert words in render_to_string("compare/_pair_finding.html", {"pair": pair})


@pytest.mark.nightly
def test_what_neither_side_knows_is_neither_a_difference_nor_equal(stage, viewer):
    runs = two_runs.make({}, {})
    ResponseRecord.objects.filter(repeat__run=runs[0]).update(n_cached_tokens=None, n_preemptions=None)
    ResponseRecord.objects.filter(repeat__run=runs[1]).update(n_cached_tokens=None)
    page = page_of(viewer, runs)
    differing, _, rest = page.partition("Provenance of both sides")[2].partition("</table>")
    assert ("cached tokens" in differing, "preemptions" in differing) == (False, True)
    assert "1 more is unknown on both sides" in page
    assert "<dt>cached tokens</dt><dd>unknown on both sides</dd>" in rest


@pytest.mark.nightly
def test_another_vocabulary_makes_the_page_approximate(stage, viewer):
    by = stage.engine(stage.worker("other"), dtype="bfloat16")
    two_runs.other_words(by, [b"", b"Bl", b"ue", b" is", b" a", b" red", b"."])
    theirs = [sure(1), sure(2), sure(3), sure(5), sure(6), (0, [(0, -0.1), (1, -4.0)])]
    runs = two_runs.make(
        {5: said(5, [sure(4), sure(5), sure(7), END_ROW])}, {5: said(5, theirs, text="Blue is red.")}, by=by
    )
    page = page_of(viewer, runs)
    assert "The two models have different vocabularies, so bytes are compared" in page
    ours, found = sides(page)
    assert [token[1] for token in ours] == ["1", "1", "2", "3"]
    assert [token[1] for token in found] == ["1", "1", "1", "2", "3", "4"]  # " is" is the first that both sides have
    assert [token[1] for token in found if " flip" in token[0]] == ["2"]


def test_weird_tokens_are_drawn_and_cannot_run(stage, viewer):
    by = stage.engine(stage.worker("other"))
    weird = [
        b"",
        b"\xe2\x82",
        b"\xac",
        b"</script><script>alert(1)</script>",
        "\u202eevil".encode(),
        b"\x07\x00",
        b"\n\t",
    ]
    two_runs.other_words(by, weird)
    rows = [(token, [(token, -0.2), (3, -1.0)]) for token in (1, 2, 3, 4, 5, 6)]
    worker = stage.worker()
    for last in (3, 4):
        run = stage.start(repeats=1)
        answer = {5: said(5, [*rows, tie(last, 7 - last)], text="weird")}
        stage.serve(worker, by, answer=lambda _, case, known=answer: known.get(case, stage.reply(case, 1)))
    page = page_of(viewer, (run, run)).replace("&amp;", "&")
    assert page.count("alert(1)") > 1
    assert "<script>alert" not in page
    assert "</script><script>" not in page
    assert not {"\u202e", "\x07", "\x00"} & set(page)
    drawn = [unescape(re.sub("<[^>]+>", "", token[4])) for token in sides(page)[0]]
    assert drawn[0] == "⟨0xE2⟩⟨0x82⟩"
    assert drawn[1] == "⟨0xAC⟩"
    assert drawn[3].startswith("⟨U+202E⟩")
    assert drawn[4] == "⟨U+0007⟩⟨U+0000⟩"


@pytest.mark.nightly
def test_prompts_that_differ_are_shown_token_by_token(stage, viewer):
    runs = two_runs.make(
        {5: said(5, [sure(1), END_ROW], prompt=(4, 5, 6, 9))}, {5: said(5, [sure(1), END_ROW], prompt=(4, 5, 7, 9))}
    )
    ResponseRecord.objects.filter(case_index=5, repeat__run=runs[1]).update(prompt_digest=b"another prompt..")
    page = page_of(viewer, runs)
    assert re.search(r"<details[^>]* open>\s*<summary>\s*.*Prompts differ:", page, re.S)
    assert re.search(r"<del>.*only the baseline: .*>·</span>a</del>", page, re.S)
    assert re.search(r"<ins>.*only the candidate: .*colour</ins>", page, re.S)


@pytest.mark.nightly
def test_a_confounded_pair_names_what_else_differs_on_its_page_in_the_list_and_in_rest(stage, viewer):
    by = stage.engine(stage.worker("other"), dtype="bfloat16")
    rows = [sure(1), END_ROW]
    runs = two_runs.make({5: said(5, rows)}, {5: said(5, [sure(2), END_ROW], prompt=(4, 5, 7))}, by=by)
    ResponseRecord.objects.filter(case_index=5, repeat__run=runs[1]).update(prompt_digest=b"another prompt..")
    page = page_of(viewer, runs)
    assert 'confounded <span class="quiet">backends differ as well</span>' in page
    assert "Confounded: backends differ too, so each of them may be the cause." in page
    listed = viewer.get(pair_address.comparison_url(runs[0].pk, runs[1].pk)).content.decode()
    assert listed.count("confounded: backends differ") == 1
    query = {"baseline": runs[0].pk, "candidate": runs[1].pk, "cause": "prompt_mismatch"}
    [row] = viewer.get("/api/v1/compare/cases/", query).json()["results"]
    assert row["evidence"]["also_moved"] == ["backend_changed"]


@pytest.mark.nightly
def test_a_long_trace_is_shown_around_its_position_with_links_to_the_rest(stage, viewer):
    shared = [sure(5, -0.1 - n / 10_000) for n in range(2000)]
    ours, theirs = [*shared[:1500], tie(1, 10), *shared[1500:]], [*shared[:1500], tie(10, 1), *shared[1500:]]
    runs = two_runs.make({5: said(5, ours)}, {5: said(5, theirs)})
    page = page_of(viewer, runs)
    keys = [int(token[1]) for token in sides(page)[0]]
    assert keys[0] < 1500 < keys[-1]
    assert len(keys) < 400
    assert re.search(rf'at={keys[0] - 1}">Earlier positions', page)
    assert re.search(rf'at={keys[-1] + 1}">Later positions', page)
    assert page.count('<th scope="row" class="number"><a') < 400
    earlier = page_of(viewer, runs, query="&at=0")
    assert "Earlier positions" not in earlier
    report = trace_pair(runs[0].pk, runs[1].pk, case_id=CASE, repeats=(1, 1))
    figure = pair_chart.figure(report)
    assert figure is not None
    drawn = figure["data"][0]["x"]
    assert max(drawn) == 1500  # nothing past the flip is drawn
    assert len(drawn) < 500 < report.n_points  # some stand for all
    assert report.points[-1].at == 1500


@pytest.mark.nightly
@pytest.mark.parametrize(("near", "anchor"), [(0.001, "bottom"), (0.15, "top")])
def test_the_words_of_the_noise_line_leave_the_title_above_it_alone(stage, near, anchor):
    runs = two_runs.make({5: two_runs.near_tie(5)[0]}, {5: two_runs.near_tie(5)[1]})
    report = trace_pair(runs[0].pk, runs[1].pk, case_id=CASE, repeats=(1, 1))
    report.evidence["near"] = near
    figure = pair_chart.figure(report)
    assert figure is not None
    assert {each["yanchor"] for each in figure["layout"]["annotations"] if each["name"] == "noise"} == {anchor}


def test_the_charts_name_the_noise_by_its_value_the_margins_at_the_flip_and_what_is_past_it(stage, viewer):
    ours, theirs = two_runs.near_tie(5, n_more=6)
    page = page_of(viewer, two_runs.make({5: ours}, {5: theirs}))
    layout = json.loads(re.search(r'<script id="margins"[^>]*>(.*?)</script>', page, re.S)[1])["layout"]
    words = {each["name"]: each["text"] for each in layout["annotations"]}
    assert re.fullmatch(r"within noise, \d\.\d{3} nats", words["zone"])
    assert words["noise"] == f"noise of these buckets, {words['zone'].split()[2]}"
    assert words["at-flip-baseline"].endswith(" baseline")
    assert words["at-flip-candidate"].endswith(" candidate")
    assert words["past"] == "past the flip, texts differ"
    [line] = [shape for shape in layout["shapes"] if shape["name"] == "noise-line"]
    assert line["x1"] == 3
    assert line["y0"] == line["y1"]


def test_a_short_answer_has_its_table_in_place_of_the_charts(near_tie, viewer):
    page = page_of(viewer, near_tie)
    assert 'class="plot' not in page
    assert re.search(r"<details[^>]* open>\s*<summary>Margins and gaps, position by position", page)


def test_zero_has_a_line_of_its_own_below_every_other_margin():
    scale = log_scale_of([0.0, 1e-9, 0.02, 12.0], least=-2, most=1)
    heights = [scale.y(value) for value in (0.0, 1e-9, 0.02, 12.0)]
    assert heights == sorted(heights)
    assert len(set(heights)) == 4
    assert scale.axis["tickvals"][0] == heights[0]
    assert scale.axis["ticktext"][:4] == ["0", "0.000001", "0.00001", "0.0001"]
    assert scale.axis["ticktext"][-2:] == ["10", "100 nats"]


@pytest.mark.parametrize("case", [CASE, *nightly(["case-009", HOSTILE_ID])])
def test_the_page_takes_few_queries_whatever_it_shows(near_tie, viewer, case):
    viewer.get(pair_address.comparison_url(near_tie[0].pk, near_tie[1].pk))
    page_of(viewer, near_tie, case)
    with CaptureQueriesContext(connection) as queries:
        page_of(viewer, near_tie, case)
    assert len(queries) <= MAX_QUERIES


def test_the_cause_is_that_of_the_stored_comparison_and_n_leads_to_the_next_case(stage, viewer):
    pairs = {case: two_runs.near_tie(case) for case in (5, 8)}
    runs = two_runs.make({case: p[0] for case, p in pairs.items()}, {case: p[1] for case, p in pairs.items()})
    before = page_of(viewer, runs)
    assert 'data-key="n"' not in before
    viewer.get(pair_address.comparison_url(runs[0].pk, runs[1].pk))
    page = page_of(viewer, runs)
    found = re.search(r'href="([^"]*)" data-key="n"', page)
    assert found is not None
    assert "case-008" in found[1]
    assert "near tie" in viewer.get(unescape(found[1])).content.decode()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/compare/{0}/999/cases/case-005/", "There is no run 999."),
        ("/compare/{0}/{1}/cases/nowhere/", "has no case nowhere"),
        ("/compare/{0}/{1}/cases/case-005/?repeat=1,9", "no response to case case-005 in repeat 9"),
    ],
)
def test_what_is_not_there_is_a_helpful_404(near_tie, viewer, path, words):
    response = viewer.get(path.format(near_tie[0].pk, near_tie[1].pk))
    assert response.status_code == 404
    assert words in response.content.decode()


def test_both_pages_want_a_login(near_tie, client_of):
    for path in (
        pair_address.comparison_url(near_tie[0].pk, near_tie[1].pk),
        pair_address.pair_url(near_tie[0].pk, near_tie[1].pk, CASE, repeats=(1, 1)),
        "/compare/",
    ):
        assert client_of("anonymous").get(path).status_code == 302


def test_the_question_comes_first_and_every_text_can_be_copied(near_tie, viewer):
    page = page_of(viewer, near_tie)
    main = page.split('id="main"')[1]
    assert main.index('class="question"') < main.index('class="finding"') < main.index("data-pair")
    copied = dict(re.findall(r'data-copy="([^"]*)">([^<]*)</button>', main.split('class="copies"')[1].split("</p>")[0]))
    assert {label: text for text, label in copied.items()}["id"] == CASE
    assert set(copied.values()) >= {"prompt", "baseline’s answer", "candidate’s answer", "baseline’s tokens"}
    assert f"/cases/{CASE}/" in main.split("all runs of this case")[0]


@pytest.mark.nightly
@pytest.mark.parametrize(("at", "has_chart"), [(2, False), (3, True)])
def test_a_flip_within_the_first_three_positions_has_no_charts(stage, viewer, at, has_chart):
    before, after = [sure(5)] * at, [sure(6)] * 12
    runs = two_runs.make({5: said(5, [*before, tie(1, 10), *after])}, {5: said(5, [*before, tie(10, 1), *after])})
    page = page_of(viewer, runs)
    assert ('class="plot' in page) is has_chart
    assert "Margins and gaps, position by position" in page or has_chart


@pytest.mark.nightly
def test_two_answers_are_compared_word_by_word(stage, viewer):
    ours, theirs = (
        said(5, [sure(5), END_ROW], text="the sky is blue"),
        said(5, [sure(6), END_ROW], text="the sky is red"),
    )
    page = page_of(viewer, two_runs.make({5: ours}, {5: theirs}))
    diff = page.split("Both answers word by word")[1].split("</details>")[0]
    assert re.findall(r"<(del|ins)>.*?<bdi>(.*?)</bdi></\1>", diff) == [("del", "blue"), ("ins", "red")]
