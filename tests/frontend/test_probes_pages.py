"""The pages of probes: what each state says, who may ask, what was typed wrong, and what others wrote."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalboard.contract.probe import KINDS
from evalboard.wording import probe_states
from frontend.probes import numbers, words
from runs.models import EndpointRecord, ProbeRecord, WorkerRecord
from tests import build, probes
from tests.capability import EVERYTHING, answer_calls
from tests.nightly import few

FEWEST = {"n_calls": 4, "n_failed": 3, "errors": []}
SMALL = {"prompts": 2, "calls_per_group": 4}


@pytest.fixture(autouse=True)
def endpoint(db: None) -> str:
    build.profile("pinned")
    build.profile("fast")
    return build.endpoint("local")


def text_of(response: Any) -> str:
    """What it says, without its markup."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def page(client: Client, probe: ProbeRecord) -> str:
    return text_of(client.get(f"/probes/{probe.pk}/"))


def test_a_probe_is_followed_from_the_queue_to_its_finding(viewer: Client) -> None:
    probe = probes.ask("seed", parameters=SMALL, user=build.user("grace"))
    path = f"/probes/{probe.pk}/"
    queued = viewer.get(path)
    assert 'hx-get="?part=progress" hx-trigger="every 2s"' in queued.content.decode()
    assert "Waiting for a worker." in text_of(queued)
    assert "none answered yet" in text_of(queued)
    probes.served(probes.honoured, rounds=1)
    part = viewer.get(f"{path}?part=progress")
    assert "Asking." in text_of(part)
    assert "8 of 18" in text_of(part)
    assert ("<html" in part.content.decode(), "HX-Refresh" in part) == (False, False)
    ProbeRecord.objects.update(status="queued", owner=None)
    probes.served(probes.honoured)
    assert viewer.get(f"{path}?part=progress")["HX-Refresh"] == "true"
    ended = viewer.get(path)
    assert "hx-get" not in ended.content.decode()
    assert "Seed honoured" in text_of(ended)
    assert "The seed is honoured exactly: all 8 calls with the same seed gave the same text for each prompt" in text_of(
        ended
    )
    assert "by grace" in text_of(ended)
    assert viewer.get(f"{path}?part=elsewhere").status_code == 404


def test_a_bad_finding_says_what_to_do_and_draws_where_copies_part(viewer: Client) -> None:
    probes.ask("batch", parameters={"prompts": 1, "copies": 20, "load": 2})
    probe = probes.served(probes.moved_by_batching(4))
    shown = page(viewer, probe)
    assert "5 of the 5 copies that differ leave the commonest text at position 1." in shown
    assert f"What to do: {probe_states.STATES['batch']['variant'].advice}" in shown
    chart = viewer.get(f"/probes/{probe.pk}/").content.decode()
    assert re.search(r'<title>position 1: 5 copies</title><rect class="places"', chart)
    # The two tokens, as the engine's vocabulary has them: the end, and " red".
    assert re.search(r'⟨end⟩</span></td><td>(<span class="drawn">·</span>)?red</td><td class="number">5</td>', chart)
    assert "pair agreement, A 0.6053" in shown


@pytest.mark.nightly
def test_a_batch_probe_is_held_against_another_with_the_same_prompts(viewer: Client) -> None:
    first, second = (probes.ask("batch", parameters={"prompts": 1, "copies": 60, "load": load}) for load in (0, 2))
    probes.served(probes.alike)
    assert "Comparison" not in page(viewer, first)
    probes.served(probes.moved_by_batching(2))
    assert f"probe {first.pk} · " in page(viewer, second)
    assert "is noisier" not in page(viewer, second)
    held = text_of(viewer.get(f"/probes/{second.pk}/?against={first.pk}"))
    assert "The second probe is noisier: two copies agree 100.0 % of the time in the first" in held
    assert f"The first is probe {first.pk}, the second probe {second.pk}." in held
    assert viewer.get(f"/probes/{second.pk}/?against=999").status_code == 200


