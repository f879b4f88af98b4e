"""Border probes of an external server: a search, its price before it, and watches of what it found."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from evalboard.core.errors import InvalidInput
from evalboard.core.probes import BORDER, ProbeExchange
from runs.models import EndpointRecord, ProbeRecord
from runs.probes import create_probe, estimate_probe
from tests import build, probes

pytestmark = pytest.mark.django_db


@pytest.fixture
def hosted() -> str:
    for slug in ("pinned", "fast"):
        build.profile(slug)
    return probes.remote(price={"currency": "USD", "input": "0.15", "output": "0.6"})


def split(call: ProbeExchange) -> ProbeExchange:
    """The first five prompts are split evenly between two words; the others have one."""
    is_other = call.prompt < 5 and call.round % 2 == 1
    return replace(call, text="coffee" if is_other else "tea", n_tokens=1, n_prompt_tokens=20)


def steady(call: ProbeExchange) -> ProbeExchange:
    return replace(call, text="tea", n_tokens=1, n_prompt_tokens=20)


def ask(endpoint: str, **parameters: Any) -> ProbeRecord:
    return create_probe(endpoint=endpoint, kind="border", parameters=parameters)


def test_an_estimate_counts_the_probe_of_a_bypass(hosted: str) -> None:
    alone = estimate_probe(endpoint=hosted, kind="capability", parameters={})
    direct = EndpointRecord.objects.get(slug=hosted)
    both = estimate_probe(
        endpoint=probes.remote("gateway", price=direct.price, bypass=direct), kind="capability", parameters={}
    )
    assert (both.n_calls, both.n_tokens) == (2 * alone.n_calls, 2 * alone.n_tokens)
    assert alone.cost is not None
    assert both.cost is not None
    assert Decimal(both.cost.amount) == 2 * Decimal(alone.cost.amount)
    assert both.sentence.endswith(f"The bypass hosted is probed too. {alone.sentence} {both.cost.text}")


def test_a_search_is_first_and_what_it_found_is_watched(hosted: str) -> None:
    before = estimate_probe(endpoint=hosted, kind="border", parameters={})
    assert (before.is_search, before.n_calls) == (True, 8 * len(BORDER))
    assert before.cost is not None
    assert before.cost.is_limit
    assert "640 calls" in before.sentence
    assert not ProbeRecord.objects.exists()
    ask(hosted)
    search = probes.served_by_others(split)
    assert search.finding is not None
    assert (search.finding["state"], search.finding["numbers"]["kept"]) == ("found", [0, 1, 2, 3, 4])
    after = estimate_probe(endpoint=hosted, kind="border", parameters={})
    assert (after.is_search, after.n_calls) == (False, 50)
    assert after.cost is not None
    assert not after.cost.is_limit
    states = []
    for answer in [split] * 6 + [steady]:
        assert ask(hosted).parameters["prompts"] == list(BORDER[:5])
        watched = probes.served_by_others(answer)
        assert watched.finding is not None
        states.append(watched.finding["state"])
    assert states == ["too_few"] * 4 + ["stable"] * 2 + ["changed"]
    ask(hosted)
    anew = probes.served_by_others(steady).finding
    assert anew is not None
    assert (anew["state"], anew["numbers"]["n_earlier"]) == ("too_few", 1)
    assert ask(hosted, search=True).parameters["prompts"] == list(BORDER)


def test_own_engines_are_not_asked() -> None:
    build.profile("fast")
    build.endpoint("local")
    with pytest.raises(InvalidInput) as raised:
        ask("local")
    assert "kind" in raised.value.fields
    assert not EndpointRecord.objects.get(slug="local").price


def test_a_page_shows_the_price_of_a_search_before_it_starts(hosted: str) -> None:
    client = Client()
    client.force_login(build.user("ada", "engineer"))
    order = {"endpoint": hosted, "kind": "border", "profile": "", "parameters": ""}
    shown = client.post("/probes/", order).content.decode()
    assert "Nothing was started yet." in shown
    assert "640 calls" in shown
    assert not ProbeRecord.objects.exists()
    assert client.post("/probes/", {**order, "calls": "640"}).status_code == 302
    probe = ProbeRecord.objects.get()
    probes.served_by_others(split)
    page = client.get(f"/probes/{probe.pk}/").content.decode()
    assert "5 of 80 prompts have a first word that is split" in page
    assert "coffee 4, tea 4" in page


def test_an_endpoint_is_added_with_its_price() -> None:
    client = Client()
    client.force_login(build.user("root", "admin"))
    address = "/settings/endpoints/new/?kind=openai"
    typed = {"slug": "priced", "base_url": "https://api.example.com/v1", "model_name": "m", "api": "chat"}
    typed |= {"concurrency": "8", "pool": "default", "price": "input=much,output=10"}
    assert "must be a decimal" in client.post(address, typed).content.decode()
    assert client.post(address, typed | {"price": "input=2.5,output=10"}).status_code == 302
    assert EndpointRecord.objects.get().price == {"currency": "USD", "input": "2.5", "output": "10"}
    assert "input=2.5" in client.get(f"{address}&from=priced").content.decode()


def test_a_search_is_not_paid_for_again_and_again(hosted: str) -> None:
    ask(hosted)
    with pytest.raises(InvalidInput) as raised:
        ask(hosted)
    assert "searches for split prompts now" in raised.value.fields["parameters"]
    search = probes.served_by_others(steady)
    assert search.finding is not None
    assert search.finding["state"] == "none_found"
    with pytest.raises(InvalidInput) as raised:
        ask(hosted)
    assert "found too few split prompts" in raised.value.fields["parameters"]
    assert ask(hosted, search=True).parameters["search"]
