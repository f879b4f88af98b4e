"""The pages of endpoints in a real browser: what is drawn fits, has no barrier, and works on a phone."""

from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from django.utils import timezone

from runs.catalogue import create_endpoint
from runs.models import (
    BaselineRecord,
    EndpointRecord,
    ProbeRecord,
    ProfileRecord,
    ResponseRecord,
    Rotation,
    RunRecord,
    ScheduledStart,
)
from runs.schedules import create_schedule
from tests import build, probes
from tests.browser import looks
from tests.capability import EVERYTHING, answer_calls
from tests.frontend.test_fingerprints import bucket, served
from tests.frontend.test_shares import history

pytestmark = pytest.mark.browser
STATES = {
    "system_fingerprint": ("honoured", {"n": 24, "n_answers": 24, "n_distinct": 1, "value": "fp_44709d6fcb"}),
    "seed": ("ignored", {}),
    "temperature": ("honoured", {"n": 3, "n_other": 3}),
    "top_k": ("refused", {"words": "Unrecognized request argument supplied: top_k"}),
    "min_p": ("not_asked", {}),
    "ignore_eos": ("unclear", {"why": "ended_early"}),
}
REFUSED = "Unknown parameter: 'min_p'. This server takes the parameters that its documentation names, and no others."
HONOURED = {"seed": ("honoured", {}), "top_k": ("honoured", {})}


def check(endpoint: EndpointRecord, states: dict[str, tuple[str, dict[str, object]]]) -> None:
    """A capability check that has ended."""
    rows = [{"parameter": name, "asked": 1, "state": state, "detail": facts} for name, (state, facts) in states.items()]
    ProbeRecord.objects.create(
        endpoint=endpoint,
        profile=ProfileRecord.objects.get(slug="pinned"),
        kind="capability",
        parameters={},
        status=ProbeRecord.Status.FINISHED,
        finished_at=timezone.now(),
        finding={"state": "ignores", "sentence": "Silently ignored: seed. Refused: top_k.", "numbers": {"rows": rows}},
    )


def gateway() -> None:
    """A gateway that drops the seed, what it is a gateway to, and one of our own with two stacks and probes."""
    where = {"engine": "openai", "model_name": "acme/acme-7b-instruct-2026-11", "auth": "PROD_ROUTER_API_KEY"}
    direct = create_endpoint(slug="vllm-a", base_url="https://gpu-3.acme.example/v1", **where)
    router = create_endpoint(
        slug="prod-router",
        base_url="https://llm.acme.example/v1",
        bypass="vllm-a",
        headers={"x-team": "evals", "x-org": {"env": "ORG_API_KEY"}},
        extra_body={"provider": {"only": ["a"], "allow_fallbacks": False}},
        **where,
    )
    served(0, bucket())
    served(2, bucket("bfloat16", vllm="0.32.0"))
    probes.ask("seed", parameters={"prompts": 2, "calls_per_group": 3})
    probes.served(probes.honoured)
    check(router, STATES)
    check(direct, STATES | HONOURED)
    EndpointRecord.objects.filter(slug="prod-router").update(
        rests_until=timezone.now() + timedelta(minutes=5),
        n_failures=5,
        rest_reason="It answered 503.",
    )


def busy() -> None:
    """A gateway with weeks of runs that drops the seed, two backends, schedules and a baseline that expired."""
    history()
    hosted = EndpointRecord.objects.get(slug="hosted")
    EndpointRecord.objects.filter(pk=hosted.pk).update(bypass=EndpointRecord.objects.get(slug=probes.remote("vllm-b")))
    seed = probes.ask("seed", on="hosted")
    for answer in (probes.ignored(), probes.honoured):
        probes.served_by_others(lambda call, answer=answer: replace(answer(call), token_ids=()))
    check = probes.ask("capability", on="hosted")
    for how in (
        {"honours": EVERYTHING - {"seed", "presence_penalty"}, "refuses": {"min_p": REFUSED}, "largest": 5},
        {},
    ):
        scripted = iter(answer_calls(**how))
        probes.served_by_others(
            lambda call, scripted=scripted: replace(next(scripted), round=call.round, clock_ahead=(1.8, 2.6))
        )
    probes.ask("routing", on="hosted")
    for every in (15, 100):
        names = count(1)
        probes.served_by_others(
            lambda call, names=names, every=every: replace(call, text="b", backend="cb"[bool(next(names) % every)])
        )
    ResponseRecord.objects.filter(repeat__run__endpoint=hosted).update(call={"clock_ahead": [1.8, 2.6]})
    runs = RunRecord.objects.filter(endpoint=hosted).order_by("pk")
    person, rotation = build.user("mira"), Rotation.objects.get(run=runs[5])
    key = {"suite": runs[0].suite_version.suite, "line": "paint", "profile_slug": "pinned", "set_by": person}
    BaselineRecord.objects.create(**key, run=runs[1], reason="As shipped.", rotation=rotation)
    for slug, cron, kind, came in (
        ("check-hosted", "0 11 * * *", "capability", {"probe": check}),
        ("seed-nightly", "30 3 * * *", "seed", {"probe": seed}),
        (
            "canary-weekly",
            "0 6 * * 1",
            "canary",
            {"problem": "The suite canaries has no case weekday-041; it was renamed."},
        ),
    ):
        order = {"endpoint": "hosted", "kind": kind, "parameters": {}}
        made = create_schedule(slug=slug, cron=cron, kind="probe", order=order, user=person)
        ScheduledStart.objects.create(schedule=made, due_at=timezone.now(), **came)


ADDRESSES = (
    "/endpoints/hosted/",
    "/settings/",
    "/settings/endpoints/new/",
    "/settings/endpoints/new/?kind=openai",
    "/endpoints/prod-router/",
    "/endpoints/vllm-a/",
    "/endpoints/local/",
)


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_every_page_of_endpoints_is_quiet_fits_and_has_no_barrier(stage, watch, settings, theme, width):
    settings.ENDPOINT_HOSTS = frozenset(("*",))
    busy()
    gateway()
    watched = watch(theme=theme, width=width, role="admin")
    barriers = []
    for address in (*ADDRESSES, f"/endpoints/{build.endpoint('x' * 80)}/"):
        watched.open(address)
        assert watched.overflow() == 0, address
        watched.check()
        barriers += watched.barriers()
    assert barriers == []


def test_a_server_of_others_is_added_by_the_form_and_a_wrong_key_forgotten(stage, watch, settings):
    settings.ENDPOINT_HOSTS = frozenset(("*",))
    watched = watch(role="admin", width=390)
    page = watched.open("/settings/endpoints/new/")
    page.get_by_role("link", name="An external server").click()
    page.locator("#id_slug").fill("mini")
    page.locator("#id_base_url").fill("https://api.example.com/v1")
    page.locator("#id_model_name").fill("gpt-mini")
    page.locator("#id_auth").fill("sk-proj-0123456789abcdef")
    page.get_by_role("button", name="Add an endpoint").click()
    page.get_by_text("never the key itself").last.wait_for()
    assert page.locator("#id_auth").input_value() == ""
    assert page.locator("#id_slug").input_value() == "mini"
    page.locator("#id_auth").fill("MINI_API_KEY")
    page.get_by_role("button", name="Add an endpoint").click()
    page.get_by_role("heading", name="mini", exact=True).wait_for()
    assert EndpointRecord.objects.get(slug="mini").auth == "MINI_API_KEY"
