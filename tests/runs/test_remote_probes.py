"""Probes of servers of others: what may be asked, who may claim them, the gateway's bypass, and what comes of them."""

from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from evalboard.core.errors import InvalidInput
from evalboard.core.probes import ProbeExchange
from runs.models import EndpointRecord, ProbeRecord
from runs.probes import PROBES, claim_probe, create_probe, fail_probe, let_probe_rest, probes_before, record_calls
from runs.probes.read import probe_calls, probe_detail, probe_work
from runs.probes.read import probe_state as state_of
from runs.schedules import create_schedule, start_due
from tests import build, probes
from tests.capability import EVERYTHING, answer_calls

SMALL = {"prompts": 2, "calls_per_group": 4}


@pytest.fixture(autouse=True)
def profiles(db: None) -> None:
    build.profile("pinned")
    build.profile("fast")


def by(backend: str, answer: probes.Answer) -> probes.Answer:
    return lambda call: replace(answer(call), backend=backend, token_ids=())


def in_turn(*backends: str) -> probes.Answer:
    numbers = count()
    return lambda call: replace(call, text="Tuesday", backend=backends[next(numbers) % len(backends)])


def gateway() -> str:
    """A gateway whose bypass is `direct`."""
    direct = EndpointRecord.objects.get(slug=probes.remote("direct"))
    return probes.remote("gateway", bypass=direct)


def checked(*, honours: frozenset[str] = EVERYTHING) -> probes.Answer:
    """Answer a capability check as a server that honours some parameters."""
    scripted = {(each.group, place): each for place, each in enumerate(answer_calls(honours=honours))}

    def answer(call: ProbeExchange) -> ProbeExchange:
        key = next(key for key in scripted if key[0] == call.group)
        return replace(scripted.pop(key), round=call.round)

    return answer


def test_a_capability_check_is_for_servers_of_others_alone() -> None:
    build.endpoint("local")
    with pytest.raises(InvalidInput) as refused:
        create_probe(endpoint="local", kind="capability", parameters={})
    assert list(refused.value.fields) == ["kind"]
    assert "external servers" in refused.value.fields["kind"]


def test_a_capability_check_ends_in_its_table_and_names_the_newest_seed_probe() -> None:
    probes.ask("seed", on=probes.remote(), parameters=SMALL)
    seed = probes.served_by_others(by("a", probes.honoured))
    probe = probes.ask("capability")
    assert probe_detail(probe.pk).progress.n_total == 26
    ended = probes.served_by_others(checked(honours=EVERYTHING - {"seed"}))
    assert (ended.pk, ended.finding["state"]) == (probe.pk, "ignores")
    numbers = ended.finding["numbers"]
    assert (numbers["seed_probe"]["id"], numbers["seed_probe"]["state"]) == (str(seed.pk), "honoured")
    detail = probe_detail(probe.pk)
    assert (detail.progress.n_done, detail.progress.n_total) == (19, 19)
    assert detail.control == "No control. Set a bypass or a reference endpoint to get one."


def test_a_seed_probe_of_texts_is_judged_by_characters() -> None:
    probes.ask("seed", on=probes.remote(), parameters=SMALL)
    ended = probes.served_by_others(by("a", probes.honoured))
    assert (ended.finding["state"], ended.finding["numbers"]["compared"]) == ("honoured", "character")


def test_routing_asks_sixty_times_by_one_worker_and_counts_who_answered() -> None:
    build.worker("other")
    probe = probes.ask("routing", on=probes.remote())
    assert (probe.parameters["calls"], probe.waits_for) == (60, [])
    ended = probes.served_by_others(in_turn(*["a"] * 14, "b"))
    assert ended.finding["state"] == "several"
    assert ended.finding["sentence"].startswith("2 backends answer: a gave 56 and b gave 4, of 60 answers.")
    assert {call.backend for call in probe_calls(ended.pk)} == {"a", "b"}


def test_a_backend_that_differs_from_the_last_probe_is_a_rotation() -> None:
    for backend, state in (("a", "one"), ("a", "one"), ("b", "rotated")):
        probes.ask("routing", on=probes.remote(), parameters={"calls": 5})
        assert probes.served_by_others(in_turn(backend)).finding["state"] == state


