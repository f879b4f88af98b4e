"""The page of one endpoint, the list by kind, and the form for an external server."""

import re
from datetime import UTC, timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.catalogue import create_endpoint
from runs.fingerprints import endpoint_report
from runs.models import (
    BaselineRecord,
    EndpointRecord,
    ProbeRecord,
    ProfileRecord,
    ResponseRecord,
    Rotation,
    RunRecord,
    ScheduledStart,
    ScheduleRecord,
)
from runs.release import create_release
from runs.schedules import create_schedule
from tests import build, probes
from tests.frontend.test_fingerprints import bucket, served, words

pytestmark = pytest.mark.django_db
SECRET = "sk-proj-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA"
ROWS = [
    {"parameter": "temperature", "asked": 0, "state": "honoured", "detail": {"n": 3, "n_other": 3}},
    {"parameter": "seed", "asked": 7, "state": "ignored", "detail": {}},
    {"parameter": "top_k", "asked": 1, "state": "refused", "detail": {"words": "no <top_k> here"}},
    {"parameter": "min_p", "asked": 0.1, "state": "not_asked", "detail": {}},
    {"parameter": "ignore_eos", "asked": True, "state": "unclear", "detail": {"why": "ended_early"}},
]


@pytest.fixture(autouse=True)
def hosts(settings: Any) -> None:
    settings.ENDPOINT_HOSTS = frozenset(("*",))


def remote(slug: str = "theirs", **changes: Any) -> EndpointRecord:
    known: dict[str, Any] = {
        "base_url": "https://api.example.com/v1",
        "model_name": "gpt-paint",
        "auth": "PAINT_API_KEY",
    }
    return create_endpoint(slug=slug, engine="openai", **known | changes)


def check(endpoint: EndpointRecord, rows: list[dict[str, Any]]) -> ProbeRecord:
    """A capability check that has ended."""
    if not ProfileRecord.objects.filter(slug="pinned").exists():
        build.profile("pinned")
    return ProbeRecord.objects.create(
        endpoint=endpoint,
        profile=ProfileRecord.objects.get(slug="pinned"),
        kind="capability",
        parameters={},
        status=ProbeRecord.Status.FINISHED,
        finished_at=timezone.now(),
        finding={"state": "ignores", "sentence": "Silently ignored: seed.", "numbers": {"rows": rows}},
    )


def test_an_endpoint_that_nobody_has_asked_says_so_and_how_to_begin(viewer: Client) -> None:
    remote(headers={"x-team": "evals", "x-org": {"env": "ORG_API_KEY"}}, extra_body={"user": "<b>"})
    page = words(viewer, "/endpoints/theirs/")
    assert "It has no run and no probe yet." in page
    assert "gpt-paint at https://api.example.com/v1" in page
    assert "never checked" in page
    assert "evalboard endpoint check theirs --wait" in page
    assert "evalboard run <suite> --endpoint theirs --profile pinned --wait" in page
    assert "key read from PAINT_API_KEY on the worker" in page
    assert 'headers x-org from ORG_API_KEY, x-team: evals in every body {"user": "<b>"}' in page


def test_a_check_says_which_profile_fits_and_how_answers_are_compared(viewer: Client) -> None:
    refused = {"parameter": "temperature", "asked": 0, "state": "refused", "detail": {"words": "Only 1."}}
    check(remote(), [refused, *ROWS[1:]])
    page = words(viewer, "/endpoints/theirs/")
    assert "It does not take temperature: use --profile hosted, which asks for none. Repeats are samples." in page
    assert "Without logprobs, answers are compared by text, ending, token counts and seconds." in page
    assert "evalboard run <suite> --endpoint theirs --profile hosted --wait" in page
    report = endpoint_report("theirs")
    assert (report.fitting_profile, (report.compared_by or "") in page) == ("hosted", True)


