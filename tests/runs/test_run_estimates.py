"""What a run would take, before it is started: from runs like it, from another suite's, or said to be unknown."""

from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evalboard.core.cost import Usage, parse_price, price_problem, price_usage, scale_amount
from evalboard.core.errors import InvalidInput, NotFound
from evalboard.wording.numbers import money
from runs.models import CaseColumns, EndpointRecord, EngineProcess, ResponseRecord, RunRecord
from runs.run import estimate_run, run_report, run_rows
from runs.suites import push_suite
from tests import build

pytestmark = pytest.mark.django_db
PRICE = {"input": "1", "output": "2", "currency": "USD"}
ASKED: Any = {"suite": "colours", "endpoint": "local", "repeats": 4}


def timed_run() -> None:
    """A run of 2 repeats of 3 cases whose answers came 30 s apart, on an engine that started in 60 s."""
    run = build.finished_run()
    answers = ResponseRecord.objects.filter(repeat__run=run)
    answers.update(queued_seconds=0.0, prefill_seconds=0.0, decode_seconds=0.0, n_tokens=10)
    first = answers.earliest("recorded_at").recorded_at
    for index in range(3):
        answers.filter(case_index=index).update(recorded_at=first + timedelta(seconds=30 * index))
    EngineProcess.objects.update(start_seconds=60.0)


def test_a_run_like_one_before_takes_what_that_took() -> None:
    timed_run()
    estimate = estimate_run(**ASKED)
    assert (estimate.n_calls, estimate.tokens, estimate.paced_by) == (12, 120, None)
    assert estimate.minutes == pytest.approx(6.0)  # four passes of 60 s, two starts of 60 s
    assert estimate.sentence == "12 calls, about 120 tokens, about 6.0 min."


def test_another_suite_gives_the_pace_and_no_tokens() -> None:
    timed_run()
    build.suite("shades", case_ids=[f"case-{n}" for n in range(6)])
    estimate = estimate_run(**ASKED | {"suite": "shades"})
    assert (estimate.tokens, estimate.paced_by) == (None, "colours")
    assert estimate.sentence == "24 calls, about 10.0 min, at the pace of suite colours. Unknown: tokens."


def test_what_nothing_tells_is_unknown() -> None:
    build.suite()
    build.endpoint()
    build.profile()
    words = "12 calls. Unknown: time and tokens (no earlier run like it on this endpoint)."
    assert estimate_run(**ASKED).sentence == words
    EndpointRecord.objects.update(engine="openai", base_url="https://api.example.com/v1")
    assert estimate_run(**ASKED).sentence == f"{words} The price is unknown."


def test_the_judges_calls_are_named_apart_and_priced_by_its_own_endpoint() -> None:
    build.endpoint()
    build.profile()
    EndpointRecord.objects.create(
        slug="jury", engine="openai", model_repo="lab/jury", base_url="https://api.example.com/v1", price=PRICE
    )
    judge = {"kind": "judge", "endpoint": "jury", "profile": "pinned", "template": "Is {{answer}} right?"}
    judge |= {"reads": {"choice": {"yes": 1, "no": 0}}, "draws": 3}
    cases = [{"id": f"case-{n}", "prompt": "Which?", "target": "blue"} for n in range(3)]
    rule = {"id": "rule", "prompt": "Which?", "target": "blue", "scorer": {"kind": "exact"}}
    push_suite(document={"slug": "judged", "max_tokens": 20, "scorer": judge, "cases": [*cases, rule]})
    estimate = estimate_run(**ASKED | {"suite": "judged"})
    assert estimate.n_calls == 16
    assert estimate.judge is not None
    assert (estimate.judge.endpoint, estimate.judge.n_calls) == ("jury", 12 * 3 + 12 * 5)  # each of 12 anchors 5 times
    assert estimate.judge.cost is not None
    assert estimate.judge.cost.is_limit
    assert "The judge jury: 96 calls. Unknown: time and tokens" in estimate.sentence
    assert estimate.sentence.endswith("and answers of 16 tokens.")