def test_every_pair_of_a_seed_probe_is_in_its_chart(viewer: Client) -> None:
    probes.ask("seed", parameters=SMALL)
    probe = probes.served(probes.honoured)
    drawn = viewer.get(f"/probes/{probe.pk}/").content.decode()
    pairs = re.findall(r"<title>\d+ tokens alike, (one seed|other seeds): (\d+) pairs?</title>", drawn)
    for group in ("one seed", "other seeds"):
        assert sum(int(n) for found, n in pairs if found == group) == 2 * 6  # two prompts of 4 · 3 / 2


@pytest.mark.nightly
def test_a_canary_shows_those_before_it_once_they_can_be_measured(viewer: Client) -> None:
    for _ in range(12):
        probes.ask("canary", parameters={"prompts": 2})
        probe = probes.served(probes.listing(-0.5, -1.5, -2.5))
    assert "canaries found a change" not in page(viewer, probe)  # of one alone there is no line to draw
    probes.ask("canary", parameters={"prompts": 2})
    changed = probes.served(probes.listing(-2.5, -0.5, -1.5))
    assert " Changed The answers have changed: 2 of 2 prompts differ" in page(viewer, changed)
    assert "1 of the last 2 canaries found a change." in page(viewer, changed)
    assert f'href="/probes/{probe.pk}/"' in viewer.get(f"/probes/{changed.pk}/").content.decode()


def test_a_routing_probe_shows_who_answered_from_which_stack(viewer: Client) -> None:
    probes.ask("routing")
    probe = probes.served(probes.alike)
    shown = page(viewer, probe)
    assert "One stack" in shown
    assert re.search(r"By worker Worker Stack Answers prober .+? \([0-9a-f]{4}\) 8", shown)


def test_a_probe_that_failed_says_why_and_marks_the_calls(viewer: Client) -> None:
    probes.ask("seed", parameters=SMALL)
    probe = probes.served(probes.failed("engine_error: <b>no memory</b>"))
    response = viewer.get(f"/probes/{probe.pk}/")
    assert "<b>no memory</b>" not in response.content.decode()
    assert "The probe failed. engine_error: <b>no memory</b>" in text_of(response)
    assert "18 in the order of sending, 18 without an answer" in text_of(response)


@pytest.mark.parametrize(
    "kind", few([kind for kind in KINDS if kind != "verify"], 4)
)  # whose numbers are always all there
def test_every_state_has_a_page_even_with_the_fewest_numbers(viewer: Client, kind: str) -> None:
    probe = probes.ask(kind)
    for state, state_words in probe_states.STATES[kind].items():
        finding = {"state": state, "sentence": "So it is: <i>just so</i>.", "numbers": {**FEWEST}}
        ProbeRecord.objects.filter(pk=probe.pk).update(status="finished", finding=finding)
        response = viewer.get(f"/probes/{probe.pk}/")
        assert response.status_code == 200
        assert "<i>" not in response.content.decode()
        assert f" {state_words.word} So it is: <i>just so</i>. " in text_of(response)
        assert "calls with an answer 1 of 4" in text_of(response)


@pytest.mark.nightly
def test_the_list_names_what_needs_somebody_by_the_newest_of_each_kind(viewer: Client) -> None:
    assert "No probes yet" in text_of(viewer.get("/probes/"))
    probes.ask("batch", parameters={"prompts": 1, "copies": 8, "load": 0})
    probes.served(probes.moved_by_batching(2))
    probes.ask("seed", parameters=SMALL)
    probes.served(probes.failed("no engine"))
    shown = text_of(viewer.get("/probes/"))
    assert "2 of the newest probes need attention. local: seed failed; local: variant." in shown
    probes.ask("batch", parameters={"prompts": 1, "copies": 8, "load": 0})
    probes.served(probes.alike)
    assert "1 of the newest probes needs attention. local: seed failed." in text_of(viewer.get("/probes/"))