def test_an_admin_sets_the_price_of_its_tokens_on_the_page(client: Client) -> None:
    remote()
    client.force_login(build.user("root", "admin"))
    assert "price not known" in words(client, "/endpoints/theirs/")
    client.post("/endpoints/theirs/price/", {"price": "input=2.50,output=10"})
    assert "price input 2.50, output 10 USD for a million tokens" in words(client, "/endpoints/theirs/")
    wrong = client.post("/endpoints/theirs/price/", {"price": "cheap"}, follow=True)
    assert "Give input, output and currency" in wrong.content.decode()
    client.post("/endpoints/theirs/price/", {"price": ""})
    assert EndpointRecord.objects.get().price == {}


def test_what_answered_is_shown_by_its_shares_with_speed_and_errors(viewer: Client) -> None:
    one, other = bucket(), bucket("bfloat16")
    run = served(0, one)
    served(2, other)
    ResponseRecord.objects.filter(repeat__run=run).update(decode_seconds=2.0)
    ResponseRecord.objects.exclude(repeat__run=run).update(decode_seconds=4.0)
    page = words(viewer, "/endpoints/local/")
    assert page.count("2 stacks answer: backend ") == 1
    assert "backend A" in page
    assert "backend B" in page
    assert "the last 6 responses, of 2 repeats" in page
    assert "Decoding, median 3.0 s" in page
    assert "95th percentile 4.0 s" in page
    assert "Missing 0 of 6" in page
    assert "2026-11-18 09:00 UTC, pinned" in page  # where one took over


@pytest.mark.nightly
def test_missing_responses_are_counted_by_their_reason(viewer: Client) -> None:
    run = build.finished_run(["blue", None, None], by=build.process(bucket()))
    code = ResponseRecord.objects.filter(repeat__run=run).exclude(error_code="").values_list("error_code", flat=True)[0]
    report = endpoint_report("local")
    assert [(each.code, each.n) for each in report.last.errors] == [(code, 2)]
    assert (report.last.n_responses, len(report.last.backends)) == (3, 1)
    page = words(viewer, "/endpoints/local/")
    assert "One stack answers" in page
    assert "Missing 2 of 3" in page
    assert code in page


def test_a_resting_endpoint_says_until_when(viewer: Client) -> None:
    build.endpoint("local")
    until = timezone.now() + timedelta(minutes=7)
    EndpointRecord.objects.update(rests_until=until, n_failures=5, rest_reason="It answered <503>.")
    clock = f"{until:%H:%M:%S}"
    page = words(viewer, "/endpoints/local/")
    assert f"The endpoint is paused after 5 failed calls: it answered <503>. Next try {clock} UTC." in page
    EndpointRecord.objects.update(rests_until=timezone.now() - timedelta(seconds=1))
    assert "is paused" not in words(viewer, "/endpoints/local/")


@pytest.mark.nightly
def test_a_run_that_waits_for_a_resting_endpoint_leads_to_it(viewer: Client) -> None:
    build.suite()
    run = build.run()
    EndpointRecord.objects.update(rests_until=timezone.now() + timedelta(minutes=7), rest_reason="Five calls failed.")
    head = (
        viewer.get(f"/runs/{run.pk}/").content.decode().partition('class="trouble waits"')[2].partition("</section>")[0]
    )
    assert 'href="/endpoints/local/"' in head
    assert "Gives up its first cases" in head
    assert len(viewer.get("/api/v1/runs/?status=waiting_for_endpoint").json()["results"]) == 1
    assert f'href="/runs/{run.pk}/"' in viewer.get("/runs/?status=waiting_for_endpoint").content.decode()
    assert "HX-Refresh" in viewer.get(f"/runs/{run.pk}/?part=progress&stage=other")
    EndpointRecord.objects.update(rests_until=timezone.now() - timedelta(seconds=1))
    assert viewer.get("/api/v1/runs/?status=waiting_for_endpoint").json()["results"] == []
    assert f'href="/runs/{run.pk}/"' not in viewer.get("/runs/?status=waiting_for_endpoint").content.decode()
    EndpointRecord.objects.update(rests_until=timezone.now() + timedelta(minutes=9))
    stage = re.search(r"stage=([^\"&]+)", viewer.get(f"/runs/{run.pk}/").content.decode())[1]
    assert "HX-Refresh" not in viewer.get(f"/runs/{run.pk}/?part=progress&stage={stage}")
    EndpointRecord.objects.update(rests_until=timezone.now() + timedelta(minutes=12))
    assert "HX-Refresh" in viewer.get(f"/runs/{run.pk}/?part=progress&stage={stage}"), "the next try is later now"