def test_marked_answers_are_counted_and_left_out() -> None:
    probes.ask("routing", on=probes.remote(), parameters={"calls": 5})
    numbers = count()

    def answer(call: ProbeExchange) -> ProbeExchange:
        return replace(call, text="Tuesday", backend="a", marks=("cached",) if next(numbers) < 2 else ())

    ended = probes.served_by_others(answer)
    assert (ended.finding["state"], ended.finding["numbers"]["n_marked"]) == ("one", 2)
    assert [call.marks for call in probe_calls(ended.pk)][:3] == [("cached",), ("cached",), ()]


@pytest.mark.nightly
def test_a_canary_of_a_server_that_gives_no_ids_is_held_against_earlier_ones() -> None:
    def listing(shift: float) -> probes.Answer:
        top = (("blue", -0.5 - shift), ("red", -1.5))
        return lambda call: replace(call, text="blue", top=top)

    for place in range(13):
        probes.ask("canary", on=probes.remote(), parameters={"prompts": 2})
        ended = probes.served_by_others(listing(1.0 if place == 12 else 0.0))
    assert ended.finding["state"] == "changed"


def test_a_gateway_is_probed_beside_its_bypass_and_both_say_which_hop_drops_the_seed() -> None:
    gateway()
    through = probes.ask("seed", on="gateway")
    direct = ProbeRecord.objects.get(bypass_of=through)
    assert (direct.endpoint.slug, direct.parameters, direct.profile) == ("direct", through.parameters, through.profile)
    before = state_of(through.pk)
    probes.served_by_others(by("", probes.ignored()))
    assert probe_detail(through.pk).hop.sentence is None
    probes.served_by_others(by("", probes.honoured))
    assert state_of(through.pk) != before
    hop = probe_detail(through.pk).hop
    assert hop.sentence == "Honoured at direct, ignored through gateway: the gateway drops it."
    assert (hop.gateway_probe, hop.direct_probe) == (str(through.pk), str(direct.pk))
    assert probe_detail(direct.pk).hop == hop
    assert probe_detail(through.pk).control == f"direct, reached without the gateway: probe {direct.pk}, seed honoured."


def test_a_capability_check_of_a_gateway_names_the_parameters_that_it_drops() -> None:
    gateway()
    through = probes.ask("capability", on="gateway")
    probes.served_by_others(checked(honours=EVERYTHING - {"seed", "top_k"}))
    probes.served_by_others(checked())
    sentence = probe_detail(through.pk).hop.sentence
    assert sentence == "gateway drops seed and top_k, which direct honours."


def test_a_bypass_that_is_an_engine_of_ours_is_probed_for_all_but_capabilities() -> None:
    build.endpoint("local")
    probes.remote("gateway", bypass=EndpointRecord.objects.get(slug="local"))
    assert ProbeRecord.objects.filter(bypass_of=probes.ask("canary", on="gateway")).get().endpoint.slug == "local"
    assert not ProbeRecord.objects.filter(bypass_of=probes.ask("capability", on="gateway")).exists()


def test_the_control_of_an_endpoint_with_a_reference_is_the_references_newest_probe() -> None:
    build.endpoint("local")
    probes.remote(reference=EndpointRecord.objects.get(slug="local"))
    first = probes.ask("seed", on="hosted", parameters=SMALL)
    assert "no such probe of the reference, local, had ended before" in probe_detail(first.pk).control
    ProbeRecord.objects.all().delete()
    known = probes.ask("seed", parameters=SMALL)
    probes.served(probes.honoured)
    probe = probes.ask("seed", on="hosted", parameters=SMALL)
    assert probe_detail(probe.pk).control == f"local, the endpoint's reference: probe {known.pk}, seed honoured."
    assert probe_detail(known.pk).control is None