def test_tokens_are_priced_exactly_and_shown_by_one_rule() -> None:
    usage = Usage(n_calls=2, n_prompt=1_000_003, n_cached=3, n_tokens=300_000, n_reasoning=100_000)
    price = {"currency": "USD", "input": "0.1", "output": "0.2", "cached": "0.01", "reasoning": "0.3"}
    assert price_usage(price, usage) == Decimal("0.17000003")
    assert price_usage({"currency": "USD", "input": "0.1", "output": "0.2"}, usage) == Decimal("0.1600003")
    assert price_usage(price, Usage(n_calls=3, n_uncounted=1)) is None
    written = {
        "12.345": "12.35 USD",
        "0.005": "0.0050 USD",
        "0.00425": "0.0043 USD",
        "0": "0.00 USD",
        "1234.5": "1,234.50 USD",
    }
    assert {amount: money(amount, "USD") for amount in written} == written
    assert scale_amount(Decimal("0.17000003"), 3, 2) == "0.255"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("input=2.50,output=10,cached=1.25,reasoning=10,currency=EUR", None),
        ("input=2.50", "Give input, output and currency"),
        ("input=2.50,output=10,speed=1", "Give input, output and currency"),
        ("input=-1,output=1e3", "input and output must be a decimal"),
        ("input=1,output=2,currency=$", "The currency is 1 to 10 letters"),
    ],
)
def test_a_price_is_decimals_for_a_million_tokens(text: str, words: str | None) -> None:
    problem = price_problem(parse_price(text))
    assert problem is None if words is None else words in (problem or "")


def test_a_run_that_cannot_be_started_has_no_estimate() -> None:
    build.suite()
    build.endpoint()
    build.profile()
    with pytest.raises(NotFound):
        estimate_run(**ASKED | {"endpoint": "none"})
    with pytest.raises(InvalidInput):
        estimate_run(**ASKED | {"repeats": 0})


def test_the_form_shows_it_and_follows_what_is_chosen() -> None:
    timed_run()
    client = Client()
    client.force_login(build.user())
    page = unescape(client.get("/runs/new/").content.decode())
    assert "15 calls, about 150 tokens, about 7.0 min." in page
    main, folded = page.split("<summary>Profile, a second endpoint in turn, seed, ")
    assert [name in main for name in ('name="suite"', 'name="endpoint"', 'name="repeats"')] == [True] * 3
    assert 'name="profile"' in folded
    part = client.get("/runs/new/", {"part": "estimate", **ASKED})
    assert "12 calls, about 120 tokens" in part.content.decode()
    assert (
        "There is no endpoint none"
        in client.get("/runs/new/", {"part": "estimate", **ASKED, "endpoint": "none"}).content.decode()
    )


def test_one_press_runs_as_the_newest_ran() -> None:
    build.finished_run()
    client = Client()
    client.force_login(build.user())
    page = unescape(client.get("/suites/colours/").content.decode())
    assert "Run on <bdi>local</bdi>" in page
    names = ("suite", "endpoint", "profile", "repeats", "csrfmiddlewaretoken")
    fields = {name: page.split(f'name="{name}" value="')[1].split('"')[0] for name in names}
    assert client.post("/runs/new/", fields).status_code == 302
    newest = RunRecord.objects.latest("pk")
    assert (newest.endpoint.slug, newest.repeats.count()) == ("local", 5)


def test_a_list_says_what_ended_runs_cost_in_as_many_queries(django_assert_max_num_queries: Any) -> None:
    first = build.finished_run(("blue", "blue", "red"), ("blue", "red", "red"))
    EndpointRecord.objects.update(price={"currency": "USD", "input": "3", "output": "1000"})
    with CaptureQueriesContext(connection) as alone:
        [row] = run_rows()
    assert row.cost is not None
    assert row.cost == run_report(first.pk).cost
    build.finished_run(("blue", "blue", "red"))
    build.run()
    with django_assert_max_num_queries(len(alone)):
        waiting, second, _ = run_rows()
    assert waiting.cost is None
    assert second.cost is not None
    CaseColumns.objects.filter(repeat__run=first, repeat__index=2).update(usage=None)
    assert run_rows()[2].cost is None