def test_a_check_is_a_table_of_words_beside_that_of_the_direct_endpoint(viewer: Client) -> None:
    direct = remote("direct")
    gateway = remote("gateway", bypass="direct")
    check(gateway, ROWS)
    alone = words(viewer, "/endpoints/gateway/")
    for said in ("temperature honoured", "seed ignored", "top_k refused", "no <top_k> here", "min_p not tested"):
        assert said in alone
    assert "ignore_eos undecided" in alone
    check(direct, [row | {"state": "honoured"} if row["parameter"] == "top_k" else row for row in ROWS])
    html = viewer.get("/endpoints/gateway/").content.decode()
    assert html.count('class="hops-part"') == 1
    assert "top_k refused honoured" in words(viewer, "/endpoints/gateway/")


def test_what_was_checked_and_never_run_says_what_it_ignores(viewer: Client) -> None:
    check(remote(), ROWS)
    page = words(viewer, "/endpoints/theirs/")
    assert "It silently ignores seed, and it has no run yet. Its first run shows who answers." in page
    assert "It has no run and no probe yet." not in page
    check(EndpointRecord.objects.get(), [row | {"state": "honoured"} for row in ROWS])
    assert "It has no run yet." in words(viewer, "/endpoints/theirs/")


def through_and_around(
    gateway: EndpointRecord, direct: EndpointRecord, kind: str, lost: str, honoured: str
) -> ProbeRecord:
    """A probe of a gateway that found something lost, and the one around it that did not."""
    known: dict[str, Any] = {"profile": ProfileRecord.objects.get(slug="pinned"), "kind": kind, "parameters": {}}
    known |= {"status": ProbeRecord.Status.FINISHED, "finished_at": timezone.now()}

    def finding(state: str) -> dict[str, Any]:
        rows = [row | {"state": state if row["parameter"] == "seed" else "honoured"} for row in ROWS]
        return {"state": state, "sentence": "It is so.", "numbers": {"rows": rows}}

    through = ProbeRecord.objects.create(endpoint=gateway, finding=finding(lost), **known)
    ProbeRecord.objects.create(endpoint=direct, finding=finding(honoured), bypass_of=through, **known)
    return through


@pytest.mark.nightly
def test_the_hop_that_drops_something_is_said_in_the_head_beside_the_probe_and_on_the_release(viewer: Client) -> None:
    build.endpoint("vllm-a")
    first, second = (build.finished_run(["blue", "blue", "red"], by=build.process(bucket())) for _ in range(2))
    EndpointRecord.objects.filter(slug="local").update(engine="openai", base_url="https://api.example.com/v1")
    direct, gateway = (EndpointRecord.objects.get(slug=slug) for slug in ("vllm-a", "local"))
    through_and_around(gateway, direct, "seed", "ignored", "honoured")
    through_and_around(gateway, direct, "capability", "ignored", "honoured")
    through_and_around(gateway, direct, "routing", "several", "one")
    page = words(viewer, "/endpoints/local/")
    assert "The gateway spreads the calls over several backends and drops seed, and one stack answers" in page
    for sentence in (
        "Honoured at vllm-a, ignored through local: the gateway drops it.",
        "local drops seed, which vllm-a honours.",
        "One backend at vllm-a, several backends through local: the gateway spreads the calls over them.",
    ):
        assert sentence in page
    assert "The gateway" not in words(viewer, "/endpoints/vllm-a/").partition("Honoured parameters")[0]
    release = create_release(gates=[{"suite": "colours", "candidate": second.pk, "baseline": first.pk}])
    assert "Honoured at vllm-a, ignored through local: the gateway drops it." in words(
        viewer, f"/releases/{release.pk}/"
    )


