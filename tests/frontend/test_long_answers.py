"""An answer of 32,000 tokens: every page of it stays as small as one of a few hundred, and all of it can be reached."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from frontend.shell import addresses
from runs.compare import trace_pair
from runs.run import response_page, show_trace, stored_trace
from tests.frontend import two_runs
from tests.frontend.two_runs import said, sure, tie

N, NARROW, ONSET, FLIP = 32_000, 700, 9_000, 25_000
CASE = "case-005"
POSITION = re.compile(r'data-position="(\d+)"')


@pytest.fixture
def runs(stage: Any) -> Any:
    """Both say the same up to the flip; numbers drift before it, and the narrowest margin is far before the window."""
    rows = [sure(5, -0.1 - place % 7 / 100) for place in range(N)]
    ours, theirs = list(rows), list(rows)
    ours[NARROW] = theirs[NARROW] = tie(5, 6, by=0.0001)
    theirs[ONSET] = sure(5, -0.4)
    ours[FLIP], theirs[FLIP] = tie(1, 10, by=0.01), tie(10, 1, by=0.01)
    return two_runs.make({5: said(5, ours, text="long")}, {5: said(5, theirs, text="long too")})


def get(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content[:300]
    page: str = answer.content.decode()
    return page


def later(page: str) -> str:
    found = re.search(r'href="([^"]*)">Later positions', page)
    assert found
    return unescape(found[1])


def test_the_page_of_a_pair_holds_what_lies_around_the_flip_and_leads_to_the_rest(runs, viewer):
    address = f"/compare/{runs[0].pk}/{runs[1].pk}/cases/{CASE}/?repeat=1,1"
    page = get(viewer, address)
    positions = [int(each) for each in POSITION.findall(page)]
    assert min(positions) < FLIP < max(positions)
    assert len(positions) < 700  # of both sides
    assert len(page) < 500_000
    assert f'data-goto="{ONSET}"' in page  # the earlier mark lies far outside
    assert str(max(positions) + 1) in POSITION.findall(get(viewer, later(page)))
    start = get(viewer, f"{address}&at=0")
    assert "Earlier positions" not in start
    assert f'data-goto="{NARROW}"' in start


@pytest.mark.nightly
def test_the_chart_of_a_pair_keeps_what_matters_of_all_positions(runs):
    pair = trace_pair(runs[0].pk, runs[1].pk, case_id=CASE, repeats=(1, 1))
    drawn = {point.at: point for point in pair.points}
    assert len(drawn) <= 401
    assert (pair.n_points, pair.n_positions) == (FLIP + 1, N)
    assert {NARROW, ONSET, FLIP} <= drawn.keys()
    assert drawn[ONSET].gap == pytest.approx(0.4 - 0.1 - ONSET % 7 / 100, abs=1e-6)
    assert pair.gap_range == (drawn[ONSET].gap, drawn[ONSET].gap)


@pytest.mark.nightly
def test_the_page_of_a_response_begins_at_its_narrowest_margin(runs, viewer):
    address = addresses.response_url(runs[0].pk, 1, CASE)
    page = get(viewer, address)
    positions = [int(each) for each in POSITION.findall(page)]
    assert positions == list(range(NARROW - 200, NARROW + 200))
    assert len(page) < 300_000
    assert page.count('class="stem"') <= 300
    assert f"The closest choice was at {NARROW}, by 0.000 nats." in page
    assert POSITION.findall(get(viewer, f"{address}{later(page)}"))[200] == str(NARROW + 200)
    end = get(viewer, f"{address}?at={N - 1}")
    assert "Later positions" not in end
    assert POSITION.findall(end)[-1] == str(N - 1)


@pytest.mark.nightly
def test_the_windows_of_a_response_hold_what_the_trace_holds(runs):
    trace = show_trace(*stored_trace(runs[0].pk, repeat=1, case_id=CASE), start=FLIP - 3, limit=6)
    assert (trace.start, trace.length, len(trace.positions)) == (FLIP - 3, N, 6)
    page = response_page(runs[0].pk, repeat=1, case_id=CASE, at=FLIP)
    assert page.trace is not None
    shown = {cell.position: cell for cell in page.trace.tokens}
    for place, position in enumerate(trace.positions, start=FLIP - 3):
        assert (position.token_id, position.logprob) == (shown[place].token_id, shown[place].logprob)
    assert [each.token_id for each in trace.positions[3].alternatives] == [1, 10]
    assert [each.token_id for each in page.trace.selected.alternatives] == [1, 10]
