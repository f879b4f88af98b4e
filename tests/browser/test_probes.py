"""The pages of probes in a real browser: what is drawn fits and has no barrier, and a probe is followed to its end."""

from dataclasses import replace
from itertools import count

import pytest
from playwright.sync_api import expect

from runs.models import EndpointRecord, ProbeRecord
from tests import build, probes, verifying
from tests.browser import looks
from tests.capability import EVERYTHING, answer_calls

pytestmark = pytest.mark.browser


def ask_others() -> list[ProbeRecord]:
    """Probes of servers of others: a gateway's capabilities and around it, and who answered among sixty calls."""
    probes.remote("litellm", bypass=EndpointRecord.objects.get(slug=probes.remote("vllm-a")))
    through = probes.ask("capability", on="litellm")
    refused = (
        "Unknown parameter: 'min_p'. This server takes the parameters that its documentation names, and no others."
    )
    for how in ({"honours": EVERYTHING - {"seed"}, "refuses": {"min_p": refused}, "largest": 5}, {}):
        scripted = iter(answer_calls(**how))
        probes.served_by_others(lambda call, scripted=scripted: replace(next(scripted), round=call.round))
    routing = probes.ask("routing", on=probes.remote("hosted"))
    names = count()
    probes.served_by_others(
        lambda call: replace(call, text="Tuesday", backend=f"http://gpu-{next(names) % 2}.internal:8000/v1/chat")
    )
    return [through, *ProbeRecord.objects.filter(bypass_of=through), routing]


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_every_page_of_probes_is_quiet_fits_and_has_no_barrier(stage, watch, theme, width):
    asked = [probes.ask("seed", parameters={"prompts": 2, "calls_per_group": 3})]
    probes.served(probes.honoured)
    for answer in (probes.alike, probes.moved_by_batching(4)):
        asked.append(probes.ask("batch", parameters={"prompts": 2, "copies": 8, "load": 1}))
        probes.served(answer)
    for logprob in [-0.5] * 12 + [-0.75]:
        canary = probes.ask("canary", parameters={"prompts": 2})
        probes.served(probes.listing(logprob, -1.5, -2.5))
    asked += [canary, probes.ask("routing")]
    probes.served(probes.alike)
    for kind, answer in (("determinism", probes.other_bits_from(9)), ("determinism", probes.exact)):
        asked.append(probes.ask(kind, parameters={"prompts": 2, "seats": 4, "passes": 1}))
        probes.served(answer)
    for answer in (probes.exact, probes.other_bits_from(1)):
        asked.append(probes.ask("audit", parameters={"prompts": 2}))
        probes.served(answer)
    asked += ask_others()
    stack = build.process(build.bucket("bfloat16"))
    asked.append(verifying.end(verifying.ask(planted="changed"), stack))
    asked.append(verifying.ask())
    watched = watch(theme=theme, width=width)
    barriers = []
    for address in ["/probes/", "/workers/", *(f"/probes/{probe.pk}/?against={asked[1].pk}" for probe in asked)]:
        watched.open(address)
        assert watched.overflow() == 0, address
        watched.check()
        barriers += watched.barriers()
    assert barriers == []


@pytest.mark.nightly
def test_a_probe_is_asked_for_and_followed_to_what_it_found(stage, watch):
    watched = watch()
    page = watched.open("/probes/")
    page.get_by_role("link", name="Probe an endpoint").click()
    page.locator("#id_parameters").fill('{"prompts": 2, "calls_per_group": 4}')
    page.get_by_role("button", name="Start the probe").click()
    expect(page.get_by_text("0 of 18")).to_be_visible()
    probes.served(probes.honoured)
    expect(page.locator(".probe-state")).to_have_text("Seed honoured")
    expect(page.get_by_role("heading", name="Numbers")).to_be_visible()
    watched.check()