@pytest.mark.nightly
def test_the_reference_sets_of_its_baselines_run_by_a_button(engineer: Client, viewer: Client) -> None:
    run = served(0, bucket())
    assert "Run the reference set" not in words(engineer, "/endpoints/local/")
    refused = engineer.post("/endpoints/local/", {"what": "reference"}, follow=True)
    assert "No baseline uses endpoint local" in refused.content.decode()
    key = {"suite": run.suite_version.suite, "line": "paint", "profile_slug": "pinned", "run": run}
    for name in ("pia", "jo"):  # of which one is current
        BaselineRecord.objects.create(**key, reason="As shipped.", set_by=build.user(name))
    assert "Run the reference set" in words(engineer, "/endpoints/local/")
    assert "Run the reference set" not in words(viewer, "/endpoints/local/")
    assert viewer.post("/endpoints/local/", {"what": "reference"}).status_code == 403
    started = engineer.post("/endpoints/local/", {"what": "reference"})
    again = RunRecord.objects.get(status="queued")
    assert started["Location"] == f"/runs/{again.pk}/"
    assert (again.suite_version.suite.slug, again.repeats.count()) == ("colours-reference", 1)
    assert again.created_by.username not in ("pia", "jo")


@pytest.mark.nightly
def test_each_schedule_says_what_came_of_its_last_time(viewer: Client) -> None:
    endpoint, person = remote(), build.user("pia", "admin")
    build.profile()
    due = {"due_at": timezone.now(), "started_at": timezone.now()}
    slugs = ("fresh", "found", "refused", "gone")
    order = {"endpoint": "theirs", "kind": "seed", "parameters": {}}
    made = {
        slug: create_schedule(slug=slug, cron="0 4 * * *", kind="probe", order=order, user=person) for slug in slugs
    }
    probe = check(endpoint, ROWS)
    ProbeRecord.objects.update(kind="seed", finding={"state": "ignored", "sentence": "Ignored.", "numbers": {}})
    ScheduledStart.objects.create(schedule=made["found"], probe=probe, **due)
    ScheduledStart.objects.create(schedule=made["refused"], problem="Its suite is gone.", **due)
    ScheduledStart.objects.create(schedule=made["gone"], **due)
    page = words(viewer, "/endpoints/theirs/")
    at = f"{due['due_at'].astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    assert page.count("No starts yet.") == 1
    assert f"Last {at}: probe {probe.pk}, seed ignored." in page
    assert f"Last {at}: refused: Its suite is gone." in page
    assert f"Last {at}: deleted since." in page


@pytest.mark.nightly
def test_the_servers_clock_stands_beside_the_instants_of_its_answers(viewer: Client) -> None:
    run = served(0, bucket())
    assert "The server's clock" not in words(viewer, "/endpoints/local/")
    for response, ahead in zip(
        ResponseRecord.objects.filter(repeat__run=run), ([1.6, 2.8], [2.1, 3.3], None), strict=True
    ):
        ResponseRecord.objects.filter(pk=response.pk).update(call={"clock_ahead": ahead})
    assert "The server's clock is 2.1 to 2.8 s ahead of ours." in words(viewer, "/endpoints/local/")


@pytest.mark.nightly
def test_the_page_says_when_it_is_checked_again(viewer: Client) -> None:
    remote()
    build.profile()
    order = {"endpoint": "theirs", "kind": "capability", "parameters": {}}
    made = create_schedule(slug="daily", cron="0 4 * * *", kind="probe", order=order, user=build.user("mira", "admin"))
    assert made.next_at is not None
    assert f"next check {made.next_at.astimezone(UTC):%Y-%m-%d} 04:00 UTC" in words(viewer, "/endpoints/theirs/")
    ScheduleRecord.objects.update(next_at=None)
    assert "next check" not in words(viewer, "/endpoints/theirs/")