def test_the_list_is_filtered_and_goes_on_to_older_ones(viewer: Client) -> None:
    for _ in range(26):
        probes.ask("routing")
    seed = probes.ask("seed")
    first = viewer.get("/probes/?kind=routing")
    assert f"probe {seed.pk} " not in text_of(first)
    assert "1–25 of 26" in text_of(first)
    older = re.search(r'href="(\?[^"]*offset=[^"]*)">Next', first.content.decode())
    assert older is not None
    rest = viewer.get(f"/probes/{unescape(older[1])}")
    assert rest.content.decode().count('<th scope="row" class="keep">') == 1
    assert "There is no kind “ speed ”," in text_of(viewer.get("/probes/?kind=speed"))
    assert "No probe matches this filter." in text_of(viewer.get("/probes/?kind=canary"))


def test_the_list_is_sorted_by_what_its_address_says_and_filtering_keeps_the_order(viewer: Client) -> None:
    asked = [probes.ask(kind).pk for kind in ("seed", "routing", "seed")]
    page = viewer.get("/probes/?ordering=kind&size=100").content.decode()
    assert re.findall(r'id="probe-(\d+)"', page) == [str(asked[at]) for at in (1, 0, 2)]
    assert '<th scope="col" aria-sort="ascending"><a class="sort" href="?ordering=-kind&amp;size=100">Kind</a>' in page
    assert '<input type="hidden" name="ordering" value="kind"><input type="hidden" name="size" value="100">' in page


def test_who_may_run_asks_on_the_page(engineer: Client) -> None:
    asked = {"endpoint": "local", "kind": "batch", "profile": "", "parameters": '{"copies": 7}'}
    answer = engineer.post("/probes/", asked, follow=True)
    probe = ProbeRecord.objects.get()
    assert answer.redirect_chain == [(f"/probes/{probe.pk}/", 302)]
    assert (probe.kind, probe.profile.slug, probe.parameters["copies"]) == ("batch", "fast", 7)
    assert (probe.created_by is not None, f"Probe {probe.pk} is queued" in text_of(answer)) == (True, True)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"parameters": '{"copies": 1}'}, "parameters", "parameters.copies: "),
        ({"parameters": "[1]"}, "parameters", "This must be a JSON object"),
        ({"parameters": '{"load": NaN}'}, "parameters", "This is not valid JSON"),
        ({"kind": "speed"}, "kind", "speed is not one of the available choices"),
        ({"endpoint": "log"}, "endpoint", "log is not one of the available choices"),
    ],
)
def test_what_was_typed_wrong_stands_at_its_field(
    engineer: Client, changes: dict[str, str], field: str, words: str
) -> None:
    EndpointRecord.objects.create(slug="log", engine="imported", model_repo="a/b", dtype="float32", line="a")
    answer = engineer.post("/probes/", {"endpoint": "local", "kind": "batch", "parameters": "", **changes})
    assert answer.status_code == 422
    problem = re.search(rf'id="id_{field}-problem">(.*?)</div></div>', answer.content.decode(), re.S)
    assert problem is not None
    assert words in unescape(re.sub(r"<[^>]+>", "", problem[1]))
    assert not ProbeRecord.objects.exists()


def test_who_may_only_look_is_offered_nothing_and_refused(viewer: Client) -> None:
    assert '<form class="form"' not in viewer.get("/probes/").content.decode()
    assert viewer.post("/probes/", {"endpoint": "local", "kind": "seed"}).status_code == 403
    assert not ProbeRecord.objects.exists()


