"""The vendor card over probes of several endpoints, by REST, on the page and on the command line."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from evalboard.cli.vendors import render_card
from evalboard.core.probes import ProbeExchange
from evalboard.core.probes.vendor_calls import TOOL_NAME, list_codes, place_in_group
from evalboard.wording.vendors import STATE_WORDS
from runs.models import EndpointRecord, ProbeRecord
from runs.probes.vendors import read_vendor_card
from tests import probes
from tests.api.client import Api
from tests.capability import answer_calls

pytestmark = pytest.mark.django_db

ARGUMENTS = json.dumps(
    {"restaurant": "Elm", "guests": 2, "day": "friday", "time": {"hour": 18, "minute": 0}, "outside": False}
)
CITY = json.dumps({"city": "Lyon", "continent": "Europe", "is_capital": False, "rivers": ["Rhône"]})


def honest(call: ProbeExchange) -> ProbeExchange:
    """Answer as a vendor without a fault."""
    told = replace(call, text=f"text {call.prompt}", finish_reason="stop", n_prompt_tokens=9 + call.prompt, seconds=0.5)
    told = replace(told, model="paint-1b", system_fingerprint="fp-a", n_tokens=4)
    if call.group in ("tool", "named"):
        return replace(told, tool_calls=((TOOL_NAME, ARGUMENTS),), finish_reason="tool_calls")
    if call.group in ("short", "long"):
        n_sentences = 350 if call.group == "long" else 10 if place_in_group(call) % 2 else 110
        return replace(told, text=list_codes()[place_in_group(call)], n_prompt_tokens=20 + 12 * n_sentences)
    return replace(told, text=CITY) if call.group == "schema" else told


def without_choice(call: ProbeExchange) -> ProbeExchange:
    return replace(honest(call), tool_calls=(), finish_reason="stop") if call.group == "named" else with_none(call)


def with_none(call: ProbeExchange) -> ProbeExchange:
    return replace(honest(call), tool_calls=((TOOL_NAME, ARGUMENTS),)) if call.group == "none" else honest(call)


def probed(slug: str, answer: Any = honest, **fields: Any) -> ProbeRecord:
    probes.ask("vendor", on=probes.remote(slug, **fields))
    return probes.served_by_others(answer)


def states(card: Any, endpoint: str) -> dict[str, str]:
    place = [column.endpoint for column in card.endpoints].index(endpoint)
    return {row.row: row.cells[place].state for row in card.rows}


def test_the_card_has_a_row_for_everything_and_says_what_was_not_measured() -> None:
    probed("maker")
    probed("a")
    probed("b", without_choice)
    probes.remote("new")
    card = read_vendor_card(endpoints="a,b,new", reference="maker")
    assert set(states(card, "new").values()) == {"not_measured"}
    assert {row.cells[2].sentence for row in card.rows} == {"Not measured."}
    assert "fault" not in states(card, "a").values()
    assert [name for name, state in states(card, "b").items() if state == "fault"] == ["tool_choice"]
    [cell] = [row.cells[1] for row in card.rows if row.row == "tool_choice"]
    assert cell.sentence.startswith("10 of 10 calls do not follow tool_choice; of the reference's, 0 of 10.")
    assert (cell.n, cell.probe) == (10, str(ProbeRecord.objects.get(endpoint__slug="b").pk))


def test_without_a_reference_nothing_is_compared() -> None:
    probed("a")
    rows = states(read_vendor_card(endpoints="a"), "a")
    assert {rows["prompt_tokens"], rows["answers"]} == {"not_measured"}
    assert {rows["tool_choice"], rows["stream"], rows["context"]} == {"good"}


def test_the_card_of_a_day_uses_nothing_newer() -> None:
    old, new = probed("a", without_choice), probed("a")
    ProbeRecord.objects.filter(pk=old.pk).update(finished_at="2026-11-20T10:00:00Z")
    ProbeRecord.objects.filter(pk=new.pk).update(finished_at="2026-11-21T00:00:00Z")
    assert states(read_vendor_card(endpoints="a"), "a")["tool_choice"] == "good"
    assert states(read_vendor_card(endpoints="a", until="2026-11-19"), "a")["tool_choice"] == "not_measured"
    assert states(read_vendor_card(endpoints="a", until="2026-11-20T12:00:00Z"), "a")["tool_choice"] == "fault"


def test_a_capability_check_and_a_verification_are_rows_too() -> None:
    probes.ask("capability", on=probes.remote("a"))
    answers = iter(answer_calls(honours={"usage"}))
    probes.served_by_others(lambda call: replace(next(answers), worker=None))
    check = ProbeRecord.objects.get()
    finding = {"state": "other_model", "sentence": "Another model.", "numbers": {}}
    verified = {"suite": "geo", "reference": "ours", "numerics": None, "planted": None}
    known = {"endpoint": check.endpoint, "profile": check.profile, "status": "finished", "finding": finding}
    ProbeRecord.objects.create(kind="verify", parameters=verified, finished_at=check.finished_at, **known)
    rows = states(read_vendor_card(endpoints="a"), "a")
    assert (rows["parameter.stop"], rows["verify"]) == ("ignored", "fault")


@pytest.mark.parametrize(
    ("fields", "commands"),
    [
        (
            {"base_url": "https://openrouter.ai/api/v1", "auth": "OPENROUTER_KEY"},
            [
                "evalboard endpoint add mixed-deepinfra --base-url https://openrouter.ai/api/v1 --model paint-1b "
                "--key-env OPENROUTER_KEY --extra-body "
                '\'{"provider":{"only":["DeepInfra"],"allow_fallbacks":false}}\''
            ],
        ),
        (
            {
                "base_url": "https://openrouter.ai/api/v1",
                "extra_body": {"provider": {"only": ["X"], "allow_fallbacks": False}},
            },
            [],
        ),
        ({"base_url": "https://paint.openai.azure.com/openai/v1"}, []),
    ],
)
def test_an_endpoint_that_mixes_providers_gets_the_command_of_one(fields: dict[str, Any], commands: list[str]) -> None:
    probed("mixed", lambda call: replace(honest(call), backend="DeepInfra"), **fields)
    [column] = read_vendor_card(endpoints="mixed").endpoints
    assert list(column.commands) == commands
    assert (column.mixes is None) == (not commands)


def test_azure_names_the_deployment_where_two_models_answer() -> None:
    def answer(call: ProbeExchange) -> ProbeExchange:
        return replace(honest(call), model="paint-2" if call.group == "tool" else "paint-1b")

    probed("azure", answer, base_url="https://paint.openai.azure.com/openai/v1")
    [column] = read_vendor_card(endpoints="azure").endpoints
    assert column.commands == (
        "evalboard endpoint add azure-deployment --base-url https://paint.openai.azure.com/openai/v1 --model DEPLOYMENT",
    )


def test_rest_refuses_names_and_times_in_words(api: Api) -> None:
    probed("a")
    assert api.get("/vendors/?endpoints=a").json()["endpoints"][0]["endpoint"] == "a"
    assert api.get("/vendors/?endpoints=nothing").status_code == 404
    for query, field in {
        "endpoints=": "endpoints",
        "endpoints=a,a": "endpoints",
        "endpoints=a&until=soon": "until",
    }.items():
        refused = api.get(f"/vendors/?{query}")
        assert (refused.status_code, list(refused.json()["fields"])) == (422, [field]), refused.json()


def test_the_page_shows_the_card_and_sends_it_as_csv(viewer: Client) -> None:
    probed("a", without_choice)
    text = viewer.get("/vendors/?endpoints=a").content.decode()
    assert "10 of 10 calls do not follow tool_choice" in text
    assert "evalboard vendors SUITE --endpoints a --format markdown" in text
    lines = viewer.get("/vendors/?endpoints=a&as=csv").content.decode().splitlines()
    assert lines[0] == "row,endpoint,state,sentence,n,at,probe"
    assert any(line.startswith("tool_choice,a,fault,10 of 10 calls") for line in lines)
    assert viewer.get("/vendors/?endpoints=nothing").status_code == 422
    assert viewer.get("/vendors/").status_code == 200


def test_the_table_is_printed_in_every_form() -> None:
    probed("a", without_choice)
    probes.remote("b")
    card = read_vendor_card(endpoints="a,b")
    markdown = render_card(card, "markdown").splitlines()
    assert markdown[:2] == ["| row | a | b |", "| --- | --- | --- |"]
    assert len(markdown) == len(card.rows) + 2
    assert sum("Not measured" in line for line in markdown) == len(card.rows)
    assert render_card(card, "csv").count("\n") == 2 * len(card.rows)
    shown = render_card(card, "text")
    assert "a, tool_choice: 10 of 10 calls do not follow tool_choice." in shown
    assert STATE_WORDS["not_measured"] in shown
    assert EndpointRecord.objects.count() == 2