def test_an_engineer_starts_a_check_by_a_button_and_a_viewer_has_none(engineer: Client, viewer: Client) -> None:
    remote()
    build.profile()
    assert "Check it now" in words(engineer, "/endpoints/theirs/")
    assert "Check it now" not in words(viewer, "/endpoints/theirs/")
    assert viewer.post("/endpoints/theirs/").status_code == 403
    started = engineer.post("/endpoints/theirs/")
    [probe] = ProbeRecord.objects.filter(kind="capability")
    assert started["Location"] == f"/probes/{probe.pk}/"


def test_an_endpoint_that_refuses_a_temperature_is_to_be_run_as_hosted(viewer: Client) -> None:
    endpoint = remote()
    refused = {"state": "refused", "detail": {"words": "only 1 is supported"}}
    check(endpoint, [row | refused if row["parameter"] == "temperature" else row for row in ROWS])
    assert "evalboard run <suite> --endpoint theirs --profile hosted --wait" in words(viewer, "/endpoints/theirs/")


@pytest.mark.nightly
def test_an_admin_has_fingerprints_ignored_and_read_again(admin: Client, engineer: Client) -> None:
    remote()
    assert "Ignore it" not in words(engineer, "/endpoints/theirs/")
    for button, after in (("Ignore it", "ignored: it names no server"), ("Use it", "used: each one is a server")):
        page = admin.get("/endpoints/theirs/").content.decode()
        [ignores] = re.findall(r'name="ignores" value="(\w+)"', page)
        assert button in page
        admin.post("/endpoints/theirs/fingerprint/", {"ignores": ignores})
        assert after in words(admin, "/endpoints/theirs/")


def test_what_rests_on_it_is_linked(viewer: Client) -> None:
    run = served(0, bucket())
    person = build.user("mira", "admin")
    suite = run.suite_version.suite
    key = {"suite": suite, "line": "paint", "profile_slug": "pinned"}
    BaselineRecord.objects.create(**key, run=run, reason="As shipped.", set_by=person)
    order = {"endpoint": "local", "kind": "canary", "parameters": {}}
    create_schedule(slug="weekly", cron="0 4 * * 1", kind="probe", order=order, user=person)
    probes.ask("seed", parameters={"prompts": 1, "calls_per_group": 2})
    probe = probes.served(probes.honoured)
    html = viewer.get("/endpoints/local/").content.decode()
    for path in (f"/probes/{probe.pk}/", f"/runs/{run.pk}/", f"#schedule-{ScheduleRecord.objects.get().pk}"):
        assert path in html
    for path in ("/fingerprints/", "/probes/", "/runs/", f"/runs/{run.pk}/", f"/probes/{probe.pk}/", "/schedules/"):
        assert 'href="/endpoints/local/"' in viewer.get(path).content.decode(), path


@pytest.mark.nightly
def test_a_baseline_that_expired_is_hatched_and_may_be_run_again(engineer: Client, viewer: Client) -> None:
    run = served(0, bucket())
    suite = run.suite_version.suite
    key = {"suite": suite, "line": "paint", "profile_slug": "pinned", "run": run, "set_by": build.user("mira")}
    baselines = [BaselineRecord.objects.create(**key, reason="As shipped.") for _ in range(2)]
    again = f'action="/suites/{suite.slug}/baselines/{baselines[1].pk}/again/"'
    html = engineer.get("/endpoints/local/").content.decode()
    assert again not in html
    assert 'class="number expired"' not in html
    prints = [build.bucket(dtype).fingerprint for dtype in ("float32", "bfloat16")]
    place = {"endpoint": run.endpoint, "profile_slug": "pinned", "run": run}
    BaselineRecord.objects.update(rotation=Rotation.objects.create(**place, before=prints[0], after=prints[1]))
    html = engineer.get("/endpoints/local/").content.decode()
    assert html.count('class="number expired"') == 2
    assert html.count("Run it again") == html.count(again) == 1  # of the current one
    assert "Run it again" not in viewer.get("/endpoints/local/").content.decode()
    assert engineer.post(f"/suites/{suite.slug}/baselines/{baselines[1].pk}/again/").status_code == 302


