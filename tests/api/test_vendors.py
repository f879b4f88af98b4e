"""The vendor card over probes of several endpoints, by REST and as a table."""

from dataclasses import replace
from typing import Any

import pytest

from evalboard.cli.vendors import render_card
from evalboard.core.probes import ProbeExchange
from evalboard.wording.vendors import STATE_WORDS
from runs.models import EndpointRecord, ProbeRecord
from runs.probes.vendors import read_vendor_card
from tests import probes
from tests.api.conftest import Api
from tests.capability import answer_calls
from tests.nightly import few
from tests.vendors import honest, without_choice

pytestmark = pytest.mark.django_db


def states(card: Any, endpoint: str) -> dict[str, str]:
    place = [column.endpoint for column in card.endpoints].index(endpoint)
    return {row.row: row.cells[place].state for row in card.rows}


def name_source(probe: ProbeRecord, source: str) -> None:
    """Have the backends of a probe's answers be named by a gateway."""
    for bucket in probe.buckets.select_related("fingerprint"):
        bucket.fingerprint.manifest["source"]["backend_from"] = source
        bucket.fingerprint.save()


def test_the_card_has_a_row_for_everything_and_says_what_was_not_measured() -> None:
    probes.vendor_probed("maker")
    probes.vendor_probed("a")
    probes.vendor_probed("b", without_choice)
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
    probes.vendor_probed("a")
    rows = states(read_vendor_card(endpoints="a"), "a")
    assert {rows["prompt_tokens"], rows["answers"]} == {"not_measured"}
    assert {rows["tool_choice"], rows["stream"], rows["context"]} == {"good"}


def test_the_price_is_that_of_the_day_of_the_probe() -> None:
    price = {"currency": "USD", "input": "2.50", "output": "10"}
    probes.vendor_probed("a", price=price)
    EndpointRecord.objects.update(price={**price, "input": "3"})
    [cell] = [row.cells[0] for row in read_vendor_card(endpoints="a").rows if row.row == "price"]
    assert (cell.state, cell.sentence) == ("measured", "Input 2.50, output 10 USD for a million tokens.")


def test_the_reference_is_not_compared_with_itself() -> None:
    probes.vendor_probed("maker")
    rows = {row.row: row.cells[0].sentence for row in read_vendor_card(endpoints="maker", reference="maker").rows}
    assert rows["answers"] == rows["prompt_tokens"] == "It is the reference."


def test_a_fingerprint_is_no_provider_of_openrouter() -> None:
    probes.vendor_probed("mixed", base_url="https://openrouter.ai/api/v1")
    assert '"only":["PROVIDER"]' in read_vendor_card(endpoints="mixed").endpoints[0].commands[0]


def test_a_gateway_is_probed_without_its_bypass() -> None:
    direct = EndpointRecord.objects.get(slug=probes.remote("direct"))
    assert probes.vendor_probed("gateway", bypass=direct).bypass_probes.count() == 0


def test_the_card_of_a_day_uses_nothing_newer() -> None:
    old, new = probes.vendor_probed("a", without_choice), probes.vendor_probed("a")
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
    few(
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
        1,
    ),
)
def test_an_endpoint_that_mixes_providers_gets_the_command_of_one(fields: dict[str, Any], commands: list[str]) -> None:
    probe = probes.vendor_probed("mixed", lambda call: replace(honest(call), backend="DeepInfra"), **fields)
    name_source(probe, "openrouter")
    [column] = read_vendor_card(endpoints="mixed").endpoints
    assert list(column.commands) == commands
    assert (column.mixes is None) == (not commands)


def test_azure_names_the_deployment_where_two_models_answer() -> None:
    def answer(call: ProbeExchange) -> ProbeExchange:
        return replace(honest(call), model="paint-2" if call.group == "tool" else "paint-1b")

    probes.vendor_probed("azure", answer, base_url="https://paint.openai.azure.com/openai/v1")
    [column] = read_vendor_card(endpoints="azure").endpoints
    assert column.commands == (
        "evalboard endpoint add azure-deployment --base-url https://paint.openai.azure.com/openai/v1 "
        "--model DEPLOYMENT",
    )


def test_litellm_names_a_tag_where_two_backends_answer() -> None:
    probe = probes.vendor_probed("proxy", lambda call: replace(honest(call), backend=f"gpu-{call.prompt % 2}"))
    assert read_vendor_card(endpoints="proxy").endpoints[0].mixes is None  # nothing says that it is a LiteLLM
    name_source(probe, "litellm")
    [column] = read_vendor_card(endpoints="proxy").endpoints
    assert column.commands == (
        "evalboard endpoint add proxy-tag --base-url http://127.0.0.1:9/v1 --model paint-1b "
        '--extra-body \'{"tags":["TAG"]}\'',
    )


def test_rest_refuses_names_and_times_in_words(api: Api) -> None:
    probes.vendor_probed("a")
    assert api.get("/vendors/?endpoints=a").json()["endpoints"][0]["endpoint"] == "a"
    assert api.get("/vendors/?endpoints=nothing").status_code == 404
    for query, field in {
        "endpoints=": "endpoints",
        "endpoints=a,a": "endpoints",
        "endpoints=a&until=soon": "until",
        "endpoints=a&until=9999-12-31": "until",
    }.items():
        refused = api.get(f"/vendors/?{query}")
        assert (refused.status_code, list(refused.json()["fields"])) == (400, [field]), refused.json()


def test_the_table_is_printed_in_every_form() -> None:
    probes.vendor_probed("a", without_choice)
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