def test_the_command_asks_the_very_same_again(viewer: Client) -> None:
    probe = probes.ask("seed", parameters={"prompts": ["It's $HOME?"], "calls_per_group": 3})
    command = words.command("local", "seed", "pinned", probe.parameters)
    assert command == (
        "evalboard probe local --kind seed --profile pinned "
        """--set 'prompts=["It'"'"'s $HOME?"]' --set calls_per_group=3"""
    )
    assert command in page(viewer, probe)


def test_small_numbers_are_not_drawn_as_none() -> None:
    assert numbers.plain(None, 2) == "–"
    assert numbers.plain(-0.25, 2) == "−0.25"
    assert numbers.prompt_name(0, ["x" * 80]) == f"1. {'x' * 59}…"
    assert numbers.prompt_name(3, []) == "4"


def test_a_capability_check_is_a_table_of_parameters(viewer: Client) -> None:
    probe = probes.ask("capability")
    scripted = iter(answer_calls(honours=EVERYTHING - {"seed"}, refuses={"min_p": "No field <b>min_p</b>."}))
    probes.served_by_others(lambda call: replace(next(scripted), round=call.round))
    response = viewer.get(f"/probes/{probe.pk}/")
    shown = text_of(response)
    assert "<b>min_p</b>" not in response.content.decode()
    assert "Something ignored" in shown
    assert re.search(
        r"seed two calls with one, a third with another ignored Two calls with the same seed differ as early", shown
    )
    assert "min_p 1 refused The server says: No field <b>min_p</b>." in shown
    assert "parameters honoured 16" in shown
    assert "run a seed probe for statistics" in shown
    assert "No control. Set a bypass or a reference endpoint to get one." in shown


@pytest.mark.nightly
def test_a_gateways_probe_says_which_hop_and_leads_to_the_other(viewer: Client) -> None:
    probes.remote("gateway", bypass=EndpointRecord.objects.get(slug=probes.remote("direct")))
    through = probes.ask("seed", on="gateway")
    direct = ProbeRecord.objects.get(bypass_of=through)
    assert "direct gets the same calls directly, and gateway through the gateway" in page(viewer, through)
    dropped = probes.ignored()
    probes.served_by_others(lambda call: replace(dropped(call), token_ids=(), backend="a <i>b</i>"))
    probes.served_by_others(lambda call: replace(probes.honoured(call), token_ids=()))
    response = viewer.get(f"/probes/{through.pk}/")
    assert "Which hop: Honoured at direct, ignored through gateway: the gateway drops it." in text_of(response)
    assert f'href="/probes/{direct.pk}/">The probe without the gateway' in response.content.decode()
    assert "a <i>b</i>" in text_of(response)
    assert "<i>b</i>" not in response.content.decode()
    assert (
        f'href="/probes/{through.pk}/">The probe through the gateway'
        in viewer.get(f"/probes/{direct.pk}/").content.decode()
    )


def test_marked_answers_and_backends_are_shown(viewer: Client) -> None:
    probe = probes.ask("routing", on=probes.remote(), parameters={"calls": 4})
    numbers = iter(range(4))
    probes.served_by_others(
        lambda call: replace(call, text="a", backend="node-1", marks=("cached",) if next(numbers) == 0 else ())
    )
    shown = page(viewer, probe)
    assert "answers left out 1" in shown
    assert "left out: cached" in shown
    assert "By backend Backend Answers node-1 3" in shown


def test_a_probe_that_nobody_can_take_says_so_and_how_to_help(viewer: Client, db: None) -> None:
    probe = probes.ask("seed", parameters={"prompts": 2, "calls_per_group": 3})
    path = f"/probes/{probe.pk}/"
    words = "Pool default has no worker. Run evalboard worker --pool default to start one."
    assert words in unescape(viewer.get(path).content.decode())
    here = build.worker("able")
    assert "has no worker" not in viewer.get(path).content.decode()
    WorkerRecord.objects.filter(pk=here.pk).update(rests_until=timezone.now() + timedelta(minutes=9))
    assert "The worker of pool default is paused until" in viewer.get(path).content.decode()
