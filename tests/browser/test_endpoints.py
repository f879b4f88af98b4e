"""The pages of endpoints in a real browser: what is drawn fits, has no barrier, and works on a phone."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.catalogue import create_endpoint
from runs.models import Endpoint, Probe, Profile
from tests import probes
from tests.frontend.test_fingerprints import bucket, served

pytestmark = pytest.mark.browser
STATES = {
    "system_fingerprint": ("honoured", {"n": 24, "n_answers": 24, "n_distinct": 1, "value": "fp_44709d6fcb"}),
    "seed": ("ignored", {}),
    "temperature": ("honoured", {"n": 3, "n_other": 3}),
    "top_k": ("refused", {"words": "Unrecognized request argument supplied: top_k"}),
    "min_p": ("not_asked", {}),
    "ignore_eos": ("unclear", {"why": "ended_early"}),
}
HONOURED = {"seed": ("honoured", {}), "top_k": ("honoured", {})}


def check(endpoint: Endpoint, states: dict[str, tuple[str, dict[str, object]]]) -> None:
    """A capability check that has ended."""
    rows = [{"parameter": name, "asked": 1, "state": state, "detail": facts} for name, (state, facts) in states.items()]
    Probe.objects.create(
        endpoint=endpoint,
        profile=Profile.objects.get(slug="pinned"),
        kind="capability",
        parameters={},
        status=Probe.Status.FINISHED,
        finished_at=timezone.now(),
        finding={"state": "ignores", "sentence": "Silently ignored: seed. Refused: top_k.", "numbers": {"rows": rows}},
    )


def gateway() -> None:
    """A gateway that drops the seed, what it is a gateway to, and one of our own with two stacks and probes."""
    where = {"engine": "openai", "model_name": "acme/acme-7b-instruct-2026-11", "auth": "PROD_ROUTER_KEY"}
    direct = create_endpoint(slug="vllm-a", base_url="https://gpu-3.acme.example/v1", **where)
    router = create_endpoint(
        slug="prod-router",
        base_url="https://llm.acme.example/v1",
        bypass="vllm-a",
        headers={"x-team": "evals", "x-org": {"env": "ORG_ID"}},
        extra_body={"provider": {"only": ["a"], "allow_fallbacks": False}},
        **where,
    )
    served(0, bucket())
    served(2, bucket("bfloat16", vllm="0.32.0"))
    probes.ask("seed", parameters={"prompts": 2, "calls_per_group": 3})
    probes.served(probes.honoured)
    check(router, STATES)
    check(direct, STATES | HONOURED)
    Endpoint.objects.filter(slug="prod-router").update(
        rests_until=timezone.now() + timedelta(minutes=5),
        rest_reason="Five calls in a row failed; the last one: 503 from llm.acme.example.",
    )


ADDRESSES = (
    "/settings/",
    "/settings/endpoints/new/",
    "/settings/endpoints/new/?kind=openai",
    "/endpoints/prod-router/",
    "/endpoints/vllm-a/",
    "/endpoints/local/",
)


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)])
def test_every_page_of_endpoints_is_quiet_fits_and_has_no_barrier(stage, watch, settings, theme, width):
    settings.ENDPOINT_HOSTS = frozenset(("*",))
    gateway()
    watched = watch(theme=theme, width=width, role="admin")
    barriers = []
    for address in ADDRESSES:
        watched.open(address)
        assert watched.overflow() == 0, address
        watched.check()
        barriers += watched.barriers()
    assert barriers == []


def test_a_server_of_others_is_added_by_the_form_and_a_wrong_key_forgotten(stage, watch, settings):
    settings.ENDPOINT_HOSTS = frozenset(("*",))
    watched = watch(role="admin", width=390)
    page = watched.open("/settings/endpoints/new/")
    page.get_by_role("link", name="A server that others run").click()
    page.locator("#id_slug").fill("mini")
    page.locator("#id_base_url").fill("https://api.example.com/v1")
    page.locator("#id_model_name").fill("gpt-mini")
    page.locator("#id_auth").fill("sk-proj-0123456789abcdef")
    page.get_by_role("button", name="Add an endpoint").click()
    page.get_by_text("never the key itself").last.wait_for()
    assert page.locator("#id_auth").input_value() == ""
    assert page.locator("#id_slug").input_value() == "mini"
    page.locator("#id_auth").fill("MINI_KEY")
    page.get_by_role("button", name="Add an endpoint").click()
    page.get_by_role("heading", name="mini", exact=True).wait_for()
    assert Endpoint.objects.get(slug="mini").auth == "MINI_KEY"
