"""Forced scorings on pages: of a run, each by itself, beside a comparison, and under both sides of a pair."""

import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.forced import create_forced, create_forced_pair
from runs.models import ForcedScoring, Run
from tests import forced
from tests.frontend import two_runs

Runs = tuple[Run, Run]


@pytest.fixture
def runs(stage: Any) -> Runs:
    """Two runs whose case 2 parts at a near tie, of two endpoints with stacks of their own."""
    ours, theirs = two_runs.near_tie(2)
    by = stage.engine(stage.worker("other"), dtype="bfloat16")
    return two_runs.make({2: ours}, {2: theirs}, by=by)


def words_of(markup: str) -> str:
    return " ".join(unescape(re.sub("<[^>]+>", " ", markup)).split())


def page(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.content[:400]
    return response.content.decode()


def score_both(runs: Runs) -> None:
    """Each side on the other's stack, by the very processes that decoded."""
    by_id = {run.pk: run for run in runs}
    for (_, stack), scoring in create_forced_pair(baseline_id=runs[0].pk, candidate_id=runs[1].pk).items():
        forced.scored(scoring, by=by_id[stack].repeats.get(index=1).engine_processes.get(), other_at=4)


def test_a_run_s_answers_are_scored_from_its_page_at_a_stated_cost(runs: Runs, engineer: Client) -> None:
    address = f"/runs/{runs[0].pk}/forced/"
    assert f'href="{address}"' in page(engineer, f"/runs/{runs[0].pk}/")
    before = page(engineer, address)
    assert re.search(r"<button[^>]*>Score \d+ answers, \d+ tokens</button>", before)
    asked = engineer.post(address, {"endpoint": "local", "profile": ""})
    scoring = ForcedScoring.objects.get()
    assert (asked.status_code, asked["Location"]) == (302, f"/forced/{scoring.pk}/")
    assert f'href="/forced/{scoring.pk}/"' in page(engineer, address)
    refused = engineer.post(address, {"endpoint": "moon"})
    assert refused.status_code == 404


def test_who_may_only_look_is_offered_nothing(runs: Runs, viewer: Client) -> None:
    assert "<button" not in re.findall(r"<main.*</main>", page(viewer, f"/runs/{runs[0].pk}/forced/"), re.S)[0]
    assert "Re-score both sides" not in page(viewer, f"/compare/{runs[0].pk}/{runs[1].pk}/")
    assert viewer.post(f"/runs/{runs[0].pk}/forced/", {"endpoint": "local"}).status_code == 403
    assert viewer.post(f"/compare/{runs[0].pk}/{runs[1].pk}/forced/").status_code == 403
    assert not ForcedScoring.objects.exists()


def test_a_scoring_is_followed_and_then_read(runs: Runs, viewer: Client) -> None:
    scoring = create_forced(run_id=runs[0].pk, endpoint="local")
    waiting = page(viewer, f"/forced/{scoring.pk}/")
    assert 'hx-get="?part=progress"' in waiting
    assert f"0 of {scoring.n_answers} answers" in words_of(waiting)
    forced.scored(scoring, dies_on={3})
    assert viewer.get(f"/forced/{scoring.pk}/?part=progress")["HX-Refresh"] == "true"
    ended = page(viewer, f"/forced/{scoring.pk}/")
    assert "the logprobs differ by 0.250 nats (median)" in words_of(ended)
    assert "1 answer could not be scored" in words_of(ended)
    assert "engine_error: It died." in words_of(ended)
    links = re.findall(rf'href="(/runs/{runs[0].pk}/repeats/1/cases/[^"]+\?at=\d+)"', ended)
    assert links
    assert viewer.get(links[0]).status_code == 200
    assert viewer.get(f"/forced/{scoring.pk}/?part=moon").status_code == 404
    assert viewer.get("/forced/999/").status_code == 404


def test_both_sides_are_asked_for_on_the_comparison_and_told_there(runs: Runs, engineer: Client) -> None:
    address = f"/compare/{runs[0].pk}/{runs[1].pk}/"
    asking = r'<button[^>]*>Re-score both sides <span class="cost">[\d,]+ tokens</span></button>'
    assert re.search(asking, page(engineer, address))
    assert engineer.post(f"{address}forced/").status_code == 302
    assert ForcedScoring.objects.count() == 2
    under_way = page(engineer, address)
    assert "Re-score both sides" not in under_way
    ForcedScoring.objects.all().delete()
    score_both(runs)
    text = words_of(page(engineer, address))
    assert "The baseline’s answers on the candidate’s stack: Over " in text
    assert "The candidate’s answers on the baseline’s stack: Over " in text


def test_a_pair_shows_which_tokens_the_other_stack_would_not_have_chosen(runs: Runs, viewer: Client) -> None:
    address = f"/compare/{runs[0].pk}/{runs[1].pk}/cases/case-002/?repeat=1,1"
    assert "forced-strips" not in page(viewer, address)
    score_both(runs)
    shown = page(viewer, address)
    strips = re.findall(r'<div class="forced-strip (\w+)">(.*?)</div>', shown, re.S)
    assert [side for side, _ in strips] == ["baseline", "candidate"]
    for (_, strip), n in zip(strips, (6, 7), strict=True):
        assert f"{n - 1} of {n} tokens" in words_of(strip)
        assert "; not 4" in words_of(strip)
        assert len(re.findall(r'<rect class="tick"', strip)) == 1
        assert viewer.get(unescape(re.findall(r'href="(/compare[^"]+)"', strip)[0])).status_code == 200
    at_flip = page(viewer, f"{address}&at=3&part=at")
    assert 'data-goto="4"' in at_flip
    assert 'data-key="]"' in at_flip


def test_pages_ask_the_database_a_fixed_number_of_times(runs: Runs, viewer: Client) -> None:
    scoring = create_forced(run_id=runs[0].pk, endpoint="local")
    forced.scored(scoring)
    for address, most in ((f"/forced/{scoring.pk}/", 20), (f"/runs/{runs[0].pk}/forced/", 45)):
        with CaptureQueriesContext(connection) as asked:
            page(viewer, address)
        assert len(asked) <= most, [query["sql"][:120] for query in asked]
