"""The release page says the verdict in a word and a sentence, hides no warning, and offers one thing to do next."""

import functools
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from runs.compare import compare
from runs.models import EngineProcess, ReleaseRecord
from runs.release import create_release, release_report, settle_plans, settle_release
from tests import build
from tests.casts import with_param
from tests.frontend import release_runs
from tests.nightly import nightly

pytestmark = pytest.mark.django_db
KINDS = ("ship", "no_ship", "inconclusive", "suite_too_small", "noisy", "too_few_repeats", "not_comparable")
of_kind = functools.partial(with_param, "made")
HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture
def manager(client_of: Any) -> Client:
    return client_of("release manager")


def page_of(client: Client, made: ReleaseRecord, query: str = "") -> str:
    answer = client.get(f"/releases/{made.pk}/{query}")
    assert answer.status_code == 200, answer.content[:400]
    return answer.content.decode()


def words_of(markup: str) -> str:
    """The text that is read, elements within a sentence leaving no gap."""
    plain = re.sub("</?(?:span|bdi|strong|b|a|small|s)\\b[^>]*>", "", markup)
    return " ".join(unescape(re.sub("<[^>]+>", " ", plain)).split())


def part(page: str, pattern: str) -> str:
    return re.findall(pattern, page, re.S)[0]


def primary(page: str) -> list[str]:
    return [
        words_of(each) for each in re.findall(r'<(?:a|button|span) class="button primary"[^>]*>(.*?)</', page, re.S)
    ]


@pytest.mark.parametrize(
    ("made", "word", "step"),
    [
        ("ship", "Ship", "Sign off…"),
        ("no_ship", "No-ship", "See the 10 cases that broke"),
        ("inconclusive", "Inconclusive", "Run 5 more repeats"),
        *nightly(
            [
                ("noisy", "Inconclusive", "Judge under paired"),
                ("too_few_repeats", "Inconclusive", "Run 4 more repeats"),
            ]
        ),
        ("not_comparable", "Not comparable", "Run the baseline again"),
    ],
    indirect=["made"],
)
def test_the_word_its_sentence_and_one_thing_to_do_next(manager, made, word, step):
    page = page_of(manager, made)
    report = release_report(made.pk)
    assert words_of(part(page, r"<h1[^>]*>(.*?)</h1>")) == word
    assert words_of(part(page, r'<p class="hero-sentence">(.*?)</p>')) == " ".join(report.summary.split())
    assert [shown.partition(" ≈")[0] for shown in primary(page)] == [step]


@pytest.mark.nightly
@of_kind("suite_too_small")
def test_too_small_a_suite_names_the_cases_it_would_take(manager, made):
    page = page_of(manager, made)
    assert "93 cases at 5 repeats" in words_of(part(page, r'<p class="hero-sentence">(.*?)</p>'))
    assert "too few cases to decide" in page


@pytest.mark.nightly
@of_kind("not_comparable")
def test_not_comparable_shows_who_served_what_and_no_ruler(manager, made):
    page = page_of(manager, made)
    assert "Who served which side" in page
    assert re.search(r"dtype.*?float32.*?bfloat16", words_of(part(page, r'<figure class="instrument">.*?</figure>')))
    assert 'class="chart ruler' not in page
    row = words_of(part(page, r'<tr class="tier-critical">(.*?)</tr>'))
    assert "not shown" in row
    assert 'class="hatched"' in page
    assert "an account, not a verdict" in page
    assert re.search(r'href="/releases/new/\?candidate=\d+&amp;baseline=\d+&amp;treatment=stack"', page)


@pytest.mark.nightly
@of_kind("not_comparable")
def test_the_same_two_runs_are_judged_where_the_stack_is_asked_about(manager, made):
    gate = release_report(made.pk).gates[0]
    asked = {"suite": "colours", "candidate": gate.candidate.run_id, "baseline": gate.baseline.run_id}
    page = page_of(manager, create_release(gates=[asked], policy="wide", treatment="stack"))
    assert words_of(part(page, r"<h1[^>]*>(.*?)</h1>")) == "Ship"
    assert "judging the serving stack" in page


@of_kind("inconclusive", *nightly(kind for kind in KINDS if kind != "inconclusive"))
def test_every_warning_of_the_verdict_is_evidence_for_a_question(manager, made):
    page = page_of(manager, made)
    report = release_report(made.pk)
    shown = words_of(part(page, r"Could anything else explain it\?.*?</section>"))
    assert report.warnings
    for line in report.warnings:
        is_whole = " ".join(line.text.split()) in shown
        # Of the candidate what was said of the baseline; and the reach is said with both its ends.
        assert is_whole or line.code == "reach_wide" or f"The same holds for run {line.run}." in shown
    assert len(re.findall('<details class="tick tick-', page)) == 5
    assert "candidate" in shown  # how many were tried is never left out