def test_an_endpoint_that_rests_lets_its_probe_wait_and_loses_it_no_attempt() -> None:
    probe = probes.ask("canary", on=probes.remote(), parameters={"prompts": 2})
    worker = build.worker("prober")
    for _ in range(4):
        lease = claim_probe(worker=worker)
        assert lease is not None
        let_probe_rest(lease=lease, reason="503 five times in a row", seconds=30, n_failures=5)
        probe.refresh_from_db()
        assert (probe.status, probe.owner_id, probe.error) == ("queued", None, "503 five times in a row")
        assert claim_probe(worker=worker) is None
        ProbeRecord.objects.update(next_at=Now())
        assert claim_probe(worker=worker) is None  # the endpoint itself rests
        endpoint = EndpointRecord.objects.get(slug="hosted")
        assert (endpoint.n_failures, endpoint.rest_reason) == (5, "503 five times in a row")
        EndpointRecord.objects.update(rests_until=Now())
    ended = probes.served_by_others(lambda call: replace(call, text="blue", top=(("blue", -0.5),)))
    assert ended.status == "finished"


def test_a_probe_that_waited_for_its_endpoint_is_lost_as_often_as_any_other_before_it_has_failed() -> None:
    probe = probes.ask("canary", on=probes.remote(), parameters={"prompts": 2})
    worker = build.worker("prober")
    for n_lost in range(3):
        for _ in range(3):
            lease = claim_probe(worker=worker)
            assert lease is not None, n_lost
            let_probe_rest(lease=lease, reason="503", seconds=30, n_failures=5)
            ProbeRecord.objects.update(next_at=Now())
            EndpointRecord.objects.update(rests_until=None)
        assert claim_probe(worker=worker) is not None
        PROBES.take_back_from([worker.pk])
    probe.refresh_from_db()
    assert (probe.status, probe.n_crashes, probe.attempt) == ("failed", 3, 12)
    assert probe.error.startswith("It was begun 3 times and never came to an end.")


def test_an_endpoint_that_refuses_every_call_fails_its_probe_with_the_providers_words() -> None:
    probes.ask("canary", on=probes.remote(), parameters={"prompts": 2})
    lease = claim_probe(worker=build.worker("prober"))
    assert lease is not None
    fail_probe(lease=lease, reason="401: Incorrect API key provided.")
    detail = probe_detail(lease.id)
    assert (detail.status, detail.error, detail.finding) == ("failed", "401: Incorrect API key provided.", None)


def test_a_round_that_is_recorded_twice_is_stored_once_and_another_worker_goes_on_with_the_rest() -> None:
    probe = probes.ask("routing", on=probes.remote(), parameters={"calls": 4})
    lease = claim_probe(worker=build.worker("prober"))
    assert lease is not None
    [first, *_] = probe_work(lease.id, worker_id=lease.worker_id).rounds
    answers = [replace(call, text="a", backend="a", worker=lease.worker_id, is_remote=True) for call in first]
    for _ in range(2):
        record_calls(lease=lease, calls=answers)
    assert len(probe_calls(probe.pk)) == 1
    assert len(probe_work(lease.id, worker_id=build.worker("other").pk).rounds) == 3


def test_what_was_known_at_a_time_is_the_newest_of_each_kind_that_had_ended() -> None:
    probes.remote()
    for _ in range(2):
        probes.ask("routing", on="hosted", parameters={"calls": 5})
        newest = probes.served_by_others(in_turn("a"))
    probes.ask("canary", on="hosted", parameters={"prompts": 2})
    now = timezone.now()
    assert [row.id for row in probes_before({"hosted"}, until=now)] == [str(newest.pk)]
    assert probes_before({"hosted"}, until=now + timedelta(days=15)) == ()
    assert probes_before({"hosted"}, until=now - timedelta(days=1)) == ()
    assert probes_before({"elsewhere"}, until=now) == ()


def test_a_capability_check_is_scheduled_every_day() -> None:
    order = {"endpoint": probes.remote(), "kind": "capability", "parameters": {}}
    schedule = create_schedule(slug="hosted-capability", cron="0 5 * * *", kind="probe", order=order, user=build.user())
    schedule.next_at = timezone.now() - timedelta(minutes=1)
    schedule.save()
    start_due(schedule.pk)
    assert ProbeRecord.objects.get().kind == "capability"