def test_an_endpoint_that_is_not_there_is_not_found(viewer: Client) -> None:
    assert viewer.get("/endpoints/nobody/").status_code == 404


@pytest.mark.nightly
def test_the_page_asks_as_much_for_many_runs_and_stacks_as_for_one(viewer: Client) -> None:
    def n_statements() -> int:
        viewer.get("/endpoints/local/")
        with CaptureQueriesContext(connection) as queries:
            assert viewer.get("/endpoints/local/").status_code == 200
        return len(queries)

    served(11, bucket())
    served(10, bucket("bfloat16"))
    few = n_statements()
    for day in range(10):
        served(day, bucket(vllm=f"0.3{day}.0"))
    assert n_statements() <= few <= 38


def test_endpoints_are_listed_by_kind(viewer: Client) -> None:
    build.endpoint("ours")
    remote()
    page = words(viewer, "/endpoints/")
    assert "Your own: a worker loads the model" in page
    assert "External servers" in page
    assert "theirs gpt-paint https://api.example.com/v1 PAINT_API_KEY gpt-paint default" in page


FORM = {
    "slug": "theirs",
    "base_url": "https://api.example.com/v1/",
    "model_name": "gpt-paint",
    "auth": "PAINT_API_KEY",
    "api": "chat",
    "concurrency": "4",
    "pool": "default",
    "headers": "x-team: evals\nx-org: $ORG_API_KEY\n",
    "extra_body": "",
    "rescores": "on",
}
ADDRESS = "/settings/endpoints/new/?kind=openai"


def test_an_admin_adds_a_server_of_others_by_the_form(admin: Client) -> None:
    made = admin.post(ADDRESS, FORM)
    assert (made.status_code, made["Location"]) == (302, "/endpoints/theirs/")
    row = EndpointRecord.objects.get()
    assert (row.base_url, row.auth, row.concurrency) == ("https://api.example.com/v1", "PAINT_API_KEY", 4)
    assert row.headers == {"x-team": "evals", "x-org": {"env": "ORG_API_KEY"}}


@pytest.mark.parametrize(
    "changes",
    [{"auth": SECRET}, {"headers": f"Authorization: Bearer {SECRET}"}, {"headers": f"no colon {SECRET}"}],
)
def test_the_form_does_not_repeat_a_key(admin: Client, changes: dict[str, str]) -> None:
    refused = admin.post(ADDRESS, FORM | changes)
    assert refused.status_code == 422
    assert SECRET not in unescape(refused.content.decode())
    assert not EndpointRecord.objects.exists()


def test_the_form_for_ones_own_stays_and_each_leads_to_the_other(admin: Client) -> None:
    for address in ("/settings/endpoints/new/", ADDRESS):
        html = admin.get(address).content.decode()
        assert 'href="?kind=openai"' in html
        assert 'href="?kind="' in html
    assert "dtype" in admin.get("/settings/endpoints/new/").content.decode()
    form = admin.get(ADDRESS).content.decode().partition("<form")[2]
    assert "dtype" not in form
    assert '<label for="id_api">API' in form


def test_the_page_says_where_model_adapter_and_token_come_from(viewer: Client, settings: Any) -> None:
    adapter = f"lab/tone@{'a' * 40}"
    path = str(settings.MODEL_ROOTS[0] / "paint-1b")
    known = {"model_path": path, "model_adapter": adapter, "auth": "HUB_API_KEY", "dtype": "float32", "line": "paint"}
    create_endpoint(slug="tone", **known)
    page = viewer.get("/endpoints/tone/").content.decode()
    for text in (path, adapter, "HUB_API_KEY"):
        assert f"<code><bdi>{text}</bdi></code>" in page