@pytest.mark.nightly
@of_kind("inconclusive")
def test_the_ruler_names_the_interval_and_the_reach(manager, made):
    gate = release_report(made.pk).gates[0]
    label = unescape(part(page_of(manager, made), r'<svg class="chart ruler [^>]*aria-label="([^"]*)"'))
    assert label.startswith("colours: change −2.0, interval [−")
    assert "tolerance −5.0; for other cases like these [" in label
    assert gate.reach is not None


@pytest.mark.nightly
@of_kind("no_ship")
def test_why_it_moved_ends_in_the_difference_and_leads_to_the_comparison(manager, made):
    page = page_of(manager, made)
    gate = release_report(made.pk).gates[0]
    table = part(page, r'<table class="ledger">.*?</table>')
    assert words_of(part(table, r"<tfoot>.*?</tfoot>")).split()[-1] == "−33.3"
    assert f'href="/compare/{gate.baseline.run_id}/{gate.candidate.run_id}/"' in page
    assert '?outcome=broken&amp;look=5#cases">10 broken</a>.' in page


@pytest.mark.nightly
def test_a_release_says_whether_both_sides_are_one_computation(manager):
    baseline, by = release_runs.baseline_run(), EngineProcess.objects.get()
    candidate = release_runs.run(baseline.suite_version, by=by, n_failed=10)
    changed = page_of(manager, release_runs.release(release_runs.gate(baseline, candidate)))
    assert words_of(part(changed, r"<h1[^>]*>(.*?)</h1>")) == "Not comparable"
    assert "Something changed that no fingerprint shows." in changed
    assert "The sides differ in 10 of 30 cases," in changed


@pytest.mark.nightly
def test_every_gate_of_several_says_it(manager):
    release_runs.policies()
    by = build.process()
    gates = []
    for slug, n_failed in (("colours", 0), ("shapes", 10)):
        of = release_runs.suite(slug)
        gates.append(release_runs.gate(release_runs.run(of, by=by), release_runs.run(of, by=by, n_failed=n_failed)))
        compare(baseline=gates[-1]["baseline"], candidate=gates[-1]["candidate"])
    made = release_runs.release(*gates)
    first, second = (gate.computation_text for gate in release_report(made.pk).gates)
    assert first.startswith("Logprobs agree to the bit")
    assert second.endswith("Something changed that no fingerprint shows.")
    shown = words_of(page_of(manager, made))
    assert f"colours: {first}" in shown
    assert f"shapes: {second}" in shown


@pytest.mark.nightly
@of_kind("no_ship")
def test_three_of_the_broken_cases_show_both_answers_and_lead_to_where_they_part(manager, made):
    page = page_of(manager, made)
    gate = release_report(made.pk).gates[0]
    section = part(page, r'<ol class="worst".*?</ol>')
    items = re.findall(r"<li .*?</li>", section, re.S)
    assert len(items) == 3
    assert "The three worst cases" in page
    assert '#cases">10 broken</a>' in page
    for item in items:
        assert re.search(r"baseline 5 of 5 blue.*candidate 0 of 5 ·red", words_of(item))
        url = unescape(part(item, r'href="([^"]*)"'))
        assert url.startswith(f"/compare/{gate.baseline.run_id}/{gate.candidate.run_id}/cases/")
        assert manager.get(url).status_code == 200


@pytest.mark.nightly
def test_a_few_broken_cases_are_all_shown_and_where_none_broke_the_fixed_ones(manager):
    release_runs.policies()
    of, by = release_runs.suite(), build.process()
    good, bad = release_runs.run(of, by=by), release_runs.run(of, by=release_runs.worse(), n_failed=2)
    broke = page_of(manager, release_runs.release(release_runs.gate(good, bad)))
    assert "The 2 cases that broke" in broke
    fixed = page_of(manager, release_runs.release(release_runs.gate(bad, good)))
    assert "What changed in colours" in fixed
    assert len(re.findall(r"<li .*?</li>", part(fixed, r'<ol class="worst".*?</ol>'), re.S)) == 2
    assert '#cases">2 fixed</a>' in fixed


