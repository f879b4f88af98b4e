"""Forced scorings on pages: of a run, each by itself, beside a comparison, and under both sides of a pair."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evalboard.importers.files import LogFile
from runs.compare import trace_pair
from runs.forced import create_forced, create_forced_pair
from runs.imports import import_logs
from runs.models import ForcedScoringRecord, ResponseRecord, RunRecord
from tests import forced, rollouts
from tests.casts import cast
from tests.frontend import stage as staged
from tests.frontend import two_runs

Runs = tuple[RunRecord, RunRecord]


@cast
def runs(staged_rows: None) -> Runs:
    """Two runs whose case 2 parts at a near tie, of two endpoints with stacks of their own."""
    ours, theirs = two_runs.near_tie(2)
    by = staged.engine(staged.worker("other"), dtype="bfloat16")
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
    scoring = ForcedScoringRecord.objects.get()
    assert (asked.status_code, asked["Location"]) == (302, f"/forced/{scoring.pk}/")
    assert f'href="/forced/{scoring.pk}/"' in page(engineer, address)
    refused = engineer.post(address, {"endpoint": "moon"})
    assert refused.status_code == 404


def test_who_may_only_look_is_offered_nothing(runs: Runs, viewer: Client) -> None:
    assert "<button" not in re.findall(r"<main.*</main>", page(viewer, f"/runs/{runs[0].pk}/forced/"), re.S)[0]
    assert "Re-score both sides" not in page(viewer, f"/compare/{runs[0].pk}/{runs[1].pk}/")
    assert viewer.post(f"/runs/{runs[0].pk}/forced/", {"endpoint": "local"}).status_code == 403
    assert viewer.post(f"/compare/{runs[0].pk}/{runs[1].pk}/forced/").status_code == 403
    assert not ForcedScoringRecord.objects.exists()


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_both_sides_are_asked_for_on_the_comparison_and_told_there(runs: Runs, engineer: Client) -> None:
    address = f"/compare/{runs[0].pk}/{runs[1].pk}/"
    asking = r'<button[^>]*>Re-score both sides <span class="cost">[\d,]+ tokens</span></button>'
    assert re.search(asking, page(engineer, address))
    assert engineer.post(f"{address}forced/").status_code == 302
    assert ForcedScoringRecord.objects.count() == 2
    under_way = page(engineer, address)
    assert "Re-score both sides" not in under_way
    ForcedScoringRecord.objects.all().delete()
    score_both(runs)
    text = words_of(page(engineer, address))
    assert "The baseline’s answers on the candidate’s stack: Over " in text
    assert "The candidate’s answers on the baseline’s stack: Over " in text


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_a_near_tie_is_confirmed_under_the_same_prefix(runs: Runs, viewer: Client) -> None:
    address = f"/compare/{runs[0].pk}/{runs[1].pk}/cases/case-002/?repeat=1,1"
    assert "After the same prefix" not in page(viewer, address)
    score_both(runs)
    text = words_of(page(viewer, address))
    words = "the baseline’s top two tokens are 2.000 nats apart and the candidate’s 2.000 nats"
    assert f"After the same prefix, {words}. Neither is a near tie" in text
    answer = trace_pair(runs[0].pk, runs[1].pk, case_id="case-002", repeats=(1, 1))
    scorings = {str(scoring.run_id): str(scoring.pk) for scoring in ForcedScoringRecord.objects.all()}
    assert [(each.stack, each.scoring, each.margin) for each in answer.at_flip] == [
        ("baseline", scorings[str(runs[1].pk)], pytest.approx(2.0)),
        ("candidate", scorings[str(runs[0].pk)], pytest.approx(2.0)),
    ]


@pytest.mark.nightly
def test_tokens_that_the_other_stack_would_not_have_chosen_are_underlined(runs: Runs, viewer: Client) -> None:
    score_both(runs)
    odd = r'<a class="token[^"]* elsewhere"[^>]*data-position="(\d+)"'
    assert re.findall(odd, page(viewer, f"/compare/{runs[0].pk}/{runs[1].pk}/cases/case-002/?repeat=1,1")) == ["4", "4"]
    own = page(viewer, f"/runs/{runs[0].pk}/repeats/1/cases/case-002/?at=4")
    assert re.findall(odd, own) == ["4"]
    assert "5 of 6 tokens are its first choice too; not 4 ." in words_of(own)
    assert re.search(r"log r −0\.250; would say", words_of(own))
    plain = page(viewer, f"/runs/{runs[0].pk}/repeats/1/cases/case-002/?at=3&part=alternatives")
    assert "log r −0.250" in words_of(plain)


@pytest.mark.nightly
def test_rollouts_lead_from_their_run_to_the_token_that_is_off(viewer: Client, tmp_path: Path, stage: Any) -> None:
    path = tmp_path / "step-12.jsonl"
    path.write_bytes(rollouts.content(rollouts.rows(planted=(3, 17))))
    [run] = import_logs(files=[LogFile(path.name, path)], user=None)[1]
    scoring = ForcedScoringRecord.objects.get()
    own = page(viewer, f"/runs/{run.pk}/")
    assert "The most different token is 2.500 nats away." in words_of(own)
    assert "no scorer reads token ids" in words_of(own)
    assert f'href="/forced/{scoring.pk}/#worst"' in own
    shown = page(viewer, f"/forced/{scoring.pk}/")
    assert "by their trainer, from the log" in words_of(shown)
    assert "KL per token, k3" in words_of(shown)
    assert "first choice" not in words_of(shown)
    figure = json.loads(re.findall(r'<script id="gaps" type="application/json">(.*?)</script>', shown, re.S)[0])
    [_, largest, median] = figure["data"]
    assert (len(largest["x"]), largest["x"][17], largest["text"][17]) == (30, 17, "at 17<br>largest of 6: 2.500 nats")
    assert median["text"][17] == "at 17<br>median of 6: 0.000 nats"
    assert "17 6 2.500 0.000" in words_of(shown)
    first = re.findall(rf'href="(/runs/{run.pk}/repeats/1/cases/[^"]+)"', shown)[0]
    assert first == f"/runs/{run.pk}/repeats/1/cases/roll-3/?at=17"
    answer = words_of(page(viewer, first))
    assert "By the trainer : furthest from the sampler at 17 ." in answer
    assert "log r −2.500" in answer
    assert "Without a text there is nothing to score." in answer
    listed = words_of(page(viewer, f"/runs/{run.pk}/forced/"))
    assert "the trainer" in listed


@pytest.mark.nightly
def test_rollouts_are_in_words_once_an_engine_has_scored_their_ids(viewer: Client, tmp_path: Path, stage: Any) -> None:
    lines = rollouts.rows()
    lines[3] |= {"token_ids": [1] * 30}
    lines[4] |= {"token_ids": [499] * 30}  # this tokenizer has fewer tokens
    path = tmp_path / "step-12.jsonl"
    path.write_bytes(rollouts.content(lines))
    [run] = import_logs(files=[LogFile(path.name, path)], user=None)[1]
    address = f"/runs/{run.pk}/repeats/1/cases/roll-3/"
    assert "⟨token 1⟩" in words_of(page(viewer, address))
    scoring = create_forced(run_id=run.pk, endpoint="local", profile="pinned")
    forced.scored(scoring, by=stage.engine(stage.worker("scorer")))
    shown = words_of(page(viewer, address))
    assert "Their words are those of the tokenizer of local , which scored them" in shown
    assert "in words .. " in shown  # the prompt that the engine was given: forced_trace
    assert "⟨token 1⟩" not in shown
    assert "⟨token 499⟩" in words_of(page(viewer, f"/runs/{run.pk}/repeats/1/cases/roll-4/"))


def test_a_mixed_run_has_numbers_for_each_bucket(runs: Runs, viewer: Client, stage: Any) -> None:
    run = runs[0]
    rerouted = stage.engine(stage.worker("third"), dtype="float16")
    ResponseRecord.objects.filter(repeat__run=run, case_index__gte=3).update(engine_process=rerouted)
    scoring = forced.scored(create_forced(run_id=run.pk, endpoint="local"))
    shown = page(viewer, f"/forced/{scoring.pk}/")
    heads = re.findall(r'<h2 id="numbers(\d+)">', shown)
    assert len(heads) == 2
    assert str(rerouted.bucket_id) in heads
    assert "The numbers<" not in shown
    assert "so each bucket has its own numbers" in words_of(shown)


@pytest.mark.nightly
def test_pages_ask_the_database_a_fixed_number_of_times(runs: Runs, viewer: Client) -> None:
    scoring = create_forced(run_id=runs[0].pk, endpoint="local")
    forced.scored(scoring)
    for address, most in ((f"/forced/{scoring.pk}/", 20), (f"/runs/{runs[0].pk}/forced/", 45)):
        with CaptureQueriesContext(connection) as asked:
            page(viewer, address)
        assert len(asked) <= most, [query["sql"][:120] for query in asked]