@pytest.mark.nightly
def test_several_gates_share_one_scale_and_an_advisory_one_decides_nothing(manager):
    release_runs.policies()
    by, worse = build.process(), release_runs.worse()
    first, second = release_runs.suite(), release_runs.suite("refusals")
    gates = [
        release_runs.gate(release_runs.run(first, by=by), release_runs.run(first, by=worse)),
        release_runs.gate(release_runs.run(second, by=by), release_runs.run(second, by=worse, n_failed=12), "advisory"),
    ]
    page = page_of(manager, release_runs.release(*gates))
    assert words_of(part(page, r"<h1[^>]*>(.*?)</h1>")) == "Ship"
    rows = re.findall(r'<tr class="tier-(\w+)">(.*?)</tr>', page, re.S)
    assert [tier for tier, _ in rows] == ["critical", "advisory"]
    assert "worth a look" in rows[1][1]
    zeros = {part(row, r'class="zero" x1="([\d.]+)%"') for _, row in rows}
    assert len(zeros) == 1
    assert "Advisory rows never change the verdict." in page


@of_kind("inconclusive")
def test_a_reader_is_offered_nothing_that_only_others_may_do(client_of, made):
    page = page_of(client_of("viewer"), made)
    assert primary(page) == []
    assert 'id="sign"' not in page
    assert "/settle/" not in page
    engineer = page_of(client_of("engineer"), made)
    assert "/settle/" in engineer
    assert 'id="sign"' not in engineer


def test_what_people_wrote_is_drawn_and_never_run(manager):
    release_runs.policies()
    of, by = release_runs.suite(), build.process()
    gate = release_runs.gate(release_runs.run(of, by=by), release_runs.run(of, by=by))
    page = page_of(manager, release_runs.release(gate, labels={"commit": HOSTILE}))
    assert HOSTILE not in page
    assert "⟨U+202E⟩" in page


@of_kind("inconclusive")
def test_an_open_page_asks_whether_it_is_still_true(manager, made):
    assert "part=stage" not in page_of(manager, made)  # nothing is at work that could change it
    plan = settle_plans(release_id=made.pk).whole
    settle_release(release_id=made.pk, look=plan.look, n_responses=plan.n_responses, user=build.user("mira"))
    page = page_of(manager, made)
    assert "at work on runs" in words_of(part(page, r'role="status">.*?</p>'))
    assert "/settle/" not in page
    stage = part(page, r"part=stage&amp;stage=(\w+)")
    same = manager.get(f"/releases/{made.pk}/?part=stage&stage={stage}")
    assert same.status_code == 204
    assert "HX-Refresh" not in same.headers
    assert manager.get(f"/releases/{made.pk}/?part=stage&stage=other").headers["HX-Refresh"] == "true"


@of_kind("ship")
def test_the_page_decides_once(manager, made):
    page_of(manager, made)
    page_of(manager, made)
    assert made.verdicts.count() == 1


def test_a_release_that_does_not_exist_is_not_found(manager):
    assert manager.get("/releases/999999/").status_code == 404


@of_kind("ship")
def test_the_list_shows_verdict_sign_off_and_change_at_a_glance(manager, made):
    digest = release_report(made.pk).input_digest
    manager.post(f"/releases/{made.pk}/signoffs/", {"decision": "approve", "note": "", "input_digest": digest})
    page = manager.get("/releases/").content.decode()
    row = part(page, r"<tbody>\s*<tr>(.*?)</tr>")
    assert "verdict-ship" in row
    assert "approved" in words_of(row)
    assert 'class="chart ruler small verdict-ship"' in row
    for query, n in (("?verdict=ship", 1), ("?verdict=no_ship", 0), ("?outcome=approved", 1), ("?suite=colours", 1)):
        found = manager.get(f"/releases/{query}").content.decode()
        assert len(re.findall(r">release \d+<", part(found, "<main.*</main>"))) == n, query
    unknown = manager.get("/releases/?verdict=maybe").content.decode()
    assert "There is no verdict “maybe”" in words_of(unknown)


def test_an_empty_list_says_why_and_names_the_command(manager):
    page = manager.get("/releases/").content.decode()
    assert "No releases yet." in page
    assert "evalboard release" in page


@pytest.mark.nightly
@of_kind("ship")
def test_the_list_goes_on_to_older_releases(manager, monkeypatch, made):
    monkeypatch.setattr("frontend.release.views.RELEASES_PER_PAGE", 1)
    gate = release_report(made.pk).gates[0]
    asked = {"suite": "colours", "candidate": gate.candidate.run_id, "baseline": gate.baseline.run_id}
    newer = create_release(gates=[asked], policy="strict")
    first = manager.get("/releases/").content.decode()
    assert f"release {newer.pk}<" in first
    assert f"release {made.pk}<" not in first
    older = manager.get(f"/releases/{unescape(part(first, r'href=.(.offset=[0-9]+)'))}").content.decode()
    assert f"release {made.pk}<" in older
